//! The options of the command.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::{experiment::Peers, set::Set};

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
pub(crate) struct Options {
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
    pub(crate) fn peers(&self) -> Peers {
        let set = if self.growing { Set::Growing } else { Set::Fixed };
        Peers { set, rate: self.rate, items: self.items(), rounds: self.rounds() }
    }

    pub(crate) fn quick(&self) -> bool {
        self.quick
    }

    /// The folder of the results, if they do not go to standard output.
    pub(crate) fn out(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    pub(crate) fn again(&self) -> bool {
        self.again
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_million_items_in_one_round() {
        let sizes = |arguments: &str| {
            let options = Options::parse_from(arguments.split_whitespace());
            (options.items(), options.rounds())
        };
        assert_eq!(sizes("koel-peers"), (10_000_000, 5));
        assert_eq!(sizes("koel-peers --quick"), (1_000_000, 1));
        assert_eq!(sizes("koel-peers --quick --items 5"), (5, 1));
        assert_eq!(sizes("koel-peers --quick --rounds 5"), (1_000_000, 5));
        assert_eq!(sizes("koel-peers --items 5 --rounds 5"), (5, 5));
    }
}
