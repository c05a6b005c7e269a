//! `koel info` and `koel verify`: read all of a filter, and say what it is.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    facts::{self, Facts},
    file, options,
    terminal::{self, Stream},
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

/// Check filters for damage.
///
/// Reads each file to its end: a koel snapshot, a file of Go's linvon/cuckoo-filter, or a dump of RedisBloom's CF (see `koel query
/// --help`). For a good file, prints "ok" and a summary in one line on standard output. For a damaged one, prints what is wrong,
/// and at which byte, on standard error, and continues with the next file. Exit status: 0 if all files are good, 2 if one is
/// damaged or cannot be read.
///
/// Snapshots have checksums: any altered byte is detected. Files of other programs have none; only contradictions are
/// detected, so some damage goes unnoticed.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel verify fruit.koel
    koel verify --quiet *.koel && echo 'all good'
    koel verify - < fruit.koel")]
pub(crate) struct Verify {
    /// The filters; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print nothing for good files
    #[arg(long)]
    quiet: bool,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // Reported once: it is not an error in the files.
        options::kernel()?;
        if !self.quiet {
            Stream::Stdout.check()?;
        }
        let mut bad = 0;
        for path in &self.files {
            // Read, not mapped: an I/O error is then reported, and does not kill this process.
            match file::load(path) {
                Ok(_) if self.quiet => {}
                Ok((filter, bytes)) => {
                    terminal::print(&format!("{}: ok: {}\n", file::name(path), Facts::of(&filter, bytes).summary))?;
                }
                Err(error) => {
                    terminal::failure(&error);
                    bad += 1;
                }
            }
        }
        match (bad, self.files.len()) {
            (0, _) => return Ok(ExitCode::SUCCESS),
            (_, 1) => {}
            (bad, all) => terminal::say(format_args!("koel: {bad} of {all} files failed\n")),
        }
        Ok(ExitCode::from(terminal::FAILED))
    }
}
