//! Values of options that several subcommands share. `numbers` parses those that are numbers.

use std::{env, fmt::Display, str::FromStr};

use anyhow::bail;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use koel::{
    Addressing, Kernel, ParamError, TableKind,
    hash::{AnyHasher, Hasher as _, HasherId},
};

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
pub(crate) fn hasher() -> impl TypedValueParser<Value = AnyHasher> {
    let help = |hasher: AnyHasher| match hasher.id() {
        HasherId::XXH3 => "XXH3, 64 bits",
        HasherId::METRO_HASH_64 => "The hasher of Go's linvon/cuckoo-filter, which uses the seed 1337",
        HasherId::REDIS_BLOOM => "The hasher of RedisBloom, which uses the seed 0",
        _ => "",
    };
    named(AnyHasher::ALL.iter().map(move |&hasher| (hasher, help(hasher))))
}
