//! Results as JSON, for programs.

use serde_json::{Value, json};

use crate::common::{Koel, facts};

/// Returns the objects in lines of JSON.
#[track_caller]
fn objects(text: &[u8]) -> Vec<Value> {
    text.split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("an object per line"))
        .collect()
}

#[test]
fn changes_report_their_numbers() {
    let koel = Koel::new();
    let mut built = koel.feed("1 a\n2 b\n3\n4 a\n", "build - -o f.koel --unique --key 2 --short skip --capacity 9 --json").json();
    let numbers = ["filter", "stored", "skipped", "left_out"].map(|field| built[field].take());
    assert_eq!(numbers, [json!("f.koel"), json!(2), json!(1), json!(1)]);
    // The other fields are those of `koel info`.
    for (field, value) in facts(&koel, "f.koel").as_object().expect("an object") {
        assert_eq!(&built[field], value, "{field}");
    }
    // As are those of other commands that write a filter.
    for command in ["merge f.koel f.koel", "convert f.koel --to koel"] {
        let written = koel.run(&format!("{command} -o g.koel --json")).json();
        let mut expected = facts(&koel, "g.koel");
        expected["filter"] = json!("g.koel");
        assert_eq!(written, expected, "{command}");
    }
    let added = koel.run("add f.koel --item b --item c --unique --json").json();
    assert_eq!(added, json!({ "filter": "f.koel", "added": 1, "skipped": 1, "items": 3, "left_out": 0 }));
    let removed = koel.feed("1 c\n\n2 x\n", "remove f.koel --key 2 --short skip --json");
    let expected = json!({ "filter": "f.koel", "removed": 1, "not_found": 1, "items": 2, "left_out": 1 });
    assert_eq!(objects(removed.status(1)), [expected]);
}

#[test]
fn queries_print_an_object_per_line() {
    let koel = Koel::new();
    koel.feed("apple\nfig\n", "build - -o a.koel").ok();
    koel.feed(b"fig\n\xff\n", "build - -o b.koel").ok();
    let found = koel.feed(b"fig\napple\nplum\n\xff\n\"\n", "query a.koel b.koel --json");
    let expected = [("a.koel", json!("fig")), ("b.koel", json!("fig")), ("a.koel", json!("apple")), ("b.koel", json!([255]))];
    assert_eq!(objects(found.ok()), expected.map(|(filter, item)| json!({ "filter": filter, "item": item })));
    let absent = koel.feed("1 FIG\n\n", "query a.koel -v -i --key 2 --short pass --json");
    assert_eq!(objects(absent.ok()), [json!({ "filter": "a.koel", "item": null, "line": "" })]);
    let keyed = koel.feed("1 FIG\n", "query a.koel -i --key 2 --json");
    assert_eq!(objects(keyed.ok()), [json!({ "filter": "a.koel", "item": "fig", "line": "1 FIG" })]);
    let counted = koel.run("query a.koel b.koel --item fig --item apple -c --json");
    assert_eq!(
        objects(counted.ok()),
        [("a.koel", 2), ("b.koel", 1)].map(|(filter, n)| json!({ "filter": filter, "selected": n }))
    );
    koel.run("query a.koel --item fig -q --json").error(&["cannot be used with"]);
}

#[test]
fn verify_prints_an_object_per_file() {
    let koel = Koel::with_filter("apple\n");
    koel.write("bad.koel", "no filter");
    let run = koel.run("verify f.koel bad.koel no.koel --json");
    let [good, bad, none] = objects(run.status(2)).try_into().expect("three objects");
    assert_eq!((&good["filter"], &good["ok"], &good["items"]), (&json!("f.koel"), &json!(true), &json!(1)));
    assert_eq!((&bad["filter"], &bad["ok"]), (&json!("bad.koel"), &json!(false)));
    assert!(bad["error"].as_str().is_some_and(|error| error.starts_with("bad.koel: at byte 0: neither")), "{bad}");
    assert_eq!((&none["filter"], &none["ok"]), (&json!("no.koel"), &json!(false)));
    assert_eq!(run.stderr, "koel: 2 of 3 files failed\n");
    assert_eq!(objects(koel.run("verify f.koel bad.koel -q --json").status(2)).len(), 1);
}
