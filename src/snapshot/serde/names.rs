//! How a map's texts write what a header has as numbers. Each is read as it is written, and in no other way.

use core::fmt::{self, Display};

use super::super::format::{addressing_number, table_number};
use crate::hash::HasherId;

/// All 64 bits.
pub(super) struct Hex(pub(super) u64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

/// For errors: what [`hex`] reads.
pub(super) const SIXTEEN_DIGITS: &str = "0x and sixteen digits from 0 to f";

/// Only what [`Hex`] writes.
pub(super) fn hex(text: &str) -> Option<u64> {
    digits::<16>(text)
}

/// `0x` and exactly `N` digits; capital ones are not written, and so not read.
fn digits<const N: usize>(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == N)?;
    digits.bytes().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(digit))
    })
}

/// Its name if it has one, its number if not.
pub(super) struct HasherName(pub(super) HasherId);

impl Display for HasherName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            id @ (HasherId::XXH3 | HasherId::METRO_HASH_64) => id.fmt(f),
            id => write!(f, "{:#06x}", id.number()),
        }
    }
}

/// Only what [`HasherName`] writes.
pub(super) fn hasher(text: &str) -> Option<HasherId> {
    match text {
        "xxh3" => Some(HasherId::XXH3),
        "metrohash64" => Some(HasherId::METRO_HASH_64),
        _ => {
            let id = HasherId::from_number(u16::try_from(digits::<4>(text)?).ok()?);
            (id != HasherId::XXH3 && id != HasherId::METRO_HASH_64).then_some(id)
        }
    }
}

/// Only a table's name.
pub(super) fn table(text: &str) -> Option<u8> {
    text.parse().ok().map(table_number)
}

/// Only an addressing's name.
pub(super) fn addressing(text: &str) -> Option<u8> {
    text.parse().ok().map(addressing_number)
}
