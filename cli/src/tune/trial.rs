//! A trial of the recommended filters: built from the caller's own keys, and asked the caller's own queries.

use std::{
    hint::black_box,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use koel::{AnyHasher, CuckooFilter, Hasher as _, Params, Prehashed, Xxh3, tuning::Candidate};
use koel_lab::{Lap, Rounds, Stopwatch, Timing, interval, percent};
use serde_json::{Value, json};

use super::answer::label;
use crate::{
    errors,
    file::{self, Filter},
    items::{Items, Separator},
    options,
    terminal::Progress,
    text::{counted, figures, narrow, paragraphs},
};

/// The hasher of the filters, and of the keys before there are any: that of `koel build`.
const HASHER: AnyHasher = AnyHasher::Xxh3;

// No doc comment here: clap would take it for the help of the command.
#[derive(Args)]
pub(super) struct Files {
    /// Your own keys, one per line; `-` for standard input. Builds the filters of the table with them, each key once, and measures
    /// space, load, false positives and times. Takes 8 bytes of memory per key, at most 134217728 keys, and one filter at a time.
    /// Keys are told apart by their 64-bit hashes, as filters do
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,

    /// Your own queries, one per line; `-` for standard input. Says how many of them are keys, and measures false positives with
    /// those that are not, at 8 bytes of memory each. Needs all keys, not a sample: a query for any other key counts as absent.
    /// Without this option, absent keys are random
    #[arg(long, value_name = "FILE", requires = "keys")]
    queries: Option<PathBuf>,

    #[command(flatten)]
    separator: Separator,
}

/// What was measured.
pub(super) struct Trial {
    keys: Keys,
    absent: Absent,
    measured: Measured,
}

impl Files {
    /// The keys, if they are given.
    pub(super) fn keys(&self) -> anyhow::Result<Option<Keys>> {
        let Some(path) = &self.keys else { return Ok(None) };
        if file::is_dash(path) && self.queries.as_ref().is_some_and(|queries| file::is_dash(queries)) {
            bail!("--keys and --queries: both are standard input, which can be read only once; give a file for one of them");
        }
        Keys::read(path, self.separator, &hasher()?).map(Some)
    }

    pub(super) fn separator(&self) -> Separator {
        self.separator
    }

    /// Builds these filters from the keys, and measures them.
    pub(super) fn measure(&self, mut keys: Keys, filters: &[&Candidate]) -> anyhow::Result<Trial> {
        let hasher = hasher()?;
        let absent = match &self.queries {
            Some(path) => Absent::read(path, self.separator, &keys, &hasher)?,
            None => Absent::random(filters),
        };
        keys.shuffle();
        let measured = measure(&keys, &absent, &hasher, filters)?;
        Ok(Trial { keys, absent, measured })
    }
}

/// An empty filter, which hashes as all others do.
pub(super) fn hasher() -> anyhow::Result<Filter> {
    CuckooFilter::builder().hasher(HASHER).capacity(0).fingerprint_bits(8).build().map_err(errors::not_built)
}

/// Hashes that are kept at the same time, of keys or of absent queries: 1 GiB.
const MOST_HASHES: usize = 1 << 27;

/// The first keys, of which hashing is timed, are kept up to so many bytes.
const SAMPLED_BYTES: usize = 1 << 20;

/// The seeds of the order of hashes, and of absent keys.
const ORDER: u64 = 1;
const ABSENT: u64 = 2;

/// Keys, told apart by their hashes.
pub(super) struct Keys {
    /// The hashes, each once: ascending, until they are shuffled.
    hashes: Vec<u64>,
    /// How many were read.
    read: usize,
    /// How often the most frequent one was read.
    most_copies: usize,
    /// The bytes of the first ones.
    sample: Vec<Box<[u8]>>,
}

impl Keys {
    /// # Errors
    /// If the keys cannot be read, are none, or are too many.
    fn read(path: &Path, separator: Separator, hasher: &Filter) -> anyhow::Result<Self> {
        let mut items = Items::open(path, separator, true)?;
        let (mut hashes, mut sample, mut bytes) = (Vec::new(), Vec::new(), 0);
        while let Some(key) = items.advance()? {
            let hash = hasher.hash(key);
            if bytes < SAMPLED_BYTES {
                bytes += key.len().max(1);
                sample.push(key.into());
            }
            push(&mut hashes, hash, MOST_HASHES, &items)?;
        }
        if items.count() == 0 {
            bail!("--keys: {} has no keys; give at least one, or leave --keys out and give --items", file::name(path));
        }
        Ok(Self::of(hashes, sample))
    }

    fn of(mut hashes: Vec<u64>, sample: Vec<Box<[u8]>>) -> Self {
        let read = hashes.len();
        hashes.sort_unstable();
        let most_copies = hashes.chunk_by(u64::eq).map(<[u64]>::len).max().unwrap_or(0);
        hashes.dedup();
        Self { hashes, read, most_copies, sample }
    }

    /// The number of different keys.
    pub(super) fn different(&self) -> usize {
        self.hashes.len()
    }

    /// Whether any key was read more than once.
    pub(super) fn has_duplicates(&self) -> bool {
        self.different() < self.read
    }

    /// Whether this is the hash of a key. Only before they are shuffled.
    fn contain(&self, hash: u64) -> bool {
        self.hashes.binary_search(&hash).is_ok()
    }

    /// Puts the hashes in an order that has nothing to do with buckets: in ascending order, a table is filled from one end.
    fn shuffle(&mut self) {
        shuffle(&mut self.hashes);
    }
}

/// An order as good as random, the same in every run: that of hashes of the hashes.
fn shuffle(hashes: &mut [u64]) {
    hashes.sort_unstable_by_key(|hash| Xxh3.hash(ORDER, &hash.to_le_bytes()));
}

/// Adds the hash of the item that was read last, unless there are too many.
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

/// False positives that are wanted of random keys: ε is then known to about 8 % with 99 % confidence.
const HITS: f64 = 1000.0;

/// Random keys: no fewer, and no more, at 8 bytes each.
const FEWEST: usize = 1 << 16;
const MOST: usize = 1 << 22;

/// Lookups that are timed in a round.
const TIMED: usize = 1 << 20;

/// Absent keys, as hashes.
struct Absent {
    /// The queries; `None` if the absent keys are random.
    queries: Option<Queries>,
    /// Ascending, each as often as it was asked for.
    hashes: Vec<u64>,
    /// How many of them are different.
    different: usize,
    /// At most [`TIMED`] different ones, in a random order.
    timed: Vec<u64>,
}

/// How many queries were read, and how many of these are keys.
struct Queries {
    read: usize,
    present: usize,
}

/// Absent keys that a filter reports as present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FalsePositives {
    /// Each counted once.
    different: usize,
    /// Each counted as often as it was asked for.
    asked: usize,
}

