//! How the comparison is asked for.

use clap::Parser;

/// Keys take 16 bytes each, and one of the peers counts its items in 32 bits.
const MOST_ITEMS: u64 = 1 << 32;

/// Measures koel beside other filters of crates.io, and prints a table in Markdown.
///
/// Each filter is built of the same keys, asked for as many absent ones and for all that are in, and emptied, where it can
/// delete. The table has the medians of all rounds. Progress goes to standard error. Takes about 50 bytes of memory for
/// each item, most of it while the static filters are built, and with the defaults some minutes; leave the machine alone
/// meanwhile.
#[derive(Parser)]
#[command(
    name = "koel-peers",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
    cargo run --release -p koel-peers
    cargo run --release -p koel-peers -- --items 1000000 --rounds 1"
)]
pub(crate) struct Options {
    /// How many items each filter gets, from 1 to 4294967296
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = items, allow_negative_numbers = true)]
    pub(crate) items: usize,

    /// How often everything is measured, from 1 to 1000; the table has the medians
    #[arg(long, value_name = "R", default_value = "3", value_parser = rounds, allow_negative_numbers = true)]
    pub(crate) rounds: u32,
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
