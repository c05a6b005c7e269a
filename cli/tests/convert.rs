//! `koel convert`, and the other commands that read the files of Go's library.

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
    for (name, ..) in FILES {
        koel.write("f.go", go_file(name));
        koel.run(["convert", "f.go", "-o", "copy.go", "--to", "go"]).ok();
        assert!(koel.read("copy.go") == go_file(name), "{name}");
        // Also onto itself.
        koel.run(["convert", "f.go", "-o", "f.go", "--to", "go"]).ok();
        assert!(koel.read("f.go") == go_file(name), "{name}");
    }
    koel.run(["convert", "f.koel", "-o", "copy.koel", "--to", "koel"]).ok();
    assert!(koel.read("copy.koel") == koel.read("f.koel"));
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

#[test]
fn what_go_cannot_read_is_refused_with_a_remedy() {
    let koel = Koel::new();
    let remedy = "koel build --addressing power-of-two --hasher metrohash64 --seed 1337";
    let cases: [(&[&str], &[&str]); 4] = [
        (&[], &["addressing: any-size given", remedy]),
        (&["--addressing", "power-of-two"], &["hasher: xxh3 given", remedy]),
        (&["--addressing", "power-of-two", "--hasher", "metrohash64"], &["seed: 0 given", "1337", remedy]),
        (
            &[&FOR_GO[..], &["--bits", "12", "--table", "single", "--bucket-size", "3", "--capacity", "100"]].concat(),
            &["fingerprint bits: 12 given with buckets of 3", "share bits", "multiple of 4"],
        ),
    ];
    for (options, expected) in cases {
        koel.feed("apple\n", ["build", "-", "-o", "f.koel"].iter().chain(options)).ok();
        let run = koel.run(["convert", "f.koel", "-o", "f.go", "--to", "go"]);
        run.error(&[&["koel: f.koel: "], expected].concat());
    }
    assert_eq!(koel.names(), ["f.koel"]);
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
    std::fs::create_dir(koel.path("folder")).expect("a folder");
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

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_the_old_file() {
    let koel = Koel::new();
    koel.feed(numbers(0..100_000), ["build", "-", "-o", "f.koel"].iter().chain(&FOR_GO)).ok();
    koel.write("old.go", "what was there before");
    let run = koel.shell("trap '' XFSZ; ulimit -f 1; koel convert f.koel -o old.go --to go 2>&1 || test $? = 2");
    assert!(run.text().contains("koel: old.go: cannot be written; it is as it was: File too large"), "{}", run.text());
    assert_eq!(koel.read("old.go"), b"what was there before");
    assert_eq!(koel.names(), ["f.koel", "old.go"]);
}
