//! What a plan costs and how well it mixes, counted from its arrays.

use crate::raw::prefetch;
use crate::{Error, Index, Interrupt, Length, Result};

/// How many batches ahead samples are brought into the cache, and how many of each.
const AHEAD: usize = 8;
const MOST_AHEAD: usize = 256;

/// Samples between two looks at the interrupt.
const CHUNK: usize = 1 << 18;

/// A plan's batches as the caller holds them: batch i is `indices[starts[i]..][..sizes[i]]`.
#[derive(Debug, Clone, Copy)]
pub struct Batches<'a, I> {
    /// Samples.
    pub indices: &'a [I],
    /// Where each batch starts.
    pub starts: &'a [i64],
    /// How many samples it has.
    pub sizes: &'a [u32],
}

impl<'a, I: Index> Batches<'a, I> {
    /// The samples of each batch.
    fn iter(self) -> impl Iterator<Item = Result<&'a [I]>> {
        self.starts.iter().zip(self.sizes).enumerate().map(move |(i, (&start, &size))| {
            self.ahead(i + AHEAD);
            let samples = usize::try_from(start).ok().and_then(|start| self.indices.get(start..)?.get(..size as usize));
            samples
                .ok_or_else(|| Error::invalid(format!("starts[{i}] is {start} with sizes[{i}]={size}, beyond indices")))
        })
    }
}

impl<I: Index> Batches<'_, I> {
    /// Bring the samples of batch `i` into the cache: batches run in a random order, which no processor foresees.
    fn ahead(self, i: usize) {
        if let (Some(&start), Some(&size)) = (self.starts.get(i), self.sizes.get(i)) {
            let first = self.indices.as_ptr().wrapping_add(start as usize);
            let line = 64 / size_of::<I>();
            for sample in (0..(size as usize).min(MOST_AHEAD)).step_by(line) {
                prefetch(first.wrapping_add(sample));
            }
        }
    }
}

/// Real tokens of every batch.
///
/// # Errors
/// Interrupted; a sample that `lengths` does not have.
pub fn real_tokens<L: Length, I: Index>(
    batches: Batches<'_, I>,
    lengths: &[L],
    interrupt: Interrupt<'_>,
) -> Result<Vec<u64>> {
    sums(batches, lengths, interrupt, u64::from)
}

/// The sum of the squared lengths of every batch.
///
/// # Errors
/// As [`real_tokens`].
pub fn squared_lengths<L: Length, I: Index>(
    batches: Batches<'_, I>,
    lengths: &[L],
    interrupt: Interrupt<'_>,
) -> Result<Vec<f64>> {
    sums(batches, lengths, interrupt, |length| f64::from(length) * f64::from(length))
}

/// The sum of a value of the lengths of every batch.
fn sums<L: Length, I: Index, T: Default + std::ops::AddAssign>(
    batches: Batches<'_, I>,
    lengths: &[L],
    interrupt: Interrupt<'_>,
    value: impl Fn(u32) -> T,
) -> Result<Vec<T>> {
    let mut made = Vec::with_capacity(batches.sizes.len());
    let mut seen = 0;
    for batch in batches.iter() {
        let batch = batch?;
        pause(&mut seen, batch.len(), interrupt)?;
        let mut sum = T::default();
        for &sample in batch {
            let length = lengths.get(sample.position()).copied().ok_or_else(|| unknown(sample))?;
            sum += value(length.into());
        }
        made.push(sum);
    }
    Ok(made)
}

