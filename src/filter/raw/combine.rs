//! Two filters in one: all copies of both, or the larger number of each. And how many copies of everything there would be.

use super::RawFilter;
use crate::{
    bits::index,
    params::Copies,
    storage::{OutOfMemory, Storage},
    table::{Address, Placement as _},
};

/// What becomes of a fingerprint that both filters hold, in the same two buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// The copies of both.
    Sum,
    /// The larger number of copies.
    Union,
}

impl Combine {
    fn copies(self, ours: u32, theirs: u32) -> u32 {
        match self {
            Self::Sum => ours.saturating_add(theirs),
            Self::Union => ours.max(theirs),
        }
    }
}

impl RawFilter {
    /// Adds the fingerprints of a verified filter with the same parameters. Returns false, and changes nothing, if they do not fit.
    /// They are counted again while they are inserted, because mapped bytes may have changed since they were verified.
    pub(crate) fn combine<S: Storage>(&mut self, other: &RawFilter<S>, how: Combine) -> Result<bool, OutOfMemory> {
        // Do not copy the table if the items cannot fit.
        if how == Combine::Sum && self.len.checked_add(other.len).is_none_or(|len| len > self.params.slots()) {
            return Ok(false);
        }
        let mut combined = self.to_owned()?;
        let is_complete = match how {
            Combine::Sum => {
                let address = Address::new(&self.params);
                other.each_fingerprint(|bucket, fingerprint| {
                    combined.insert_fingerprint((bucket, address.alternate(bucket, fingerprint)), fingerprint)
                })
            }
            // A walk moves copies between their two buckets only. So those counted in the copy, before the first is added, are
            // those of this filter.
            Combine::Union => other.each_class(|buckets, fingerprint, theirs| {
                let ours = combined.copies(buckets, fingerprint);
                (ours..theirs).all(|_| combined.insert_fingerprint(buckets, fingerprint))
            }),
        };
        if is_complete {
            *self = combined;
        }
        Ok(is_complete)
    }
}

/// What two filters have together.
pub(crate) struct Together {
    /// Copies that both have: of each fingerprint and its buckets, the smaller number.
    pub(crate) in_both: usize,
    /// The copies after a merge.
    pub(crate) sum: Copies,
    /// The copies after a union.
    pub(crate) union: Copies,
}

impl<S: Storage> RawFilter<S> {
    /// Counts what two filters with the same parameters have. Takes time proportional to both tables.
    #[cold]
    pub(crate) fn together<T: Storage>(&self, other: &RawFilter<T>) -> Together {
        let mut together = Together { in_both: 0, sum: Copies::default(), union: Copies::default() };
        let mut add = |ours, theirs| {
            for (how, copies) in [(Combine::Sum, &mut together.sum), (Combine::Union, &mut together.union)] {
                copies.add(how.copies(ours, theirs));
            }
            together.in_both += index(ours.min(theirs).into());
        };
        other.each_class(|buckets, fingerprint, theirs| {
            add(self.copies(buckets, fingerprint), theirs);
            true
        });
        self.each_class(|buckets, fingerprint, ours| {
            if other.copies(buckets, fingerprint) == 0 {
                add(ours, 0);
            }
            true
        });
        together
    }
}
