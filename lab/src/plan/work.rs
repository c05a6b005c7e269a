//! Measures cases on several threads.

use std::{
    any::Any,
    panic::{self, AssertUnwindSafe},
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use anyhow::{Context as _, anyhow};
use koel::{Hasher as _, Xxh3};

use super::{Case, Plan, Row, key, progress::Progress};
use crate::{
    experiment::{Experiment, Measured},
    interrupt::{Interrupt, Interrupted},
    record::Journal,
};

/// The state that the threads share.
struct Shared<'a, E: Experiment> {
    known: &'a mut [Option<Measured<Case<E>, Row<E>>>],
    journal: &'a mut Journal,
    /// The cases left to measure, taken from the end.
    todo: Vec<usize>,
    /// The first error.
    error: Option<anyhow::Error>,
}

/// Measures the cases without a result. If it is interrupted, some remain without.
pub(super) fn measure<E: Experiment>(plan: &mut Plan<E>, interrupt: &Interrupt) -> anyhow::Result<()> {
    let start = Instant::now();
    let (experiment, cases, seed, before) = (&plan.experiment, &plan.cases, plan.run.scope.seed, plan.seconds);
    let mut todo: Vec<_> = (0..cases.len()).filter(|&case| plan.known[case].is_none()).rev().collect();
    if todo.is_empty() {
        return Ok(());
    }
    if !experiment.is_timed() {
        // The longest cases first, so that all threads are busy until the end.
        todo.sort_by_key(|&case| experiment.effort(&cases[case]));
    }
    let effort = |case: usize| experiment.effort(&cases[case]).max(1);
    let progress = Progress::new(experiment.name(), todo.iter().map(|&case| effort(case)).sum());
    let threads = plan.threads.min(todo.len());
    let shared = Mutex::new(Shared::<E> { known: &mut plan.known, journal: &mut plan.journal, todo, error: None });
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    // An error in one thread stops the others after their current case.
    let worker = || {
        loop {
            let Some(place) = lock().todo.pop() else { return };
            if interrupt.is_set() {
                return;
            }
            let case = &cases[place];
            let result = one(experiment, case, seed, interrupt);
            let mut shared = lock();
            let written = result.and_then(|rows| {
                let measured = Measured { case: case.clone(), rows };
                shared.journal.add(&measured, before + start.elapsed().as_secs_f64())?;
                shared.known[place] = Some(measured);
                Ok(())
            });
            match written {
                Ok(()) => progress.add(effort(place)),
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
            // If the system has no more threads, the existing ones do the work.
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
fn one<E: Experiment>(experiment: &E, case: &Case<E>, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row<E>>> {
    let seed = seed_of(seed, case)?;
    // Cases share no state that the panic could have left inconsistent.
    let caught = panic::catch_unwind(AssertUnwindSafe(|| experiment.measure(case, seed, interrupt)));
    let result = caught.unwrap_or_else(|panic| Err(anyhow!("panicked: {}", message(&*panic))));
    match result {
        Err(error) if !error.is::<Interrupted>() => {
            Err(error).with_context(|| format!("{}: {}", experiment.name(), key(case).unwrap_or_default()))
        }
        other => other,
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// The seed of a case: independent of the other cases, of their order and of the threads.
fn seed_of(seed: u64, case: &impl serde::Serialize) -> anyhow::Result<u64> {
    Ok(Xxh3.hash(seed, key(case)?.as_bytes()))
}