impl Absent {
    /// Reads the queries. The keys must not have been shuffled yet.
    fn read(path: &Path, separator: Separator, keys: &Keys, hasher: &Filter) -> anyhow::Result<Self> {
        let mut items = Items::open(path, separator, true)?;
        let (mut hashes, mut present) = (Vec::new(), 0);
        while let Some(query) = items.advance()? {
            let hash = hasher.hash(query);
            if keys.contain(hash) {
                present += 1;
            } else {
                push(&mut hashes, hash, MOST_HASHES, &items)?;
            }
        }
        let read = hashes.len() + present;
        if read == 0 {
            bail!("--queries: {} has no queries; give at least one, or leave --queries out", file::name(path));
        }
        Ok(Self::of(hashes, Some(Queries { read, present })))
    }

    /// Random ones, the same in every run: a filter sees hashes only, and those of keys are as good as random. That one of them is a
    /// key's is as unlikely as that two keys have the same hash. So many that the first filter has enough false positives, within
    /// bounds.
    fn random(filters: &[&Candidate]) -> Self {
        let rate = filters.first().map_or(1.0, |best| best.false_positive_rate());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats are saturating")]
        let wanted = ((HITS / rate).ceil() as usize).clamp(FEWEST, MOST);
        let hashes = (0_u64..).map(|number| Xxh3.hash(ABSENT, &number.to_le_bytes()));
        Self::of(hashes.take(wanted).collect(), None)
    }

