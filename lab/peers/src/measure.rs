//! Takes the time of a filter's life: built, asked, emptied.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    keys::Keys,
    memory,
    peer::{Family, Peer},
};

/// A peer without its types: dynamic calls end here, outside of all that is timed.
pub(crate) trait Contestant {
    /// What is known before anything is measured, for so many items.
    fn facts(&self, items: usize) -> Facts;

    /// One round.
    ///
    /// # Errors
    /// If the filter cannot be built, loses a key where it must not, or answers now this, now that.
    fn measure(&self, keys: &Keys) -> anyhow::Result<Sample>;
}

/// Who a contestant is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// What the row is called.
    pub(crate) filter: String,
    pub(crate) family: Family,
    /// The rate that it is built for; `None` if it has one of its own.
    pub(crate) asked_rate: Option<f64>,
}

/// What one round found. Times are in nanoseconds an item, and files say so.
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
    /// Nothing, if it cannot delete.
    #[serde(rename = "remove_ns")]
    pub(crate) remove: Option<f64>,
    /// The share of the absent keys that seemed to be there.
    pub(crate) rate: f64,
    pub(crate) expected_rate: f64,
    pub(crate) bits_per_item: f64,
    /// Keys that went in and were not found.
    pub(crate) lost: usize,
    /// Keys that went in and could not be removed.
    pub(crate) stuck: usize,
    /// Keys that were still found when all had been removed.
    pub(crate) left: usize,
}

impl<P: Peer> Contestant for P {
    fn facts(&self, items: usize) -> Facts {
        let asked_rate = self.asked_rate();
        let own = if asked_rate.is_none() { ", its own ε" } else { "" };
        Facts { filter: self.title(items) + own, family: P::FAMILY, asked_rate }
    }

    fn measure(&self, keys: &Keys) -> anyhow::Result<Sample> {
        let items = keys.len();
        let per_item = |time: Duration| time.as_nanos() as f64 / items as f64;

        let before = memory::live();
        let (filter, add) = timed(|| self.build(&keys.present));
        let mut filter = filter?;
        let bytes = memory::live().saturating_sub(before);
        let expected_rate = self.expected_rate(&filter, items);

        let (hits, find_absent) = timed(|| self.find(&filter, &keys.absent));
        let (found, find_present) = timed(|| self.find(&filter, &keys.present));
        let (mixed, find_mixed) = timed(|| self.find(&filter, &keys.mixed));
        let (removed, remove) = timed(|| self.remove(&mut filter, &keys.present));
        let left = removed.map_or(0, |_| self.find(&filter, &keys.present));
        let (lost, stuck) = (items - found, removed.map_or(0, |removed| items - removed));
        if !P::MAY_LOSE && lost + stuck + left > 0 {
            bail!(
                "of {items} keys, {lost} were not found, {stuck} could not be removed, and {left} were found when all had been \
                 removed; there must be none"
            );
        }
        let (least, most) = (keys.mixed_present.saturating_sub(lost), keys.mixed_present + hits);
        ensure!(
            (least..=most).contains(&mixed),
            "of the mixed keys, {mixed} were found, where the same keys in order make it {least} to {most}"
        );
        Ok(Sample {
            add: per_item(add),
            find_absent: per_item(find_absent),
            find_present: per_item(find_present),
            find_mixed: per_item(find_mixed),
            remove: removed.map(|_| per_item(remove)),
            rate: hits as f64 / items as f64,
            expected_rate,
            bits_per_item: 8.0 * bytes as f64 / items as f64,
            lost,
            stuck,
            left,
        })
    }
}

/// What comes of the work, and how long it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = black_box(work());
    (result, start.elapsed())
}
