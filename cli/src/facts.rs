//! Facts about a filter, as text and as JSON.

use std::time::Duration;

use koel::{Addressing, CuckooFilter, Filter, hash::Hasher, redisbloom::RedisBloomFilter};
use koel_lab::percent;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    file::{Growing, Output, Snapshot, Stored},
    text::counted,
    window::Contents,
};

/// The facts about a filter.
pub(crate) struct Facts {
    items: usize,
    /// Names and values, in the order of printing.
    pub(crate) lines: Vec<(&'static str, String)>,
    /// The facts that distinguish filters, in one line.
    pub(crate) summary: String,
    /// All facts, as JSON. Names and meanings are stable.
    pub(crate) object: Value,
}

impl Facts {
    /// Describes a filter that was read from `file_bytes` bytes.
    pub(crate) fn stored(stored: &Stored, file_bytes: u64) -> Self {
        match stored {
            Stored::Koel(filter) => Self::snapshot(filter, file_bytes),
            Stored::RedisBloom(filter) => Self::redisbloom(filter, file_bytes),
            #[cfg(target_endian = "little")]
            Stored::Go(filter) => Self::go(filter, file_bytes),
        }
    }

    /// Describes a koel snapshot of either type.
    pub(crate) fn snapshot(filter: &Snapshot, file_bytes: u64) -> Self {
        match filter {
            Snapshot::Fixed(filter) => Self::koel(filter, file_bytes),
            Snapshot::Growing(filter) => Self::growing(filter, file_bytes),
        }
    }

    /// Describes a filter of fixed size, whose snapshot has `file_bytes` bytes.
    pub(crate) fn koel<H: Hasher>(filter: &CuckooFilter<H>, file_bytes: u64) -> Self {
        // The bytes of the table and of the list of extra copies.
        let bytes = file_bytes - filter.params().snapshot_bytes() + filter.params().table_bytes() as u64;
        let facts = Self::new("koel", "koel snapshot", filter.len());
        facts.extra_copies(filter.len() - filter.table_len(), "table").fixed(filter, filter, bytes, file_bytes)
    }

    /// Describes a Go file of `file_bytes` bytes, where one item may be stored outside the table.
    #[cfg(target_endian = "little")]
    pub(crate) fn go(filter: &koel::go::GoFilter, file_bytes: u64) -> Self {
        let has_victim = filter.has_victim();
        let victim = if has_victim { "one of the items, for which Go found no room in the table" } else { "none" };
        let (facts, bytes) =
            (Self::new("go", "file of Go's linvon/cuckoo-filter", filter.len()), filter.filter().params().table_bytes() as u64);
        facts.with("  victim", victim, json!({ "victim": has_victim })).fixed(filter, filter.filter(), bytes, file_bytes)
    }

    /// Adds the facts about a filter with one table. Its items take `bytes` bytes.
    fn fixed<H: Hasher>(self, filter: &dyn Filter, table: &CuckooFilter<H>, bytes: u64, file_bytes: u64) -> Self {
        let (params, hasher, load) = (table.params(), table.hasher().id().to_string(), table.load_factor());
        let (kind, slots, bits) = (params.table().to_string(), params.slots(), params.fingerprint_bits());
        let multiple = match params.addressing() {
            Addressing::PowerOfTwo => "a power of two",
            _ => "any even number",
        };
        let (buckets, bucket_size) = (params.buckets(), params.bucket_size());
        let addressing = params.addressing().to_string();
        let summary = format!("{kind} table of {slots} slots, {bits} bits, {hasher} seed {}", params.seed());
        self.fact("capacity", "capacity", params.capacity())
            .fact("table", "table", kind)
            .fact("fingerprint bits", "fingerprint_bits", bits)
            .with(
                "buckets",
                &format!("{buckets} of {} ({multiple})", counted(bucket_size, "slot")),
                json!({ "buckets": buckets, "bucket_size": bucket_size, "addressing": addressing, "slots": slots }),
            )
            .load(load, slots as u64)
            .bits_per_item(bytes as f64)
            .rate("false positives", "false_positive_rate", filter.false_positive_rate())
            .rate("  at capacity", "false_positive_rate_at_capacity", params.false_positive_rate_at_capacity())
            .hasher(&hasher, params.seed())
            .fact("table bytes", "table_bytes", params.table_bytes())
            .end(&summary, file_bytes)
    }

