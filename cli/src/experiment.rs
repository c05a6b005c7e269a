//! `koel experiment`

use std::{num::NonZeroUsize, path::PathBuf, process::ExitCode, thread};

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use koel_lab::{Interrupt, Outcome, Plan, Scope, Settings, Step, experiments, report};

use crate::{messages, options, stdout, streams::Stream};

/// Measure on this machine what the paper's figures show: tables, charts, and a report in one file.
///
/// Ctrl-C interrupts it at any time. Results so far are kept, and the same command continues; --again measures everything
/// anew. For the same seed, all results except times are the same on every machine.
///
/// The paper is "Cuckoo Filter: Practically Better Than Bloom" by Fan, Andersen, Kaminsky and Mitzenmacher (CoNEXT 2014).
#[derive(Args)]
#[command(
    override_usage = "koel experiment [OPTIONS] <NAME>...",
    after_help = "\
In the folder, load.json has all results of the experiment `load`, with a description of the machine; load.csv has them \
as a table, load-….svg are the charts, and report.html shows all experiments of the folder in one file that needs no other.

In koel's repository, `cargo run --release -p koel-peers -- --out FOLDER` adds a comparison with other crates.

Examples:
    koel experiment all --quick
    koel experiment load space --out results --max-slots 1000000"
)]
pub(crate) struct Experiment {
    /// The experiments, one or more; they run in the order of this list
    // Not `required`: clap would not list the names.
    #[arg(value_name = "NAME")]
    names: Vec<Name>,

    /// The folder for the results
    #[arg(short, long, value_name = "FOLDER", default_value = "koel-experiments")]
    out: PathBuf,

    /// Measure fewer and smaller tables: some minutes for all experiments instead of hours
    #[arg(long)]
    quick: bool,

    /// The seed of all random numbers: a decimal number, or 0x and hexadecimal digits
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed, allow_negative_numbers = true)]
    seed: u64,

    /// Leave out tables with more slots than this
    #[arg(long, value_name = "N", value_parser = options::count, allow_negative_numbers = true)]
    max_slots: Option<u64>,

    /// The maximum number of measurements at the same time; times are always measured alone [default: one per core]
    #[arg(long, value_name = "N", value_parser = options::threads, allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,

    /// Measure everything anew, also what has been measured before
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The load at which tables first refuse an item
    Load,
    /// Bits per item, by false-positive rate and by number of items
    Space,
    /// False-positive rates, measured and predicted
    Fpr,
    /// Evictions per insertion
    Walk,
    /// Insertions, look-ups and removals per second, by load
    Speed,
    /// All experiments
    All,
}

/// Prepares an experiment, and checks whether it can run.
type Planner = fn(&Settings) -> anyhow::Result<Box<dyn Step>>;

/// All experiments, in the order in which they run.
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
            bail!(
                "no experiment given; give the NAME of one or more: {}; `koel experiment --help` describes them",
                names.join(", ")
            );
        }
        // The path of the report is printed there.
        Stream::Stdout.check()?;
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
        let remedy = if settings.again { "the same command without --again continues" } else { "the same command continues" };
        let mut ended = Ok(Outcome::Complete);
        let kept = format!("the results so far are in {folder}, and {remedy}");
        let mut steps = steps.into_iter();
        for step in steps.by_ref() {
            messages::say(format_args!("{}\n", announcement(&*step)));
            ended = step.run(&interrupt).map_err(|error| anyhow!("{error:#}; {kept}"));
            if !matches!(ended, Ok(Outcome::Complete)) {
                break;
            }
        }
        // However it ended: the report shows what there is.
        let written = report::write(&settings.folder);
        let outcome = ended?;
        written?;
        if outcome == Outcome::Interrupted {
            let rest: Vec<_> = steps.map(|step| step.name()).collect();
            let rest = if rest.is_empty() || !settings.again {
                String::new()
            } else {
                format!("; not measured again yet: {}", rest.join(", "))
            };
            messages::say(format_args!("koel: interrupted; {kept}{rest}\n"));
            return Ok(ExitCode::from(Interrupt::STATUS));
        }
        stdout::say(&format!("{}\n", settings.folder.join(report::FILE).display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// How much there is to measure.
fn announcement(step: &dyn Step) -> String {
    let (name, cases, left) = (step.name(), step.cases(), step.cases_left());
    match cases - left {
        0 => format!("{name}: {cases} cases"),
        _ if left == 0 => format!("{name}: {cases} cases, all of them measured before"),
        known => format!("{name}: {cases} cases, {known} of them measured before"),
    }
}
