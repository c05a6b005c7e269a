//! How a map's texts write what a header has as numbers. Each is read as it is written, and in no other way.

use core::fmt::{self, Display};

use super::super::format::{addressing_number, table_number};

/// All 64 bits.
pub(super) struct Hex(pub(super) u64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// For errors: what [`hex`] reads.
pub(super) const SIXTEEN_DIGITS: &str = "0x and sixteen digits from 0 to f";

/// Only what [`Hex`] writes: sixteen digits, none of them a capital.
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

/// Only a table's name.
pub(super) fn table(text: &str) -> Option<u8> {
    text.parse().ok().map(table_number)
}

/// Only an addressing's name.
pub(super) fn addressing(text: &str) -> Option<u8> {
    text.parse().ok().map(addressing_number)
}
