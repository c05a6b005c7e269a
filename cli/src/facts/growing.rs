//! Facts about a filter that grows.

use koel::{ElasticParams, Hasher as _, HasherId};
use serde_json::{Value, json};

use super::rate;
use crate::{figures::counted, file};

/// The facts about a filter that grows.
pub(crate) struct Growing {
    params: ElasticParams,
    hasher: HasherId,
    items: usize,
    shards: usize,
    buckets_per_lookup: usize,
    table_bytes: usize,
    bits_per_item: f64,
    false_positive_rate: f64,
    file_bytes: u64,
}

impl Growing {
    pub(super) fn of(filter: &file::Growing, file_bytes: u64) -> Self {
        Self {
            params: filter.params(),
            hasher: filter.hasher().id(),
            items: filter.len(),
            shards: filter.shards(),
            buckets_per_lookup: filter.buckets_per_lookup(),
            table_bytes: filter.table_bytes(),
            // In the file: in memory, it depends on the filter's history.
            bits_per_item: 8.0 * file_bytes as f64 / filter.len() as f64,
            false_positive_rate: filter.false_positive_rate(),
            file_bytes,
        }
    }

    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let params = &self.params;
        let bits_per_item = if self.items == 0 { String::from("-") } else { format!("{:.2}", self.bits_per_item) };
        vec![
            ("format", String::from("koel snapshot of a filter that grows")),
            ("items", self.items.to_string()),
            ("capacity", format!("{}, and up to {} with two buckets for a look-up", params.capacity(), params.max_capacity())),
            ("table", format!("{}, in {} shards", params.table(), self.shards)),
            ("buckets", format!("of {}; a look-up reads {}", counted(params.bucket_size(), "slot"), self.buckets_per_lookup)),
            ("bits per item", bits_per_item),
            ("false positives", rate(self.false_positive_rate)),
            ("  at most", rate(params.false_positive_rate())),
            ("hasher", format!("{}, seed {}", self.hasher, params.seed())),
            ("table bytes", self.table_bytes.to_string()),
            ("file bytes", self.file_bytes.to_string()),
        ]
    }

    pub(super) fn summary(&self) -> String {
        let params = &self.params;
        format!(
            "koel snapshot of a filter that grows, {} items, {} table in {} shards, {} seed {}, {} bytes",
            self.items,
            params.table(),
            self.shards,
            self.hasher,
            params.seed(),
            self.file_bytes
        )
    }

    pub(super) fn object(&self) -> Value {
        let params = &self.params;
        json!({
            "format": "koel-growing",
            "items": self.items,
            "capacity": params.capacity(),
            "max_capacity": params.max_capacity(),
            "table": params.table().to_string(),
            "bucket_size": params.bucket_size(),
            "lanes": params.lanes(),
            "shards": self.shards,
            "buckets_per_lookup": self.buckets_per_lookup,
            // Infinite when there are no items, for which JSON has no number.
            "bits_per_item": (self.items > 0).then_some(self.bits_per_item),
            "false_positive_rate": self.false_positive_rate,
            "most_false_positive_rate": params.false_positive_rate(),
            "hasher": self.hasher.to_string(),
            "seed": params.seed(),
            "table_bytes": self.table_bytes,
            "file_bytes": self.file_bytes,
        })
    }
}
