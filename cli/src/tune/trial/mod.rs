//! A trial of the recommended filters: built from the caller's own keys, and asked the caller's own queries.

mod absent;
mod keys;
mod measure;
mod object;
mod text;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use koel::{AnyHasher, CuckooFilter, tuning::Candidate};

use crate::{
    file::{self, Filter},
    items::Separator,
    messages,
};
use absent::Absent;
use measure::{Measured, measure};

pub(super) use keys::Keys;

/// The hasher of the filters, and of the keys before there are any: that of `koel build`.
const HASHER: AnyHasher = AnyHasher::Xxh3;

// No doc comment here: clap would take it for the help of the command.
#[derive(Args)]
pub(super) struct Files {
    /// Your own keys, one per line; `-` for standard input. Builds the filters of the table with them, each key once, and measures
    /// space, load, false positives and times. Takes 8 bytes of memory per key, at most 134217728 keys, and one filter at a time.
    /// Keys are told apart by their 64-bit hashes, as filters do
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Your own queries, one per line; `-` for standard input. Says how many of them are keys, and measures false positives with
    /// those that are not, at 8 bytes of memory each. Needs all keys, not a sample: a query for any other key counts as absent.
    /// Without this option, absent keys are derived from the keys
    #[arg(long, value_name = "FILE", requires = "keys")]
    queries: Option<PathBuf>,

    #[command(flatten)]
    separator: Separator,
}

/// What was measured.
pub(super) struct Trial {
    keys: Keys,
    absent: Absent,
    measured: Measured,
}

impl Files {
    /// The keys, if they are given.
    pub(super) fn keys(&self) -> anyhow::Result<Option<Keys>> {
        let Some(path) = &self.keys else { return Ok(None) };
        if file::is_dash(path) && self.queries.as_ref().is_some_and(|queries| file::is_dash(queries)) {
            bail!("--keys and --queries: both are standard input, which can be read only once; give a file for one of them");
        }
        Keys::read(path, self.separator, &hasher()?).map(Some)
    }

    /// Whether items end with a NUL byte.
    pub(super) fn nul(&self) -> bool {
        self.separator.byte() == 0
    }

    /// Builds these filters from the keys, and measures them.
    pub(super) fn measure(&self, mut keys: Keys, filters: &[&Candidate]) -> anyhow::Result<Trial> {
        let hasher = hasher()?;
        let absent = match &self.queries {
            Some(path) => Absent::read(path, self.separator, &keys, &hasher)?,
            None => Absent::derived(&keys, &hasher, filters),
        };
        keys.shuffle();
        let measured = measure(&keys, &absent, &hasher, filters)?;
        Ok(Trial { keys, absent, measured })
    }
}

/// An empty filter, which hashes as all others do.
fn hasher() -> anyhow::Result<Filter> {
    CuckooFilter::builder().hasher(HASHER).capacity(0).fingerprint_bits(8).build().map_err(messages::not_built)
}
