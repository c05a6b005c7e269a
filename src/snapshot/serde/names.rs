//! How a map's texts write what a header has as numbers. Each is read as it is written, and in no other way.

use core::fmt::{self, Display};

use super::super::format::{addressing_number, table_number};
use crate::params::{Addressing, TableKind};

/// All 64 bits.
pub(super) struct Hex(pub(super) u64);

impl Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

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

/// As the command has it, too.
pub(super) fn table_name(table: TableKind) -> &'static str {
    match table {
        TableKind::Single => "single",
        TableKind::Packed => "packed",
    }
}

pub(super) fn table(text: &str) -> Option<u8> {
    [TableKind::Single, TableKind::Packed].into_iter().find(|&kind| table_name(kind) == text).map(table_number)
}

/// As the command has it, too.
pub(super) fn addressing_name(addressing: Addressing) -> &'static str {
    match addressing {
        Addressing::AnySize => "any-size",
        Addressing::PowerOfTwo => "power-of-two",
    }
}

pub(super) fn addressing(text: &str) -> Option<u8> {
    let addressings = [Addressing::AnySize, Addressing::PowerOfTwo];
    addressings.into_iter().find(|&addressing| addressing_name(addressing) == text).map(addressing_number)
}
