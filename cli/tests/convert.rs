//! `koel convert`, and the other commands that read Go files and RedisBloom dumps. The library's tests check the results of all
//! lookups in such files.

use serde_json::Value;

use crate::common::{Koel, data, facts, lines, numbers};

/// The options of `koel build` for a filter that can be converted to the other program's format.
const FOR_GO: &str = "--addressing power-of-two --hasher metrohash64 --seed 1337";
const FOR_REDISBLOOM: &str = "--table single --bits 8 --addressing power-of-two --hasher redisbloom";

/// Go files, the number of items in them (`key-0` and so on), and whether one of these is outside the table.
const FILES: [(&str, u32, bool); 4] = [
    ("go/packed_b4_f13_n2000_m0.bin", 2000, false),
    ("go/packed_b4_f12_n1000_m1.bin", 1971, true),
    ("go/single_b4_f13_n1000_m1.bin", 1965, true),
    ("go/single_b8_f16_n2000_m0.bin", 2000, false),
];

/// Dumps of filters that have not grown.
const DUMPS: [&str; 2] = ["redisbloom/rb_b1_n3000.chunks", "redisbloom/rb_deleted.chunks"];

/// Asserts that all of these files find the same lines of `probes.txt`, also through a pipe, and returns them.
#[track_caller]
fn found_in_all(koel: &Koel, files: &[&str]) -> String {
    let first = koel.run(["query", files[0], "probes.txt"]).text();
    for file in files {
        assert!(koel.run(["query", file, "probes.txt"]).text() == first, "{file}");
        assert!(koel.feed(koel.read(file), "query - probes.txt --verify").text() == first, "{file}");
    }
    first
}

#[test]
fn go_files_are_queried_directly_and_as_snapshots() {
    let koel = Koel::new();
    for (name, count, has_victim) in FILES {
        koel.write("f.go", data(name));
        koel.write("probes.txt", lines("key-", 0..count) + &lines("probe-", 0..20_000));
        let shown = facts(&koel, "f.go");
        assert_eq!((&shown["format"], &shown["victim"]), (&"go".into(), &has_victim.into()), "{name}");
        assert_eq!((&shown["items"], &shown["file_bytes"]), (&count.into(), &koel.read("f.go").len().into()), "{name}");
        let victim = if has_victim { "  victim          one of the items" } else { "  victim          none\n" };
        assert!(koel.run("info f.go").text().contains(victim), "{name}");

        let converted = koel.run("convert f.go -o f.koel --to koel");
        assert!(converted.ok().starts_with(b"filter            f.koel\nformat            koel snapshot\n"));
        let snapshot = facts(&koel, "f.koel");
        assert_eq!((&snapshot["format"], &snapshot["items"]), (&"koel".into(), &count.into()));
        assert!(snapshot.get("victim").is_none() && snapshot["buckets"] == shown["buckets"], "{snapshot}");
        assert!(found_in_all(&koel, &["f.go", "f.koel"]).starts_with(&lines("key-", 0..count)), "{name}");
    }
    koel.run_with("mmx", "query f.go --item key-0").error(&["KOEL_KERNEL", "mmx given"]);
}

#[test]
fn facts_of_dumps_match_those_of_the_server() {
    let koel = Koel::new();
    let about: Vec<Value> = serde_json::from_slice(&data("redisbloom/fixtures.json")).expect("JSON");
    for fixture in about.iter().filter(|fixture| fixture["chunks"] != 0) {
        koel.write("f.chunks", data(&format!("redisbloom/{}", fixture["file"].as_str().expect("a name"))));
        let (shown, info) = (facts(&koel, "f.chunks"), &fixture["info"]);
        for (ours, theirs) in [
            ("items", "Number of items inserted"),
            ("deleted", "Number of items deleted"),
            ("sub_filters", "Number of filters"),
            ("buckets", "Number of buckets"),
            ("bucket_size", "Bucket size"),
            ("expansion", "Expansion rate"),
            ("max_iterations", "Max iterations"),
        ] {
            assert_eq!(shown[ours], info[theirs], "{ours} of {shown}");
        }
        assert_eq!((&shown["format"], &shown["taken"]), (&"redisbloom".into(), &shown["items"]));
        assert_eq!(shown["file_bytes"], koel.read("f.chunks").len());
        let text = koel.run("info f.chunks").text();
        assert!(text.starts_with("format            dump of RedisBloom\nitems             "), "{text}");
        assert!(koel.run("verify f.chunks").text().starts_with("f.chunks: ok: dump of RedisBloom, "));
    }
}

