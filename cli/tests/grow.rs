//! Filters that grow: built from a list of unknown length, and used as others are.

use crate::common::{Koel, numbers};

#[test]
fn a_growing_filter_lives() {
    let koel = Koel::new();
    koel.write("many.txt", numbers(0..30_000));
    koel.write("more.txt", numbers(30_000..31_000));
    let built = koel.feed(numbers(0..30_000), ["build", "-", "-o", "g.koel", "--grow"]);
    let built = String::from_utf8_lossy(built.ok()).into_owned();
    for fact in
        ["format           koel snapshot of a filter that grows\n", "items            30000\n", "table            packed, in "]
    {
        assert!(built.contains(fact), "{built}");
    }
    // `build` prints the same facts as `info`.
    assert_eq!(built.split_once('\n').unwrap().1, koel.run(["info", "g.koel"]).text());
    assert!(koel.run(["verify", "g.koel"]).text().starts_with("g.koel: ok: koel snapshot of a filter that grows, 30000 items"));

    assert_eq!(koel.run(["query", "g.koel", "many.txt"]).ok(), numbers(0..30_000).as_bytes());
    let mistaken = koel.run(["query", "g.koel", "more.txt", "--count"]);
    assert!(mistaken.stdout.starts_with(b"0") || mistaken.text().trim().parse::<u32>().unwrap() < 10);

    let added = koel.run(["add", "g.koel", "more.txt"]);
    assert!(added.ok().starts_with(b"1000 added; 31000 in g.koel now (tables of "), "{}", added.text());
    let added = koel.run(["add", "g.koel", "more.txt", "--unique"]);
    assert!(added.ok().starts_with(b"0 added, 1000 skipped as already present; 31000 in g.koel now"), "{}", added.text());
    let removed = koel.run(["remove", "g.koel", "many.txt"]);
    assert!(removed.ok().starts_with(b"30000 removed, 0 not found; 1000 in g.koel now"), "{}", removed.text());
    assert_eq!(koel.run(["query", "g.koel", "more.txt"]).ok(), numbers(30_000..31_000).as_bytes());

    // A pipe carries it as well as a file does.
    let streamed = koel.run(["build", "more.txt", "-o", "-", "--grow"]);
    koel.write("streamed.koel", streamed.status(0));
    assert_eq!(koel.run(["query", "streamed.koel", "more.txt"]).ok(), numbers(30_000..31_000).as_bytes());
}

#[test]
fn growing_filters_of_any_size_are_merged() {
    let koel = Koel::new();
    koel.feed(numbers(0..100), ["build", "-", "-o", "a.koel", "--grow"]).ok();
    koel.feed(numbers(100..50_000), ["build", "-", "-o", "b.koel", "--grow"]).ok();
    let merged = koel.run(["merge", "a.koel", "b.koel", "-o", "c.koel"]);
    assert!(String::from_utf8_lossy(merged.ok()).contains("items            50000\n"));
    koel.write("all.txt", numbers(0..50_000));
    assert_eq!(koel.run(["query", "c.koel", "all.txt", "--count"]).text(), "50000\n");

    koel.feed("x\n", ["build", "-", "-o", "fixed.koel"]).ok();
    koel.feed("x\n", ["build", "-", "-o", "other.koel", "--grow", "--fpr", "0.01"]).ok();
    for (filters, part) in [
        (["a.koel", "fixed.koel"], "the second has a fixed size; build both with --grow"),
        (["fixed.koel", "a.koel"], "which goes only with others that do"),
        (["a.koel", "other.koel"], "build both with the same --fpr"),
    ] {
        let refused = koel.run(["merge", filters[0], filters[1], "-o", "d.koel"]);
        refused.status(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!koel.names().contains(&String::from("d.koel")));
}

#[test]
fn damage_and_mistakes_are_reported() {
    let koel = Koel::new();
    koel.feed(numbers(0..1000), ["build", "-", "-o", "g.koel", "--grow"]).ok();
    let bytes = koel.read("g.koel");
    for at in [60, 70, 200, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        koel.write("damaged.koel", damaged);
        let verified = koel.run(["verify", "damaged.koel"]);
        verified.status(2);
        assert!(verified.stderr.contains("damaged.koel: at byte "), "{}", verified.stderr);
    }
    koel.write("cut.koel", &bytes[..bytes.len() - 9]);
    koel.run(["query", "cut.koel", "--item", "1"]).status(2);
    koel.write("long.koel", [&bytes[..], b"x"].concat());
    assert!(koel.run(["info", "long.koel"]).stderr.contains("the filter ends here"));
    for (arguments, part) in [
        (&["--grow", "--bits", "12"][..], "cannot be used with"),
        (&["--max-capacity", "10"], "--grow"),
        (&["--grow", "--fpr", "2"], "--fpr: 2 given"),
        (&["--grow", "--capacity", "10", "--max-capacity", "9"], "--capacity: 10 given"),
    ] {
        let refused = koel.run([&["build", "-", "-o", "n.koel"][..], arguments].concat());
        refused.status(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let nine = "same\n".repeat(9);
    let refused = koel.feed(&nine, ["build", "-", "-o", "n.koel", "--grow"]);
    refused.status(2);
    assert!(refused.stderr.contains("line 9") && refused.stderr.contains("--unique"), "{}", refused.stderr);
    koel.feed(&nine, ["build", "-", "-o", "n.koel", "--grow", "--unique"]).ok();
    #[cfg(target_endian = "little")]
    assert!(koel.run(["convert", "n.koel", "-o", "n.go", "--to", "go"]).stderr.contains("Go's have a fixed size"));
}
