//! `koel convert`

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, ValueEnum};

use crate::{
    facts::{self, Facts},
    file::{self, Output, Stored},
};

/// Turn a file of Go's linvon/cuckoo-filter into a koel snapshot, or the other way round.
///
/// What the input is, is seen from its bytes, and all of them are checked. The filter answers as before, false positives
/// included. A file that is in the wanted format already is checked and copied. The output may be the input: it is replaced at
/// one go, or stays as it was.
///
/// Go keeps an item for which it found no room beside the table, and a snapshot has no such place: it goes into the table, where
/// there mostly is room after all; if not, that is an error. Go reads only filters that it could have built itself: those of
/// `koel build --addressing power-of-two --hasher metrohash64 --seed 1337`.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' > fruit.txt
    koel build fruit.txt -o fruit.koel --addressing power-of-two --hasher metrohash64 --seed 1337
    koel convert fruit.koel -o fruit.go --to go
    koel query fruit.go --item apple
    koel convert fruit.go -o again.koel --to koel")]
pub(crate) struct Convert {
    /// The filter; `-` is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write it to; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// The format to write
    #[arg(long, value_name = "FORMAT")]
    to: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A snapshot, as `koel build` writes it
    Koel,
    /// What `Encode` of Go's linvon/cuckoo-filter gives, and `Decode` takes
    Go,
}

impl Convert {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let output = Output::new(&self.output)?;
        let (filter, _) = file::load_any(&self.input)?;
        let name = file::name(&self.input);
        let facts = match self.to {
            Format::Koel => to_koel(filter, &name, &output)?,
            Format::Go => to_go(filter, &name, &output)?,
        };
        facts::report(&output, &facts, &[])?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg_attr(not(target_endian = "little"), allow(unused_variables))]
fn to_koel(filter: Stored, name: &str, output: &Output) -> anyhow::Result<Facts> {
    match filter {
        Stored::Koel(filter) => Ok(Facts::koel(&filter, output.save(&filter)?)),
        #[cfg(target_endian = "little")]
        Stored::Go(filter) => {
            let filter = filter.into_filter().map_err(|no_room| {
                let full = no_room.full();
                anyhow::anyhow!(
                    "{name}: the table has no room for the one item that Go keeps beside it ({} items in {} slots); `koel query` \
                     takes the file as it is; to convert it, delete an item in Go first",
                    full.items(),
                    full.slots()
                )
            })?;
            Ok(Facts::koel(&filter, output.save(&filter)?))
        }
    }
}

#[cfg(target_endian = "little")]
fn to_go(filter: Stored, name: &str, output: &Output) -> anyhow::Result<Facts> {
    use koel::go::{GoError, GoFilter};
    let filter = match filter {
        Stored::Go(filter) => filter,
        Stored::Koel(filter) => GoFilter::try_from(filter).map_err(|error| {
            let options = match error {
                GoError::Addressing(_) | GoError::Hasher(_) | GoError::Seed(_) => {
                    ": `koel build --addressing power-of-two --hasher metrohash64 --seed 1337`"
                }
                _ => "",
            };
            anyhow::anyhow!("{name}: {error}{options}")
        })?,
    };
    Ok(Facts::go(&filter, output.save_go(&filter)?))
}

#[cfg(not(target_endian = "little"))]
fn to_go(_: Stored, _: &str, _: &Output) -> anyhow::Result<Facts> {
    anyhow::bail!("--to: go given, but this machine's byte order rules it out; convert it on another one")
}