#[test]
fn a_dump_of_one_sub_filter_survives_a_round_trip() {
    let koel = Koel::new();
    koel.write("probes.txt", lines("probe-", 0..20_000) + &lines("key-", 0..20_000));
    for name in DUMPS {
        koel.write("f.chunks", data(name));
        koel.run("convert f.chunks -o f.koel --to koel").ok();
        let (dumped, snapshot) = (facts(&koel, "f.chunks"), facts(&koel, "f.koel"));
        assert_eq!([&snapshot["format"], &snapshot["hasher"], &snapshot["table"]], ["koel", "redisbloom", "single"]);
        for name in ["items", "slots", "buckets", "bucket_size", "fingerprint_bits", "seed"] {
            assert_eq!(snapshot[name], dumped[name], "{name} of {snapshot}");
        }
        assert!(found_in_all(&koel, &["f.chunks", "f.koel"]).contains("\nkey-2\n"), "{name}");
        // Only the number of removed items is lost.
        let mut bytes = data(name);
        bytes[16 + 16..16 + 24].fill(0);
        koel.run("convert f.koel -o back.chunks --to redisbloom").ok();
        assert!(koel.read("back.chunks") == bytes, "{name}");
    }
}

#[test]
fn round_trips_and_copies_are_exact() {
    let koel = Koel::new();
    for (to, name, options) in [
        ("go", "file of Go's linvon/cuckoo-filter", format!("{FOR_GO} --table single")),
        ("go", "file of Go's linvon/cuckoo-filter", format!("{FOR_GO} --table packed")),
        ("redisbloom", "dump of RedisBloom", String::from(FOR_REDISBLOOM)),
        ("koel", "koel snapshot", String::new()),
    ] {
        koel.feed(numbers(0..3000), &format!("build - -o f.koel {options}")).ok();
        let before = koel.read("f.koel");
        let shown = koel.run(&format!("convert f.koel -o f.koel --to {to}")).printed();
        assert!(shown.starts_with(&format!("filter            f.koel\nformat            {name}\nitems             3000\n")));
        assert_eq!(facts(&koel, "f.koel")["format"], to);
        assert_eq!(koel.feed(numbers(0..3000), "query f.koel --count").ok(), b"3000\n");
        // Pipes give the same bytes.
        let run = koel.feed(koel.read("f.koel"), "convert - -o - --to koel");
        assert!(run.status(0) == before && run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);
        assert!(koel.feed(&before, &format!("convert - -o - --to {to}")).status(0) == koel.read("f.koel"));
    }
    assert_eq!(koel.names(), ["f.koel"]);
    let dumps = [DUMPS[1], "redisbloom/rb_grown_e2.chunks"].map(|name| ("redisbloom", name));
    for (format, name) in FILES.map(|(name, ..)| ("go", name)).into_iter().chain(dumps) {
        assert!(koel.feed(data(name), &format!("convert - -o - --to {format}")).status(0) == data(name), "{name}");
    }
}

/// A Go file with one bucket of four slots, all of them taken, and a victim.
const FULL: [u8; 24] = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 4, 8, 1, 0, 0, 0, 1, 2, 3, 4];

