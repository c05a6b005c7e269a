//! The names of kinds of tables and of addressing.

use core::{fmt, str::FromStr};

use super::{Addressing, ParamError, TableKind};

/// Implements [`Display`](fmt::Display) and [`FromStr`] for an enum, with the name of each variant.
macro_rules! named {
    ($kind:ident, $parameter:literal, $all:literal: $($variant:ident $name:literal)+) => {
        impl $kind {
            /// All variants, in the order of their numbers in a snapshot.
            pub(crate) const ALL: [Self; $all] = [$(Self::$variant),+];

            /// Returns the name.
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

        /// Parses the name, which is in lowercase.
        impl FromStr for $kind {
            type Err = ParamError;

            fn from_str(name: &str) -> Result<Self, ParamError> {
                let named = Self::ALL.into_iter().find(|kind| kind.name() == name);
                named.ok_or(ParamError::Name { parameter: $parameter, names: &[$($name),+] })
            }
        }
    };
}

// `Single` comes first: it is the simplest, and takes all fingerprints and buckets that the other takes.
named!(TableKind, "table", 2: Single "single" Packed "packed");

// The default comes first.
named!(Addressing, "addressing", 2: AnySize "any-size" PowerOfTwo "power-of-two");

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn only_exact_names_are_parsed() {
        for kind in TableKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for addressing in Addressing::ALL {
            assert_eq!(addressing.to_string().parse(), Ok(addressing));
        }
        for invalid in ["", "Single", "single ", "any size", "AnySize", "powers-of-two"] {
            let (table, addressing) = (invalid.parse::<TableKind>().unwrap_err(), invalid.parse::<Addressing>().unwrap_err());
            assert_eq!(table.to_string(), "table: the names here are single, packed; give one of those");
            assert_eq!(addressing.to_string(), "addressing: the names here are any-size, power-of-two; give one of those");
        }
    }
}
