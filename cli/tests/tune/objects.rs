//! The answer for programs: the library's numbers.

#![allow(clippy::cast_precision_loss, reason = "numbers of items are small")]

use super::{object, tune};
use koel::{
    Addressing, TableKind,
    tuning::{Constraints, Recommendation, best_rate, recommend},
};
use koel_lab::structures::Structure;
use serde_json::Value;

/// A number as it comes back from JSON: this reader of it is wrong in the last bit now and then.
fn read(number: f64) -> Value {
    serde_json::from_str(&Value::from(number).to_string()).expect("JSON")
}

/// The library's numbers, all of them, and nobody else's.
fn same(object: &Value, advice: &Recommendation, items: usize) {
    let candidates = object["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), advice.candidates().len());
    for (found, candidate) in candidates.iter().zip(advice.candidates()) {
        let params = candidate.params();
        assert_eq!(found["table"], params.table().to_string());
        assert_eq!(found["fingerprint_bits"], params.fingerprint_bits());
        assert_eq!(found["bucket_size"], params.bucket_size());
        assert_eq!(found["buckets"], params.buckets());
        assert_eq!(found["slots"], params.slots());
        assert_eq!(found["capacity"], params.capacity());
        assert_eq!(found["copies"], candidate.copies());
        assert_eq!(found["table_bytes"], candidate.bytes());
        assert_eq!(found["bits_per_item"], read(candidate.bits_per_item()));
        assert_eq!(found["load_factor"], read(candidate.load()));
        assert_eq!(found["false_positive_rate"], read(candidate.false_positive_rate()));
        assert_eq!(found["false_positive_rate_at_capacity"], read(params.false_positive_rate_at_capacity()));
        assert_eq!([&found["deletes"], &found["grows"], &found["static"]], [true, false, false]);
    }
    let rejections = object["rejections"].as_array().expect("rejections");
    assert_eq!(rejections.len(), advice.rejections().len());
    for (found, rejection) in rejections.iter().zip(advice.rejections()) {
        assert_eq!(found["table"], rejection.table().to_string());
        assert_eq!(found["bucket_size"], rejection.bucket_size());
        assert_eq!(found["reason"], rejection.reason());
    }
    let others = object["others"].as_array().expect("others");
    let mut least = 0.0;
    for found in others {
        let structure = Structure::ALL.into_iter().find(|other| found["name"] == other.name()).expect("a structure");
        let rate = found["false_positive_rate"].as_f64().expect("a rate");
        let bits = structure.bits_per_item(rate).expect("there is one");
        assert_eq!(found["bits_per_item"], read(bits));
        assert_eq!(found["table_bytes"], read(bits * items as f64 / 8.0));
        assert!(least <= bits, "the smallest first");
        least = bits;
        if structure == Structure::LowerBound {
            assert!(["deletes", "grows", "static"].iter().all(|what| found[what].is_null()));
        } else {
            assert_eq!(found["deletes"], structure.deletes());
            assert_eq!(found["grows"], structure.grows());
            assert_eq!(found["static"], structure.is_static());
        }
    }
    let rejected = object["others_rejected"].as_array().expect("others_rejected");
    assert_eq!(others.len() + rejected.len(), Structure::ALL.len());
}

#[test]
fn programs_get_the_librarys_numbers() {
    let found = object("--items 123456 --fpr 0.003");
    same(&found, &recommend(123_456, 0.003, &Constraints::default()), 123_456);
    assert!(found["others"].as_array().is_some_and(|others| others.iter().all(|other| other["false_positive_rate"] == 0.003)));
    assert_eq!(found["others_rejected"], Value::Array(Vec::new()));
    assert!(found["nearest"].is_null());

    let found = object("--items 5000 --fpr 0.02 --bytes 7.5KiB --copies 3 --addressing power-of-two");
    let constraints = Constraints::default().max_bytes(7680).copies(3).addressing(Addressing::PowerOfTwo);
    same(&found, &recommend(5000, 0.02, &constraints), 5000);
    assert_eq!(found["asked"]["bytes"], 7680);
    assert_eq!(found["asked"]["copies"], 3);
    assert_eq!(found["asked"]["addressing"], "power-of-two");

    let found = object("--items 5000 --fpr 0.02 --table single --bucket-size 3");
    same(&found, &recommend(5000, 0.02, &Constraints::default().table(TableKind::Single).bucket_size(3)), 5000);

    // Without items there are no bits for each.
    let found = object("--items 0 --fpr 0.02");
    assert!(found["candidates"][0]["bits_per_item"].is_null() && found["candidates"][0]["false_positive_rate"] == 0.0);
}

#[test]
fn what_cannot_delete_is_left_out_where_that_matters() {
    let found = object("--items 1000 --fpr 0.01 --deletes");
    let others = found["others"].as_array().expect("others");
    assert!(others.iter().all(|other| other["deletes"] == true || other["name"] == "lower bound"), "{others:?}");
    assert_eq!(others.len(), 4);
    let rejected = found["others_rejected"].as_array().expect("others_rejected");
    assert!(rejected.len() == 5 && rejected.iter().all(|other| other["reason"] == "cannot delete"), "{rejected:?}");
    // Ours can, all of them.
    assert_eq!(found["candidates"], object("--items 1000 --fpr 0.01")["candidates"]);
}

#[test]
fn the_reverse_finds_the_lowest_rate() {
    let found = object("--items 1000000 --bytes 1MiB");
    let advice = best_rate(1_000_000, 1 << 20, &Constraints::default());
    same(&found, &advice, 1_000_000);
    let rate = advice.best().expect("that is enough").false_positive_rate();
    assert!(
        found["others"].as_array().is_some_and(|others| others.iter().all(|other| other["false_positive_rate"] == read(rate)))
    );
    // Both ways lead to the same filter.
    let back =
        object(&format!("--items 1000000 --fpr {} --bytes 1MiB", found["candidates"][0]["false_positive_rate_at_capacity"]));
    assert_eq!(back["candidates"][0], found["candidates"][0]);
    let text = tune("--items 1000000 --bytes 1MiB").text();
    assert!(text.starts_with("1000000 items, at most 1048576 bytes.\n") && text.contains("\n* The lowest rate: "), "{text}");
    assert!(text.contains("at ε = 0.0151.\n"), "{text}");
}

#[test]
fn others_have_their_limits_too() {
    let found = object("--items 1000 --fpr 1e-30");
    let rejected = found["others_rejected"].as_array().expect("others_rejected");
    let none: Vec<_> = Structure::ALL.into_iter().filter(|other| other.bits_per_item(1e-30).is_none()).collect();
    assert!(!none.is_empty());
    assert_eq!(rejected.len(), none.len());
    for (found, structure) in rejected.iter().zip(none) {
        assert_eq!(found["name"], structure.name());
        assert_eq!(found["reason"], "cannot have that rate");
    }
}
