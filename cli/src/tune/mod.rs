//! `koel tune`: recommended parameters, what others would cost, and why they were rejected.

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
/// Prints all filters that meet the requirements, the best first, and the size of other structures at the same rate, by their
/// authors' formulas; then what was left out and why, and the call that builds the best filter. Builds nothing, so any size can
/// be tried. Of each kind of table and each bucket size, it is the smallest table for the items, with fingerprints as short as
/// the rate allows, or as long as the bytes allow. The rate ε shown is the one with these items in the filter; with --fpr, the
/// rate at the filter's full capacity meets the limit, too, and that may be higher. If no filter meets the requirements, prints the nearest values that can be met; the exit status is then 1.
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
    /// The number of distinct items that the filter must hold
    #[arg(long, value_name = "N", value_parser = options::capacity, allow_negative_numbers = true)]
    items: usize,

    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1. Finds the smallest
    /// filter
    #[arg(long, value_name = "E", value_parser = options::rate, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// The maximum size of the table in bytes, or with a unit: kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of
    /// 1024). Without --fpr, finds the lowest rate
    #[arg(long, value_name = "BYTES", value_parser = options::bytes, allow_negative_numbers = true)]
    bytes: Option<usize>,

    /// The kind of table; by default, both are compared
    #[arg(long, value_name = "TABLE")]
    table: Option<Table>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one; by default, several are compared
    #[arg(long, value_name = "B", value_parser = options::slots, allow_negative_numbers = true)]
    bucket_size: Option<u32>,

    /// The addressing: which numbers of buckets are possible
    #[arg(long, value_name = "HOW", default_value = "any-size")]
    addressing: Address,

    /// The number of copies of one item that must have room; two buckets hold them, so the limit is twice their slots
    #[arg(long, value_name = "C", default_value = "1", value_parser = options::copies, allow_negative_numbers = true)]
    copies: u32,

    /// Leave out structures that do not support deletion. All of koel's filters support it
    #[arg(long)]
    deletes: bool,

    /// Print a JSON object, with numbers as numbers. `candidates` has the filters, the best first; `rejections` those left out,
    /// each with its `reason`; `others` other structures, the smallest first; `others_rejected` those left out. `builder` and
    /// `command` build the best filter, in Rust and with koel. If there is no candidate, these two are null, and `nearest` has
    /// `items`, `false_positive_rate` and `bytes`: each of these values works in place of the one given, unless it is null
    #[arg(long)]
    json: bool,
}

/// Everything to print.
struct Advice<'a> {
    asked: &'a Tune,
    filters: Recommendation,
    others: Others,
    /// The call that builds the best filter.
    call: Option<Call>,
    /// Values that work, if those given do not.
    nearest: Option<Nearest>,
}

impl Tune {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.check()?;
        let filters = self.recommend(self.items, self.fpr, self.bytes);
        let best = filters.best();
        // Other structures are compared at the given rate; without one, at the rate of the best filter.
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

    /// Refuses parameters that no filter can have, whatever its size.
    fn check(&self) -> anyhow::Result<()> {
        let mut builder = CuckooFilter::builder().capacity(0);
        if let Some(table) = self.table {
            builder = builder.table(table.into());
        }
        if let Some(slots) = self.bucket_size {
            builder = builder.bucket_size(slots);
        }
        // Every table has fingerprints of this length.
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
                "--copies: {} given, but buckets of {} have room for {room}; the nearest that works is {room}, or \
                 leave {option} out",
                self.copies,
                text::counted(slots, "slot")
            );
        }
        Ok(())
    }

    /// The library's recommendation for these items, rate and bytes, with the other options as given.
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
