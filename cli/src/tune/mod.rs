//! `koel tune`: which filter to build, what others would cost, and why they were left out.

mod answer;
mod call;
mod measure;
mod plans;
mod trace;
mod trial;
mod workload;

use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgGroup, Args};
use koel::{
    Addressing, Builder, CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, HIGHEST_RATE, Recommendation, best_rate, recommend},
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    errors,
    numbers::{self, Items, Share},
    options,
    terminal::{self, Stream},
    text::{counted, wrapped},
};
use answer::{Advice, Rejected};
use call::Call;
use plans::Comparison;
use trace::Trace;
use trial::Keys;

/// Choose a filter's parameters: the smallest filter for a false-positive rate, or the lowest rate for a number of bytes.
///
/// Prints the filters that meet the requirements, best first; the size of other structures at the same rate, by their authors'
/// formulas; what was left out, and why; and the call that builds the best filter. Both kinds of tables and all bucket sizes are
/// compared: a row is the smallest filter for the rate, or the one with the lowest rate for the bytes. The rate ε shown is the one
/// with these items in the filter. With --fpr, the rate at full capacity meets the limit, too. A rate above 0.5 is refused: most
/// absent items would be reported as present. If no filter meets the requirements, prints the nearest values that work, and exits
/// with status 1.
///
/// Four ways to ask for more:
///
/// --items 1M..10M compares plans for a number of items that grows: one large filter, one that grows, and rebuilding.
///
/// --keys builds these filters from your keys and measures them: whether all keys fit, load, bytes of table and snapshot, the
/// false-positive rate with its 99 % interval, and times. Asks your --queries, or random keys.
///
/// --trace replays a log of real operations against these filters and one that grows: false negatives (there are none), false
/// positives, load over time, refused insertions, bytes, and the time per operation.
///
/// --false-positive-cost finds the filter, and the rate, for a workload: the least expected time per operation, where twice the
/// memory must save 10 % of the time, and the smallest filter wins within 5 %. Uses times that `koel experiment speed` has measured
/// on this machine, and says whether a filter pays at all.
#[derive(Args)]
#[command(
    group = ArgGroup::new("wanted").args(["fpr", "bytes", "false_positive_cost"]).required(true).multiple(true),
    group = ArgGroup::new("lists").args(["keys", "trace"]),
    mut_arg("nul", |nul| nul.requires("lists")),
    after_help = "\
Examples:
    koel tune --items 1M --fpr 0.1%
    koel tune --items 1M --bytes 1.5MiB
    koel tune --items 1M..10M --fpr 0.1% --headroom 20%
    koel tune --items 50k --fpr 1% --bytes 72KiB --bucket-size 8 --deletes
    koel tune --items 1T --fpr 1e-6 --json
    koel experiment speed --quick --max-slots 30k
    koel tune --items 10k --false-positive-cost 100us --absent 90%
    seq 1000 3000 > keys.txt
    seq 2000 9000 | koel tune --keys keys.txt --queries - --fpr 0.01
    { seq -f 'insert %.0f' 3000; seq -f 'query %.0f' 9000; seq -f 'remove %.0f' 999; } > log.txt
    koel tune --trace log.txt --fpr 1% --out replayed"
)]
pub(crate) struct Tune {
    /// The number of distinct items that the filter must hold, such as 1000000, 1e6 or 1M. With --keys, by default the number of
    /// different keys; with --trace, the most items at any time. A range, such as 1M..10M, is the number now and the most there
    /// will ever be; it needs --fpr
    #[arg(
        long = "items",
        value_name = "N[..M]",
        required_unless_present_any = ["keys", "trace"],
        value_parser = numbers::items,
        allow_hyphen_values = true
    )]
    given_items: Option<Items>,

    /// The same, given or counted.
    #[arg(skip)]
    items: Items,

    /// Plan for this much more than --items, or than the upper end of its range; such as 50%, 0.5 or 1/2
    #[arg(long, value_name = "SHARE", value_parser = numbers::headroom, allow_hyphen_values = true)]
    headroom: Option<Share>,

    /// The number of different keys; 0 without keys.
    #[arg(skip)]
    counted_keys: usize,

    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.001,
    /// 0.1% or 1/1000. Finds the smallest filter
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,

    /// The maximum size of the table in bytes, or with a unit: k, kB, M, MB, G, GB, T, TB (powers of 1000), KiB, MiB, GiB,
    /// TiB (powers of 1024). Without --fpr, finds the lowest rate
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_hyphen_values = true)]
    bytes: Option<usize>,

    /// The kind of table; by default, both are compared
    #[arg(long, value_name = "TABLE", value_parser = options::table())]
    table: Option<TableKind>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one; by default, all of them are compared
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_hyphen_values = true)]
    bucket_size: Option<u32>,

    /// The addressing: which numbers of buckets are possible
    #[arg(long, value_name = "HOW", default_value = "any-size", value_parser = options::addressing())]
    addressing: Addressing,

    /// Leave out structures that cannot delete. All of koel's filters can
    #[arg(long)]
    deletes: bool,

    /// Print all filters and all reasons; by default, the best filters, those with the default bucket size, and the first reasons
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    files: trial::Files,

    #[command(flatten)]
    replay: trace::Options,

    #[command(flatten)]
    workload: workload::Options,

    /// Print a JSON object, with numbers as numbers. `candidates` has the filters, the best first; `rejections` those left out,
    /// each with its `reason`; `others` other structures, the smallest first; `others_rejected` those left out. `builder` and
    /// `command` build the best filter, in Rust and with koel. If there is no candidate, these two are null, and `nearest` has
    /// `items`, `false_positive_rate` and `bytes`: each of these values works in place of the one given, unless it is null. With a
    /// range, `plans` has the plans, with bytes and rates now and at the end, and a `builder` and a `command` each, and `best` the
    /// name of the best. With --keys, `trial` has what was counted, and `measured` of each candidate what was measured; times are
    /// in nanoseconds. With --trace, `trace` has what was counted in the log, and each candidate has what was counted in its replay
    /// and a `course`. With --false-positive-cost, each candidate has a `cost_ns` with its parts
    #[arg(long)]
    json: bool,
}

