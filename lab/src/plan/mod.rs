//! Runs an experiment: checks first whether it can run at all, then measures its cases and writes the results.

mod work;

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::SystemTime,
};

use anyhow::{Context as _, anyhow, bail, ensure};

use crate::{
    About, Build, Experiment, Findings, Interrupt, Machine, Measured, Scope, chart,
    experiment::{Planned, Untyped, key},
    record::{Journal, Picture, Place, REMEDY, Record, Run, damaged},
};

/// How an experiment runs, and where its results go.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of the results. It is created if it does not exist.
    pub folder: PathBuf,
    /// How much to measure.
    pub scope: Scope,
    /// The most cases to measure at a time.
    pub threads: usize,
    /// Whether to measure again what was measured before.
    pub again: bool,
}

impl Settings {
    /// A full run into this folder, with the seed 1 and a thread for each core. Continues an earlier run.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            scope: Scope { quick: false, seed: 1, max_slots: None },
            threads: thread::available_parallelism().map_or(1, usize::from),
            again: false,
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All cases have been measured.
    Complete,
    /// It was stopped on request. Finished cases are kept.
    Interrupted,
}

/// Success, or [`Interrupt::STATUS`].
impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::SUCCESS,
            Outcome::Interrupted => Self::from(Interrupt::STATUS),
        }
    }
}

/// An experiment that is ready to run, its cases, and the results that exist already.
pub struct Plan<'a> {
    experiment: Box<dyn Untyped + 'a>,
    about: About,
    place: Place,
    /// Locked: no other process measures this experiment into this folder while the plan exists.
    journal: Journal,
    run: Run,
    cases: Vec<Planned>,
    known: Vec<Option<Measured>>,
    /// Whether there are no earlier results, or none that count.
    anew: bool,
    /// Whether the record has older results, which are kept until all cases have been measured again.
    replaces: bool,
    threads: usize,
    /// The time that earlier parts of this run took.
    seconds: f64,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be checked beforehand. Measures nothing, and creates only the folder and its journal.
    ///
    /// # Errors
    /// If a case takes more memory than is available; if the folder cannot be written to; if another process is measuring
    /// this experiment there; if the folder has results of a different run.
    pub fn new(experiment: impl Experiment + 'a, settings: &Settings) -> anyhow::Result<Self> {
        Self::of(Box::new(experiment), settings)
    }

    pub(crate) fn of(experiment: Box<dyn Untyped + 'a>, settings: &Settings) -> anyhow::Result<Self> {
        let about = experiment.about();
        let cases = cases_of(&*experiment, &settings.scope)?;
        let threads = if about.is_timed { 1 } else { settings.threads.max(1) };
        let threads = threads_within_memory(&about, &cases, threads, Machine::available_memory())?;
        try_folder(&settings.folder)?;

        let run = Run {
            experiment: about.name.to_owned(),
            koel: env!("CARGO_PKG_VERSION").to_owned(),
            build: Build::here().clone(),
            scope: settings.scope.clone(),
            machine: Machine::here(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        };
        let place = Place::new(&settings.folder, about.name);
        let journal = Journal::open(&place)?;
        let known = cases.iter().map(|_| None).collect();
        let replaces = settings.again;
        let mut plan = Self { experiment, about, place, journal, run, cases, known, anew: true, replaces, threads, seconds: 0.0 };
        if !settings.again {
            plan.recall()?;
        }
        Ok(plan)
    }

    /// Takes up the results of earlier runs: those of the record, then those of the journal, which are newer.
    fn recall(&mut self) -> anyhow::Result<()> {
        let now = self.run.clone();
        let left = self.journal.read()?;
        self.replaces = left.as_ref().is_some_and(|left| left.anew);
        let record = if self.replaces { None } else { self.place.earlier()? };
        let places: HashMap<_, _> = self.cases.iter().enumerate().map(|(place, case)| (&*case.key, place)).collect();
        let mut newest = PathBuf::new();
        // The settings of a run that measured nothing do not matter.
        for part in [record, left].into_iter().flatten().filter(|part| !part.measured.is_empty()) {
            let file = part.file.display();
            same_scope(&part.file, &part.run, &now)?;
            if !self.anew {
                same_build(&newest, &self.run, &part.run, &file.to_string())?;
            }
            self.experiment.findings(&part.measured).with_context(|| damaged(&part.file))?;
            for measured in part.measured {
                let case = key(&measured.case);
                let Some(&place) = places.get(&*case) else {
                    bail!("{file}: has a case that is not part of this run, {case}: {REMEDY}");
                };
                self.known[place] = Some(measured);
            }
            // The run that measured, not the one that draws.
            self.run = part.run;
            self.seconds = self.seconds.max(part.seconds);
            self.anew = false;
            newest = part.file;
        }
        // Complete results of another build or machine can be drawn.
        if self.anew || self.cases_left() == 0 {
            return Ok(());
        }
        same_build(&newest, &self.run, &now, "this")?;
        if self.about.is_timed { same_machine(&newest, &self.run, &now) } else { Ok(()) }
    }

    /// Writes the charts, the table and the record.
    fn write(self, measured: Vec<Measured>, complete: bool) -> anyhow::Result<Journal> {
        let Findings { mut charts, tables, warnings } = self.experiment.findings(&measured)?;
        let mut pictures = Vec::new();
        for chart in &mut charts {
            if !complete {
                // The cases that are missing may say something else.
                chart.finding = None;
            }
            let ending = format!("-{}.svg", chart.file);
            chart::save(chart, &self.place.file(&ending))?;
            pictures.push(Picture {
                file: format!("{}{ending}", self.about.name),
                title: chart.title().to_owned(),
                is_finding: chart.finding.is_some(),
                caption: chart.caption.clone(),
            });
        }
        let About { title, text, columns, .. } = self.about;
        self.place.write_csv(&measured, &columns)?;
        self.place.write(Record {
            run: self.run,
            title: title.to_owned(),
            about: text.to_owned(),
            columns,
            complete,
            seconds: self.seconds,
            warnings,
            pictures,
            tables,
            measured,
        })?;
        Ok(self.journal)
    }

    /// The experiment's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// The number of cases.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// The number of cases that have not been measured yet.
    #[must_use]
    pub fn cases_left(&self) -> usize {
        self.known.iter().filter(|known| known.is_none()).count()
    }

    /// The build that measured the earlier results, if it is not this one. They are then complete, and only drawn.
    #[must_use]
    pub fn other_build(&self) -> Option<&Build> {
        (!self.run.build.is(Build::here())).then_some(&self.run.build)
    }

    /// Measures the cases that are left, and writes all results.
    ///
    /// # Errors
    /// If a case fails, or a file cannot be written. Finished cases are then in the journal.
    pub fn run(mut self, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        self.journal.begin(&self.run, self.anew)?;
        work::measure(&mut self, interrupt)?;
        let measured: Vec<_> = std::mem::take(&mut self.known).into_iter().flatten().collect();
        let complete = measured.len() == self.cases.len();
        if self.replaces && !complete && self.place.json().exists() {
            // Part of the new results must not replace all of the old ones. The journal keeps that part.
            return Ok(Outcome::Interrupted);
        }
        self.write(measured, complete)?.end()?;
        Ok(if complete { Outcome::Complete } else { Outcome::Interrupted })
    }
}

