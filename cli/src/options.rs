//! Options that several subcommands share. Their numbers are read by `numbers`.

use std::env;

use anyhow::bail;
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use koel::{Addressing, AnyHasher, ElasticBuilder, ElasticFilter, Hasher as _, HasherId, Kernel, TableKind};

use crate::numbers;

/// The environment variable that selects the instruction set.
const KERNEL: &str = "KOEL_KERNEL";

/// The kernel that the environment selects, if any.
pub(crate) fn kernel() -> anyhow::Result<Option<Kernel>> {
    let Some(name) = env::var_os(KERNEL).filter(|name| !name.is_empty()) else { return Ok(None) };
    match name.to_string_lossy().parse() {
        Ok(kernel) => Ok(Some(kernel)),
        Err(error) => bail!("{KERNEL}: {error}"),
    }
}

/// The false-positive rate without --fpr and --bits.
pub(crate) const RATE: f64 = 0.001;

// No doc comment here: clap would take it for the help of every command that has these options.
#[derive(Args)]
pub(crate) struct Kind {
    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.001 or
    /// 0.1% [default: 0.001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_negative_numbers = true)]
    pub(crate) fpr: Option<f64>,

    /// The kind of table; by default, the smaller one
    #[arg(long, value_name = "TABLE")]
    pub(crate) table: Option<Table>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one [default: 4]
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_negative_numbers = true)]
    pub(crate) bucket_size: Option<u32>,

    /// The hash function
    #[arg(long, value_name = "HASHER", default_value = "xxh3", value_parser = hasher())]
    pub(crate) hasher: AnyHasher,

    /// The seed of the hash function: a whole number, or 0x and hexadecimal digits
    #[arg(long, value_name = "S", default_value = "0", value_parser = numbers::seed, allow_negative_numbers = true)]
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
}
