//! From an experiment to its results: first whether it can be done at all, then case after case.

mod progress;
mod work;

use std::{fs, path::PathBuf, time::SystemTime};

use anyhow::{Context as _, bail};

use crate::{
    chart,
    experiment::{Experiment, Measured, Scope},
    interrupt::Interrupt,
    machine::Machine,
    record::{self, Journal, Picture, Place, Record, Run},
};

/// What is to be done, and where the results go.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of results; made if it is not there.
    pub folder: PathBuf,
    /// How much to measure.
    pub scope: Scope,
    /// At most so many cases at a time.
    pub threads: usize,
    /// Measure again what has been measured already.
    pub again: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything has been measured.
    Complete,
    /// Somebody wanted it to stop; what was finished is kept.
    Interrupted,
}

/// An experiment that can be run: its type does not matter any more.
pub trait Step {
    /// The experiment's name.
    fn name(&self) -> &'static str;

    /// How many cases there are.
    fn cases(&self) -> usize;

    /// How many of them are to be measured; the others have been.
    fn cases_left(&self) -> usize;

    /// Measures them, and writes everything down.
    ///
    /// # Errors
    /// If a case cannot be measured, or a file cannot be written. What was finished is in the journal then.
    fn run(self: Box<Self>, interrupt: &Interrupt) -> anyhow::Result<Outcome>;
}

/// What to do about results that are in the way.
const REMEDY: &str = "choose another --out, or measure everything --again";

type Case<E> = <E as Experiment>::Case;
type Row<E> = <E as Experiment>::Row;

/// An experiment, its cases, and those results that are there already.
pub struct Plan<E: Experiment> {
    experiment: E,
    place: Place,
    run: Run,
    cases: Vec<Case<E>>,
    /// For each case.
    known: Vec<Option<Measured<Case<E>, Row<E>>>>,
    threads: usize,
    /// Spent by earlier parts of this run.
    seconds: f64,
}

impl<E: Experiment> Plan<E> {
    /// Checks everything that can be known beforehand. Nothing is measured yet, and nothing is written but the folder.
    ///
    /// # Errors
    /// If the folder cannot be written to; if a case takes more memory than is free; if the folder has results of a run that
    /// was another one.
    pub fn new(experiment: E, settings: &Settings) -> anyhow::Result<Self> {
        let name = experiment.name();
        let folder = &settings.folder;
        let cases = experiment.cases(&settings.scope);
        if cases.is_empty() {
            bail!("{name}: nothing is left to measure: --max-slots must allow larger tables");
        }
        let threads = if experiment.is_timed() { 1 } else { settings.threads.max(1) };
        let threads = threads_within_memory(&experiment, &cases, threads, Machine::available_memory())?;
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        tempfile::tempfile_in(folder).with_context(|| format!("the folder {} cannot be written to", folder.display()))?;

        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let run = Run {
            experiment: name.to_owned(),
            koel: env!("CARGO_PKG_VERSION").to_owned(),
            scope: settings.scope.clone(),
            machine: Machine::here(),
            started,
        };
        let mut known: Vec<_> = cases.iter().map(|_| None).collect();
        let mut plan = Self { experiment, place: Place::new(folder, name), run, threads, seconds: 0.0, known: Vec::new(), cases };
        if !settings.again {
            plan.seconds = plan.recall(&mut known)?;
        }
        plan.known = known;
        Ok(plan)
    }

    /// Fills in what earlier runs have found, and says how many seconds they took for it.
    fn recall(&mut self, known: &mut [Option<Measured<Case<E>, Row<E>>>]) -> anyhow::Result<f64> {
        let mut seconds = 0.0;
        let record: Option<Record<Measured<_, _>>> = self.place.read()?;
        let journal: Option<(Run, Vec<Measured<_, _>>)> = Journal::read(&self.place)?;
        if let Some(record) = &record {
            seconds = record.seconds;
        }
        // The journal, if there is one, is the later of the two, and begins with what the record has.
        let earlier = journal.or(record.map(|record| (record.run, record.measured)));
        let Some((run, measured)) = earlier else { return Ok(seconds) };
        self.refuse(&run)?;
        for measured in measured {
            let Some(place) = self.cases.iter().position(|case| *case == measured.case) else {
                let case = serde_json::to_string(&measured.case)?;
                let json = self.place.json();
                bail!("{}: nobody asked for {case}, which was measured there before: {REMEDY}", json.display());
            };
            known[place] = Some(measured);
        }
        // What was measured was measured there and then.
        self.run = run;
        Ok(seconds)
    }

