//! `koel man`

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

use crate::file;

/// Write the manual pages into a folder.
///
/// They have the texts of --help: koel.1 for the command itself, and a page such as koel-uniq.1 for each subcommand. `man` finds them
/// in a folder man1 next to those of other commands, such as /usr/local/share/man/man1.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel man man1")]
pub(crate) struct Pages {
    /// The folder, which is created if there is none
    directory: PathBuf,
}

impl Pages {
    /// Writes a page for this command, and one for each of its subcommands.
    pub(crate) fn run(&self, command: Command) -> anyhow::Result<ExitCode> {
        let folder = &self.directory;
        file::create_folder(folder)?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        write(&command, folder)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(command: &Command, folder: &Path) -> anyhow::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write(subcommand, folder)?;
    }
    let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(format!("koel {version}"));
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    render(command, &man, &mut page)
        .and_then(|()| fs::write(&path, page))
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Renders a page. The text after the options is a section of its own, and the lines of examples are not filled like a paragraph.
fn render(command: &Command, man: &Man, page: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    // clap_mangen writes options without their values, and no dots after arguments that repeat.
    let usage = command.clone().render_usage().to_string();
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]).control("nf", []);
    for line in usage.trim_start_matches("Usage: ").lines() {
        synopsis.text([roman(line.trim())]);
    }
    synopsis.control("fi", []).to_writer(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = after.split_once("Examples:\n").unwrap_or((&after, ""));
    let mut roff = Roff::new();
    if !notes.is_empty() {
        roff.control("SH", ["NOTES"]);
    }
    for (place, paragraph) in notes.split("\n\n").enumerate() {
        if place > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(paragraph.trim())]);
    }
    if !examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in examples.lines() {
            roff.text([roman(line.trim_start())]);
        }
        roff.control("fi", []);
    }
    roff.to_writer(page)
}
