//! Runs experiments: checks that they can run, measures the cases that have no result yet, and writes the results.
//!
//! The record of an experiment has a row for each result. A run skips the cases whose rows are there.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    collections::{HashMap, HashSet},
    fmt, fs,
    io::{self, Write as _},
    mem,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    About, Build, Experiment, Fields, Findings, Interrupt, Interrupted, Machine, Measured, Scope, Signal, chart, counted,
    experiment::{Planned, Untyped, key},
    record::{self, Picture, REMEDY, Record, ResultFiles, Run, damaged},
    report,
};

/// The most measuring time that is not in the record yet. A run that is killed loses this, and its unfinished cases.
const MAX_UNSAVED: Duration = Duration::from_secs(1);

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder for the results. It is created if it does not exist.
    pub folder: PathBuf,
    /// How much to measure, and with which seed.
    pub scope: Scope,
    /// The greatest number of cases to measure at a time.
    pub threads: usize,
    /// True to discard earlier results, and to measure all cases again.
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
    /// The run was stopped on request, by this signal. Finished cases are kept.
    Interrupted(Signal),
}

/// Converts to success, or to [`Signal::status`].
impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Complete => Self::SUCCESS,
            Outcome::Interrupted(signal) => Self::from(signal.status()),
        }
    }
}

/// Runs these experiments one after the other, and writes the report of the folder to [`report::FILE`] there.
///
/// It writes the number of cases and the warnings of each experiment to standard error, with a progress bar if that is a terminal,
/// and nothing to standard output. Ctrl-C stops it; the message then begins with the name `program`. The plans have already checked
/// everything that can be checked before the first experiment begins ([`Plan::new`]).
///
/// # Errors
/// If results in the folder cannot be part of the report, if a case fails, if a file cannot be written, or if the program has its
/// own handler for Ctrl-C. Cases that were measured before are kept.
pub fn run(program: &str, plans: Vec<Plan<'_>>, settings: &Settings) -> anyhow::Result<Outcome> {
    report::check(&settings.folder, &plans.iter().map(Plan::name).collect::<Vec<_>>())?;
    let interrupt = Interrupt::on_ctrl_c()?;
    let folder = settings.folder.display();
    let remedy = if settings.again { "the same command without --again continues" } else { "the same command continues" };
    let kept = format!("the results so far are in {folder}, and {remedy}");
    // Not if even the first results could not be written.
    let explain = |error, files: &ResultFiles, run: &Run| {
        let is_kept = files.read().is_ok_and(|record| record.is_some_and(|record| record.run.started == run.started));
        if is_kept { anyhow!("{error:#}; {kept}") } else { error }
    };
    let mut ended = Ok(Outcome::Complete);
    let mut plans = plans.into_iter();
    for plan in plans.by_ref() {
        say(format_args!("{}\n", announcement(&plan)));
        let (name, files, run) = (plan.name(), plan.files.clone(), plan.record.run.clone());
        ended = plan.run(&interrupt).map_err(|error| explain(error, &files, &run));
        if !matches!(ended, Ok(Outcome::Complete)) {
            break;
        }
        for warning in files.read()?.into_iter().flat_map(|record| record.warnings) {
            say(format_args!("{name}: {warning}\n"));
        }
    }
    // Even after a failure, the report shows the results so far.
    let written = report::write(&settings.folder);
    let outcome = ended?;
    let is_empty = record::read_all(&settings.folder, &[], damaged).is_ok_and(|records| records.is_empty());
    if !is_empty {
        written?;
    }
    if outcome != Outcome::Complete {
        let kept = if is_empty { String::from("nothing has been measured yet") } else { kept };
        let rest: Vec<_> = plans.map(|plan| plan.name()).collect();
        let rest = if rest.is_empty() || !settings.again {
            String::new()
        } else {
            format!("; not measured again yet: {}", rest.join(", "))
        };
        say(format_args!("{program}: interrupted; {kept}{rest}\n"));
    }
    Ok(outcome)
}

