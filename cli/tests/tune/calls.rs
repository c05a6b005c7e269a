//! The calls at the end of the answer: they build what was recommended.

use super::{object, tune};
use crate::common::Koel;
use koel::{
    Addressing, Builder, CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, best_rate},
};
use serde_json::Value;

/// What calls give, and their text without blanks.
macro_rules! pasted {
    ($calls:expr) => {
        ($calls, String::from(stringify!($calls)).replace(char::is_whitespace, ""))
    };
}

/// What the text says to a builder, done.
fn built(rust: &str) -> Builder {
    let (imports, calls) = rust.split_once(";\nlet mut filter = CuckooFilter::builder()\n").unwrap_or_else(|| panic!("{rust}"));
    let calls = calls.strip_suffix("\n    .build()?;").unwrap_or_else(|| panic!("{rust}"));
    for name in ["Addressing", "CuckooFilter", "TableKind"] {
        let used = name == "CuckooFilter" || calls.contains(&format!("{name}::"));
        assert_eq!(imports.contains(name), used, "{rust}");
    }
    calls.lines().fold(CuckooFilter::builder(), |builder, line| {
        let call = line.strip_prefix("    .").and_then(|line| line.strip_suffix(')')).unwrap_or_else(|| panic!("{rust}"));
        match call.split_once('(').unwrap_or_else(|| panic!("{rust}")) {
            ("capacity", items) => builder.capacity(items.replace('_', "").parse().expect("items")),
            ("false_positive_rate", rate) => builder.false_positive_rate(rate.parse().expect("a rate")),
            ("fingerprint_bits", bits) => builder.fingerprint_bits(bits.parse().expect("bits")),
            ("bucket_size", slots) => builder.bucket_size(slots.parse().expect("slots")),
            ("table", "TableKind::Single") => builder.table(TableKind::Single),
            ("table", "TableKind::Packed") => builder.table(TableKind::Packed),
            ("addressing", "Addressing::PowerOfTwo") => builder.addressing(Addressing::PowerOfTwo),
            other => panic!("{other:?} in {rust}"),
        }
    })
}

#[test]
fn the_call_builds_the_best() {
    for items in [0, 7, 1000, 1_000_000, 1_000_000_000] {
        for wanted in ["--fpr 0.3", "--fpr 0.001", "--fpr 1e-7", "--bytes 2kB", "--bytes 1.2MB", "--fpr 0.01 --bytes 2GB"] {
            for further in ["", "--table single", "--table packed", "--bucket-size 3", "--copies 20", "--addressing power-of-two"]
            {
                let found = object(&format!("--items {items} {wanted} {further}"));
                let Some(rust) = found["builder"].as_str() else {
                    assert_eq!(found["candidates"], Value::Array(Vec::new()));
                    continue;
                };
                let (params, best) = (built(rust).params().expect("right"), &found["candidates"][0]);
                assert_eq!(best["table"], params.table().to_string(), "{rust}");
                assert_eq!(best["fingerprint_bits"], params.fingerprint_bits(), "{rust}");
                assert_eq!(best["bucket_size"], params.bucket_size(), "{rust}");
                assert_eq!(best["buckets"], params.buckets(), "{rust}");
                let any_size = best["addressing"] == "any-size";
                assert_eq!(any_size, params.addressing() == Addressing::AnySize, "{rust}");
            }
        }
    }
}

/// Pasted into this program, it compiles.
#[test]
fn the_call_is_rust() {
    let (params, calls) = pasted!(
        CuckooFilter::builder()
            .capacity(1_000)
            .fingerprint_bits(7)
            .table(TableKind::Single)
            .addressing(Addressing::PowerOfTwo)
            .params()
    );
    let options = "--items 1000 --bytes 2000 --table single --bucket-size 4 --addressing power-of-two";
    let text = tune(options).text();
    let (_, rust) = text.split_once("\n\nuse koel::{Addressing, CuckooFilter, TableKind};\n").unwrap_or_else(|| panic!("{text}"));
    let rust = rust.replace(char::is_whitespace, "").replace("build()?;", "params()");
    assert_eq!(rust.strip_prefix("letmutfilter="), Some(&*calls));
    let constraints = Constraints::default().table(TableKind::Single).bucket_size(4).addressing(Addressing::PowerOfTwo);
    let advice = best_rate(1000, 2000, &constraints);
    assert_eq!(advice.best().map(Candidate::params), params.ok().as_ref());
}

/// The command does what the builder does.
#[test]
fn the_command_builds_the_best() {
    let koel = Koel::new();
    for options in [
        "--items 1000 --fpr 0.001",
        "--items 1000 --fpr 0.001 --table single",
        "--items 100 --bytes 2000 --bucket-size 2 --addressing power-of-two",
    ] {
        let found = object(options);
        let command = found["command"].as_str().expect("a command").replace("IN", "-").replace("OUT", "f.koel");
        koel.feed("a\n", command.split(' ').skip(1)).ok();
        let facts = crate::common::facts(&koel, "f.koel");
        for name in ["table", "fingerprint_bits", "bucket_size", "buckets", "addressing", "capacity", "table_bytes"] {
            assert_eq!(facts[name], found["candidates"][0][name], "{name}: {command}");
        }
        assert!(tune(options).text().contains(&format!("\n{}\n", found["command"].as_str().expect("a command"))));
    }
}
