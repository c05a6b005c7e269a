//! A filter that grows: the call that builds it, and its course, by simulation.

use anyhow::anyhow;
use koel::{ElasticBuilder, ElasticFilter, ParamError, Prehashed, TableKind};

use super::super::call::grouped;
use crate::messages;

/// The most items that are inserted into one simulated filter: three seconds of work. Up to here the course is that of a real
/// filter, apart from the hashes.
const MOST_SIMULATED: usize = 12_000_000;

/// What the incomplete blocks of tables of a real filter may take more than those of one simulated at reduced scale: three levels have
/// tables at a time, and a block has 4 MiB at most.
const INCOMPLETE_BLOCKS: u64 = 3 * (4 << 20);

/// The fewest items that stand for more: about as many as make the numbers of items in the shards of a quarter alike.
const FEWEST_SIMULATED: usize = 1 << 16;

/// The step from one number of items to the next at which a simulated filter is looked at, as a share of the number.
const STEP: usize = 128;

/// What builds a filter that grows.
pub(super) struct Growing {
    capacity: usize,
    most: usize,
    rate: f64,
    table: Option<TableKind>,
    bucket_size: Option<u32>,
}

/// A filter at some number of items.
#[derive(Clone, Copy)]
pub(super) struct Stage {
    pub(super) items: usize,
    /// Bytes of tables.
    pub(super) bytes: u64,
    /// An upper bound of the memory up to this stage: tables, directories, and what a split takes besides.
    bound: u64,
    pub(super) rate: f64,
}

/// What becomes of a filter that grows.
pub(super) struct Course {
    /// From the number of items now to the most, in small steps.
    pub(super) stages: Vec<Stage>,
    pub(super) buckets_per_lookup: usize,
    /// One simulated item stands for 2^`shift` at most.
    pub(super) shift: u32,
}

/// The library's error about the range.
fn refused(error: &ParamError) -> anyhow::Error {
    let message = messages::parameter(error).to_string();
    match message.strip_prefix("--capacity") {
        Some(rest) => anyhow!("--items{rest}"),
        None => anyhow!(message),
    }
}

impl Growing {
    pub(super) fn new(now: usize, most: usize, rate: f64, table: Option<TableKind>, bucket_size: Option<u32>) -> Self {
        Self { capacity: now, most, rate, table, bucket_size }
    }

    fn builder(&self) -> ElasticBuilder {
        let builder = ElasticFilter::builder().capacity(self.capacity).max_capacity(self.most).false_positive_rate(self.rate);
        let builder = self.table.into_iter().fold(builder, ElasticBuilder::table);
        self.bucket_size.into_iter().fold(builder, ElasticBuilder::bucket_size)
    }

    /// The course of the filter from so many items to the most.
    ///
    /// Large numbers are simulated at reduced scale: with capacity and maximal capacity divided by a power of two, there are fewer
    /// shards, of the same sizes, as full, and with fingerprints of the same lengths. When a filter has outgrown its capacity, that
    /// holds also if only its maximal capacity is divided: so the last numbers are simulated where the capacity cannot be divided.
    pub(super) fn course(&self, now: usize) -> anyhow::Result<Course> {
        // Also refuses what has no plan, in the numbers that were given.
        let bytes_now = self.builder().params().map_err(|error| refused(&error))?.table_bytes();
        let mut course = Course { stages: Vec::new(), buckets_per_lookup: 0, shift: 0 };
        let mut shift = self.shift(self.capacity, FEWEST_SIMULATED);
        let capacity = self.capacity >> shift;
        let mut from = now;
        loop {
            let to = MOST_SIMULATED.saturating_mul(1 << shift).min(self.most);
            Self { capacity, most: self.most >> shift, ..*self }.simulate(from, to, shift, &mut course)?;
            course.shift = shift;
            if to == self.most {
                break;
            }
            from = to;
            shift = self.shift(from, 2 * capacity.max(FEWEST_SIMULATED));
        }
        course.stages[0].bytes = bytes_now as u64;
        Ok(course)
    }

