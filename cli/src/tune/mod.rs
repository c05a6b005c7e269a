//! `koel tune`, which recommends a filter, compares it with others, and says why some were left out.

mod answer;
mod call;
mod cost;
mod measure;
mod trace;
mod trial;

use std::process::ExitCode;

use anyhow::bail;
use clap::{ArgGroup, Args};
use koel::{
    Addressing, Builder, CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, MAX_RATE, Recommendation, best_rate, recommend},
};
use serde::Serialize;

use crate::{
    errors, numbers, options,
    terminal::{self, Stream},
    text::{counted, rounded_up, wrapped},
};
use answer::Advice;
use call::Call;
use trace::Trace;
use trial::{Keys, Trial};

/// Choose a filter's parameters: the smallest filter for a false-positive rate, or the lowest rate for a number of bytes.
///
/// Prints the filters that meet the requirements, best first; the size of other structures at the same rate, by their authors'
/// formulas; what was left out, and why; and the call that builds the best filter. Both kinds of tables and all bucket sizes are
/// compared: each row is the smallest filter for the rate, or the one with the lowest rate for the bytes. The rate ε shown is the
/// one with these items in the filter. With --fpr, the rate at full capacity meets the limit, too. A rate above 0.5 is refused,
/// because most absent items would be reported as present. If no filter meets the requirements, prints the nearest values that
/// work, and exits with status 1.
///
/// Three options add columns to the table:
///
/// --keys builds these filters from your keys and measures them: whether all keys fit, the load, the bytes of table and snapshot,
/// the false-positive rate with its 99 % interval, and times. Lookups use your --queries, or random keys.
///
/// --trace replays a log of real operations against these filters and one that grows: false negatives (there are none), false
/// positives, load over time, refused insertions, bytes, and the time per operation.
///
/// --false-positive-cost adds the cost per lookup: its time + the share of absent keys × ε × the cost of a false positive. The time
/// is measured: by `koel experiment speed` on this machine, or with --keys. The order of the table stays the same. Also says what
/// the lookups cost without a filter.
#[derive(Args)]
#[command(
    group = ArgGroup::new("wanted").args(["fpr", "bytes"]).required(true).multiple(true),
    group = ArgGroup::new("counted").args(["given_items", "keys", "trace"]).required(true).multiple(true),
    group = ArgGroup::new("lists").args(["keys", "trace"]),
    mut_arg("nul", |nul| nul.requires("lists")),
    after_help = "\
Examples:
    koel tune --items 1M --fpr 0.1%
    koel tune --items 1M --bytes 1.5MiB
    koel tune --items 1M --fpr 0.1% --headroom 20%
    koel tune --items 50k --fpr 1% --bytes 72KiB --bucket-size 8 --deletes
    koel tune --items 1T --fpr 1e-6 --json
    koel experiment speed --quick --max-slots 30k
    koel tune --items 10k --fpr 1% --false-positive-cost 100us --absent 90%
    seq 1000 3000 > keys.txt
    seq 2000 9000 | koel tune --keys keys.txt --queries - --fpr 0.01
    { seq -f 'insert %.0f' 3000; seq -f 'query %.0f' 9000; seq -f 'remove %.0f' 999; } > log.txt
    koel tune --trace log.txt --fpr 1% --out replayed"
)]
pub(crate) struct Tune {
    /// The number of distinct items that the filter must hold, such as 1000000, 1e6 or 1M. The default with --keys is the number of
    /// distinct keys; with --trace, it is the maximum number of distinct keys at any time. If the number will grow, do not tune,
    /// but use `koel build --grow`
    #[arg(long = "items", value_name = "N", value_parser = numbers::items, allow_hyphen_values = true)]
    given_items: Option<usize>,

    /// The number of distinct items, given or counted.
    #[arg(skip)]
    items: usize,

    /// Plan for this much more than --items, such as 50%, 0.5 or 1/2
    #[arg(long, value_name = "SHARE", value_parser = numbers::headroom, allow_hyphen_values = true)]
    headroom: Option<f64>,

