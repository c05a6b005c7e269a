//! The two choices between kinds of filters: their names, and their limits.

use core::{fmt, ops::RangeInclusive, str::FromStr};

use super::ParamError;

/// The names of choices, which are all that there is to [`Display`](fmt::Display) and [`FromStr`].
macro_rules! named {
    ($kind:ident, $parameter:literal, $all:literal: $($variant:ident $name:literal)+) => {
        impl $kind {
            /// All of them, in the order of their numbers in a snapshot.
            pub(crate) const ALL: [Self; $all] = [$(Self::$variant),+];

            /// Its name.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        /// By its name, in small letters.
        impl FromStr for $kind {
            type Err = ParamError;

            fn from_str(name: &str) -> Result<Self, ParamError> {
                let named = Self::ALL.into_iter().find(|kind| kind.name() == name);
                named.ok_or(ParamError::Name { parameter: $parameter, names: &[$($name),+] })
            }
        }
    };
}

/// How the table stores its fingerprints.
///
/// Its name, in [`Display`](fmt::Display), [`FromStr`], serde and the command alike, is `single` or `packed`.
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
    /// Slot after slot: buckets of 1 to 16 slots, fingerprints of 2 to 32 bits.
    Single,
    /// Semi-sorted buckets of four slots, which store each fingerprint in one bit less than its length: fingerprints of 4 to
    /// 32 bits. Smaller at the same false-positive rate.
    Packed,
}

// The simplest first, which takes whatever the others take.
named!(TableKind, "table", 2: Single "single" Packed "packed");

impl TableKind {
    /// The fingerprint lengths that the table takes, in bits: 2 to 32 in the single table, 4 to 32 in the packed one, whose
    /// codewords stand for four bits of each fingerprint.
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

    /// The bucket sizes that the table takes, in slots: 1 to 16 in the single table, 4 in the packed one, whose codewords
    /// stand for four slots.
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

    /// Bits of a bucket of `b` slots with fingerprints of `f` bits.
    pub(crate) const fn bucket_bits(self, f: u32, b: u32) -> u32 {
        match self {
            Self::Single => b * f,
            // 12 bits of codeword stand for the 16 of four low nibbles.
            Self::Packed => b * (f - 1),
        }
    }
}

/// How an item's two buckets are found. docs/FORMAT.md has the formulas.
///
/// Its name, in [`Display`](fmt::Display), [`FromStr`], serde and the command alike, is `any-size` or `power-of-two`.
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
    /// Any even number of buckets, so that a filter is no larger than it must be.
    #[default]
    AnySize,
    /// A power of two, with the formulas of Go's linvon/cuckoo-filter and of RedisBloom, to exchange filters with them. Up to
    /// twice as large, and an item whose fingerprint is a multiple of the number of buckets has one bucket instead of two.
    PowerOfTwo,
}

// The default first.
named!(Addressing, "addressing", 2: AnySize "any-size" PowerOfTwo "power-of-two");

impl Addressing {
    /// The least number of buckets.
    pub(super) const fn fewest_buckets(self) -> u64 {
        match self {
            // A bucket and its alternate.
            Self::AnySize => 2,
            Self::PowerOfTwo => 1,
        }
    }

    /// The least number of buckets from `buckets` on; `u64::MAX` if it has more than 64 bits.
    pub(super) fn at_least(self, buckets: u64) -> u64 {
        let least = match self {
            Self::AnySize => buckets.max(self.fewest_buckets()).checked_next_multiple_of(2),
            Self::PowerOfTwo => buckets.checked_next_power_of_two(),
        };
        least.unwrap_or(u64::MAX)
    }

    /// Which numbers of buckets there can be, in words.
    pub(super) const fn rule(self) -> &'static str {
        match self {
            Self::AnySize => "even numbers",
            Self::PowerOfTwo => "powers of two",
        }
    }

    /// Whether this is a number of buckets, apart from their being too many.
    pub(super) fn takes(self, buckets: u64) -> bool {
        match self {
            Self::AnySize => buckets >= self.fewest_buckets() && buckets.is_multiple_of(2),
            Self::PowerOfTwo => buckets.is_power_of_two(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_are_read_back_and_nothing_else_is() {
        for kind in TableKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for addressing in Addressing::ALL {
            assert_eq!(addressing.to_string().parse(), Ok(addressing));
        }
        for wrong in ["", "Single", "single ", "any size", "AnySize", "powers-of-two"] {
            let (table, addressing) = (wrong.parse::<TableKind>().unwrap_err(), wrong.parse::<Addressing>().unwrap_err());
            assert_eq!(table.to_string(), "table: the names here are single, packed; give one of those");
            assert_eq!(addressing.to_string(), "addressing: the names here are any-size, power-of-two; give one of those");
        }
    }
}