/// An experiment that is ready to run, with its cases and the results that exist already.
pub struct Plan<'a> {
    experiment: Box<dyn Untyped + 'a>,
    about: About,
    files: ResultFiles,
    /// While the plan exists, no other process can measure this experiment into this folder.
    _lock: NamedTempFile,
    cases: Vec<Planned>,
    /// The result of each case, if there is one.
    results: Vec<Option<Measured>>,
    /// Everything else that is written with the results.
    record: Record,
    threads: usize,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be checked before a run. It measures nothing, and creates only the folder and a lock file.
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
        let files = ResultFiles::new(&settings.folder, about.name);
        let lock = files.lock()?;
        let results = cases.iter().map(|_| None).collect();
        let record = Record::new(&about, &settings.scope);
        let mut plan = Self { experiment, about, files, _lock: lock, cases, results, record, threads };
        if !settings.again {
            plan.load()?;
        }
        Ok(plan)
    }

    /// Loads the results of an earlier run.
    fn load(&mut self) -> anyhow::Result<()> {
        let Some(earlier) = self.files.read()? else { return Ok(()) };
        let file = self.files.json();
        check_same_scope(&file, &earlier.run, &self.record.run)?;
        self.experiment.findings(&earlier.measured).with_context(|| damaged(&file))?;
        let indices: HashMap<_, _> = self.cases.iter().enumerate().map(|(index, case)| (&*case.key, index)).collect();
        for measured in earlier.measured {
            let case = key(&measured.case);
            let Some(&index) = indices.get(&*case) else {
                bail!("{}: has a case that is not part of this run, {case}: {REMEDY}", file.display());
            };
            self.results[index] = Some(measured);
        }
        self.record.seconds = earlier.seconds;
        // The record names the run that measured, not the one that draws.
        let now = mem::replace(&mut self.record.run, earlier.run);
        // Complete results may be drawn by another build or machine.
        if self.cases_left() > 0 {
            check_same_build(&file, &self.record.run, &now)?;
            if self.about.is_timed {
                check_same_machine(&file, &self.record.run, &now)?;
            }
        }
        Ok(())
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
        (!self.record.run.build.is(Build::current())).then_some(&self.record.run.build)
    }

    /// Measures the cases that are left, and writes all results.
    ///
    /// # Errors
    /// If a case fails, or a file cannot be written. Finished cases are kept.
    pub fn run(mut self, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
        let measured = self.measure(interrupt);
        // A run without results leaves the earlier ones, if there are any.
        if self.cases_left() < self.cases() {
            self.write()?;
        }
        measured?;
        let stopped = || Outcome::Interrupted(interrupt.signal().unwrap_or(Signal::INTERRUPT));
        Ok(if self.cases_left() == 0 { Outcome::Complete } else { stopped() })
    }

    /// Measures the cases that have no result. After an interruption or an error, some of them still have none.
    fn measure(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut todo: Vec<_> = (0..self.cases()).filter(|&case| self.results[case].is_none()).rev().collect();
        if todo.is_empty() {
            return Ok(());
        }
        let Self { experiment, about, files, cases, results, record, .. } = self;
        let (experiment, cases, seed) = (&**experiment, &*cases, record.run.scope.seed);
        if !about.is_timed {
            // Threads take the longest cases first, so that all of them are busy until the end.
            todo.sort_by_key(|&case| cases[case].effort);
        }
        let effort = |case: usize| cases[case].effort.max(1);
        let progress = progress_bar(about.name, todo.iter().map(|&case| effort(case)).sum());
        let threads = self.threads.min(todo.len());
        let (start, before) = (Instant::now(), record.seconds);
        // The first finished case is saved immediately, so that a folder without space is noticed.
        let shared = Mutex::new(Shared { results, record, todo, unsaved: MAX_UNSAVED, error: None });
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let worker = || {
            loop {
                let Some(index) = lock().todo.pop() else { return };
                let case = &cases[index];
                let began = Instant::now();
                let result = interrupt.check().map_err(Into::into).and_then(|()| measure_case(experiment, case, seed, interrupt));
                let mut shared = lock();
                let saved = result.map_err(|error| error.context(format!("{}: {}", about.name, case.key))).and_then(|rows| {
                    shared.results[index] = Some(Measured { case: case.case.clone(), rows });
                    shared.record.seconds = before + start.elapsed().as_secs_f64();
                    shared.save(began.elapsed(), files)
                });
                match saved {
                    Ok(()) => progress.inc(effort(index)),
                    Err(error) => {
                        // The other threads stop after their current case.
                        shared.todo.clear();
                        if !error.is::<Interrupted>() {
                            shared.error.get_or_insert(error);
                        }
                        return;
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // If the system refuses another thread, the existing ones do the work.
                if thread::Builder::new().spawn_scoped(scope, worker).is_err() {
                    break;
                }
            }
            worker();
        });
        shared.into_inner().unwrap_or_else(PoisonError::into_inner).error.map_or(Ok(()), Err)
    }

    /// Writes the charts, the table and the record.
    fn write(&mut self) -> anyhow::Result<()> {
        let (complete, measured) = (self.cases_left() == 0, self.results.iter().flatten().cloned().collect::<Vec<_>>());
        let Findings { mut charts, tables, warnings } = self.experiment.findings(&measured)?;
        // First, since the run continues from the record if nothing else can be written.
        self.record.measured.clone_from(&measured);
        self.files.write(&self.record)?;
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
        self.files.write_csv(&measured, &self.record.columns)?;
        let record = &mut self.record;
        (record.complete, record.warnings, record.pictures, record.tables, record.measured) =
            (complete, warnings, pictures, tables, measured);
        self.files.write(record)
    }
}

