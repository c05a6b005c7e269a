//! `koel verify`

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{facts::Facts, file, messages, options, stdout, streams::Stream};

/// Check filters to the last bit.
///
/// Reads each file to its end: a koel snapshot, or a file of Go's linvon/cuckoo-filter. Says "ok" and what is in it, in one line,
/// on standard output; or what is wrong, and at which byte, on standard error, and goes on with the next. Exit status: 0 if all
/// are good, 2 if one is not or cannot be read.
///
/// A snapshot has checksums: any altered byte is found. Go's files have none; there the check is that nothing contradicts
/// anything else, so that some damage is not found.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o fruit.koel
    koel verify fruit.koel
    koel verify --quiet *.koel && echo 'all good'
    koel verify - < fruit.koel")]
pub(crate) struct Verify {
    /// The filters; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print nothing for good files
    #[arg(long)]
    quiet: bool,
}

impl Verify {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A mistake in the environment is no fault of the files.
        options::kernel()?;
        if !self.quiet {
            Stream::Stdout.check()?;
        }
        let mut bad = 0;
        for path in &self.files {
            // Read, not mapped: a disk that fails is then an error among others, not the end of this process.
            match file::load_any(path) {
                Ok(_) if self.quiet => {}
                Ok((filter, bytes)) => {
                    stdout::say(&format!("{}: ok: {}\n", file::name(path), Facts::of(&filter, bytes).summary()))?;
                }
                Err(error) => {
                    messages::failure(&error);
                    bad += 1;
                }
            }
        }
        match (bad, self.files.len()) {
            (0, _) => return Ok(ExitCode::SUCCESS),
            (_, 1) => {}
            (bad, all) => messages::say(format_args!("koel: {bad} of {all} files failed\n")),
        }
        Ok(messages::failed())
    }
}