/// Of all pairs of samples that share a batch in `now`: how many share one in `next` too, and how many there are.
///
/// A sample that `next` does not use meets nobody; one that it uses several times is where it is used last.
///
/// # Errors
/// Interrupted; a sample above `samples`.
pub fn batchmates<I: Index>(
    now: Batches<'_, I>,
    next: Batches<'_, I>,
    samples: usize,
    interrupt: Interrupt<'_>,
) -> Result<(u64, u64)> {
    const NOWHERE: u32 = u32::MAX;
    let mut home = vec![NOWHERE; samples];
    let mut seen = 0;
    for (i, batch) in next.iter().enumerate() {
        let batch = batch?;
        pause(&mut seen, batch.len(), interrupt)?;
        for &sample in batch {
            *home.get_mut(sample.position()).ok_or_else(|| unknown(sample))? = i as u32;
        }
    }
    let (mut met, mut pairs) = (0, 0);
    let mut homes = Vec::new();
    for batch in now.iter() {
        let batch = batch?;
        pause(&mut seen, batch.len(), interrupt)?;
        homes.clear();
        for &sample in batch {
            homes.push(*home.get(sample.position()).ok_or_else(|| unknown(sample))?);
        }
        homes.sort_unstable();
        pairs += pairs_of(batch.len());
        let together = homes.chunk_by(|a, b| a == b).filter(|run| run[0] != NOWHERE);
        met += together.map(|run| pairs_of(run.len())).sum::<u64>();
    }
    Ok((met, pairs))
}

/// The samples of all batches in running order.
///
/// # Errors
/// Interrupted.
pub fn in_running_order<I: Index>(batches: Batches<'_, I>, interrupt: Interrupt<'_>) -> Result<Vec<I>> {
    let total: u64 = batches.sizes.iter().map(|&size| u64::from(size)).sum();
    let mut indices = Vec::with_capacity(total as usize);
    let mut seen = 0;
    for batch in batches.iter() {
        let batch = batch?;
        pause(&mut seen, batch.len(), interrupt)?;
        indices.extend_from_slice(batch);
    }
    Ok(indices)
}

fn pairs_of(samples: usize) -> u64 {
    let samples = samples as u64;
    samples * samples.saturating_sub(1) / 2
}

fn unknown<I: Index>(sample: I) -> Error {
    Error::invalid(format!("indices has sample {}, which lengths does not have", sample.position()))
}

/// Look at the interrupt once a chunk of samples.
fn pause(seen: &mut usize, more: usize, interrupt: Interrupt<'_>) -> Result<()> {
    *seen += more;
    if *seen >= CHUNK {
        *seen = 0;
        interrupt.check()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batchmates_are_pairs() {
        let now = Batches::<u32> { indices: &[0, 1, 2, 3, 4], starts: &[0, 3], sizes: &[3, 2] };
        let next = Batches::<u32> { indices: &[4, 0, 1, 3, 2], starts: &[0, 3], sizes: &[3, 2] };
        // Pairs now: 01 02 12 34; in the next epoch 401 and 32 are together: only 01 meets again.
        assert_eq!(batchmates(now, next, 5, Interrupt::NEVER), Ok((1, 4)));
        assert_eq!(batchmates(now, now, 5, Interrupt::NEVER), Ok((4, 4)));
        let dropped = Batches::<u32> { indices: &[0, 1, 2, 3, 4], starts: &[3], sizes: &[2] };
        assert_eq!(batchmates(now, dropped, 5, Interrupt::NEVER), Ok((1, 4)));
        assert!(batchmates(now, next, 4, Interrupt::NEVER).is_err());
    }

    #[test]
    fn tokens_and_running_order() {
        let batches = Batches::<u32> { indices: &[2, 0, 1], starts: &[1, 0], sizes: &[2, 1] };
        assert_eq!(real_tokens(batches, &[5_u16, 6, 7], Interrupt::NEVER), Ok(vec![11, 7]));
        assert_eq!(squared_lengths(batches, &[5_u16, 6, 7], Interrupt::NEVER), Ok(vec![61.0, 49.0]));
        assert_eq!(in_running_order(batches, Interrupt::NEVER), Ok(vec![0, 1, 2]));
        assert!(real_tokens(batches, &[5_u16, 6], Interrupt::NEVER).is_err());
        assert!(in_running_order(Batches { starts: &[-1, 0], ..batches }, Interrupt::NEVER).is_err());
    }
}
