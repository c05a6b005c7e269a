//! The laboratory: runs experiments on filters, stores their results, and draws charts and a report.
//!
//! An [`Experiment`] defines a list of cases, how to measure one case, and the charts and tables of all results. A [`Plan`]
//! first checks that the experiment can run, then measures its cases: on several threads, or on one if it measures time.
//! Finished cases are kept even if the run is interrupted or fails, and the next run continues from there. [`report`] combines
//! all results in a folder into one page. [`run`] does all of this for several experiments, as the command `koel experiment`
//! does. Your own experiment needs a `main` of ten lines; the example of [`Experiment`] has one.
//!
//! [`compare`] shows how the results in two folders differ, beyond what chance explains.
//!
//! The names of result files begin with the experiment's name: `load.json` has everything, `load.csv` has the rows as a table,
//! and `load-….svg` are the charts.
//!
//! [`structures`] has the sizes of other data structures, by their authors' formulas.

// Counts are converted to shares, and shares to pixels.
#![allow(clippy::cast_precision_loss)]

pub mod chart;
pub mod compare;
mod experiment;
pub mod experiments;
mod files;
mod interrupt;
mod provenance;
mod record;
pub mod report;
mod runner;
mod statistics;
mod stopwatch;
pub mod structures;
mod text;

pub use {
    chart::{Axis, Chart, Mark, Scale, Series},
    experiment::{About, Column, Experiment, Fields, Findings, Measured, Role, Scope, Table},
    interrupt::{Interrupt, Interrupted, Signal, on_termination},
    provenance::{Build, Machine},
    record::read_results,
    runner::{Outcome, Plan, Settings, run, say},
    statistics::{Quartiles, interval},
    stopwatch::{Lap, Rounds, Stopwatch, Timing},
    text::{counted, percent},
};
