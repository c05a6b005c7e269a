//! Dumps of RedisBloom: every command that takes a filter reads them, or says why it does not.

use crate::common::{Koel, facts};
use serde_json::Value;
use std::{fs, path::Path};

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/redisbloom");
    fs::read(folder.join(name)).expect("the file can be read")
}

#[test]
fn dumps_answer_as_the_server_did() {
    let koel = Koel::new();
    let about: Vec<Value> = serde_json::from_slice(&data("fixtures.json")).expect("JSON");
    let lines = |prefix: &Value, numbers: &mut dyn Iterator<Item = u64>| {
        numbers.fold(String::new(), |lines, n| lines + &format!("{}{n}\n", prefix.as_str().expect("a text")))
    };
    for fixture in about.iter().filter(|fixture| fixture["chunks"] != 0) {
        koel.write("f.chunks", data(fixture["file"].as_str().expect("a name")));
        let probes = fixture["probe_count"].as_u64().expect("a number");
        koel.write("probes.txt", lines(&fixture["probe_prefix"], &mut (0..probes)));
        let hits = fixture["probe_hits"].as_array().expect("a list").iter().map(|hit| hit.as_u64().expect("a number"));
        let hits = lines(&fixture["probe_prefix"], &mut hits.into_iter());
        assert_eq!(koel.run(["query", "f.chunks", "probes.txt"]).text(), hits);
        assert_eq!(koel.feed(koel.read("f.chunks"), ["query", "-", "probes.txt", "--verify"]).text(), hits);
        let (told, info) = (facts(&koel, "f.chunks"), &fixture["info"]);
        assert_eq!(told["format"], "redisbloom");
        for (ours, theirs) in [
            ("items", "Number of items inserted"),
            ("deleted", "Number of items deleted"),
            ("sub_filters", "Number of filters"),
            ("buckets", "Number of buckets"),
            ("bucket_size", "Bucket size"),
            ("expansion", "Expansion rate"),
            ("max_iterations", "Max iterations"),
        ] {
            assert_eq!(told[ours], info[theirs], "{ours} of {told}");
        }
        assert_eq!((&told["taken"], told["file_bytes"].as_u64()), (&told["items"], Some(koel.read("f.chunks").len() as u64)));
        let text = koel.run(["info", "f.chunks"]).text();
        assert!(text.starts_with("format            dump of RedisBloom\nitems             "), "{text}");
        assert!(koel.run(["verify", "f.chunks"]).text().starts_with("f.chunks: ok: dump of RedisBloom, "));
    }
}

#[test]
fn what_cannot_be_done_with_a_dump_says_so() {
    let koel = Koel::with_filter("apple\n");
    koel.write("f.chunks", data("rb_default.chunks"));
    let before = koel.read("f.chunks");
    koel.write("more.txt", "banana\n");
    for args in [
        &["add", "f.chunks", "more.txt"][..],
        &["remove", "f.chunks", "more.txt"],
        &["merge", "f.chunks", "f.chunks", "-o", "all.koel"],
        &["convert", "f.chunks", "-o", "new.koel", "--to", "koel"],
        &["convert", "f.chunks", "-o", "new.go", "--to", "go"],
    ] {
        koel.run(args).error(&["f.chunks: is a dump of RedisBloom", "8 bits", "`koel build`"]);
    }
    assert!(
        koel.read("f.chunks") == before && koel.names().iter().all(|name| !name.starts_with("new") && !name.starts_with("all"))
    );
}

#[test]
fn a_damaged_dump_is_refused() {
    let koel = Koel::new();
    let bytes = data("rb_grown_e2.chunks");
    for (len, part) in [(30, "at byte 30: the bytes end too early"), (bytes.len() - 1, "the bytes end too early")] {
        koel.write("f.chunks", &bytes[..len]);
        for command in ["verify", "info"] {
            koel.run([command, "f.chunks"]).error(&["f.chunks: as a dump of RedisBloom: ", part]);
        }
    }
    koel.write("f.chunks", [&bytes[..], &bytes[..]].concat());
    koel.run(["verify", "f.chunks"]).error(&["all chunks of the filter have come", "each once"]);
    let mut altered = bytes;
    altered[24] = 3;
    koel.write("f.chunks", &altered);
    koel.run(["query", "f.chunks", "--item", "key-1"]).error(&["at byte 24: ", "power of two"]);
}
