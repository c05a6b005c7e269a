//! The texts that stand for the header's numbers in human-readable formats. Each value has exactly one accepted form.

use core::fmt::{self, Display};

use super::super::format::{addressing_number, table_number};

/// A 64-bit number as `0x` and sixteen hexadecimal digits.
pub(super) struct Hex(pub(super) u64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// What [`hex`] accepts, for error messages.
pub(super) const SIXTEEN_DIGITS: &str = "0x and sixteen digits from 0 to f";

/// Parses exactly what [`Hex`] writes: sixteen digits, in lower case.
pub(super) fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16)?;
    digits.bytes().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

/// Parses the name of a kind of table.
pub(super) fn table(text: &str) -> Option<u8> {
    text.parse().ok().map(table_number)
}

/// Parses the name of an addressing.
pub(super) fn addressing(text: &str) -> Option<u8> {
    text.parse().ok().map(addressing_number)
}
