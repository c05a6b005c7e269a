//! Operations on many items, on many threads.

use alloc::vec::Vec;
use core::num::NonZeroUsize;
use std::thread;

use super::{super::GrowError, SharedFilter};
use crate::{filter::same_length, hash::HashItem};

impl<H: Sync> SharedFilter<H> {
    /// [`insert_batch`](Self::insert_batch) on so many threads, with a part of the items on each: twice as many threads take
    /// hardly more than half of the time, as long as there are cores and as memory allows.
    ///
    /// If a thread cannot be started, its items are inserted by this one.
    ///
    /// # Errors
    /// As `insert_batch`.
    ///
    /// # Panics
    /// If an item's code panics. Items whose hashes had not been computed are then not in the filter.
    ///
    /// # Example
    /// ```
    /// let threads = std::thread::available_parallelism()?;
    /// let items: Vec<u64> = (0..100_000).collect();
    /// let filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
    /// filter.insert_parallel(threads, &items)?;
    /// let mut found = vec![false; items.len()];
    /// filter.contains_parallel(threads, &items, &mut found);
    /// assert!(found.iter().all(|&found| found));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_parallel<T: Sync>(&self, threads: NonZeroUsize, items: &[T]) -> Result<(), GrowError>
    where
        H: HashItem<T>,
    {
        let each = items.len().div_ceil(threads.get()).max(1);
        let parts = items.chunks(each).enumerate();
        let results = on_threads(parts, |(part, items)| self.insert_batch(items).map_err(|error| error.after(part * each)));
        results.into_iter().collect()
    }

    /// [`contains_batch`](Self::contains_batch) on so many threads.
    ///
    /// # Panics
    /// If the slices differ in length, or if an item's code panics.
    pub fn contains_parallel<T: Sync>(&self, threads: NonZeroUsize, items: &[T], found: &mut [bool])
    where
        H: HashItem<T>,
    {
        same_length(items.len(), found.len());
        let each = items.len().div_ceil(threads.get()).max(1);
        on_threads(items.chunks(each).zip(found.chunks_mut(each)), |(items, found)| self.contains_batch(items, found));
    }
}

/// Calls `act` with each part, the first of them on this thread and the others on one each. Returns the results in order.
fn on_threads<P: Send, R: Send>(parts: impl Iterator<Item = P>, act: impl Fn(P) -> R + Sync) -> Vec<R> {
    let act = &act;
    thread::scope(|scope| {
        let mut parts = parts;
        let first = parts.next();
        // A part that no thread has taken is left in its cell.
        let threads: Vec<_> = parts
            .map(|part| {
                let cell = std::sync::Arc::new(std::sync::Mutex::new(Some(part)));
                let theirs = cell.clone();
                let thread = thread::Builder::new().spawn_scoped(scope, move || take(&theirs).map(act));
                (thread, cell)
            })
            .collect();
        let mut results: Vec<R> = first.map(act).into_iter().collect();
        for (thread, cell) in threads {
            let result = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => take(&cell).map(act),
            };
            results.extend(result);
        }
        results
    })
}

fn take<P>(cell: &std::sync::Mutex<Option<P>>) -> Option<P> {
    cell.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}
