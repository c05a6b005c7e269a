//! Numbers as people write them, in every option that takes one.

use crate::common::{Koel, facts};

/// What both commands print, which is the same.
#[track_caller]
fn same(koel: &Koel, plain: &str, written: &str) {
    let [one, other] = [plain, written].map(|command| koel.run(command.split_whitespace()));
    assert_eq!(other.ok(), one.ok(), "{written}");
}

#[test]
fn one_number_has_one_meaning() {
    let koel = Koel::new();
    for items in ["1_000_000", "1e6", "1M", "1m", "1000k", "0.001G", "1.000e+6"] {
        same(&koel, "tune --items 1000000 --fpr 0.001", &format!("tune --items {items} --fpr 0.001"));
    }
    for rate in ["1e-3", "0.1%", "1/1000", "1/1k", "0.001_0", "10e-2%"] {
        same(&koel, "tune --items 1000 --fpr 0.001", &format!("tune --items 1000 --fpr {rate}"));
    }
    for bytes in ["2e6", "2M", "2MB", "2_000_000", "2000k", "2000kB", "0.002G"] {
        same(&koel, "tune --items 1000000 --bytes 2000000", &format!("tune --items 1000000 --bytes {bytes}"));
    }
    same(&koel, "tune --items 1000000 --bytes 2097152", "tune --items 1M --bytes 2MiB");
    same(
        &koel,
        "tune --items 10 --fpr 0.1 --copies 10 --bucket-size 8",
        "tune --items 10 --fpr 10% --copies 1e1 --bucket-size 0.8e1",
    );
}

#[test]
fn every_command_takes_them() {
    let koel = Koel::new();
    for (options, capacity, written) in [
        ("--bits 13", "2500", "--bits 1.3e1 --capacity 2.5k"),
        ("--fpr 0.01 --seed 1000", "3000", "--fpr 1% --seed 1k --capacity 3_000"),
        ("--grow --max-capacity 5000000", "1000", "--grow --max-capacity 5M --capacity 1e3"),
    ] {
        let plain = format!("build - -o plain.koel {options} --capacity {capacity}");
        koel.feed("a\n", plain.split_whitespace()).ok();
        koel.feed("a\n", format!("build - -o written.koel {written}").split_whitespace()).ok();
        assert_eq!(facts(&koel, "written.koel"), facts(&koel, "plain.koel"), "{written}");
    }
    koel.feed("a\n", "shard build - --part 1e0/2 --capacity 3k -o 1.koel".split_whitespace()).ok();
    koel.feed("a\n", "shard build - --part 2/2 --capacity 3000 -o 2.koel".split_whitespace()).ok();
    koel.run("shard join 1.koel 2.koel -o all.koel".split_whitespace()).ok();
    koel.run("experiment space --max-slots 1.5".split_whitespace()).error(&["--max-slots", "1 and 2"]);
}

#[test]
fn a_fraction_of_an_item_is_an_error_with_two_remedies() {
    let koel = Koel::new();
    koel.run(["tune", "--items", "1.2345k", "--fpr", "1%"]).error(&[
        "--items",
        "'1.2345k'",
        "not a whole number",
        "1234 and 1235",
    ]);
    for near in ["1234", "1235"] {
        koel.run(["tune", "--items", near, "--fpr", "1%"]).ok();
    }
}

#[test]
fn the_help_says_how_numbers_are_written() {
    let koel = Koel::new();
    for text in [koel.run(["--help"]).text(), koel.run(["man"]).text()] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "");
        assert!(text.contains("1000000, 1_000_000, 1e6 and 1M are the same") && text.contains("0.1% and 1/1000"), "{text}");
    }
}
