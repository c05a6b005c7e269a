//! `koel experiment`: what it leaves, however it ends; any parameters with `sweep`; two folders with `compare`; and what docs/tuning has.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::{Koel, Run};

/// The smallest tables only, since the time it takes does not matter here.
const SMALL: &str = "experiment load --quick --max-slots 100";

/// An experiment's record.
fn record(koel: &Koel, name: &str) -> Value {
    serde_json::from_slice(&koel.read(&format!("{name}.json"))).expect("JSON")
}

#[test]
fn mistakes_are_named_before_anything_is_measured() {
    let koel = Koel::new();
    koel.write("file", "");
    koel.given("experiment").refuses(&[
        ("", &["NAME", "load", "speed", "all", "--help"]),
        ("--quick", &["NAME", "load", "speed", "all"]),
        ("laod", &["'laod'", "load", "speed", "all", "similar"]),
        ("load sweep", &["'sweep'", "load, space, fpr, speed, all"]),
        ("load --seed one", &["--seed", "'one'", "hexadecimal"]),
        ("load --threads 4097", &["--threads", "'4097'", "1 to 4096"]),
        ("load --max-slots few", &["--max-slots", "'few'", "whole number"]),
        ("load --max-slots 99", &["load: ", "--max-slots 99", "at least 100"]),
        ("all --max-slots 0", &["--max-slots 0", "at least"]),
        ("load --quick --out file", &["folder file", "another --out"]),
        ("load --quick --out file/below", &["folder file/below", "another --out"]),
        ("load --quick --out=", &["--out <FOLDER>", "value is required"]),
        ("load --quick --slow", &["--slow"]),
    ]);
    // Large enough for `load`, too small for `speed`, which comes later.
    koel.run("experiment load speed --quick --max-slots 600").error(&["speed: ", "--max-slots 600", "at least 683"]);
    koel.shell("test -z \"$(ls -A koel-experiments)\"").ok();
}

