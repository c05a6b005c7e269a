//! Damaged filters and other files. All commands that read filters refuse them with a message that says what is wrong, and where.
//! `koel verify` reads everything, and continues after a damaged file.

use koel::{
    CuckooFilter,
    hash::{Hasher, HasherId, Uniform},
};

use crate::common::{Koel, data, numbers};

/// Asserts that all subcommands that read filters refuse these bytes, and leave the file unchanged.
#[track_caller]
fn refused(koel: &Koel, bytes: &[u8], parts: &[&str]) {
    refused_when_read(koel, bytes, parts);
    koel.run("query bad.koel --item 1").error(parts);
}

/// Asserts that all subcommands that read a whole filter refuse these bytes, and leave the file unchanged.
#[track_caller]
fn refused_when_read(koel: &Koel, bytes: &[u8], parts: &[&str]) {
    koel.write("bad.koel", bytes);
    let named = [&["bad.koel: "], parts].concat();
    koel.given("").refuses(&[
        ("info bad.koel", &named),
        ("query bad.koel --verify --item 1", &named),
        ("add bad.koel --item 1", &named),
        ("remove bad.koel --item 1", &named),
        ("merge bad.koel bad.koel -o new", &named),
        ("convert bad.koel --to koel -o new", &named),
        ("verify bad.koel --quiet", &named),
    ]);
    koel.feed(bytes, "verify -").error(&[&["standard input: "], parts].concat());
    assert!(koel.read("bad.koel") == bytes);
}

#[test]
fn short_and_long_files_are_refused() {
    let koel = Koel::with_filter(&numbers(0..100));
    let good = koel.read("f.koel");
    refused(&koel, b"", &["is empty, and so is no filter", "`koel build`"]);
    for length in [1, 7, 8, 63, 64, 65, good.len() - 9, good.len() - 8, good.len() - 1] {
        refused(&koel, &good[..length], &[&format!("there are {length}"), "too early", "another copy"]);
    }
    for more in [&b"\0"[..], b"\n", &good] {
        let place = format!("at byte {}: the filter ends here, but other bytes follow", good.len());
        refused(&koel, &[&good, more].concat(), &[&place, "another copy"]);
    }
}

#[test]
fn an_unknown_hasher_is_named() {
    #[derive(Clone)]
    struct Length;
    impl Hasher for Length {
        fn id(&self) -> HasherId {
            HasherId::custom(0x8007)
        }

        fn hash(&self, _: u64, bytes: &[u8]) -> Uniform {
            Uniform::new(bytes.len() as u64)
        }
    }
    let filter = CuckooFilter::builder().hasher(Length).capacity(9).fingerprint_bits(9).build().expect("a filter");
    let built = format!("built with hasher {}, which this command does not have", Length.id());
    refused(&Koel::new(), &filter.to_bytes(), &[&built, "; use the program that built it\n"]);
}

#[test]
fn damage_to_a_growing_filter_is_found() {
    let koel = Koel::new();
    let good = koel.feed(numbers(0..1000), "build - -o - --grow").status(0).to_vec();
    for at in [60, 70, 200, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        koel.write("bad.koel", bad);
        koel.run("verify bad.koel").error(&["bad.koel: at byte "]);
    }
    refused(&koel, &good[..good.len() - 9], &["too early"]);
    refused(&koel, &[&good[..], b"x"].concat(), &["the filter ends here"]);
}

#[test]
fn queries_find_damage_if_they_read_the_whole_file() {
    let koel = Koel::with_filter("a\nb\nc\n");
    let mut bad = koel.read("f.koel");
    bad[64] ^= 1;
    // A query reads all of the table only with --verify or from a pipe.
    refused_when_read(&koel, &bad, &["at byte ", "the table was altered", "another copy"]);
    assert!(koel.run("query bad.koel --item 1").status < 2);
    koel.feed(&bad, "query - --item 1").error(&["standard input: at byte ", "the table was altered"]);
}

#[test]
fn verify_prints_one_line_per_good_file() {
    let koel = Koel::with_filter("apple\nbanana\n");
    koel.write("f.go", data("go/single_b4_f13_n1000_m1.bin"));
    let text = koel.run("verify f.koel f.go").printed();
    let [snapshot, go] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(snapshot.starts_with("f.koel: ok: koel snapshot, 2 items, packed table of "), "{text}");
    assert!(snapshot.ends_with(&format!(" 13 bits, xxh3 seed 0, {} bytes", koel.read("f.koel").len())), "{text}");
    assert!(go.starts_with("f.go: ok: file of Go's linvon/cuckoo-filter, 1965 items, single table of 2048 slots"), "{text}");
    assert_eq!(koel.run("verify f.koel f.go --quiet").ok(), b"");
    for (file, line) in [("f.koel", snapshot), ("f.go", go)] {
        let piped = koel.feed(koel.read(file), "verify -");
        assert_eq!(piped.ok(), (line.replace(file, "standard input") + "\n").as_bytes());
    }
}

