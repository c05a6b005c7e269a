//! Case after case, on several threads.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Instant,
};

use koel::{Hasher as _, Xxh3};

use super::{Case, Plan, Row, progress::Progress};
use crate::{
    experiment::{Experiment, Measured},
    interrupt::{Interrupt, Interrupted},
    record::Journal,
};

/// What the threads share.
struct Shared<'a, E: Experiment> {
    known: &'a mut [Option<Measured<Case<E>, Row<E>>>],
    journal: Journal,
    /// Cases to be measured; the last one comes first.
    todo: Vec<usize>,
    /// The first thing that went wrong.
    error: Option<anyhow::Error>,
}

/// Measures what is not known yet; the seconds it took. If somebody wants it to stop, some cases remain unknown.
pub(super) fn measure<E: Experiment>(
    plan: &mut Plan<E>,
    journal: Journal,
    interrupt: &Interrupt,
) -> anyhow::Result<(f64, Journal)> {
    let start = Instant::now();
    let (experiment, cases, seed) = (&plan.experiment, &plan.cases, plan.run.scope.seed);
    let mut todo: Vec<_> = (0..cases.len()).filter(|&case| plan.known[case].is_none()).rev().collect();
    if !experiment.is_timed() {
        // What takes longest first: at the end all threads have something to do.
        todo.sort_by_key(|&case| experiment.effort(&cases[case]));
    }
    let effort = |case: usize| experiment.effort(&cases[case]).max(1);
    let progress = Progress::new(experiment.name(), todo.iter().map(|&case| effort(case)).sum());
    let shared = Mutex::new(Shared::<E> { known: &mut plan.known, journal, todo, error: None });
    let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
    // One thread's error stops the others, too.
    let worker = || {
        loop {
            let Some(place) = lock().todo.pop() else { return };
            if interrupt.is_set() {
                return;
            }
            let case = &cases[place];
            let result = seed_of(seed, case).and_then(|seed| experiment.measure(case, seed, interrupt));
            let mut shared = lock();
            let written = result.and_then(|rows| {
                let measured = Measured { case: case.clone(), rows };
                shared.journal.add(&measured)?;
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
        for _ in 1..plan.threads {
            scope.spawn(worker);
        }
        worker();
    });
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.error {
        Some(error) => Err(error),
        None => Ok((start.elapsed().as_secs_f64(), shared.journal)),
    }
}

/// A case has its own random numbers: they do not depend on what was measured before it, nor on which thread has it.
fn seed_of(seed: u64, case: &impl serde::Serialize) -> anyhow::Result<u64> {
    Ok(Xxh3.hash(seed, serde_json::to_string(case)?.as_bytes()))
}
