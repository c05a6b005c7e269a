//! `koel tune`: recommended parameters, what others would cost, and why they were rejected.

mod call;
mod nearest;
mod object;
mod others;
mod plans;
mod text;
mod trial;
mod workload;

use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgGroup, Args};
use koel::{
    CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, HIGHEST_RATE, Recommendation, best_rate, recommend},
};

use crate::{
    figures::counted,
    messages,
    numbers::{self, Items, Share},
    options::{Address, Table},
    stdout,
    streams::Stream,
};
use call::Call;
use nearest::Nearest;
use others::Others;
use plans::Plans;
use trial::{Files, Keys, Trial};
use workload::Costs;

/// Choose a filter's parameters: the smallest filter for a false-positive rate, or the lowest rate for so many bytes.
///
/// Prints the filters that meet the requirements, the best first, and the size of other structures at the same rate, by their
/// authors' formulas; then what was left out and why, and the call that builds the best filter. Without --keys, it builds
/// nothing, so any size can be tried. Compares both kinds of tables and all bucket sizes; of each, it is the smallest filter for
/// the rate, or the one with the lowest rate for the bytes. A rate above 0.5 is of no use, since most absent items would be
/// reported as present. The rate ε shown is the one with these items in the filter; with --fpr, the rate at the filter's full
/// capacity meets the limit, too, and that may be higher. If no filter meets the requirements, prints the nearest values that
/// can be met; the exit status is then 1.
///
/// With --keys, builds the filters that it prints, and measures them: whether all keys fit, the load, the sizes of table and
/// snapshot, the false-positive rate with its 99 % interval, and the times, in several rounds. Asks them --queries, or keys that it
/// derives from yours.
///
/// With --false-positive-cost, finds the filter, and the rate, with the least expected time per operation for a workload, from
/// times that `koel experiment speed` has measured on this machine; and says whether a filter pays at all.
#[derive(Args)]
#[command(
    group = ArgGroup::new("wanted").args(["fpr", "bytes", "false_positive_cost"]).required(true).multiple(true),
    mut_arg("nul", |nul| nul.requires("keys")),
    after_help = "\
Examples:
    koel tune --items 1M --fpr 0.1%
    koel tune --items 1M --bytes 1.5MiB
    koel tune --items 1M..10M --fpr 0.1% --headroom 20%
    koel tune --items 50k --fpr 1% --bytes 72KiB --copies 10 --deletes
    koel tune --items 1T --fpr 1e-6 --json
    koel experiment speed --quick --max-slots 30k
    koel tune --items 10k --false-positive-cost 100us --absent 90%
    seq 1000 3000 > keys.txt
    seq 2000 9000 | koel tune --keys keys.txt --queries - --fpr 0.01"
)]
pub(crate) struct Tune {
    /// The number of distinct items that the filter must hold, such as 1000000, 1e6 or 1M; with --keys, by default the number of
    /// different keys. A range, such as 1M..10M, is the number now and the most there will ever be: compares a filter for the
    /// most, one that grows, and rebuilding; needs --fpr
    #[arg(
        long = "items",
        value_name = "N[..M]",
        required_unless_present = "keys",
        value_parser = numbers::items,
        allow_negative_numbers = true
    )]
    given_items: Option<Items>,

    /// The same, given or counted.
    #[arg(skip)]
    items: Items,

    /// Plan for so many more items: of a range, than its upper end; such as 50%, 0.5 or 1/2
    #[arg(long, value_name = "SHARE", value_parser = numbers::headroom, allow_negative_numbers = true)]
    headroom: Option<Share>,

    /// The number of different keys; 0 without keys.
    #[arg(skip)]
    counted_keys: usize,

    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.001,
    /// 0.1% or 1/1000. Finds the smallest filter
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// The maximum size of the table in bytes, or with a unit: k, kB, M, MB, G, GB, T, TB (powers of 1000), KiB, MiB, GiB,
    /// TiB (powers of 1024). Without --fpr, finds the lowest rate
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_negative_numbers = true)]
    bytes: Option<usize>,

    /// The kind of table; by default, both are compared
    #[arg(long, value_name = "TABLE")]
    table: Option<Table>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one; by default, all of them are compared
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_negative_numbers = true)]
    bucket_size: Option<u32>,

    /// The addressing: which numbers of buckets are possible
    #[arg(long, value_name = "HOW", default_value = "any-size")]
    addressing: Address,

    /// The number of copies of one item that must have room; two buckets hold them, so the limit is twice their slots
    #[arg(long, value_name = "C", default_value = "1", value_parser = numbers::copies, allow_negative_numbers = true)]
    copies: u32,

    /// Leave out structures that do not support deletion. All of koel's filters support it
    #[arg(long)]
    deletes: bool,

    /// Print all filters and all reasons; by default, the best filters, those with the default bucket size, and the first reasons
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    files: Files,

    #[command(flatten)]
    workload: workload::Options,

    /// Print a JSON object, with numbers as numbers. `candidates` has the filters, the best first; `rejections` those left out,
    /// each with its `reason`; `others` other structures, the smallest first; `others_rejected` those left out. `builder` and
    /// `command` build the best filter, in Rust and with koel. If there is no candidate, these two are null, and `nearest` has
    /// `items`, `false_positive_rate` and `bytes`: each of these values works in place of the one given, unless it is null. With a
    /// range, `plans` has the plans, with bytes and rates now and at the end, and a `builder` and a `command` each. With --keys,
    /// `trial` has what was counted, and `measured` of each candidate that was built what was measured of it; times are in
    /// nanoseconds. With --false-positive-cost, each candidate has a `cost_ns` with its parts, and `others` are other crates'
    /// filters
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
    /// What was measured, if there are keys.
    trial: Option<Trial>,
}

