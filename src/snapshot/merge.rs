//! Two filters become one: the other may be a view of bytes from outside.

use alloc::string::ToString as _;

use super::verify;
use crate::{error::MergeError, filter::CuckooFilter, hash::Hasher, storage::Storage};

impl<H: Hasher> CuckooFilter<H> {
    /// Adds everything that is in `other`, duplicates included, as if it had been inserted here.
    ///
    /// All or nothing: works on a copy of the table, so that for the time being there are two of them in memory. A view of a
    /// snapshot is [verified](crate::FilterView::verify) first.
    ///
    /// # Errors
    /// If the two differ in a parameter, the hasher or its seed; if the other's bytes are damaged; if not everything fits; or if
    /// there is no memory for the copy. This filter is then bit for bit as it was.
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
        self.check_same(other)?;
        verify::filter(other).map_err(|error| {
            let (kind, offset, what) = (error.kind(), error.offset(), error.to_string());
            MergeError::Damaged { kind, offset, what }
        })?;
        self.take_in(other)
    }
}
