//! How option values are written.

use std::{env, num::NonZeroUsize};

use anyhow::bail;
use clap::ValueEnum;
use koel::{Addressing, HasherId, Kernel, TableKind};

/// The variable that says which instructions items are looked up with.
const KERNEL: &str = "KOEL_KERNEL";

/// More threads than any machine has cores.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// The kernel that was asked for, if any was.
pub(crate) fn kernel() -> anyhow::Result<Option<Kernel>> {
    let Some(name) = env::var_os(KERNEL).filter(|name| !name.is_empty()) else { return Ok(None) };
    match name.to_string_lossy().parse() {
        Ok(kernel) => Ok(Some(kernel)),
        Err(error) => bail!("{KERNEL}: {error}"),
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Table {
    /// Slot after slot
    Single,
    /// Semi-sorted buckets of four, one bit less for each item
    Packed,
}

impl From<Table> for TableKind {
    fn from(table: Table) -> Self {
        match table {
            Table::Single => Self::Single,
            Table::Packed => Self::Packed,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Address {
    /// Any even number of buckets: no larger than it must be
    AnySize,
    /// A power of two, as Go's linvon/cuckoo-filter has it
    PowerOfTwo,
}

impl From<Address> for Addressing {
    fn from(address: Address) -> Self {
        match address {
            Address::AnySize => Self::AnySize,
            Address::PowerOfTwo => Self::PowerOfTwo,
        }
    }
}

/// The addressing as the option has it.
pub(crate) fn addressing_name(addressing: Addressing) -> &'static str {
    match addressing {
        Addressing::AnySize => "any-size",
        Addressing::PowerOfTwo => "power-of-two",
        _ => "other",
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Hash {
    /// XXH3, 64 bits
    Xxh3,
    /// As Go's linvon/cuckoo-filter hashes, there with the seed 1337
    #[value(name = "metrohash64")]
    MetroHash64,
}

impl From<Hash> for HasherId {
    fn from(hash: Hash) -> Self {
        match hash {
            Hash::Xxh3 => Self::XXH3,
            Hash::MetroHash64 => Self::METRO_HASH_64,
        }
    }
}

/// A number of items.
pub(crate) fn capacity(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("it takes a whole number from 0 to {}, such as 1000000", usize::MAX))
}

/// A false-positive rate; the library knows its limits.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| String::from("it takes a number between 0 and 1, such as 0.001"))
}

/// A number of bits; the library knows the limits of each table.
pub(crate) fn bits(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| String::from("it takes a whole number from 2 to 32, such as 13"))
}

/// A number of slots; the library knows the limits of each table.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| String::from("it takes a whole number from 1 to 16, such as 4"))
}

/// A number of anything.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("it takes a whole number from 0 to {}, such as 1000000", u64::MAX))
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|threads| *threads <= MOST_THREADS);
    number.ok_or_else(|| format!("it takes a whole number from 1 to {MOST_THREADS}, such as 2"))
}

/// A seed, decimal or hexadecimal.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        // `from_str_radix` would take a sign.
        Some(digits) if digits.starts_with('+') => None,
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.ok_or_else(|| format!("it takes a whole number from 0 to {}, or 0x and up to 16 hexadecimal digits", u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_decimal_or_hexadecimal() {
        assert_eq!(seed("1337"), Ok(1337));
        assert_eq!(seed("0xFFFFFFFFFFFFFFFF"), Ok(u64::MAX));
        for wrong in ["", "0x", "0x+1", "-1", "18446744073709551616", "0x10000000000000000", "one"] {
            assert!(seed(wrong).is_err(), "{wrong}");
        }
    }
}
