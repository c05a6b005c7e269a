//! Golden snapshots: the steps that create each, and the expected answers of its queries. `tests/data/goldens.json` lists them,
//! also for readers in other languages.

use koel::{
    Addressing, Contains, CuckooFilter, Prehashed, TableKind,
    hash::{AnyHasher, HasherId},
};
use serde_json::Value;
use std::{collections::BTreeMap, ops::Range};

/// The number of probes: items that were not inserted, and are looked up.
pub(crate) const PROBES: u64 = 2000;

/// One golden snapshot.
#[derive(Clone, Debug)]
pub(crate) struct Golden {
    pub(crate) file: String,
    pub(crate) table: TableKind,
    pub(crate) f: u32,
    pub(crate) b: u32,
    pub(crate) addressing: Addressing,
    pub(crate) buckets: u64,
    pub(crate) hasher: HasherId,
    pub(crate) seed: u64,
    pub(crate) items: Items,
    pub(crate) steps: Vec<Step>,
    /// `None` until the snapshot is created.
    pub(crate) answers: Option<Answers>,
}

/// The items and probes of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// Item n is `item-n`, probe n is `probe-n`.
    Text,
    /// Item n is the integer n, and probe n is 1000000 + n, both as `u32`.
    U32,
    /// The texts of `Text`, repeated n mod 40 + 1 times.
    Long,
    /// Item n is the prehashed number n, and probe n is 1000000 + n. They have no bytes.
    Hash,
    /// Item n is `key-n`, probe n is `probe-n`, as in RedisBloom's dumps.
    Keys,
}

/// A step in filling a filter.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Inserts these items in order, up to the first that is refused.
    Insert(Range<u64>),
    /// Inserts this many copies of each of these items in a row, up to the first that is refused.
    Copies(Range<u64>, u64),
    /// Removes one copy of each of these items that is present.
    Remove(Range<u64>),
    /// Converts this RedisBloom dump, which has one copy of each of these items. It must be the first step.
    Convert(#[cfg_attr(not(feature = "redisbloom"), allow(dead_code, reason = "nothing reads dumps"))] String, Range<u64>),
}

/// The answers that every reader must give for the snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    /// The items in the filter, as runs of numbers, and how many copies each item of a run has.
    pub(crate) holds: Vec<(Range<u64>, u64)>,
    /// The probes that are found, all of them false positives.
    pub(crate) found: Vec<u64>,
}

