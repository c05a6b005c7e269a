//! Plans for a number of items that grows, `--items 1M..10M`: what each takes now and at the end, and which is best.

use anyhow::{anyhow, bail};
use koel::{Addressing, ElasticBuilder, ElasticFilter, ParamError, Prehashed, TableKind, tuning::Candidate};
use serde::Serialize;
use serde_json::json;

use super::{Answer, Nearest, Tune, call::Call};
use crate::{
    errors,
    text::{counted, narrow, size, table, wrapped},
};

/// A plan takes clearly less memory than one that is simpler if it takes less than this share of its.
const CLEARLY_LESS: f64 = 0.95;

/// A filter for all items that there will be, now or one after the other.
#[derive(Serialize)]
struct Plan {
    name: &'static str,
    /// What happens to the filter, as a sentence.
    #[serde(skip)]
    course: String,
    table_bytes_now: u64,
    table_bytes_at_end: u64,
    /// The most at any time.
    most_bytes: u64,
    /// The mean over the logarithm of the number of items.
    mean_bytes: f64,
    false_positive_rate_now: f64,
    false_positive_rate_at_end: f64,
    /// The most bits per item, and their mean over the logarithm of the number of items; for the filter that grows.
    most_bits_per_item: Option<f64>,
    mean_bits_per_item: Option<f64>,
    buckets_per_lookup: usize,
    /// How many times the filter is built anew from its items.
    rebuilds: usize,
    /// How often an item is inserted, on average over all items at the end.
    insertions_per_item: f64,
    command: String,
    builder: String,
}

/// All plans for a question.
pub(super) struct Plans<'a> {
    asked: &'a Tune,
    now: usize,
    most: usize,
    rate: f64,
    found: Vec<Plan>,
    /// Those left out, each with the reason.
    rejected: Vec<(&'static str, String)>,
    /// The fewest bytes and the lowest rate with which there is a plan, if there is none.
    nearest: Option<Nearest>,
}

impl<'a> Plans<'a> {
    /// Compares the plans for `now` items that become `most`.
    pub(super) fn of(asked: &'a Tune, now: usize, most: usize) -> anyhow::Result<Self> {
        let Some(rate) = asked.fpr else {
            bail!("--items: {now}..{most} given without a rate; give --fpr, too: --bytes is only a limit then");
        };
        let most = asked.planned(most);
        let mut plans = Self { asked, now, most, rate, found: Vec::new(), rejected: Vec::new(), nearest: None };
        let mut least: Option<u64> = None;
        for (name, plan) in [("large", plans.large()), ("growing", plans.growing()), ("rebuilding", plans.rebuilding())] {
            match (plan, asked.bytes) {
                (Err(error), _) => plans.rejected.push((name, error.to_string())),
                (Ok(plan), Some(limit)) if plan.most_bytes > limit as u64 => {
                    least = Some(least.map_or(plan.most_bytes, |least| least.min(plan.most_bytes)));
                    plans.rejected.push((name, format!("it takes {} bytes, and there may be {limit}", plan.most_bytes)));
                }
                (Ok(plan), _) => plans.found.push(plan),
            }
        }
        if plans.found.is_empty() {
            let bytes = least.and_then(|least| usize::try_from(least).ok());
            plans.nearest = Some(Nearest { items: None, false_positive_rate: Nearest::lowest_rate(asked), bytes });
        }
        Ok(plans)
    }

    /// Of the plans that never need the items again, the one that takes the least memory on average while the number grows. A
    /// later one, which is less simple, must take clearly less.
    fn best(&self) -> Option<&Plan> {
        let never_again = |plan: &&Plan| plan.rebuilds == 0 || self.found.len() == 1;
        self.found.iter().filter(never_again).reduce(
            |best, plan| {
                if plan.mean_bytes < CLEARLY_LESS * best.mean_bytes { plan } else { best }
            },
        )
    }

    pub(super) fn answer(&self) -> Answer {
        let rejections = self.rejected.iter().map(|(name, reason)| json!({ "name": name, "reason": reason }));
        let object = json!({
            "asked": self.asked.object(),
            "plans": self.found,
            "best": self.best().map(|best| best.name),
            "rejections": rejections.collect::<Vec<_>>(),
            "nearest": self.nearest,
        });
        Answer { text: self.text(), object, found: !self.found.is_empty() }
    }

