//! `koel info`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    facts::{self, Facts},
    file, terminal,
};

/// Show a filter's parameters and how full it is.
///
/// Reads and checks all of the file, which is a koel snapshot, a file of Go's linvon/cuckoo-filter, or a dump of RedisBloom's CF
/// (see `koel query --help`).
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel info fruit.koel
    koel info fruit.koel --json")]
pub(crate) struct Info {
    /// The filter: a koel snapshot, a file of Go's, or a dump of RedisBloom; `-` for standard input
    filter: PathBuf,

    /// Print a JSON object, with numbers as numbers. `format` is "koel", "koel-growing", "go" or "redisbloom"; `bits_per_item` is
    /// null if there are no items; Go's files have `victim`, true if one of the items is stored outside the table
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (filter, bytes) = file::load(&self.filter)?;
        let facts = Facts::of(&filter, bytes);
        let text = if self.json { format!("{:#}\n", facts.object) } else { facts::aligned(&facts.lines) };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
