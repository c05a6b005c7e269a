//! `koel man`

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man as Page;

use crate::{
    Cli,
    terminal::{self, Stream},
};

/// Print a manual page, or write all of them to a folder.
///
/// `koel man` prints the page koel(1), `koel man build` the page koel-build(1), and `koel man shard join` the page
/// koel-shard-join(1). They say what --help says.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel man > koel.1
    koel man build > koel-build.1
    koel man --dir man1")]
pub(crate) struct Man {
    /// The command whose page to print, such as build; without it, that of koel itself
    #[arg(conflicts_with = "dir")]
    command: Vec<String>,

    /// Write the pages of all commands to this folder, as koel.1, koel-build.1 and so on
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut koel = Cli::command().disable_help_subcommand(true);
        // Gives the subcommands their full names.
        koel.build();
        if let Some(folder) = &self.dir {
            write_all(&koel, folder)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut command = &koel;
        for name in &self.command {
            let Some(next) = command.find_subcommand(name) else {
                let names: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
                let of = if command.get_name() == "koel" { "the commands" } else { "its commands" };
                let are = if names.is_empty() { String::from("none") } else { names.join(", ") };
                bail!("COMMAND: '{name}' given, but {of} are {are}");
            };
            command = next;
        }
        terminal::print(&render(command)?)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of the command and of all its subcommands to a folder, which it creates.
fn write_all(koel: &Command, folder: &Path) -> anyhow::Result<()> {
    Stream::Stdout.check()?;
    let name = folder.display();
    fs::create_dir_all(folder).with_context(|| format!("{name}: cannot be created as a folder"))?;
    let mut commands = vec![koel];
    while let Some(command) = commands.pop() {
        let path = folder.join(page(command).get_filename());
        fs::write(&path, render(command)?).with_context(|| format!("{}: cannot be written", path.display()))?;
        commands.extend(command.get_subcommands());
    }
    terminal::report(&format!("The manual pages are in {name}.\n"), &name.to_string())
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
