//! Tests the example `copies`: koel holds all copies, and the implementation of RedisBloom's rule gives the same bytes as
//! RedisBloom.

#[path = "../examples/copies.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod copies;

use std::{fs, path::Path};

use copies::RedisBloom;
use koel::redisbloom::RedisBloomFilter;
use koel_lab::chart;
use serde_json::Value;

#[test]
fn koel_holds_all_copies_and_other_fixed_filters_refuse_some() {
    let numbers = [1, 3, 9];
    let rows = copies::measure(400, &numbers).unwrap();
    for (kind, figures) in &rows {
        let [passes, random] = figures.last().unwrap();
        let refuses = passes.refused > 0.0;
        assert_eq!(refuses, kind.is_fixed && kind.name != "koel", "{}", kind.name);
        assert_eq!(random.absent > 0, refuses, "{}", kind.name);
        // Each copy that was not refused can be removed. The list of tables supports removal only in release builds.
        assert!(passes.stuck.is_none_or(|stuck| (stuck - passes.refused).abs() < 1e-9), "{}", kind.name);
    }
    let mut text = Vec::new();
    copies::print(&mut text, &rows, 400, &numbers).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with("| koel |")).collect();
    assert!(lines.len() == 4 && lines[0] == "| koel | 0 | 0 | 0 |" && lines[1] == "| koel | 0 / 0 | 0 / 0 | 0 / 0 |", "{text}");
    let svg = chart::draw(&copies::draw(&rows, 400, &numbers));
    assert!(svg.contains("With 9 copies of each") && svg.contains(">RedisBloom, EXPANSION 0"), "{svg}");
}

#[test]
fn other_arguments_are_refused() {
    let options = |arguments: &[&str]| copies::options(arguments.iter().map(Into::into));
    assert_eq!(options(&[]).unwrap(), (None, None));
    assert_eq!(options(&["one.svg", "1000"]).unwrap(), (Some(1000), Some("one.svg".into())));
    for (arguments, refused) in [
        (&["1M"][..], "1M"),
        (&["--help"], "--help"),
        (&["0"], "0"),
        (&["10", "20"], "20"),
        (&["one.svg", "two.svg"], "two.svg"),
        (&["copies.png"], "copies.png"),
    ] {
        let error = options(arguments).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{refused}: give ")), "{error}");
    }
}

/// The files are filters that RedisBloom wrote without removals (tests/data/redisbloom/README.md).
#[test]
fn redisbloom_writes_the_same_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/redisbloom");
    let fixtures: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("fixtures.json")).unwrap()).unwrap();
    let mut compared = 0;
    for about in fixtures {
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let info = |name: &str| number(&about["info"][name]);
        if info("Expansion rate") != 1 || number(&about["delete_every"]) != 0 || number(&about["added"]) == 0 {
            continue;
        }
        let mut filter = RedisBloom::new(info("Number of buckets") * info("Bucket size"), info("Bucket size"), true);
        for n in 0..number(&about["added"]) {
            let key = format!("{}{n}", about["key_prefix"].as_str().unwrap());
            assert!(filter.insert_hash(murmur2::murmur64a(key.as_bytes(), 0)), "{about}");
        }
        let dump = fs::read(folder.join(about["file"].as_str().unwrap())).unwrap();
        let dump = RedisBloomFilter::from_dump(&dump).unwrap();
        // The first chunk is the header.
        assert!(dump.chunks().skip(1).map(|(_, slots)| slots).eq(&filter.filters), "{about}");
        compared += 1;
    }
    assert_eq!(compared, 4);
}
