//! The rows of koel: filters of a fixed size, and filters that grow from [`GROWN_FROM`] items, or from koel's own choice.

use std::hint::black_box;

use anyhow::Context as _;
use koel::{BuildError, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, Insert, TableKind};

use crate::{
    measure::Contestant,
    peer::{Facts, Family, GROWN_FROM, count},
};

/// Items per batch: a realistic number for a caller, whose answers fit into the first-level cache.
const BATCH: usize = 1024;

pub(crate) fn fixed(rate: f64, items: usize) -> Vec<Contestant> {
    let [packed, single] = [TableKind::Packed, TableKind::Single].map(|table| Fixed::near(table, rate));
    let fuller = Fixed { load: 0.97, ..packed };
    // A table of the same size as the packed one.
    let small = Fixed { fingerprint_bits: packed.fingerprint_bits - 1, asked_rate: None, ..single };
    let rows = [(packed, false), (fuller, false), (packed, true), (fuller, true), (small, false), (single, false)];
    rows.map(|(plan, in_batches)| plan.contestant(items, in_batches)).into()
}

pub(crate) fn growing(rate: f64, items: usize) -> Vec<Contestant> {
    let first = Some(GROWN_FROM.min(items));
    // Only a tenth of the items, so that it must grow beyond its plan.
    let too_few = first.max(Some(items / 10));
    let exclusive = [
        (None, None, false),
        (None, None, true),
        (first, None, false),
        (first, None, true),
        (first, Some(items), false),
        (first, too_few, false),
    ]
    .map(|(capacity, most, in_batches)| {
        let facts = told("ElasticFilter", Family::Koel, rate, capacity, most);
        contestant(facts, in_batches, move || grown(rate, capacity, most, ElasticBuilder::build))
    });
    // Each call takes a lock, though there is only one thread.
    let shared = contestant(told("SharedFilter", Family::Locked, rate, first, None), false, move || {
        grown(rate, first, None, ElasticBuilder::build_shared)
    });
    exclusive.into_iter().chain([shared]).collect()
}

/// A filter that grows, by what it is told of the number of its items: how many there are at the beginning, and in the end.
fn told(name: &str, family: Family, rate: f64, capacity: Option<usize>, most: Option<usize>) -> Facts {
    let part = |name, number: Option<usize>| number.map_or_else(String::new, |number| format!(", {name} {number}"));
    Facts::new(&format!("koel {name}{}{}", part("capacity", capacity), part("max_capacity", most)), family, Some(rate))
}

fn grown<F>(
    rate: f64,
    capacity: Option<usize>,
    most: Option<usize>,
    build: fn(ElasticBuilder) -> Result<F, BuildError>,
) -> anyhow::Result<F> {
    let builder = ElasticFilter::builder().false_positive_rate(rate);
    let builder = capacity.into_iter().fold(builder, ElasticBuilder::capacity);
    Ok(build(most.into_iter().fold(builder, ElasticBuilder::max_capacity))?)
}

/// A filter of koel's, with one call for each key or for each [`BATCH`] of them.
fn contestant<F: Insert<u64> + 'static>(
    mut facts: Facts,
    in_batches: bool,
    empty: impl Fn() -> anyhow::Result<F> + 'static,
) -> Contestant {
    if in_batches {
        facts.filter = format!("{}, batches of {BATCH}", facts.filter);
    }
    Contestant::new(
        facts,
        move |keys| {
            let mut filter = empty()?;
            let inserted = if in_batches {
                keys.chunks(BATCH).try_for_each(|batch| filter.insert_batch(batch))
            } else {
                keys.iter().try_for_each(|key| filter.insert(key))
            };
            inserted.context("an item was refused")?;
            Ok(filter)
        },
        F::false_positive_rate,
        move |filter, keys| {
            if in_batches {
                count_in_batches(keys, |batch, found| filter.contains_batch(batch, found))
            } else {
                count(keys, |key| filter.contains(&key))
            }
        },
        move |filter, keys| {
            Some(if in_batches {
                count_in_batches(keys, |batch, removed| filter.remove_batch(batch, removed))
            } else {
                count(keys, |key| filter.remove(&key))
            })
        },
    )
}

/// The number of positive answers of `ask` to all keys, [`BATCH`] of them at a time.
fn count_in_batches(keys: &[u64], mut ask: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; BATCH];
    let batches = keys.chunks(BATCH).map(|batch| {
        let answers = &mut answers[..batch.len()];
        ask(batch, answers);
        black_box(&*answers).iter().filter(|&&answer| answer).count()
    });
    batches.sum()
}

/// A table of a fixed size, and its load.
#[derive(Clone, Copy)]
struct Fixed {
    table: TableKind,
    fingerprint_bits: u32,
    load: f64,
    asked_rate: Option<f64>,
}

impl Fixed {
    /// The table whose rate at a load of 0.95 is nearest to this one.
    fn near(table: TableKind, rate: f64) -> Self {
        let plan = |fingerprint_bits| Self { table, fingerprint_bits, load: 0.95, asked_rate: Some(rate) };
        let distance = |plan: &Self| (plan.rate() / rate).log2().abs();
        let plans = table.fingerprint_bits().map(plan);
        plans.min_by(|one, other| distance(one).total_cmp(&distance(other))).expect("there are fingerprints")
    }

    /// The false-positive rate at its load, which does not depend on the size.
    fn rate(&self) -> f64 {
        let tiny = self.builder().buckets(2).params().expect("any table can have two buckets");
        tiny.false_positive_rate_at(self.load)
    }

    fn builder(&self) -> Builder {
        CuckooFilter::builder().table(self.table).fingerprint_bits(self.fingerprint_bits)
    }

    /// For a table that reaches its load with all items; or, if it is so small that they might not fit, for the capacity.
    fn builder_for(&self, items: usize) -> anyhow::Result<Builder> {
        let safe = self.builder().capacity(items).params()?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "items are 2³² at most")]
        let buckets = (items as f64 / (self.load * f64::from(safe.bucket_size()))).ceil() as u64;
        let buckets = buckets.next_multiple_of(2);
        Ok(if buckets <= safe.buckets() { self.builder().capacity(items) } else { self.builder().buckets(buckets) })
    }

    fn contestant(self, items: usize, in_batches: bool) -> Contestant {
        let params = self.builder_for(items).and_then(|builder| Ok(builder.params()?));
        let load = params.map_or(self.load, |params| items as f64 / params.slots() as f64);
        let name = format!("koel {} f = {}, load {load:.2}", self.table, self.fingerprint_bits);
        contestant(Facts::new(&name, Family::Koel, self.asked_rate), in_batches, move || Ok(self.builder_for(items)?.build()?))
    }
}
