//! Options that several subcommands share. `numbers` parses their values.

use std::{env, fmt::Display, str::FromStr};

use anyhow::bail;
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use koel::{
    Addressing, ElasticBuilder, ElasticFilter, Kernel, ParamError, TableKind,
    hash::{AnyHasher, Hasher as _, HasherId},
};

use crate::numbers;

/// The environment variable that selects the instruction set.
const KERNEL: &str = "KOEL_KERNEL";

/// Returns the kernel that the environment selects, if any.
pub(crate) fn kernel() -> anyhow::Result<Option<Kernel>> {
    let Some(name) = env::var_os(KERNEL).filter(|name| !name.is_empty()) else { return Ok(None) };
    match name.to_string_lossy().parse() {
        Ok(kernel) => Ok(Some(kernel)),
        Err(error) => bail!("{KERNEL}: {} given; {error}", name.to_string_lossy()),
    }
}

/// Calls a filter's `set_kernel` with the kernel that the environment selects, if any.
pub(crate) fn set_kernel(set: impl FnOnce(Kernel) -> Result<(), ParamError>) -> anyhow::Result<()> {
    Ok(kernel()?.map_or(Ok(()), set)?)
}

/// The false-positive rate if neither --fpr nor --bits is given.
pub(crate) const RATE: f64 = 0.001;

// No doc comment here: clap would use it as the help of every command that has these options.
#[derive(Args)]
pub(crate) struct FilterArgs {
    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.001 or
    /// 0.1% [default: 0.001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    pub(crate) fpr: Option<f64>,

    /// The kind of table; by default, the smaller one
    #[arg(long, value_name = "TABLE", value_parser = table())]
    pub(crate) table: Option<TableKind>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one [default: 4]
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_hyphen_values = true)]
    pub(crate) bucket_size: Option<u32>,

    /// The hash function
    #[arg(long, value_name = "HASHER", default_value = "xxh3", value_parser = hasher())]
    pub(crate) hasher: AnyHasher,

    /// The seed of the hash function: a whole number, or 0x and hexadecimal digits
    #[arg(long, value_name = "S", default_value = "0", value_parser = numbers::seed, allow_hyphen_values = true)]
    pub(crate) seed: u64,
}

impl FilterArgs {
    /// Returns the builder of a growing filter.
    pub(crate) fn growing(
        &self,
        capacity: Option<usize>,
        max_capacity: Option<usize>,
    ) -> anyhow::Result<ElasticBuilder<AnyHasher>> {
        let rate = self.fpr.unwrap_or(RATE);
        let builder = ElasticFilter::builder().hasher(self.hasher).seed(self.seed).false_positive_rate(rate);
        let builder = capacity.into_iter().fold(builder, ElasticBuilder::capacity);
        let builder = max_capacity.into_iter().fold(builder, ElasticBuilder::max_capacity);
        Ok(kernel()?.into_iter().fold(builder, ElasticBuilder::kernel))
    }
}

/// Returns a parser of the library's values by their names, with a line of help for each.
fn named<T>(values: impl IntoIterator<Item = (T, &'static str)>) -> impl TypedValueParser<Value = T>
where
    T: Display + FromStr<Err: std::error::Error + Send + Sync> + Clone + Send + Sync + 'static,
{
    let names = values.into_iter().map(|(value, help)| PossibleValue::new(value.to_string()).help(help));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// Returns the parser of table kinds.
pub(crate) fn table() -> impl TypedValueParser<Value = TableKind> {
    named([
        (TableKind::Single, "Fingerprints of equal length, one after another"),
        (TableKind::Packed, "Semi-sorted buckets of four slots: one bit less per item"),
    ])
}

/// Returns the parser of addressings.
pub(crate) fn addressing() -> impl TypedValueParser<Value = Addressing> {
    named([
        (Addressing::AnySize, "Any even number of buckets: the smallest table"),
        (Addressing::PowerOfTwo, "A power of two, as in Go's linvon/cuckoo-filter"),
    ])
}

/// Returns the parser of hashers.
fn hasher() -> impl TypedValueParser<Value = AnyHasher> {
    let help = |hasher: AnyHasher| match hasher.id() {
        HasherId::XXH3 => "XXH3, 64 bits",
        HasherId::METRO_HASH_64 => "The hasher of Go's linvon/cuckoo-filter, which uses the seed 1337",
        HasherId::REDIS_BLOOM => "The hasher of RedisBloom, which uses the seed 0",
        _ => "",
    };
    named(AnyHasher::ALL.iter().map(move |&hasher| (hasher, help(hasher))))
}
