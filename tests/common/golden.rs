//! Snapshots that are made by a list of steps, and what each of them answers: `tests/data/goldens.json`, which readers
//! in other languages use, too.

use koel::{Addressing, AnyHasher, CuckooFilter, HasherId, TableKind};
use serde_json::Value;
use std::{collections::BTreeMap, ops::Range};

/// How many items nobody put in are asked for.
pub(crate) const PROBES: u64 = 2000;

/// One snapshot.
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
    /// None of one that is yet to be made.
    pub(crate) answers: Option<Answers>,
}

/// Which bytes the items and the probes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Items {
    /// Item n is `item-n`, probe n is `probe-n`.
    Text,
    /// Item n is the integer n, probe n is 1000000 + n, both of 32 bits.
    U32,
    /// As text, and that n mod 40 + 1 times.
    Long,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// These items one after the other, up to the first that is refused.
    Insert(Range<u64>),
    /// These, one copy of each, where there is one.
    Remove(Range<u64>),
}

/// What a reader finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    /// The items in it, as runs of numbers, and the copies of each of a run.
    pub(crate) holds: Vec<(Range<u64>, u64)>,
    /// The probes that seem to be in it.
    pub(crate) found: Vec<u64>,
}

impl Items {
    pub(crate) const NAMES: [(Self, &'static str); 3] = [(Self::Text, "text"), (Self::U32, "u32"), (Self::Long, "long")];

    pub(crate) fn item(self, n: u64) -> Vec<u8> {
        self.bytes("item", n, n)
    }

    pub(crate) fn probe(self, n: u64) -> Vec<u8> {
        self.bytes("probe", n, 1_000_000 + n)
    }

    fn bytes(self, prefix: &str, n: u64, number: u64) -> Vec<u8> {
        match self {
            Self::Text => format!("{prefix}-{n}").into_bytes(),
            Self::U32 => u32::try_from(number).expect("small numbers").to_le_bytes().to_vec(),
            Self::Long => (0..=n % 40).flat_map(|_| format!("{prefix}-{n}").into_bytes()).collect(),
        }
    }
}

impl Golden {
    /// An empty filter of this kind; or none, where its hasher is missing.
    fn empty(&self) -> Option<CuckooFilter<AnyHasher>> {
        let builder = CuckooFilter::builder().table(self.table).fingerprint_bits(self.f).bucket_size(self.b);
        let builder = builder.addressing(self.addressing).buckets(self.buckets).seed(self.seed);
        let filter = builder.hasher(AnyHasher::from_id(self.hasher)?).build();
        Some(filter.unwrap_or_else(|error| panic!("{}: {error}", self.file)))
    }

    /// Takes the steps. None where the hasher is missing.
    pub(crate) fn make(&self) -> Option<(CuckooFilter<AnyHasher>, Answers)> {
        let mut filter = self.empty()?;
        let mut copies = BTreeMap::new();
        for step in &self.steps {
            match step.clone() {
                Step::Insert(items) => {
                    for n in items.take_while(|&n| filter.insert(&self.items.item(n)).is_ok()) {
                        *copies.entry(n).or_insert(0) += 1;
                    }
                }
                Step::Remove(items) => {
                    for n in items {
                        if let Some(copies) = copies.get_mut(&n).filter(|copies| **copies > 0) {
                            assert!(filter.remove(&self.items.item(n)), "{}: item {n} is lost", self.file);
                            *copies -= 1;
                        }
                    }
                }
            }
        }
        copies.retain(|_, copies| *copies > 0);
        let answers = Answers { holds: runs(&copies), found: self.found(|probe| filter.contains(probe)) };
        Some((filter, answers))
    }

    /// The probes that a filter contains, or seems to.
    pub(crate) fn found(&self, contains: impl Fn(&Vec<u8>) -> bool) -> Vec<u64> {
        (0..PROBES).filter(|&n| contains(&self.items.probe(n))).collect()
    }

    /// A list of them as it stands in a manifest.
    pub(crate) fn list(text: &str) -> Vec<Self> {
        let manifest: Value = serde_json::from_str(text).expect("it is JSON");
        assert_eq!(manifest["probes"].as_u64(), Some(PROBES));
        manifest["files"].as_array().expect("a list").iter().map(Self::from_json).collect()
    }

    fn from_json(entry: &Value) -> Self {
        let text = |name: &str| entry[name].as_str().unwrap_or_else(|| panic!("{name} is a string in {entry}"));
        let number = |name: &str| entry[name].as_u64().unwrap_or_else(|| panic!("{name} is a number in {entry}"));
        let small = |name| u32::try_from(number(name)).expect("a small number");
        Self {
            file: text("file").into(),
            table: named([TableKind::Single, TableKind::Packed], text("table")),
            f: small("f"),
            b: small("b"),
            addressing: named([Addressing::AnySize, Addressing::PowerOfTwo], text("addressing")),
            buckets: number("buckets"),
            hasher: named([HasherId::XXH3, HasherId::METRO_HASH_64], text("hasher")),
            seed: number("seed"),
            items: Items::NAMES.iter().find(|(_, name)| *name == text("items")).expect("one of three").0,
            steps: rows(&entry["steps"]).iter().map(step).collect(),
            answers: (!entry["holds"].is_null()).then(|| Answers {
                holds: rows(&entry["holds"]).iter().map(|run| (range(run, 0), integer(&run[2]))).collect(),
                found: rows(&entry["found"]).iter().map(integer).collect(),
            }),
        }
    }
}

/// Numbers that follow each other and have as many copies.
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
    values.into_iter().find(|value| value.to_string() == name).unwrap_or_else(|| panic!("{name} is none"))
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
        Some("remove") => Step::Remove(range(row, 1)),
        _ => panic!("{row} is no step"),
    }
}
