//! `koel man`

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man as Page;

use crate::{
    Cli,
    terminal::{self, Stream},
};

/// Write the manual pages of all commands to a folder.
///
/// They say what --help says: koel.1, koel-build.1, koel-shard-join.1 and so on. `man -l koel-build.1` shows one.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel man man1")]
pub(crate) struct Man {
    /// The folder, which is created if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        Stream::Stdout.check()?;
        let mut koel = Cli::command().disable_help_subcommand(true);
        // Gives the subcommands their full names.
        koel.build();
        let name = self.folder.display();
        fs::create_dir_all(&self.folder).with_context(|| format!("{name}: cannot be created as a folder"))?;
        let mut commands = vec![&koel];
        while let Some(command) = commands.pop() {
            let path = self.folder.join(page(command).get_filename());
            fs::write(&path, render(command)?).with_context(|| format!("{}: cannot be written", path.display()))?;
            commands.extend(command.get_subcommands());
        }
        terminal::report(&format!("The manual pages are in {name}.\n"), &name.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn page(command: &Command) -> Page {
    Page::new(command.clone()).source(concat!("koel ", env!("CARGO_PKG_VERSION"))).manual("Koel")
}

/// The page in roff, with the usual names for the sections that clap calls EXTRA.
fn render(command: &Command) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    page(command).render(&mut bytes).context("the manual page")?;
    let roff = String::from_utf8_lossy(&bytes).replace("\n.SH EXTRA\nExamples:\n", "\n.SH EXAMPLES\n");
    Ok(roff.replace("\n.SH EXTRA\n", "\n.SH NOTES\n").replace("\nExamples:\n", "\n.SH EXAMPLES\n"))
}
