//! `koel experiment`

use std::{num::NonZeroUsize, path::PathBuf, process::ExitCode, thread};

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use koel_lab::{Interrupt, Outcome, Plan, Scope, Settings, Step, experiments, report};

use crate::{messages, options, stdout};

/// Measure what the paper's figures show, on this machine: tables, charts, and one page with all of them.
///
/// Ctrl-C ends it at any time. What has been measured is kept, and the same command goes on from there; to measure
/// everything anew, say --again. All but the times are the same on every machine, for the same seed.
#[derive(Args)]
#[command(
    override_usage = "koel experiment [OPTIONS] <NAME>...",
    after_help = "\
In the folder, load.json is all there is to know of the experiment `load`, and of the machine; load.csv has its rows \
as a table, load-….svg are the charts, and report.html shows all experiments of the folder: one file, to be sent to \
anybody.

`cargo run --release -p koel-peers -- --out FOLDER`, in koel's repository, adds a comparison with other crates.

Examples:
    koel experiment all --quick
    koel experiment load space --out results --max-slots 1000000"
)]
pub(crate) struct Experiment {
    /// What to measure: one or more, done in the order in which they stand here
    // Not `required`: clap would not say which names there are.
    #[arg(value_name = "NAME")]
    names: Vec<Name>,

    /// The folder of the results
    #[arg(short, long, value_name = "FOLDER", default_value = "koel-experiments")]
    out: PathBuf,

    /// Smaller tables, and fewer: some minutes for all experiments, instead of hours
    #[arg(long)]
    quick: bool,

    /// Where all random numbers come from
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed, allow_negative_numbers = true)]
    seed: u64,

    /// Leave out tables of more slots
    #[arg(long, value_name = "N", value_parser = options::count, allow_negative_numbers = true)]
    max_slots: Option<u64>,

    /// At most so many measurements side by side; times are always measured alone [default: one for each core]
    #[arg(long, value_name = "N", value_parser = options::threads, allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,

    /// Measure again what has been measured
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// How full tables get before they refuse an item
    Load,
    /// What an item takes: bits against the false-positive rate, and against the number of items
    Space,
    /// How often a filter is wrong, beside what the formula says
    Fpr,
    /// How many items move for a new one
    Walk,
    /// Insertions, look-ups and removals in a second, by how full a table is
    Speed,
    /// All of them
    All,
}

/// What checks whether an experiment can be done.
type Planner = fn(&Settings) -> anyhow::Result<Box<dyn Step>>;

/// All experiments, in the order in which they are done.
const PLANNERS: [(Name, Planner); 5] = [
    (Name::Load, |settings| Ok(Box::new(Plan::new(experiments::Load, settings)?))),
    (Name::Space, |settings| Ok(Box::new(Plan::new(experiments::Space, settings)?))),
    (Name::Fpr, |settings| Ok(Box::new(Plan::new(experiments::Fpr, settings)?))),
    (Name::Walk, |settings| Ok(Box::new(Plan::new(experiments::Evictions, settings)?))),
    (Name::Speed, |settings| Ok(Box::new(Plan::new(experiments::Speed, settings)?))),
];

impl Experiment {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.names.is_empty() {
            let names = Name::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let names: Vec<_> = names.map(|name| name.get_name().to_owned()).collect();
            bail!("give the NAME of an experiment: {}; `koel experiment --help` says what they are", names.join(", "));
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let settings = Settings {
            scope: Scope { quick: self.quick, seed: self.seed, max_slots: self.max_slots },
            threads: self.threads.map_or(cores, usize::from),
            folder: self.out,
            again: self.again,
        };
        let wanted = PLANNERS.iter().filter(|(name, _)| self.names.contains(name) || self.names.contains(&Name::All));
        // Everything is checked before anything is measured.
        let steps = wanted.map(|(_, plan)| plan(&settings)).collect::<anyhow::Result<Vec<_>>>()?;
        report::check(&settings.folder, &steps.iter().map(|step| step.name()).collect::<Vec<_>>())?;
        let interrupt = Interrupt::on_ctrl_c()?;
        let folder = settings.folder.display();
        let go_on = if settings.again {
            "the same command without --again goes on from there"
        } else {
            "the same command goes on from there"
        };
        let mut ended = Ok(Outcome::Complete);
        let kept = format!("what was measured is in {folder}, and {go_on}");
        let mut steps = steps.into_iter();
        for step in steps.by_ref() {
            messages::say(format_args!("{}\n", announcement(&*step)));
            ended = step.run(&interrupt).map_err(|error| anyhow!("{error:#}; {kept}"));
            if !matches!(ended, Ok(Outcome::Complete)) {
                break;
            }
        }
        // However it ended, of what is there.
        let written = report::write(&settings.folder);
        let outcome = ended?;
        written?;
        if outcome == Outcome::Interrupted {
            let rest: Vec<_> = steps.map(|step| step.name()).collect();
            let rest = if rest.is_empty() || !settings.again {
                String::new()
            } else {
                format!("; not begun again: {}", rest.join(", "))
            };
            messages::say(format_args!("koel: interrupted; {kept}{rest}\n"));
            return Ok(ExitCode::from(Interrupt::STATUS));
        }
        stdout::say(&format!("{}\n", settings.folder.join(report::FILE).display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is there to be done.
fn announcement(step: &dyn Step) -> String {
    let (name, cases, left) = (step.name(), step.cases(), step.cases_left());
    match cases - left {
        0 => format!("{name}: {cases} cases"),
        _ if left == 0 => format!("{name}: {cases} cases, all of them measured before"),
        known => format!("{name}: {cases} cases, {known} of them measured before"),
    }
}
