//! `koel convert`, and the other commands that read the files of Go's library and dumps of RedisBloom.

use std::fs;

use serde_json::Value;

use crate::common::{Koel, data, facts, numbers};

/// What `koel build` takes for a filter that goes into a file of the other program.
const FOR_GO: &str = "--addressing power-of-two --hasher metrohash64 --seed 1337";
const FOR_REDISBLOOM: &str = "--table single --bits 8 --addressing power-of-two --hasher redisbloom";

/// Files of Go's, what was added to them (`key-0` and so on), and whether one is beside the table.
const FILES: [(&str, u32, bool); 4] = [
    ("go/packed_b4_f13_n2000_m0.bin", 2000, false),
    ("go/packed_b4_f12_n1000_m1.bin", 1971, true),
    ("go/single_b4_f13_n1000_m1.bin", 1965, true),
    ("go/single_b8_f16_n2000_m0.bin", 2000, false),
];

fn items(prefix: &str, count: u32) -> String {
    (0..count).fold(String::new(), |lines, n| lines + &format!("{prefix}{n}\n"))
}

/// Asserts that these files give the same answers to `probes.txt`, with every kernel and through a pipe.
#[track_caller]
fn answer(koel: &Koel, files: &[&str], expected: &str) {
    for file in files {
        for kernel in koel::Kernel::available() {
            assert!(koel.run_with(&kernel.to_string(), ["query", file, "probes.txt"]).text() == expected, "{file} {kernel}");
        }
        assert!(koel.feed(koel.read(file), "query - probes.txt --verify").text() == expected, "{file}");
    }
}

#[test]
fn files_of_gos_are_queried_directly_and_as_snapshots() {
    let koel = Koel::new();
    for (name, count, has_victim) in FILES {
        koel.write("f.go", data(name));
        let keys = items("key-", count);
        koel.write("keys.txt", &keys);
        koel.write("probes.txt", items("probe-", 20_000) + &keys);
        let told = facts(&koel, "f.go");
        assert_eq!((&told["format"], &told["victim"]), (&"go".into(), &has_victim.into()), "{name}");
        assert_eq!((&told["items"], &told["file_bytes"]), (&count.into(), &koel.read("f.go").len().into()), "{name}");
        let text = koel.run("info f.go").text();
        let victim = if has_victim { "one of the items" } else { "none\n" };
        assert!(text.contains(&format!("\n  victim          {victim}")), "{text}");

        let converted = koel.run("convert f.go -o f.koel --to koel");
        assert!(converted.ok().starts_with(b"filter            f.koel\nformat            koel snapshot\n"));
        let snapshot = facts(&koel, "f.koel");
        assert_eq!((&snapshot["format"], &snapshot["items"]), (&"koel".into(), &count.into()));
        assert!(snapshot.get("victim").is_none() && snapshot["buckets"] == told["buckets"], "{snapshot}");
        assert_eq!(koel.run("query f.go keys.txt").ok(), keys.as_bytes(), "{name}");
        answer(&koel, &["f.go", "f.koel"], &koel.run("query f.go probes.txt").text());
    }
    koel.run_with("mmx", "query f.go --item key-0").error(&["KOEL_KERNEL", "mmx given"]);
}

#[test]
fn a_file_that_already_has_the_format_is_copied() {
    let koel = Koel::with_filter("apple\n");
    let mut files: Vec<_> = FILES.iter().map(|(name, ..)| ("go", data(name))).collect();
    files.extend(["deleted", "grown_e2"].map(|name| ("redisbloom", data(&format!("redisbloom/rb_{name}.chunks")))));
    files.push(("koel", koel.read("f.koel")));
    for (format, bytes) in files {
        koel.write("file", &bytes);
        // Also onto itself.
        for output in ["copy", "file"] {
            koel.run(&format!("convert file -o {output} --to {format}")).ok();
            assert!(koel.read(output) == bytes, "{format}");
        }
    }
}

#[test]
fn there_and_back_is_the_same_filter() {
    let koel = Koel::new();
    for (to, name, options) in [
        ("go", "file of Go's linvon/cuckoo-filter", format!("{FOR_GO} --table single")),
        ("go", "file of Go's linvon/cuckoo-filter", format!("{FOR_GO} --table packed")),
        ("redisbloom", "dump of RedisBloom", String::from(FOR_REDISBLOOM)),
    ] {
        koel.feed(numbers(0..3000), &format!("build - -o f.koel {options}")).ok();
        let before = koel.read("f.koel");
        let told = koel.run(&format!("convert f.koel -o f.koel --to {to}"));
        assert!(
            told.text().starts_with(&format!("filter            f.koel\nformat            {name}\nitems             3000\n"))
        );
        told.ok();
        assert_eq!(facts(&koel, "f.koel")["format"], to);
        assert_eq!(koel.feed(numbers(0..3000), "query f.koel --count").ok(), b"3000\n");
        // Through pipes, too.
        let run = koel.feed(koel.read("f.koel"), "convert - -o - --to koel");
        assert!(run.status(0) == before && run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);
        assert!(koel.feed(&before, &format!("convert - -o - --to {to}")).status(0) == koel.read("f.koel"));
    }
    assert_eq!(koel.names(), ["f.koel"]);
}

