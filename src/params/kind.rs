//! The two choices between kinds of filters.

use core::{fmt, ops::RangeInclusive};

/// How the table stores its fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// Slot after slot: any bucket size from 1 to 16, fingerprints of 2 to 32 bits.
    Single,
    /// Semi-sorted buckets of four slots, one bit less for each: fingerprints of 4 to 32 bits. Smaller at the same
    /// false-positive rate.
    Packed,
}

impl TableKind {
    /// Lengths of a fingerprint that the table takes, in bits.
    #[must_use]
    pub const fn fingerprint_bits(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 2..=32,
            Self::Packed => 4..=32,
        }
    }

    /// Slots that a bucket of the table may have.
    #[must_use]
    pub const fn bucket_sizes(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 1..=16,
            Self::Packed => 4..=4,
        }
    }

    /// Bits of a bucket of `b` slots with fingerprints of `f` bits.
    pub(crate) const fn bucket_bits(self, f: u32, b: u32) -> u32 {
        match self {
            Self::Single => b * f,
            // 12 bits of codeword stand for the 16 of four low nibbles.
            Self::Packed => b * (f - 1),
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Packed => "packed",
        })
    }
}

/// How an item's two buckets are found. docs/FORMAT.md has the formulas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addressing {
    /// Any even number of buckets, so that a filter is as large as it must be and no larger.
    #[default]
    AnySize,
    /// A power of two, by the formulas of Go's linvon/cuckoo-filter: for exchange with it. Up to twice as large, and an
    /// item whose fingerprint is a multiple of the number of buckets has one bucket instead of two.
    PowerOfTwo,
}

impl fmt::Display for Addressing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AnySize => "any size",
            Self::PowerOfTwo => "power of two",
        })
    }
}
