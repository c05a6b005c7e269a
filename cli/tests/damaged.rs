//! Damaged filters and other files: each is refused with a message that says what is wrong, and is left unchanged.

use crate::common::{Koel, numbers};

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
fn other_files_are_not_filters() {
    let koel = Koel::new();
    refused(&koel, b"apple\nbanana\n", &["at byte 0: neither a koel snapshot nor", "give a file that `koel build`"]);
    refused(&koel, &[0; 1000], &["at byte 0: neither a koel snapshot nor", "give a file that `koel build`"]);
    refused(&koel, b"", &["there are 0", "another copy"]);
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
fn altered_bytes_are_refused() {
    let koel = Koel::with_filter("a\nb\nc\n");
    let good = koel.read("f.koel");
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        koel.write("bad.koel", &bad);
        koel.run(["info", "bad.koel"]).error(&["bad.koel: at byte "]);
    }
    let mut bad = good.clone();
    bad[64] ^= 1;
    // A query reads all of the table only with --verify or from a pipe.
    refused_when_read(&koel, &bad, &["the table was altered", "another copy"]);
    assert!(koel.run(["query", "bad.koel", "--item", "1"]).status < 2);
    koel.feed(&bad, ["query", "-", "--item", "1"]).error(&["standard input: at byte ", "the table was altered"]);
    assert!(koel.read("f.koel") == good);
}

#[test]
#[cfg(target_os = "linux")]
fn a_list_without_end_is_no_list() {
    // One endless item of zeros: refused before the memory is used up, which is limited here.
    let run = Koel::new().shell("ulimit -v 1500000; koel build /dev/zero -o f.koel 2>&1 || test $? = 2");
    assert!(run.text().contains("line 1 of /dev/zero: longer than 268435456 bytes"), "{}", run.text());
}
