//! Damaged filters and other files: each command that reads filters refuses them with a message that says what is wrong, and where.
//! `koel verify` reads everything, and continues after a damaged file.

use crate::common::{Koel, go_file, numbers};

/// Every subcommand that reads filters refuses this one, and leaves it unchanged.
#[track_caller]
fn refused(koel: &Koel, bytes: &[u8], parts: &[&str]) {
    refused_when_read(koel, bytes, parts);
    koel.run(["query", "bad.koel", "--item", "1"]).error(parts);
}

/// Every subcommand that reads all of a filter refuses this one, and leaves it unchanged.
#[track_caller]
fn refused_when_read(koel: &Koel, bytes: &[u8], parts: &[&str]) {
    koel.write("bad.koel", bytes);
    let mut parts = parts.to_vec();
    parts.push("bad.koel: ");
    koel.run(["info", "bad.koel"]).error(&parts);
    koel.run(["query", "bad.koel", "--item", "1", "--verify"]).error(&parts);
    koel.run(["add", "bad.koel", "--item", "1"]).error(&parts);
    koel.run(["remove", "bad.koel", "--item", "1"]).error(&parts);
    assert!(koel.read("bad.koel") == bytes);
}

#[test]
fn short_and_long_files_are_refused() {
    let koel = Koel::with_filter(&numbers(0..100));
    let good = koel.read("f.koel");
    for length in [1, 7, 8, 63, 64, 65, good.len() - 9, good.len() - 8, good.len() - 1] {
        refused(&koel, &good[..length], &[&format!("there are {length}"), "too early", "another copy"]);
    }
    for more in [&b"\0"[..], b"\n", &good] {
        refused(
            &koel,
            &[&good, more].concat(),
            &[&format!("at byte {}: the filter ends here, but other bytes follow", good.len()), "another copy"],
        );
    }
}

#[test]
fn queries_find_damage_when_they_read_all() {
    let koel = Koel::with_filter("a\nb\nc\n");
    let mut bad = koel.read("f.koel");
    bad[64] ^= 1;
    // A query reads all of the table only with --verify or from a pipe.
    refused_when_read(&koel, &bad, &["the table was altered", "another copy"]);
    assert!(koel.run(["query", "bad.koel", "--item", "1"]).status < 2);
    koel.feed(&bad, ["query", "-", "--item", "1"]).error(&["standard input: at byte ", "the table was altered"]);
}

/// Runs `koel verify` on files, and returns its lines about bad ones. With several files, checks the line that counts them.
#[track_caller]
fn complaints(koel: &Koel, files: &[String]) -> Vec<String> {
    let run = koel.run([&[String::from("verify")], files].concat());
    let lines: Vec<_> = run.stderr.lines().map(String::from).collect();
    let Some((last, bad)) = lines.split_last().filter(|_| files.len() > 1) else { return lines };
    run.status(2);
    assert_eq!(*last, format!("koel: {} of {} files failed", bad.len(), files.len()));
    assert_eq!(run.text().lines().count(), files.len() - bad.len());
    bad.to_vec()
}

#[test]
fn good_files_are_reported_in_a_line_each() {
    let koel = Koel::with_filter("apple\nbanana\n");
    koel.write("f.go", go_file("single_b4_f13_n1000_m1.bin"));
    let run = koel.run(["verify", "f.koel", "f.go"]);
    let text = String::from_utf8_lossy(run.ok()).into_owned();
    let [snapshot, go] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(snapshot.starts_with("f.koel: ok: koel snapshot, 2 items, packed table of "), "{text}");
    assert!(snapshot.ends_with(&format!(" 13 bits, xxh3 seed 0, {} bytes", koel.read("f.koel").len())), "{text}");
    assert!(go.starts_with("f.go: ok: file of Go's linvon/cuckoo-filter, 1965 items, single table of 2048 slots"), "{text}");
    assert_eq!(koel.run(["verify", "f.koel", "f.go", "--quiet"]).ok(), b"");
    for (file, line) in [("f.koel", snapshot), ("f.go", go)] {
        let piped = koel.feed(koel.read(file), ["verify", "-"]);
        assert_eq!(piped.ok(), (line.replace(file, "standard input") + "\n").as_bytes());
    }
}

#[test]
fn a_bad_file_does_not_keep_the_others_from_being_checked() {
    let koel = Koel::with_filter(&numbers(0..100));
    let mut bad = koel.read("f.koel");
    bad[100] ^= 1;
    koel.write("bad.koel", &bad);
    let run = koel.run(["verify", "f.koel", "bad.koel", "missing.koel", "f.koel"]);
    run.status(2);
    assert_eq!(run.text().matches("f.koel: ok: ").count(), 2, "{}", run.text());
    let lines: Vec<_> = run.stderr.lines().collect();
    assert!(lines[0].starts_with("koel: bad.koel: at byte ") && lines[0].contains("the table was altered"), "{lines:?}");
    assert!(lines[1].starts_with("koel: missing.koel: cannot be read: No such file"), "{lines:?}");
    assert_eq!(lines[2..], ["koel: 2 of 4 files failed"]);
    // One alone needs no sum.
    koel.run(["verify", "bad.koel", "--quiet"]).error(&["bad.koel: at byte ", "the table was altered", "another copy"]);
    koel.feed(&bad, ["verify", "-"]).error(&["standard input: at byte ", "the table was altered"]);
}

