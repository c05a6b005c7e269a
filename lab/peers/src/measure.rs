//! Times the life of a filter: building, lookups, emptying.

use std::time::Duration;

use anyhow::{bail, ensure};
use koel_lab::Stopwatch;
use serde::{Deserialize, Serialize};

use crate::{
    keys::Keys,
    memory,
    peer::{Family, Peer},
};

/// A peer as a trait object. Dynamic calls are outside of everything that is timed.
pub(crate) trait Contestant {
    /// What is known before measuring, for this number of items.
    fn facts(&self, items: usize) -> Facts;

    /// Measures one round.
    ///
    /// # Errors
    /// If the filter cannot be built, loses a key although it must not, or gives inconsistent answers.
    fn measure(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample>;
}

/// How often a filter is measured in a round, at most.
const ATTEMPTS: u32 = 3;

/// Measures one round, and again if other work on the processor disturbed it. Of all attempts, the least disturbed counts.
///
/// # Errors
/// As of [`Contestant::measure`].
pub(crate) fn round(contestant: &dyn Contestant, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample> {
    let mut best = contestant.measure(keys, watch)?;
    for _ in 1..ATTEMPTS {
        if best.disturbed == Some(0) {
            break;
        }
        let next = contestant.measure(keys, watch)?;
        if next.disturbed < best.disturbed {
            best = next;
        }
    }
    Ok(best)
}

/// A filter's name, family and rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The name of its row.
    pub(crate) filter: String,
    pub(crate) family: Family,
    /// The rate that it is built for. `None` if its rate cannot be chosen.
    pub(crate) asked_rate: Option<f64>,
}

/// The results of one round. Times are in nanoseconds per item, as their names in files say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    #[serde(rename = "add_ns")]
    pub(crate) add: f64,
    #[serde(rename = "find_absent_ns")]
    pub(crate) find_absent: f64,
    #[serde(rename = "find_present_ns")]
    pub(crate) find_present: f64,
    #[serde(rename = "find_mixed_ns")]
    pub(crate) find_mixed: f64,
    /// `None` if it does not support deletion.
    #[serde(rename = "remove_ns")]
    pub(crate) remove: Option<f64>,
    /// The measured false-positive rate: the share of the absent keys that were found.
    pub(crate) rate: f64,
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    /// Inserted keys that were not found.
    pub(crate) lost: usize,
    /// Inserted keys that could not be removed.
    pub(crate) stuck: usize,
    /// Keys that were still found after all had been removed.
    pub(crate) left: usize,
    /// Keys that were no longer found when others had been removed. `None` without removals, and in older files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lost_by_removal: Option<usize>,
    /// How many of its times other work on the processor disturbed. `None` in older files: nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disturbed: Option<u32>,
}

impl<P: Peer> Contestant for P {
    fn facts(&self, items: usize) -> Facts {
        let asked_rate = self.asked_rate();
        let own = if asked_rate.is_none() { ", its own ε" } else { "" };
        Facts { filter: self.title(items) + own, family: P::FAMILY, asked_rate }
    }

    fn measure(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<Sample> {
        let items = keys.len();
        let mut watch = Watch { watch, disturbed: 0 };
        let per_item = |time: Duration| time.as_nanos() as f64 / items as f64;

        let before = memory::live();
        let (filter, add) = watch.time(|| self.build(&keys.present));
        let mut filter = filter?;
        let bytes = memory::live().saturating_sub(before);
        let expected_rate = self.expected_rate(&filter, items);

        let (hits, find_absent) = watch.time(|| self.find(&filter, &keys.absent));
        let (found, find_present) = watch.time(|| self.find(&filter, &keys.present));
        let (mixed, find_mixed) = watch.time(|| self.find(&filter, &keys.mixed));
        let emptied = empty(self, &mut filter, &keys.present, &mut watch);
        let lost = items - found;
        let (stuck, left, lost_by_removal) =
            emptied.as_ref().map_or((0, 0, 0), |emptied| (items - emptied.removed, emptied.left, emptied.lost));
        if !P::MAY_LOSE && lost + stuck + left + lost_by_removal > 0 {
            bail!(
                "of {items} keys, {lost} were not found, {lost_by_removal} were lost when others were removed, {stuck} could not be \
                 removed, and {left} were found after all had been removed; all four must be 0"
            );
        }
        let (least, most) = (keys.mixed_present.saturating_sub(lost), keys.mixed_present + hits);
        ensure!(
            (least..=most).contains(&mixed),
            "of the mixed keys, {mixed} were found, but by the answers for the same keys before, it must be {least} to {most}"
        );
        Ok(Sample {
            add: per_item(add),
            find_absent: per_item(find_absent),
            find_present: per_item(find_present),
            find_mixed: per_item(find_mixed),
            remove: emptied.as_ref().map(|emptied| per_item(emptied.time)),
            rate: hits as f64 / items as f64,
            expected_rate,
            bits_per_item: 8.0 * bytes as f64 / items as f64,
            lost,
            stuck,
            left,
            lost_by_removal: emptied.map(|emptied| emptied.lost),
            disturbed: Some(watch.disturbed),
        })
    }
}

/// How a filter was emptied.
struct Emptied {
    time: Duration,
    /// Keys that could be removed.
    removed: usize,
    /// Keys of one half that were not found when the other half had been removed.
    lost: usize,
    /// Keys that were found when all had been removed.
    left: usize,
}

/// Removes half of the keys, looks up the other half, and removes that, too. `None` if the filter does not support deletion.
fn empty<P: Peer>(peer: &P, filter: &mut P::Filter, keys: &[u64], watch: &mut Watch<'_>) -> Option<Emptied> {
    /// Keys of all ages are removed first: every other block of them.
    const BLOCK: usize = 1024;
    let block = BLOCK.min(keys.len().div_ceil(2));
    let [first, rest] = [0, 1].map(|begin| keys.chunks(block).skip(begin).step_by(2));
    let kept: usize = rest.clone().map(<[u64]>::len).sum();
    let (removed, time) = watch.time(|| first.map(|keys| peer.remove(filter, keys)).sum::<Option<usize>>());
    let removed = removed?;
    let found: usize = rest.clone().map(|keys| peer.find(filter, keys)).sum();
    let (others, more) = watch.time(|| rest.map(|keys| peer.remove(filter, keys)).sum::<Option<usize>>());
    let left = peer.find(filter, keys);
    Some(Emptied { time: time + more, removed: removed + others?, lost: kept - found, left })
}

/// A stopwatch that counts disturbed times.
struct Watch<'a> {
    watch: &'a mut Stopwatch,
    disturbed: u32,
}

impl Watch<'_> {
    /// The result of the work, and how long it took.
    fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Duration) {
        let (result, lap) = self.watch.time(work);
        self.disturbed += u32::from(lap.disturbed);
        (result, lap.time)
    }
}
