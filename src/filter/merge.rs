//! Two filters become one.

use super::{CuckooFilter, MergeError};
use crate::{
    snapshot::{verified_copy, verify},
    storage::Storage,
};

impl<H: PartialEq> CuckooFilter<H> {
    /// Adds all items of `other`, duplicates included, as if they had been inserted here. Merging into an empty filter copies
    /// the other's table.
    ///
    /// All or nothing: works on a copy of the table, so that there are two of them in memory meanwhile. A view of a snapshot is
    /// [verified](crate::FilterView::verify) first.
    ///
    /// # Errors
    /// If the two differ in a parameter, the hasher or its seed; if the other is a view of a corrupt snapshot; if not everything
    /// fits; or if there is no memory for the copy. This filter is then bit for bit as it was.
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
        // First, since it takes no reading of the table.
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