    fn of(mut hashes: Vec<u64>, queries: Option<Queries>) -> Self {
        hashes.sort_unstable();
        let different = hashes.chunk_by(u64::eq).count();
        let step = different.div_ceil(TIMED).max(1);
        let mut timed: Vec<_> = hashes.chunk_by(u64::eq).map(|same| same[0]).step_by(step).collect();
        shuffle(&mut timed);
        Self { queries, hashes, different, timed }
    }

    /// How many there are, each counted as often as it was asked for.
    fn asked(&self) -> usize {
        self.hashes.len()
    }

    fn false_positives(&self, filter: &Filter) -> FalsePositives {
        let found = self.hashes.chunk_by(u64::eq).filter(|same| filter.contains(&Prehashed(same[0])));
        let none = FalsePositives { different: 0, asked: 0 };
        found.fold(none, |all, same| FalsePositives { different: all.different + 1, asked: all.asked + same.len() })
    }
}

/// Rounds, and half as many more for what other work disturbed. Fewer for many keys: each builds every filter.
pub(super) const ROUNDS: usize = 5;
pub(super) const FEWER_ROUNDS: usize = 3;
pub(super) const MANY_KEYS: usize = 1 << 24;

/// Operations between two readings of the clock, at least: a few hundred microseconds. Fewer keys are taken several times.
pub(super) const LAP: usize = 1 << 14;

/// The memory of the filters that are built to take few keys several times.
pub(super) const COPIES: usize = 64 << 20;

/// What was measured of all filters.
struct Measured {
    /// Rounds, without those that follow a disturbance.
    rounds: usize,
    /// Of a key.
    hash: Rounds,
    /// In the order of the filters.
    filters: Vec<Tried>,
}

/// A filter that was built from the keys.
struct Tried {
    params: Params,
    /// How many keys it took before it refused one; all of them, as a rule.
    stored: usize,
    load: f64,
    /// The rate ε that follows from the parameters and the load.
    expected_rate: f64,
    /// `None` if it refused a key.
    false_positives: Option<FalsePositives>,
    insert: Rounds,
    present: Rounds,
    absent: Rounds,
}

/// Builds each filter in every round, so that other work on the machine affects all of them alike.
fn measure(keys: &Keys, absent: &Absent, hasher: &Filter, filters: &[&Candidate]) -> anyhow::Result<Measured> {
    let rounds = if keys.different() < MANY_KEYS { ROUNDS } else { FEWER_ROUNDS };
    let mut watch = Stopwatch::new();
    let mut hash = Rounds::new(rounds);
    let mut filters: Vec<_> = filters.iter().map(|filter| Tried::new(*filter.params(), rounds)).collect();
    let progress = Progress::counting(rounds * filters.len(), "measurements");
    let mut done = 0;
    for round in 0..rounds + rounds.div_ceil(2) {
        let is_repeat = round >= rounds;
        if !is_repeat || hash.lack() {
            time_hash(&mut hash, keys, hasher, &mut watch);
        }
        for filter in &mut filters {
            if !is_repeat || filter.lacks() {
                filter.round(keys, absent, &mut watch)?;
            }
            done += 1;
            progress.at(0, done);
        }
    }
    Ok(Measured { rounds, hash, filters })
}

/// Hashes the sampled keys.
fn time_hash(rounds: &mut Rounds, keys: &Keys, hasher: &Filter, watch: &mut Stopwatch) {
    let sampled = &keys.sample;
    let passes = LAP.div_ceil(sampled.len());
    let ((), lap) = watch.time(|| {
        for _ in 0..passes {
            for key in sampled {
                black_box(hasher.hash(black_box(&**key)));
            }
        }
    });
    rounds.keep(lap, passes * sampled.len());
}

impl Tried {
    fn new(params: Params, rounds: usize) -> Self {
        let [insert, present, absent] = [(); 3].map(|()| Rounds::new(rounds));
        Self { params, stored: 0, load: 0.0, expected_rate: 0.0, false_positives: None, insert, present, absent }
    }

    /// Whether it holds all keys.
    fn fits(&self, keys: &Keys) -> bool {
        self.stored == keys.different()
    }

