//! The laboratory: experiments on filters, their results on disk, charts and a report.
//!
//! An [`Experiment`] is a list of cases, a measurement of one case, and the charts and tables of all of them. A [`Plan`]
//! first checks whether the experiment can run at all, then measures its cases, on several threads unless time is measured.
//! Each finished case is kept, however the run ends, and the next run continues from there. [`report`] combines all results
//! of a folder in one page. [`run`] does all of this for several experiments, as the command `koel experiment` does: a `main`
//! of ten lines is enough for an experiment of one's own, as the example of [`Experiment`] shows.
//!
//! [`compare`] says how the results of two folders differ, beyond what chance explains.
//!
//! The files in a folder of results begin with the experiment's name: `load.json` has everything, `load.csv` the rows as a
//! table, `load-….svg` are the charts.
//!
//! [`structures`] has the sizes of other data structures, by their authors' formulas.

// Counts are converted to shares, and shares to pixels.
#![allow(clippy::cast_precision_loss)]

pub mod chart;
pub mod compare;
mod experiment;
pub mod experiments;
mod interrupt;
mod percent;
mod plan;
mod provenance;
mod record;
pub mod report;
mod runner;
mod statistics;
mod stopwatch;
pub mod structures;

pub use {
    chart::{Axis, Chart, Mark, Scale, Series},
    experiment::{About, Column, Experiment, Fields, Findings, Measured, Role, Scope, Table},
    interrupt::{Interrupt, Interrupted},
    percent::percent,
    plan::{Outcome, Plan, Settings},
    provenance::{Build, Machine},
    record::read_results,
    runner::{run, say},
    statistics::{Quartiles, interval},
    stopwatch::{Lap, Rounds, Stopwatch, Timing},
};
