//! `koel convert`

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};
use koel::redisbloom::{RedisBloomError, RedisBloomFilter};
use serde_json::json;

use crate::{
    facts::Facts,
    file::{self, Output, OutputArgs, Snapshot, Stored},
};

/// The remedy where no conversion is possible.
const REBUILD: &str = "build a new filter from the items: `koel build`";

/// Convert a file of Go's linvon/cuckoo-filter or a RedisBloom dump to a koel snapshot, or back.
///
/// The command recognizes the input's format by its content, and checks all of it. Lookups in the new file return the same
/// results, false positives included. A file that already has the format is checked and copied.
///
/// OUT may be the input. It is replaced atomically or stays unchanged. Other koel commands that change it wait in the meantime; if
/// another program moves, removes or replaces it, that is an error.
///
/// If an item finds no room, Go keeps it outside the table. A snapshot has no such place, so the item is inserted into the table,
/// which nearly always has room; if it has none, that is an error. Go reads only filters that it could have built:
/// `koel build --addressing power-of-two --hasher metrohash64 --seed 1337`.
///
/// A RedisBloom filter can be converted if it has not grown and has at most 16 slots per bucket. The snapshot keeps neither the
/// number of removed items, nor the maximum number of evictions, nor the expansion, so a dump made from it has RedisBloom's
/// defaults. RedisBloom reads only filters that it could have built:
/// `koel build --table single --bits 8 --addressing power-of-two --hasher redisbloom`.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' > fruit.txt
    koel build fruit.txt -o fruit.koel --addressing power-of-two --hasher metrohash64 --seed 1337
    koel convert fruit.koel -o fruit.go --to go
    koel query fruit.go --item apple
    koel convert fruit.go -o again.koel --to koel
    koel build fruit.txt -o other.koel --table single --bits 8 \\
        --addressing power-of-two --hasher redisbloom
    koel convert other.koel -o fruit.chunks --to redisbloom
    koel convert fruit.chunks -o same.koel --to koel")]
pub(crate) struct Convert {
    /// The filter; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs,

    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: Format,

    /// Print a JSON object with the fields of `koel info --json`, and OUT as `filter`
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A koel snapshot, as `koel build` writes it
    Koel,
    /// The bytes that `Encode` of Go's linvon/cuckoo-filter writes and `Decode` reads
    Go,
    /// The chunks of RedisBloom's `CF.SCANDUMP`, each after its iterator and its length, for `CF.LOADCHUNK`
    #[value(name = "redisbloom")]
    RedisBloom,
}

impl Convert {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let output = self.output.open()?;
        let (filter, _) = file::load(&self.input)?;
        let name = file::name(&self.input);
        let facts = match self.to {
            Format::Koel => to_koel(filter, &name, &output)?,
            Format::Go => to_go(filter, &name, &output)?,
            Format::RedisBloom => to_redisbloom(filter, &name, &output)?,
        };
        facts.report(&output, &[], self.json.then(|| json!({})))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn to_koel(filter: Stored, name: &str, output: &Output) -> anyhow::Result<Facts> {
    match filter {
        Stored::Koel(filter) => Ok(Facts::snapshot(&filter, output.save_snapshot(&filter)?)),
        Stored::RedisBloom(filter) => {
            let filter = filter.to_filter().map_err(|error| redisbloom_error(name, error))?;
            Ok(Facts::koel(&filter, output.save(&filter)?))
        }
        #[cfg(target_endian = "little")]
        Stored::Go(filter) => {
            let filter = filter.into_filter().map_err(|filter| {
                anyhow::anyhow!(
                    "{name}: the table has no room for the item that Go keeps outside it ({} items in {} slots); `koel query` \
                     reads the file as it is; to convert it, delete an item in Go first",
                    filter.len(),
                    filter.filter().slots()
                )
            })?;
            Ok(Facts::koel(&filter, output.save(&filter)?))
        }
    }
}

/// Returns the error about copies beside the table, which another program's `format` has no place for.
fn too_many_copies(name: &str, copies: u64, format: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{name}: copies: {copies} are counted beside the table, and {format} has the table alone; build a new filter that stores \
         items once: `koel build --unique`"
    )
}

#[cfg(target_endian = "little")]
fn to_go(filter: Stored, name: &str, output: &Output) -> anyhow::Result<Facts> {
    use koel::go::{GoError, GoFilter};
    let filter = match filter {
        Stored::Go(filter) => filter,
        Stored::Koel(Snapshot::Growing(_)) => {
            anyhow::bail!("{name}: is a filter that grows, and Go's have a fixed size; {REBUILD}")
        }
        Stored::RedisBloom(_) => {
            anyhow::bail!("{name}: is a dump of RedisBloom, and Go's filters have another hasher; {REBUILD}")
        }
        Stored::Koel(Snapshot::Fixed(filter)) => GoFilter::try_from(filter).map_err(|error| {
            let options = match error {
                GoError::Addressing(_) | GoError::Hasher(_) | GoError::Seed(_) => {
                    ": `koel build --addressing power-of-two --hasher metrohash64 --seed 1337`"
                }
                GoError::Copies(copies) => return too_many_copies(name, copies, "a Go file"),
                _ => "",
            };
            anyhow::anyhow!("{name}: {error}{options}")
        })?,
    };
    Ok(Facts::go(&filter, output.save_go(&filter)?))
}

#[cfg(not(target_endian = "little"))]
fn to_go(_: Stored, _: &str, _: &Output) -> anyhow::Result<Facts> {
    anyhow::bail!("--to: go given, but it is not available on big-endian machines; convert the filter on another machine")
}

fn to_redisbloom(filter: Stored, name: &str, output: &Output) -> anyhow::Result<Facts> {
    let filter = match filter {
        Stored::RedisBloom(filter) => filter,
        Stored::Koel(Snapshot::Fixed(filter)) => {
            RedisBloomFilter::from_filter(&filter).map_err(|error| redisbloom_error(name, error))?
        }
        Stored::Koel(Snapshot::Growing(_)) => {
            anyhow::bail!("{name}: is a filter that grows, and RedisBloom's growing filters have another form; {REBUILD}")
        }
        #[cfg(target_endian = "little")]
        Stored::Go(_) => anyhow::bail!(
            "{name}: is a file of Go's linvon/cuckoo-filter, and RedisBloom's filters have another hasher; {REBUILD}"
        ),
    };
    Ok(Facts::redisbloom(&filter, output.save_redisbloom(&filter)?))
}

/// Returns the error about a filter that cannot be converted, with the options that build one that can.
fn redisbloom_error(name: &str, error: RedisBloomError) -> anyhow::Error {
    let options = match error {
        RedisBloomError::Hasher(_)
        | RedisBloomError::Seed(_)
        | RedisBloomError::Table(_)
        | RedisBloomError::FingerprintBits(_)
        | RedisBloomError::Addressing(_) => {
            ": `koel build --table single --bits 8 --addressing power-of-two --hasher redisbloom`"
        }
        RedisBloomError::Copies(copies) => return too_many_copies(name, copies, "a dump of RedisBloom"),
        RedisBloomError::SubFilters(_) | RedisBloomError::BucketSize(_) => ": `koel query`, `koel build`",
        _ => return anyhow::Error::new(error).context(name.to_owned()),
    };
    anyhow::anyhow!("{name}: {error}{options}")
}
