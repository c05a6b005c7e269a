//! `koel tune`: which parameters to take, what others would cost, and why not.

mod call;
mod nearest;
mod object;
mod others;
mod text;

use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgGroup, Args};
use koel::{
    CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, Recommendation, best_rate, recommend},
};

use crate::{
    messages,
    options::{self, Address, Table},
    stdout,
};
use call::Call;
use nearest::Nearest;
use others::Others;

/// Choose a filter's parameters: the smallest filter for a false-positive rate, or the lowest rate for so many bytes.
///
/// Prints all the filters that do, the best first, and what other structures cost at the same rate, by their authors' formulas;
/// then what was left out and why, and the call that builds the best. Nothing is built, so that any size can be tried. If no
/// filter does, it says what is nearest, and the exit status is 1.
#[derive(Args)]
#[command(
    group = ArgGroup::new("wanted").args(["fpr", "bytes"]).required(true).multiple(true),
    after_help = "\
Examples:
    koel tune --items 1000000 --fpr 0.001
    koel tune --items 1000000 --bytes 1.5MiB
    koel tune --items 50000 --fpr 0.01 --bytes 72KiB --copies 10 --deletes
    koel tune --items 1000000000000 --fpr 1e-6 --json"
)]
pub(crate) struct Tune {
    /// How many different items the filter must hold
    #[arg(long, value_name = "N", value_parser = options::capacity, allow_negative_numbers = true)]
    items: usize,

    /// The share of absent items that may seem to be there, between 0 and 1: finds the smallest filter
    #[arg(long, value_name = "E", value_parser = options::rate, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// The most bytes that the table may take: without --fpr, finds the lowest rate. With or without a unit: kB, MB, GB, TB
    /// are thousands, KiB, MiB, GiB, TiB 1024s
    #[arg(long, value_name = "BYTES", value_parser = options::bytes, allow_negative_numbers = true)]
    bytes: Option<usize>,

    /// Only this table
    #[arg(long, value_name = "TABLE")]
    table: Option<Table>,

    /// Only buckets of so many slots: 1 to 16 in the single table, 4 in the packed one
    #[arg(long, value_name = "B", value_parser = options::slots, allow_negative_numbers = true)]
    bucket_size: Option<u32>,

    /// How an item's buckets are found
    #[arg(long, value_name = "HOW", default_value = "any-size")]
    addressing: Address,

    /// How many copies of an item there must be room for, twice the slots of a bucket at most
    #[arg(long, value_name = "C", default_value = "1", value_parser = options::copies, allow_negative_numbers = true)]
    copies: u32,

    /// Items will be removed: leave out the structures that cannot. Each of ours can
    #[arg(long)]
    deletes: bool,

    /// As a JSON object, with numbers as numbers. `candidates` has the filters, the best first; `rejections` those left out,
    /// each with its `reason`; `others` other structures, the smallest first; `others_rejected` those left out. `builder` and
    /// `command` make the best filter, in Rust and with koel. If there is no candidate, these two are null, and `nearest` has
    /// `items`, `false_positive_rate` and `bytes`, any one of which would do instead of what was asked, or null
    #[arg(long)]
    json: bool,
}

/// All that there is to say.
struct Advice<'a> {
    asked: &'a Tune,
    filters: Recommendation,
    others: Others,
    /// What builds the best filter.
    call: Option<Call>,
    /// What would do instead, if nothing does.
    nearest: Option<Nearest>,
}

impl Tune {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.check()?;
        let filters = self.recommend(self.items, self.fpr, self.bytes);
        let best = filters.best();
        // Others are compared at the rate asked for; without one, at the rate that was found.
        let rate = self.fpr.or_else(|| best.map(Candidate::false_positive_rate));
        let advice = Advice {
            asked: &self,
            others: Others::at(rate, self.deletes),
            call: best.map(|best| Call::of(best, self.items, self.fpr)).transpose()?,
            nearest: if best.is_none() { Some(Nearest::to(&self)) } else { None },
            filters,
        };
        stdout::say(&if self.json { format!("{:#}\n", advice.object()) } else { advice.text() })?;
        Ok(if advice.call.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Refuses what no filter can be, whatever its size.
    fn check(&self) -> anyhow::Result<()> {
        let mut builder = CuckooFilter::builder().capacity(0);
        if let Some(table) = self.table {
            builder = builder.table(table.into());
        }
        if let Some(slots) = self.bucket_size {
            builder = builder.bucket_size(slots);
        }
        // With fingerprints that every table has.
        let params = builder.fingerprint_bits(32).params().map_err(|error| messages::parameter(&error))?;
        if let Some(rate) = self.fpr.filter(|rate| !(*rate > 0.0 && *rate < 1.0)) {
            let nearest = Nearest::rate(self, rate).map(|rate| format!("the nearest that works is {rate:?}"));
            let remedy = nearest.unwrap_or_else(|| String::from("change the other options, too"));
            bail!("--fpr: {rate} given, but it lies between 0 and 1, both excluded; {remedy}");
        }
        let is_packed = self.table.is_some_and(|table| TableKind::from(table) == TableKind::Packed);
        let (slots, room) = (params.bucket_size(), 2 * params.bucket_size());
        if self.copies > room && (is_packed || self.bucket_size.is_some()) {
            let option = if is_packed { "--table" } else { "--bucket-size" };
            bail!(
                "--copies: {} given, but buckets of {slots} slots have room for {room}; the nearest that works is {room}, or \
                 leave {option} out",
                self.copies
            );
        }
        Ok(())
    }

    /// The library's answer for these items, rate and bytes, with everything else as it was asked for.
    fn recommend(&self, items: usize, rate: Option<f64>, bytes: Option<usize>) -> Recommendation {
        let mut constraints = Constraints::default().addressing(self.addressing.into()).copies(self.copies);
        if let Some(table) = self.table {
            constraints = constraints.table(table.into());
        }
        if let Some(slots) = self.bucket_size {
            constraints = constraints.bucket_size(slots);
        }
        if let Some(bytes) = bytes {
            constraints = constraints.max_bytes(bytes);
        }
        match rate {
            Some(rate) => recommend(items, rate, &constraints),
            None => best_rate(items, bytes.unwrap_or(usize::MAX), &constraints),
        }
    }
}
