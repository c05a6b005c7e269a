//! Why items and filters are refused, and the limits that refuse them.

use std::ffi::CStr;

use koel::InsertErrorKind;

/// The limits of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// For clients: the most bytes of a filter. In a filter that does not expand, the capacity also limits the number of distinct
    /// items.
    Bytes(usize),
    /// For commands from a primary or an append-only file. The server that executed the client's command has already applied its
    /// limits.
    None,
}

impl Limit {
    /// Returns the most bytes of a filter.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::None => usize::MAX,
        }
    }
}

/// The reason that an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The filter would exceed its capacity in distinct items, and must not expand.
    Capacity,
    /// The filter would exceed its limit of bytes: it would take at least this many.
    Limit {
        needed: u64,
    },
    /// The filter cannot grow any further.
    Growth,
    OutOfMemory,
    /// The item already has the most copies that can be counted. INFO includes this in `refused_growth`.
    Copies,
}

impl Refusal {
    /// The reasons that INFO counts, with the names of their fields.
    pub(crate) const COUNTED: [(&CStr, Self); 4] = [
        (c"refused_capacity", Self::Capacity),
        (c"refused_max_bytes", Self::Limit { needed: 0 }),
        (c"refused_growth", Self::Growth),
        (c"refused_out_of_memory", Self::OutOfMemory),
    ];

    /// Returns the reason that the library gives.
    pub(crate) fn of(kind: InsertErrorKind) -> Self {
        match kind {
            InsertErrorKind::TooManyCopies => Self::Copies,
            InsertErrorKind::Limit { needed, .. } => Self::Limit { needed: needed as u64 },
            InsertErrorKind::OutOfMemory { .. } => Self::OutOfMemory,
            _ => Self::Growth,
        }
    }

    /// Returns the index of the reason's count in `COUNTED`.
    pub(crate) fn counter(self) -> usize {
        match self {
            Self::Capacity => 0,
            Self::Limit { .. } => 1,
            Self::Growth | Self::Copies => 2,
            Self::OutOfMemory => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reason has a count, with its own name.
    #[test]
    fn refusals_have_counts() {
        for (at, &(_, refusal)) in Refusal::COUNTED.iter().enumerate() {
            assert_eq!(refusal.counter(), at);
        }
        assert_eq!(Refusal::Copies.counter(), Refusal::Growth.counter());
    }
}
