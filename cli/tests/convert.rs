//! `koel convert`, and the other commands that read the files of Go's library and dumps of RedisBloom.

use std::{fs, path::Path};

use serde_json::Value;

use crate::common::{Koel, facts, go_file, numbers};

const FOR_GO: [&str; 6] = ["--addressing", "power-of-two", "--hasher", "metrohash64", "--seed", "1337"];

/// Files of Go's, what was added to them (`key-0` and so on), and whether one is beside the table.
const FILES: [(&str, u32, bool); 4] = [
    ("packed_b4_f13_n2000_m0.bin", 2000, false),
    ("packed_b4_f12_n1000_m1.bin", 1971, true),
    ("single_b4_f13_n1000_m1.bin", 1965, true),
    ("single_b8_f16_n2000_m0.bin", 2000, false),
];

fn items(prefix: &str, count: u32) -> String {
    (0..count).fold(String::new(), |lines, n| lines + &format!("{prefix}{n}\n"))
}

#[test]
fn files_of_gos_are_queried_directly_and_as_snapshots() {
    let koel = Koel::new();
    koel.write("probes.txt", items("probe-", 20_000));
    for (name, count, has_victim) in FILES {
        koel.write("f.go", go_file(name));
        koel.write("keys.txt", items("key-", count));
        let told = facts(&koel, "f.go");
        assert_eq!((&told["format"], &told["victim"]), (&"go".into(), &has_victim.into()), "{name}");
        assert_eq!((&told["items"], &told["file_bytes"]), (&count.into(), &koel.read("f.go").len().into()), "{name}");
        let text = koel.run(["info", "f.go"]).text();
        assert_eq!(text.contains("\n  victim          one of the items"), has_victim, "{text}");
        assert_eq!(text.contains("\n  victim          none\n"), !has_victim, "{text}");

        let converted = koel.run(["convert", "f.go", "-o", "f.koel", "--to", "koel"]);
        assert!(converted.ok().starts_with(b"filter            f.koel\nformat            koel snapshot\n"));
        let snapshot = facts(&koel, "f.koel");
        assert_eq!((&snapshot["format"], &snapshot["items"]), (&"koel".into(), &count.into()));
        assert!(snapshot.get("victim").is_none(), "{snapshot}");
        assert_eq!(snapshot["buckets"], told["buckets"]);

        let expected = koel.run(["query", "f.go", "probes.txt"]).text();
        for file in ["f.go", "f.koel"] {
            assert_eq!(koel.run(["query", file, "keys.txt"]).ok(), items("key-", count).as_bytes(), "{name}");
            for kernel in koel::Kernel::available() {
                let kernel = kernel.to_string();
                assert_eq!(koel.run_with("KOEL_KERNEL", &kernel, &["query", file, "probes.txt"]).text(), expected, "{kernel}");
            }
            assert_eq!(koel.feed(koel.read(file), ["query", "-", "probes.txt", "--verify"]).text(), expected, "{name}");
        }
    }
    koel.run_with("KOEL_KERNEL", "mmx", &["query", "f.go", "--item", "key-0"]).error(&["KOEL_KERNEL", "mmx given"]);
}

#[test]
fn a_file_that_already_has_the_format_is_copied() {
    let koel = Koel::with_filter("apple\n");
    let mut files: Vec<_> = FILES.iter().map(|(name, ..)| ("go", go_file(name))).collect();
    files.extend(["rb_deleted.chunks", "rb_grown_e2.chunks"].map(|name| ("redisbloom", data(name))));
    files.push(("koel", koel.read("f.koel")));
    for (format, bytes) in files {
        koel.write("file", &bytes);
        // Also onto itself.
        for output in ["copy", "file"] {
            koel.run(["convert", "file", "-o", output, "--to", format]).ok();
            assert!(koel.read(output) == bytes, "{format}");
        }
    }
}

