//! A trial of the recommended filters, which builds them from the user's own keys and runs the user's own queries.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use koel::{Params, Prehashed, tuning::Candidate};
use koel_lab::{Rounds, Stopwatch, interval, percent};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::measure::{build_repeats, disturbed, empty, hash, in_rounds, median, rounds, time_each, times};
use crate::{
    file::{self, Filter},
    format::Format,
    items::Items,
    text::{Part, counted, label, or_dash, short_rate},
};

// No doc comment here: clap would use it as the help of the command.
#[derive(Args)]
pub(super) struct Files {
    /// Your own keys, one per line; `-` for standard input. Builds the filters of the table from them, each key once, and measures
    /// space, load, false positives and times. Takes at most 134217728 keys, 8 bytes of memory per key, and the memory of one
    /// filter at a time. As in filters, keys are distinguished by their 64-bit hashes
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Your own queries, one per line; `-` for standard input. Counts the queries that are keys, and measures false positives with
    /// the others, which take 8 bytes of memory each. Needs all keys, not a sample: a query for any other key counts as absent.
    /// Without this option, absent keys are random
    #[arg(long, value_name = "FILE", requires = "keys")]
    queries: Option<PathBuf>,

    #[command(flatten)]
    pub(super) format: Format,
}

/// The measurements as JSON. The filters are not part of it: the text has them in a table, and the JSON beside their candidates.
#[derive(Serialize)]
pub(super) struct Trial {
    keys: Keys,
    #[serde(flatten)]
    absent: Probes,
    /// The time to hash a key.
    #[serde(rename = "hash_ns", serialize_with = "times")]
    hash: Rounds,
    /// The number of rounds, without extra rounds after disturbances.
    rounds: usize,
    #[serde(skip)]
    filters: Vec<MeasuredFilter>,
}

impl Files {
    /// Reads the keys, if they are given.
    pub(super) fn keys(&self) -> anyhow::Result<Option<Keys>> {
        let Some(path) = &self.keys else { return Ok(None) };
        if file::is_dash(path) && self.queries.as_ref().is_some_and(|queries| file::is_dash(queries)) {
            bail!("--keys and --queries: both are standard input, which can be read only once; give a file for one of them");
        }
        Keys::read(path, &self.format).map(Some)
    }

    /// Builds these filters from the keys, and measures them.
    pub(super) fn measure(&self, mut keys: Keys, filters: &[&Candidate]) -> anyhow::Result<Trial> {
        let rounds = rounds(keys.distinct);
        let absent = match &self.queries {
            Some(path) => Probes::read(path, &self.format, &keys)?,
            None => Probes::random(filters),
        };
        // In ascending order, the keys would fill a table from one end.
        shuffle(&mut keys.hashes);
        let mut hashing = Rounds::new(rounds);
        in_rounds(rounds, std::slice::from_mut(&mut hashing), Rounds::needs_more, |hashing, watch| {
            time_each(hashing, watch, &keys.sample, |key| hash(key));
            Ok(())
        })?;
        let mut filters: Vec<_> = filters.iter().map(|filter| MeasuredFilter::new(*filter.params(), rounds)).collect();
        in_rounds(rounds, &mut filters, MeasuredFilter::needs_more_rounds, |filter, watch| filter.round(&keys, &absent, watch))?;
        Ok(Trial { keys, absent, hash: hashing, rounds, filters })
    }
}

/// The maximum number of hashes of keys, and of absent queries. They take 1 GiB.
const MAX_HASHES: usize = 1 << 27;

/// The bytes of the first keys that are kept, to time hashing them.
const SAMPLED_BYTES: usize = 1 << 20;

/// The seeds of the random order and of the random absent keys.
const ORDER: u64 = 1;
const ABSENT: u64 = 2;

/// Keys, distinguished by their hashes.
#[derive(Serialize)]
pub(super) struct Keys {
    read: usize,
    pub(super) distinct: usize,
    pub(super) duplicates: usize,
    /// The number of copies of the most frequent key.
    most_copies: usize,
    /// The distinct hashes, in ascending order until they are shuffled.
    #[serde(skip)]
    hashes: Vec<u64>,
    /// The first keys.
    #[serde(skip)]
    sample: Vec<Box<[u8]>>,
}