/// The test above checks that the options in the remedies work.
#[test]
fn filters_of_other_kinds_are_not_converted() {
    let koel = Koel::new();
    for (to, options, parts) in [
        ("go", "", ["addressing: any-size given", FOR_GO]),
        ("go", "--addressing power-of-two", ["hasher: xxh3 given", FOR_GO]),
        ("go", "--addressing power-of-two --hasher metrohash64", ["seed: 0 given", FOR_GO]),
        (
            "go",
            &format!("{FOR_GO} --bits 12 --table single --bucket-size 3 --capacity 100"),
            ["fingerprint bits: 12 given with buckets of 3", "multiple of 4"],
        ),
        ("go", "--grow", ["is a filter that grows", "Go's have a fixed size"]),
        ("redisbloom", "", ["hasher: xxh3 given", FOR_REDISBLOOM]),
        ("redisbloom", "--hasher redisbloom --seed 7", ["seed: 7 given, but RedisBloom always uses 0", FOR_REDISBLOOM]),
        ("redisbloom", "--hasher redisbloom --table packed", ["table: packed given", FOR_REDISBLOOM]),
        ("redisbloom", "--hasher redisbloom --table single --bits 9", ["fingerprint bits: 9 given", FOR_REDISBLOOM]),
        ("redisbloom", "--hasher redisbloom --table single --bits 8", ["addressing: any-size given", FOR_REDISBLOOM]),
        ("redisbloom", "--grow", ["is a filter that grows", "another form; build a new filter from the items: `koel build`"]),
    ] {
        koel.feed("apple\n", &format!("build - -o f.koel {options}")).ok();
        let parts = [&["koel: f.koel: "], &parts[..]].concat();
        koel.given("convert f.koel -o new").refuses(&[(&format!("--to {to}"), &parts)]);
    }
    for (to, options) in [("go", FOR_GO), ("redisbloom", FOR_REDISBLOOM)] {
        koel.feed("apple\n".repeat(50), &format!("build - -o f.koel {options}")).ok();
        let parts = ["koel: f.koel: copies: ", "beside the table", "`koel build --unique`"];
        koel.given("convert f.koel -o new").refuses(&[(&format!("--to {to}"), &parts)]);
        koel.feed("apple\n".repeat(50), &format!("build - -o f.koel --unique {options}")).ok();
        koel.run(&format!("convert f.koel --to {to} -o new")).ok();
        koel.shell("rm new").ok();
    }
    koel.write("f.go", FULL);
    let shown = facts(&koel, "f.go");
    assert_eq!((&shown["items"], &shown["victim"]), (&5.into(), &true.into()));
    let parts =
        ["koel: f.go: the table has no room for the item that Go keeps outside it (5 items in 4 slots)", "an item in Go first"];
    koel.given("convert f.go").refuses(&[
        ("--to koel -o f.koel", &parts),
        ("--to koel -o f.go", &parts),
        ("--to gopher -o x", &["--to", "'gopher'", "koel, go, redisbloom"]),
    ]);
    assert!(koel.read("f.go") == FULL);
}

/// Commands that change filters accept only snapshots, and the dump of a filter that has grown cannot be converted.
#[test]
fn files_of_other_programs_are_not_changed_or_merged() {
    let koel = Koel::new();
    let snapshot = "`koel convert --to koel` makes a snapshot of it";
    for (name, kind, to, changing) in [
        (FILES[0].0, "is a file of Go's", "redisbloom", ["not changed or merged", snapshot]),
        (DUMPS[1], "is a dump of RedisBloom", "go", ["not changed or merged", snapshot]),
        ("redisbloom/rb_default.chunks", "is a dump of RedisBloom", "go", ["8 bits", "`koel build`"]),
    ] {
        koel.write("f", data(name));
        let parts = [&[kind][..], &changing].concat();
        koel.given("").refuses(&[("add f --item x", &parts), ("remove f --item x", &parts), ("merge f f -o all", &parts)]);
        koel.given("convert f -o new").refuses(&[(&format!("--to {to}"), &[kind, "another hasher", "`koel build`"])]);
        assert!(koel.read("f") == data(name));
    }
    koel.given("convert f -o new")
        .refuses(&[("--to koel", &["f: sub-filters: 2 given", "query the dump as it is", "`koel query`"])]);
}
