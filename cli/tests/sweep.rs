//! `koel experiment sweep`.

use crate::common::Koel;
use serde_json::Value;

fn sweep(koel: &Koel, args: &str) -> crate::common::Run {
    koel.run(["experiment", "sweep", "--quick"].into_iter().chain(args.split_whitespace()))
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let koel = Koel::new();
    let cases: [(&str, &[&str]); 15] = [
        ("--f 20..6", &["--f", "20..6", "give 6..20"]),
        ("--f six", &["--f", "'six'", "whole number"]),
        ("--f 6..20:0", &["--f", "step '0'", "6..20:2"]),
        ("--b", &["--b", "value is required"]),
        ("--b 17..20", &["none of the combinations", "b = 17: the packed table has buckets of 4 slots"]),
        ("--load 0", &["--load", "'0'", "above 0 and at most 1"]),
        ("--load 0.5..1.5", &["--load", "'1.5'", "above 0 and at most 1"]),
        ("--items 0", &["--items", "nearest that works is 1"]),
        ("--items 1..100000:1", &["--items", "1..100000:1", "more than 1000 values", "larger step"]),
        ("--items 1000000000000000", &["sweep: ", "MiB", "fewer --items"]),
        ("--table packed,simple", &["--table", "'simple'", "single, packed"]),
        ("--measure space,time", &["--measure", "'time'", "space, fpr, load, speed"]),
        ("--table packed --f 2,3", &["sweep: ", "none of the combinations", "1 × f = 2", "4 to 32 bits"]),
        ("--items 1..1000:1 --load 0.01..1:0.01", &["100000", "200000", "fewer values"]),
        ("load", &["'load'"]),
    ];
    for (args, parts) in cases {
        sweep(&koel, args).error(parts);
        assert!(koel.names().is_empty() || koel.names() == ["koel-experiments"], "{args}");
        koel.shell("rm -rf koel-experiments").ok();
    }
    // A name and a command do not go together.
    koel.run(["experiment", "load", "sweep"]).error(&["'sweep'", "load, space, fpr, speed, all"]);
}

#[test]
fn a_row_for_each_combination_and_a_word_about_the_others() {
    let koel = Koel::new();
    let args = "--table packed,single --b 2,4 --f 3..9:3 --load 0.5..0.7:0.1 --items 100 --measure fpr,space --seed 2 --out out";
    let run = sweep(&koel, args);
    assert_eq!(run.status(0), b"out/report.html\n");
    let left_out =
        "9 × b = 2: the packed table has buckets of 4 slots; 3 × f = 3: the packed table has fingerprints of 4 to 32 bits";
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines[0], format!("sweep: 12 combinations are left out: {left_out}"));
    assert!(lines[1].starts_with("sweep: at most ") && lines[1].ends_with(" MiB of memory for a case"), "{}", lines[1]);
    assert_eq!(lines[2], "sweep: 24 cases");
    assert!(lines[3].starts_with("sweep: In 1 of 24 cases, an item was refused before the load"), "{}", lines[3]);
    assert_eq!(lines.len(), 4);
    let csv = String::from_utf8(koel.read("out/sweep.csv")).expect("UTF-8");
    assert_eq!(csv.lines().count(), 25);
    assert!(csv.starts_with("table,b,f,load,items,measure,quick,slots,inserted,bytes,bits_per_item,probes,"), "{csv}");
    assert!(csv.contains("\npacked,4,6,0.6,100,space fpr,true,168,100,"), "{csv}");
    let names = koel.shell("ls out").text();
    assert!(names.contains("sweep-fpr-by-f.svg") && names.contains("sweep-space-by-load.svg"), "{names}");

    // The same once more, and more of it: what is there is not measured again.
    let second = sweep(&koel, &args.replace("0.5..0.7:0.1", "0.5..0.8:0.1"));
    second.status(0);
    assert!(second.stderr.contains("sweep: 32 cases, 24 of them measured before\n"), "{}", second.stderr);
    // What is measured is a part of a case, so that nothing is missing.
    sweep(&koel, &args.replace("fpr,space", "load")).error(&["out", "another --out", "--again"]);
}

#[test]
fn the_same_seed_gives_the_same_on_any_number_of_threads() {
    let koel = Koel::new();
    let args = "--f 8 --load 0.5,0.95 --items 1000 --measure fpr,load";
    for (out, threads, seed) in [("a", "1", "7"), ("b", "2", "7"), ("c", "2", "8")] {
        sweep(&koel, &format!("{args} --out {out} --threads {threads} --seed {seed}")).status(0);
    }
    assert!(koel.read("a/sweep.csv") == koel.read("b/sweep.csv"));
    assert!(koel.read("a/sweep.csv") != koel.read("c/sweep.csv"));
}

#[test]
fn what_was_not_measured_is_empty() {
    let koel = Koel::new();
    // Buckets of one slot are half full at best.
    sweep(&koel, "--table single --b 1 --load 0.9 --items 1000 --measure space,fpr,load,speed --out out").status(0);
    let record: Value = serde_json::from_slice(&koel.read("out/sweep.json")).expect("JSON");
    let row = &record["measured"][0]["rows"][0];
    assert!(row["inserted"].as_u64() < Some(1000) && row["first_refusal"].as_f64() < Some(0.7), "{row}");
    assert!(["bytes", "rate", "insert_ns", "rounds"].iter().all(|&name| row[name].is_null()), "{row}");
}

/// Pictures of other parameters are deleted with the results that they showed, and nothing else.
#[test]
fn pictures_of_earlier_parameters_do_not_stay() {
    let koel = Koel::new();
    sweep(&koel, "--table packed --f 8,12 --load 0.5..0.7:0.1 --items 100 --measure space --out out").status(0);
    koel.write("out/sweep-notes.svg", "mine");
    koel.shell("test -e out/sweep-space-by-load.svg").ok();
    sweep(&koel, "--table packed --f 8..12 --load 0.5 --items 100 --measure space --out out --again").status(0);
    let svgs = koel.shell("cd out; ls *.svg").text();
    assert_eq!(svgs.lines().collect::<Vec<_>>(), ["sweep-notes.svg", "sweep-space-by-f.svg"]);
}