impl Keys {
    /// Reads the keys.
    ///
    /// # Errors
    /// Returns an error if the keys cannot be read, or there are none or too many.
    fn read(path: &Path, format: &Format) -> anyhow::Result<Self> {
        let mut items = Items::open(path, format, true)?;
        let (mut hashes, mut sample, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(key) = items.advance()? {
            if bytes < SAMPLED_BYTES {
                bytes += key.len().max(1);
                sample.push(key.into());
            }
            push(&mut hashes, hash(key), MAX_HASHES, &items)?;
        }
        if items.count() == 0 {
            bail!("--keys: {} has no keys; give at least one, or leave --keys out and give --items", file::name(path));
        }
        Ok(Self::from_hashes(hashes, sample))
    }

    fn from_hashes(mut hashes: Vec<u64>, sample: Vec<Box<[u8]>>) -> Self {
        let read = hashes.len();
        hashes.sort_unstable();
        let most_copies = hashes.chunk_by(u64::eq).map(<[u64]>::len).max().unwrap_or(0);
        hashes.dedup();
        Self { read, distinct: hashes.len(), duplicates: read - hashes.len(), most_copies, hashes, sample }
    }
}

/// Puts hashes into a pseudorandom order that is the same in every run, by sorting them by hashes of the hashes.
fn shuffle(hashes: &mut [u64]) {
    hashes.sort_unstable_by_key(|hash| xxh3_64_with_seed(&hash.to_le_bytes(), ORDER));
}

/// Adds the hash of the item that was read last. Fails if there are `most` hashes already.
fn push(hashes: &mut Vec<u64>, hash: u64, most: usize, items: &Items) -> anyhow::Result<()> {
    if hashes.len() == most {
        bail!("{}: {most} items have been kept, the limit, at 8 bytes of memory each; {REMEDY}", items.place());
    }
    if hashes.len() == hashes.capacity() && hashes.try_reserve(1).is_err() {
        bail!("{}: not enough memory for more items, at 8 bytes each; {REMEDY}", items.place());
    }
    hashes.push(hash);
    Ok(())
}

const REMEDY: &str = "give a sample, such as `shuf -n 10000000 FILE` prints";

/// The desired number of false positives among random keys. It makes the 99 % interval of ε about 8 % to each side.
const TARGET_HITS: f64 = 1000.0;

/// The limits of the number of random keys, which take 8 bytes each.
const MIN_RANDOM: usize = 1 << 16;
const MAX_RANDOM: usize = 1 << 22;

/// The maximum number of lookups that are timed in a round.
const MAX_TIMED: usize = 1 << 20;

/// The absent keys that filters are queried for, as hashes.
#[derive(Serialize)]
struct Probes {
    /// `None` if the absent keys are random.
    queries: Option<Queries>,
    absent_keys_from: &'static str,
    /// The number of distinct absent keys.
    absent_keys: usize,
    /// The hashes in ascending order, with duplicates.
    #[serde(skip)]
    hashes: Vec<u64>,
    /// At most [`MAX_TIMED`] distinct hashes, in a random order.
    #[serde(skip)]
    timed: Vec<u64>,
}

/// The numbers of queries.
#[derive(Serialize)]
struct Queries {
    read: usize,
    present: usize,
    absent: usize,
    present_share: f64,
}

impl Probes {
    /// Reads the queries. The keys must not have been shuffled yet.
    fn read(path: &Path, format: &Format, keys: &Keys) -> anyhow::Result<Self> {
        let mut items = Items::open(path, format, true)?;
        let (mut hashes, mut present) = (Vec::new(), 0);
        while let Some(query) = items.advance()? {
            let hash = hash(query);
            if keys.hashes.binary_search(&hash).is_ok() {
                present += 1;
            } else {
                push(&mut hashes, hash, MAX_HASHES, &items)?;
            }
        }
        let (absent, read) = (hashes.len(), hashes.len() + present);
        if read == 0 {
            bail!("--queries: {} has no queries; give at least one, or leave --queries out", file::name(path));
        }
        let queries = Queries { read, present, absent, present_share: present as f64 / read as f64 };
        Ok(Self { queries: Some(queries), absent_keys_from: "queries", ..Self::from_hashes(hashes) })
    }

