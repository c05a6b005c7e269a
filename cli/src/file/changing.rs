//! Filters of either type that a command changes.

use koel::InsertError;
use koel_lab::percent;

use super::{Filter, Growing, Stored};

/// A filter that can be changed.
pub(crate) enum Changing {
    Fixed(Filter),
    Growing(Growing),
}

impl Changing {
    /// The filter, if it is a snapshot. `name` is for the message.
    pub(crate) fn of(stored: Stored, name: &str) -> anyhow::Result<Self> {
        match stored {
            Stored::Growing(filter) => Ok(Self::Growing(*filter)),
            other => other.koel(name).map(Self::Fixed),
        }
    }

    /// Inserts an item, with `unique` only if it is not reported as present. True if it was inserted.
    pub(crate) fn insert(&mut self, item: &[u8], unique: bool) -> Result<bool, InsertError> {
        match (self, unique) {
            (Self::Fixed(filter), true) => filter.insert_unique(item),
            (Self::Fixed(filter), false) => filter.insert(item).map(|()| true),
            (Self::Growing(filter), true) => filter.insert_unique(item),
            (Self::Growing(filter), false) => filter.insert(item).map(|()| true),
        }
    }

    /// Removes an item. False if it was not found.
    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        match self {
            Self::Fixed(filter) => filter.remove(item),
            Self::Growing(filter) => filter.remove(item),
        }
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Fixed(filter) => filter.len(),
            Self::Growing(filter) => filter.len(),
        }
    }

    /// How full it is, or how large, in a few words.
    pub(crate) fn extent(&self) -> String {
        match self {
            Self::Fixed(filter) => format!("load {}", percent(filter.load_factor(), 2)),
            Self::Growing(filter) => format!("tables of {} bytes", filter.table_bytes()),
        }
    }
}
