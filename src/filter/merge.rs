//! Merging two filters.

use super::{CuckooFilter, MergeError};
use crate::{
    snapshot::{verified_copy, verify},
    storage::Storage,
};

impl<H: PartialEq> CuckooFilter<H> {
    /// Inserts all items of `other`, duplicates included, into this filter. Takes time proportional to the table. Merging into an
    /// empty filter copies the other table.
    ///
    /// The merge is atomic: it works on a copy of the table, which temporarily doubles this filter's memory. A view of a snapshot
    /// is [verified](crate::FilterView::verify) first.
    ///
    /// # Errors
    /// If the filters have different parameters (the seed included) or hashers, if `other` is a view of a corrupt snapshot, if
    /// not all items fit, or if the copy cannot be allocated. This filter is then unchanged, bit for bit.
    ///
    /// # Example
    /// ```
    /// let builder = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    /// let (mut left, mut right) = (builder.clone().build()?, builder.build()?);
    /// left.insert("alice")?;
    /// right.insert("bob")?;
    /// left.merge(&right)?;
    /// assert!(left.contains("alice") && left.contains("bob"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn merge<S: Storage>(&mut self, other: &CuckooFilter<H, S>) -> Result<(), MergeError> {
        // Cheap checks first: `verify` reads the whole table.
        let (ours, theirs) = (self.params(), other.params());
        if ours != theirs {
            return Err(MergeError::DifferentParams { ours, theirs });
        }
        if self.hasher != other.hasher {
            return Err(MergeError::DifferentHasher);
        }
        if self.is_empty() {
            self.raw = verified_copy(&other.raw)?.with_dispatch(self.raw.dispatch());
            return Ok(());
        }
        verify(&other.raw)?;
        self.raw.merge(&other.raw)
    }
}
