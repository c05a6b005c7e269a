//! A full filter: the message names the item and the remedy, and the file stays unchanged.

use crate::common::{Koel, facts, numbers};

#[test]
fn a_filter_that_is_too_small_is_not_written() {
    let koel = Koel::new();
    koel.write("old.koel", "what was there before");
    koel.write("list.txt", numbers(0..1000));
    for out in ["old.koel", "new.koel"] {
        koel.run(["build", "list.txt", "-o", out, "--capacity", "10"]).error(&[
            "koel: line ",
            " of list.txt: the filter is full",
            "leave --capacity out",
            "nothing was written",
        ]);
    }
    assert_eq!(koel.names(), ["list.txt", "old.koel"]);
    assert_eq!(koel.read("old.koel"), b"what was there before");
}

#[test]
fn a_full_filter_stays_as_it_was() {
    let koel = Koel::new();
    koel.feed(numbers(0..10), ["build", "-", "-o", "f.koel", "--capacity", "10"]).ok();
    let before = koel.read("f.koel");
    let capacity = facts(&koel, "f.koel")["capacity"].to_string();
    for input in [&["-"][..], &["-", "--unique"], &["-", "--nul"]] {
        let list = numbers(10..1000).replace('\n', if input.contains(&"--nul") { "\0" } else { "\n" });
        let run = koel.feed(list, ["add", "f.koel"].iter().chain(input));
        run.error(&[" of standard input: the filter is full", "build a new filter", "f.koel is unchanged"]);
        assert!(run.stderr.contains(if input.contains(&"--nul") { "koel: item " } else { "koel: line " }), "{}", run.stderr);
        // At least the capacity must have fitted.
        let limit = run.stderr.split("--capacity above ").nth(1).and_then(|rest| rest.split([',', ';']).next()).unwrap();
        assert!(limit.parse::<u64>().unwrap() >= capacity.parse().unwrap(), "{}", run.stderr);
        assert!(koel.read("f.koel") == before);
    }
    assert_eq!(koel.names(), ["f.koel"]);
}

#[test]
fn too_many_copies_are_called_so() {
    let koel = Koel::new();
    let copies = "koel\n".repeat(9);
    for capacity in [&[][..], &["--capacity", "1000"]] {
        let args = ["build", "-", "-o", "f.koel"];
        koel.feed(&copies, args.iter().chain(capacity)).error(&[
            "line 9 of standard input",
            "both of its buckets are full of copies",
            "--unique",
            "nothing was written",
        ]);
    }
    assert!(koel.names().is_empty());
    koel.feed("koel\n".repeat(8), ["build", "-", "-o", "f.koel"]).ok();
    let before = koel.read("f.koel");
    koel.run(["add", "f.koel", "--item", "koel"]).error(&[
        "item 1 of the command line",
        "both of its buckets are full of copies",
        "--unique",
        "is unchanged",
    ]);
    assert!(koel.read("f.koel") == before);
    koel.run(["add", "f.koel", "--item", "koel", "--unique"]).ok();
}