    /// Describes a growing filter, whose snapshot has `file_bytes` bytes.
    fn growing(filter: &Growing, file_bytes: u64) -> Self {
        let (params, shards, reads) = (filter.params(), filter.shards(), filter.buckets_per_lookup());
        let (table, hasher, seed) = (params.table().to_string(), filter.hasher().id().to_string(), params.seed());
        let (capacity, most, bucket_size) = (params.capacity(), params.max_capacity(), params.bucket_size());
        let in_shards = counted(shards, "shard");
        let (in_table, shown) = match filter.buckets() {
            // All shards are lists.
            0 => (format!("{table}, once there are more items"), String::from("a list of a few items")),
            _ => (format!("{table}, in {in_shards}"), format!("{table} table in {in_shards}")),
        };
        Self::new("koel-growing", "koel snapshot of a filter that grows", filter.len())
            .extra_copies(filter.len() - filter.table_len(), "tables")
            .with(
                "capacity",
                &format!("{capacity}, and up to {most} with two buckets per lookup"),
                json!({ "capacity": capacity, "max_capacity": most }),
            )
            .with("table", &in_table, json!({ "table": table, "partitions": params.partitions(), "shards": shards }))
            .with(
                "buckets",
                &format!("of {}; a lookup reads {reads}", counted(bucket_size, "slot")),
                json!({ "bucket_size": bucket_size, "buckets_per_lookup": reads }),
            )
            // In the file, because the bytes in memory depend on the filter's history.
            .bits_per_item(file_bytes as f64)
            .rate("false positives", "false_positive_rate", filter.false_positive_rate())
            .rate("  at most", "most_false_positive_rate", params.false_positive_rate())
            .hasher(&hasher, seed)
            .fact("table bytes", "table_bytes", filter.table_bytes())
            .end(&format!("{shown}, {hasher} seed {seed}"), file_bytes)
    }

    /// Describes a RedisBloom dump of `file_bytes` bytes.
    pub(crate) fn redisbloom(filter: &RedisBloomFilter, file_bytes: u64) -> Self {
        let (slots, taken, number, expansion) = (filter.slots(), filter.taken(), filter.sub_filters(), filter.expansion());
        let (deleted, iterations) = (filter.deleted(), filter.max_iterations());
        let (buckets, bucket_size) = (filter.buckets(), filter.bucket_size());
        let sub_filters = match expansion {
            0 => format!("{number}, and never more"),
            1 => format!("{number}, another one would be as large as the first"),
            expansion => format!("{number}, another one would be {expansion} times as large as the last"),
        };
        Self::new("redisbloom", "dump of RedisBloom", filter.len())
            .with("  removed", &format!("{deleted} since it was made or compacted"), json!({ "deleted": deleted }))
            .with("sub-filters", &sub_filters, json!({ "sub_filters": number, "expansion": expansion }))
            .with(
                "buckets",
                &format!("{buckets} of {} in the first", counted(bucket_size, "slot")),
                json!({ "buckets": buckets, "bucket_size": bucket_size, "slots": slots, "taken": taken }),
            )
            .fact("fingerprint bits", "fingerprint_bits", 8)
            .with("evictions", &format!("{iterations} at most for an insertion"), json!({ "max_iterations": iterations }))
            .load(taken as f64 / slots as f64, slots as u64)
            .bits_per_item(slots as f64)
            .rate("false positives", "false_positive_rate", filter.false_positive_rate())
            .hasher("murmurhash64a", 0)
            .end(&format!("{slots} slots in {}", counted(number as u64, "sub-filter")), file_bytes)
    }

    /// Describes a folder of filters that forget.
    pub(crate) fn window(contents: &Contents) -> Self {
        let Contents { filters, in_journals, times: [from, to], forgets_after: [least, most], bytes } = contents;
        let items = filters.iter().map(Growing::len).sum::<usize>();
        let duration = |seconds: u64| humantime::format_duration(Duration::from_secs(seconds)).to_string();
        let number = counted(filters.len(), "filter");
        let mut facts = Self::new("koel-window", "folder of koel uniq --forget", items);
        let in_journals = in_journals.len();
        facts.object["items_in_journals"] = json!(in_journals);
        if in_journals > 0 {
            facts.summary = format!("{} and {in_journals} more in journals", facts.summary);
            facts = facts.with("  in journals", &format!("{in_journals} more, which will be in a filter"), json!({}));
        }
        facts
            .fact("filters", "filters", filters.len())
            .with(
                "forgets after",
                &format!("{} to {}", duration(*least), duration(*most)),
                json!({ "forgets_after_seconds": least, "forgets_at_the_latest_after_seconds": most }),
            )
            .with("lines from", &format!("{from} to {to}"), json!({ "from": from, "to": to }))
            .rate("false positives", "false_positive_rate", filters.iter().map(Growing::false_positive_rate).sum())
            .end(&format!("{number}, forgets after {}", duration(*least)), *bytes)
    }

