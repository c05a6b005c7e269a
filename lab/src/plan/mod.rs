//! Runs an experiment: checks that it can run, then measures its cases and writes the results.

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
    record::{Journal, Picture, REMEDY, Record, ResultFiles, Run, damaged},
};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder for the results. It is created if it does not exist.
    pub folder: PathBuf,
    /// The amount to measure.
    pub scope: Scope,
    /// The greatest number of cases to measure at a time.
    pub threads: usize,
    /// True to measure all cases again, even those that have results.
    pub again: bool,
}

impl Settings {
    /// Returns settings for a full run into this folder, with the seed 1 and a thread for each core. The run continues an earlier
    /// one.
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

/// The way in which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All cases have been measured.
    Complete,
    /// The run was stopped on request. Finished cases are kept.
    Interrupted,
}

/// Converts to success, or to [`Interrupt::STATUS`].
impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::SUCCESS,
            Outcome::Interrupted => Self::from(Interrupt::STATUS),
        }
    }
}

/// An experiment that is ready to run, with its cases and the results that exist already.
pub struct Plan<'a> {
    experiment: Box<dyn Untyped + 'a>,
    about: About,
    files: ResultFiles,
    /// The locked journal. While the plan exists, no other process can measure this experiment into this folder.
    journal: Journal,
    run: Run,
    cases: Vec<Planned>,
    /// The result of each case, if there is one.
    results: Vec<Option<Measured>>,
    /// True if the run uses no earlier results.
    starts_over: bool,
    /// True if the run will replace the results in the record. They are kept until all cases have been measured again.
    replaces_record: bool,
    threads: usize,
    /// The time that this run has taken so far, in seconds, including its earlier parts.
    seconds: f64,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be checked before a run. It measures nothing, and creates only the folder and the journal.
    ///
    /// # Errors
    /// If a case takes more memory than is available; if the folder cannot be written to; if another process is measuring
    /// this experiment there; if the folder has results of a different run.
    pub fn new(experiment: impl Experiment + 'a, settings: &Settings) -> anyhow::Result<Self> {
        Self::from_untyped(Box::new(experiment), settings)
    }

    pub(crate) fn from_untyped(experiment: Box<dyn Untyped + 'a>, settings: &Settings) -> anyhow::Result<Self> {
        let about = experiment.about();
        let cases = distinct_cases(&*experiment, &settings.scope)?;
        let threads = if about.is_timed { 1 } else { settings.threads.max(1) };
        let threads = threads_within_memory(&about, &cases, threads, Machine::available_memory())?;
        prepare_folder(&settings.folder)?;

        let run = Run {
            experiment: about.name.to_owned(),
            koel: env!("CARGO_PKG_VERSION").to_owned(),
            build: Build::here().clone(),
            scope: settings.scope.clone(),
            machine: Machine::here(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        };
        let files = ResultFiles::new(&settings.folder, about.name);
        let journal = Journal::open(&files)?;
        let results = cases.iter().map(|_| None).collect();
        let replaces_record = settings.again;
        let mut plan = Self {
            experiment,
            about,
            files,
            journal,
            run,
            cases,
            results,
            starts_over: true,
            replaces_record,
            threads,
            seconds: 0.0,
        };
        if !settings.again {
            plan.load_earlier_results()?;
        }
        Ok(plan)
    }

    /// Loads the results of earlier runs: first those of the record, then those of the journal, which are newer.
    fn load_earlier_results(&mut self) -> anyhow::Result<()> {
        let now = self.run.clone();
        let left = self.journal.read()?;
        self.replaces_record = left.as_ref().is_some_and(|left| left.replaces_record);
        let record = if self.replaces_record { None } else { self.files.earlier()? };
        let indices: HashMap<_, _> = self.cases.iter().enumerate().map(|(index, case)| (&*case.key, index)).collect();
        let mut newest = PathBuf::new();
        // A run that measured nothing may have had any settings.
        for part in [record, left].into_iter().flatten().filter(|part| !part.measured.is_empty()) {
            let file = part.file.display();
            check_same_scope(&part.file, &part.run, &now)?;
            if !self.starts_over {
                check_same_build(&newest, &self.run, &part.run, &file.to_string())?;
            }
            self.experiment.findings(&part.measured).with_context(|| damaged(&part.file))?;
            for measured in part.measured {
                let case = key(&measured.case);
                let Some(&index) = indices.get(&*case) else {
                    bail!("{file}: has a case that is not part of this run, {case}: {REMEDY}");
                };
                self.results[index] = Some(measured);
            }
            // The record names the run that measured, not the one that draws.
            self.run = part.run;
            self.seconds = self.seconds.max(part.seconds);
            self.starts_over = false;
            newest = part.file;
        }
        // Complete results may be drawn by another build or machine.
        if self.starts_over || self.cases_left() == 0 {
            return Ok(());
        }
        check_same_build(&newest, &self.run, &now, "this")?;
        if self.about.is_timed { check_same_machine(&newest, &self.run, &now) } else { Ok(()) }
    }

    /// Writes the charts, the table and the record.
    fn write(self, measured: Vec<Measured>, complete: bool) -> anyhow::Result<Journal> {
        let Findings { mut charts, tables, warnings } = self.experiment.findings(&measured)?;
        let mut pictures = Vec::new();
        for chart in &mut charts {
            if !complete {
                // The missing cases may contradict the finding.
                chart.finding = None;
            }
            let ending = format!("-{}.svg", chart.file);
            chart::save(chart, &self.files.file(&ending))?;
            pictures.push(Picture {
                file: format!("{}{ending}", self.about.name),
                title: chart.title().to_owned(),
                is_finding: chart.finding.is_some(),
                caption: chart.caption.clone(),
            });
        }
        let About { title, text, columns, .. } = self.about;
        self.files.write_csv(&measured, &columns)?;
        self.files.write(Record {
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

    /// Returns the experiment's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.about.name
    }

    /// Returns the number of cases.
    #[must_use]
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Returns the number of cases that have not been measured yet.
    #[must_use]
    pub fn cases_left(&self) -> usize {
        self.results.iter().filter(|result| result.is_none()).count()
    }

    /// Returns the build that measured the earlier results, if it is not this one. These results are complete, so
    /// [`run`](Self::run) only draws them.
    #[must_use]
    pub fn other_build(&self) -> Option<&Build> {
        (!self.run.build.is(Build::here())).then_some(&self.run.build)
    }

    /// Measures the cases that are left, and writes all results.
    ///
    /// # Errors
    /// If a case fails, or a file cannot be written. The journal keeps the finished cases.
    pub fn run(mut self, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        self.journal.begin(&self.run, self.starts_over)?;
        work::measure(&mut self, interrupt)?;
        let measured: Vec<_> = std::mem::take(&mut self.results).into_iter().flatten().collect();
        let complete = measured.len() == self.cases.len();
        if self.replaces_record && !complete && self.files.json().exists() {
            // Incomplete new results must not replace complete old ones. The journal keeps them.
            return Ok(Outcome::Interrupted);
        }
        self.write(measured, complete)?.end()?;
        Ok(if complete { Outcome::Complete } else { Outcome::Interrupted })
    }
}

/// Refuses the results of a different run, so that they are neither mixed with new results nor overwritten by mistake.
fn check_same_scope(file: &Path, there: &Run, here: &Run) -> anyhow::Result<()> {
    let [there, here] = [there, here].map(|run| {
        let size = if run.scope.quick { "a quick" } else { "a full" };
        let most = run.scope.max_slots.map_or_else(String::new, |slots| format!(" with at most {slots} slots"));
        format!("{size} run of {}{most}, seed {}", run.experiment, run.scope.seed)
    });
    ensure!(there == here, "{}: has the results of {there}, but this is {here}: {REMEDY}", file.display());
    Ok(())
}

/// Refuses to add the results of another build to those in a file: the rows could be from two algorithms.
fn check_same_build(file: &Path, there: &Run, here: &Run, name: &str) -> anyhow::Result<()> {
    let is_same = there.build.is(&here.build);
    let [there, here] = [there, here].map(|run| format!("koel {}, {}", run.koel, run.build));
    ensure!(
        is_same,
        "{}: measured by another build, {there}, but {name} is {here}: continue with that build, {REMEDY}",
        file.display()
    );
    Ok(())
}

/// Refuses to add to times that another machine measured.
fn check_same_machine(file: &Path, there: &Run, here: &Run) -> anyhow::Result<()> {
    let [there, here] = [there, here].map(|Run { machine, .. }| {
        let version = machine.system_kernel.as_deref().unwrap_or("of unknown version");
        format!("{}, kernel {}, {} {version}", machine.processor, machine.kernel, machine.system)
    });
    ensure!(there == here, "{}: times measured on another machine ({there}), but this one is {here}: {REMEDY}", file.display());
    Ok(())
}

/// Returns the cases of an experiment, without duplicates.
fn distinct_cases(experiment: &dyn Untyped, scope: &Scope) -> anyhow::Result<Vec<Planned>> {
    let name = experiment.about().name;
    let mut cases = experiment.cases(scope).context(name)?;
    let mut seen = HashSet::new();
    cases.retain(|case| seen.insert(case.key.clone()));
    if let (true, Some(most)) = (cases.is_empty(), scope.max_slots) {
        bail!("{name}: --max-slots {most} leaves nothing to measure; give at least {}", least_slots(experiment, scope, most));
    }
    Ok(cases)
}

/// Returns the smallest limit of slots with which there is a case, given a limit that is too low.
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
fn prepare_folder(folder: &Path) -> anyhow::Result<()> {
    let name = folder.display();
    let made = fs::create_dir_all(folder);
    made.map_err(|error| anyhow!("the folder {name} could not be created: {error}; choose another --out"))?;
    // The whole error would name a temporary file.
    let tried = tempfile::tempfile_in(folder).map_err(|error| error.kind());
    tried.map_err(|kind| anyhow!("no file could be created in the folder {name}: {kind}; choose another --out"))?;
    Ok(())
}

/// Returns the number of threads, at most `threads`, whose cases fit into memory together.
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