    fn text(&self) -> String {
        let limit = self.asked.bytes.map(|bytes| format!(", at most {}", counted(bytes, "byte"))).unwrap_or_default();
        let mut parts = vec![wrapped(&format!(
            "{} now and {} at most, a false-positive rate \u{3b5} of at most {:?}{limit}.",
            counted(self.now, "item"),
            self.most,
            self.rate
        ))];
        if let Some(best) = self.best() {
            parts.push(self.table(best));
        } else {
            parts.push(String::from("No plan meets these requirements.\n"));
            parts.extend(self.nearest.as_ref().map(Nearest::text));
        }
        if !self.rejected.is_empty() {
            let lines = self.rejected.iter().map(|(name, reason)| wrapped(&format!("- {name}: {reason}.")));
            parts.push(format!("Left out:\n{}", lines.collect::<String>()));
        }
        let commands: Vec<_> = self.found.iter().map(|plan| format!("{}:\n  {}\n", plan.name, plan.command)).collect();
        parts.extend((!commands.is_empty()).then(|| commands.concat()));
        parts.join("\n")
    }

    fn table(&self, best: &Plan) -> String {
        let header = ["plan", "now", "at end", "at most", "mean", "\u{3b5} now", "\u{3b5} at end", "buckets"];
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(self.found.iter().map(|plan| {
            let mark = if plan.name == best.name { " *" } else { "" };
            let bytes = [plan.table_bytes_now, plan.table_bytes_at_end, plan.most_bytes].map(|bytes| size(bytes as f64));
            let rates = [plan.false_positive_rate_now, plan.false_positive_rate_at_end].map(narrow);
            let mut row = vec![format!("{}{mark}", plan.name)];
            row.extend(bytes);
            row.push(size(plan.mean_bytes));
            row.extend(rates);
            row.push(plan.buckets_per_lookup.to_string());
            row
        }));
        let mut notes = vec![format!("* {}", self.why(best))];
        notes.extend(self.found.iter().map(|plan| format!("- {}: {}.", plan.name, plan.course)));
        notes.push(String::from(
            "At most: an upper bound of the memory at any time, for tables and directories. Mean: of the tables, on average while \
             the number grows, each doubling counted alike. Buckets: those that a lookup reads.",
        ));
        format!("{}\n{}", table(&rows, 2, &[0], &[1]), notes.iter().map(|note| wrapped(note)).collect::<String>())
    }

    /// Why this plan is the best.
    fn why(&self, best: &Plan) -> String {
        if best.rebuilds > 0 {
            return String::from("The only plan that meets the requirements.");
        }
        let others = self.found.iter().filter(|plan| plan.rebuilds == 0 && plan.name != best.name);
        let least = others.map(|plan| plan.mean_bytes).fold(f64::INFINITY, f64::min);
        let why = match least / best.mean_bytes {
            f64::INFINITY => "The only plan that never needs the items again",
            1.0.. => "The least memory on average of the plans that never need the items again",
            _ => "The simplest of the plans that never need the items again: others save hardly any memory",
        };
        match self.found.iter().find(|plan| plan.rebuilds > 0 && plan.mean_bytes < best.mean_bytes) {
            Some(plan) => format!("{why}. If you can read all items {}, {} takes less.", times(plan.rebuilds), plan.name),
            None => format!("{why}."),
        }
    }

    /// The smallest fixed filter for so many items.
    fn fixed(&self, items: usize) -> anyhow::Result<Candidate> {
        let filters = self.asked.recommend_for(items, Some(self.rate), None);
        match filters.best() {
            Some(best) => Ok(best.clone()),
            None => {
                bail!("{}", filters.rejections().first().map_or("no filter meets these requirements", |first| first.reason()))
            }
        }
    }

    /// A plan of fixed filters, for so many items each.
    fn fixed_filters(&self, name: &'static str, sizes: &[usize]) -> anyhow::Result<Plan> {
        let filters = sizes.iter().map(|&items| self.fixed(items)).collect::<anyhow::Result<Vec<_>>>()?;
        let (first, last) = (&filters[0], &filters[filters.len() - 1]);
        let call = Call::of(first, sizes[0], Some(self.rate))?;
        let bytes = |filter: &Candidate| filter.bytes() as u64;
        let both = filters.windows(2).map(|pair| bytes(&pair[0]) + bytes(&pair[1])).max();
        let again: f64 = sizes[..sizes.len() - 1].iter().map(|&items| items as f64).sum();
        // Each filter serves from the size of the one before to its own.
        let starts = [self.now.max(1)].into_iter().chain(sizes.iter().copied());
        let spans = starts.zip(sizes).map(|(from, &to)| (to.max(1) as f64 / from as f64).ln());
        let (all, sum) =
            spans.zip(&filters).fold((0.0, 0.0), |(all, sum), (span, filter)| (all + span, sum + span * filter.bytes() as f64));
        Ok(Plan {
            name,
            course: String::new(),
            table_bytes_now: bytes(first),
            table_bytes_at_end: bytes(last),
            most_bytes: both.unwrap_or_else(|| bytes(last)),
            mean_bytes: if all > 0.0 { sum / all } else { last.bytes() as f64 },
            false_positive_rate_now: first.params().false_positive_rate_at(self.now as f64 / first.params().slots() as f64),
            false_positive_rate_at_end: last.false_positive_rate(),
            most_bits_per_item: None,
            mean_bits_per_item: None,
            buckets_per_lookup: 2,
            rebuilds: filters.len() - 1,
            insertions_per_item: 1.0 + again / self.most.max(1) as f64,
            command: call.command(),
            builder: call.rust(),
        })
    }

