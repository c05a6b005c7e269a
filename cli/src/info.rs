//! `koel info`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{facts, file, stdout};

/// Say what a filter is made of and how full it is.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel info fruit.koel
    koel info fruit.koel --json")]
pub(crate) struct Info {
    /// The filter; `-` is standard input
    filter: PathBuf,

    /// As a JSON object, with numbers as numbers; `bits_per_item` is null while there are no items
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (filter, bytes) = file::load(&self.filter)?;
        let text = if self.json {
            format!("{:#}\n", facts::object(&filter, bytes))
        } else {
            facts::aligned(&facts::lines(&filter, bytes))
        };
        stdout::say(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
