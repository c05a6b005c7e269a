//! `koel experiment`

mod compare;
mod sweep;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::{
    Args, Subcommand,
    builder::{PossibleValue, PossibleValuesParser},
};
use koel_lab::{Outcome, Plan, Scope, Settings, experiments, report};

use crate::{
    file, numbers, options,
    terminal::{self, Stream},
};

/// Reproduce the measurements in the paper's figures on this machine. Writes tables, charts, and a report in one file.
///
/// Ctrl-C, SIGTERM or SIGHUP interrupts at any time. Results are kept, and the same command continues; --again repeats all
/// measurements. For the same seed, all results except times are the same on every machine. Results of another build of koel are
/// drawn, and labeled as such, but not continued.
///
/// The paper is "Cuckoo Filter: Practically Better Than Bloom" by Fan, Andersen, Kaminsky and Mitzenmacher (CoNEXT 2014).
#[derive(Args)]
#[command(
    override_usage = "koel experiment [OPTIONS] <NAME>...\n       koel experiment <COMMAND>",
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "\
In the folder, load.json has all results of the experiment `load`, with a description of the machine and of the program; \
load.csv has them as a table, load-….svg are the charts, and report.html is a self-contained report of all experiments in the \
folder.

In koel's repository, `cargo run --release -p koel-peers -- --out FOLDER` adds a comparison with other crates.

Exit status: 0 success, 2 error, 128 + N interrupted by signal N: 130 by Ctrl-C.

Examples:
    koel experiment all --quick
    koel experiment load space --out results --max-slots 1M"
)]
pub(crate) struct Experiment {
    /// The experiments, one or more; they run in the order of this list
    // Not `required`, because clap's own error would not list the names.
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    names: Vec<String>,

    /// Leave out tables with more slots than this, such as 1M
    #[arg(long, value_name = "N", value_parser = numbers::count::<u64>, allow_hyphen_values = true)]
    max_slots: Option<u64>,

    #[command(flatten)]
    args: RunArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Sweep(sweep::Options),
    Compare(compare::Options),
}

/// The folder for results, if none is given.
pub(crate) const FOLDER: &str = "koel-experiments";

// No doc comment here: clap would use it as the help of every command that has these options.
#[derive(Args)]
struct RunArgs {
    /// The folder for the results
    #[arg(short, long, value_name = "FOLDER", default_value = FOLDER)]
    out: PathBuf,

    /// Measure less, and so less precisely: all experiments together then take minutes instead of hours
    #[arg(long)]
    quick: bool,

    /// The seed of all random numbers: a whole number, or 0x and hexadecimal digits
    #[arg(long, value_name = "N", default_value = "1", value_parser = numbers::seed, allow_hyphen_values = true)]
    seed: u64,

    /// The maximum number of parallel measurements; times are always measured alone [default: one per core]
    #[arg(long, value_name = "N", value_parser = numbers::threads, allow_hyphen_values = true)]
    threads: Option<usize>,

    /// Discard earlier results, and repeat all measurements
    #[arg(long)]
    again: bool,
}

impl RunArgs {
    fn settings(self, max_slots: Option<u64>) -> anyhow::Result<Settings> {
        if options::kernel()?.is_some() {
            bail!("KOEL_KERNEL: is set, but experiments use the fastest instruction set; unset it");
        }
        file::slice::refuse_window(&self.out)?;
        let default = Settings::new(self.out);
        Ok(Settings {
            scope: Scope { quick: self.quick, seed: self.seed, max_slots },
            threads: self.threads.unwrap_or(default.threads),
            again: self.again,
            ..default
        })
    }
}

/// Returns the name of each experiment, and the name that selects all.
fn names() -> impl Iterator<Item = PossibleValue> {
    let names = experiments::all().into_iter().map(|about| PossibleValue::new(about.name).help(about.title));
    names.chain([PossibleValue::new(ALL).help("All experiments")])
}

const ALL: &str = "all";

impl Experiment {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // The path of the report goes to standard output.
        Stream::Stdout.check()?;
        match self.command {
            Some(Command::Sweep(options)) => return options.run(),
            Some(Command::Compare(options)) => return options.run(),
            None => {}
        }
        if self.names.is_empty() {
            let names: Vec<_> = names().map(|name| name.get_name().to_owned()).collect();
            bail!(
                "no experiment given; give the NAME of one or more: {}; `koel experiment --help` describes them",
                names.join(", ")
            );
        }
        let settings = self.args.settings(self.max_slots)?;
        let is_selected = |name: &str| self.names.iter().any(|given| [name, ALL].contains(&given.as_str()));
        run(experiments::plans(is_selected, &settings)?, &settings)
    }
}

/// Runs the experiments, and prints the path of the report.
fn run(plans: Vec<Plan<'_>>, settings: &Settings) -> anyhow::Result<ExitCode> {
    let outcome = koel_lab::run("koel", plans, settings)?;
    if outcome == Outcome::Complete {
        terminal::print(&format!("{}\n", settings.folder.join(report::FILE).display()))?;
    }
    Ok(outcome.into())
}
