//! Facts about a filter of RedisBloom.

use koel::redisbloom::RedisBloomFilter;
use koel_lab::percent;
use serde_json::{Value, json};

use super::rate;
use crate::figures::counted;

/// The facts about a filter of RedisBloom.
pub(crate) struct RedisBloom {
    items: usize,
    deleted: u64,
    taken: u64,
    slots: u64,
    buckets: u64,
    bucket_size: u32,
    sub_filters: usize,
    expansion: u32,
    max_iterations: u32,
    false_positive_rate: f64,
    file_bytes: u64,
}

impl RedisBloom {
    pub(super) fn of(filter: &RedisBloomFilter, file_bytes: u64) -> Self {
        Self {
            items: filter.len(),
            deleted: filter.deleted(),
            taken: filter.taken(),
            slots: filter.slots(),
            buckets: filter.buckets(),
            bucket_size: filter.bucket_size(),
            sub_filters: filter.sub_filters(),
            expansion: filter.expansion(),
            max_iterations: filter.max_iterations(),
            false_positive_rate: filter.false_positive_rate(),
            file_bytes,
        }
    }

    fn bits_per_item(&self) -> Option<f64> {
        (self.items > 0).then(|| 8.0 * self.slots as f64 / self.items as f64)
    }

    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        vec![
            ("format", String::from("dump of RedisBloom")),
            ("items", self.items.to_string()),
            ("  removed", format!("{} since it was made or compacted", self.deleted)),
            ("sub-filters", self.sub_filters()),
            ("buckets", format!("{} of {} in the first", self.buckets, counted(self.bucket_size, "slot"))),
            ("fingerprint bits", String::from("8")),
            ("evictions", format!("{} at most for an insertion", self.max_iterations)),
            ("load", format!("{} of {} slots", percent(self.taken as f64 / self.slots as f64, 2), self.slots)),
            ("bits per item", self.bits_per_item().map_or_else(|| String::from("-"), |bits| format!("{bits:.2}"))),
            ("false positives", rate(self.false_positive_rate)),
            ("hasher", String::from("murmurhash64a, seed 0")),
            ("file bytes", self.file_bytes.to_string()),
        ]
    }

    pub(super) fn summary(&self) -> String {
        let some = if self.sub_filters == 1 { "" } else { "s" };
        format!(
            "dump of RedisBloom, {} items, {} slots in {} sub-filter{some}, {} bytes",
            self.items, self.slots, self.sub_filters, self.file_bytes
        )
    }

    /// How many there are, and how they grow.
    fn sub_filters(&self) -> String {
        let (number, expansion) = (self.sub_filters, self.expansion);
        match expansion {
            0 => format!("{number}, and never more"),
            1 => format!("{number}, a further one would be as large as the first"),
            _ => format!("{number}, a further one would be {expansion} times as large as the last"),
        }
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "format": "redisbloom",
            "items": self.items,
            "deleted": self.deleted,
            "sub_filters": self.sub_filters,
            "expansion": self.expansion,
            "buckets": self.buckets,
            "bucket_size": self.bucket_size,
            "fingerprint_bits": 8,
            "max_iterations": self.max_iterations,
            "slots": self.slots,
            "taken": self.taken,
            "load_factor": self.taken as f64 / self.slots as f64,
            // Infinite when there are no items, for which JSON has no number.
            "bits_per_item": self.bits_per_item(),
            "false_positive_rate": self.false_positive_rate,
            "hasher": "murmurhash64a",
            "seed": 0,
            "file_bytes": self.file_bytes,
        })
    }
}
