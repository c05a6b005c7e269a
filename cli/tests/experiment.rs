//! `koel experiment`: what it leaves, however it ends; any parameters with `sweep`; two folders with `compare`; and what docs/tuning has.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{Koel, Run};

/// The smallest tables only, since the time it takes does not matter here.
const SMALL: [&str; 5] = ["experiment", "load", "--quick", "--max-slots", "100"];

/// The record in a folder.
fn record(koel: &Koel, folder: &str) -> Value {
    serde_json::from_slice(&koel.read(&format!("{folder}/load.json"))).expect("JSON")
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let koel = Koel::new();
    koel.write("file", "");
    let cases: [(&str, &[&str]); 15] = [
        ("", &["NAME", "load", "speed", "all", "--help"]),
        ("--quick", &["NAME", "load", "speed", "all"]),
        ("laod", &["'laod'", "load", "speed", "all", "similar"]),
        ("load --seed one", &["--seed", "'one'", "hexadecimal"]),
        ("load --seed -1", &["--seed", "'-1'", "whole number from 0"]),
        ("load --threads 0", &["--threads", "'0'", "1 to 4096"]),
        ("load --threads 4097", &["--threads", "'4097'", "1 to 4096"]),
        ("load --max-slots few", &["--max-slots", "'few'", "whole number"]),
        ("load --max-slots -1", &["--max-slots", "'-1'", "whole number from 0"]),
        ("load --max-slots 99", &["load: ", "--max-slots 99", "at least 100"]),
        ("all --max-slots 0", &["--max-slots 0", "at least"]),
        ("load --quick --out file", &["folder file", "another --out"]),
        ("load --quick --out file/below", &["folder file/below", "another --out"]),
        ("load --quick --out=", &["--out <FOLDER>", "value is required"]),
        ("load --quick --slow", &["--slow"]),
    ];
    for (args, parts) in cases {
        koel.run(["experiment"].into_iter().chain(args.split_whitespace())).error(parts);
        assert_eq!(koel.names(), ["file"], "{args}");
    }
}

#[test]
fn all_is_checked_before_one_begins() {
    let koel = Koel::new();
    // Large enough for `load`, too small for `speed`, which comes later.
    koel.run(["experiment", "load", "speed", "--quick", "--max-slots", "600"]).error(&[
        "speed: ",
        "--max-slots 600",
        "at least 683",
    ]);
    koel.shell("test -z \"$(ls -A koel-experiments)\"").ok();
}

#[test]
fn a_run_leaves_all_its_files_and_says_where_the_page_is() {
    let koel = Koel::new();
    // Names that come twice are one.
    let run = koel.run(SMALL.into_iter().chain(["load", "--out", "new/results"]));
    assert_eq!(run.status(0), b"new/results/report.html\n");
    assert_eq!(run.stderr, "load: 72 cases\n");
    let names = koel.shell("ls -A new/results").text();
    let names: Vec<_> = names.lines().filter(|&name| name != "report.html").collect();
    let svgs = ["load-bits.svg", "load-buckets.svg", "load-size.svg"];
    assert_eq!(names, [&svgs[..], &["load.csv", "load.json"]].concat());
    for name in svgs {
        assert!(koel.read(&format!("new/results/{name}")).starts_with(b"<svg "), "{name}");
    }
    let record = record(&koel, "new/results");
    assert_eq!(record["complete"], true);
    assert_eq!(record["run"]["koel"], env!("CARGO_PKG_VERSION"));
    let build = &record["run"]["build"];
    assert!(build["program"].as_str().is_some_and(|program| program.len() == 16), "{build}");
    assert!(build["compiler"].as_str().is_some_and(|compiler| compiler.starts_with("rustc ")), "{build}");
    assert_eq!(record["run"]["scope"], serde_json::json!({"quick": true, "seed": 1, "max_slots": 100}));
    assert_eq!(record["measured"].as_array().map(Vec::len), Some(72));
    let csv = String::from_utf8(koel.read("new/results/load.csv")).expect("UTF-8");
    assert!(csv.starts_with("walk,b,f,slots,trials,min,mean,max\nkoel,2,2,100,100,"), "{csv}");
    assert_eq!(csv.lines().count(), 73);
}

