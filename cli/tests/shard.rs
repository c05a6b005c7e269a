//! Filters built in parts by processes of their own.

use crate::common::{Koel, facts, numbers};

/// Three processes at the same time build the parts of one filter: from all items, or each from its own.
#[test]
#[cfg(unix)]
fn three_processes_build_a_filter() {
    let koel = Koel::new();
    koel.write("all.txt", numbers(0..60_000));
    koel.write("absent.txt", numbers(60_000..160_000));
    let build = |part: u8, list: &str, out: &str| format!("koel shard build {list} --part {part}/3 --capacity 60000 -o {out}");
    let together = |commands: [String; 3]| {
        let [first, second, third] = commands;
        koel.shell(&format!("{first} & a=$!; {second} & b=$!; {third}; wait $a; wait $b")).ok();
    };
    together([1, 2, 3].map(|part| build(part, "all.txt", &format!("{part}.koel"))));
    let joined = koel.run(["shard", "join", "2.koel", "3.koel", "1.koel", "-o", "all.koel"]);
    assert!(joined.ok().starts_with(b"all.koel: 60000 items in 3 parts, "), "{}", joined.text());
    assert_eq!(koel.run(["query", "all.koel", "all.txt"]).ok(), numbers(0..60_000).as_bytes());
    let mistaken: f64 = koel.run(["query", "all.koel", "absent.txt", "--count"]).text().trim().parse().expect("a number");
    assert!(mistaken < 100.0 + 5.0 * 10.0, "{mistaken} of 100000 at 0.1 %");
    let found = facts(&koel, "all.koel");
    assert_eq!((&found["items"], &found["lanes"], &found["buckets_per_lookup"]), (&60_000.into(), &32.into(), &2.into()));
    assert!(koel.run(["verify", "all.koel"]).text().starts_with("all.koel: ok: "));

    let split = koel.run(["shard", "split", "all.txt", "--parts", "3", "-o", "list-{}.txt"]);
    let lines = split.text();
    assert!(lines.lines().count() == 3 && lines.starts_with("list-1.txt: "), "{lines}");
    together([1, 2, 3].map(|part| build(part, &format!("list-{part}.txt"), &format!("split-{part}.koel"))));
    for part in 1..=3 {
        assert!(koel.read(&format!("{part}.koel")) == koel.read(&format!("split-{part}.koel")));
    }
    // What is joined is a filter like any other, and can be written to a pipe.
    koel.run(["add", "all.koel", "absent.txt"]).ok();
    assert_eq!(koel.shell("koel shard join split-*.koel -o - | koel query - --item 7").stdout, b"7\n");
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
    let build = |part: &str, out: &str, options: &[&str]| {
        let args = ["shard", "build", "all.txt", "--capacity", "1000", "--part", part, "-o", out];
        koel.run(args.iter().chain(options))
    };
    build("1/2", "1.koel", &[]).ok();
    build("2/2", "2.koel", &[]).ok();
    build("2/2", "other.koel", &["--fpr", "0.01"]).ok();
    let join = |parts: &[&str]| koel.run(["shard", "join", "-o", "all.koel"].iter().chain(parts));
    join(&["1.koel"]).error(&["8 of the filter's lanes are in none of these files; give all parts"]);
    join(&["1.koel", "2.koel", "1.koel"]).error(&["1.koel and 1.koel: these are the same part"]);
    join(&["1.koel", "other.koel"]).error(&["1.koel and other.koel: ", "build all parts with the same --capacity"]);
    join(&["1.koel", "missing"]).error(&["missing: cannot be opened: No such file"]);
    join(&["1.koel", "all.txt"]).error(&["all.txt: at byte 0: "]);
    let mut damaged = koel.read("2.koel");
    let middle = damaged.len() - 1000;
    damaged[middle] ^= 1;
    koel.write("damaged.koel", damaged);
    join(&["1.koel", "damaged.koel"]).error(&["damaged.koel: ", "checksum"]);
    assert!(!koel.names().contains(&String::from("all.koel")), "{:?}", koel.names());

    for command in [&["query", "1.koel", "--item", "7"][..], &["info", "1.koel"], &["verify", "1.koel"]] {
        koel.run(command).error(&["1.koel: is a part of a filter; join it with the other parts: `koel shard join`"]);
    }
    for part in ["0/2", "3/2", "1/0", "1/257", "1", "a/b", "-1/2"] {
        build(part, "x.koel", &[]).error(&["it takes the number of a part and of all parts, which are 256 at most, such as 1/3"]);
    }
    koel.run(["shard", "split", "all.txt", "-n", "2", "-o", "x"]).error(&["put {} where their number comes"]);
    koel.run(["shard", "split", "all.txt", "-n", "2", "-o", "no/{}"]).error(&["no/1: cannot be written"]);
    koel.write("1.txt", "a\n");
    koel.run(["shard", "split", "1.txt", "-n", "2", "-o", "{}.txt"]).error(&["1.txt: cannot be both the list and a part of it"]);
    assert_eq!(koel.read("1.txt"), b"a\n");
    // Nothing is left behind.
    assert!(koel.names().iter().all(|name| !name.starts_with('.')), "{:?}", koel.names());
}
