//! The command `koel` builds, queries, changes, checks and converts cuckoo filters. It uses the library's public API only.

// `println!` and its relatives panic when the reader of a pipe has closed it.
#![warn(clippy::print_stdout, clippy::print_stderr)]
// Loads, rates and fractions need no more precision than `f64` has.
#![allow(clippy::cast_precision_loss)]

mod build;
mod convert;
mod demo;
mod edit;
mod errors;
mod experiment;
mod facts;
mod file;
mod format;
mod inspect;
mod items;
mod man;
mod merge;
mod numbers;
mod options;
mod query;
mod terminal;
mod text;
mod tune;
mod uniq;
mod window;

use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

/// Build and query cuckoo filters: small files that tell whether an item is in a set.
///
/// An item that was added is always reported as present. Any other item is reported as present by mistake at the false-positive
/// rate, which you choose when you build the filter. You can add and remove items later.
#[derive(Parser)]
#[command(
    name = "koel",
    version,
    max_term_width = 100,
    after_help = "`koel COMMAND --help` has examples.

Exit status: 0 success, 1 nothing found, 2 error, 128 + N if signal N ended the command: 129 SIGHUP, 130 SIGINT (Ctrl-C), 143 SIGTERM. \
After a signal, the file that a command replaces is unchanged, but `koel uniq` writes the lines that it has printed, and \
`koel experiment` the cases that it has finished. A reader that closes standard output early is no error; for `koel uniq \
--filter`, the status is then 141, because the lines that were not printed are not remembered.

Environment: KOEL_KERNEL=portable, bmi2, avx2 or avx512 selects the instruction set; by default, the fastest that the \
processor supports. Results do not depend on it.

Numbers: 1000000, 1_000_000, 1e6 and 1M are the same. k, M, G and T are powers of 1000. For bytes, kB, MB, GB and TB are powers \
of 1000 as well, and KiB, MiB, GiB and TiB are powers of 1024. Rates: 0.001, 1e-3, 0.1% and 1/1000 are the same."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::Build),
    Query(query::Query),
    Add(edit::Add),
    Remove(edit::Remove),
    Uniq(uniq::Uniq),
    Merge(merge::Merge),
    Info(inspect::Info),
    Verify(inspect::Verify),
    Convert(convert::Convert),
    Tune(tune::Tune),
    Experiment(experiment::Experiment),
    Demo(demo::Demo),
    Completions(Completions),
    Man(man::Pages),
}

/// Print a completion script for a shell.
///
/// The script completes commands, options, their values and file names. bash loads it from
/// ~/.local/share/bash-completion/completions/koel, zsh from _koel in a folder of $fpath, fish from
/// ~/.config/fish/completions/koel.fish; elvish and PowerShell evaluate it in their profiles.
#[derive(Args)]
#[command(after_help = "\
Examples:
    koel completions bash > koel
    koel completions zsh > _koel
    koel completions fish > koel.fish")]
struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "koel", &mut script);
        terminal::print(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn main() -> ExitCode {
    #[cfg(unix)]
    file::ignore_file_size_limit();
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return terminal::usage(&error),
    };
    let status = match command {
        Command::Build(build) => build.run(),
        Command::Query(query) => query.run(),
        Command::Add(add) => add.run(),
        Command::Remove(remove) => remove.run(),
        Command::Uniq(uniq) => uniq.run(),
        Command::Merge(merge) => merge.run(),
        Command::Info(info) => info.run(),
        Command::Verify(verify) => verify.run(),
        Command::Convert(convert) => convert.run(),
        Command::Tune(tune) => tune.run(),
        Command::Experiment(experiment) => experiment.run(),
        Command::Demo(demo) => demo.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(pages) => pages.run(Cli::command()),
    };
    status.unwrap_or_else(|error| terminal::failure(&error))
}