    /// How often the numbers are halved: until the largest is small enough, or `from` as small as it may be.
    fn shift(&self, from: usize, least: usize) -> u32 {
        (0..usize::BITS - 1).find(|shift| self.most >> shift <= MOST_SIMULATED || from >> (shift + 1) < least).unwrap_or(0)
    }

    /// Inserts the items of this filter, each in place of 2^`shift`, and adds its stages between two numbers of items.
    fn simulate(&self, from: usize, to: usize, shift: u32, course: &mut Course) -> anyhow::Result<()> {
        let mut filter = self.builder().build().map_err(messages::not_built)?;
        let (mut next, last) = (from >> shift, to >> shift);
        let mut inserted = 0;
        loop {
            let hashes: Vec<_> = (inserted..next).map(|hash| hash as u64).collect();
            filter.insert_batch(&Prehashed(&hashes))?;
            inserted = next;
            course.stages.push(Stage {
                items: if inserted == last { to } else { (inserted << shift).max(from) },
                bytes: (filter.table_bytes() as u64) << shift,
                bound: bound(&filter, shift),
                rate: filter.false_positive_rate(),
            });
            if inserted >= last {
                break;
            }
            next = (next + next / STEP + 1).min(last);
        }
        course.buckets_per_lookup = course.buckets_per_lookup.max(filter.buckets_per_lookup());
        Ok(())
    }

    pub(super) fn command(&self) -> String {
        let Self { capacity, most, rate, .. } = self;
        let mut words = vec![format!("koel build IN -o OUT --grow --capacity {capacity} --max-capacity {most} --fpr {rate:?}")];
        words.extend(self.table.map(|table| format!("--table {table}")));
        words.extend(self.bucket_size.map(|slots| format!("--bucket-size {slots}")));
        words.join(" ")
    }

    /// The same in Rust.
    pub(super) fn rust(&self) -> String {
        let mut calls = vec![
            format!("capacity({})", grouped(self.capacity)),
            format!("max_capacity({})", grouped(self.most)),
            format!("false_positive_rate({:?})", self.rate),
        ];
        calls.extend(self.table.map(|table| format!("table(TableKind::{table:?})")));
        calls.extend(self.bucket_size.map(|slots| format!("bucket_size({slots})")));
        let types = if self.table.is_some() { "{ElasticFilter, TableKind}" } else { "ElasticFilter" };
        format!("use koel::{types};\nlet mut filter = ElasticFilter::builder()\n    .{}\n    .build()?;", calls.join("\n    ."))
    }
}

/// The most bytes that the real filter takes about now if this one has one item for every 2^`shift` of its.
///
/// Which of its shards are split early is a matter of chance: a quarter of them is split at a time, half of those by now, so that
/// the number has a standard deviation of √(shards/4)/2 at most. Four of these, and as many of the simulated filter, are allowed
/// for.
fn bound(filter: &ElasticFilter, shift: u32) -> u64 {
    let (tables, all, shards) = (filter.table_bytes() as u64, filter.size_in_bytes() as u64, filter.shards() as u64);
    let by_chance = shards.isqrt() + 1 + if shift > 0 { ((shards << shift).isqrt() + 1) >> shift } else { 0 };
    // While a directory is doubled, there are two.
    let most = all + (all - tables) / 2 + by_chance * tables.div_ceil(shards.max(1));
    (most << shift) + if shift > 0 { INCOMPLETE_BLOCKS } else { 0 }
}

impl Course {
    pub(super) fn first(&self) -> Stage {
        self.stages[0]
    }

    pub(super) fn last(&self) -> Stage {
        self.stages[self.stages.len() - 1]
    }

