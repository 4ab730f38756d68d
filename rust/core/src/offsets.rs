//! Lengths of lists from Arrow offsets: list `i` holds values `offsets[i]..offsets[i + 1]`, and is null where bit `i` of
//! the validity bitmap is not set.
//!
//! One pass that subtracts and checks at once, as offsets may come from a damaged file: it runs at the speed of memory.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html#variable-size-list-layout>

use crate::raw::{Work, widest};
use crate::{Error, MAX_LENGTH, Result};

/// A type of offsets: i32 in lists, i64 in large lists.
pub trait Offset: Copy + Default + Into<i64> + std::ops::BitOr<Output = Self> + Send + Sync {
    /// The length between two offsets, in the width of the offsets so that many are subtracted at once.
    fn length(start: Self, end: Self) -> Self;
    /// Its low bits.
    fn low(self) -> u32;
}

impl Offset for i32 {
    fn length(start: Self, end: Self) -> Self {
        end.wrapping_sub(start)
    }

    #[expect(clippy::cast_sign_loss, reason = "a negative length is refused")]
    fn low(self) -> u32 {
        self as u32
    }
}

impl Offset for i64 {
    fn length(start: Self, end: Self) -> Self {
        end.wrapping_sub(start)
    }

    #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "what does not fit is refused")]
    fn low(self) -> u32 {
        self as u32
    }
}

/// Write the lengths between consecutive offsets to `out`, which has one element fewer.
///
/// # Errors
/// A length is negative or above [`MAX_LENGTH`]; `out` has another size.
pub fn lengths<O: Offset>(offsets: &[O], out: &mut [u32]) -> Result<()> {
    let starts = offsets.get(..offsets.len().saturating_sub(1)).unwrap_or_default();
    let ends = offsets.get(1..).unwrap_or_default();
    if out.len() != ends.len() {
        return Err(Error::invalid(format!("out has {} elements, but {} lists have lengths", out.len(), ends.len())));
    }
    write(starts.iter().zip(ends).map(|(&start, &end)| O::length(start, end)), out)
}

/// Write lengths in another width to `out`, which has as many elements.
///
/// # Errors
/// A length is negative or above [`MAX_LENGTH`]; `out` has another size.
pub fn narrow<O: Offset>(lengths: &[O], out: &mut [u32]) -> Result<()> {
    if out.len() != lengths.len() {
        return Err(Error::invalid(format!("out has {} elements for {} lengths", out.len(), lengths.len())));
    }
    write(lengths.iter().copied(), out)
}

fn write<O: Offset>(lengths: impl Iterator<Item = O> + Clone, out: &mut [u32]) -> Result<()> {
    let mut seen = O::default();
    widest(Pass { lengths: lengths.clone(), out, seen: &mut seen });
    let allowed = 0..=i64::from(MAX_LENGTH);
    if allowed.contains(&seen.into()) {
        return Ok(());
    }
    let wrong = lengths.map(Into::into).enumerate().find(|(_, length)| !allowed.contains(length));
    let (row, length) = wrong.unwrap_or_default();
    Err(Error::invalid(format!("row {row} has length {length}, but a length is from 0 to {MAX_LENGTH}")))
}

/// The one pass: every bit that some length has is in `seen` at the end.
struct Pass<'a, O, I> {
    lengths: I,
    out: &'a mut [u32],
    seen: &'a mut O,
}

impl<O: Offset, I: Iterator<Item = O>> Work for Pass<'_, O, I> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    fn run(self) {
        let mut seen = O::default();
        for (slot, length) in self.out.iter_mut().zip(self.lengths) {
            // A negative length has its highest bit set, and one that is too long some bit above the 31st.
            seen = seen | length;
            *slot = length.low();
        }
        *self.seen = seen;
    }
}

/// The positions, counted from `start`, of the bits that are not set among the `count` from bit `start` on.
///
/// # Errors
/// The bitmap ends before they do.
pub fn unset(bitmap: &[u8], start: usize, count: usize) -> Result<Vec<i64>> {
    let bits = bitmap.len().saturating_mul(8);
    if start.checked_add(count).is_none_or(|end| end > bits) {
        return Err(Error::invalid(format!("a bitmap of {bits} bits does not hold {count} rows from bit {start} on")));
    }
    let mut found = Vec::new();
    let first = start / 8;
    for (index, chunk) in bitmap.get(first..).unwrap_or_default().chunks(8).enumerate() {
        let mut word = [0xff; 8];
        word.iter_mut().zip(chunk).for_each(|(slot, &byte)| *slot = byte);
        let mut zeros = !u64::from_le_bytes(word);
        let base = (first * 8 + index * 64) as i64 - start as i64;
        if base >= count as i64 {
            break;
        }
        while zeros != 0 {
            let position = base + i64::from(zeros.trailing_zeros());
            if (0..count as i64).contains(&position) {
                found.push(position);
            }
            zeros &= zeros - 1;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(offsets: &[i64]) -> Option<Vec<u32>> {
        offsets.windows(2).map(|pair| u32::try_from(pair[1] - pair[0]).ok().filter(|&n| n <= MAX_LENGTH)).collect()
    }

    proptest! {
        #[test]
        fn is_the_naive_difference(
            offsets in prop::collection::vec(
                prop_oneof![8 => 0_i64..100, 1 => Just(i64::from(MAX_LENGTH) + 40), 1 => Just(-1)], 0..40,
            ),
        ) {
            let mut out = vec![0; offsets.len().saturating_sub(1)];
            let result = lengths(&offsets, &mut out).ok().map(|()| out.clone());
            prop_assert_eq!(&result, &naive(&offsets));
            let narrow: Option<Vec<i32>> = offsets.iter().map(|&offset| i32::try_from(offset).ok()).collect();
            if let Some(narrow) = narrow {
                prop_assert_eq!(lengths(&narrow, &mut out).ok().map(|()| out), result);
            }
        }

        #[test]
        fn narrowing_is_the_naive_conversion(values in prop::collection::vec(-2_i64..(1 << 33), 0..9)) {
            let mut out = vec![0; values.len()];
            let naive: Option<Vec<u32>> =
                values.iter().map(|&value| u32::try_from(value).ok().filter(|&n| n <= MAX_LENGTH)).collect();
            prop_assert_eq!(narrow(&values, &mut out).ok().map(|()| out), naive);
        }

        #[test]
        fn finds_each_bit_that_is_not_set(
            bitmap in prop::collection::vec(prop_oneof![Just(0xff_u8), any::<u8>()], 0..40),
            start in 0_usize..200,
            count in 0_usize..330,
        ) {
            let bit = |index: usize| bitmap[index / 8] >> (index % 8) & 1 == 1;
            let naive = (start + count <= bitmap.len() * 8)
                .then(|| (0..count).filter(|&row| !bit(start + row)).map(|row| row as i64).collect::<Vec<_>>());
            prop_assert_eq!(unset(&bitmap, start, count).ok(), naive);
        }
    }

    #[test]
    fn names_the_row() {
        let mut out = [0; 3];
        let message = lengths(&[0, 2, 1, 2], &mut out).unwrap_err().to_string();
        assert_eq!(message, "row 1 has length -1, but a length is from 0 to 2147483647");
        assert!(lengths(&[i64::MAX, i64::MIN, 0, 0], &mut out).is_err());
        assert!(lengths(&[0, 1], &mut out).is_err());
    }
}
