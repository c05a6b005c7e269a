//! A trial of the recommended filters: built from the caller's own keys, and asked the caller's own queries.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use koel::{Params, Prehashed, tuning::Candidate};
use koel_lab::{Rounds, Stopwatch, interval, percent};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    answer::{label, starred},
    measure::{copies, disturbed, empty, hasher, in_rounds, median, rounds, time_each, times},
};
use crate::{
    file::{self, Filter},
    items::{Items, Separator},
    text::{counted, dash, figures, narrow, paragraphs},
};

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
    pub(super) separator: Separator,
}

/// What was measured, for programs; the filters are in a table of the text, and each beside its candidate.
#[derive(Serialize)]
pub(super) struct Trial {
    keys: Keys,
    #[serde(flatten)]
    absent: Probes,
    /// Of a key.
    #[serde(rename = "hash_ns", serialize_with = "times")]
    hash: Rounds,
    /// Without those that follow a disturbance.
    rounds: usize,
    #[serde(skip)]
    filters: Vec<Tried>,
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

    /// Builds these filters from the keys, and measures them.
    pub(super) fn measure(&self, mut keys: Keys, filters: &[&Candidate]) -> anyhow::Result<Trial> {
        let (hasher, rounds) = (hasher()?, rounds(keys.different));
        let absent = match &self.queries {
            Some(path) => Probes::read(path, self.separator, &keys, &hasher)?,
            None => Probes::random(filters),
        };
        // In ascending order, a table would be filled from one end.
        shuffle(&mut keys.hashes);
        let mut hash = Rounds::new(rounds);
        in_rounds(rounds, std::slice::from_mut(&mut hash), Rounds::lack, |hash, watch| {
            time_each(hash, watch, &keys.sample, |key| hasher.hash(&**key));
            Ok(())
        })?;
        let mut filters: Vec<_> = filters.iter().map(|filter| Tried::new(*filter.params(), rounds)).collect();
        in_rounds(rounds, &mut filters, Tried::lacks, |filter, watch| filter.round(&keys, &absent, watch))?;
        Ok(Trial { keys, absent, hash, rounds, filters })
    }
}

/// Hashes that are kept at the same time, of keys or of absent queries: 1 GiB.
const MOST_HASHES: usize = 1 << 27;

/// The first keys, of which hashing is timed, are kept up to so many bytes.
const SAMPLED_BYTES: usize = 1 << 20;

/// The seeds of the order of hashes, and of absent keys.
const ORDER: u64 = 1;
const ABSENT: u64 = 2;

/// Keys, told apart by their hashes.
#[derive(Serialize)]
pub(super) struct Keys {
    read: usize,
    pub(super) different: usize,
    pub(super) duplicates: usize,
    /// How often the most frequent one was read.
    most_copies: usize,
    /// Each once: ascending, until they are shuffled.
    #[serde(skip)]
    hashes: Vec<u64>,
    /// The bytes of the first ones.
    #[serde(skip)]
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
        Self { read, different: hashes.len(), duplicates: read - hashes.len(), most_copies, hashes, sample }
    }
}