    /// The number of distinct keys; 0 without keys.
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

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one; by default, all sizes are compared
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_hyphen_values = true)]
    bucket_size: Option<u32>,

    /// The addressing, which determines the possible numbers of buckets
    #[arg(long, value_name = "HOW", default_value = "any-size", value_parser = options::addressing())]
    addressing: Addressing,

    /// Leave out structures that cannot delete items. All of koel's filters can
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
    cost: cost::Options,

    /// Print a JSON object, with numbers as numbers. `candidates` has the filters, the best first; `rejections` those left out,
    /// each with its `reason`; `others` other structures, the smallest first; `others_rejected` those left out. `builder` and
    /// `command` build the best filter, in Rust and with koel. If there is no candidate, these two are null, and `nearest` has
    /// `items`, `false_positive_rate` and `bytes`: each value that is not null works in place of the one given. With --keys,
    /// `trial` has the counts of keys and queries, and each candidate has its measurements as `measured`; times are in
    /// nanoseconds. With --trace, `trace` has the counts of the log, and each candidate has the counts of its `replay`, with their
    /// `course` over the log; the last candidate grows. Candidates that the text does not show are measured only with --all. With
    /// --false-positive-cost, `cost` has the cost without a filter, and each candidate has its `cost_ns`: `total` is the sum of
    /// `lookup` and `false_positives`
    #[arg(long)]
    json: bool,
}