#[test]
fn every_altered_byte_of_a_snapshot_is_found() {
    let koel = Koel::with_filter("a\nb\nc\n");
    let good = koel.read("f.koel");
    let files: Vec<_> = (0..good.len())
        .map(|at| {
            let (mut bad, name) = (good.clone(), format!("{at}.koel"));
            bad[at] ^= 1 << (at % 8);
            koel.write(&name, bad);
            name
        })
        .collect();
    let bad = complaints(&koel, &files);
    assert_eq!(bad.len(), files.len());
    assert!(bad.iter().zip(&files).all(|(line, file)| line.starts_with(&format!("koel: {file}: at byte "))), "{bad:?}");
}

#[test]
fn a_file_of_gos_that_is_cut_short_or_goes_on_is_found() {
    let koel = Koel::new();
    for go in ["packed_b4_f5_n1000_m0.bin", "single_b8_f4_n1000_m1.bin"] {
        let good = go_file(go);
        let short: Vec<_> = (14..good.len()).step_by(37).chain([good.len() - 1]).collect();
        let files: Vec<_> = short.iter().map(|length| format!("{length}.go")).collect();
        for (&length, file) in short.iter().zip(&files) {
            koel.write(file, &good[..length]);
        }
        let bad = complaints(&koel, &files);
        assert_eq!(bad.len(), files.len());
        for (line, length) in bad.iter().zip(short) {
            let expected =
                format!("koel: {length}.go: as a file of Go's linvon/cuckoo-filter: at byte {length}: the bytes end too");
            assert!(line.starts_with(&expected), "{line}");
        }
        for more in [1, 100, 100_000] {
            koel.write("long.go", [good.clone(), vec![0; more]].concat());
            koel.run(["verify", "long.go"])
                .error(&[&format!("long.go: at byte {}: the filter ends here, but other bytes follow", good.len())]);
        }
    }
}

/// There is no checksum, but whatever contradicts the rest is found, and named as what it is.
#[test]
fn contradictions_in_a_file_of_gos_are_found() {
    let koel = Koel::new();
    let good = go_file("packed_b4_f12_n1000_m1.bin");
    let cases: [(usize, u8, &str); 8] = [
        (0, 1, "as a file of Go's linvon/cuckoo-filter: at byte 0: the table holds"),
        (7, 0x80, "as a file of Go's linvon/cuckoo-filter: at byte 4: the victim is in bucket"),
        (10, 1, "as a file of Go's linvon/cuckoo-filter: at byte 8: the victim's fingerprint"),
        (12, 2, "as a file of Go's linvon/cuckoo-filter: at byte 12: "),
        (
            13,
            2,
            "at byte 0: neither a koel snapshot nor a file of Go's linvon/cuckoo-filter; give a file that `koel build` or Go's `Encode` wrote\n",
        ),
        (14, 0x40, "at byte 0: neither a koel snapshot nor a file of Go's linvon/cuckoo-filter (at byte 14: fingerprint bits: "),
        (15, 1, "at byte 0: neither a koel snapshot nor a file of Go's linvon/cuckoo-filter (at byte 15: "),
        (good.len() - 1, 1, "as a file of Go's linvon/cuckoo-filter: at byte "),
    ];
    for (at, flip, expected) in cases {
        let mut bad = good.clone();
        bad[at] ^= flip;
        koel.write("bad.go", bad);
        koel.run(["verify", "bad.go"]).error(&["bad.go: ", expected]);
    }
}

#[test]
fn what_is_no_filter_is_named() {
    let koel = Koel::new();
    let neither = "at byte 0: neither a koel snapshot nor a file of Go's";
    for (bytes, parts) in [
        (&b"apple\nbanana\ncherry\n"[..], [neither, "give a file that `koel build`"]),
        (b"apple\n", [neither, "give a file that `koel build`"]),
        (&[0; 1000], [neither, "give a file that `koel build`"]),
        (b"", ["at byte 0: the bytes end too early: there are 0", "another copy"]),
    ] {
        refused(&koel, bytes, &parts);
        koel.run(["verify", "bad.koel"]).error(&parts);
        koel.feed(bytes, ["verify", "-"]).error(&["standard input: ", parts[0]]);
    }
    std::fs::create_dir(koel.path("folder")).expect("a folder");
    for command in ["verify", "query"] {
        koel.run([command, "folder"]).error(&["folder: is a folder"]);
        koel.run([command, "missing"]).error(&["missing: cannot be read: No such file"]);
    }
    koel.run(["verify"]).error(&["<FILE>..."]);
    let run = koel.run_with("KOEL_KERNEL", "mmx", &["verify", "bad.koel", "bad.koel"]);
    run.error(&["koel: KOEL_KERNEL: kernel: mmx given"]);
    assert_eq!(run.stderr.lines().count(), 1, "that is no fault of the files: {}", run.stderr);
}

/// Refused before the memory is used up, which is limited here.
#[test]
#[cfg(target_os = "linux")]
fn what_never_ends_is_given_up() {
    let neither = "at byte 0: neither a koel snapshot nor a file of Go's";
    for (command, message) in [
        // One endless item of zeros.
        ("koel build /dev/zero -o f.koel", "line 1 of /dev/zero: longer than 268435456 bytes"),
        // No more is read than a header could announce.
        ("koel verify /dev/zero", &*format!("/dev/zero: {neither}")),
        ("yes | koel verify -", &*format!("standard input: {neither}")),
    ] {
        let run = Koel::new().shell(&format!("ulimit -v 1500000; {command} 2>&1 || test $? = 2"));
        assert!(run.text().contains(message), "{}", run.text());
    }
}