#[test]
fn there_and_back_is_the_same_filter() {
    let koel = Koel::new();
    for table in ["single", "packed"] {
        let options = ["build", "-", "-o", "f.koel", "--table", table];
        koel.feed(numbers(0..3000), options.iter().chain(&FOR_GO)).ok();
        let before = koel.read("f.koel");
        let told = koel.run(["convert", "f.koel", "-o", "f.koel", "--to", "go"]);
        let expected = "filter            f.koel\nformat            file of Go's linvon/cuckoo-filter\nitems             3000\n";
        assert!(told.text().starts_with(expected), "{}", told.text());
        told.ok();
        assert_eq!(facts(&koel, "f.koel")["format"], "go");
        assert_eq!(koel.feed(numbers(0..3000), ["query", "f.koel", "--count"]).ok(), b"3000\n");
        // Through pipes, too.
        let run = koel.feed(koel.read("f.koel"), ["convert", "-", "-o", "-", "--to", "koel"]);
        assert!(run.status(0) == before && run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);
        let run = koel.feed(&before, ["convert", "-", "-o", "-", "--to", "go"]);
        assert!(run.status(0) == koel.read("f.koel"));
    }
    assert_eq!(koel.names(), ["f.koel"]);
}

/// What the other program cannot read is refused with a remedy, which works.
#[test]
fn what_cannot_be_converted_is_refused_with_a_remedy() {
    let koel = Koel::new();
    let go = "--addressing power-of-two --hasher metrohash64 --seed 1337";
    let redis = "--table single --bits 8 --addressing power-of-two --hasher redisbloom";
    let build = |options: &str| {
        let args = ["build", "-", "-o", "f.koel"].into_iter().chain(options.split_whitespace());
        koel.feed("apple\n", args).ok();
    };
    for (to, remedy, options, parts) in [
        ("go", go, "", &["addressing: any-size given"][..]),
        ("go", go, "--addressing power-of-two", &["hasher: xxh3 given"]),
        ("go", go, "--addressing power-of-two --hasher metrohash64", &["seed: 0 given", "1337"]),
        ("redisbloom", redis, "", &["hasher: xxh3 given"]),
        ("redisbloom", redis, "--hasher redisbloom --seed 7", &["seed: 7 given, but RedisBloom always uses 0"]),
        ("redisbloom", redis, "--hasher redisbloom --table packed", &["table: packed given"]),
        ("redisbloom", redis, "--hasher redisbloom --table single --bits 9", &["fingerprint bits: 9 given"]),
        ("redisbloom", redis, "--hasher redisbloom --table single --bits 8", &["addressing: any-size given"]),
    ] {
        build(options);
        let run = koel.run(["convert", "f.koel", "-o", "new", "--to", to]);
        run.error(&[parts, &["koel: f.koel: ", &format!("`koel build {remedy}`")]].concat());
    }
    build(&format!("{go} --bits 12 --table single --bucket-size 3 --capacity 100"));
    let parts = ["koel: f.koel: ", "fingerprint bits: 12 given with buckets of 3", "share bits", "multiple of 4"];
    koel.run(["convert", "f.koel", "-o", "new", "--to", "go"]).error(&parts);
    build("--grow");
    let parts = ["f.koel: is a filter that grows", "`koel build`"];
    koel.run(["convert", "f.koel", "-o", "new", "--to", "redisbloom"]).error(&parts);
    assert_eq!(koel.names(), ["f.koel"]);
    for (to, remedy) in [("go", go), ("redisbloom", redis)] {
        build(remedy);
        koel.run(["convert", "f.koel", "-o", "new", "--to", to]).ok();
        assert_eq!(koel.run(["query", "new", "--item", "apple"]).text(), "apple\n");
    }
}

/// One bucket of four slots, all of them taken, and a victim.
const FULL: [u8; 24] = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 4, 8, 1, 0, 0, 0, 1, 2, 3, 4];

