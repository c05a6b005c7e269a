//! Case after case, on several threads.

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

/// What the threads share.
struct Shared<'a, E: Experiment> {
    known: &'a mut [Option<Measured<Case<E>, Row<E>>>],
    journal: &'a mut Journal,
    /// Cases to be measured; the last one comes first.
    todo: Vec<usize>,
    /// The first thing that went wrong.
    error: Option<anyhow::Error>,
}

/// Measures what is not known yet. If somebody wants it to stop, some cases remain unknown.
pub(super) fn measure<E: Experiment>(plan: &mut Plan<E>, interrupt: &Interrupt) -> anyhow::Result<()> {
    let start = Instant::now();
    let (experiment, cases, seed, before) = (&plan.experiment, &plan.cases, plan.run.scope.seed, plan.seconds);
    let mut todo: Vec<_> = (0..cases.len()).filter(|&case| plan.known[case].is_none()).rev().collect();
    if todo.is_empty() {
        return Ok(());
    }
    if !experiment.is_timed() {
        // What takes longest first: at the end all threads have something to do.
        todo.sort_by_key(|&case| experiment.effort(&cases[case]));
    }
    let effort = |case: usize| experiment.effort(&cases[case]).max(1);
    let progress = Progress::new(experiment.name(), todo.iter().map(|&case| effort(case)).sum());
    let threads = plan.threads.min(todo.len());
    let shared = Mutex::new(Shared::<E> { known: &mut plan.known, journal: &mut plan.journal, todo, error: None });
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    // One thread's error stops the others, too, as soon as they have finished what they are at.
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
            // Where there can be no more threads, those that there are do it.
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

/// Measures one case. A panic in it is an error as any other: the other threads' results are worth keeping.
fn one<E: Experiment>(experiment: &E, case: &Case<E>, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row<E>>> {
    let seed = seed_of(seed, case)?;
    // Whatever state it left behind is not looked at again: a case does not know of others.
    let caught = panic::catch_unwind(AssertUnwindSafe(|| experiment.measure(case, seed, interrupt)));
    let result = caught.unwrap_or_else(|panic| Err(anyhow!("panicked: {}", message(&*panic))));
    match result {
        Err(error) if !error.is::<Interrupted>() => {
            Err(error).with_context(|| format!("{}: {}", experiment.name(), key(case).unwrap_or_default()))
        }
        other => other,
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for a reason unknown")
}

/// A case has its own random numbers: they do not depend on what was measured before it, nor on which thread has it.
fn seed_of(seed: u64, case: &impl serde::Serialize) -> anyhow::Result<u64> {
    Ok(Xxh3.hash(seed, key(case)?.as_bytes()))
}
