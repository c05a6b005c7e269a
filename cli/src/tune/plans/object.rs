//! The plans as JSON.

use serde_json::{Value, json};

use super::{Plan, Plans};

impl Plans<'_> {
    /// Everything as one object. Names and meanings are stable.
    pub(super) fn object(&self) -> Value {
        let rejections = self.rejected.iter().map(|(name, reason)| json!({ "name": name, "reason": reason }));
        let (bytes, rate) = self.nearest;
        json!({
            "asked": self.asked.object(),
            "plans": self.found.iter().map(Plan::object).collect::<Vec<_>>(),
            "rejections": rejections.collect::<Vec<_>>(),
            "nearest": self.found.is_empty().then(|| json!({ "bytes": bytes, "false_positive_rate": rate })),
        })
    }
}

impl Plan {
    fn object(&self) -> Value {
        json!({
            "name": self.name,
            "table_bytes_now": self.bytes_now,
            "table_bytes_at_end": self.bytes_at_end,
            "most_bytes": self.most_bytes,
            "most_bits_per_item": self.bits_per_item.map(|(most, _)| most),
            "mean_bits_per_item": self.bits_per_item.map(|(_, mean)| mean),
            "false_positive_rate_now": self.rate_now,
            "false_positive_rate_at_end": self.rate_at_end,
            "buckets_per_lookup": self.buckets_per_lookup,
            "rebuilds": self.rebuilds,
            "insertions_per_item": self.insertions_per_item,
            "command": self.command,
            "builder": self.builder,
        })
    }
}
