//! Plans for a number of items that grows, `--items 1M..10M`: what each takes now and at the end.

mod growing;
mod object;
mod text;

use std::process::ExitCode;

use anyhow::bail;
use koel::{Addressing, TableKind, tuning::Candidate};

use super::{Tune, call::Call, nearest::Nearest};
use crate::{figures::counted, stdout};
use growing::Growing;

/// A filter for all items that there will be, now or one after the other.
struct Plan {
    name: &'static str,
    /// What happens to the filter, as a sentence.
    course: String,
    bytes_now: u64,
    bytes_at_end: u64,
    /// The most at any time.
    most_bytes: u64,
    rate_now: f64,
    rate_at_end: f64,
    /// The most bits per item, and their mean over the logarithm of the number of items; for the filter that grows.
    bits_per_item: Option<(f64, f64)>,
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
    nearest: (Option<u64>, Option<f64>),
}

impl<'a> Plans<'a> {
    /// Compares the plans for `now` items that become `most`.
    pub(super) fn of(asked: &'a Tune, now: usize, most: usize) -> anyhow::Result<Self> {
        let Some(rate) = asked.fpr else {
            bail!("--items: {now}..{most} given without a rate; give --fpr, too: --bytes is only a limit then");
        };
        let most = asked.planned(most);
        let mut plans = Self { asked, now, most, rate, found: Vec::new(), rejected: Vec::new(), nearest: (None, None) };
        let mut least = None;
        for (name, plan) in [("large", plans.large()), ("growing", plans.growing()), ("rebuilding", plans.rebuilding())] {
            match (plan, asked.bytes) {
                (Err(error), _) => plans.rejected.push((name, error.to_string())),
                (Ok(plan), Some(limit)) if plan.most_bytes > limit as u64 => {
                    least = Some(least.map_or(plan.most_bytes, |least: u64| least.min(plan.most_bytes)));
                    plans.rejected.push((name, format!("it takes {} bytes, and there may be {limit}", plan.most_bytes)));
                }
                (Ok(plan), _) => plans.found.push(plan),
            }
        }
        if plans.found.is_empty() {
            plans.nearest = (least, Nearest::lowest_rate(asked));
        }
        Ok(plans)
    }

    pub(super) fn say(&self) -> anyhow::Result<ExitCode> {
        stdout::say(&if self.asked.json { format!("{:#}\n", self.object()) } else { self.text() })?;
        Ok(if self.found.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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

    /// The rate of a fixed filter with the items that there are now.
    fn rate_now(&self, filter: &Candidate) -> f64 {
        let params = filter.params();
        params.false_positive_rate_at(self.now as f64 / params.slots() as f64)
    }

    /// One fixed filter for the largest number.
    fn large(&self) -> anyhow::Result<Plan> {
        let filter = self.fixed(self.most)?;
        let call = Call::of(&filter, self.most, Some(self.rate))?;
        let bytes = filter.bytes() as u64;
        Ok(Plan {
            name: "large",
            course: String::from("one filter for all items from the beginning, which never changes its size"),
            bytes_now: bytes,
            bytes_at_end: bytes,
            most_bytes: bytes,
            rate_now: self.rate_now(&filter),
            rate_at_end: filter.false_positive_rate(),
            bits_per_item: None,
            buckets_per_lookup: 2,
            rebuilds: 0,
            insertions_per_item: 1.0,
            command: call.command(),
            builder: call.rust(),
        })
    }

    /// One filter that grows.
    fn growing(&self) -> anyhow::Result<Plan> {
        if Addressing::from(self.asked.addressing) != Addressing::AnySize {
            bail!("a filter that grows has any-size addressing");
        }
        let filter = Growing::new(self.now, self.most, self.rate, self.asked.table.map(Into::into), self.bucket_size());
        let course = filter.course(self.now)?;
        let (first, last, bits) = (course.first(), course.last(), course.bits_per_item());
        let figures = bits.map_or_else(String::new, |(most, mean)| {
            format!(": {mean:.1} bits per item on average over the logarithm of their number, {most:.1} at most")
        });
        let simulated = match 1_u64 << course.shift {
            1 => String::from("with all items"),
            parts => format!("with one item for every {parts}"),
        };
        Ok(Plan {
            name: "growing",
            course: format!(
                "an ElasticFilter, whose tables split as items come, and are joined as items go{figures}. A look-up \
                 reads an entry of the directory, too. Simulated {simulated}"
            ),
            bytes_now: first.bytes,
            bytes_at_end: last.bytes,
            most_bytes: course.most_bytes(),
            rate_now: first.rate,
            rate_at_end: last.rate,
            bits_per_item: bits,
            buckets_per_lookup: course.buckets_per_lookup,
            rebuilds: 0,
            insertions_per_item: 1.0,
            command: filter.command(),
            builder: filter.rust(),
        })
    }

    /// The bucket size that was asked for, or that the copies need if the usual one has too little room.
    fn bucket_size(&self) -> Option<u32> {
        let least = self.asked.copies.div_ceil(2);
        self.asked.bucket_size.or_else(|| (least > *TableKind::Packed.bucket_sizes().end()).then_some(least))
    }

    /// Fixed filters, each for twice as many items as the one before.
    fn rebuilding(&self) -> anyhow::Result<Plan> {
        let sizes = doublings(self.now, self.most);
        let filters = sizes.iter().map(|&items| self.fixed(items)).collect::<anyhow::Result<Vec<_>>>()?;
        let (first, last) = (&filters[0], &filters[filters.len() - 1]);
        let call = Call::of(first, sizes[0], Some(self.rate))?;
        let bytes = |filter: &Candidate| filter.bytes() as u64;
        let both = filters.windows(2).map(|pair| bytes(&pair[0]) + bytes(&pair[1])).max();
        let again: f64 = sizes[..sizes.len() - 1].iter().map(|&items| items as f64).sum();
        let insertions_per_item = 1.0 + again / self.most.max(1) as f64;
        let rebuilds = filters.len() - 1;
        Ok(Plan {
            name: "rebuilding",
            course: format!(
                "a filter for twice as many items whenever it is full, {} in all. All items must be at hand then: each is \
                 inserted {insertions_per_item:.2} times on average. Meanwhile both tables are in memory",
                counted(rebuilds as u64, "rebuild")
            ),
            bytes_now: bytes(first),
            bytes_at_end: bytes(last),
            most_bytes: both.unwrap_or_else(|| bytes(last)),
            rate_now: self.rate_now(first),
            rate_at_end: last.false_positive_rate(),
            bits_per_item: None,
            buckets_per_lookup: 2,
            rebuilds,
            insertions_per_item,
            command: call.command(),
            builder: call.rust(),
        })
    }
}

/// The first number, at least 1, and twice as many each time, up to the most.
fn doublings(now: usize, most: usize) -> Vec<usize> {
    let mut sizes = vec![now.max(1)];
    while let Some(&last) = sizes.last().filter(|&&last| last < most) {
        sizes.push(last.saturating_mul(2).min(most));
    }
    sizes
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
}