/// Puts hashes in an order as good as random, the same in every run: that of hashes of the hashes.
fn shuffle(hashes: &mut [u64]) {
    hashes.sort_unstable_by_key(|hash| xxh3_64_with_seed(&hash.to_le_bytes(), ORDER));
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

/// Probes keys, as hashes.
#[derive(Serialize)]
struct Probes {
    /// `None` if the absent keys are random.
    queries: Option<Queries>,
    absent_keys_from: &'static str,
    /// How many of them are different.
    absent_keys: usize,
    /// Ascending, each as often as it was asked for.
    #[serde(skip)]
    hashes: Vec<u64>,
    /// At most [`TIMED`] different ones, in a random order.
    #[serde(skip)]
    timed: Vec<u64>,
}

/// How many queries were read, and how many of these are keys.
#[derive(Serialize)]
struct Queries {
    read: usize,
    present: usize,
    absent: usize,
    present_share: f64,
}

impl Probes {
    /// Reads the queries. The keys must not have been shuffled yet.
    fn read(path: &Path, separator: Separator, keys: &Keys, hasher: &Filter) -> anyhow::Result<Self> {
        let mut items = Items::open(path, separator, true)?;
        let (mut hashes, mut present) = (Vec::new(), 0);
        while let Some(query) = items.advance()? {
            let hash = hasher.hash(query);
            if keys.hashes.binary_search(&hash).is_ok() {
                present += 1;
            } else {
                push(&mut hashes, hash, MOST_HASHES, &items)?;
            }
        }
        let (absent, read) = (hashes.len(), hashes.len() + present);
        if read == 0 {
            bail!("--queries: {} has no queries; give at least one, or leave --queries out", file::name(path));
        }
        let queries = Queries { read, present, absent, present_share: present as f64 / read as f64 };
        Ok(Self { queries: Some(queries), absent_keys_from: "queries", ..Self::of(hashes) })
    }

    /// Random ones, the same in every run: a filter sees hashes only, and those of keys are as good as random. That one of them is a
    /// key's is as unlikely as that two keys have the same hash. So many that the first filter has enough false positives, within
    /// bounds.
    fn random(filters: &[&Candidate]) -> Self {
        let rate = filters.first().map_or(1.0, |best| best.false_positive_rate());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats are saturating")]
        let wanted = ((HITS / rate).ceil() as usize).clamp(FEWEST, MOST);
        let hashes = (0_u64..).map(|number| xxh3_64_with_seed(&number.to_le_bytes(), ABSENT));
        Self::of(hashes.take(wanted).collect())
    }

    fn of(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        let absent_keys = hashes.chunk_by(u64::eq).count();
        let step = absent_keys.div_ceil(TIMED).max(1);
        let mut timed: Vec<_> = hashes.chunk_by(u64::eq).map(|same| same[0]).step_by(step).collect();
        shuffle(&mut timed);
        Self { queries: None, absent_keys_from: "random", absent_keys, hashes, timed }
    }
}

/// A filter that was built from the keys.
#[derive(Serialize)]
pub(super) struct Tried {
    #[serde(skip)]
    params: Params,
    fits: bool,
    /// How many keys it took before it refused one; all of them, as a rule.
    stored: usize,
    load_factor: f64,
    snapshot_bytes: u64,
    /// The rate ε that follows from the parameters and the load.
    expected_false_positive_rate: f64,
    #[serde(flatten)]
    found: Found,
    #[serde(rename = "insert_ns", serialize_with = "times")]
    insert: Rounds,
    #[serde(rename = "present_ns", serialize_with = "times")]
    present: Rounds,
    #[serde(rename = "absent_ns", serialize_with = "times")]
    absent: Rounds,
}

/// Probes keys that a filter reports as present. `None` if it refused a key.
#[derive(Default, Serialize)]
struct Found {
    /// Each counted once.
    false_positives: Option<usize>,
    /// Each counted as often as it was asked for; `None` without queries.
    query_false_positives: Option<usize>,
    /// The measured rate ε, and its 99 % confidence interval; `None` without absent keys.
    false_positive_rate: Option<f64>,
    false_positive_rate_low: Option<f64>,
    false_positive_rate_high: Option<f64>,
}

impl Found {
    fn of(filter: &Filter, absent: &Probes) -> Self {
        let (mut found, mut asked) = (0, 0);
        for same in absent.hashes.chunk_by(u64::eq).filter(|same| filter.contains(&Prehashed(same[0]))) {
            found += 1;
            asked += same.len();
        }
        let all = absent.absent_keys;
        let (low, high) = (all > 0).then(|| interval(found as u64, all as u64)).unzip();
        Self {
            false_positives: Some(found),
            query_false_positives: absent.queries.as_ref().map(|_| asked),
            false_positive_rate: (all > 0).then(|| found as f64 / all as f64),
            false_positive_rate_low: low,
            false_positive_rate_high: high,
        }
    }
}

impl Tried {
    fn new(params: Params, rounds: usize) -> Self {
        let [insert, present, absent] = [(); 3].map(|()| Rounds::new(rounds));
        Self {
            params,
            fits: true,
            stored: 0,
            load_factor: 0.0,
            snapshot_bytes: params.snapshot_bytes(),
            expected_false_positive_rate: 0.0,
            found: Found::default(),
            insert,
            present,
            absent,
        }
    }

    fn times(&self) -> [&Rounds; 3] {
        [&self.insert, &self.present, &self.absent]
    }

    /// Whether too many of its times were disturbed.
    fn lacks(&self) -> bool {
        self.times().into_iter().any(|rounds| rounds.timing().is_some() && rounds.lack())
    }

    /// Builds it from all keys, or from those before the first that it refuses, and measures it once. Few keys are inserted into
    /// several filters, which take little memory.
    fn round(&mut self, keys: &Keys, absent: &Probes, watch: &mut Stopwatch) -> anyhow::Result<()> {
        let mut filters = copies(keys.different, self.params.table_bytes(), || empty(self.params))?;
        let insert =
            |filter: &mut Filter| keys.hashes.iter().take_while(|&&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
        let (stored, lap) = watch.time(|| filters.iter_mut().map(insert).sum());
        self.insert.keep(lap, stored);
        let filter = filters.pop().context("no filter was built; please report this")?;
        self.stored = filter.len();
        self.fits = self.stored == keys.different;
        self.load_factor = filter.load_factor();
        self.expected_false_positive_rate = filter.false_positive_rate();
        if !self.fits {
            return Ok(());
        }
        if self.found.false_positives.is_none() {
            let found = filter.count_members(&Prehashed(&keys.hashes));
            ensure!(found == keys.different, "a {} lost a key; please report this", self.params);
            self.found = Found::of(&filter, absent);
        }
        let contains = |hash: &u64| filter.contains(&Prehashed(*hash));
        time_each(&mut self.present, watch, &keys.hashes[..keys.different.min(TIMED)], contains);
        time_each(&mut self.absent, watch, &absent.timed, contains);
        Ok(())
    }
}

impl Trial {
    /// What was measured of one of the filters, if it was tried.
    pub(super) fn measured(&self, params: &Params) -> Option<&Tried> {
        self.filters.iter().find(|filter| filter.params == *params)
    }

    pub(super) fn text(&self) -> String {
        let notes = paragraphs(&[self.keys_note(), self.queries_note()]);
        format!("{notes}\n{}\n{}\n{}", self.space_and_times(), self.rates(), paragraphs(&self.legend()))
    }

    fn keys_note(&self) -> String {
        let Keys { read, different, duplicates, most_copies, .. } = self.keys;
        let read = counted(read, "key");
        if duplicates == 0 {
            return format!("Measured with {read}, all different.");
        }
        format!(
            "Measured with {read}, {different} of them different, each stored once: {}; the most frequent key occurs {most_copies} \
             times.",
            counted(duplicates, "duplicate")
        )
    }

    fn queries_note(&self) -> String {
        let different = self.absent.absent_keys;
        let Some(Queries { read, present, absent, present_share }) = self.absent.queries else {
            return format!("{different} random absent keys.");
        };
        let (read, share) = (counted(read, "query"), percent(present_share, 1));
        let repeats = if different < absent { format!(", {different} of these different") } else { String::new() };
        format!("{read}: {present} present ({share}), {absent} absent{repeats}.")
    }

    /// One table: what the filters take.
    fn space_and_times(&self) -> String {
        let rows = self.filters.iter().enumerate().map(|(place, filter)| {
            let [insert, present, absent] = filter.times().map(median);
            let (bytes, snapshot) = (filter.params.table_bytes().to_string(), filter.snapshot_bytes.to_string());
            vec![
                starred(label(&filter.params), place == 0),
                percent(filter.load_factor, 1),
                bytes,
                snapshot,
                insert,
                present,
                absent,
            ]
        });
        figures(&["filter", "load", "bytes", "snapshot", "insert", "present", "absent"], rows)
    }

    /// And one: how often they are wrong.
    fn rates(&self) -> String {
        let asked = self.absent.queries.as_ref().map(|queries| queries.absent);
        let header = ["filter", "\u{3b5}", "measured", "99 % interval", "of the queries"];
        let rows = self.filters.iter().enumerate().map(|(place, filter)| {
            let found = &filter.found;
            let interval = found.false_positive_rate_low.zip(found.false_positive_rate_high);
            let mut row = vec![
                starred(label(&filter.params), place == 0),
                narrow(filter.expected_false_positive_rate),
                dash(found.false_positive_rate.map(narrow)),
                dash(interval.map(|(low, high)| format!("{} to {}", narrow(low), narrow(high)))),
            ];
            // Among all absent queries, as often as they were asked.
            row.extend(asked.map(|asked| dash(found.query_false_positives.map(|found| format!("{found} of {asked}")))));
            row
        });
        figures(&header[..if asked.is_some() { 5 } else { 4 }], rows)
    }

    fn legend(&self) -> Vec<String> {
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
            "insert, present, absent: ns per insertion, and per lookup of a present and of an absent key, one at a time, medians \
             of {}. Hashing is not included: {} ns per key (XXH3).",
            counted(self.rounds, "round"),
            median(&self.hash)
        ));
        notes.extend(disturbed(self.filters.iter().flat_map(Tried::times).chain([&self.hash])));
        notes.push(String::from(match (&self.absent.queries, self.absent.absent_keys) {
            (Some(_), 0) => "No query is absent, so that no rate can be measured: give --queries with absent ones.",
            (Some(_), _) => {
                "\u{3b5}: expected at this load, and measured with the different absent queries; of the queries: false positives \
                 among all absent ones, as often as they were asked."
            }
            (None, _) => "\u{3b5}: expected at this load, and measured.",
        }));
        notes
    }
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
        let mut push_next = || {
            items.advance().expect("a line");
            push(&mut hashes, 7, 2, &items)
        };
        assert!(push_next().is_ok() && push_next().is_ok());
        let error = push_next().expect_err("the third is one too many").to_string();
        let parts = ["line 3 of", ": 2 items have been kept, the limit, at 8 bytes", "give a sample", "`shuf -n "];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }

    /// It says where it was full, and nothing else.
    #[test]
    fn a_filter_that_is_too_small_is_not_measured() {
        let sample: Vec<Box<[u8]>> = (0..1000).map(|number| number.to_string().into_bytes().into()).collect();
        let hasher = hasher().expect("small");
        let keys = Keys::of(sample.iter().map(|key| hasher.hash(&**key)).collect(), sample);
        let advice = recommend(500, 0.01, &Constraints::default());
        let files = Files { keys: None, queries: None, separator: Separator::default() };
        let trial = files.measure(keys, &[advice.best().expect("there is one")]).expect("enough memory");
        let tried = &trial.filters[0];
        assert!(!tried.fits && (500..700).contains(&tried.stored), "{}", tried.stored);
        assert!(tried.found.false_positive_rate.is_none() && tried.present.timing().is_none());
    }
}
