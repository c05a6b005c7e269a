//! What there is to say about a filter, for people and for programs.

use koel::{Addressing, Hasher as _};
use serde_json::{Value, json};

use crate::{file::Filter, options::addressing_name};

/// A line for each fact.
pub(crate) fn lines(filter: &Filter, file_bytes: u64) -> Vec<(&'static str, String)> {
    let params = filter.params();
    let multiple = match params.addressing() {
        Addressing::PowerOfTwo => "a power of two",
        _ => "any even number",
    };
    let bits_per_item = if filter.is_empty() { String::from("-") } else { format!("{:.2}", filter.bits_per_item()) };
    vec![
        ("items", filter.len().to_string()),
        ("capacity", filter.capacity().to_string()),
        ("table", params.table().to_string()),
        ("fingerprint bits", params.fingerprint_bits().to_string()),
        ("buckets", format!("{} of {} slots ({multiple})", params.buckets(), params.bucket_size())),
        ("load", format!("{:.2} % of {} slots", 100.0 * filter.load_factor(), filter.slots())),
        ("bits per item", bits_per_item),
        ("false positives", rate(filter.false_positive_rate())),
        ("  at capacity", rate(params.false_positive_rate_at_capacity())),
        ("hasher", format!("{}, seed {}", filter.hasher().id(), params.seed())),
        ("table bytes", params.table_bytes().to_string()),
        ("file bytes", file_bytes.to_string()),
    ]
}

/// The same for programs. Names and meanings stay as they are.
pub(crate) fn object(filter: &Filter, file_bytes: u64) -> Value {
    let params = filter.params();
    json!({
        "items": filter.len(),
        "capacity": filter.capacity(),
        "table": params.table().to_string(),
        "fingerprint_bits": params.fingerprint_bits(),
        "bucket_size": params.bucket_size(),
        "buckets": params.buckets(),
        "addressing": addressing_name(params.addressing()),
        "slots": filter.slots(),
        "load_factor": filter.load_factor(),
        // Infinite when there are no items, for which JSON has no number.
        "bits_per_item": (!filter.is_empty()).then(|| filter.bits_per_item()),
        "false_positive_rate": filter.false_positive_rate(),
        "false_positive_rate_at_capacity": params.false_positive_rate_at_capacity(),
        "hasher": filter.hasher().id().to_string(),
        "seed": params.seed(),
        "table_bytes": params.table_bytes(),
        "file_bytes": file_bytes,
    })
}

/// The facts below each other, their values in one column.
pub(crate) fn aligned(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:width$}  {value}\n"))
}

/// A rate as people say it.
pub(crate) fn rate(rate: f64) -> String {
    match rate {
        0.0 => String::from("none"),
        // "One in 1" says nothing.
        0.1.. => percent(rate),
        _ => format!("{}, one in {:.0}", percent(rate), 1.0 / rate),
    }
}

/// Three digits that count, in per cent.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent == 0.0 {
        return String::from("0 %");
    }
    if percent < 1e-4 {
        return format!("{percent:.2e} %");
    }
    let mut decimals = 2;
    let mut limit = 1.0;
    while percent < limit && decimals < 6 {
        decimals += 1;
        limit /= 10.0;
    }
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_that_count() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.97), "97.00 %");
        assert_eq!(percent(0.012_345), "1.23 %");
        assert_eq!(percent(0.000_946), "0.0946 %");
        assert_eq!(percent(1.234e-9), "1.23e-7 %");
        assert_eq!(rate(0.001), "0.100 %, one in 1000");
        assert_eq!(rate(0.25), "25.00 %");
        assert_eq!(rate(0.0), "none");
    }
}
