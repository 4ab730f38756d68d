//! Work shared by threads that end with the call: nothing outlives it, and no result depends on how many there are.

use std::sync::atomic::{AtomicUsize, Ordering};

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
}
