//! What is planned: one item a sample, and more where samples are cut into pieces.

use crate::Length;

/// The lengths of all items. Item i below the number of samples is sample i; those above are the further pieces of samples.
#[derive(Debug)]
pub(crate) struct Items<'a, L> {
    lengths: &'a [L],
    /// Samples are cut to this.
    ceiling: u32,
    pieces: &'a [Piece],
}

/// One further piece of an over-long sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whose it is.
    pub(crate) sample: usize,
    /// Its first token.
    pub(crate) start: u32,
    /// How many tokens it has.
    pub(crate) tokens: u32,
}

impl<L> Clone for Items<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<L> Copy for Items<'_, L> {}

impl<'a, L: Length> Items<'a, L> {
    pub(crate) fn new(lengths: &'a [L], ceiling: u32, pieces: &'a [Piece]) -> Self {
        Self { lengths, ceiling, pieces }
    }

    pub(crate) fn len(&self) -> usize {
        self.lengths.len() + self.pieces.len()
    }

    /// The tokens of `item`; 0 for one that is not there.
    #[inline]
    pub(crate) fn tokens(&self, item: usize) -> u32 {
        match self.lengths.get(item) {
            Some(&length) => length.into().min(self.ceiling),
            None => self.pieces.get(item - self.lengths.len()).map_or(0, |piece| piece.tokens),
        }
    }

    /// The lengths of the `N` items from `item` on, as they are before they are cut; `None` where not all of them are samples.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled once for each instruction set")]
    pub(crate) fn whole<const N: usize>(&self, item: usize) -> Option<&'a [L; N]> {
        self.lengths.get(item..)?.first_chunk()
    }

    /// How long an item can be; longer samples are cut.
    pub(crate) fn ceiling(&self) -> u32 {
        self.ceiling
    }

    /// Whether samples longer than `length` are cut to it, or less.
    pub(crate) fn cut_to(&self, length: u32) -> bool {
        self.ceiling <= length
    }
}