/// The remedies are what the test above builds.
#[test]
fn what_cannot_be_converted_is_refused_with_a_remedy() {
    let koel = Koel::new();
    let build = |options: &str| koel.feed("apple\n", &format!("build - -o f.koel {options}")).ok().len();
    for (to, remedy, options, part) in [
        ("go", FOR_GO, "", "addressing: any-size given"),
        ("go", FOR_GO, "--addressing power-of-two", "hasher: xxh3 given"),
        ("go", FOR_GO, "--addressing power-of-two --hasher metrohash64", "seed: 0 given"),
        ("redisbloom", FOR_REDISBLOOM, "", "hasher: xxh3 given"),
        ("redisbloom", FOR_REDISBLOOM, "--hasher redisbloom --seed 7", "seed: 7 given, but RedisBloom always uses 0"),
        ("redisbloom", FOR_REDISBLOOM, "--hasher redisbloom --table packed", "table: packed given"),
        ("redisbloom", FOR_REDISBLOOM, "--hasher redisbloom --table single --bits 9", "fingerprint bits: 9 given"),
        ("redisbloom", FOR_REDISBLOOM, "--hasher redisbloom --table single --bits 8", "addressing: any-size given"),
    ] {
        build(options);
        let remedy = format!("`koel build {remedy}`");
        koel.given("convert f.koel -o new").refuses(&[(&format!("--to {to}"), &["koel: f.koel: ", part, &remedy])]);
    }
    build(&format!("{FOR_GO} --bits 12 --table single --bucket-size 3 --capacity 100"));
    let parts = ["koel: f.koel: ", "fingerprint bits: 12 given with buckets of 3", "share bits", "multiple of 4"];
    koel.given("convert f.koel -o new").refuses(&[("--to go", &parts)]);
    build("--grow");
    koel.given("convert f.koel -o new").refuses(&[
        ("--to go", &["f.koel: is a filter that grows", "Go's have a fixed size"]),
        ("--to redisbloom", &["f.koel: is a filter that grows", "another form", "`koel build`"]),
    ]);
}

/// One bucket of four slots, all of them taken, and a victim.
const FULL: [u8; 24] = [4, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 4, 8, 1, 0, 0, 0, 1, 2, 3, 4];

#[test]
fn a_victim_without_room_is_an_error_and_nothing_is_written() {
    let koel = Koel::new();
    koel.write("f.go", FULL);
    let told = facts(&koel, "f.go");
    assert_eq!((&told["items"], &told["victim"]), (&5.into(), &true.into()));
    let parts = [
        "koel: f.go: the table has no room for the item that Go keeps outside it (5 items in 4 slots)",
        "delete an item in Go first",
    ];
    koel.given("convert f.go --to koel").refuses(&[("-o f.koel", &parts), ("-o f.go", &parts)]);
    assert!(koel.read("f.go") == FULL);
    // It can still be queried and copied.
    assert!(koel.run("query f.go --item a").status < 2);
    koel.run("convert f.go -o copy.go --to go").ok();
    assert!(koel.read("copy.go") == FULL);
}

