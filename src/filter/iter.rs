//! The iterator over answers, which looks items up in batches.

use alloc::collections::VecDeque;
use core::{fmt, iter::FusedIterator, mem};

use super::{Core, Filter};
use crate::{hash::HashItem, kernel::BATCH};

/// Iterator over items and whether the filter contains them; made by [`Filter::contains_iter`].
#[must_use = "iterators are lazy: nothing is looked up until the iterator is consumed"]
pub struct ContainsIter<'a, I: Iterator, F> {
    filter: &'a F,
    items: I,
    batch: VecDeque<I::Item>,
    /// One bit for each item of `batch`; the lowest bit is the next answer.
    answers: u64,
}

impl<'a, I: Iterator, F> ContainsIter<'a, I, F> {
    pub(crate) fn new(filter: &'a F, items: I) -> Self {
        Self { filter, items, batch: VecDeque::new(), answers: 0 }
    }
}

impl<I: Iterator, C: Core, H: HashItem<I::Item>> Iterator for ContainsIter<'_, I, Filter<C, H>> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            if self.batch.try_reserve(BATCH).is_err() {
                // Without memory for a batch, one after the other.
                let item = self.items.next()?;
                let found = self.filter.contains(&item);
                return Some((item, found));
            }
            // If hashing an item panics, `self` must not keep a batch without its answers.
            let mut batch = mem::take(&mut self.batch);
            batch.extend(self.items.by_ref().take(BATCH));
            let mut hashes = [0; BATCH];
            for (hash, item) in hashes.iter_mut().zip(&batch) {
                *hash = self.filter.uniform(item).0;
            }
            self.filter.core.contains_all(&&hashes[..batch.len()], |answers| self.answers = answers);
            self.batch = batch;
        }
        let item = self.batch.pop_front()?;
        let found = self.answers & 1 == 1;
        self.answers >>= 1;
        Some((item, found))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (ahead, (least, most)) = (self.batch.len(), self.items.size_hint());
        (least.saturating_add(ahead), most.and_then(|most| most.checked_add(ahead)))
    }
}

impl<I: Iterator<Item: Clone> + Clone, F> Clone for ContainsIter<'_, I, F> {
    fn clone(&self) -> Self {
        Self { filter: self.filter, items: self.items.clone(), batch: self.batch.clone(), answers: self.answers }
    }
}

impl<I: Iterator, F> fmt::Debug for ContainsIter<'_, I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainsIter").field("ahead", &self.batch.len()).finish_non_exhaustive()
    }
}

impl<I: ExactSizeIterator, C: Core, H: HashItem<I::Item>> ExactSizeIterator for ContainsIter<'_, I, Filter<C, H>> {}
impl<I: FusedIterator, C: Core, H: HashItem<I::Item>> FusedIterator for ContainsIter<'_, I, Filter<C, H>> {}
