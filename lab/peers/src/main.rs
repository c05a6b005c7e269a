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
mod measure;
mod ours;
mod peer;
mod rivals;
#[cfg(test)]
mod tests;

use std::{
    env::consts,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context as _;
use clap::Parser;
use koel_lab::{Build, Machine, Outcome, Plan, Scope, Settings, Stopwatch, report};

use crate::{
    experiment::{Peers, Set},
    measure::{Contestant, Row},
    peer::Keys,
};

/// An item takes 24 bytes of keys, and one of the peers counts items in 32 bits.
const MOST_ITEMS: u64 = 1 << 32;

/// Below, ten million absent keys give too few hits; above, whole bits are too coarse for rates to be comparable.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=0.1;

/// Compares koel with other filters of crates.io at one false-positive rate, and prints a table in Markdown.
///
/// Each filter is built from the same keys. Then it looks up as many absent keys, all present ones, and as many of which half
/// are present; if it supports deletion, all items are removed. The table has the medians of all rounds. Progress goes to
/// standard error. Takes about 60 bytes of memory per item, most of them while the static filters are built, and with the
/// defaults some minutes, during which the machine should do nothing else.
///
/// With --growing, the filters begin with room for 1000 items and grow up to all of them. This takes about 300 bytes of memory
/// per item, nearly all of them for one of the other crates.
///
/// With --out, it runs as an experiment like those of `koel experiment`: peers.json, peers.csv and peers-….svg in the folder
/// (growth… with --growing) have every round, the medians and charts, and report.html shows them beside the other experiments
/// of the folder. Ctrl-C stops it at any time; finished rounds are kept, and the same command continues from there.
#[derive(Parser)]
#[command(
    name = "koel-peers",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
    cargo run --release -p koel-peers
    cargo run --release -p koel-peers -- --quick
    cargo run --release -p koel-peers -- --growing
    cargo run --release -p koel-peers -- --rate 0.01 --items 1000000 --rounds 5
    cargo run --release -p koel-peers -- --out koel-experiments"
)]
struct Options {
    /// The false-positive rate of every filter that lets it be chosen, from 0.000001 to 0.1
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,

    /// Compare filters that grow, instead of filters of a fixed size
    #[arg(long)]
    growing: bool,

    /// For a first look: one million items in one round, unless --items or --rounds is given
    #[arg(long)]
    quick: bool,

    /// The number of items in each filter, from 1 to 4294967296 [default: 10000000]
    #[arg(long, value_name = "N", value_parser = items, allow_negative_numbers = true)]
    items: Option<usize>,

    /// How many times everything is measured, from 1 to 1000; the table has the medians [default: 5]
    #[arg(long, value_name = "R", value_parser = rounds, allow_negative_numbers = true)]
    rounds: Option<u32>,

    /// Write results and charts into this folder, instead of printing a table
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Measure again what was measured before
    #[arg(long, requires = "out")]
    again: bool,
}

impl Options {
    /// The comparison to run.
    fn peers(&self) -> Peers {
        let set = if self.growing { Set::Growing } else { Set::Fixed };
        Peers { set, rate: self.rate, items: self.items(), rounds: self.rounds() }
    }

    fn items(&self) -> usize {
        self.items.unwrap_or(if self.quick { 1_000_000 } else { 10_000_000 })
    }

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 5 })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| format!("give a number from {} to {}, such as 0.001", RATES.start(), RATES.end()))
}

fn items(text: &str) -> Result<usize, String> {
    let number = text.parse::<u64>().ok().filter(|items| (1..=MOST_ITEMS).contains(items));
    // On a 32-bit machine, the largest number does not fit.
    let items = number.and_then(|items| usize::try_from(items).ok());
    items.ok_or_else(|| format!("give a whole number from 1 to {MOST_ITEMS}, such as 10000000"))
}

fn rounds(text: &str) -> Result<u32, String> {
    let rounds = text.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
    rounds.ok_or_else(|| String::from("give a whole number from 1 to 1000, such as 3"))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let failed = match &options.out {
        Some(folder) => write(&options, folder),
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
    print(&(findings::markdown(options.peers(), &rows) + "\n" + &machine(rate, items, rounds) + "\n"))?;
    Ok(rows.iter().filter(|row| row.failure().is_some()).count())
}

/// Measures the rounds that the folder does not have yet. Returns the number of filters that failed, `None` if interrupted.
fn write(options: &Options, folder: &Path) -> anyhow::Result<Option<usize>> {
    let settings = Settings {
        folder: folder.to_owned(),
        // There is no seed, since the keys are always the same; --items limits the size.
        scope: Scope { quick: options.quick, seed: 0, max_slots: None },
        threads: 1,
        again: options.again,
    };
    let plan = Plan::new(options.peers(), &settings)?;
    let name = plan.name();
    if koel_lab::run("koel-peers", vec![plan], &settings)? == Outcome::Interrupted {
        return Ok(None);
    }
    let rows = experiment::rows(&koel_lab::read_results(folder, name)?);
    print(&format!("{}\n", folder.join(report::FILE).display()))?;
    Ok(Some(rows.iter().filter(|row| row.failure().is_some()).count()))
}

/// The line below the table.
fn machine(rate: f64, items: usize, rounds: u32) -> String {
    let Machine { processor, cores, kernel, optimized, .. } = Machine::here();
    let cores = match cores {
        1 => String::from("1 core"),
        cores => format!("{cores} cores"),
    };
    let rounds = if rounds == 1 { String::from("1 round") } else { format!("medians of {rounds} rounds") };
    let build = Build::here();
    let compiler = build.compiler.as_ref().map_or_else(String::new, |compiler| format!(", {compiler}"));
    let unoptimized = if optimized { "" } else { ", WITHOUT OPTIMIZATION: add --release" };
    format!(
        "{processor}, {cores}, {}, koel's kernel {kernel}: ε = {rate}, {items} items, {rounds}, {}{compiler}{unoptimized}",
        consts::OS,
        build.source()
    )
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
