//! Koel beside the other filters of crates.io at one false-positive rate, in one table: `cargo run --release -p koel-peers`;
//! or, with `--out FOLDER`, as an experiment of koel's laboratory, with charts.
//!
//! All filters get the same keys in one process, one thread, one round after another, so that a machine that slows down
//! slows down everybody. Every answer is consumed and counted: a figure of a filter that forgets its keys is none.

// `println!` and its like panic when the pipe behind them is closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]
// Times, rates and sizes are for people to read.
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

/// Everybody who is measured, as near to this false-positive rate as can be: koel first.
fn contestants(rate: f64) -> Vec<Box<dyn Contestant>> {
    ours::all(rate).into_iter().chain(rivals::all(rate)).collect()
}

/// Measures, prints, and says how many failed.
fn run(options: &Options) -> anyhow::Result<usize> {
    let Peers { rate, items, rounds } = options.peers();
    let keys = Keys::new(items)?;
    let rows = measure_all(&contestants(rate), &keys, rounds);
    print(&(table::markdown(&rows, items) + "\n" + &machine::line(rate, items, rounds) + "\n"))?;
    Ok(rows.iter().filter(|row| row.failure().is_some()).count())
}

/// Round after round, and in each of them everybody.
fn measure_all(contestants: &[Box<dyn Contestant>], keys: &Keys, rounds: u32) -> Vec<Row> {
    let start = Instant::now();
    let mut rows: Vec<_> = contestants.iter().map(|contestant| Row::new(contestant.facts(keys.len()))).collect();
    for round in 1..=rounds {
        for (contestant, row) in contestants.iter().zip(&mut rows) {
            if row.failure().is_none() {
                say(format_args!("{:4} s  round {round} of {rounds}: {}\n", start.elapsed().as_secs(), row.filter()));
                row.measure(&**contestant, keys);
            }
        }
    }
    rows
}

/// Writes to standard output. If nobody reads it any more, they have seen enough.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}

/// Writes to standard error. If that fails, there is nowhere left to say so.
fn say(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_fmt(text).ok();
}
