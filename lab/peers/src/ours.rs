//! Koel's rows: filters of a fixed size, and filters that grow from [`GROWN_FROM`] items or from koel's default.

use std::hint::black_box;

use anyhow::Context as _;
use koel::{Builder, CuckooFilter, ElasticBuilder, ElasticFilter, Insert, TableKind};

use crate::{
    measure::Contestant,
    peer::{Facts, Family, GROWN_FROM, count},
};

/// The number of items per batch. It is realistic for a caller, and the results fit into the first-level cache.
const BATCH: usize = 1024;

pub(crate) fn fixed(rate: f64, items: usize) -> Vec<Contestant> {
    let [packed, single] = [TableKind::Packed, TableKind::Single].map(|table| Fixed::near(table, rate));
    let fuller = Fixed { load: 0.97, ..packed };
    // This table has the same size as the packed one.
    let small = Fixed { fingerprint_bits: packed.fingerprint_bits - 1, asked_rate: None, ..single };
    let rows = [(packed, false), (fuller, false), (packed, true), (fuller, true), (small, false), (single, false)];
    rows.map(|(plan, in_batches)| plan.contestant(items, in_batches)).into()
}

pub(crate) fn growing(rate: f64, items: usize) -> Vec<Contestant> {
    let first = Some(GROWN_FROM.min(items));
    // A filter that is planned for a tenth of the items must grow beyond its plan.
    let tenth = first.max(Some(items / 10));
    let exclusive = [
        (None, None, false),
        (None, None, true),
        (first, None, false),
        (first, None, true),
        (first, Some(items), false),
        (first, tenth, false),
    ]
    .map(|(capacity, most, in_batches)| {
        let (facts, builder) = growing_plan("ElasticFilter", Family::Koel, rate, capacity, most);
        contestant(facts, in_batches, move || Ok(builder.clone().build()?))
    });
    // Each call takes a lock, although there is only one thread.
    let (facts, builder) = growing_plan("SharedFilter", Family::Locked, rate, first, None);
    let shared = contestant(facts, false, move || Ok(builder.clone().build_shared()?));
    exclusive.into_iter().chain([shared]).collect()
}

/// Returns the facts and the builder of a growing filter. `capacity` and `most` are its `capacity` and `max_capacity`; `None` is
/// the default.
fn growing_plan(name: &str, family: Family, rate: f64, capacity: Option<usize>, most: Option<usize>) -> (Facts, ElasticBuilder) {
    let part = |name, number: Option<usize>| number.map_or_else(String::new, |number| format!(", {name} {number}"));
    let name = format!("koel {name}{}{}", part("capacity", capacity), part("max_capacity", most));
    let builder = ElasticFilter::builder().false_positive_rate(rate);
    let builder = capacity.into_iter().fold(builder, ElasticBuilder::capacity);
    (Facts::new(&name, family, Some(rate)), most.into_iter().fold(builder, ElasticBuilder::max_capacity))
}

/// Returns one of koel's filters, which takes single keys or batches of [`BATCH`] keys. `empty` returns the empty filter.
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

/// Calls `operation` with [`BATCH`] keys at a time, and returns the number of keys for which its result is true.
fn count_in_batches(keys: &[u64], mut operation: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut results = [false; BATCH];
    let batches = keys.chunks(BATCH).map(|batch| {
        let results = &mut results[..batch.len()];
        operation(batch, results);
        black_box(&*results).iter().filter(|&&result| result).count()
    });
    batches.sum()
}

/// A plan of a fixed table: its kind, its fingerprints and its load.
#[derive(Clone, Copy)]
struct Fixed {
    table: TableKind,
    fingerprint_bits: u32,
    load: f64,
    asked_rate: Option<f64>,
}

impl Fixed {
    /// Returns the plan whose rate at a load of 0.95 is nearest to `rate`.
    fn near(table: TableKind, rate: f64) -> Self {
        let plan = |fingerprint_bits| Self { table, fingerprint_bits, load: 0.95, asked_rate: Some(rate) };
        let distance = |plan: &Self| (plan.rate() / rate).log2().abs();
        let plans = table.fingerprint_bits().map(plan);
        plans.min_by(|one, other| distance(one).total_cmp(&distance(other))).expect("there are several lengths")
    }

    /// Returns the false-positive rate at the planned load, which does not depend on the size.
    fn rate(&self) -> f64 {
        let tiny = self.builder().buckets(2).params().expect("any table can have two buckets");
        tiny.false_positive_rate_at(self.load)
    }

    fn builder(&self) -> Builder {
        CuckooFilter::builder().table(self.table).fingerprint_bits(self.fingerprint_bits)
    }

    /// Returns a builder for a table that reaches its load with all items. If such a table is so small that the items might not
    /// fit, returns a builder for their number as capacity.
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
