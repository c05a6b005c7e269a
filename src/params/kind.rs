//! Kinds of tables and of addressing, and their limits.

use core::ops::RangeInclusive;

/// The kind of table, which is how fingerprints are stored.
///
/// Its name is `single` or `packed` in [`Display`](core::fmt::Display), [`FromStr`](core::str::FromStr), serde and the command `koel`.
///
/// # Example
/// ```
/// use koel::TableKind;
/// assert_eq!("packed".parse(), Ok(TableKind::Packed));
/// assert_eq!(TableKind::Packed.to_string(), "packed");
/// assert!("Packed".parse::<TableKind>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableKind {
    /// One slot after the other. Buckets have 1 to 16 slots, fingerprints 2 to 32 bits.
    Single,
    /// Semi-sorted buckets of four slots, which store each fingerprint in one bit less than its length. Fingerprints have 4 to 32
    /// bits. Smaller at the same false-positive rate.
    Packed,
}

impl TableKind {
    /// Returns the valid fingerprint lengths in bits: 2 to 32 for the single table, 4 to 32 for the packed one, whose codewords
    /// encode four bits of each fingerprint.
    ///
    /// # Example
    /// ```
    /// assert_eq!(koel::TableKind::Packed.fingerprint_bits(), 4..=32);
    /// ```
    #[must_use]
    pub const fn fingerprint_bits(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 2..=32,
            Self::Packed => 4..=32,
        }
    }

    /// Returns the valid bucket sizes in slots: 1 to 16 for the single table, 4 for the packed one, whose codewords encode four
    /// slots.
    ///
    /// # Example
    /// ```
    /// assert_eq!(koel::TableKind::Single.bucket_sizes(), 1..=16);
    /// ```
    #[must_use]
    pub const fn bucket_sizes(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 1..=16,
            Self::Packed => 4..=4,
        }
    }

    /// Returns the bits of a bucket with `b` slots and fingerprints of `f` bits.
    pub(crate) const fn bucket_bits(self, f: u32, b: u32) -> u32 {
        match self {
            Self::Single => b * f,
            // A codeword of 12 bits encodes the 16 bits of four low nibbles.
            Self::Packed => b * (f - 1),
        }
    }
}

/// The addressing, which is how an item's two buckets are computed. docs/FORMAT.md has the formulas.
///
/// Its name is `any-size` or `power-of-two` in [`Display`](core::fmt::Display), [`FromStr`](core::str::FromStr), serde and the
/// command `koel`.
///
/// # Example
/// ```
/// use koel::Addressing;
/// assert_eq!("power-of-two".parse(), Ok(Addressing::PowerOfTwo));
/// assert_eq!(Addressing::default().to_string(), "any-size");
/// assert!("any size".parse::<Addressing>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addressing {
    /// Any even number of buckets, so a filter is no larger than necessary.
    #[default]
    AnySize,
    /// A power of two of buckets, with the formulas of Go's linvon/cuckoo-filter and of RedisBloom, to exchange filters with
    /// them. The filter is up to twice as large. An item whose fingerprint is a multiple of the number of buckets has one bucket
    /// instead of two.
    PowerOfTwo,
}

impl Addressing {
    /// Returns the smallest valid number of buckets.
    pub(super) const fn min_buckets(self) -> u64 {
        match self {
            // A bucket and its alternate.
            Self::AnySize => 2,
            Self::PowerOfTwo => 1,
        }
    }

    /// Rounds up to a valid number of buckets. Returns `u64::MAX` if that exceeds 64 bits.
    pub(super) fn round_up(self, buckets: u64) -> u64 {
        let rounded = match self {
            Self::AnySize => buckets.max(self.min_buckets()).checked_next_multiple_of(2),
            Self::PowerOfTwo => buckets.checked_next_power_of_two(),
        };
        rounded.unwrap_or(u64::MAX)
    }

    /// Returns true if the number of buckets is valid. Does not check the largest number.
    pub(super) fn accepts(self, buckets: u64) -> bool {
        match self {
            Self::AnySize => buckets >= self.min_buckets() && buckets.is_multiple_of(2),
            Self::PowerOfTwo => buckets.is_power_of_two(),
        }
    }
}