#[test]
fn verify_continues_after_a_bad_file() {
    let koel = Koel::with_filter(&numbers(0..100));
    let mut bad = koel.read("f.koel");
    bad[100] ^= 1;
    koel.write("bad.koel", &bad);
    let run = koel.run("verify f.koel bad.koel missing.koel f.koel");
    run.status(2);
    assert_eq!(run.text().matches("f.koel: ok: ").count(), 2, "{}", run.text());
    let lines: Vec<_> = run.stderr.lines().collect();
    assert!(lines[0].starts_with("koel: bad.koel: at byte ") && lines[0].contains("the table was altered"), "{lines:?}");
    assert!(lines[1].starts_with("koel: missing.koel: cannot be read: No such file"), "{lines:?}");
    assert_eq!(lines[2..], ["koel: 2 of 4 files failed"]);
}

/// These formats have no checksum, but contradictions are found and named. The library's tests alter every byte.
#[test]
fn contradictions_in_files_of_other_programs_are_found() {
    let koel = Koel::new();
    let go = data("go/packed_b4_f12_n1000_m1.bin");
    let flipped = |at: usize, flip: u8| [&go[..at], &[go[at] ^ flip], &go[at + 1..]].concat();
    let as_go = "bad.koel: as a file of Go's linvon/cuckoo-filter: at byte ";
    let neither = "bad.koel: at byte 0: neither a koel snapshot nor a file of Go's linvon/cuckoo-filter";
    let dump = data("redisbloom/rb_grown_e2.chunks");
    let as_dump = "bad.koel: as a dump of RedisBloom: ";
    for (bytes, begin, part) in [
        (flipped(0, 1), as_go, "byte 0: the table holds"),
        (flipped(7, 0x80), as_go, "byte 4: the victim is in bucket"),
        (flipped(10, 1), as_go, "byte 8: the victim's fingerprint"),
        (flipped(12, 2), as_go, "byte 12: "),
        (flipped(13, 2), neither, "; give a file that `koel build` or Go's `Encode` wrote, or a dump of RedisBloom\n"),
        (flipped(14, 0x40), neither, " (at byte 14: fingerprint bits: "),
        (flipped(15, 1), neither, " (at byte 15: "),
        (flipped(go.len() - 1, 1), as_go, ""),
        (go[..999].to_vec(), as_go, "byte 999: the bytes end too early"),
        ([&go[..], &[0; 100]].concat(), "bad.koel: at byte ", "the filter ends here, but other bytes follow"),
        (dump[..30].to_vec(), as_dump, "at byte 30: the bytes end too early"),
        (dump[..dump.len() - 1].to_vec(), as_dump, "the bytes end too early"),
        (dump.repeat(2), as_dump, "all chunks of the filter have arrived"),
        ([&dump[..24], &[3], &dump[25..]].concat(), as_dump, "at byte 24: "),
    ] {
        koel.write("bad.koel", bytes);
        koel.run("verify bad.koel").error(&[begin, part]);
    }
}

#[test]
fn files_that_are_not_filters_are_refused() {
    let koel = Koel::new();
    for bytes in [&b"apple\nbanana\ncherry\n"[..], b"apple\n", &[0; 1000]] {
        refused(&koel, bytes, &["at byte 0: neither a koel snapshot nor a file of Go's", "give a file that `koel build`"]);
    }
    koel.run("verify").error(&["<FILE>..."]);
    let run = koel.run_with("mmx", "verify bad.koel bad.koel");
    run.error(&["koel: KOEL_KERNEL: mmx given"]);
    assert_eq!(run.stderr.lines().count(), 1, "the error is not in the files: {}", run.stderr);
}

/// The error names what the whole filter takes, before any item is read.
#[test]
#[cfg(target_os = "linux")]
fn a_filter_that_does_not_fit_into_memory_says_how_much_it_takes() {
    for grow in ["", "--grow"] {
        let run = Koel::new()
            .shell(&format!("ulimit -v 1500000; yes | koel build - --capacity 2G {grow} -o f.koel 2>&1 || test $? = 2"));
        let text = run.text();
        let bytes = text.split_whitespace().find_map(|word| word.parse::<u64>().ok());
        assert!(bytes.is_some_and(|bytes| bytes > 3_000_000_000) && text.contains("a smaller --capacity"), "{grow}: {text}");
    }
}

/// The input is refused before it uses up the memory, which is limited here.
#[test]
#[cfg(target_os = "linux")]
fn endless_input_is_refused() {
    let neither = "at byte 0: neither a koel snapshot nor a file of Go's";
    for (command, message) in [
        // One endless item of zeros.
        ("koel build /dev/zero -o f.koel", "line 1 of /dev/zero: longer than 268435456 bytes"),
        (
            "printf '\"a\\n' | cat - /dev/zero | koel uniq --csv --key 1",
            "record 1 of standard input: longer than 268435456 bytes, the limit",
        ),
        // `verify` reads no more than a header can announce.
        ("koel verify /dev/zero", &*format!("/dev/zero: {neither}")),
        ("yes | koel verify -", &*format!("standard input: {neither}")),
    ] {
        let run = Koel::new().shell(&format!("ulimit -v 1500000; {command} 2>&1 || test $? = 2"));
        assert!(run.text().contains(message), "{}", run.text());
    }
    // The end of a line does not count.
    for end in ["", "\\n", "\\r\\n"] {
        let line = format!("head -c 268435456 /dev/zero; printf '{end}'");
        assert_eq!(Koel::new().shell(&format!("ulimit -v 1500000; {{ {line}; }} | koel uniq --count-only")).ok(), b"1\n");
    }
}
