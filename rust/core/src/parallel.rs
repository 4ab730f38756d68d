//! Work shared by threads that end with the call: nothing outlives it, and no result depends on how many there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Run `work` on every task from 0 to `tasks`, on up to `threads` threads, this one among them. Tasks start in order.
///
/// # Errors
/// The first error; no task starts after it.
pub(crate) fn run(threads: usize, tasks: usize, work: &(impl Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    let next = AtomicUsize::new(0);
    let go = || {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return Ok(());
            }
            if let Err(error) = work(task) {
                next.store(tasks, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    let helpers = threads.min(tasks).saturating_sub(1);
    if helpers == 0 {
        return go();
    }
    std::thread::scope(|scope| {
        // A thread that the system refuses is done without.
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, go).ok();
        let handles: Vec<_> = (0..helpers).map_while(spawn).collect();
        let mine = go();
        handles.into_iter().fold(mine, |result, handle| match handle.join() {
            Ok(theirs) => result.and(theirs),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Run `work` on every part of `slice`: part i is `slice[starts[i]..starts[i + 1]]`. Each call gets the parts of one run, as
/// `(first part, the slice of the run)`.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_parts<T: Send>(
    threads: usize,
    slice: &mut [T],
    starts: &[usize],
    work: &(impl Fn(std::ops::Range<usize>, &mut [T]) -> Result<()> + Sync),
) -> Result<()> {
    let parts = starts.len() - 1;
    let runs = if threads == 1 { 1 } else { parts.min(16 * threads) };
    let mut tasks = Vec::with_capacity(runs);
    let mut rest = slice;
    for run in 0..runs {
        let (first, last) = (run * parts / runs, (run + 1) * parts / runs);
        let (own, others) = rest.split_at_mut(starts[last] - starts[first]);
        tasks.push(Mutex::new((first..last, own)));
        rest = others;
    }
    run(threads, runs, &|task| {
        let mut task = tasks[task].lock().unwrap_or_else(PoisonError::into_inner);
        let parts = task.0.clone();
        work(parts, task.1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn every_task_once_on_any_number_of_threads() {
        for threads in [1, 2, 7] {
            let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            let work = |task: usize| {
                done[task].fetch_add(1, Ordering::Relaxed);
                Ok(())
            };
            assert_eq!(run(threads, 100, &work), Ok(()));
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            assert_eq!(run(threads, 100, &|_| Err(Error::Interrupted)), Err(Error::Interrupted));
        }
    }

    #[test]
    fn parts_cover_the_slice() {
        for threads in [1, 3] {
            let mut slice = vec![0; 10];
            let starts = [0, 3, 3, 9, 10];
            let work = |parts: std::ops::Range<usize>, own: &mut [usize]| {
                let base = starts[parts.start];
                parts.for_each(|part| own[starts[part] - base..starts[part + 1] - base].fill(part));
                Ok(())
            };
            assert_eq!(run_parts(threads, &mut slice, &starts, &work), Ok(()));
            assert_eq!(slice, [0, 0, 0, 2, 2, 2, 2, 2, 2, 3]);
        }
    }
}