/// What changes filters takes snapshots only, and a dump that has grown becomes none.
#[test]
fn what_cannot_be_done_with_other_files_says_so() {
    let koel = Koel::new();
    let snapshot = "`koel convert --to koel` makes a snapshot of it";
    for (name, kind, to, changing) in [
        (FILES[0].0, "is a file of Go's", "redisbloom", ["not changed or merged", "`koel convert --to koel`"]),
        ("redisbloom/rb_deleted.chunks", "is a dump of RedisBloom", "go", ["not changed or merged", snapshot]),
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

#[test]
fn wrong_arguments_and_files_are_named() {
    let koel = Koel::new();
    koel.write("f.go", data(FILES[0].0));
    koel.write("short.go", &data(FILES[0].0)[..1000]);
    koel.write("text", "apple\nbanana\n");
    fs::create_dir(koel.path("folder")).expect("a folder");
    koel.given("convert").refuses(&[
        ("f.go -o x --to gopher", &["--to", "'gopher'", "koel, go, redisbloom"]),
        ("f.go -o folder --to koel", &["folder: is a folder", "name of a file"]),
        ("f.go -o no/x --to koel", &["no/x", "there is no folder no", "make it first"]),
        ("f.go -o x", &["--to <FORMAT>"]),
        ("f.go --to koel", &["--output <OUT>"]),
    ]);
    // tests/damaged.rs has what is no filter.
    for (file, parts) in [
        ("short.go", &["short.go: as a file of Go's", "at byte 1000", "there are 1000"][..]),
        ("text", &["text: at byte 0: neither a koel snapshot", "nor a file of Go's"]),
    ] {
        koel.given(&format!("convert {file} -o x --to")).refuses(&[("koel", parts), ("go", parts)]);
    }
}

#[test]
fn dumps_answer_as_the_server_did() {
    let koel = Koel::new();
    let about: Vec<Value> = serde_json::from_slice(&data("redisbloom/fixtures.json")).expect("JSON");
    for fixture in about.iter().filter(|fixture| fixture["chunks"] != 0) {
        koel.write("f.chunks", data(&format!("redisbloom/{}", fixture["file"].as_str().expect("a name"))));
        let prefix = fixture["probe_prefix"].as_str().expect("a text");
        koel.write("probes.txt", items(prefix, fixture["probe_count"].as_u64().and_then(|n| n.try_into().ok()).expect("few")));
        let hits = fixture["probe_hits"].as_array().expect("a list").iter();
        answer(&koel, &["f.chunks"], &hits.fold(String::new(), |lines, n| lines + &format!("{prefix}{n}\n")));
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
        let text = koel.run("info f.chunks").text();
        assert!(text.starts_with("format            dump of RedisBloom\nitems             "), "{text}");
        assert!(koel.run("verify f.chunks").text().starts_with("f.chunks: ok: dump of RedisBloom, "));
    }
}

#[test]
fn a_dump_of_one_sub_filter_becomes_a_snapshot_and_comes_back() {
    let koel = Koel::new();
    koel.write("probes.txt", items("probe-", 20_000) + &items("key-", 20_000));
    for name in ["redisbloom/rb_b1_n3000.chunks", "redisbloom/rb_deleted.chunks"] {
        koel.write("f.chunks", data(name));
        koel.run("convert f.chunks -o f.koel --to koel").ok();
        let (dumped, snapshot) = (facts(&koel, "f.chunks"), facts(&koel, "f.koel"));
        assert_eq!([&snapshot["format"], &snapshot["hasher"], &snapshot["table"]], ["koel", "redisbloom", "single"]);
        for name in ["items", "slots", "buckets", "bucket_size", "fingerprint_bits", "seed"] {
            assert_eq!(snapshot[name], dumped[name], "{name} of {snapshot}");
        }
        answer(&koel, &["f.chunks", "f.koel"], &koel.run("query f.chunks probes.txt").text());
        // All but the number of items removed comes back.
        let mut bytes = data(name);
        bytes[16 + 16..16 + 24].fill(0);
        koel.run("convert f.koel -o back.chunks --to redisbloom").ok();
        assert!(koel.read("back.chunks") == bytes, "{name}");
        // The snapshot is changed like any other.
        koel.run("add f.koel --item banana").ok();
        koel.run("remove f.koel --item key-1").ok();
        koel.run("convert f.koel -o f.koel --to redisbloom").ok();
        assert_eq!(koel.run("query f.koel --item banana").text(), "banana\n");
        assert_eq!(facts(&koel, "f.koel")["items"], dumped["items"]);
    }
}

#[test]
fn a_damaged_dump_is_refused() {
    let koel = Koel::new();
    let bytes = data("redisbloom/rb_grown_e2.chunks");
    let altered = [&bytes[..24], &[3], &bytes[25..]].concat();
    for (bytes, parts) in [
        (&bytes[..30], &["as a dump of RedisBloom: at byte 30: the bytes end too early"][..]),
        (&bytes[..bytes.len() - 1], &["as a dump of RedisBloom: ", "the bytes end too early"]),
        (&[&bytes[..], &bytes].concat(), &["all chunks of the filter have arrived", "each once"]),
        (&altered, &["at byte 24: ", "power of two"]),
    ] {
        koel.write("f.chunks", bytes);
        koel.given("").refuses(&[("verify f.chunks", parts), ("info f.chunks", parts), ("query f.chunks --item key-1", parts)]);
    }
}
