//! Merging two filters, which may have grown differently.

use core::{error::Error, fmt};

use super::{ElasticFilter, GrowError, error::Refused};
use crate::storage::reserved;

impl<H: PartialEq> ElasticFilter<H> {
    /// Inserts all items of `other`, duplicates included, into this filter. The filters must have equal parameters; how far each
    /// has grown does not matter. Takes time proportional to both.
    ///
    /// The merge is atomic: it works on a copy, which temporarily doubles this filter's memory.
    ///
    /// # Errors
    /// If the filters have different parameters (the seed included) or hashers, or if an item is refused, as by
    /// [`insert`](Self::insert). This filter is then unchanged.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().false_positive_rate(0.001);
    /// let (mut left, mut right) = (builder.clone().build()?, builder.build()?);
    /// left.insert("alice")?;
    /// right.insert_iter(0..100_000u64)?;
    /// left.merge(&right)?;
    /// assert!(left.contains("alice") && left.contains(&7u64) && left.len() == 100_001);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), ElasticMergeError> {
        if self.params != other.params {
            return Err(ElasticMergeError::DifferentParams);
        }
        if self.hasher != other.hasher {
            return Err(ElasticMergeError::DifferentHasher);
        }
        let refused = |reason: Refused| ElasticMergeError::Refused(self.refuse(reason));
        let mut allowed = self.storage.max_bytes.saturating_sub(self.table_bytes());
        let mut merged = reserved(self.storage.lanes.len()).map_err(|error| refused(error.into()))?;
        for (lane, other) in self.storage.lanes.iter().zip(&other.storage.lanes) {
            let mut copy = lane.try_clone().map_err(|error| refused(error.into()))?;
            copy.merge(other, allowed).map_err(refused)?;
            allowed = allowed.saturating_sub(copy.table_bytes().saturating_sub(lane.table_bytes()));
            merged.push(copy);
        }
        self.storage.lanes = merged;
        Ok(())
    }
}

/// Two growing filters could not be merged. Both are unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElasticMergeError {
    /// The filters have different parameters.
    DifferentParams,
    /// The filters have different hashers.
    DifferentHasher,
    /// An item of the other filter was refused.
    Refused(GrowError),
}

impl fmt::Display for ElasticMergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentParams => {
                f.write_str("the filters have different parameters; build both from those of one of them: ElasticFilter::new")
            }
            Self::DifferentHasher => f.write_str("the filters have different hashers; insert the items of one into the other"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl Error for ElasticMergeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(error) => error.source(),
            _ => None,
        }
    }
}
