//! The values of options.

use std::{env, num::NonZeroUsize};

use anyhow::bail;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use koel::{Addressing, AnyHasher, ElasticBuilder, ElasticFilter, Hasher as _, HasherId, Kernel, TableKind};

/// The environment variable that selects the instruction set.
const KERNEL: &str = "KOEL_KERNEL";

/// More threads than any machine has cores.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// The kernel that the environment selects, if any.
pub(crate) fn kernel() -> anyhow::Result<Option<Kernel>> {
    let Some(name) = env::var_os(KERNEL).filter(|name| !name.is_empty()) else { return Ok(None) };
    match name.to_string_lossy().parse() {
        Ok(kernel) => Ok(Some(kernel)),
        Err(error) => bail!("{KERNEL}: {error}"),
    }
}

/// As many as two of the largest buckets have slots.
const MAX_COPIES: u32 = 2 * *TableKind::Single.bucket_sizes().end();

/// The false-positive rate without --fpr and --bits.
pub(crate) const RATE: f64 = 0.001;

// No doc comment here: clap would take it for the help of every command that has these options.
#[derive(Args)]
pub(crate) struct Kind {
    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1 [default: 0.001]
    #[arg(long, value_name = "E", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) fpr: Option<f64>,

    /// The kind of table; by default, the smaller one
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<Table>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one [default: 4]
    #[arg(long, value_name = "B", value_parser = slots, allow_negative_numbers = true)]
    pub(crate) bucket_size: Option<u32>,

    /// The hash function
    #[arg(long, value_name = "HASHER", default_value = "xxh3", value_parser = hasher())]
    pub(crate) hasher: AnyHasher,

    /// The seed of the hash function: a decimal number, or 0x and hexadecimal digits
    #[arg(long, value_name = "S", default_value = "0", value_parser = seed, allow_negative_numbers = true)]
    pub(crate) seed: u64,
}

impl Kind {
    /// The builder of a filter that grows.
    pub(crate) fn growing(
        &self,
        capacity: Option<usize>,
        max_capacity: Option<usize>,
    ) -> anyhow::Result<ElasticBuilder<AnyHasher>> {
        let rate = self.fpr.unwrap_or(RATE);
        let mut builder = ElasticFilter::builder().hasher(self.hasher).seed(self.seed).false_positive_rate(rate);
        if let Some(items) = capacity {
            builder = builder.capacity(items);
        }
        if let Some(items) = max_capacity {
            builder = builder.max_capacity(items);
        }
        if let Some(table) = self.table {
            builder = builder.table(table.into());
        }
        if let Some(slots) = self.bucket_size {
            builder = builder.bucket_size(slots);
        }
        if let Some(kernel) = kernel()? {
            builder = builder.kernel(kernel);
        }
        Ok(builder)
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Table {
    /// One fingerprint after the other
    Single,
    /// Semi-sorted buckets of four slots: one bit less per item
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
    /// Any even number of buckets: the smallest table
    AnySize,
    /// A power of two, as in Go's linvon/cuckoo-filter
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

/// A hasher of the library, by its name there.
pub(crate) fn hasher() -> impl TypedValueParser<Value = AnyHasher> {
    let help = |hasher: &AnyHasher| match hasher.id() {
        HasherId::XXH3 => "XXH3, 64 bits",
        HasherId::METRO_HASH_64 => "The hasher of Go's linvon/cuckoo-filter, which uses the seed 1337",
        HasherId::REDIS_BLOOM => "The hasher of RedisBloom, which uses the seed 0",
        _ => "",
    };
    let names = AnyHasher::ALL.iter().map(|hasher| PossibleValue::new(hasher.to_string()).help(help(hasher)));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<AnyHasher>())
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

/// A number of copies of one item.
pub(crate) fn copies(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|copies| (1..=MAX_COPIES).contains(copies));
    number.ok_or_else(|| format!("it takes a whole number from 1 to {MAX_COPIES}, the room in two buckets of 16 slots"))
}

/// A number of bytes, with an optional unit.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    in_bytes(text).ok_or_else(|| {
        format!(
            "it takes a number of bytes up to {}, such as 65536, 64KiB or 1.5MB, with units from kB to TB or KiB to TiB",
            usize::MAX
        )
    })
}

/// Exact, and rounded down to whole bytes.
fn in_bytes(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u128 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1000_u128.pow(2),
        "gb" => 1000_u128.pow(3),
        "tb" => 1000_u128.pow(4),
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // There are no fractions of a byte. ("1." and ".5" fail to parse below.)
    if number.contains('.') && unit == 1 {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u128 = whole.parse::<u128>().ok()?.checked_mul(scale)?.checked_add(fraction.parse().ok()?)?;
    usize::try_from(digits.checked_mul(unit)? / scale).ok()
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
    fn names_are_the_librarys() {
        for table in Table::value_variants() {
            let option = table.to_possible_value().expect("it is not hidden");
            assert_eq!(option.get_name(), TableKind::from(*table).to_string());
        }
        for address in Address::value_variants() {
            let option = address.to_possible_value().expect("it is not hidden");
            assert_eq!(option.get_name(), Addressing::from(*address).to_string());
        }
    }

    #[test]
    fn seeds_are_decimal_or_hexadecimal() {
        assert_eq!(seed("1337"), Ok(1337));
        assert_eq!(seed("0xFFFFFFFFFFFFFFFF"), Ok(u64::MAX));
        for wrong in ["", "0x", "0x+1", "-1", "18446744073709551616", "0x10000000000000000", "one"] {
            assert!(seed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_units() {
        let cases = [
            ("0", 0),
            ("65536", 65_536),
            ("100B", 100),
            ("64KiB", 65_536),
            ("64 kib", 65_536),
            ("1.5MB", 1_500_000),
            ("1.15mb", 1_150_000),
            ("0.0015kB", 1),
            ("2GiB", 2 << 30),
        ];
        for (text, number) in cases {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        #[cfg(target_pointer_width = "64")]
        for (text, number) in [("3GB", 3_000_000_000), ("1.25TB", 1_250_000_000_000), ("8TiB", 8 << 40)] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        let digits = "9".repeat(60);
        for wrong in ["", "-1", "+1", "1.5", "1.5B", "1.MB", ".5MB", "1.5.5MB", "1e6", "64K", "KiB", "20000000000TB", &digits] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