#[test]
fn a_victim_without_room_is_an_error_and_nothing_is_written() {
    let koel = Koel::new();
    koel.write("f.go", FULL);
    let told = facts(&koel, "f.go");
    assert_eq!((&told["items"], &told["victim"]), (&5.into(), &true.into()));
    for output in ["f.koel", "f.go"] {
        koel.run(["convert", "f.go", "-o", output, "--to", "koel"]).error(&[
            "koel: f.go: the table has no room for the item that Go keeps outside it (5 items in 4 slots)",
            "delete an item in Go first",
        ]);
    }
    assert!(koel.read("f.go") == FULL);
    assert_eq!(koel.names(), ["f.go"]);
    // It can still be queried and copied.
    koel.run(["query", "f.go", "--item", "a"]);
    koel.run(["convert", "f.go", "-o", "copy.go", "--to", "go"]).ok();
    assert!(koel.read("copy.go") == FULL);
}

#[test]
fn what_changes_filters_takes_snapshots_only() {
    let koel = Koel::new();
    let before = go_file("packed_b4_f13_n2000_m0.bin");
    koel.write("f.go", &before);
    for command in ["add", "remove"] {
        koel.run([command, "f.go", "--item", "key-0"]).error(&["f.go: is a file of Go's", "`koel convert --to koel`"]);
    }
    assert!(koel.read("f.go") == before);
}

#[test]
fn wrong_arguments_and_files_are_named() {
    let koel = Koel::with_filter("apple\n");
    koel.write("f.go", go_file("packed_b4_f13_n2000_m0.bin"));
    koel.write("short.go", &go_file("packed_b4_f13_n2000_m0.bin")[..1000]);
    koel.write("text", "apple\nbanana\n");
    koel.write("empty", "");
    fs::create_dir(koel.path("folder")).expect("a folder");
    let before = koel.names();
    let convert = |input: &str, output: &str, to: &str| koel.run(["convert", input, "-o", output, "--to", to]);
    convert("f.go", "x", "gopher").error(&["--to", "'gopher'", "koel, go, redisbloom"]);
    convert("f.go", "folder", "koel").error(&["folder: is a folder", "name of a file"]);
    convert("f.go", "no/x", "koel").error(&["no/x", "there is no folder no", "make it first"]);
    for to in ["koel", "go"] {
        convert("short.go", "x", to).error(&["short.go: as a file of Go's", "at byte 1000", "there are 1000"]);
        convert("text", "x", to).error(&["text: at byte 0: ", "neither a koel snapshot", "nor a file of Go's"]);
        convert("empty", "x", to).error(&["empty: at byte 0: ", "there are 0"]);
        convert("folder", "x", to).error(&["folder: is a folder"]);
        convert("missing", "x", to).error(&["missing: cannot be read: No such file"]);
    }
    koel.run(["convert", "f.go", "-o", "x"]).error(&["--to <FORMAT>"]);
    koel.run(["convert", "f.go", "--to", "koel"]).error(&["--output <OUT>"]);
    assert_eq!(koel.names(), before);
}

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

/// The dumps of one sub-filter, with the number of their slots.
const NOT_GROWN: [(&str, u64); 2] = [("rb_b1_n3000.chunks", 4096), ("rb_deleted.chunks", 4096)];

fn probes(prefix: &str) -> String {
    (0..20_000).fold(String::new(), |lines, n| lines + &format!("{prefix}{n}\n"))
}