#[test]
fn what_was_measured_is_not_measured_again_unless_it_is_wanted() {
    let koel = Koel::new();
    let small = |more: &[&'static str]| koel.run(SMALL.into_iter().chain(more.iter().copied()));
    small(&["--threads", "1"]).status(0);
    let (csv, first) = (koel.read("koel-experiments/load.csv"), record(&koel, "koel-experiments"));

    let second = small(&["--threads", "2"]);
    assert_eq!(second.status(0), b"koel-experiments/report.html\n");
    assert_eq!(second.stderr, "load: 72 cases, all of them measured before\n");
    assert!(koel.read("koel-experiments/load.csv") == csv);
    assert!(record(&koel, "koel-experiments") == first);

    // Another run's results are neither mixed with these nor lost.
    let remedies = ["koel-experiments", "another --out", "--again"];
    small(&["--seed", "2"]).error(&[&remedies[..], &["seed 1", "seed 2"]].concat());
    let full = ["experiment", "load", "--max-slots", "100"];
    koel.run(full).error(&[&remedies[..], &["a quick run", "a full run"]].concat());
    assert!(record(&koel, "koel-experiments") == first);

    // What another build measured is drawn, but not taken for this one's.
    let ours = first["run"]["build"]["program"].as_str().expect("a hash").to_owned();
    let theirs = koel.shell("cat koel-experiments/load.json").text().replace(&ours, "0123456789abcdef");
    koel.write("koel-experiments/load.json", &theirs);
    let drawn = small(&[]);
    assert_eq!(drawn.status(0), b"koel-experiments/report.html\n");
    assert!(drawn.stderr.starts_with("load: 72 cases, all of them measured before by another build: "), "{}", drawn.stderr);
    assert!(drawn.stderr.ends_with(", program 0123456789abcdef\n"), "{}", drawn.stderr);
    assert_eq!(koel.read("koel-experiments/load.json"), theirs.as_bytes());
    // Without its last case, it is not complete, and nothing is added to it.
    let cut = theirs.rfind(",\n    {\"case\"").expect("a case");
    let part = theirs[..cut].replace("\"complete\": true", "\"complete\": false") + "\n  ]\n}\n";
    koel.write("koel-experiments/load.json", &part);
    small(&[]).error(&["load.json: measured by another build", "program 0123456789abcdef", "another --out", "--again"]);
    assert_eq!(koel.read("koel-experiments/load.json"), part.as_bytes());

    let again = small(&["--seed", "0x2", "--again"]);
    again.status(0);
    assert_eq!(again.stderr, "load: 72 cases\n");
    assert!(koel.read("koel-experiments/load.csv") != csv);
    assert_eq!(record(&koel, "koel-experiments")["run"]["scope"]["seed"], 2);
}

#[cfg(unix)]
mod stopped {
    use std::{
        fs,
        process::{Child, Command, Stdio},
        thread,
    };

    use super::*;
    use crate::common::KOEL;

    /// Long enough for anything to happen in the middle of it.
    const LONG: [&str; 5] = ["experiment", "load", "--quick", "--max-slots", "1000"];
    const CASES: usize = 144;

    /// A run into a folder, at its work: so many cases have been finished by this one.
    fn started(koel: &Koel, more: &[&str], finished: usize) -> Child {
        let before = journal(koel);
        let mut command = Command::new(KOEL);
        command.args(LONG).args(["--out", "parts"]).args(more).current_dir(koel.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process");
        while journal(koel) < before + finished {
            assert!(child.try_wait().expect("a child").is_none(), "it ended too soon");
            thread::yield_now();
        }
        child
    }

    /// How many cases are in the journal, with their lines' ends.
    fn journal(koel: &Koel) -> usize {
        let text = fs::read_to_string(koel.path("parts/load.partial.jsonl")).unwrap_or_default();
        text.split_inclusive('\n').filter(|line| line.starts_with("{\"measured\"") && line.ends_with('\n')).count()
    }

    fn known(koel: &Koel) -> usize {
        record(koel, "parts")["measured"].as_array().map_or(0, Vec::len)
    }

    /// Sends Ctrl-C's signal; exit status, standard output and standard error.
    fn interrupt(child: Child) -> (Option<i32>, String, String) {
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.expect("kill").success());
        let output = child.wait_with_output().expect("its output");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    #[test]
    fn nothing_is_lost_and_the_rest_comes_to_the_same() {
        let koel = Koel::new();
        thread::scope(|scope| {
            // Meanwhile, without any trouble.
            scope.spawn(|| koel.run(LONG.into_iter().chain(["--out", "whole", "--threads", "1"])).status(0).len());

            let child = started(&koel, &["--threads", "2"], 1);
            let second = LONG.into_iter().chain(["--out", "parts"]);
            koel.run(second).error(&["parts/load.partial.jsonl", "another process", "wait", "another --out"]);
            let (status, stdout, stderr) = interrupt(child);
            assert_eq!((status, stdout.as_str()), (Some(130), ""), "{stderr}");
            let told = "koel: interrupted; the results so far are in parts, and the same command continues\n";
            assert_eq!(stderr, format!("load: {CASES} cases\n{told}"));
            assert_eq!((journal(&koel), record(&koel, "parts")["complete"].as_bool()), (0, Some(false)));
            let finished = known(&koel);
            assert!((1..CASES).contains(&finished), "{finished}");
            assert!(!koel.path("parts/load.partial.jsonl").exists());

            let mut child = started(&koel, &[], 3);
            child.kill().expect("it is there");
            child.wait().expect("it is there");
            let more = journal(&koel);
            assert!(more >= 3 && known(&koel) == finished);

            let last = koel.run(LONG.into_iter().chain(["--out", "parts"]));
            assert_eq!(last.status(0), b"parts/report.html\n");
            assert_eq!(last.stderr, format!("load: {CASES} cases, {} of them measured before\n", finished + more));
        });
        assert!(koel.read("parts/load.csv") == koel.read("whole/load.csv"));
        assert!(record(&koel, "parts")["measured"] == record(&koel, "whole")["measured"]);
        assert_eq!(koel.shell("ls -A parts").text(), koel.shell("ls -A whole").text());
    }

    #[test]
    fn again_is_not_to_be_said_again() {
        let koel = Koel::new();
        let (status, _, stderr) = interrupt(started(&koel, &["--again"], 1));
        assert_eq!(status, Some(130));
        assert!(stderr.ends_with(" in parts, and the same command without --again continues\n"), "{stderr}");
    }
}

#[test]
fn what_cannot_be_part_of_the_page_is_named_before_anything_is_measured() {
    let koel = Koel::new();
    fs::create_dir(koel.path("results")).expect("a new folder");
    koel.write("results/speed.json", "{\"hello\": 1}");
    let run = koel.run(SMALL.into_iter().chain(["--out", "results"]));
    run.error(&["speed.json", "damaged", "delete the file"]);
    assert_eq!(koel.shell("ls -A results").text(), "speed.json\n");
    // Files of others are no concern of ours.
    koel.shell("mv results/speed.json results/mine.json").ok();
    koel.run(SMALL.into_iter().chain(["--out", "results"])).status(0);
}

fn sweep(koel: &Koel, args: &str) -> Run {
    koel.run(["experiment", "sweep", "--quick"].into_iter().chain(args.split_whitespace()))
}

#[test]
fn mistakes_in_lists_are_named_before_anything_is_measured() {
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
    let args = "--table packed,single --b 2,4 --f 3..9:3 --load 0.5..0.7:0.1 --items 100 --measure fpr,space --seed 3 --out out";
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

/// A small sweep into a folder.
fn sweep_into(koel: &Koel, out: &str, args: &str) {
    sweep(koel, &format!("--table packed --items 1000 --measure space,fpr,load --out {out} {args}")).status(0);
}

#[test]
fn the_same_is_equal_and_another_seed_is_only_noise() {
    let koel = Koel::new();
    sweep_into(&koel, "a", "--f 8,12 --load 0.5,0.95");
    sweep_into(&koel, "b", "--f 8,12 --load 0.5,0.95");
    sweep_into(&koel, "c", "--f 8,12 --load 0.5,0.95 --seed 2");
    let same = koel.run(["experiment", "compare", "a", "b"]);
    same.ok();
    assert!(same.text().starts_with("A: a\nB: b\n\nsweep: 4 cases in both; "), "{}", same.text());
    let noise = koel.run(["experiment", "compare", "a", "c"]);
    noise.ok();
    assert!(
        noise.text().contains("\n  Seed: 1 / 2\n") && noise.text().contains(" figures: 0 different, 0 unknown, "),
        "{}",
        noise.text()
    );
}

#[test]
fn what_differs_is_shown_and_is_the_exit_status() {
    let koel = Koel::new();
    sweep_into(&koel, "a", "--f 8,12");
    sweep_into(&koel, "b", "--f 12,16");
    // A table that takes more space, and finds more.
    let text = String::from_utf8(koel.read("b/sweep.json")).expect("UTF-8");
    let mut record: Value = serde_json::from_str(&text).expect("JSON");
    let row = &mut record["measured"][0]["rows"][0];
    row["bytes"] = (row["bytes"].as_u64().expect("a number") + 8).into();
    for name in ["rate", "rate_low", "rate_high"] {
        row[name] = (row[name].as_f64().expect("a number") * 3.0).into();
    }
    koel.write("b/sweep.json", record.to_string());

    let run = koel.run(["experiment", "compare", "a", "b"]);
    let text = String::from_utf8_lossy(run.status(1)).into_owned();
    assert!(text.contains("sweep: 1 case in both; ") && text.contains("2 different"), "{text}");
    assert!(text.contains("  bytes, bytes") && text.contains("  rate "), "{text}");
    assert!(text.contains("\n  only in A: {\"table\":\"packed\",\"b\":4,\"f\":8,"), "{text}");
    let json: Value = serde_json::from_slice(koel.run(["experiment", "compare", "a", "b", "--json"]).status(1)).expect("JSON");
    let verdicts = json["experiments"][0]["figures"].as_array().expect("a list").iter().map(|figure| &figure["verdict"]);
    assert_eq!(verdicts.filter(|&verdict| verdict == "different").count(), 2);

    koel.run(["experiment", "compare", "a", "none"]).error(&["none"]);
    koel.run(["experiment", "compare", "a", "."]).error(&[".: no results here", "koel experiment"]);
    koel.run(["experiment", "compare", "a"]).error(&["<B>"]);
    koel.run(["experiment", "compare", "a", "b", "--time-tolerance", "2"]).error(&["--time-tolerance", "'2'", "0 to 1"]);
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The files of a folder, but for what is never kept.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = entries.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    let kept = named.filter(|(name, _)| name != "report.html" && !name.ends_with(".partial.jsonl"));
    kept.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

#[test]
fn the_pictures_are_those_of_the_numbers() {
    let committed = files(&docs().join("tuning"));
    let koel = Koel::new();
    fs::create_dir(koel.path("results")).expect("a new folder");
    let mut names = Vec::new();
    for (name, bytes) in &committed {
        // Not the pictures, nor the tables; nor what another program has measured.
        if let Some(name) = name.strip_suffix(".json").filter(|name| !["peers", "growth"].contains(name)) {
            koel.write(&format!("results/{name}.json"), bytes);
            names.push(name);
        }
    }
    assert!(names.contains(&"load") && names.contains(&"space"), "{names:?}");
    let run = koel.run(["experiment", "--out", "results"].into_iter().chain(names.iter().copied()));
    run.status(0);
    let cases: Vec<_> = run.stderr.lines().filter(|line| line.contains(" cases")).collect();
    assert!(cases.len() == names.len() && cases.iter().all(|line| line.contains("all of them measured before")), "{cases:?}");
    let drawn = files(&koel.path("results"));
    for (name, bytes) in &committed {
        if names.iter().any(|&of| name.strip_prefix(of).is_some_and(|rest| rest.starts_with(['.', '-']))) {
            assert!(drawn.get(name) == Some(bytes), "{name} is not what `koel experiment` makes of the numbers: run it again");
        }
    }
    for name in drawn.keys() {
        assert!(committed.contains_key(name), "{name} is not in docs/tuning");
    }
}

#[test]
fn the_document_shows_what_is_there() {
    let text = fs::read_to_string(docs().join("TUNING.md")).expect("the document");
    let committed = files(&docs().join("tuning"));
    let shown: Vec<_> = text.split("](tuning/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for name in shown {
        assert!(committed.contains_key(name), "docs/TUNING.md shows tuning/{name}, which is not there");
    }
}

/// A record says of every column of its table what it is.
#[test]
fn every_column_is_described() {
    let committed = files(&docs().join("tuning"));
    let tables: Vec<_> = committed.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".csv")?, bytes))).collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for (name, csv) in tables {
        let record: Value = serde_json::from_slice(&committed[&format!("{name}.json")]).expect("JSON");
        let columns = record["columns"].as_array().expect("a list");
        let described = |name: &str| {
            let column = columns.iter().find(|column| column["name"] == name);
            column.is_some_and(|column| column["about"].as_str().is_some_and(|about| !about.is_empty()))
        };
        let header = String::from_utf8_lossy(csv).lines().next().expect("a header").to_owned();
        let unknown: Vec<_> = header.split(',').filter(|column| !described(column)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}