    /// Whether too many of its times were disturbed.
    fn lacks(&self) -> bool {
        let measured = [&self.insert, &self.present, &self.absent].into_iter().filter(|rounds| rounds.timing().is_some());
        measured.into_iter().any(Rounds::lack)
    }

    /// Builds it, and measures it once. One that refuses a key does so in every round, so that it is not measured any more.
    fn round(&mut self, keys: &Keys, absent: &Absent, watch: &mut Stopwatch) -> anyhow::Result<()> {
        let is_first = self.insert.timing().is_none();
        if !is_first && !self.fits(keys) {
            return Ok(());
        }
        let (filter, lap, operations) = self.build(keys, watch)?;
        self.stored = filter.len();
        if is_first {
            self.load = filter.load_factor();
            self.expected_rate = filter.false_positive_rate();
        }
        self.insert.keep(lap, operations);
        if !self.fits(keys) {
            return Ok(());
        }
        if is_first {
            let found = filter.count_members(&Prehashed(&keys.hashes));
            ensure!(found == keys.different(), "a {} lost a key; please report this", self.params);
            self.false_positives = Some(absent.false_positives(&filter));
        }
        time_lookups(&mut self.present, &filter, &keys.hashes[..keys.different().min(TIMED)], watch);
        time_lookups(&mut self.absent, &filter, &absent.timed, watch);
        Ok(())
    }

    /// A filter of all keys, or of those before the first that it refuses; the time, and the number of insertions that took it.
    /// Few keys are inserted into several filters, which take little memory.
    fn build(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<(Filter, Lap, usize)> {
        let copies = LAP.div_ceil(keys.different()).min(COPIES / self.params.table_bytes().max(1)).max(1);
        let mut filters = (0..copies).map(|_| empty(self.params)).collect::<anyhow::Result<Vec<_>>>()?;
        let (stored, lap) = watch.time(|| filters.iter_mut().map(|filter| insert(filter, &keys.hashes)).sum());
        let filter = filters.pop().context("no filter was built; please report this")?;
        Ok((filter, lap, stored))
    }

    /// The measured rate ε, and its 99 % confidence interval. `None` without absent keys, or if a key was refused.
    fn rate(&self, absent: &Absent) -> Option<(f64, (f64, f64))> {
        let hits = self.false_positives.filter(|_| absent.different > 0)?.different;
        Some((hits as f64 / absent.different as f64, interval(hits as u64, absent.different as u64)))
    }
}

/// An empty filter.
pub(super) fn empty(params: Params) -> anyhow::Result<Filter> {
    let bytes = params.table_bytes();
    let mut filter = CuckooFilter::new(params, HASHER).map_err(|_| {
        anyhow::anyhow!(
            "{bytes} bytes of memory cannot be allocated for a filter; give a smaller --items, or leave --keys and --trace out, \
             which builds nothing"
        )
    })?;
    options::set_kernel(&mut filter)?;
    Ok(filter)
}

/// Inserts the hashes, up to the first one that is refused. Returns how many were inserted.
fn insert(filter: &mut Filter, hashes: &[u64]) -> usize {
    hashes.iter().position(|&hash| filter.insert(&Prehashed(hash)).is_err()).unwrap_or(hashes.len())
}

fn time_lookups(rounds: &mut Rounds, filter: &Filter, hashes: &[u64], watch: &mut Stopwatch) {
    if hashes.is_empty() {
        return;
    }
    let passes = LAP.div_ceil(hashes.len());
    let ((), lap) = watch.time(|| {
        for _ in 0..passes {
            for &hash in hashes {
                black_box(filter.contains(&Prehashed(black_box(hash))));
            }
        }
    });
    rounds.keep(lap, passes * hashes.len());
}

/// The note on times that other work disturbed.
pub(super) const DISTURBED: &str =
    "! Other work on the processor disturbed half of the rounds or more; measure again when it is idle.";

impl Trial {
    pub(super) fn text(&self) -> String {
        let notes = paragraphs(&[self.keys_note(), self.queries_note()]);
        format!("{notes}\n{}\n{}\n{}", self.space_and_times(), self.rates(), paragraphs(&self.legend()))
    }