impl Items {
    pub(crate) const NAMES: [(Self, &'static str); 5] =
        [(Self::Text, "text"), (Self::U32, "u32"), (Self::Long, "long"), (Self::Hash, "hash"), (Self::Keys, "keys")];

    /// Inserts item n. Returns false if there was no room.
    fn insert(self, filter: &mut CuckooFilter<AnyHasher>, n: u64) -> bool {
        match self.bytes("item", n, n) {
            Some(item) => filter.insert(&item).is_ok(),
            None => filter.insert(&Prehashed(n)).is_ok(),
        }
    }

    fn remove(self, filter: &mut CuckooFilter<AnyHasher>, n: u64) -> bool {
        match self.bytes("item", n, n) {
            Some(item) => filter.remove(&item),
            None => filter.remove(&Prehashed(n)),
        }
    }

    /// Returns how many copies of item n the filter counts.
    #[allow(dead_code, reason = "the program that writes the files does not count items")]
    pub(crate) fn count(self, filter: &dyn Contains<[u8]>, n: u64) -> u32 {
        self.bytes("item", n, n).map_or_else(|| filter.by_hash().count(&Prehashed(n)), |item| filter.count(&item))
    }

    fn finds_probe(self, filter: &dyn Contains<[u8]>, n: u64) -> bool {
        let number = 1_000_000 + n;
        let by_hash = || filter.by_hash().contains(&Prehashed(number));
        self.bytes("probe", n, number).map_or_else(by_hash, |probe| filter.contains(&probe))
    }

    /// Returns the bytes of item or probe n, or `None` for a prehashed one. `number` stands for it where items are integers.
    pub(crate) fn bytes(self, prefix: &str, n: u64, number: u64) -> Option<Vec<u8>> {
        match self {
            Self::Keys if prefix == "item" => Some(format!("key-{n}").into_bytes()),
            Self::Text | Self::Keys => Some(format!("{prefix}-{n}").into_bytes()),
            Self::U32 => Some(u32::try_from(number).expect("a small number").to_le_bytes().to_vec()),
            Self::Long => Some((0..=n % 40).flat_map(|_| format!("{prefix}-{n}").into_bytes()).collect()),
            Self::Hash => None,
        }
    }
}

impl Golden {
    /// Returns the filter before the steps, empty or converted, or `None` if this build lacks the hasher.
    fn start(&self) -> Option<CuckooFilter<AnyHasher>> {
        #[cfg(feature = "redisbloom")]
        if let Some(Step::Convert(dump, _)) = self.steps.first() {
            return Some(converted(dump));
        }
        let builder = CuckooFilter::builder().table(self.table).fingerprint_bits(self.f).bucket_size(self.b);
        let builder = builder.addressing(self.addressing).buckets(self.buckets).seed(self.seed);
        let filter = builder.hasher(AnyHasher::from_id(self.hasher)?).build();
        Some(filter.unwrap_or_else(|error| panic!("{}: {error}", self.file)))
    }

    /// Creates the filter and its answers, or returns `None` if this build lacks the hasher.
    pub(crate) fn make(&self) -> Option<(CuckooFilter<AnyHasher>, Answers)> {
        let mut filter = self.start()?;
        let insert = |filter: &mut _, n| self.items.insert(filter, n);
        let remove = |filter: &mut _, n| self.items.remove(filter, n);
        let holds = apply(&self.steps, &mut filter, insert, remove).unwrap_or_else(|n| panic!("{}: item {n} is lost", self.file));
        let answers = Answers { holds, found: self.found(&filter) };
        Some((filter, answers))
    }

    /// Returns the probes that the filter finds.
    pub(crate) fn found(&self, filter: &dyn Contains<[u8]>) -> Vec<u64> {
        (0..PROBES).filter(|&n| self.items.finds_probe(filter, n)).collect()
    }

    /// Parses a manifest.
    pub(crate) fn list(text: &str) -> Vec<Self> {
        entries(text).iter().map(|entry| Self::from_json(&Entry(entry))).collect()
    }

    fn from_json(entry: &Entry<'_>) -> Self {
        Self {
            file: entry.text("file").into(),
            table: entry.table(),
            f: entry.small("f"),
            b: entry.small("b"),
            addressing: named([Addressing::AnySize, Addressing::PowerOfTwo], entry.text("addressing")),
            buckets: entry.number("buckets"),
            hasher: named([HasherId::XXH3, HasherId::METRO_HASH_64, HasherId::REDIS_BLOOM], entry.text("hasher")),
            seed: entry.number("seed"),
            items: entry.items(),
            steps: entry.steps(),
            answers: entry.answers(),
        }
    }
}

/// Converts a RedisBloom dump to a filter whose hasher is chosen at run time.
#[cfg(feature = "redisbloom")]
fn converted(dump: &str) -> CuckooFilter<AnyHasher> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/redisbloom").join(dump);
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{dump}: {error}"));
    let dumped = koel::redisbloom::RedisBloomFilter::from_dump(&bytes).unwrap_or_else(|error| panic!("{dump}: {error}"));
    let filter = dumped.to_filter().unwrap_or_else(|error| panic!("{dump}: {error}"));
    CuckooFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("a valid snapshot")
}

/// Returns the entries of a manifest.
pub(crate) fn entries(text: &str) -> Vec<Value> {
    let manifest: Value = serde_json::from_str(text).expect("the manifest is JSON");
    assert_eq!(manifest["probes"].as_u64(), Some(PROBES));
    rows(&manifest["files"]).to_vec()
}

/// An entry of a manifest, with the fields that fixed and growing filters share.
pub(crate) struct Entry<'a>(pub(crate) &'a Value);

