//! Golden snapshots of growing filters: the steps that create each, and the expected answers of its queries.
//! `tests/data/growing/growing.json` lists them.

use super::golden::{Answers, Entry, Items, PROBES, Step, apply, entries};
use koel::{ElasticFilter, Prehashed};

/// One golden snapshot: the settings of its builder, and the steps that follow.
#[derive(Clone, Debug)]
pub(crate) struct Growing {
    pub(crate) file: String,
    pub(crate) rate: f64,
    pub(crate) capacity: u64,
    pub(crate) max_capacity: u64,
    pub(crate) partitions: u64,
    pub(crate) seed: u64,
    pub(crate) items: Items,
    /// The first prehashed items. The number of a later one is its hash.
    pub(crate) hashes: Vec<u64>,
    pub(crate) steps: Vec<Step>,
    /// Whether the filter is shrunk after the last step.
    pub(crate) shrink: bool,
    /// `None` until the snapshot is created.
    pub(crate) answers: Option<Answers>,
}

impl Growing {
    /// Creates the filter and its answers.
    pub(crate) fn make(&self) -> (ElasticFilter, Answers) {
        let small = |number: u64| number.try_into().expect("a small number");
        let builder = ElasticFilter::builder().seed(self.seed);
        let builder = builder.false_positive_rate(self.rate).partitions(small(self.partitions));
        let builder = builder.capacity(small(self.capacity)).max_capacity(small(self.max_capacity));
        let mut filter = builder.build().unwrap_or_else(|error| panic!("{}: {error}", self.file));
        let insert = |filter: &mut ElasticFilter, n| match self.items.bytes("item", n, n) {
            Some(item) => filter.insert(&item).is_ok(),
            None => filter.insert(&self.prehashed(n)).is_ok(),
        };
        let remove = |filter: &mut ElasticFilter, n| match self.items.bytes("item", n, n) {
            Some(item) => filter.remove(&item),
            None => filter.remove(&self.prehashed(n)),
        };
        let holds = apply(&self.steps, &mut filter, insert, remove).unwrap_or_else(|n| panic!("{}: item {n} is lost", self.file));
        if self.shrink {
            filter.shrink();
        }
        let answers = Answers { holds, found: self.found(&filter) };
        (filter, answers)
    }

    /// Returns the probes that the filter finds.
    pub(crate) fn found(&self, filter: &ElasticFilter) -> Vec<u64> {
        let found = |&n: &u64| self.finds(filter, "probe", n, 1_000_000 + n);
        (0..PROBES).filter(found).collect()
    }

    /// Returns whether the filter finds item n.
    #[allow(dead_code, reason = "the program that writes the files does not look up items")]
    pub(crate) fn finds_item(&self, filter: &ElasticFilter, n: u64) -> bool {
        match self.items {
            Items::Hash => filter.contains(&self.prehashed(n)),
            _ => self.finds(filter, "item", n, n),
        }
    }

    fn prehashed(&self, n: u64) -> Prehashed<u64> {
        let hash = usize::try_from(n).ok().and_then(|n| self.hashes.get(n));
        Prehashed(hash.copied().unwrap_or(n))
    }

    fn finds(&self, filter: &ElasticFilter, prefix: &str, n: u64, number: u64) -> bool {
        let bytes = self.items.bytes(prefix, n, number);
        bytes.map_or_else(|| filter.contains(&Prehashed(number)), |item| filter.contains(&item))
    }

    /// Parses a manifest.
    pub(crate) fn list(text: &str) -> Vec<Self> {
        entries(text).iter().map(|entry| Self::from_json(&Entry(entry))).collect()
    }

    fn from_json(entry: &Entry<'_>) -> Self {
        Self {
            file: entry.text("file").into(),
            rate: entry.0["rate"].as_f64().expect("a rate"),
            capacity: entry.number("capacity"),
            max_capacity: entry.number("max_capacity"),
            partitions: entry.number("partitions"),
            seed: entry.number("seed"),
            items: entry.items(),
            hashes: entry.hashes(),
            steps: entry.steps(),
            shrink: entry.0["shrink"].as_bool().expect("true or false"),
            answers: entry.answers(),
        }
    }
}