    fn keys_note(&self) -> String {
        let (keys, different) = (&self.keys, self.keys.different());
        let read = counted(keys.read, "key");
        if !keys.has_duplicates() {
            return format!("Measured with {read}, all different.");
        }
        format!(
            "Measured with {read}, {different} of them different, each stored once: {}; the most frequent key occurs {} times.",
            counted(keys.read - different, "duplicate"),
            keys.most_copies
        )
    }

    fn queries_note(&self) -> String {
        let Absent { queries, different, .. } = &self.absent;
        let Some(Queries { read, present }) = queries else {
            return format!("{different} random absent keys.");
        };
        let (share, absent) = (percent(*present as f64 / *read as f64, 1), self.absent.asked());
        let read = counted(*read, "query");
        let repeats = if *different < absent { format!(", {different} of these different") } else { String::new() };
        format!("{read}: {present} present ({share}), {absent} absent{repeats}.")
    }

    /// One table: what the filters take.
    fn space_and_times(&self) -> String {
        let rows = self.measured.filters.iter().enumerate().map(|(number, filter)| {
            let [insert, present, absent] = [&filter.insert, &filter.present, &filter.absent].map(time);
            let (bytes, snapshot) = (filter.params.table_bytes().to_string(), filter.params.snapshot_bytes().to_string());
            vec![label(&filter.params, number == 0), percent(filter.load, 1), bytes, snapshot, insert, present, absent]
        });
        figures(&["filter", "load", "bytes", "snapshot", "insert", "present", "absent"], rows)
    }

    /// And one: how often they are wrong.
    fn rates(&self) -> String {
        let asks = self.absent.queries.is_some();
        let header = ["filter", "\u{3b5}", "measured", "99 % interval", "of the queries"];
        let rows = self.measured.filters.iter().enumerate().map(|(number, filter)| {
            let mut row = vec![label(&filter.params, number == 0), narrow(filter.expected_rate)];
            row.extend(match filter.rate(&self.absent) {
                Some((rate, (low, high))) => [narrow(rate), format!("{} to {}", narrow(low), narrow(high))],
                None => ["-", "-"].map(String::from),
            });
            // Among all absent queries, as often as they were asked.
            let mistaken = || {
                let found = filter.false_positives.map(|found| format!("{} of {}", found.asked, self.absent.asked()));
                found.unwrap_or_else(|| String::from("-"))
            };
            row.extend(asks.then(mistaken));
            row
        });
        figures(&header[..if asks { 5 } else { 4 }], rows)
    }

    fn legend(&self) -> Vec<String> {
        let full = self.measured.filters.iter().filter(|filter| !filter.fits(&self.keys));
        let mut notes: Vec<_> = full
            .map(|filter| {
                format!("{}: full after {}; give a larger --items.", label(&filter.params, false), counted(filter.stored, "key"))
            })
            .collect();
        if notes.is_empty() {
            notes.push(String::from("Each filter has room for all keys."));
        }
        let hash = time(&self.measured.hash);
        notes.push(format!(
            "insert, present, absent: ns per insertion, and per lookup of a present and of an absent key, one at a time, medians \
             of {}. Hashing is not included: {hash} ns per key (XXH3).",
            counted(self.measured.rounds, "round")
        ));
        let times = self.measured.filters.iter().flat_map(|filter| [&filter.insert, &filter.present, &filter.absent]);
        if times.chain([&self.measured.hash]).any(is_disturbed) {
            notes.push(String::from(DISTURBED));
        }
        notes.push(match (&self.absent.queries, self.absent.different) {
            (Some(_), 0) => String::from("No query is absent, so that no rate can be measured: give --queries with absent ones."),
            (Some(_), _) => String::from(
                "\u{3b5}: expected at this load, and measured with the different absent queries; of the queries: false positives \
                 among all absent ones, as often as they were asked.",
            ),
            (None, _) => String::from("\u{3b5}: expected at this load, and measured."),
        });
        notes
    }
}

pub(super) fn is_disturbed(rounds: &Rounds) -> bool {
    rounds.timing().is_some_and(|timing| timing.disturbed)
}

/// The median, with a mark if it was disturbed.
pub(super) fn time(rounds: &Rounds) -> String {
    let Some(timing) = rounds.timing() else { return String::from("-") };
    format!("{:.1}{}", timing.quartiles.median, if timing.disturbed { "!" } else { "" })
}

impl Trial {
    /// What is the same for all filters.
    pub(super) fn object(&self) -> Value {
        let (keys, absent) = (&self.keys, &self.absent);
        json!({
            "keys": {
                "read": keys.read,
                "different": keys.different(),
                "duplicates": keys.read - keys.different(),
                "most_copies": keys.most_copies,
            },
            "queries": absent.queries.as_ref().map(|queries| json!({
                "read": queries.read,
                "present": queries.present,
                "absent": absent.asked(),
                "present_share": queries.present as f64 / queries.read as f64,
            })),
            "absent_keys": absent.different,
            "absent_keys_from": if absent.queries.is_some() { "queries" } else { "random" },
            "hash_ns": times(&self.measured.hash),
            "rounds": self.measured.rounds,
        })
    }

