//! Growing filters in other people's formats.

use super::snapshots::{filled, kinds, small};
use crate::formats::{from_bincode, from_json, from_postcard, to_bincode, to_json, to_postcard};
use koel::{CuckooFilter, ElasticFilter, ElasticView, SharedFilter, Xxh3};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A user's type.
#[derive(Serialize, Deserialize)]
struct Day {
    name: String,
    visitors: ElasticFilter,
    before: Option<ElasticFilter>,
}

#[track_caller]
fn is(read: &ElasticFilter, bytes: &[u8]) {
    assert_eq!(read.to_bytes(), bytes);
}

#[test]
fn every_kind_comes_back_as_it_was() {
    for filter in kinds() {
        let bytes = filter.to_bytes();
        let (bincode, postcard, text) = (to_bincode(&filter), to_postcard(&filter), to_json(&filter));
        assert!(bincode.ends_with(&bytes) && postcard.ends_with(&bytes) && text.is_string());
        is(&from_bincode(&bincode).expect("bincode"), &bytes);
        is(&from_postcard(&postcard).expect("postcard"), &bytes);
        is(&from_json(text.clone()).expect("JSON, from a tree"), &bytes);
        is(&serde_json::from_str(&text.to_string()).expect("JSON, from text"), &bytes);
        is(&serde_json::from_reader(text.to_string().as_bytes()).expect("JSON, from a reader"), &bytes);
        is(&from_json(json!(bytes)).expect("JSON, a list of numbers"), &bytes);
        let view = ElasticView::over(&bytes).expect("as it was written");
        assert_eq!((to_bincode(&view), to_json(&view)), (bincode.clone(), text.clone()));
        let shared: SharedFilter = from_bincode(&bincode).expect("bincode");
        assert_eq!((to_bincode(&shared), to_json(&shared)), (bincode, text));
    }
}

#[test]
fn a_filter_is_a_field_like_any_other() {
    let mut visitors = ElasticFilter::builder().false_positive_rate(0.001).build().expect("the parameters are right");
    visitors.insert("alice").expect("it grows");
    let day = Day { name: "Friday".into(), visitors, before: None };
    let mut read: Day = serde_json::from_value(to_json(&day)).expect("JSON");
    assert!(read.name == "Friday" && read.before.is_none() && read.visitors.contains("alice"));
    read.before = Some(read.visitors.clone());
    read.visitors.insert("bob").expect("it goes on growing");
    let read: Day = from_postcard(&to_postcard(&read)).expect("postcard");
    assert!(read.visitors.contains("bob") && read.before.is_some_and(|before| before.len() == 1));
}

/// A format for ever: this text is read by every release, and written.
#[test]
fn json_is_this_text() {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(1).seed(u64::MAX);
    let mut filter = builder.build().expect("the parameters are right");
    filter.insert("koel").expect("there is room");
    let text = "S09FTA0KGgoBAAMKBAABAP//////////CAAAAAAAAwABAAAAAAAAAAEAAAAAAAAAexSuR+F6hD9EtiPOVOZdngEAAAAAAAAAAQAAAAAAAABAAAAAAAAAAE+0YsZeYFm/AAAAAAAAAAABAAAAAAAAAMw2Hz9DaYLgAQAAgAcAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAO1+d7Nsw7Ck";
    assert_eq!(to_json(&filter), json!(text));
    is(&from_json(json!(text)).expect("it can be read"), &filter.to_bytes());
}

#[track_caller]
fn refused(value: Value, parts: &[&str]) {
    let error = from_json::<ElasticFilter>(value).expect_err("this is no filter");
    for part in parts {
        assert!(error.contains(part), "{part:?} expected in: {error}");
    }
}

#[test]
fn nothing_else_is_a_filter() {
    for filter in [filled(small(), 0), filled(small(), 100)] {
        let bytes = filter.to_bytes();
        let (binary, text) = (to_postcard(&filter), serde_json::to_string(&filter).expect("it can be written"));
        for len in (0..binary.len()).step_by(7) {
            assert!(from_postcard::<ElasticFilter>(&binary[..len]).is_err());
        }
        for len in (0..bytes.len()).step_by(7) {
            refused(json!(bytes[..len]), &["koel filter", "at byte"]);
        }
        for at in (1..text.len() - 1).step_by(5) {
            // Another digit, one that base64 lacks, or padding too early.
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
fn errors_say_what_is_wrong_and_are_short() {
    refused(json!("alice"), &["\"alice\" given, expected padded base64"]);
    refused(json!("!".repeat(1 << 20)), &["a text of 1048576 bytes given", "from digit 0 on"]);
    refused(json!(""), &["koel filter", "end too early"]);
    refused(json!("AAAA"), &["koel filter"]);
    refused(json!(7), &["a koel filter"]);
    refused(json!(null), &["a koel filter"]);
    refused(json!({}), &["a koel filter"]);
    refused(json!([1, 2, 300]), &["300"]);
    let fixed = CuckooFilter::<Xxh3>::builder().buckets(2).fingerprint_bits(8).build().expect("the parameters are right");
    refused(to_json(&fixed), &["at byte 10"]);
    refused(json!(fixed.to_bytes()), &["at byte 10"]);
    let error = from_json::<CuckooFilter>(to_json(&filled(small(), 1))).expect_err("it grows");
    assert!(error.contains("this is a filter that grows") && error.len() < 300, "{error}");
}