    /// Generates random hashes, the same in every run. They represent keys, because a filter sees only hashes, which are as good as
    /// random. A generated hash equals a key's hash as rarely as two keys' hashes collide. There are enough of them for the first
    /// filter to have [`TARGET_HITS`] false positives, within the limits.
    fn random(filters: &[&Candidate]) -> Self {
        let rate = filters.first().map_or(1.0, |best| best.false_positive_rate());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats are saturating")]
        let wanted = ((TARGET_HITS / rate).ceil() as usize).clamp(MIN_RANDOM, MAX_RANDOM);
        let hashes = (0_u64..).map(|number| xxh3_64_with_seed(&number.to_le_bytes(), ABSENT));
        Self::from_hashes(hashes.take(wanted).collect())
    }

    fn from_hashes(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        let absent_keys = hashes.chunk_by(u64::eq).count();
        let step = absent_keys.div_ceil(MAX_TIMED).max(1);
        let mut timed: Vec<_> = hashes.chunk_by(u64::eq).map(|same| same[0]).step_by(step).collect();
        shuffle(&mut timed);
        Self { queries: None, absent_keys_from: "random", absent_keys, hashes, timed }
    }
}

/// A filter that was built from the keys, and its measurements.
#[derive(Serialize)]
pub(super) struct MeasuredFilter {
    #[serde(skip)]
    params: Params,
    fits: bool,
    /// The number of keys inserted before the filter refused one. Usually, these are all keys.
    stored: usize,
    load_factor: f64,
    snapshot_bytes: u64,
    /// The rate ε that is expected from the parameters and the load.
    expected_false_positive_rate: f64,
    #[serde(flatten)]
    found: Hits,
    #[serde(rename = "insert_ns", serialize_with = "times")]
    insert: Rounds,
    #[serde(rename = "present_ns", serialize_with = "times")]
    present: Rounds,
    #[serde(rename = "absent_ns", serialize_with = "times")]
    absent: Rounds,
}

/// The absent keys that a filter reports as present. All fields are `None` if it refused a key.
#[derive(Default, Serialize)]
struct Hits {
    /// The number of distinct keys.
    false_positives: Option<usize>,
    /// The number of queries, duplicates included; `None` without queries.
    query_false_positives: Option<usize>,
    /// The measured rate ε, and its 99 % confidence interval; `None` without absent keys.
    false_positive_rate: Option<f64>,
    false_positive_rate_low: Option<f64>,
    false_positive_rate_high: Option<f64>,
}

impl Hits {
    fn count(filter: &Filter, absent: &Probes) -> Self {
        let (mut found, mut queries) = (0, 0);
        for same in absent.hashes.chunk_by(u64::eq).filter(|same| filter.contains(&Prehashed(same[0]))) {
            found += 1;
            queries += same.len();
        }
        let all = absent.absent_keys;
        let (low, high) = (all > 0).then(|| interval(found as u64, all as u64)).unzip();
        Self {
            false_positives: Some(found),
            query_false_positives: absent.queries.as_ref().map(|_| queries),
            false_positive_rate: (all > 0).then(|| found as f64 / all as f64),
            false_positive_rate_low: low,
            false_positive_rate_high: high,
        }
    }
}

impl MeasuredFilter {
    fn new(params: Params, rounds: usize) -> Self {
        let [insert, present, absent] = [(); 3].map(|()| Rounds::new(rounds));
        Self {
            params,
            fits: true,
            stored: 0,
            load_factor: 0.0,
            snapshot_bytes: params.snapshot_bytes(),
            expected_false_positive_rate: 0.0,
            found: Hits::default(),
            insert,
            present,
            absent,
        }
    }

    fn times(&self) -> [&Rounds; 3] {
        [&self.insert, &self.present, &self.absent]
    }

