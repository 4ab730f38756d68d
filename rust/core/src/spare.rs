//! Memory that goes from what nobody needs any more to the next plan.
//!
//! Why: the system clears fresh memory, page by page, when it is first written. That takes 0.3 to 0.8 ns a sample, of 4 to 8 for
//! all planning, and threads wait for one another meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::raw::zeros;

/// What waits for the next plan: the memory of one plan's indices and, where several threads plan, of what each scatters.
#[derive(Debug)]
pub struct Spare<T> {
    pub(crate) indices: Pool<T>,
    pub(crate) lanes: Pool<T>,
}

impl<T: Copy + Default> Spare<T> {
    /// Nothing yet, for plans on so many threads; without any, nothing is ever kept.
    #[must_use]
    pub const fn new(threads: u32) -> Self {
        let indices = Pool::new(if threads == 0 { 0 } else { 1 });
        // On one thread what is scattered becomes the indices.
        let lanes = Pool::new(if threads == 1 { 0 } else { threads as usize });
        Self { indices, lanes }
    }

    /// Keep the memory of indices, whatever is in them.
    pub fn keep(&self, indices: Vec<T>) {
        self.indices.keep(indices);
    }
}

/// Arrays that are kept for their memory.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    arrays: Mutex<Vec<Vec<T>>>,
    /// How many are kept.
    most: usize,
}

impl<T: Copy + Default> Pool<T> {
    const fn new(most: usize) -> Self {
        Self { arrays: Mutex::new(Vec::new()), most }
    }

    /// Of more arrays than are kept, the smallest goes.
    pub(crate) fn keep(&self, array: Vec<T>) {
        let mut arrays = self.lock();
        arrays.push(array);
        arrays.sort_unstable_by_key(|array| std::cmp::Reverse(array.capacity()));
        arrays.truncate(self.most);
    }

    /// An array of `len` elements that have no meaning.
    pub(crate) fn take(&self, len: usize) -> Vec<T> {
        let mut arrays = self.lock();
        let Some(smallest) = arrays.iter().rposition(|array| array.capacity() >= len) else { return zeros(len) };
        let mut array = arrays.remove(smallest);
        array.resize(len, T::default());
        array
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<T>>> {
        self.arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacities(pool: &Pool<u8>) -> Vec<usize> {
        pool.lock().iter().map(Vec::capacity).collect()
    }

    #[test]
    fn the_smallest_array_that_fits_is_taken() {
        let pool = Pool::new(3);
        for len in [50, 10, 30] {
            pool.keep(vec![7; len]);
        }
        assert_eq!(pool.take(11), [7; 11]);
        assert_eq!(capacities(&pool), [50, 10]);
        assert_eq!(pool.take(51), [0; 51]);
        assert_eq!(pool.take(50), [7; 50]);
        assert_eq!(capacities(&pool), [10]);
    }

    #[test]
    fn an_array_that_was_cut_has_its_length_again() {
        let pool = Pool::new(1);
        let mut array = vec![7; 20];
        array.truncate(3);
        pool.keep(array);
        assert_eq!(pool.take(5), [7, 7, 7, 0, 0]);
    }

    #[test]
    fn the_largest_arrays_are_kept() {
        let pool = Pool::new(2);
        for len in [5, 20, 10, 1] {
            pool.keep(vec![0; len]);
        }
        assert_eq!(capacities(&pool), [20, 10]);
    }

    #[test]
    fn as_much_is_kept_as_a_plan_needs() {
        let most = |threads| {
            let spare = Spare::new(threads);
            for _ in 0..9 {
                spare.keep(vec![0_u8; 9]);
                spare.lanes.keep(vec![0; 9]);
            }
            (capacities(&spare.indices).len(), capacities(&spare.lanes).len())
        };
        assert_eq!([0, 1, 2, 4].map(most), [(0, 0), (1, 0), (1, 2), (1, 4)]);
    }
}