    /// What was measured of one of the filters; null if it was not tried.
    pub(super) fn measured(&self, params: &Params) -> Value {
        let tried = self.measured.filters.iter().find(|filter| filter.params == *params);
        tried.map_or(Value::Null, |filter| self.filter(filter))
    }

    fn filter(&self, filter: &Tried) -> Value {
        let found = filter.false_positives;
        let (rate, interval) = filter.rate(&self.absent).unzip();
        let (low, high) = interval.unzip();
        json!({
            "fits": filter.fits(&self.keys),
            "stored": filter.stored,
            "load_factor": filter.load,
            "snapshot_bytes": filter.params.snapshot_bytes(),
            "expected_false_positive_rate": filter.expected_rate,
            "false_positive_rate": rate,
            "false_positive_rate_low": low,
            "false_positive_rate_high": high,
            "false_positives": found.map(|found| found.different),
            "query_false_positives": found.filter(|_| self.absent.queries.is_some()).map(|found| found.asked),
            "insert_ns": times(&filter.insert),
            "present_ns": times(&filter.present),
            "absent_ns": times(&filter.absent),
        })
    }
}

/// The quartiles; null if there are no times.
pub(super) fn times(rounds: &Rounds) -> Value {
    rounds.timing().map_or(Value::Null, |Timing { quartiles, disturbed, .. }| {
        json!({ "median": quartiles.median, "low": quartiles.low, "high": quartiles.high, "disturbed": disturbed })
    })
}

#[cfg(test)]
mod tests {
    use koel::tuning::{Constraints, recommend};

    use super::*;

    #[test]
    fn the_limit_is_an_error_with_a_remedy() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        std::io::Write::write_all(&mut file, b"1\n2\n3\n").expect("room");
        let mut items = Items::open(file.path(), Separator::default(), false).expect("a list");
        let mut hashes = Vec::new();
        for fits in [true, true, false] {
            items.advance().expect("a line");
            let pushed = push(&mut hashes, 7, 2, &items);
            assert_eq!(pushed.is_ok(), fits);
            if let Err(error) = pushed {
                let error = error.to_string();
                let parts = ["line 3 of", ": 2 items have been kept, the limit, at 8 bytes", "give a sample", "`shuf -n "];
                assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            }
        }
        assert_eq!(hashes, [7, 7]);
    }

    /// It says where it was full, and nothing else.
    #[test]
    fn a_filter_that_is_too_small_is_not_measured() {
        let hasher = hasher().expect("small");
        let sample: Vec<Box<[u8]>> = (0..1000).map(|number| number.to_string().into_bytes().into()).collect();
        let keys = Keys::of(sample.iter().map(|key| hasher.hash(&**key)).collect(), sample);
        let advice = recommend(500, 0.01, &Constraints::default());
        let filters = [advice.best().expect("there is one")];
        let absent = Absent::random(&filters);
        let measured = measure(&keys, &absent, &hasher, &filters).expect("enough memory");
        let tried = &measured.filters[0];
        assert!(!tried.fits(&keys) && (500..700).contains(&tried.stored), "{}", tried.stored);
        assert!(tried.rate(&absent).is_none() && tried.present.timing().is_none());
    }
}