/// The state of a run that its threads share.
struct Shared<'a> {
    results: &'a mut [Option<Measured>],
    record: &'a mut Record,
    /// The indices of the cases left to measure. Threads take them from the end.
    todo: Vec<usize>,
    /// The measuring time of the results that are not in the record's file yet.
    unsaved: Duration,
    error: Option<anyhow::Error>,
}

impl Shared<'_> {
    /// Writes all results, once enough time has been spent on those that are not written yet: a sweep may have many short cases.
    fn save(&mut self, took: Duration, files: &ResultFiles) -> anyhow::Result<()> {
        self.unsaved += took;
        if self.unsaved < MAX_UNSAVED {
            return Ok(());
        }
        self.unsaved = Duration::ZERO;
        self.record.measured = self.results.iter().flatten().cloned().collect();
        files.write(self.record)
    }
}

/// Measures one case. A panic becomes an error, so that the results of other threads are kept.
fn measure_case(experiment: &dyn Untyped, case: &Planned, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>> {
    // The seed does not depend on other cases, on their order, or on threads.
    let seed = xxh3_64_with_seed(case.key.as_bytes(), seed);
    // Cases share no state that the panic could have left inconsistent.
    let caught = panic::catch_unwind(AssertUnwindSafe(|| experiment.measure(&case.case, seed, interrupt)));
    caught.unwrap_or_else(|panic| Err(anyhow!("panicked: {}", message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Returns a progress bar for work of this total effort. It appears on standard error, if that is a terminal.
fn progress_bar(name: &'static str, effort: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:8} {wide_bar} {percent:>3} %, {elapsed} so far, {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(effort).with_style(style).with_prefix(name).with_finish(ProgressFinish::AndClear);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Returns a line with the number of cases, and how many of them have been measured before.
fn announcement(plan: &Plan<'_>) -> String {
    let (all, left) = (format!("{}: {}", plan.name(), counted(plan.cases(), "case")), plan.cases_left());
    let by = plan.other_build().map_or_else(String::new, |build| format!(" by another build: {build}"));
    match plan.cases() - left {
        0 => all,
        _ if left == 0 => format!("{all}, all of them measured before{by}"),
        known => format!("{all}, {known} of them measured before"),
    }
}

/// Writes to standard error. If that fails, there is nowhere left to report it.
pub fn say(text: fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
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
fn check_same_build(file: &Path, there: &Run, here: &Run) -> anyhow::Result<()> {
    let is_same = there.build.is(&here.build);
    let [there, here] = [there, here].map(|run| format!("koel {}, {}", run.koel, run.build));
    ensure!(
        is_same,
        "{}: measured by another build, {there}, but this is {here}: continue with that build, {REMEDY}",
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
            about.memory_remedy
        );
    }
    Ok(usize::try_from(free / most.max(1)).unwrap_or(threads).clamp(1, threads))
}