impl Tune {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        // Refused before anything is read.
        Stream::Stdout.check()?;
        let keys = self.files.keys()?;
        self.plan_for(keys.as_ref())?;
        self.check()?;
        if let Some(most) = self.items.most {
            return Plans::of(&self, self.items.now, most)?.say();
        }
        if let Some(costs) = Costs::of(&self)? {
            return costs.say();
        }
        let filters = self.recommend(self.items.now, self.fpr, self.bytes);
        let best = filters.best();
        // Other structures are compared at the given rate; without one, at the rate of the best filter.
        let rate = self.fpr.or_else(|| best.map(Candidate::false_positive_rate));
        let unique = keys.as_ref().is_some_and(Keys::has_duplicates);
        let call = best.map(|best| Call::of(best, self.planned(self.items.now), self.fpr)).transpose()?;
        let advice = Advice {
            asked: &self,
            others: Others::at(rate, self.deletes),
            call: call.map(|call| call.reading(unique, self.files.nul())),
            nearest: if best.is_none() { Some(Nearest::to(&self)) } else { None },
            trial: keys.map(|keys| self.files.measure(keys, &self.shown(&filters))).transpose()?,
            filters,
        };
        stdout::say(&if self.json { format!("{:#}\n", advice.object()) } else { advice.text() })?;
        Ok(if advice.call.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Takes the number of items from the options or from the keys.
    fn plan_for(&mut self, keys: Option<&Keys>) -> anyhow::Result<()> {
        self.counted_keys = keys.map_or(0, Keys::different);
        self.items = self.given_items.unwrap_or(Items { now: self.counted_keys, most: None });
        let Items { now, most } = self.items;
        if let (Some(most), Some(_)) = (most, keys) {
            bail!(
                "--items: the range {now}..{most} given, but --keys measures filters of one size; give one number, or leave --keys out"
            );
        }
        if let (Some(most), true) = (most, self.workload.are_given()) {
            bail!(
                "--items: the range {now}..{most} given, but --false-positive-cost compares filters of one size; give one number"
            );
        }
        if now < self.counted_keys {
            bail!(
                "--items: {now} given, but --keys has {}; give no less, or leave --items out",
                counted(self.counted_keys, "different key")
            );
        }
        Ok(())
    }

    /// Refuses parameters that no filter can have, whatever its size.
    fn check(&self) -> anyhow::Result<()> {
        let most = self.most_items();
        if self.headroom.is_some_and(|share| share.added_to(most).is_none()) {
            bail!("--headroom: with {most} --items, that is more than the largest number, {}; give fewer items", usize::MAX);
        }
        let mut builder = CuckooFilter::builder().capacity(0);
        if let Some(table) = self.table {
            builder = builder.table(table.into());
        }
        if let Some(slots) = self.bucket_size {
            builder = builder.bucket_size(slots);
        }
        // Every table has fingerprints of this length.
        let params = builder.fingerprint_bits(32).params().map_err(|error| messages::parameter(&error))?;
        if let Some(rate) = self.fpr.filter(|rate| !(*rate > 0.0 && *rate <= HIGHEST_RATE)) {
            bail!("--fpr: {rate} given, but {}", self.useful_rate(rate));
        }
        let is_packed = self.table.is_some_and(|table| TableKind::from(table) == TableKind::Packed);
        let (slots, room) = (params.bucket_size(), 2 * params.bucket_size());
        if self.copies > room && (is_packed || self.bucket_size.is_some()) {
            let option = if is_packed { "--table" } else { "--bucket-size" };
            bail!(
                "--copies: {} given, but buckets of {} have room for {room}; the nearest that works is {room}, or \
                 leave {option} out",
                self.copies,
                counted(slots, "slot")
            );
        }
        Ok(())
    }

    /// The limits of rates, and the nearest one that works.
    fn useful_rate(&self, given: f64) -> String {
        let least = self.recommend(self.most_items(), Some(HIGHEST_RATE), None).best().map(Candidate::bytes);
        let (why, nearest) = if given > HIGHEST_RATE {
            let size = least.map(|least| format!("{HIGHEST_RATE}, which takes {}", counted(least, "byte")));
            (format!("with more than {HIGHEST_RATE} most absent items would be reported as present"), size)
        } else {
            let lowest = Nearest::lowest_rate(self).map(|lowest| format!("{lowest:?}"));
            (format!("it lies between 0 and {HIGHEST_RATE}, 0 excluded"), lowest)
        };
        match (nearest, least, self.bytes) {
            (_, Some(least), Some(most)) if least > most => format!("{why}; give --fpr {HIGHEST_RATE} and --bytes {least}"),
            (Some(nearest), ..) => format!("{why}; the nearest that works is {nearest}"),
            (None, ..) => format!("{why}; change the other options, too"),
        }
    }

    /// The number of items, or the upper end of the range.
    fn most_items(&self) -> usize {
        self.items.most.unwrap_or(self.items.now)
    }

    /// So many items, and the headroom.
    fn planned(&self, items: usize) -> usize {
        self.headroom.map_or(items, |share| share.added_to(items).unwrap_or(usize::MAX))
    }

    /// The library's recommendation for these items with their headroom, rate and bytes, with the other options as given.
    fn recommend(&self, items: usize, rate: Option<f64>, bytes: Option<usize>) -> Recommendation {
        self.recommend_for(self.planned(items), rate, bytes)
    }

    /// The same for a number that has its headroom already.
    fn recommend_for(&self, items: usize, rate: Option<f64>, bytes: Option<usize>) -> Recommendation {
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
