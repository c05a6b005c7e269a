//! Growing filters in serde formats.

use super::snapshots::{kinds, small};
use crate::common::filled;
use crate::formats::{from_bincode, from_json, from_postcard, to_bincode, to_json, to_postcard};
use koel::{CuckooFilter, ElasticFilter, ElasticView, SharedFilter, Xxh3};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A user's type that has filters as fields.
#[derive(Serialize, Deserialize)]
struct Day {
    name: String,
    visitors: ElasticFilter,
    before: Option<ElasticFilter>,
}

#[track_caller]
fn assert_bytes(read: &ElasticFilter, bytes: &[u8]) {
    assert_eq!(read.to_bytes(), bytes);
}

#[test]
fn every_kind_of_filter_survives_a_round_trip() {
    for filter in kinds() {
        let bytes = filter.to_bytes();
        let (bincode, postcard, text) = (to_bincode(&filter), to_postcard(&filter), to_json(&filter));
        assert!(bincode.ends_with(&bytes) && postcard.ends_with(&bytes) && text.is_string());
        assert_bytes(&from_bincode(&bincode).expect("bincode"), &bytes);
        assert_bytes(&from_postcard(&postcard).expect("postcard"), &bytes);
        assert_bytes(&from_json(text.clone()).expect("JSON, from a tree"), &bytes);
        assert_bytes(&serde_json::from_str(&text.to_string()).expect("JSON, from text"), &bytes);
        assert_bytes(&serde_json::from_reader(text.to_string().as_bytes()).expect("JSON, from a reader"), &bytes);
        assert_bytes(&from_json(json!(bytes)).expect("JSON, a list of numbers"), &bytes);
        let view = ElasticView::over(&bytes).expect("a valid snapshot");
        assert_eq!((to_bincode(&view), to_json(&view)), (bincode.clone(), text.clone()));
        let shared: SharedFilter = from_bincode(&bincode).expect("bincode");
        assert_eq!((to_bincode(&shared), to_json(&shared)), (bincode, text));
    }
}

#[test]
fn a_filter_can_be_a_field() {
    let mut visitors = ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
    visitors.insert("alice").expect("the filter grows");
    let day = Day { name: "Friday".into(), visitors, before: None };
    let mut read: Day = serde_json::from_value(to_json(&day)).expect("JSON");
    assert!(read.name == "Friday" && read.before.is_none() && read.visitors.contains("alice"));
    read.before = Some(read.visitors.clone());
    read.visitors.insert("bob").expect("the filter grows");
    let read: Day = from_postcard(&to_postcard(&read)).expect("postcard");
    assert!(read.visitors.contains("bob") && read.before.is_some_and(|before| before.len() == 1));
}

/// Every later release reads and writes this text.
#[test]
fn the_json_text_of_a_filter_is_stable() {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(1).seed(u64::MAX);
    let mut filter = builder.build().expect("valid parameters");
    filter.insert("koel").expect("there is room");
    let text = "S09FTA0KGgoCAAIKBAABAP//////////CAAAAAAAAwABAAAAAAAAAAEAAAAAAAAAexSuR+F6hD8jwF9EHpjYiQEAAAAAAAAAAQAAAAAAAABAAAAAAAAAAPwtaR1oRiNAAAAAAAAAAAABAAAAAAAAAMw2Hz9DaYLgAQAAgAcAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMxsVb/Gweqs";
    assert_eq!(to_json(&filter), json!(text));
    assert_bytes(&from_json(json!(text)).expect("the text is valid"), &filter.to_bytes());
}

#[track_caller]
fn refused(value: Value, parts: &[&str]) {
    let error = from_json::<ElasticFilter>(value).expect_err("the value is not a filter");
    for part in parts {
        assert!(error.contains(part), "{part:?} expected in: {error}");
    }
}

#[test]
fn truncated_and_altered_values_are_refused() {
    for filter in [filled(small(), 0), filled(small(), 100)] {
        let bytes = filter.to_bytes();
        let (binary, text) = (to_postcard(&filter), serde_json::to_string(&filter).expect("a filter can be written"));
        for len in (0..binary.len()).step_by(7) {
            assert!(from_postcard::<ElasticFilter>(&binary[..len]).is_err());
        }
        for len in (0..bytes.len()).step_by(7) {
            refused(json!(bytes[..len]), &["koel filter", "at byte"]);
        }
        for at in (1..text.len() - 1).step_by(5) {
            // A different digit, a character outside base64, or misplaced padding.
            for digit in ["A", "B", "!", "="] {
                let mut altered = text.clone();
                altered.replace_range(at..=at, digit);
                assert!(altered == text || serde_json::from_str::<ElasticFilter>(&altered).is_err(), "{at}");
            }
            let mut shorter = text.clone();
            shorter.remove(at);
            assert!(serde_json::from_str::<ElasticFilter>(&shorter).is_err());
        }
        let long = [&bytes[..], &[0; 100]].concat();
        refused(json!(long), &["100 more bytes"]);
        assert!(from_postcard::<ElasticFilter>(&to_postcard(&long)).is_err());
    }
}

#[test]
fn errors_name_the_problem_and_are_short() {
    refused(json!("alice"), &["\"alice\" given, expected padded base64"]);
    refused(json!("!".repeat(1 << 20)), &["a text of 1048576 bytes given", "from digit 0 on"]);
    refused(json!(""), &["koel filter", "end too early"]);
    refused(json!("AAAA"), &["koel filter"]);
    refused(json!(7), &["a koel filter"]);
    refused(json!(null), &["a koel filter"]);
    refused(json!({}), &["a koel filter"]);
    refused(json!([1, 2, 300]), &["300"]);
    let fixed = CuckooFilter::<Xxh3>::builder().buckets(2).fingerprint_bits(8).build().expect("valid parameters");
    refused(to_json(&fixed), &["at byte 10"]);
    refused(json!(fixed.to_bytes()), &["at byte 10"]);
    let error = from_json::<CuckooFilter>(to_json(&filled(small(), 1))).expect_err("the filter is a growing one");
    assert!(error.contains("this is a filter that grows") && error.len() < 300, "{error}");
}
