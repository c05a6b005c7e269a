//! Facts about a filter, as text and as JSON.

use koel::{Addressing, CuckooFilter, Hasher, Params, backing::Storage, redisbloom::RedisBloomFilter};
use koel_lab::percent;
use serde_json::{Value, json};

use crate::{
    file::{Changing, Growing, Output, Stored},
    text::counted,
};

/// The facts about a filter.
pub(crate) struct Facts {
    /// A name and a value each.
    pub(crate) lines: Vec<(&'static str, String)>,
    /// Those that distinguish filters, in one line.
    pub(crate) summary: String,
    /// All of them. Names and meanings are stable.
    pub(crate) object: Value,
}

/// What differs between a filter of fixed size in a snapshot and one in a file of Go's.
struct Fixed {
    /// For Go's files: is an item stored outside the table? Snapshots have no such place.
    has_victim: Option<bool>,
    items: usize,
    bits_per_item: f64,
}

impl Facts {
    /// Of a filter that was read, with the number of bytes read.
    pub(crate) fn of(stored: &Stored, file_bytes: u64) -> Self {
        match stored {
            Stored::Koel(filter) => Self::koel(filter, file_bytes),
            Stored::Growing(filter) => Self::growing(filter, file_bytes),
            Stored::RedisBloom(filter) => Self::redisbloom(filter, file_bytes),
            #[cfg(target_endian = "little")]
            Stored::Go(filter) => Self::go(filter, file_bytes),
        }
    }

    /// Of a filter that was changed.
    pub(crate) fn changed(filter: &Changing, file_bytes: u64) -> Self {
        match filter {
            Changing::Fixed(filter) => Self::koel(filter, file_bytes),
            Changing::Growing(filter) => Self::growing(filter, file_bytes),
        }
    }

    /// Of a filter that takes this many bytes as a snapshot.
    pub(crate) fn koel<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>, file_bytes: u64) -> Self {
        let fixed = Fixed { has_victim: None, items: filter.len(), bits_per_item: filter.bits_per_item() };
        Self::fixed(filter, &fixed, file_bytes)
    }

    /// Of a filter that takes this many bytes as a file of Go's.
    #[cfg(target_endian = "little")]
    pub(crate) fn go(filter: &koel::go::GoFilter, file_bytes: u64) -> Self {
        // The victim counts as an item, too.
        let bits_per_item = 8.0 * filter.filter().params().table_bytes() as f64 / filter.len() as f64;
        let fixed = Fixed { has_victim: Some(filter.has_victim()), items: filter.len(), bits_per_item };
        Self::fixed(filter.filter(), &fixed, file_bytes)
    }