impl Entry<'_> {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_else(|| panic!("{name} is a string in {}", self.0))
    }

    pub(crate) fn number(&self, name: &str) -> u64 {
        self.0[name].as_u64().unwrap_or_else(|| panic!("{name} is a number in {}", self.0))
    }

    pub(crate) fn small(&self, name: &str) -> u32 {
        u32::try_from(self.number(name)).expect("a small number")
    }

    pub(crate) fn table(&self) -> TableKind {
        named([TableKind::Single, TableKind::Packed], self.text("table"))
    }

    pub(crate) fn items(&self) -> Items {
        Items::NAMES.iter().find(|(_, name)| *name == self.text("items")).expect("a known name").0
    }

    /// Returns the hashes of an entry of a growing filter, which are strings: many readers of JSON have no integers of 64 bits.
    #[cfg(feature = "std")]
    pub(crate) fn hashes(&self) -> Vec<u64> {
        let parse = |hash: &Value| hash.as_str().and_then(|hash| hash.parse().ok()).expect("a hash is a number in a string");
        self.0["hashes"].as_array().map_or(Vec::new(), |hashes| hashes.iter().map(parse).collect())
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        rows(&self.0["steps"]).iter().map(step).collect()
    }

    /// Returns the answers, or `None` if the snapshot has not been created.
    pub(crate) fn answers(&self) -> Option<Answers> {
        (!self.0["holds"].is_null()).then(|| Answers {
            holds: rows(&self.0["holds"]).iter().map(|run| (range(run, 0), integer(&run[2]))).collect(),
            found: rows(&self.0["found"]).iter().map(integer).collect(),
        })
    }
}

/// Applies the steps to a filter. Returns the items that it should hold then, with their copies, or the first item that could not
/// be removed although it was present.
pub(crate) fn apply<F>(
    steps: &[Step],
    filter: &mut F,
    insert: impl Fn(&mut F, u64) -> bool,
    remove: impl Fn(&mut F, u64) -> bool,
) -> Result<Vec<(Range<u64>, u64)>, u64> {
    let mut copies = BTreeMap::new();
    for step in steps {
        match step.clone() {
            Step::Insert(items) => {
                for n in items.take_while(|&n| insert(filter, n)) {
                    *copies.entry(n).or_insert(0) += 1;
                }
            }
            Step::Copies(items, number) => {
                for n in items.flat_map(|n| (0..number).map(move |_| n)).take_while(|&n| insert(filter, n)) {
                    *copies.entry(n).or_insert(0) += 1;
                }
            }
            Step::Convert(_, items) => copies.extend(items.map(|n| (n, 1))),
            Step::Remove(items) => {
                for n in items {
                    if let Some(copies) = copies.get_mut(&n).filter(|copies| **copies > 0) {
                        if !remove(filter, n) {
                            return Err(n);
                        }
                        *copies -= 1;
                    }
                }
            }
        }
    }
    copies.retain(|_, copies| *copies > 0);
    Ok(runs(&copies))
}

/// Groups consecutive items with equal copy counts into runs.
fn runs(copies: &BTreeMap<u64, u64>) -> Vec<(Range<u64>, u64)> {
    let mut runs: Vec<(Range<u64>, u64)> = Vec::new();
    for (&n, &count) in copies {
        match runs.last_mut() {
            Some((run, copies)) if run.end == n && *copies == count => run.end += 1,
            _ => runs.push((n..n + 1, count)),
        }
    }
    runs
}

fn named<T: ToString, const N: usize>(values: [T; N], name: &str) -> T {
    values.into_iter().find(|value| value.to_string() == name).unwrap_or_else(|| panic!("unknown name: {name}"))
}

fn rows(list: &Value) -> &[Value] {
    list.as_array().expect("a list")
}

fn integer(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn range(row: &Value, at: usize) -> Range<u64> {
    integer(&row[at])..integer(&row[at + 1])
}

fn step(row: &Value) -> Step {
    match row[0].as_str() {
        Some("insert") => Step::Insert(range(row, 1)),
        Some("copies") => Step::Copies(range(row, 1), integer(&row[3])),
        Some("remove") => Step::Remove(range(row, 1)),
        Some("convert") => Step::Convert(row[1].as_str().expect("a file name").into(), range(row, 2)),
        _ => panic!("unknown step: {row}"),
    }
}