    pub(super) fn most_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.bound.max(stage.bytes)).max().unwrap_or(0)
    }

    /// The most bits per item, and their mean over the logarithm of the number of items. None if there are no items.
    pub(super) fn bits_per_item(&self) -> Option<(f64, f64)> {
        let points: Vec<_> =
            self.stages.iter().filter(|stage| stage.items > 0).map(|stage| (stage.items as f64, stage.bits_per_item())).collect();
        let (first, last) = (points.first()?, points.last()?);
        let most = points.iter().fold(0.0, |most: f64, point| most.max(point.1));
        let all = (last.0 / first.0).ln();
        let sum: f64 = points.windows(2).map(|two| (two[1].0 / two[0].0).ln() * f64::midpoint(two[0].1, two[1].1)).sum();
        Some((most, if all > 0.0 { sum / all } else { most }))
    }
}

impl Stage {
    fn bits_per_item(self) -> f64 {
        8.0 * self.bytes as f64 / self.items as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(filter: &Growing, from: usize, to: usize, shift: u32) -> Course {
        let mut course = Course { stages: Vec::new(), buckets_per_lookup: 0, shift };
        filter.simulate(from, to, shift, &mut course).expect("a plan");
        course
    }

    /// At every number of items, one filter takes about as much as the other and has about the same rate; on average and at the
    /// end, it does so more closely. Few shards are split early or late by chance.
    fn assert_alike(small: &Course, full: &Course) {
        assert_eq!((full.buckets_per_lookup, small.buckets_per_lookup), (2, 2));
        assert!(small.stages.len() > 30);
        let ratios = small.stages.iter().map(|stage| {
            let near = full.stages.iter().min_by_key(|other| other.items.abs_diff(stage.items)).expect("stages");
            (stage.bits_per_item() / near.bits_per_item(), stage.rate / near.rate, stage.items)
        });
        let ratios: Vec<_> = ratios.collect();
        for &(bits, rate, items) in &ratios {
            assert!((bits - 1.0).abs() < 0.08 && (rate - 1.0).abs() < 0.08, "{bits} of the bits, {rate} of the rate at {items}");
        }
        let mean = ratios.iter().map(|ratio| ratio.0).sum::<f64>() / ratios.len() as f64;
        let last = ratios[ratios.len() - 1];
        assert!((mean - 1.0).abs() < 0.03, "{mean} of the bits on average");
        assert!((last.0 - 1.0).abs() < 0.04 && (last.1 - 1.0).abs() < 0.04, "{last:?} at the end");
    }

    #[test]
    fn a_part_stands_for_the_whole() {
        for (now, most, rate, table, parts) in [
            (1_000_000, 4_000_000, 0.001, None, 2),
            (1_000_000, 3_000_000, 0.01, Some(TableKind::Single), 3),
            (600_000, 2_400_000, 1e-6, None, 3),
            (2_000_000, 3_000_000, 0.001, None, 3),
        ] {
            let whole = Growing::new(now, most, rate, table, None);
            let part = Growing { capacity: whole.capacity >> parts, most: most >> parts, ..whole };
            assert_alike(&simulated(&part, now, most, parts), &simulated(&whole, now, most, 0));
        }
    }

    #[test]
    fn capacities_are_forgotten() {
        for (capacity, most) in [(1000, 4_000_000), (30_000, 3_000_000)] {
            let whole = Growing::new(capacity, most, 0.001, None, None);
            let part = Growing { most: most >> 3, ..whole };
            assert_alike(&simulated(&part, 1_500_000, most, 3), &simulated(&whole, 1_500_000, most, 0));
        }
    }

    #[test]
    fn every_range_has_a_course() {
        for (now, most) in [(0, 0), (0, 1), (1, 1), (7, 9), (9000, 300_000_000), (3_000_000, 5_000_000)] {
            let course = Growing::new(now, most, 0.001, None, None).course(now).expect("a plan");
            assert_eq!((course.first().items, course.last().items, course.buckets_per_lookup), (now, most, 2), "{now}..{most}");
            assert!(course.stages.is_sorted_by_key(|stage| stage.items));
            assert!(course.last().rate <= 0.001 && course.most_bytes() >= course.last().bytes);
        }
        assert!(Growing::new(1000, usize::MAX, 0.001, None, None).course(1000).is_err());
    }
}
