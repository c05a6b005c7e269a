//! Plans for a number of items that grows, `--items 1M..10M`: what each takes now and at the end, and which is best.

use anyhow::{anyhow, bail};
use koel::{Addressing, ElasticBuilder, ElasticFilter, ParamError, Prehashed, TableKind, tuning::Candidate};
use serde::Serialize;

use super::{
    Answer, Nearest, Rejected, Tune,
    answer::{left_out, starred},
    call::Call,
};
use crate::{
    errors,
    text::{counted, figures, narrow, paragraphs, size, wrapped},
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
    /// The most bits per item, and their mean over the logarithm of the number of items; none without items.
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

impl Plan {
    /// A plan whose filter, or one after the other, is at these stages; of one that is never built anew.
    fn of(name: &'static str, stages: &[Stage], call: &Call) -> Self {
        let (first, last) = (stages[0], stages[stages.len() - 1]);
        let bits = || stages.iter().filter_map(|stage| Some((stage.items, stage.bits_per_item()?)));
        Self {
            name,
            course: String::new(),
            table_bytes_now: first.bytes,
            table_bytes_at_end: last.bytes,
            most_bytes: stages.iter().map(|stage| stage.bound.max(stage.bytes)).max().unwrap_or(0),
            mean_bytes: mean(stages.iter().map(|stage| (stage.items, stage.bytes as f64))).unwrap_or(last.bytes as f64),
            false_positive_rate_now: first.rate,
            false_positive_rate_at_end: last.rate,
            most_bits_per_item: bits().map(|(_, bits)| bits).reduce(f64::max),
            mean_bits_per_item: mean(bits()),
            buckets_per_lookup: 2,
            rebuilds: 0,
            insertions_per_item: 1.0,
            command: call.command(),
            builder: call.rust(),
        }
    }
}

/// All plans for a question.
#[derive(Serialize)]
pub(super) struct Comparison<'a> {
    asked: &'a Tune,
    #[serde(skip)]
    now: usize,
    #[serde(skip)]
    most: usize,
    #[serde(skip)]
    rate: f64,
    plans: Vec<Plan>,
    /// The name of the best.
    best: Option<&'static str>,
    rejections: Vec<Rejected>,
    /// The fewest bytes and the lowest rate with which there is a plan, if there is none.
    nearest: Option<Nearest>,
}

impl<'a> Comparison<'a> {
    /// Compares the plans for `now` items that become `most`.
    pub(super) fn of(asked: &'a Tune, now: usize, most: usize) -> anyhow::Result<Self> {
        let Some(rate) = asked.fpr else {
            bail!("--items: {now}..{most} given without a rate; give --fpr, too: --bytes is only a limit then");
        };
        let (most, plans, rejections) = (asked.planned(most), Vec::new(), Vec::new());
        let mut all = Self { asked, now, most, rate, plans, best: None, rejections, nearest: None };
        let limit = asked.bytes.map_or(u64::MAX, |bytes| bytes as u64);
        let mut too_large = Vec::new();
        for (name, plan) in [("large", all.large()), ("growing", all.growing()), ("rebuilding", all.rebuilding())] {
            let reason = match plan {
                Ok(plan) if plan.most_bytes <= limit => {
                    all.plans.push(plan);
                    continue;
                }
                Ok(plan) => {
                    too_large.push(plan.most_bytes);
                    format!("it takes {} bytes, and there may be {limit}", plan.most_bytes)
                }
                Err(error) => error.to_string(),
            };
            all.rejections.push(Rejected { name: name.to_owned(), reason });
        }
        if all.plans.is_empty() {
            let bytes = too_large.into_iter().min().and_then(|least| usize::try_from(least).ok());
            all.nearest = Some(Nearest { items: None, false_positive_rate: Nearest::lowest_rate(asked), bytes });
        }
        all.best = all.best().map(|best| best.name);
        Ok(all)
    }

    /// Of the plans that never need the items again, the one that takes the least memory on average while the number grows. A
    /// later one, which is less simple, must take clearly less.
    fn best(&self) -> Option<&Plan> {
        let never_again = |plan: &&Plan| plan.rebuilds == 0 || self.plans.len() == 1;
        self.plans.iter().filter(never_again).reduce(
            |best, plan| {
                if plan.mean_bytes < CLEARLY_LESS * best.mean_bytes { plan } else { best }
            },
        )
    }