    fn new(format: &str, name: &str, items: usize) -> Self {
        let facts = Self { items, lines: Vec::new(), summary: format!("{name}, {}", counted(items, "item")), object: json!({}) };
        facts.with("format", name, json!({ "format": format })).fact("items", "items", items)
    }

    /// Adds a line for people, and the same fact as JSON fields.
    fn with(mut self, name: &'static str, value: &str, fields: Value) -> Self {
        self.lines.push((name, value.to_owned()));
        self.extend(fields);
        self
    }

    /// Adds JSON fields.
    fn extend(&mut self, fields: Value) {
        if let (Some(object), Value::Object(fields)) = (self.object.as_object_mut(), fields) {
            object.extend(fields);
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "numbers and short texts")]
    fn fact(self, name: &'static str, field: &str, value: impl ToString + Serialize) -> Self {
        let text = value.to_string();
        self.with(name, &text, json!({ field: value }))
    }

    /// Adds the number of extra copies, which are counted beside the table. `tables` is "table" or "tables".
    fn extra_copies(mut self, copies: usize, tables: &str) -> Self {
        self.object["extra_copies"] = json!(copies);
        if copies == 0 {
            return self;
        }
        self.with("  of these", &format!("{copies} copies, counted beside the {tables}"), json!({}))
    }

    fn load(self, load: f64, slots: u64) -> Self {
        self.with("load", &format!("{} of {slots} slots", percent(load, 2)), json!({ "load_factor": load }))
    }

    /// Adds the bits per item, of `bytes` bytes in all. Without items they are infinite, which JSON cannot represent, so they are
    /// null.
    fn bits_per_item(self, bytes: f64) -> Self {
        let bits = (self.items > 0).then_some(8.0 * bytes / self.items as f64);
        let text = bits.map_or_else(|| String::from("-"), |bits| format!("{bits:.2}"));
        self.with("bits per item", &text, json!({ "bits_per_item": bits }))
    }

    fn rate(self, name: &'static str, field: &str, value: f64) -> Self {
        self.with(name, &rate(value), json!({ field: value }))
    }

    fn hasher(self, hasher: &str, seed: u64) -> Self {
        self.with("hasher", &format!("{hasher}, seed {seed}"), json!({ "hasher": hasher, "seed": seed }))
    }

    fn end(mut self, summary: &str, file_bytes: u64) -> Self {
        self.summary = format!("{}, {summary}, {file_bytes} bytes", self.summary);
        self.fact("file bytes", "file_bytes", file_bytes)
    }

    /// Reports what was written, on standard output: with the lines of `others`, or as a JSON object with further fields. If the filter
    /// itself went there, the report goes to standard error.
    pub(crate) fn report(
        mut self,
        output: &Output,
        others: &[(&'static str, String)],
        fields: Option<Value>,
    ) -> anyhow::Result<()> {
        if let Some(mut fields) = fields {
            fields["filter"] = output.name().into();
            self.extend(fields);
            return output.report(&format!("{}\n", self.object));
        }
        let lines = [&[("filter", output.name().to_owned())], others, &self.lines].concat();
        output.report(&aligned(&lines))
    }
}

/// Returns bytes as JSON: text or, if they are not UTF-8, an array of numbers.
pub(crate) fn bytes_as_json(bytes: &[u8]) -> Value {
    str::from_utf8(bytes).map_or_else(|_| json!(bytes), |text| json!(text))
}

/// Formats one fact per line, with aligned values.
pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:width$}  {value}\n"))
}

/// Formats a rate for people: in percent, and as one in a number of items.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        0.0 => String::from("none"),
        // "One in 1" to "one in 10" would say nothing new.
        0.1.. => percent(rate, 2),
        _ => format!("{}, one in {:.0}", percent(rate, 2), 1.0 / rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_significant_digits() {
        assert_eq!(rate(0.001), "0.100 %, one in 1000");
        assert_eq!(rate(0.25), "25.00 %");
        assert_eq!(rate(0.0), "none");
    }
}