#[test]
fn a_run_leaves_all_its_files_and_says_where_the_page_is() {
    let koel = Koel::new();
    // Names that come twice are one.
    let run = koel.run(&format!("{SMALL} load --out new/results"));
    assert_eq!(run.status(0), b"new/results/report.html\n");
    assert_eq!(run.stderr, "load: 72 cases\n");
    let names = koel.shell("ls -A new/results").text();
    let names: Vec<_> = names.lines().filter(|&name| name != "report.html").collect();
    let svgs = ["load-bits.svg", "load-buckets.svg", "load-size.svg"];
    assert_eq!(names, [&svgs[..], &["load.csv", "load.json"]].concat());
    for name in svgs {
        assert!(koel.read(&format!("new/results/{name}")).starts_with(b"<svg "), "{name}");
    }
    let record = record(&koel, "new/results/load");
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

/// The laboratory's tests of plans have what other builds left unfinished.
#[test]
fn what_was_measured_is_not_measured_again_unless_it_is_wanted() {
    let koel = Koel::new();
    let small = |more: &str| koel.run(&format!("{SMALL} {more}"));
    small("--threads 1").status(0);
    let (csv, first) = (koel.read("koel-experiments/load.csv"), record(&koel, "koel-experiments/load"));
    let second = small("--threads 2");
    assert_eq!(second.status(0), b"koel-experiments/report.html\n");
    assert_eq!(second.stderr, "load: 72 cases, all of them measured before\n");
    assert!(koel.read("koel-experiments/load.csv") == csv);
    // Another run's results are neither mixed with these nor lost.
    small("--seed 2").error(&["koel-experiments", "another --out", "--again", "seed 1", "seed 2"]);
    koel.run("experiment load --max-slots 100").error(&["another --out", "--again", "a quick run", "a full run"]);
    assert!(record(&koel, "koel-experiments/load") == first);
    // What another build measured is drawn, but not taken for this one's.
    let ours = first["run"]["build"]["program"].as_str().expect("a hash");
    let theirs = String::from_utf8(koel.read("koel-experiments/load.json")).expect("JSON").replace(ours, "0123456789abcdef");
    koel.write("koel-experiments/load.json", &theirs);
    let drawn = small("");
    assert_eq!(drawn.status(0), b"koel-experiments/report.html\n");
    assert!(drawn.stderr.starts_with("load: 72 cases, all of them measured before by another build: "), "{}", drawn.stderr);
    assert!(drawn.stderr.ends_with(", program 0123456789abcdef\n"), "{}", drawn.stderr);
    assert!(koel.read("koel-experiments/load.json") == theirs.as_bytes());
    let again = small("--seed 0x2 --again");
    again.status(0);
    assert_eq!(again.stderr, "load: 72 cases\n");
    assert!(koel.read("koel-experiments/load.csv") != csv);
    assert_eq!(record(&koel, "koel-experiments/load")["run"]["scope"]["seed"], 2);
}

#[cfg(unix)]
mod stopped {
    use std::{
        fs,
        process::{Child, Command, Stdio},
        thread,
    };

    use super::*;
    use crate::common::{Args as _, KOEL};

    /// Long enough for anything to happen in the middle of it.
    const LONG: &str = "experiment load --quick --max-slots 1000 --out";
    const CASES: usize = 144;

    /// A run into a folder, at its work: so many cases have been finished by this one.
    fn started(koel: &Koel, more: &str, finished: usize) -> Child {
        let before = journal(koel);
        let mut command = Command::new(KOEL);
        command.args(format!("{LONG} parts {more}").as_str().list()).current_dir(koel.path(""));
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
        record(koel, "parts/load")["measured"].as_array().map_or(0, Vec::len)
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
            scope.spawn(|| koel.run(&format!("{LONG} whole --threads 1")).status(0).len());

            let child = started(&koel, "--threads 2", 1);
            koel.run(&format!("{LONG} parts")).error(&["parts/load.partial.jsonl", "another process", "wait", "another --out"]);
            let (status, stdout, stderr) = interrupt(child);
            assert_eq!((status, stdout.as_str()), (Some(130), ""), "{stderr}");
            let told = "koel: interrupted; the results so far are in parts, and the same command continues\n";
            assert_eq!(stderr, format!("load: {CASES} cases\n{told}"));
            assert_eq!((journal(&koel), record(&koel, "parts/load")["complete"].as_bool()), (0, Some(false)));
            let finished = known(&koel);
            assert!((1..CASES).contains(&finished), "{finished}");
            assert!(!koel.path("parts/load.partial.jsonl").exists());

            let mut child = started(&koel, "", 3);
            child.kill().expect("it is there");
            child.wait().expect("it is there");
            let more = journal(&koel);
            assert!(more >= 3 && known(&koel) == finished);

            let last = koel.run(&format!("{LONG} parts"));
            assert_eq!(last.status(0), b"parts/report.html\n");
            assert_eq!(last.stderr, format!("load: {CASES} cases, {} of them measured before\n", finished + more));
        });
        assert!(koel.read("parts/load.csv") == koel.read("whole/load.csv"));
        assert!(record(&koel, "parts/load")["measured"] == record(&koel, "whole/load")["measured"]);
        assert_eq!(koel.shell("ls -A parts").text(), koel.shell("ls -A whole").text());
    }

    #[test]
    fn again_is_not_to_be_said_again() {
        let koel = Koel::new();
        let (status, _, stderr) = interrupt(started(&koel, "--again", 1));
        assert_eq!(status, Some(130));
        assert!(stderr.ends_with(" in parts, and the same command without --again continues\n"), "{stderr}");
    }
}

#[test]
fn what_cannot_be_part_of_the_page_is_named_before_anything_is_measured() {
    let koel = Koel::new();
    fs::create_dir(koel.path("results")).expect("a new folder");
    koel.write("results/speed.json", "{\"hello\": 1}");
    koel.run(&format!("{SMALL} --out results")).error(&["speed.json", "damaged", "delete the file"]);
    assert_eq!(koel.shell("ls -A results").text(), "speed.json\n");
    // Files of others are no concern of ours.
    koel.shell("mv results/speed.json results/mine.json").ok();
    koel.run(&format!("{SMALL} --out results")).status(0);
}