    /// Returns whether too many of the times were disturbed.
    fn needs_more_rounds(&self) -> bool {
        self.times().into_iter().any(|rounds| rounds.timing().is_some() && rounds.needs_more())
    }

    /// Builds the filter from all keys, or from those before the first that it refuses, and takes one measurement. If there are
    /// only a few keys, they are inserted into several filters, so that the time is long enough to measure.
    fn round(&mut self, keys: &Keys, absent: &Probes, watch: &mut Stopwatch) -> anyhow::Result<()> {
        let mut filters = build_repeats(keys.distinct, self.params.table_bytes(), || empty(self.params))?;
        let insert =
            |filter: &mut Filter| keys.hashes.iter().take_while(|&&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
        let (stored, lap) = watch.time(|| filters.iter_mut().map(insert).sum());
        self.insert.record(lap, stored);
        let filter = filters.pop().context("no filter was built; please report this")?;
        self.stored = filter.len();
        self.fits = self.stored == keys.distinct;
        self.load_factor = filter.load_factor();
        self.expected_false_positive_rate = filter.false_positive_rate();
        if !self.fits {
            return Ok(());
        }
        if self.found.false_positives.is_none() {
            let found = filter.count_members(&Prehashed(&keys.hashes));
            ensure!(found == keys.distinct, "a {} lost a key; please report this", self.params);
            self.found = Hits::count(&filter, absent);
        }
        let contains = |hash: &u64| filter.contains(&Prehashed(*hash));
        time_each(&mut self.present, watch, &keys.hashes[..keys.distinct.min(MAX_TIMED)], contains);
        time_each(&mut self.absent, watch, &absent.timed, contains);
        Ok(())
    }
}

impl Trial {
    /// Returns the measurements of the filter with these parameters, if there are any.
    pub(super) fn measured(&self, params: &Params) -> Option<&MeasuredFilter> {
        self.filters.iter().find(|filter| filter.params == *params)
    }

    /// Returns the nanoseconds of a lookup of an absent and of a present key, hashing included, if this filter was measured.
    pub(super) fn lookup_ns(&self, params: &Params) -> Option<(Option<f64>, Option<f64>)> {
        let median = |rounds: &Rounds| rounds.timing().map(|timing| timing.quartiles.median);
        let (filter, hash) = (self.measured(params)?, median(&self.hash)?);
        let [absent, present] = [&filter.absent, &filter.present].map(|rounds| median(rounds).map(|ns| ns + hash));
        Some((absent, present))
    }

    /// Returns the share of absent keys among the queries, if there are any.
    pub(super) fn absent_share(&self) -> Option<f64> {
        self.absent.queries.as_ref().map(|queries| queries.absent as f64 / queries.read as f64)
    }

    /// Returns what was read.
    pub(super) fn input(&self) -> [String; 2] {
        [self.keys_note(), self.queries_note()]
    }

    fn keys_note(&self) -> String {
        let Keys { read, distinct, duplicates, most_copies, .. } = self.keys;
        let read = counted(read, "key");
        if duplicates == 0 {
            return format!("Measured with {read}, all distinct.");
        }
        format!(
            "Measured with {read}, {distinct} of them distinct, each stored once: {}; the most frequent key occurs {most_copies} \
             times.",
            counted(duplicates, "duplicate")
        )
    }

    fn queries_note(&self) -> String {
        let distinct = self.absent.absent_keys;
        let Some(Queries { read, present, absent, present_share }) = self.absent.queries else {
            return format!("{distinct} random absent keys.");
        };
        let (read, share) = (counted(read, "query"), percent(present_share, 1));
        let repeats = if distinct < absent { format!(", {distinct} of them distinct") } else { String::new() };
        format!("{read}: {present} present ({share}), {absent} absent{repeats}.")
    }

