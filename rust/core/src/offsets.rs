//! Lengths of lists from Arrow offsets: list `i` holds values `offsets[i]..offsets[i + 1]`.
//!
//! One pass that subtracts and checks at once, as offsets may come from a damaged file: it runs at the speed of memory.
//!
//! Source: <https://arrow.apache.org/docs/format/Columnar.html#variable-size-list-layout>

use crate::{Error, MAX_LENGTH, Result};

/// A type of offsets: i32 in lists, i64 in large lists.
pub trait Offset: Copy + Send + Sync {
    /// As a 64-bit integer.
    fn wide(self) -> i64;
}

impl Offset for i32 {
    fn wide(self) -> i64 {
        i64::from(self)
    }
}

impl Offset for i64 {
    fn wide(self) -> i64 {
        self
    }
}

/// Write the lengths between consecutive offsets to `out`, which has one element fewer.
///
/// # Errors
/// A length is negative or above [`MAX_LENGTH`]; `out` has another size.
pub fn lengths<O: Offset>(offsets: &[O], out: &mut [u32]) -> Result<()> {
    let rows = offsets.len().saturating_sub(1);
    if out.len() != rows {
        return Err(Error::invalid(format!("out has {} elements, but {rows} lists have lengths", out.len())));
    }
    let mut seen = 0_i64;
    for (slot, (start, end)) in out.iter_mut().zip(offsets.iter().zip(offsets.iter().skip(1))) {
        let length = end.wide().wrapping_sub(start.wide());
        // A negative length has its highest bit set, and one that is too long some bit above the 31st.
        seen |= length;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what does not fit is refused below"
        )]
        {
            *slot = length as u32;
        }
    }
    if (0..=i64::from(MAX_LENGTH)).contains(&seen) {
        return Ok(());
    }
    let lengths = offsets.iter().zip(offsets.iter().skip(1)).map(|(start, end)| end.wide().wrapping_sub(start.wide()));
    let wrong = lengths.enumerate().find(|&(_, length)| !(0..=i64::from(MAX_LENGTH)).contains(&length));
    let (row, length) = wrong.unwrap_or_default();
    Err(Error::invalid(format!("row {row} has length {length}, but a length is from 0 to {MAX_LENGTH}")))
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
