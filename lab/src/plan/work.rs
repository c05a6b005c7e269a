//! Measures cases on several threads.

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Plan;
use crate::{
    Fields, Interrupt, Interrupted, Measured,
    experiment::{Planned, Untyped},
    record::Journal,
};

struct Shared<'a> {
    results: &'a mut [Option<Measured>],
    journal: &'a mut Journal,
    /// The indices of the cases left to measure. Threads take them from the end.
    todo: Vec<usize>,
    error: Option<anyhow::Error>,
}

/// Measures the cases that have no result. An interruption leaves some of them without one.
pub(super) fn measure(plan: &mut Plan<'_>, interrupt: &Interrupt) -> anyhow::Result<()> {
    let start = Instant::now();
    let (experiment, cases, seed, before) = (&*plan.experiment, &plan.cases, plan.run.scope.seed, plan.seconds);
    let name = plan.about.name;
    let mut todo: Vec<_> = (0..cases.len()).filter(|&case| plan.results[case].is_none()).rev().collect();
    if todo.is_empty() {
        return Ok(());
    }
    if !plan.about.is_timed {
        // Threads take the longest cases first, so that all of them are busy until the end.
        todo.sort_by_key(|&case| cases[case].effort);
    }
    let effort = |case: usize| cases[case].effort.max(1);
    let progress = progress_bar(name, todo.iter().map(|&case| effort(case)).sum());
    let threads = plan.threads.min(todo.len());
    let shared = Mutex::new(Shared { results: &mut plan.results, journal: &mut plan.journal, todo, error: None });
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    // An error in one thread stops the others after their current case.
    let worker = || {
        loop {
            let Some(index) = lock().todo.pop() else { return };
            if interrupt.is_set() {
                return;
            }
            let case = &cases[index];
            let result = measure_case(experiment, case, seed, interrupt)
                .map_err(|error| if error.is::<Interrupted>() { error } else { error.context(format!("{name}: {}", case.key)) });
            let mut shared = lock();
            let written = result.and_then(|rows| {
                let measured = Measured { case: case.case.clone(), rows };
                shared.journal.add(&measured, before + start.elapsed().as_secs_f64())?;
                shared.results[index] = Some(measured);
                Ok(())
            });
            match written {
                Ok(()) => progress.inc(effort(index)),
                Err(error) => {
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
    let error = shared.into_inner().unwrap_or_else(PoisonError::into_inner).error;
    plan.seconds += start.elapsed().as_secs_f64();
    error.map_or(Ok(()), Err)
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
