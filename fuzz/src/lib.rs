//! What the targets draw alike.

use arbitrary::{Result, Unstructured};
use lengthwise_core::{Limits, MAX_LENGTH, Overlong, Remainder, Settings, Spare};

/// A length, most often a short one.
pub fn length(from: &mut Unstructured<'_>) -> Result<u32> {
    let most = *from.choose(&[40, 9000, 70_000, MAX_LENGTH])?;
    from.int_in_range(0..=most)
}

/// Limits of a batch, without alignment of lengths.
pub fn limits(from: &mut Unstructured<'_>) -> Result<Limits> {
    Ok(Limits {
        max_tokens: if from.arbitrary()? { from.arbitrary()? } else { length(from)?.into() },
        max_samples: if from.arbitrary()? { u32::MAX } else { length(from)? },
        multiple_of: 1,
        samples_multiple_of: if from.arbitrary()? { 1 } else { from.int_in_range(0..=40)? },
    })
}

/// Settings of a planner.
pub fn settings(from: &mut Unstructured<'_>) -> Result<Settings> {
    let overlong = [Overlong::Error, Overlong::Drop, Overlong::Truncate, Overlong::Split, Overlong::Alone];
    Ok(Settings {
        seed: from.arbitrary()?,
        world_size: from.int_in_range(1..=40)?,
        accumulate: from.int_in_range(1..=3)?,
        overlong: *from.choose(&overlong)?,
        remainder: *from.choose(&[Remainder::Split, Remainder::Repeat, Remainder::Drop])?,
        threads: from.int_in_range(1..=4)?,
        count_tokens: from.arbitrary()?,
    })
}

/// Samples, one many times so that batches fill up, until nothing is left to draw from.
pub fn samples<'a, T: Clone>(
    from: &mut Unstructured<'a>,
    sample: impl Fn(&mut Unstructured<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut samples = Vec::new();
    while !from.is_empty() && samples.len() < 2000 {
        let times = from.int_in_range(1..=40)?;
        samples.extend(std::iter::repeat_n(sample(from)?, times));
    }
    Ok(samples)
}

/// Memory that others have used, where a case runs on several threads.
pub fn used_memory(threads: u32, samples: usize) -> Spare<u32> {
    let spare = Spare::new(threads);
    if threads > 1 {
        spare.keep(vec![u32::MAX; 4 * samples + 1000]);
    }
    spare
}

/// Samples are dropped and repeated as often as the plan says: `used` is how often each is in a batch.
pub fn check_counts(used: &[u64], repeated: u64, dropped: u64) {
    assert_eq!(repeated, used.iter().map(|&times| times.saturating_sub(1)).sum());
    assert_eq!(dropped, used.iter().filter(|&&times| times == 0).count() as u64);
}
