//! The laboratory: experiments that measure filters, what they write down, and how it is drawn.
//!
//! An [`Experiment`] is a list of cases, a measurement of one of them, and charts of what all of them gave. A [`Plan`] checks
//! whether it can be done at all, then does it, case after case, on as many threads as do not disturb it; what is finished
//! is kept, whatever happens, and a later run goes on from there. [`report`] makes one page of all that is in a folder.
//!
//! Everything in a folder of results has the experiment's name: `load.json` is all there is to know, `load.csv` its rows as a
//! table, `load-….svg` the charts.

// Counts become shares, and shares pixels.
#![allow(clippy::cast_precision_loss)]

pub mod chart;
mod experiment;
pub mod experiments;
mod interrupt;
mod machine;
mod plan;
mod record;
pub mod report;
mod statistics;
pub mod structures;

pub use {
    chart::{Axis, Chart, Mark, Scale, Series},
    experiment::{Experiment, Findings, Measured, Scope, Table},
    interrupt::{Interrupt, Interrupted},
    machine::Machine,
    plan::{Outcome, Plan, Settings, Step},
    record::measured,
    statistics::median,
};