    /// Results of another run are no part of this one, and are not lost by mistake either.
    fn refuse(&self, other: &Run) -> anyhow::Result<()> {
        let kind = |run: &Run| {
            let size = if run.scope.quick { "a quick" } else { "a full" };
            let most = run.scope.max_slots.map_or_else(String::new, |slots| format!(" with at most {slots} slots"));
            format!("{size} run of koel {}{most}, seed {}", run.koel, run.scope.seed)
        };
        let place = self.place.json();
        if (&other.koel, &other.scope) != (&self.run.koel, &self.run.scope) {
            bail!("{}: these are results of {}, and {} was asked for: {REMEDY}", place.display(), kind(other), kind(&self.run));
        }
        if self.experiment.is_timed() && other.machine.processor != self.run.machine.processor {
            bail!(
                "{}: these are times of another machine ({}), and this one is {}: {REMEDY}",
                place.display(),
                other.machine.processor,
                self.run.machine.processor
            );
        }
        Ok(())
    }

    /// Writes the record, the table and the charts.
    fn write(&self, measured: Vec<Measured<Case<E>, Row<E>>>, complete: bool, seconds: f64) -> anyhow::Result<()> {
        let name = self.experiment.name();
        let findings = self.experiment.findings(&measured);
        let mut pictures = Vec::new();
        for chart in &findings.charts {
            let file = format!("{name}-{}.svg", chart.file);
            let svg = chart::draw(chart).with_context(|| format!("{file} could not be drawn"))?;
            record::replace(&self.place.file(&format!("-{}.svg", chart.file)), svg.as_bytes())?;
            pictures.push(Picture { file, title: chart.title.clone(), caption: chart.caption.clone() });
        }
        self.place.write_csv(&measured)?;
        self.place.write(&Record {
            run: self.run.clone(),
            title: self.experiment.title().to_owned(),
            about: self.experiment.about().to_owned(),
            complete,
            seconds,
            pictures,
            tables: findings.tables,
            measured,
        })
    }
}

impl<E: Experiment> Step for Plan<E> {
    fn name(&self) -> &'static str {
        self.experiment.name()
    }

    fn cases(&self) -> usize {
        self.cases.len()
    }

    fn cases_left(&self) -> usize {
        self.known.iter().filter(|known| known.is_none()).count()
    }

    fn run(mut self: Box<Self>, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        let known: Vec<_> = self.known.iter().flatten().collect();
        let journal = Journal::begin(&self.place, &self.run, &known)?;
        let (seconds, journal) = work::measure(&mut self, journal, interrupt)?;
        let measured: Vec<_> = std::mem::take(&mut self.known).into_iter().flatten().collect();
        let complete = measured.len() == self.cases.len();
        self.write(measured, complete, self.seconds + seconds)?;
        journal.end()?;
        Ok(if complete { Outcome::Complete } else { Outcome::Interrupted })
    }
}

/// As many threads as there is memory for, at most so many.
fn threads_within_memory<E: Experiment>(experiment: &E, cases: &[E::Case], threads: usize, free: u64) -> anyhow::Result<usize> {
    let most = cases.iter().map(|case| experiment.memory(case)).max().unwrap_or(0);
    if most > free {
        bail!(
            "{}: the largest table takes {} MiB of memory, and {} MiB are free: {}",
            experiment.name(),
            most >> 20,
            free >> 20,
            experiment.with_less_memory()
        );
    }
    Ok(usize::try_from(free / most.max(1)).unwrap_or(threads).clamp(1, threads))
}
