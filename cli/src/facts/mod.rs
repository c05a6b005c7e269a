//! Facts about a filter, as text and as JSON.

mod growing;
mod redisbloom;

use koel::{Addressing, CuckooFilter, Hasher, HasherId, Params, backing::Storage, redisbloom::RedisBloomFilter};
use koel_lab::percent;
use serde_json::{Value, json};

use crate::{
    figures::counted,
    file::{self, Changing, Output, Stored},
};

/// The facts about a filter.
pub(crate) enum Facts {
    Fixed(Fixed),
    Growing(growing::Growing),
    RedisBloom(redisbloom::RedisBloom),
}

/// Of a filter of fixed size.
pub(crate) struct Fixed {
    /// For Go's files: is an item stored outside the table? Snapshots have no such place.
    has_victim: Option<bool>,
    params: Params,
    hasher: HasherId,
    items: usize,
    load_factor: f64,
    bits_per_item: f64,
    false_positive_rate: f64,
    file_bytes: u64,
}

impl Facts {
    /// Of a filter that takes this many bytes as a snapshot.
    pub(crate) fn koel<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>, file_bytes: u64) -> Self {
        Self::Fixed(Fixed::koel(filter, file_bytes))
    }

    /// Of a filter that grows, and takes this many bytes as a snapshot.
    pub(crate) fn growing(filter: &file::Growing, file_bytes: u64) -> Self {
        Self::Growing(growing::Growing::of(filter, file_bytes))
    }

    /// Of a filter that takes this many bytes as a file of Go's.
    #[cfg(target_endian = "little")]
    pub(crate) fn go(filter: &koel::go::GoFilter, file_bytes: u64) -> Self {
        let table = Fixed::koel(filter.filter(), file_bytes);
        // The victim counts as an item, too.
        let bits_per_item = 8.0 * table.params.table_bytes() as f64 / filter.len() as f64;
        Self::Fixed(Fixed { has_victim: Some(filter.has_victim()), items: filter.len(), bits_per_item, ..table })
    }

    /// Of a filter that takes this many bytes as a dump of RedisBloom's.
    pub(crate) fn redisbloom(filter: &RedisBloomFilter, file_bytes: u64) -> Self {
        Self::RedisBloom(redisbloom::RedisBloom::of(filter, file_bytes))
    }

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

    /// A line per fact.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Fixed(facts) => facts.lines(),
            Self::Growing(facts) => facts.lines(),
            Self::RedisBloom(facts) => facts.lines(),
        }
    }

    /// The facts that distinguish filters, in one line.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Fixed(facts) => facts.summary(),
            Self::Growing(facts) => facts.summary(),
            Self::RedisBloom(facts) => facts.summary(),
        }
    }

    /// All facts as JSON. Names and meanings are stable.
    pub(crate) fn object(&self) -> Value {
        match self {
            Self::Fixed(facts) => facts.object(),
            Self::Growing(facts) => facts.object(),
            Self::RedisBloom(facts) => facts.object(),
        }
    }
}

impl Fixed {
    fn koel<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>, file_bytes: u64) -> Self {
        Self {
            has_victim: None,
            params: filter.params(),
            hasher: filter.hasher().id(),
            items: filter.len(),
            load_factor: filter.load_factor(),
            bits_per_item: filter.bits_per_item(),
            false_positive_rate: filter.false_positive_rate(),
            file_bytes,
        }
    }

    /// The format, in words.
    fn format(&self) -> &'static str {
        if self.has_victim.is_some() { "file of Go's linvon/cuckoo-filter" } else { "koel snapshot" }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let params = &self.params;
        let multiple = match params.addressing() {
            Addressing::PowerOfTwo => "a power of two",
            _ => "any even number",
        };
        let bits_per_item = if self.items == 0 { String::from("-") } else { format!("{:.2}", self.bits_per_item) };
        let mut lines = vec![("format", self.format().to_owned()), ("items", self.items.to_string())];
        if let Some(has_victim) = self.has_victim {
            let victim = if has_victim { "one of the items, for which Go found no room in the table" } else { "none" };
            lines.push(("  victim", victim.to_owned()));
        }
        lines.extend([
            ("capacity", params.capacity().to_string()),
            ("table", params.table().to_string()),
            ("fingerprint bits", params.fingerprint_bits().to_string()),
            ("buckets", format!("{} of {} ({multiple})", params.buckets(), counted(params.bucket_size(), "slot"))),
            ("load", format!("{} of {} slots", percent(self.load_factor, 2), params.slots())),
            ("bits per item", bits_per_item),
            ("false positives", rate(self.false_positive_rate)),
            ("  at capacity", rate(params.false_positive_rate_at_capacity())),
            ("hasher", format!("{}, seed {}", self.hasher, params.seed())),
            ("table bytes", params.table_bytes().to_string()),
            ("file bytes", self.file_bytes.to_string()),
        ]);
        lines
    }

    fn summary(&self) -> String {
        let params = &self.params;
        format!(
            "{}, {} items, {} table of {} slots, {} bits, {} seed {}, {} bytes",
            self.format(),
            self.items,
            params.table(),
            params.slots(),
            params.fingerprint_bits(),
            self.hasher,
            params.seed(),
            self.file_bytes
        )
    }

    fn object(&self) -> Value {
        let mut object = with_params(
            &self.params,
            json!({
                "format": if self.has_victim.is_some() { "go" } else { "koel" },
                "items": self.items,
                "load_factor": self.load_factor,
                // Infinite when there are no items, for which JSON has no number.
                "bits_per_item": (self.items > 0).then_some(self.bits_per_item),
                "false_positive_rate": self.false_positive_rate,
                "hasher": self.hasher.to_string(),
                "seed": self.params.seed(),
                "file_bytes": self.file_bytes,
            }),
        );
        if let Some(has_victim) = self.has_victim {
            object["victim"] = json!(has_victim);
        }
        object
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

/// Reports what was written: on standard output, unless the filter itself went there.
pub(crate) fn report(output: &Output, facts: &Facts, others: &[(&'static str, String)]) -> anyhow::Result<()> {
    let mut lines = vec![("filter", output.name().to_owned())];
    lines.extend_from_slice(others);
    lines.extend(facts.lines());
    output.report(&aligned(&lines))
}

/// One fact per line, with the values aligned.
pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:width$}  {value}\n"))
}

/// A rate for people: in per cent, and as one in so many.
pub(crate) fn rate(rate: f64) -> String {
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
