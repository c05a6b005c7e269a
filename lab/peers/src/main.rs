//! Compares koel with other filters from crates.io at one false-positive rate, as an experiment of the laboratory. With
//! `--growing`, it compares filters that grow.
//!
//! All filters get the same keys in one process and one thread, round by round, so that a machine that becomes slower affects
//! all of them. Every result of a lookup is counted, and a filter that loses keys has no times unless its documentation or code
//! admits it.

// `println!` and `eprintln!` panic when their pipe is closed.
#![warn(clippy::print_stdout, clippy::print_stderr)]
// Times, rates and sizes are rounded for display.
#![allow(clippy::cast_precision_loss)]

mod experiment;
mod findings;
// The counts are those of a thread: others, such as the one that waits for Ctrl-C, allocate and free memory at any time.
#[path = "../../../tests/common/heap.rs"]
mod heap;
mod measure;
mod ours;
mod peer;
mod rivals;
mod sets;
#[cfg(test)]
mod tests;

use std::{
    io::{self, ErrorKind, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, ensure};
use clap::{Parser, value_parser};
use koel_lab::{Outcome, Plan, Scope, Settings, report};

use crate::{
    experiment::Peers,
    heap::Counting,
    measure::Row,
    sets::{FIXED, GROWING},
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The greatest number of items. Each takes 24 bytes of keys, and one of the peers counts items in 32 bits.
const MAX_ITEMS: u64 = 1 << 32;

/// The range of rates. At lower rates, ten million absent keys give too few hits; at higher ones, whole bits are too coarse to
/// compare filters.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=0.1;

/// Compares koel with other filters from crates.io at one false-positive rate, and prints a table in Markdown.
///
/// Each filter is built from the same keys. Then it looks up as many absent keys, all present ones, and as many mixed keys, half of
/// them present; if it supports deletion, all items are removed, the first half in blocks of 1024. The table has the medians of all
/// rounds. Takes about 60 bytes of memory per item, most of them while the static filters are built. With the defaults, it takes
/// some minutes, during which the machine should do nothing else.
///
/// With --growing, the filters begin with room for 1000 items and grow up to all of them. This takes about 300 bytes of memory
/// per item, nearly all of them for one of the other crates.
///
/// It is an experiment like those of `koel experiment`: peers.json, peers.csv and peers-….svg in the folder (growth… with
/// --growing) have every round, the medians and charts, and report.html shows them beside the other experiments of the folder.
/// Ctrl-C stops it at any time; finished rounds are kept, and the same command continues from there.
#[derive(Parser)]
#[command(
    name = "koel-peers",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
    cargo run --release -p koel-peers
    cargo run --release -p koel-peers -- --growing
    cargo run --release -p koel-peers -- --rate 0.01 --items 1000000 --rounds 1 --again"
)]
struct Options {
    /// The false-positive rate of every filter that lets it be chosen, from 0.000001 to 0.1
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,

    /// Compare filters that grow, instead of filters of a fixed size
    #[arg(long)]
    growing: bool,

    /// The number of items in each filter, from 1 to 4294967296
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = value_parser!(u64).range(1..=MAX_ITEMS))]
    items: u64,

    /// The number of rounds, from 1 to 1000; each measures everything once
    #[arg(long, value_name = "R", default_value = "5", value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// The folder for results and charts
    #[arg(short, long, value_name = "FOLDER", default_value = "koel-experiments")]
    out: PathBuf,

    /// Measure again what was measured before
    #[arg(long)]
    again: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| format!("give a number from {} to {}, such as 0.001", RATES.start(), RATES.end()))
}

fn main() -> ExitCode {
    run(Options::parse()).unwrap_or_else(|error| {
        // If this fails, there is nowhere left to report it.
        writeln!(io::stderr(), "koel-peers: {error:#}").ok();
        ExitCode::FAILURE
    })
}

/// Measures the rounds that the folder does not have yet, and prints the table.
fn run(Options { rate, growing, items, rounds, out, again }: Options) -> anyhow::Result<ExitCode> {
    let set = if growing { &GROWING } else { &FIXED };
    let peers = Peers { set, rate, items: usize::try_from(items).context("--items")?, rounds };
    // The seed is not used, since the keys are always the same, and --items limits the size.
    let settings = Settings { folder: out, scope: Scope { quick: false, seed: 0, max_slots: None }, threads: 1, again };
    let plan = Plan::new(peers, &settings)?;
    let outcome = koel_lab::run("koel-peers", vec![plan], &settings)?;
    if outcome != Outcome::Complete {
        return Ok(outcome.into());
    }
    let measured = koel_lab::read_results(&settings.folder, set.name)?;
    print(&format!("{}\n{}\n", findings::markdown(set, &measured), settings.folder.join(report::FILE).display()))?;
    let failed = Row::all(&measured).iter().filter(|row| row.failure.is_some()).count();
    ensure!(failed == 0, "{failed} of the filters could not be measured; the notes say why");
    Ok(ExitCode::SUCCESS)
}

/// Writes to standard output. A closed pipe is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("standard output"),
    }
}
