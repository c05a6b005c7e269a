//! How the comparison is asked for.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::experiment::Peers;

/// Keys take 24 bytes each, and one of the peers counts its items in 32 bits.
const MOST_ITEMS: u64 = 1 << 32;

/// Below, ten million absent keys see next to nothing of the rate; above, whole bits are too coarse for rates to be equal.
const RATES: std::ops::RangeInclusive<f64> = 1e-6..=0.1;

/// Measures koel beside other filters of crates.io at one false-positive rate, and prints a table in Markdown.
///
/// Each filter is built of the same keys, asked for as many absent ones, for all that are in and for as many of which half
/// are in, and emptied, where it can delete. The table has the medians of all rounds. Progress goes to standard error. Takes
/// about 60 bytes of memory for each item, most of it while the static filters are built, and with the defaults some
/// minutes; leave the machine alone meanwhile.
///
/// With --out, it is an experiment as those of `koel experiment`: peers.json, peers.csv and peers-….svg in the folder have
/// every round, its medians and charts, and report.html shows them beside the folder's other experiments. Ctrl-C ends it at
/// any time; rounds that were finished are kept, and the same command goes on from there.
#[derive(Parser)]
#[command(
    name = "koel-peers",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
    cargo run --release -p koel-peers
    cargo run --release -p koel-peers -- --quick
    cargo run --release -p koel-peers -- --rate 0.01 --items 1000000 --rounds 5
    cargo run --release -p koel-peers -- --out koel-experiments"
)]
pub(crate) struct Options {
    /// The false-positive rate of every filter that lets it be chosen, from 0.000001 to 0.1
    #[arg(long, value_name = "E", default_value = "0.001", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,

    /// For a first look: a million items in one round, where nothing else is said
    #[arg(long)]
    quick: bool,

    /// How many items each filter gets, from 1 to 4294967296 [default: 10000000]
    #[arg(long, value_name = "N", value_parser = items, allow_negative_numbers = true)]
    items: Option<usize>,

    /// How often everything is measured, from 1 to 1000; the table has the medians [default: 3]
    #[arg(long, value_name = "R", value_parser = rounds, allow_negative_numbers = true)]
    rounds: Option<u32>,

    /// Write results and charts into this folder, instead of printing a table
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Measure again what the folder has already
    #[arg(long, requires = "out")]
    again: bool,
}

impl Options {
    /// What is to be compared.
    pub(crate) fn peers(&self) -> Peers {
        Peers { rate: self.rate, items: self.items(), rounds: self.rounds() }
    }

    pub(crate) fn quick(&self) -> bool {
        self.quick
    }

    /// Where the results go, if not to standard output.
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
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| RATES.contains(rate));
    rate.ok_or_else(|| format!("it takes a number from {} to {}, such as 0.001", RATES.start(), RATES.end()))
}

fn items(text: &str) -> Result<usize, String> {
    let number = text.parse::<u64>().ok().filter(|items| (1..=MOST_ITEMS).contains(items));
    // On a 32-bit machine, the last one is one too many.
    let items = number.and_then(|items| usize::try_from(items).ok());
    items.ok_or_else(|| format!("it takes a whole number from 1 to {MOST_ITEMS}, such as 10000000"))
}

fn rounds(text: &str) -> Result<u32, String> {
    let rounds = text.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
    rounds.ok_or_else(|| String::from("it takes a whole number from 1 to 1000, such as 3"))
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
        assert_eq!(sizes("koel-peers"), (10_000_000, 3));
        assert_eq!(sizes("koel-peers --quick"), (1_000_000, 1));
        assert_eq!(sizes("koel-peers --quick --items 5"), (5, 1));
        assert_eq!(sizes("koel-peers --quick --rounds 5"), (1_000_000, 5));
        assert_eq!(sizes("koel-peers --items 5 --rounds 5"), (5, 5));
    }
}
