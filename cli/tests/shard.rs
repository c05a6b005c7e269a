//! Filters built in parts by processes of their own.

use crate::common::{Koel, facts, numbers};

/// Three processes at the same time build the parts of one filter.
#[test]
#[cfg(unix)]
fn three_processes_build_a_filter() {
    let koel = Koel::new();
    koel.write("all.txt", numbers(0..60_000));
    koel.write("absent.txt", numbers(60_000..160_000));
    let [first, second, third] =
        [1, 2, 3].map(|part| format!("koel shard build all.txt --part {part}/3 --capacity 60000 -o {part}.koel"));
    koel.shell(&format!("{first} & a=$!; {second} & b=$!; {third}; wait $a; wait $b")).ok();
    let joined = koel.run("shard join 2.koel 3.koel 1.koel -o all.koel");
    assert!(joined.ok().starts_with(b"all.koel: 60000 items in 3 parts, "), "{}", joined.text());
    assert_eq!(koel.run("query all.koel all.txt").ok(), numbers(0..60_000).as_bytes());
    let mistaken: f64 = koel.run("query all.koel absent.txt --count").text().trim().parse().expect("a number");
    assert!(mistaken < 100.0 + 5.0 * 10.0, "{mistaken} of 100000 at 0.1 %");
    let found = facts(&koel, "all.koel");
    assert_eq!((&found["items"], &found["lanes"], &found["buckets_per_lookup"]), (&60_000.into(), &32.into(), &2.into()));
    assert!(koel.run("verify all.koel").text().starts_with("all.koel: ok: "));
    // What is joined is a filter like any other, and can be written to a pipe.
    koel.run("add all.koel absent.txt").ok();
    assert_eq!(koel.shell("koel shard join [123].koel -o - | koel query - --item 7").stdout, b"7\n");
}

/// Each part has as much memory as a third of the filter needs; one process for all of it would not get enough.
#[test]
#[cfg(target_os = "linux")]
fn a_filter_may_be_larger_than_the_memory_of_a_process() {
    let koel = Koel::new();
    koel.write("all.txt", numbers(0..1000));
    let size = "--capacity 40000000 -o";
    let whole = format!("ulimit -d 40000; koel shard build all.txt --part 1/1 {size} whole.koel 2>&1 || test $? = 2");
    let whole = koel.shell(&whole);
    assert!(whole.text().contains("bytes of memory cannot be allocated"), "{}", whole.text());
    for part in 1..=3 {
        koel.shell(&format!("ulimit -d 40000; koel shard build all.txt --part {part}/3 {size} {part}.koel")).ok();
    }
    koel.shell("ulimit -d 40000; koel shard join 1.koel 2.koel 3.koel -o all.koel").ok();
    assert!(koel.read("all.koel").len() > 60_000_000);
    let found = koel.shell("ulimit -d 40000; koel query all.koel all.txt --count --verify");
    assert_eq!(found.text(), "1000\n");
}

#[test]
fn parts_that_do_not_fit_together_are_named() {
    let koel = Koel::new();
    koel.write("all.txt", numbers(0..1000));
    for (part, out) in [("1/2", "1.koel"), ("2/2", "2.koel"), ("2/2", "other.koel --fpr 0.01")] {
        koel.run(&format!("shard build all.txt --capacity 1000 --part {part} -o {out}")).ok();
    }
    koel.feed("a\n", "build - -o fixed.koel").ok();
    koel.write("longer.koel", [koel.read("2.koel"), b"x".to_vec()].concat());
    let mut damaged = koel.read("2.koel");
    let middle = damaged.len() - 1000;
    damaged[middle] ^= 1;
    koel.write("damaged.koel", damaged);
    koel.given("shard join -o all.koel").refuses(&[
        ("1.koel", &["a part is missing; give all parts, from 1/N to N/N"]),
        ("1.koel 2.koel 1.koel", &["1.koel and 1.koel: these have the same items; give each part once"]),
        ("1.koel fixed.koel", &["fixed.koel: is a filter of fixed size; give parts"]),
        ("1.koel .", &[".: is a folder; give a file"]),
        ("1.koel longer.koel", &["longer.koel: at byte ", "other bytes follow it"]),
        ("1.koel other.koel", &["1.koel and other.koel: ", "build all parts with the same --capacity"]),
        ("1.koel -", &["standard input: cannot be a part; give files"]),
        ("1.koel missing", &["missing: cannot be read: No such file"]),
        ("1.koel all.txt", &["all.txt: at byte 0: "]),
        ("1.koel damaged.koel", &["damaged.koel: ", "checksum"]),
    ]);
    for command in ["query 1.koel --item 7", "info 1.koel", "verify 1.koel"] {
        koel.run(command).error(&["1.koel: is a part of a filter; join it with the other parts: `koel shard join`"]);
    }
    for part in ["0/2", "3/2", "1/0", "1/257", "1", "a/b", "-1/2"] {
        let takes = "it takes the number of a part and of all parts, which are 256 at most, such as 1/3";
        koel.given("shard build all.txt --capacity 1000 -o x.koel --part").refuses(&[(part, &[takes])]);
    }
}