    fn fixed<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>, fixed: &Fixed, file_bytes: u64) -> Self {
        let Fixed { has_victim, items, bits_per_item } = *fixed;
        let (params, hasher) = (filter.params(), filter.hasher().id());
        let (format, format_name) =
            if has_victim.is_some() { ("go", "file of Go's linvon/cuckoo-filter") } else { ("koel", "koel snapshot") };
        let multiple = match params.addressing() {
            Addressing::PowerOfTwo => "a power of two",
            _ => "any even number",
        };
        let mut lines = vec![("format", format_name.to_owned()), ("items", items.to_string())];
        if let Some(has_victim) = has_victim {
            let victim = if has_victim { "one of the items, for which Go found no room in the table" } else { "none" };
            lines.push(("  victim", victim.to_owned()));
        }
        lines.extend([
            ("capacity", params.capacity().to_string()),
            ("table", params.table().to_string()),
            ("fingerprint bits", params.fingerprint_bits().to_string()),
            ("buckets", format!("{} of {} ({multiple})", params.buckets(), counted(params.bucket_size(), "slot"))),
            ("load", format!("{} of {} slots", percent(filter.load_factor(), 2), params.slots())),
            ("bits per item", bits(items, bits_per_item)),
            ("false positives", rate(filter.false_positive_rate())),
            ("  at capacity", rate(params.false_positive_rate_at_capacity())),
            ("hasher", format!("{hasher}, seed {}", params.seed())),
            ("table bytes", params.table_bytes().to_string()),
            ("file bytes", file_bytes.to_string()),
        ]);
        let summary = format!(
            "{format_name}, {items} items, {} table of {} slots, {} bits, {hasher} seed {}, {file_bytes} bytes",
            params.table(),
            params.slots(),
            params.fingerprint_bits(),
            params.seed()
        );
        let mut object = with_params(
            &params,
            json!({
                "format": format,
                "items": items,
                "load_factor": filter.load_factor(),
                "bits_per_item": (items > 0).then_some(bits_per_item),
                "false_positive_rate": filter.false_positive_rate(),
                "hasher": hasher.to_string(),
                "seed": params.seed(),
                "file_bytes": file_bytes,
            }),
        );
        if let Some(has_victim) = has_victim {
            object["victim"] = json!(has_victim);
        }
        Self { lines, summary, object }
    }

    /// Of a filter that grows, and takes this many bytes as a snapshot.
    pub(crate) fn growing(filter: &Growing, file_bytes: u64) -> Self {
        let (params, items, shards) = (filter.params(), filter.len(), filter.shards());
        let (hasher, table) = (filter.hasher().id(), params.table());
        let reads = filter.buckets_per_lookup();
        // In the file: in memory, it depends on the filter's history.
        let bits_per_item = 8.0 * file_bytes as f64 / items as f64;
        let lines = vec![
            ("format", String::from("koel snapshot of a filter that grows")),
            ("items", items.to_string()),
            ("capacity", format!("{}, and up to {} with two buckets per lookup", params.capacity(), params.max_capacity())),
            ("table", format!("{table}, in {shards} shards")),
            ("buckets", format!("of {}; a lookup reads {reads}", counted(params.bucket_size(), "slot"))),
            ("bits per item", bits(items, bits_per_item)),
            ("false positives", rate(filter.false_positive_rate())),
            ("  at most", rate(params.false_positive_rate())),
            ("hasher", format!("{hasher}, seed {}", params.seed())),
            ("table bytes", filter.table_bytes().to_string()),
            ("file bytes", file_bytes.to_string()),
        ];
        let summary = format!(
            "koel snapshot of a filter that grows, {items} items, {table} table in {shards} shards, {hasher} seed {}, {file_bytes} bytes",
            params.seed()
        );
        let object = json!({
            "format": "koel-growing",
            "items": items,
            "capacity": params.capacity(),
            "max_capacity": params.max_capacity(),
            "table": table.to_string(),
            "bucket_size": params.bucket_size(),
            "lanes": params.lanes(),
            "shards": shards,
            "buckets_per_lookup": reads,
            "bits_per_item": (items > 0).then_some(bits_per_item),
            "false_positive_rate": filter.false_positive_rate(),
            "most_false_positive_rate": params.false_positive_rate(),
            "hasher": hasher.to_string(),
            "seed": params.seed(),
            "table_bytes": filter.table_bytes(),
            "file_bytes": file_bytes,
        });
        Self { lines, summary, object }
    }

    /// Of a filter that takes this many bytes as a dump of RedisBloom's.
    pub(crate) fn redisbloom(filter: &RedisBloomFilter, file_bytes: u64) -> Self {
        let (items, slots, taken, number) = (filter.len(), filter.slots(), filter.taken(), filter.sub_filters());
        let load_factor = taken as f64 / slots as f64;
        let bits_per_item = 8.0 * slots as f64 / items as f64;
        let hasher = "murmurhash64a";
        let sub_filters = match filter.expansion() {
            0 => format!("{number}, and never more"),
            1 => format!("{number}, a further one would be as large as the first"),
            expansion => format!("{number}, a further one would be {expansion} times as large as the last"),
        };
        let lines = vec![
            ("format", String::from("dump of RedisBloom")),
            ("items", items.to_string()),
            ("  removed", format!("{} since it was made or compacted", filter.deleted())),
            ("sub-filters", sub_filters),
            ("buckets", format!("{} of {} in the first", filter.buckets(), counted(filter.bucket_size(), "slot"))),
            ("fingerprint bits", String::from("8")),
            ("evictions", format!("{} at most for an insertion", filter.max_iterations())),
            ("load", format!("{} of {slots} slots", percent(load_factor, 2))),
            ("bits per item", bits(items, bits_per_item)),
            ("false positives", rate(filter.false_positive_rate())),
            ("hasher", format!("{hasher}, seed 0")),
            ("file bytes", file_bytes.to_string()),
        ];
        let summary = format!(
            "dump of RedisBloom, {items} items, {slots} slots in {}, {file_bytes} bytes",
            counted(number as u64, "sub-filter")
        );
        let object = json!({
            "format": "redisbloom",
            "items": items,
            "deleted": filter.deleted(),
            "sub_filters": number,
            "expansion": filter.expansion(),
            "buckets": filter.buckets(),
            "bucket_size": filter.bucket_size(),
            "fingerprint_bits": 8,
            "max_iterations": filter.max_iterations(),
            "slots": slots,
            "taken": taken,
            "load_factor": load_factor,
            "bits_per_item": (items > 0).then_some(bits_per_item),
            "false_positive_rate": filter.false_positive_rate(),
            "hasher": hasher,
            "seed": 0,
            "file_bytes": file_bytes,
        });
        Self { lines, summary, object }
    }

    /// Reports what was written: on standard output, unless the filter itself went there.
    pub(crate) fn report(&self, output: &Output, others: &[(&'static str, String)]) -> anyhow::Result<()> {
        let mut lines = vec![("filter", output.name().to_owned())];
        lines.extend_from_slice(others);
        lines.extend_from_slice(&self.lines);
        output.report(&aligned(&lines))
    }
}

/// The fields that follow from the parameters, and then those of another object.
pub(crate) fn with_params(params: &Params, others: Value) -> Value {
    let mut object = json!({
        "table": params.table().to_string(),
        "fingerprint_bits": params.fingerprint_bits(),
        "bucket_size": params.bucket_size(),
        "buckets": params.buckets(),
        "addressing": params.addressing().to_string(),
        "slots": params.slots(),
        "capacity": params.capacity(),
        "table_bytes": params.table_bytes(),
        "false_positive_rate_at_capacity": params.false_positive_rate_at_capacity(),
    });
    if let (Some(object), Value::Object(others)) = (object.as_object_mut(), others) {
        object.extend(others);
    }
    object
}

/// One fact per line, with the values aligned.
pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:width$}  {value}\n"))
}

/// Bits per item, which are infinite without items. JSON has no number for that, either.
fn bits(items: usize, bits_per_item: f64) -> String {
    if items == 0 { String::from("-") } else { format!("{bits_per_item:.2}") }
}

/// A rate for people: in per cent, and as one in so many.
fn rate(rate: f64) -> String {
    match rate {
        0.0 => String::from("none"),
        // "One in 1" would not help.
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