    /// Returns the columns of the filters' space and times, and of their false-positive rates.
    pub(super) fn parts(&self) -> [Part; 2] {
        let space_and_times = self.filters.iter().map(|filter| {
            let (bytes, snapshot) = (filter.params.table_bytes().to_string(), filter.snapshot_bytes.to_string());
            let [insert, present, absent] = filter.times().map(median);
            vec![percent(filter.load_factor, 1), bytes, snapshot, insert, present, absent]
        });
        let absent_queries = self.absent.queries.as_ref().map(|queries| queries.absent);
        let rates = self.filters.iter().map(|filter| {
            let found = &filter.found;
            let interval = found.false_positive_rate_low.zip(found.false_positive_rate_high);
            let mut row = vec![
                short_rate(filter.expected_false_positive_rate),
                or_dash(found.false_positive_rate.map(short_rate)),
                or_dash(interval.map(|(low, high)| format!("{} to {}", short_rate(low), short_rate(high)))),
            ];
            // These counts include duplicate queries.
            row.extend(absent_queries.map(|all| or_dash(found.query_false_positives.map(|found| format!("{found} of {all}")))));
            row
        });
        let header = ["expected", "measured", "99 % interval", "of the queries"];
        [
            Part::new(&["load", "bytes", "snapshot", "insert", "present", "absent"], space_and_times),
            Part::new(&header[..if absent_queries.is_some() { 4 } else { 3 }], rates),
        ]
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let full = self.filters.iter().filter(|filter| !filter.fits);
        let mut notes: Vec<_> = full
            .map(|filter| {
                format!("{}: full after {}; give a larger --items.", label(&filter.params), counted(filter.stored, "key"))
            })
            .collect();
        if notes.is_empty() {
            notes.push(String::from("Each filter has room for all keys."));
        }
        notes.push(format!(
            "Load: with these keys. Insert, present, absent: ns per insertion, and per lookup of a present and of an absent key, \
             one at a time, medians of {}. Hashing is not included: {} ns per key (XXH3).",
            counted(self.rounds, "round"),
            median(&self.hash)
        ));
        notes.extend(disturbed(self.filters.iter().flat_map(MeasuredFilter::times).chain([&self.hash])));
        notes.push(String::from(match (&self.absent.queries, self.absent.absent_keys) {
            (Some(_), 0) => "No query is absent, so no rate can be measured: give --queries with absent ones.",
            (Some(_), _) => {
                "Expected: \u{3b5} at this load; measured: with the distinct absent queries; of the queries: false positives among \
                 all absent ones, duplicates included."
            }
            (None, _) => "Expected: \u{3b5} at this load; measured: with the absent keys.",
        }));
        notes
    }
}

#[cfg(test)]
mod tests {
    use koel::tuning::{Constraints, recommend};

    use super::*;

    #[test]
    fn too_many_keys_are_an_error_with_a_remedy() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, b"1\n2\n3\n").expect("room");
        let mut items = Items::open(file.path(), &Format::default(), false).expect("a list");
        let mut hashes = Vec::new();
        let mut push_next = || {
            items.advance().expect("a line");
            push(&mut hashes, 7, 2, &items)
        };
        assert!(push_next().is_ok() && push_next().is_ok());
        let error = push_next().expect_err("the third is one too many").to_string();
        let parts = ["line 3 of", ": 2 items have been kept, the limit, at 8 bytes", "give a sample", "`shuf -n "];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }

    /// The trial reports only the number of keys at which the filter was full.
    #[test]
    fn a_filter_that_is_too_small_is_not_measured() {
        let sample: Vec<Box<[u8]>> = (0..1000).map(|number| number.to_string().into_bytes().into()).collect();
        let keys = Keys::from_hashes(sample.iter().map(|key| hash(key)).collect(), sample);
        let advice = recommend(500, 0.01, &Constraints::default());
        let files = Files { keys: None, queries: None, format: Format::default() };
        let trial = files.measure(keys, &[advice.best().expect("there is one")]).expect("enough memory");
        let filter = &trial.filters[0];
        assert!(!filter.fits && (500..700).contains(&filter.stored), "{}", filter.stored);
        assert!(filter.found.false_positive_rate.is_none() && filter.present.timing().is_none());
        assert_eq!(trial.lookup_ns(&filter.params), Some((None, None)));
    }
}