impl Tune {
    pub(crate) fn run(mut self) -> anyhow::Result<ExitCode> {
        // This error must come before anything is read.
        Stream::Stdout.check()?;
        let keys = self.files.keys()?;
        let trace = self.replay.read(&self.files.format)?;
        if keys.is_none() && self.files.format.has_key() {
            bail!("--key: takes a field of each line of --keys; give --keys, too, or leave --key out");
        }
        self.set_items(keys.as_ref(), trace.as_ref())?;
        self.check()?;
        let advice = self.advice(keys, trace.as_ref())?;
        let nearest = if advice.call.is_none() { Some(Nearest::find(&self)) } else { None };
        let nearest = nearest.as_ref();
        terminal::print(&if self.json { format!("{:#}\n", advice.object(nearest)) } else { advice.text(nearest) })?;
        Ok(if nearest.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Finds the filters, and measures those that the table shows.
    fn advice<'a>(&'a self, keys: Option<Keys>, trace: Option<&'a Trace>) -> anyhow::Result<Advice<'a>> {
        let filters = self.recommend(self.items, self.fpr, self.bytes);
        let best = filters.best();
        // If no rate is given, other structures are compared at the best filter's rate.
        let rate = self.fpr.or_else(|| best.map(Candidate::false_positive_rate));
        let call = best.map(|best| Call::fixed(best, self.capacity_of(best), self.fpr)).transpose()?;
        let unique = keys.as_ref().is_some_and(|keys| keys.duplicates > 0);
        // The format is that of a list of keys, not of a log.
        let call = call.map(|call| if trace.is_some() { call } else { call.with_format(unique, &self.files.format) });
        let shown = self.shown(filters.candidates());
        let trial = keys.map(|keys| self.files.measure(keys, &shown)).transpose()?;
        let absent = trial.as_ref().map_or_else(|| trace.and_then(Trace::absent_share), Trial::absent_share);
        // If the times are missing, this fails before the replays, which may take long.
        let workload = self.cost.workload(trial.as_ref(), absent)?;
        let replayed = trace.zip(rate).filter(|_| !shown.is_empty());
        let replays = replayed.map(|(trace, rate)| self.replay.replay(self, trace, &shown, rate)).transpose()?;
        Ok(Advice { request: self, rate, call, trial, replays, workload, filters })
    }

    /// Sets the number of items: the one given, or the count of the keys or of the trace.
    fn set_items(&mut self, keys: Option<&Keys>, trace: Option<&Trace>) -> anyhow::Result<()> {
        self.counted_keys = keys.map_or(0, |keys| keys.distinct);
        let counted_items = trace.map_or(self.counted_keys, |trace| trace.most_distinct_items);
        self.items = self.given_items.unwrap_or(counted_items);
        if self.items < self.counted_keys {
            bail!(
                "--items: {} given, but --keys has {}; give at least as many, or leave --items out",
                self.items,
                counted(self.counted_keys, "distinct key")
            );
        }
        Ok(())
    }

    /// Refuses parameters that no filter of any size can have.
    fn check(&self) -> anyhow::Result<()> {
        let items = self.items;
        if self.headroom.is_some_and(|share| numbers::with_share(items, share).is_none()) {
            bail!("--headroom: with {items} --items, that is more than the largest number, {}; give fewer items", usize::MAX);
        }
        let builder = self.table.into_iter().fold(CuckooFilter::builder().capacity(0), Builder::table);
        let builder = self.bucket_size.into_iter().fold(builder, Builder::bucket_size);
        // Every table supports fingerprints of 32 bits.
        builder.fingerprint_bits(32).params().map_err(|error| errors::parameter(&error))?;
        if let Some(rate) = self.fpr.filter(|rate| !(*rate > 0.0 && *rate <= MAX_RATE)) {
            bail!("--fpr: {rate} given, but {}", self.rate_remedy(rate));
        }
        Ok(())
    }

    /// Returns the text about the limits of rates, and the nearest rate that works.
    fn rate_remedy(&self, given: f64) -> String {
        let least = self.recommend(self.items, Some(MAX_RATE), None).best().map(Candidate::bytes);
        let (why, nearest) = if given > MAX_RATE {
            let size = least.map(|least| format!("{MAX_RATE}, which takes {}", counted(least, "byte")));
            (format!("with more than {MAX_RATE} most absent items would be reported as present"), size)
        } else {
            let lowest = Nearest::min_rate(self).map(|lowest| format!("{lowest:?}"));
            (format!("it lies between 0 and {MAX_RATE}, 0 excluded"), lowest)
        };
        match (nearest, least, self.bytes) {
            (_, Some(least), Some(most)) if least > most => format!("{why}; give --fpr {MAX_RATE} and --bytes {least}"),
            (Some(nearest), ..) => format!("{why}; the nearest that works is {nearest}"),
            (None, ..) => format!("{why}; give --fpr {MAX_RATE}, and then what the command names besides"),
        }
    }

    /// Returns the number of items plus the headroom.
    fn planned(&self, items: usize) -> usize {
        self.headroom.map_or(items, |share| numbers::with_share(items, share).unwrap_or(usize::MAX))
    }

    /// Returns the capacity that a filter is built for. Without a rate, it is all that its bytes hold.
    fn capacity_of(&self, filter: &Candidate) -> usize {
        if self.fpr.is_some() { self.planned(self.items) } else { filter.params().capacity() }
    }

    /// Returns the library's recommendation for these items plus headroom, rate and bytes, with the other options as given.
    fn recommend(&self, items: usize, rate: Option<f64>, bytes: Option<usize>) -> Recommendation {
        self.recommend_for(self.planned(items), rate, bytes)
    }

    /// Returns the recommendation for a number that includes the headroom.
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

/// The nearest values that work with the other options as given. `None` means that no value of the option works.
#[derive(Serialize)]
struct Nearest {
    /// The maximum number of items; `None` if there are more keys.
    items: Option<usize>,
    /// The lowest rate, with three digits; `None` if no rate was given.
    false_positive_rate: Option<f64>,
    /// The minimum number of bytes; `None` if no limit was given.
    bytes: Option<usize>,
}

impl Nearest {
    fn find(request: &Tune) -> Self {
        let Tune { items, fpr, bytes, .. } = *request;
        // If no rate is given, any rate is enough, so the highest is used: finding the lowest for every number would be slow.
        let rate = fpr.or(Some(MAX_RATE));
        let least = || request.recommend(items, rate, None).best().map(Candidate::bytes);
        // Each item takes at least one bit.
        let too_many = bytes.map_or(usize::MAX, |bytes| bytes.saturating_mul(8).saturating_add(1));
        Self {
            items: errors::largest_accepted(too_many, |items| request.recommend(items, rate, bytes).best().is_some())
                .filter(|&items| items >= request.counted_keys),
            false_positive_rate: fpr.and_then(|_| Self::min_rate(request)),
            bytes: bytes.and_then(|_| least()),
        }
    }

    /// Returns the lowest rate that works, rounded up to three digits.
    fn min_rate(request: &Tune) -> Option<f64> {
        // Without items, every rate is 0.
        let items = request.planned(request.items).max(1);
        let lowest = request.recommend_for(items, None, request.bytes);
        // With --fpr, a filter is planned for these items, not for as many as fit.
        let rates = lowest.candidates().iter().filter_map(|filter| {
            let (params, builder) = (filter.params(), CuckooFilter::builder().capacity(items));
            let builder = builder.table(params.table()).bucket_size(params.bucket_size()).addressing(params.addressing());
            let planned = builder.fingerprint_bits(params.fingerprint_bits()).params().ok()?;
            Some(planned.false_positive_rate_at_capacity())
        });
        rates.reduce(f64::min).map(rounded_up)
    }

    /// Formats the values as options.
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
