//! From an experiment to its results: first whether it can be done at all, then case after case.

mod progress;
mod work;

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;

use crate::{
    chart,
    experiment::{Experiment, Measured, Scope},
    interrupt::Interrupt,
    machine::Machine,
    record::{self, Journal, Left, Picture, Place, REMEDY, Record, Run},
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

type Case<E> = <E as Experiment>::Case;
type Row<E> = <E as Experiment>::Row;

/// An experiment, its cases, and those results that are there already.
pub struct Plan<E: Experiment> {
    experiment: E,
    place: Place,
    /// Nobody else may measure this for as long as there is a plan.
    journal: Journal,
    run: Run,
    cases: Vec<Case<E>>,
    /// For each case.
    known: Vec<Option<Measured<Case<E>, Row<E>>>>,
    /// Nothing was there, or nothing of it counts.
    anew: bool,
    /// What the record has is kept until all of it has been measured again.
    replaces: bool,
    threads: usize,
    /// Spent by earlier parts of this run.
    seconds: f64,
}

impl<E: Experiment> Plan<E> {
    /// Checks everything that can be known beforehand. Nothing is measured yet, and nothing is written but the folder.
    ///
    /// # Errors
    /// If a case takes more memory than is free; if the folder cannot be written to; if somebody else is measuring the same
    /// there; if it has results of a run that was another one.
    pub fn new(experiment: E, settings: &Settings) -> anyhow::Result<Self> {
        let name = experiment.name();
        let cases = cases_of(&experiment, &settings.scope)?;
        let threads = if experiment.is_timed() { 1 } else { settings.threads.max(1) };
        let threads = threads_within_memory(&experiment, &cases, threads, Machine::available_memory())?;
        try_folder(&settings.folder)?;

        let run = Run {
            experiment: name.to_owned(),
            koel: env!("CARGO_PKG_VERSION").to_owned(),
            scope: settings.scope.clone(),
            machine: Machine::here(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        };
        let place = Place::new(&settings.folder, name);
        let journal = Journal::open(&place)?;
        let known = cases.iter().map(|_| None).collect();
        let mut plan =
            Self { experiment, place, journal, run, cases, known, anew: true, replaces: settings.again, threads, seconds: 0.0 };
        if !settings.again {
            plan.recall()?;
        }
        Ok(plan)
    }

    /// Fills in what earlier runs have found, and how many seconds they took for it.
    fn recall(&mut self) -> anyhow::Result<()> {
        let now = self.run.clone();
        let left: Option<Left<Measured<_, _>>> = self.journal.read()?;
        let record: Option<Record<Measured<_, _>>> = match &left {
            // Whatever it is, it was to be replaced.
            Some(left) if left.anew => {
                self.replaces = true;
                None
            }
            _ => self.place.read()?,
        };
        let places: HashMap<_, _> =
            self.cases.iter().enumerate().map(|(place, case)| Ok((key(case)?, place))).collect::<anyhow::Result<_>>()?;
        let record = record.map(|record| (record.run, record.measured, record.seconds, self.place.json()));
        let left = left.map(|left| (left.run, left.measured, left.seconds, self.journal.path().to_owned()));
        // The journal is the later of the two. Where nothing was measured, it does not matter what was to be.
        for (run, measured, seconds, file) in record.into_iter().chain(left).filter(|part| !part.1.is_empty()) {
            self.refuse(&run, &file)?;
            for measured in measured {
                let case = key(&measured.case)?;
                let Some(&place) = places.get(&case) else {
                    bail!("{}: nobody asked for {case}, which was measured there before: {REMEDY}", file.display());
                };
                self.known[place] = Some(measured);
            }
            // What was measured was measured there and then.
            self.run = run;
            self.seconds = self.seconds.max(seconds);
            self.anew = false;
        }
        // To draw what others have measured is no harm.
        if self.cases_left() > 0 { self.same_origin(&now) } else { Ok(()) }
    }

    /// Results of two versions are no one result, nor are times of two machines.
    fn same_origin(&self, now: &Run) -> anyhow::Result<()> {
        let file = self.place.json();
        let file = file.display();
        if self.run.koel != now.koel {
            bail!("{file}: these are results of koel {}, and this is koel {}: {REMEDY}", self.run.koel, now.koel);
        }
        let pace = |machine: &Machine| {
            let how = if machine.optimized { "" } else { ", without optimization" };
            format!("{}, kernel {}{how}", machine.processor, machine.kernel)
        };
        let (there, here) = (pace(&self.run.machine), pace(&now.machine));
        if self.experiment.is_timed() && there != here {
            bail!("{file}: these are times of another machine ({there}), and this one is {here}: {REMEDY}");
        }
        Ok(())
    }

    /// Results of another run are no part of this one, and are not lost by mistake either.
    fn refuse(&self, other: &Run, file: &Path) -> anyhow::Result<()> {
        let run = &self.run;
        let kind = |run: &Run| {
            let size = if run.scope.quick { "a quick" } else { "a full" };
            let most = run.scope.max_slots.map_or_else(String::new, |slots| format!(" with at most {slots} slots"));
            format!("{size} run of {}{most}, seed {}", run.experiment, run.scope.seed)
        };
        let file = file.display();
        if (&other.experiment, &other.scope) != (&run.experiment, &run.scope) {
            bail!("{file}: these are results of {}, and {} was asked for: {REMEDY}", kind(other), kind(run));
        }
        Ok(())
    }

    /// Writes the record, the table and the charts.
    fn write(&self, measured: Vec<Measured<Case<E>, Row<E>>>, complete: bool) -> anyhow::Result<()> {
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
            seconds: self.seconds,
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
        self.journal.begin(&self.run, self.anew)?;
        work::measure(&mut self, interrupt)?;
        let measured: Vec<_> = std::mem::take(&mut self.known).into_iter().flatten().collect();
        let complete = measured.len() == self.cases.len();
        if self.replaces && !complete && self.place.json().exists() {
            // A part of the new results is no reason to lose all of the old ones. The journal has it.
            return Ok(Outcome::Interrupted);
        }
        self.write(measured, complete)?;
        self.journal.end()?;
        Ok(if complete { Outcome::Complete } else { Outcome::Interrupted })
    }
}

/// What a case is known by, in files and to the random numbers.
fn key(case: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(case)?)
}

/// What there is to measure, each case once.
fn cases_of<E: Experiment>(experiment: &E, scope: &Scope) -> anyhow::Result<Vec<E::Case>> {
    let mut seen = HashSet::new();
    let mut cases = Vec::new();
    for case in experiment.cases(scope) {
        if seen.insert(key(&case)?) {
            cases.push(case);
        }
    }
    if let (true, Some(most)) = (cases.is_empty(), scope.max_slots) {
        let name = experiment.name();
        bail!("{name}: --max-slots {most} leaves nothing to measure; it takes {} at least", least_slots(experiment, scope, most));
    }
    Ok(cases)
}

/// The smallest limit that leaves something, above one that does not.
fn least_slots<E: Experiment>(experiment: &E, scope: &Scope, too_few: u64) -> u64 {
    let (mut too_few, mut enough) = (too_few, u64::MAX);
    while enough - too_few > 1 {
        let slots = u64::midpoint(too_few, enough);
        let scope = Scope { max_slots: Some(slots), ..scope.clone() };
        *(if experiment.cases(&scope).is_empty() { &mut too_few } else { &mut enough }) = slots;
    }
    enough
}

/// Can results be put there?
fn try_folder(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    let made = fs::create_dir_all(folder);
    made.map_err(|error| anyhow!("the folder {name} cannot be made: {error}; choose another --out"))?;
    // The error itself goes on about a temporary name.
    let tried = tempfile::tempfile_in(folder).map_err(|error| error.kind());
    tried.map_err(|kind| anyhow!("no file can be made in the folder {name}: {kind}; choose another --out"))?;
    Ok(())
}

/// As many threads as there is memory for, at most so many.
fn threads_within_memory<E: Experiment>(experiment: &E, cases: &[E::Case], threads: usize, free: u64) -> anyhow::Result<usize> {
    let most = cases.iter().map(|case| experiment.memory(case)).max().unwrap_or(0);
    if most > free {
        bail!(
            "{}: the largest table takes {} MiB of memory, and {} MiB are free: {}",
            experiment.name(),
            most.div_ceil(1 << 20),
            free >> 20,
            experiment.with_less_memory()
        );
    }
    Ok(usize::try_from(free / most.max(1)).unwrap_or(threads).clamp(1, threads))
}
