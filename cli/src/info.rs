//! `koel info`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    facts::{self, Facts},
    file, stdout,
};

/// Say what a filter is made of and how full it is.
///
/// Reads koel snapshots and the files of Go's linvon/cuckoo-filter, and checks them to the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel info fruit.koel
    koel info fruit.koel --json")]
pub(crate) struct Info {
    /// The filter, a koel snapshot or a file of Go's; `-` is standard input
    filter: PathBuf,

    /// As a JSON object, with numbers as numbers. `format` is "koel" or "go"; `bits_per_item` is null while there are no
    /// items; Go's files have `victim`, true if one of the items is beside the table
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (filter, bytes) = file::load_any(&self.filter)?;
        let facts = Facts::of(&filter, bytes);
        let text = if self.json { format!("{:#}\n", facts.object()) } else { facts::aligned(&facts.lines()) };
        stdout::say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