fn sweep(koel: &Koel, args: &str) -> Run {
    koel.run(&format!("experiment sweep --quick {args}"))
}

#[test]
fn mistakes_in_lists_are_named_before_anything_is_measured() {
    let koel = Koel::new();
    koel.given("experiment sweep --quick --out .").refuses(&[
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
    ]);
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
    assert_eq!(lines[0], format!("sweep: leaves out 12 combinations: {left_out}"));
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
fn what_was_not_measured_is_empty() {
    let koel = Koel::new();
    // Buckets of one slot are half full at best.
    sweep(&koel, "--table single --b 1 --load 0.9 --items 1000 --measure space,fpr,load,speed --out out").status(0);
    let row = &record(&koel, "out/sweep")["measured"][0]["rows"][0];
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

#[test]
fn what_differs_is_shown_and_is_the_exit_status() {
    let koel = Koel::new();
    for (out, args) in [("a", "--f 8,12"), ("same", "--f 8,12"), ("noise", "--f 8,12 --seed 2"), ("b", "--f 12,16")] {
        sweep(&koel, &format!("--table packed --items 1000 --measure space,fpr,load --load 0.5,0.95 --out {out} {args}"))
            .status(0);
    }
    let same = koel.run("experiment compare a same");
    same.ok();
    assert!(same.text().starts_with("A: a\nB: same\n\nsweep: 4 cases in both; "), "{}", same.text());
    let noise = koel.run("experiment compare a noise");
    noise.ok();
    assert!(noise.unbroken().contains(" Seed: 1 / 2 ") && noise.text().contains(" figures: 0 different, 0 unknown, "));

    // A table that takes more space, and finds more.
    let mut changed = record(&koel, "b/sweep");
    let row = &mut changed["measured"][0]["rows"][0];
    row["bytes"] = (row["bytes"].as_u64().expect("a number") + 8).into();
    for name in ["rate", "rate_low", "rate_high"] {
        row[name] = (row[name].as_f64().expect("a number") * 3.0).into();
    }
    koel.write("b/sweep.json", changed.to_string());
    let run = koel.run("experiment compare a b");
    run.status(1);
    for part in [
        "sweep: 2 cases in both; ",
        "2 different",
        "  bytes, bytes",
        "  rate ",
        "\n  only in A: {\"table\":\"packed\",\"b\":4,\"f\":8,",
    ] {
        assert!(run.text().contains(part), "no {part}: {}", run.text());
    }
    let object = koel.run("experiment compare a b --json");
    object.status(1);
    let object = object.json();
    let figures = object["experiments"][0]["figures"].as_array().expect("a list").iter();
    assert_eq!(figures.filter(|figure| figure["verdict"] == "different").count(), 2);
    koel.given("experiment compare a").refuses(&[
        ("none", &["none"]),
        (".", &[".: no results here", "koel experiment"]),
        ("", &["<B>"]),
        ("b --time-tolerance 2", &["--time-tolerance", "'2'", "at most 100%"]),
    ]);
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
    let run = koel.run(&format!("experiment --out results {}", names.join(" ")));
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

/// And a record says of every column of its table what it is.
#[test]
fn the_document_shows_what_is_there() {
    let text = fs::read_to_string(docs().join("TUNING.md")).expect("the document");
    let committed = files(&docs().join("tuning"));
    let shown: Vec<_> = text.split("](tuning/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for name in shown {
        assert!(committed.contains_key(name), "docs/TUNING.md shows tuning/{name}, which is not there");
    }
    let tables: Vec<_> = committed.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".csv")?, bytes))).collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for (name, csv) in tables {
        let record: Value = serde_json::from_slice(&committed[&format!("{name}.json")]).expect("JSON");
        let columns = record["columns"].as_array().expect("a list");
        let is_described = |name: &str| columns.iter().any(|column| column["name"] == name && column["about"] != "");
        let header = String::from_utf8_lossy(csv).lines().next().expect("a header").to_owned();
        let unknown: Vec<_> = header.split(',').filter(|column| !is_described(column)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}