/// What there is to say, for people and for programs.
struct Answer {
    text: String,
    object: Value,
    /// Whether any filter meets the requirements.
    found: bool,
}

impl Tune {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        // Refused before anything is read.
        Stream::Stdout.check()?;
        let keys = self.files.keys()?;
        let trace = self.replay.read(self.files.separator)?;
        self.plan_for(keys.as_ref(), trace.as_ref())?;
        self.check()?;
        let answer = self.answer(keys, trace)?;
        terminal::print(&if self.json { format!("{:#}\n", answer.object) } else { answer.text })?;
        Ok(if answer.found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn answer(&self, keys: Option<Keys>, trace: Option<Trace>) -> anyhow::Result<Answer> {
        if let Some(trace) = trace {
            let filters = self.recommend(self.most_items(), self.fpr, self.bytes);
            if filters.best().is_some() {
                return self.replay.answer(self, &trace, &filters);
            }
        }
        if let Some(most) = self.items.most {
            return Comparison::of(self, self.items.now, most)?.answer();
        }
        if let Some(answer) = self.workload.answer(self)? {
            return Ok(answer);
        }
        let filters = self.recommend(self.items.now, self.fpr, self.bytes);
        let best = filters.best();
        let call = best.map(|best| Call::of(best, self.planned(self.items.now), self.fpr)).transpose()?;
        let unique = keys.as_ref().is_some_and(|keys| keys.duplicates > 0);
        let advice = Advice {
            asked: self,
            // Without a given rate, other structures are compared at that of the best filter.
            rate: self.fpr.or_else(|| best.map(Candidate::false_positive_rate)),
            call: call.map(|call| call.reading(unique, self.files.separator)),
            trial: keys.map(|keys| self.files.measure(keys, &self.shown(filters.candidates(), |filter| filter))).transpose()?,
            filters,
        };
        Ok(advice.answer())
    }

    /// Takes the number of items from the options, the keys or the trace.
    fn plan_for(&mut self, keys: Option<&Keys>, trace: Option<&Trace>) -> anyhow::Result<()> {
        self.counted_keys = keys.map_or(0, |keys| keys.different);
        let counted_items = trace.map_or(self.counted_keys, |trace| trace.most_items);
        self.items = self.given_items.unwrap_or(Items { now: counted_items, most: None });
        let Items { now, most } = self.items;
        if let Some(most) = most {
            let option = [("--keys", keys.is_some()), ("--false-positive-cost", self.workload.false_positive_cost.is_some())];
            if let Some((option, _)) = option.into_iter().find(|(_, is_given)| *is_given) {
                bail!(
                    "--items: the range {now}..{most} given, but {option} compares filters of one size; give one number, or leave \
                     {option} out"
                );
            }
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
        let builder = self.table.into_iter().fold(CuckooFilter::builder().capacity(0), Builder::table);
        let builder = self.bucket_size.into_iter().fold(builder, Builder::bucket_size);
        // Every table has fingerprints of this length.
        builder.fingerprint_bits(32).params().map_err(|error| errors::parameter(&error))?;
        if let Some(rate) = self.fpr.filter(|rate| !(*rate > 0.0 && *rate <= HIGHEST_RATE)) {
            bail!("--fpr: {rate} given, but {}", self.useful_rate(rate));
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
        let constraints = Constraints::default().addressing(self.addressing);
        let constraints = self.table.into_iter().fold(constraints, Constraints::table);
        let constraints = self.bucket_size.into_iter().fold(constraints, Constraints::bucket_size);
        let constraints = bytes.into_iter().fold(constraints, Constraints::max_bytes);
        match rate {
            Some(rate) => recommend(items, rate, &constraints),
            None => best_rate(items, bytes.unwrap_or(usize::MAX), &constraints),
        }
    }
}

impl Serialize for Tune {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object().serialize(serializer)
    }
}

/// Values that work with the other options as given. None: no value of this option works.
#[derive(Serialize)]
struct Nearest {
    /// The maximum number of items, if the keys are no more.
    items: Option<usize>,
    /// The lowest rate, with three digits. None if no rate was given.
    false_positive_rate: Option<f64>,
    /// The minimum number of bytes. None if no limit was given.
    bytes: Option<usize>,
}

impl Nearest {
    fn to(asked: &Tune) -> Self {
        let Tune { items: Items { now: items, .. }, fpr, bytes, .. } = *asked;
        // Without a rate, any will do, and so the highest: the lowest rate need not be found for every number.
        let rate = fpr.or(Some(HIGHEST_RATE));
        let least = || asked.recommend(items, rate, None).best().map(Candidate::bytes);
        // Each item takes at least a bit.
        let too_many = bytes.map_or(usize::MAX, |bytes| bytes.saturating_mul(8).saturating_add(1));
        Self {
            items: errors::most(too_many, |items| asked.recommend(items, rate, bytes).best().is_some())
                .filter(|&items| items >= asked.counted_keys),
            false_positive_rate: fpr.and_then(|_| Self::lowest_rate(asked)),
            bytes: bytes.and_then(|_| least()),
        }
    }

    /// The lowest rate that works, rounded up.
    fn lowest_rate(asked: &Tune) -> Option<f64> {
        // Without items, every rate is 0.
        let lowest = asked.recommend_for(asked.planned(asked.most_items()).max(1), None, asked.bytes);
        let rates = lowest.candidates().iter().map(|filter| filter.params().false_positive_rate_at_capacity());
        rates.reduce(f64::min).map(rounded_up)
    }

    /// The values, as options.
    fn text(&self) -> String {
        let ways = [
            self.bytes.map(|bytes| format!("  --bytes {bytes}\n")),
            self.false_positive_rate.map(|rate| format!("  --fpr {rate:?}\n")),
            self.items.map(|items| format!("  --items {items}\n")),
        ];
        let ways: String = ways.into_iter().flatten().collect();
        if ways.is_empty() {
            return wrapped("No single option is enough: change more than one.");
        }
        format!("Nearest values, any one of which is enough:\n{ways}")
    }
}

/// The least number with three digits that is not below this one.
fn rounded_up(rate: f64) -> f64 {
    let near = format!("{rate:.2e}");
    let (digits, power) = near.split_once('e').unwrap_or((&near, "0"));
    let number = |digits: f64| format!("{digits:.2}e{power}").parse().unwrap_or(rate);
    let digits = digits.parse().unwrap_or(rate);
    if number(digits) < rate { number(digits + 0.01) } else { number(digits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_up_to_three_digits() {
        for (rate, rounded) in [(0.5, 0.5), (0.001_230_1, 0.001_24), (0.001_239_9, 0.001_24), (9.991e-7, 1e-6), (1e-300, 1e-300)]
        {
            assert_eq!(rounded_up(rate).to_bits(), f64::to_bits(rounded), "{rate}");
        }
    }
}
