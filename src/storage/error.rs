//! The error of a failed allocation.

use core::{error::Error, fmt};

/// Memory for a table, or for a copy of one, could not be allocated. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    bytes: usize,
}

impl OutOfMemory {
    pub(crate) fn of(bytes: usize) -> Self {
        Self { bytes }
    }

    /// The number of bytes requested.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes of memory could not be allocated; use a smaller capacity, a higher false-positive rate, or a machine \
             with more memory",
            self.bytes
        )
    }
}

impl Error for OutOfMemory {}