/// Refuses results of a different run, which are neither mixed with new ones nor overwritten by mistake.
fn same_scope(file: &Path, there: &Run, here: &Run) -> anyhow::Result<()> {
    let [there, here] = [there, here].map(|run| {
        let size = if run.scope.quick { "a quick" } else { "a full" };
        let most = run.scope.max_slots.map_or_else(String::new, |slots| format!(" with at most {slots} slots"));
        format!("{size} run of {}{most}, seed {}", run.experiment, run.scope.seed)
    });
    ensure!(there == here, "{}: has the results of {there}, but this is {here}: {REMEDY}", file.display());
    Ok(())
}

/// Refuses to add to the results in a file what another build measured: they would be rows of two algorithms.
fn same_build(file: &Path, there: &Run, here: &Run, name: &str) -> anyhow::Result<()> {
    let is_same = there.build.is(&here.build);
    let [there, here] = [there, here].map(|run| format!("koel {}, {}", run.koel, run.build));
    ensure!(
        is_same,
        "{}: measured by another build, {there}, but {name} is {here}: continue with that build, {REMEDY}",
        file.display()
    );
    Ok(())
}

/// Refuses to continue times of another machine.
fn same_machine(file: &Path, there: &Run, here: &Run) -> anyhow::Result<()> {
    let [there, here] = [there, here].map(|Run { machine, .. }| {
        let version = machine.system_kernel.as_deref().unwrap_or("of unknown version");
        format!("{}, kernel {}, {} {version}", machine.processor, machine.kernel, machine.system)
    });
    ensure!(there == here, "{}: times measured on another machine ({there}), but this one is {here}: {REMEDY}", file.display());
    Ok(())
}

/// The cases of an experiment, each once.
fn cases_of(experiment: &dyn Untyped, scope: &Scope) -> anyhow::Result<Vec<Planned>> {
    let name = experiment.about().name;
    let mut cases = experiment.cases(scope).context(name)?;
    let mut seen = HashSet::new();
    cases.retain(|case| seen.insert(case.key.clone()));
    if let (true, Some(most)) = (cases.is_empty(), scope.max_slots) {
        bail!("{name}: --max-slots {most} leaves nothing to measure; give at least {}", least_slots(experiment, scope, most));
    }
    Ok(cases)
}

/// The smallest limit of slots that leaves a case, given one that is too low.
fn least_slots(experiment: &dyn Untyped, scope: &Scope, too_few: u64) -> u64 {
    let (mut too_few, mut enough) = (too_few, u64::MAX);
    while enough - too_few > 1 {
        let slots = u64::midpoint(too_few, enough);
        let scope = Scope { max_slots: Some(slots), ..scope.clone() };
        let has_cases = experiment.cases(&scope).is_ok_and(|cases| !cases.is_empty());
        *(if has_cases { &mut enough } else { &mut too_few }) = slots;
    }
    enough
}

/// Creates the folder, and checks that it can be written to.
fn try_folder(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    let made = fs::create_dir_all(folder);
    made.map_err(|error| anyhow!("the folder {name} could not be created: {error}; choose another --out"))?;
    // The error itself names a temporary file.
    let tried = tempfile::tempfile_in(folder).map_err(|error| error.kind());
    tried.map_err(|kind| anyhow!("no file could be created in the folder {name}: {kind}; choose another --out"))?;
    Ok(())
}

/// The number of threads, at most `threads`, for whose cases there is enough memory.
fn threads_within_memory(about: &About, cases: &[Planned], threads: usize, free: u64) -> anyhow::Result<usize> {
    let most = cases.iter().map(|case| case.memory).max().unwrap_or(0);
    if most > free {
        bail!(
            "{}: the largest table takes {} MiB of memory, but only {} MiB are available: {}",
            about.name,
            most.div_ceil(1 << 20),
            free >> 20,
            about.with_less_memory
        );
    }
    Ok(usize::try_from(free / most.max(1)).unwrap_or(threads).clamp(1, threads))
}