    /// One fixed filter for the largest number.
    fn large(&self) -> anyhow::Result<Plan> {
        let course = String::from("one filter for all items from the beginning, which never changes its size");
        Ok(Plan { course, ..self.fixed_filters("large", &[self.most])? })
    }

    /// Fixed filters, each for twice as many items as the one before.
    fn rebuilding(&self) -> anyhow::Result<Plan> {
        let plan = self.fixed_filters("rebuilding", &doublings(self.now, self.most))?;
        let course = format!(
            "a filter for twice as many items whenever it is full, {} in all. All items must be at hand then: each is inserted \
             {:.2} times on average. Meanwhile both tables are in memory",
            counted(plan.rebuilds as u64, "rebuild"),
            plan.insertions_per_item
        );
        Ok(Plan { course, ..plan })
    }

    /// One filter that grows.
    fn growing(&self) -> anyhow::Result<Plan> {
        if self.asked.addressing != Addressing::AnySize {
            bail!("a filter that grows has any-size addressing");
        }
        let filter = Growing {
            capacity: self.now,
            most: self.most,
            rate: self.rate,
            table: self.asked.table,
            bucket_size: self.asked.growing_bucket_size(),
        };
        let course = filter.course(self.now)?;
        let (first, last, bits) = (course.first(), course.last(), course.bits_per_item());
        let figures = bits.map_or_else(String::new, |(most, mean)| {
            format!(": {mean:.1} bits per item, averaged over log n, and {most:.1} at most")
        });
        let simulated = match 1_u64 << course.shift {
            1 => String::from("with all items"),
            parts => format!("with one item for every {parts}"),
        };
        let (most_bits_per_item, mean_bits_per_item) = bits.unzip();
        Ok(Plan {
            name: "growing",
            course: format!(
                "an ElasticFilter: tables split as items come, and are joined as items go{figures}. A lookup also reads an entry \
                 of the directory. Simulated {simulated}"
            ),
            table_bytes_now: first.bytes,
            table_bytes_at_end: last.bytes,
            most_bytes: course.most_bytes(),
            mean_bytes: course.mean(|stage| stage.bytes as f64).unwrap_or(last.bytes as f64),
            false_positive_rate_now: first.rate,
            false_positive_rate_at_end: last.rate,
            most_bits_per_item,
            mean_bits_per_item,
            buckets_per_lookup: course.buckets_per_lookup,
            rebuilds: 0,
            insertions_per_item: 1.0,
            command: filter.call().command(),
            builder: filter.call().rust(),
        })
    }
}

impl Tune {
    /// The bucket size that was asked for, or that the copies need if the usual one has too little room.
    pub(super) fn growing_bucket_size(&self) -> Option<u32> {
        let least = self.copies.div_ceil(2);
        self.bucket_size.or_else(|| (least > *TableKind::Packed.bucket_sizes().end()).then_some(least))
    }
}

/// How often something happens.
fn times(number: usize) -> String {
    if number == 1 { String::from("once more") } else { format!("{number} more times") }
}

/// The first number, at least 1, and twice as many each time, up to the most.
fn doublings(now: usize, most: usize) -> Vec<usize> {
    let mut sizes = vec![now.max(1)];
    while let Some(&last) = sizes.last().filter(|&&last| last < most) {
        sizes.push(last.saturating_mul(2).min(most));
    }
    sizes
}

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
    pub(super) capacity: usize,
    pub(super) most: usize,
    pub(super) rate: f64,
    pub(super) table: Option<TableKind>,
    pub(super) bucket_size: Option<u32>,
}

/// A filter at some number of items.
#[derive(Clone, Copy)]
struct Stage {
    items: usize,
    /// Bytes of tables.
    bytes: u64,
    /// An upper bound of the memory up to this stage: tables, directories, and what a split takes besides.
    bound: u64,
    rate: f64,
}

/// What becomes of a filter that grows.
struct Course {
    /// From the number of items now to the most, in small steps.
    stages: Vec<Stage>,
    buckets_per_lookup: usize,
    /// One simulated item stands for 2^`shift` at most.
    shift: u32,
}

