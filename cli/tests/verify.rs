//! `koel verify` reads everything, and continues after a damaged file.

use crate::common::{Koel, go_file, numbers};

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
    koel.write("empty", "");
    koel.write("text", "apple\nbanana\ncherry\n");
    koel.write("short", "apple\n");
    koel.write("zeros", [0; 1000]);
    std::fs::create_dir(koel.path("folder")).expect("a folder");
    let neither = "at byte 0: neither a koel snapshot nor a file of Go's";
    koel.run(["verify", "empty"]).error(&["empty: at byte 0: the bytes end too early: there are 0"]);
    koel.run(["verify", "text"]).error(&["text: ", neither]);
    koel.run(["verify", "short"]).error(&["short: ", neither]);
    koel.run(["verify", "zeros"]).error(&["zeros: ", neither]);
    koel.run(["verify", "folder"]).error(&["folder: is a folder"]);
    koel.run(["verify"]).error(&["<FILE>..."]);
    let run = koel.run_with("KOEL_KERNEL", "mmx", &["verify", "empty", "text"]);
    run.error(&["koel: KOEL_KERNEL: kernel: mmx given"]);
    assert_eq!(run.stderr.lines().count(), 1, "that is no fault of the files: {}", run.stderr);
    koel.feed("apple\n", ["verify", "-"]).error(&["standard input: ", neither]);
}

#[test]
#[cfg(target_os = "linux")]
fn what_never_ends_is_given_up() {
    // Neither is a filter, and no more of it is read than a header could announce.
    let run = Koel::new().shell("ulimit -v 1500000; koel verify /dev/zero 2>&1 || test $? = 2");
    assert!(run.text().contains("/dev/zero: at byte 0: neither a koel snapshot nor a file of Go's"), "{}", run.text());
    let run = Koel::new().shell("ulimit -v 1500000; yes | koel verify - 2>&1 || test $? = 2");
    assert!(run.text().contains("standard input: at byte 0: neither a koel snapshot nor a file of Go's"), "{}", run.text());
}
