//! How many samples each bucket has, and each thread's part of them.

use std::ops::Deref;
use std::sync::OnceLock;

use crate::Result;

/// How many samples each bucket has. The samples of a planner never change, so that epochs share what was counted.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    all: Vec<u64>,
    /// By stretch of samples, where several threads scatter one each: nobody needs them otherwise.
    by_lane: OnceLock<Vec<Vec<u64>>>,
}

impl Counts {
    pub(crate) fn new(all: Vec<u64>) -> Self {
        Self { all, by_lane: OnceLock::new() }
    }

    /// Those of each of `lanes` stretches, counted by `count` the first time.
    pub(crate) fn by_lane(&self, lanes: usize, count: impl FnOnce() -> Result<Vec<Vec<u64>>>) -> Result<&[Vec<u64>]> {
        if lanes == 1 {
            return Ok(std::slice::from_ref(&self.all));
        }
        if let Some(known) = self.by_lane.get() {
            return Ok(known);
        }
        let counted = count()?;
        Ok(self.by_lane.get_or_init(|| counted))
    }
}

impl Deref for Counts {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.all
    }
}