/// The library's error about the range.
fn refused(error: &ParamError) -> anyhow::Error {
    let message = errors::parameter(error).to_string();
    match message.strip_prefix("--capacity") {
        Some(rest) => anyhow!("--items{rest}"),
        None => anyhow!(message),
    }
}

impl Growing {
    pub(super) fn builder(&self) -> ElasticBuilder {
        let builder = ElasticFilter::builder().capacity(self.capacity).max_capacity(self.most).false_positive_rate(self.rate);
        let builder = self.table.into_iter().fold(builder, ElasticBuilder::table);
        self.bucket_size.into_iter().fold(builder, ElasticBuilder::bucket_size)
    }

    /// The course of the filter from so many items to the most.
    ///
    /// Large numbers are simulated at reduced scale: with capacity and maximal capacity divided by a power of two, there are fewer
    /// shards, of the same sizes, as full, and with fingerprints of the same lengths. When a filter has outgrown its capacity, that
    /// holds also if only its maximal capacity is divided: so the last numbers are simulated where the capacity cannot be divided.
    fn course(&self, now: usize) -> anyhow::Result<Course> {
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
        let mut filter = self.builder().build().map_err(errors::not_built)?;
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

    /// What builds it.
    pub(super) fn call(&self) -> Call {
        Call::growing(self.capacity, self.most, self.rate, self.table, self.bucket_size)
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
    fn first(&self) -> Stage {
        self.stages[0]
    }

    fn last(&self) -> Stage {
        self.stages[self.stages.len() - 1]
    }

    fn most_bytes(&self) -> u64 {
        self.stages.iter().map(|stage| stage.bound.max(stage.bytes)).max().unwrap_or(0)
    }

    /// The mean of a figure over the logarithm of the number of items: each doubling counts as much as another. None if there are
    /// no items.
    fn mean(&self, of: impl Fn(Stage) -> f64) -> Option<f64> {
        let points: Vec<_> =
            self.stages.iter().filter(|stage| stage.items > 0).map(|stage| (stage.items as f64, of(*stage))).collect();
        let (first, last) = (points.first()?, points.last()?);
        let all = (last.0 / first.0).ln();
        let sum: f64 = points.windows(2).map(|two| (two[1].0 / two[0].0).ln() * f64::midpoint(two[0].1, two[1].1)).sum();
        Some(if all > 0.0 { sum / all } else { last.1 })
    }

    /// The most bits per item, and their mean. None if there are no items.
    fn bits_per_item(&self) -> Option<(f64, f64)> {
        let most = self.stages.iter().filter(|stage| stage.items > 0).map(|stage| stage.bits_per_item());
        Some((most.fold(0.0, f64::max), self.mean(Stage::bits_per_item)?))
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

    #[test]
    fn sizes_double_up_to_the_most() {
        assert_eq!(doublings(1000, 1000), [1000]);
        assert_eq!(doublings(1000, 2000), [1000, 2000]);
        assert_eq!(doublings(1000, 5000), [1000, 2000, 4000, 5000]);
        assert_eq!(doublings(0, 3), [1, 2, 3]);
        assert_eq!(doublings(0, 0), [1]);
        assert_eq!(doublings(usize::MAX - 1, usize::MAX), [usize::MAX - 1, usize::MAX]);
    }

    fn growing(capacity: usize, most: usize, rate: f64, table: Option<TableKind>) -> Growing {
        Growing { capacity, most, rate, table, bucket_size: None }
    }

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
            let whole = growing(now, most, rate, table);
            let part = Growing { capacity: whole.capacity >> parts, most: most >> parts, ..whole };
            assert_alike(&simulated(&part, now, most, parts), &simulated(&whole, now, most, 0));
        }
    }

    #[test]
    fn capacities_are_forgotten() {
        for (capacity, most) in [(1000, 4_000_000), (30_000, 3_000_000)] {
            let whole = growing(capacity, most, 0.001, None);
            let part = Growing { most: most >> 3, ..whole };
            assert_alike(&simulated(&part, 1_500_000, most, 3), &simulated(&whole, 1_500_000, most, 0));
        }
    }

    #[test]
    fn every_range_has_a_course() {
        for (now, most) in [(0, 0), (0, 1), (1, 1), (7, 9), (9000, 300_000_000), (3_000_000, 5_000_000)] {
            let course = growing(now, most, 0.001, None).course(now).expect("a plan");
            assert_eq!((course.first().items, course.last().items, course.buckets_per_lookup), (now, most, 2), "{now}..{most}");
            assert!(course.stages.is_sorted_by_key(|stage| stage.items));
            assert!(course.last().rate <= 0.001 && course.most_bytes() >= course.last().bytes);
        }
        assert!(growing(1000, usize::MAX, 0.001, None).course(1000).is_err());
    }
}
