//! What planning is done with. No plan depends on it.

use crate::{Interrupt, Spare};

/// What planning is done with.
#[derive(Clone, Copy)]
pub(crate) struct Means<'a, I> {
    pub(crate) threads: usize,
    /// Where memory comes from.
    pub(crate) spare: &'a Spare<I>,
    pub(crate) interrupt: Interrupt<'a>,
}