#[test]
fn a_dump_of_one_sub_filter_becomes_a_snapshot_and_comes_back() {
    let koel = Koel::new();
    koel.write("probes.txt", probes("probe-") + &probes("key-"));
    for (name, slots) in NOT_GROWN {
        koel.write("f.chunks", data(name));
        let expected = koel.run(["query", "f.chunks", "probes.txt"]).text();
        let told = koel.run(["convert", "f.chunks", "-o", "f.koel", "--to", "koel"]).text();
        assert!(told.starts_with("filter            f.koel\nformat            koel snapshot\n"), "{told}");
        let (dumped, snapshot) = (facts(&koel, "f.chunks"), facts(&koel, "f.koel"));
        assert_eq!((&snapshot["format"], &snapshot["hasher"]), (&"koel".into(), &"redisbloom".into()));
        assert_eq!((&snapshot["table"], &snapshot["addressing"]), (&"single".into(), &"power-of-two".into()));
        for name in ["items", "slots", "buckets", "bucket_size", "fingerprint_bits", "seed"] {
            assert_eq!(snapshot[name], dumped[name], "{name} of {snapshot}");
        }
        assert_eq!((snapshot["slots"].as_u64(), snapshot["file_bytes"].as_u64()), (Some(slots), Some(64 + slots + 8)));
        for kernel in koel::Kernel::available() {
            let run = koel.run_with("KOEL_KERNEL", &kernel.to_string(), &["query", "f.koel", "probes.txt"]);
            assert_eq!(run.text(), expected, "{kernel}");
        }
        assert_eq!(koel.feed(koel.read("f.koel"), ["query", "-", "probes.txt", "--verify"]).text(), expected);

        // All but the number of items removed comes back, through pipes, too.
        let mut bytes = data(name);
        bytes[16 + 16..16 + 24].fill(0);
        let told = koel.run(["convert", "f.koel", "-o", "back.chunks", "--to", "redisbloom"]).text();
        assert!(told.starts_with("filter            back.chunks\nformat            dump of RedisBloom\n"), "{told}");
        assert!(koel.read("back.chunks") == bytes, "{name}");
        let run = koel.feed(koel.read("f.koel"), ["convert", "-", "-o", "-", "--to", "redisbloom"]);
        assert!(run.status(0) == bytes && run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);

        // The snapshot is changed like any other.
        koel.run(["add", "f.koel", "--item", "banana"]).ok();
        koel.run(["remove", "f.koel", "--item", "key-1"]).ok();
        koel.run(["convert", "f.koel", "-o", "f.koel", "--to", "redisbloom"]).ok();
        assert_eq!(koel.run(["query", "f.koel", "--item", "banana"]).text(), "banana\n");
        assert_eq!(facts(&koel, "f.koel")["items"], dumped["items"]);
    }
}

#[test]
fn what_cannot_be_done_with_a_dump_says_so() {
    let koel = Koel::with_filter("apple\n");
    koel.write("f.chunks", data("rb_default.chunks"));
    let before = koel.read("f.chunks");
    koel.write("more.txt", "banana\n");
    let changes = [
        &["add", "f.chunks", "more.txt"][..],
        &["remove", "f.chunks", "more.txt"],
        &["merge", "f.chunks", "f.chunks", "-o", "all.koel"],
    ];
    for args in changes {
        koel.run(args).error(&["f.chunks: is a dump of RedisBloom", "not changed or merged", "8 bits", "`koel build`"]);
    }
    let convert = |to| koel.run(["convert", "f.chunks", "-o", "new", "--to", to]);
    convert("koel").error(&["f.chunks: sub-filters: 2 given", "query the dump as it is", "`koel query`, `koel build`"]);
    convert("go").error(&["f.chunks: is a dump of RedisBloom", "another hasher", "`koel build`"]);
    assert!(koel.read("f.chunks") == before);
    // A dump that converts.
    koel.write("f.chunks", data("rb_deleted.chunks"));
    for args in changes {
        koel.run(args).error(&["f.chunks: is a dump of RedisBloom", "`koel convert --to koel` makes a snapshot of it"]);
    }
    convert("go").error(&["f.chunks: is a dump of RedisBloom", "another hasher"]);
    koel.write("f.go", go_file("packed_b4_f13_n2000_m0.bin"));
    koel.run(["convert", "f.go", "-o", "new", "--to", "redisbloom"]).error(&["f.go: is a file of Go's", "another hasher"]);
    assert!(koel.names().iter().all(|name| !name.starts_with("new") && !name.starts_with("all")));
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
