//! The two choices between kinds of filters, and their names.

use core::{fmt, str::FromStr};

use super::{ParamError, Parameter};

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

impl TableKind {
    /// All of them; the simplest first, which takes whatever the others take.
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Packed];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Packed => "packed",
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
        f.pad(self.name())
    }
}

/// By its name: `single` or `packed`, in small letters.
impl FromStr for TableKind {
    type Err = ParamError;

    fn from_str(name: &str) -> Result<Self, ParamError> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| ParamError::unknown_name(Parameter::Table, name, Self::ALL.into_iter().map(Self::name)))
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

impl Addressing {
    /// All of them, the default first.
    pub(crate) const ALL: [Self; 2] = [Self::AnySize, Self::PowerOfTwo];

    /// Its name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AnySize => "any-size",
            Self::PowerOfTwo => "power-of-two",
        }
    }
}

impl fmt::Display for Addressing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By its name: `any-size` or `power-of-two`, in small letters.
impl FromStr for Addressing {
    type Err = ParamError;

    fn from_str(name: &str) -> Result<Self, ParamError> {
        let addressing = Self::ALL.into_iter().find(|addressing| addressing.name() == name);
        addressing.ok_or_else(|| ParamError::unknown_name(Parameter::Addressing, name, Self::ALL.into_iter().map(Self::name)))
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
            assert_eq!((table.parameter(), addressing.parameter()), (Parameter::Table, Parameter::Addressing));
            let names = "the names are single and packed; use one of them";
            assert_eq!(table.to_string(), std::format!("table: {wrong:?} given, but {names}"));
            let names = "the names are any-size and power-of-two; use one of them";
            assert_eq!(addressing.to_string(), std::format!("addressing: {wrong:?} given, but {names}"));
        }
    }

    #[test]
    fn a_long_text_is_not_repeated() {
        let error = "x".repeat(41).parse::<TableKind>().unwrap_err();
        assert!(error.to_string().starts_with("table: a text of 41 bytes given"), "{error}");
    }
}
