//! Work shared by threads that end with the call: nothing outlives it, and no result depends on how many there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, Result};

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

/// What `work` makes of every task from 0 to `tasks`, in their order, on up to `threads` threads.
///
/// # Errors
/// The first error.
pub(crate) fn results<T: Send>(
    threads: usize,
    tasks: usize,
    work: &(impl Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let done: Vec<Mutex<Option<T>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
    run(threads, tasks, &|task| {
        let result = work(task)?;
        *done[task].lock().map_err(|_| Error::Interrupted)? = Some(result);
        Ok(())
    })?;
    done.into_iter().map(|slot| slot.into_inner().ok().flatten().ok_or(Error::Interrupted)).collect()
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
