//! Compares koel with other filters of crates.io at one false-positive rate: in a table, by `cargo run --release -p
//! koel-peers`, or, with `--out FOLDER`, as an experiment of the laboratory, with charts. With `--growing`, it compares filters
//! that grow.
//!
//! All filters get the same keys in one process and one thread, round by round, so that a machine that becomes slower does so
//! for all of them. Every answer is used and counted, and the times of a filter that loses keys do not count.

// `println!` and `eprintln!` panic when their pipe is closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]
// Times, rates and sizes are rounded for display anyway.
#![allow(clippy::cast_precision_loss)]

mod experiment;
mod findings;
mod keys;
mod machine;
mod measure;
mod memory;
mod options;
mod ours;
mod peer;
mod results;
mod rivals;
mod row;
mod set;
mod table;
#[cfg(test)]
mod tests;

use std::{
    io::{self, ErrorKind, Write as _},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use clap::Parser as _;
use koel_lab::Stopwatch;

use crate::{experiment::Peers, keys::Keys, measure::Contestant, options::Options, row::Row};

fn main() -> ExitCode {
    let options = Options::parse();
    let failed = match options.out() {
        Some(folder) => results::write(&options, folder),
        None => run(&options).map(Some),
    };
    match failed {
        Ok(Some(0)) => ExitCode::SUCCESS,
        Ok(None) => ExitCode::from(koel_lab::Interrupt::STATUS),
        Ok(Some(failed)) => {
            say(format_args!("koel-peers: {failed} of the filters could not be measured; the notes say why\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(format_args!("koel-peers: {error:#}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Measures all filters, prints the table, and returns the number of filters that failed.
fn run(options: &Options) -> anyhow::Result<usize> {
    let Peers { set, rate, items, rounds } = options.peers();
    let keys = Keys::new(items)?;
    let rows = measure_all(&set.contestants(rate), &keys, rounds);
    print(&(table::markdown(set, &rows, items) + "\n" + &machine::line(rate, items, rounds) + "\n"))?;
    Ok(rows.iter().filter(|row| row.failure().is_some()).count())
}

/// Measures all filters in each round.
fn measure_all(contestants: &[Box<dyn Contestant>], keys: &Keys, rounds: u32) -> Vec<Row> {
    let start = Instant::now();
    let mut watch = Stopwatch::new();
    let mut rows: Vec<_> = contestants.iter().map(|contestant| Row::new(contestant.facts(keys.len()))).collect();
    for round in 1..=rounds {
        for (contestant, row) in contestants.iter().zip(&mut rows) {
            if row.failure().is_none() {
                say(format_args!("{:4} s  round {round} of {rounds}: {}\n", start.elapsed().as_secs(), row.filter()));
                row.measure(&**contestant, keys, &mut watch);
            }
        }
    }
    rows
}

/// Writes to standard output. A closed pipe is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Writes to standard error. Errors are ignored: there is nowhere left to report them.
fn say(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
}
