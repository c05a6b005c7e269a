//! `koel man`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::{Args, Command};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

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
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created as a folder", folder.display()))?;
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
    // Lines of examples must not be filled like those of a paragraph.
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = after.split_once("Examples:\n").unwrap_or((&after, ""));
    let man = Man::new(command.clone().after_help(notes.to_owned()));
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    let mut rendered = man.render(&mut page);
    if !examples.is_empty() {
        let mut roff = Roff::new();
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        roff.text(examples.lines().map(|line| roman(format!("{}\n", line.trim_start()))).collect::<Vec<_>>()).control("fi", []);
        rendered = rendered.and_then(|()| roff.to_writer(&mut page));
    }
    rendered.and_then(|()| fs::write(&path, page)).with_context(|| format!("{}: cannot be written", path.display()))
}