    pub(super) fn answer(&self) -> anyhow::Result<Answer> {
        Ok(Answer { text: self.text(), object: serde_json::to_value(self)?, found: self.best.is_some() })
    }

    fn text(&self) -> String {
        let (now, limits) = (counted(self.now, "item"), self.asked.said_limits());
        let mut parts = vec![wrapped(&format!("{now} now and {} at most{limits}.", self.most))];
        if let Some(best) = self.best() {
            parts.extend([self.table(), self.notes(best)]);
        } else {
            parts.push(String::from("No plan meets these requirements.\n"));
            // Without either, the reasons below name the largest ranges that work.
            let is_any = |nearest: &&Nearest| nearest.bytes.is_some() || nearest.false_positive_rate.is_some();
            parts.extend(self.nearest.as_ref().filter(is_any).map(Nearest::text));
        }
        parts.push(left_out(&self.rejections, usize::MAX));
        parts.push(
            self.plans.iter().fold(String::new(), |text, Plan { name, command, .. }| text + &format!("{name}:\n  {command}\n")),
        );
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn table(&self) -> String {
        let rows = self.plans.iter().map(|plan| {
            let bytes = [plan.table_bytes_now, plan.table_bytes_at_end, plan.most_bytes].map(|bytes| bytes as f64);
            let rates = [plan.false_positive_rate_now, plan.false_positive_rate_at_end];
            let mut row = vec![starred(String::from(plan.name), self.best == Some(plan.name))];
            row.extend(bytes.into_iter().chain([plan.mean_bytes]).map(size));
            row.extend(rates.map(narrow));
            row.push(plan.buckets_per_lookup.to_string());
            row
        });
        figures(&["plan", "now", "at end", "at most", "mean", "\u{3b5} now", "\u{3b5} at end", "buckets"], rows)
    }

    fn notes(&self, best: &Plan) -> String {
        let mut notes = vec![format!("* {}", self.why(best))];
        notes.extend(self.plans.iter().map(|plan| format!("- {}: {}.", plan.name, plan.course)));
        notes.push(String::from(
            "At most: an upper bound of the memory at any time, for tables and directories. Mean: of the tables, on average while \
             the number grows, each doubling counted alike. Buckets: those that a lookup reads.",
        ));
        paragraphs(&notes)
    }

    /// Why this plan is the best.
    fn why(&self, best: &Plan) -> String {
        if best.rebuilds > 0 {
            return String::from("The only plan that meets the requirements.");
        }
        let others = self.plans.iter().filter(|plan| plan.rebuilds == 0 && plan.name != best.name);
        let least = others.map(|plan| plan.mean_bytes).fold(f64::INFINITY, f64::min);
        let why = match least / best.mean_bytes {
            f64::INFINITY => "The only plan that never needs the items again",
            1.0.. => "The least memory on average of the plans that never need the items again",
            _ => "The simplest of the plans that never need the items again: others save hardly any memory",
        };
        match self.plans.iter().find(|plan| plan.rebuilds > 0 && plan.mean_bytes < best.mean_bytes) {
            Some(plan) => format!("{why}. If you can read all items {}, {} takes less.", again(plan.rebuilds), plan.name),
            None => format!("{why}."),
        }
    }

    /// The smallest fixed filter for so many items.
    fn fixed(&self, items: usize) -> anyhow::Result<Candidate> {
        let filters = self.asked.recommend_for(items, Some(self.rate), None);
        let reason = || filters.rejections().first().map_or("no filter meets these requirements", |first| first.reason());
        filters.best().cloned().ok_or_else(|| anyhow!("{}", reason()))
    }

    /// A plan of fixed filters, for so many items each.
    fn fixed_filters(&self, name: &'static str, sizes: &[usize]) -> anyhow::Result<Plan> {
        let filters = sizes.iter().map(|&items| self.fixed(items)).collect::<anyhow::Result<Vec<_>>>()?;
        let call = Call::of(&filters[0], sizes[0], Some(self.rate))?;
        let again: f64 = sizes[..sizes.len() - 1].iter().map(|&items| items as f64).sum();
        // Each filter serves from the size of the one before, which is still there at first, to its own.
        let starts = [self.now].into_iter().chain(sizes.iter().copied());
        let before = [0].into_iter().chain(filters.iter().map(|filter| filter.bytes() as u64));
        let stages = filters.iter().zip(starts.zip(sizes)).zip(before).flat_map(|((filter, (from, &to)), before)| {
            let (params, bytes) = (*filter.params(), filter.bytes() as u64);
            [from, to].map(|items| {
                let rate = params.false_positive_rate_at(items as f64 / params.slots() as f64);
                Stage { items, bytes, bound: before + bytes, rate }
            })
        });
        Ok(Plan {
            rebuilds: filters.len() - 1,
            insertions_per_item: 1.0 + again / self.most.max(1) as f64,
            ..Plan::of(name, &stages.collect::<Vec<_>>(), &call)
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
        let Some(filter) = Growing::of(self.asked, self.now, self.most, self.rate) else {
            bail!("a filter that grows has any-size addressing");
        };
        let Course { stages, buckets_per_lookup, shift } = filter.course(self.now, MOST_SIMULATED)?;
        let plan = Plan::of("growing", &stages, &Call::growing(&filter));
        let figures = plan.most_bits_per_item.zip(plan.mean_bits_per_item).map_or_else(String::new, |(most, mean)| {
            format!(": {mean:.1} bits per item, averaged over log n, and {most:.1} at most")
        });
        let simulated = match 1_u64 << shift {
            1 => String::from("with all items"),
            parts => format!("with one item for every {parts}"),
        };
        let course = format!(
            "an ElasticFilter: tables split as items come, and are joined as items go{figures}. A lookup also reads an entry of the \
             directory. Simulated {simulated}"
        );
        Ok(Plan { course, buckets_per_lookup, ..plan })
    }
}

/// How often something happens besides.
fn again(number: usize) -> String {
    if number == 1 { String::from("once more") } else { format!("{number} more times") }
}

/// The mean of a figure over the logarithm of the number of items, of those that there are: each doubling counts as much as another.
fn mean(figures: impl Iterator<Item = (usize, f64)>) -> Option<f64> {
    let points: Vec<_> = figures.filter(|(items, _)| *items > 0).map(|(items, figure)| (items as f64, figure)).collect();
    let (first, last) = (points.first()?, points.last()?);
    let all = (last.0 / first.0).ln();
    let sum: f64 = points.windows(2).map(|two| (two[1].0 / two[0].0).ln() * f64::midpoint(two[0].1, two[1].1)).sum();
    Some(if all > 0.0 { sum / all } else { last.1 })
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
    match error {
        ParamError::Capacity { .. } | ParamError::MaxCapacity { .. } => errors::set_by("--items", error),
        _ => errors::parameter(error),
    }
}

impl Growing {
    /// With the options given; `None` if its addressing cannot be the one given.
    pub(super) fn of(asked: &Tune, capacity: usize, most: usize, rate: f64) -> Option<Self> {
        let Tune { table, bucket_size, addressing, .. } = *asked;
        (addressing == Addressing::AnySize).then_some(Self { capacity, most, rate, table, bucket_size })
    }

    pub(super) fn builder(&self) -> ElasticBuilder {
        let builder = ElasticFilter::builder().capacity(self.capacity).max_capacity(self.most).false_positive_rate(self.rate);
        let builder = self.table.into_iter().fold(builder, ElasticBuilder::table);
        self.bucket_size.into_iter().fold(builder, ElasticBuilder::bucket_size)
    }

    /// The course of the filter from so many items to the most, with so many insertions into one filter at most.
    ///
    /// Large numbers are simulated at reduced scale: with capacity and maximal capacity divided by a power of two, there are fewer
    /// shards, of the same sizes, as full, and with fingerprints of the same lengths. When a filter has outgrown its capacity, that
    /// holds also if only its maximal capacity is divided: so the last numbers are simulated where the capacity cannot be divided.
    fn course(&self, now: usize, most_simulated: usize) -> anyhow::Result<Course> {
        // Also refuses what has no plan, in the numbers that were given.
        let bytes_now = self.builder().params().map_err(|error| refused(&error))?.table_bytes();
        let mut course = Course { stages: Vec::new(), buckets_per_lookup: 0, shift: 0 };
        let mut shift = self.shift(self.capacity, FEWEST_SIMULATED, most_simulated);
        let capacity = self.capacity >> shift;
        let mut from = now;
        loop {
            let to = most_simulated.saturating_mul(1 << shift).min(self.most);
            Self { capacity, most: self.most >> shift, ..*self }.simulate(from, to, shift, &mut course)?;
            course.shift = shift;
            if to == self.most {
                break;
            }
            from = to;
            shift = self.shift(from, 2 * capacity.max(FEWEST_SIMULATED), most_simulated);
        }
        // A filter without tables has its first items in a list.
        if bytes_now > 0 {
            course.stages[0].bytes = bytes_now as u64;
        }
        Ok(course)
    }

    /// How often the numbers are halved: until the largest is small enough, or `from` as small as it may be.
    fn shift(&self, from: usize, least: usize, most: usize) -> u32 {
        (0..usize::BITS - 1).find(|shift| self.most >> shift <= most || from >> (shift + 1) < least).unwrap_or(0)
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

impl Stage {
    /// `None` without items.
    fn bits_per_item(self) -> Option<f64> {
        (self.items > 0).then(|| 8.0 * self.bytes as f64 / self.items as f64)
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

    /// At every number of items, a part takes about as much as the whole and has about the same rate; on average and at the end, it
    /// does so more closely. Few shards are split early or late by chance, so that parts are least alike where they are smallest:
    /// these have few more items than [`FEWEST_SIMULATED`], and where the capacity is outgrown, twice as many.
    #[test]
    fn a_part_stands_for_the_whole() {
        for (capacity, now, most, rate, table, parts) in [
            (300_000, 300_000, 1_200_000, 0.001, None, 2),
            (300_000, 300_000, 900_000, 0.01, Some(TableKind::Single), 2),
            (600_000, 600_000, 1_000_000, 1e-6, None, 3),
            // The capacity is forgotten.
            (1000, 600_000, 1_500_000, 0.001, None, 2),
            (30_000, 600_000, 1_200_000, 0.001, None, 2),
        ] {
            let simulated = |filter: &Growing, parts| {
                let mut course = Course { stages: Vec::new(), buckets_per_lookup: 0, shift: parts };
                filter.simulate(now, most, parts, &mut course).expect("a plan");
                course
            };
            let whole = growing(capacity, most, rate, table);
            let divided = if now == capacity { capacity >> parts } else { capacity };
            let part = simulated(&Growing { capacity: divided, most: most >> parts, ..whole }, parts);
            let whole = simulated(&whole, 0);
            let case = format!("{capacity}, {now}..{most}, {rate}");
            assert_eq!((whole.buckets_per_lookup, part.buckets_per_lookup), (2, 2), "{case}");
            assert!(part.stages.len() > 30, "{case}");
            let ratios = part.stages.iter().map(|stage| {
                let near = whole.stages.iter().min_by_key(|other| other.items.abs_diff(stage.items)).expect("stages");
                let [bits, near_bits] = [stage, near].map(|stage| stage.bits_per_item().expect("items"));
                (bits / near_bits - 1.0, stage.rate / near.rate - 1.0)
            });
            let ratios: Vec<_> = ratios.collect();
            assert!(ratios.iter().all(|(bits, rate)| bits.abs() < 0.08 && rate.abs() < 0.08), "{case}: {ratios:?}");
            let mean = ratios.iter().map(|(bits, _)| bits).sum::<f64>() / ratios.len() as f64;
            let last = ratios[ratios.len() - 1];
            assert!(
                mean.abs() < 0.03 && last.0.abs() < 0.04 && last.1.abs() < 0.04,
                "{case}: {mean} on average, {last:?} at the end"
            );
        }
    }

    /// With few insertions into one filter, as most of them are at reduced scale: once, or several times where the capacity is small.
    #[test]
    fn every_range_has_a_course() {
        for (now, most, shift) in [(0, 0, 0), (0, 1, 0), (1, 1, 0), (7, 9, 0), (9000, 3_000_000, 4), (400_000, 1_000_000, 2)] {
            let course = growing(now, most, 0.001, None).course(now, 1 << 18).expect("a plan");
            let ends = (course.stages[0].items, course.stages[course.stages.len() - 1]);
            assert_eq!((ends.0, ends.1.items, course.buckets_per_lookup, course.shift), (now, most, 2, shift), "{now}..{most}");
            assert!(course.stages.is_sorted_by_key(|stage| stage.items), "{now}..{most}");
            assert!(ends.1.rate <= 0.001 && course.stages.iter().all(|stage| stage.bound >= stage.bytes), "{now}..{most}");
        }
        assert!(growing(1000, usize::MAX, 0.001, None).course(1000, MOST_SIMULATED).is_err());
    }
}
