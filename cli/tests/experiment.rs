//! `koel experiment`: the files that it leaves, `sweep`, `compare`, and the results in docs/tuning. The tests of `lab` check the
//! measurements, and all states that another run may have left.

use std::{collections::BTreeMap, fs, path::Path};

use koel_lab::experiments;
use serde_json::Value;

use crate::common::{Koel, Run};

/// The command with the smallest tables only, because its results do not matter here.
const SMALL: &str = "experiment load --quick --max-slots 100";

/// Returns an experiment's record.
fn record(koel: &Koel, name: &str) -> Value {
    serde_json::from_slice(&koel.read(&format!("{name}.json"))).expect("JSON")
}

fn sweep(koel: &Koel, args: &str) -> Run {
    koel.run(&format!("experiment sweep --quick {args}"))
}

#[test]
fn errors_come_before_any_measurement() {
    let koel = Koel::new();
    koel.write("file", "");
    koel.shell("mkdir results; echo '{\"hello\": 1}' > results/speed.json").ok();
    let names: Vec<_> = experiments::all().into_iter().map(|about| about.name).collect();
    let all = names.join(", ") + ", all";
    koel.given("experiment").refuses(&[
        ("", &["NAME", &all, "`koel experiment --help` describes them"]),
        ("--quick", &["NAME", &all]),
        ("laod", &["'laod'", &all, "similar"]),
        ("load sweep", &["'sweep'", &all]),
        ("load --seed one", &["--seed", "'one'", "hexadecimal"]),
        ("load --threads 4097", &["--threads", "'4097'", "1 to 4096"]),
        ("load --max-slots few", &["--max-slots", "'few'", "whole number"]),
        ("load --max-slots 99 --out .", &["load: ", "--max-slots 99", "at least 100"]),
        ("all --max-slots 0 --out .", &["--max-slots 0", "at least"]),
        // Large enough for `load`, too small for `speed`, which comes later.
        ("load speed --quick --max-slots 600 --out .", &["speed: ", "--max-slots 600", "at least 683"]),
        ("load --quick --out file", &["folder file", "another --out"]),
        ("load --quick --out file/below", &["folder file/below", "another --out"]),
        ("load --quick --out=", &["--out <FOLDER>", "value is required"]),
        ("load --quick --slow", &["--slow"]),
        ("load --quick --out results", &["speed.json", "damaged", "delete the file"]),
    ]);
    koel.given("experiment sweep --quick --out .").refuses(&[
        ("--f 20..6", &["--f", "20..6", "give 6..20"]),
        ("--b", &["--b", "value is required"]),
        ("--b 0", &["none of the combinations", "bucket size: 0 given, but the packed table takes 4"]),
        ("--f 0", &["none of the combinations", "fingerprint bits: 0 given"]),
        ("--b 17..20", &["none of the combinations", "bucket size: 17 given, but the packed table takes 4"]),
        ("--load 0", &["--load", "'0'", "above 0 and at most 1"]),
        ("--items 0", &["--items", "a whole number from 1 to"]),
        ("--items 0.5", &["--items", "the nearest is 1"]),
        ("--items 1..100000:1", &["--items", "1..100000:1", "more than 1000 values", "larger step"]),
        ("--items 1000000000000000", &["sweep: ", "MiB", "fewer --items"]),
        ("--table packed,simple", &["--table", "'simple'", "single, packed"]),
        ("--measure space,time", &["--measure", "'time'", "space, fpr, load, speed"]),
        ("--table packed --f 2,3", &["sweep: ", "none of the combinations", "1 × fingerprint bits: 2 given", "takes 4 to 32"]),
        ("--items 1..1000:1 --load 0.01..1:0.01", &["100000", "200000", "fewer values"]),
        ("load", &["'load'"]),
    ]);
    assert_eq!(koel.shell("ls -A results").text(), "speed.json\n");
}

#[test]
fn results_are_kept_and_measured_again_only_on_request() {
    let koel = Koel::new();
    // A name that is given twice counts once.
    let small = |more: &str| koel.run(&format!("{SMALL} load --out new/results {more}"));
    let check = |more: &str, expected: &str| {
        let run = small(more);
        assert_eq!(run.status(0), b"new/results/report.html\n");
        assert_eq!(run.stderr, format!("load: 72 cases{expected}\n"));
    };
    check("--threads 1", "");
    let names = koel.shell("LC_ALL=C ls -A new/results").unbroken();
    assert_eq!(names, "load-bits.svg load-buckets.svg load-size.svg load.csv load.json report.html");
    let (csv, first) = (koel.read("new/results/load.csv"), record(&koel, "new/results/load"));
    assert_eq!((&first["complete"], &first["run"]["koel"]), (&true.into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(first["run"]["scope"], serde_json::json!({"quick": true, "seed": 1, "max_slots": 100}));
    assert_eq!(first["measured"].as_array().map(Vec::len), Some(72));

    check("--threads 2", ", all of them measured before");
    small("--seed 2").error(&["new/results", "another --out", "--again", "seed 1", "seed 2"]);
    // Results of another build are drawn, but do not count as results of this one.
    let build = &first["run"]["build"];
    let ours = build["program"].as_str().filter(|program| program.len() == 16).expect("a hash");
    let theirs = String::from_utf8(koel.read("new/results/load.json")).expect("JSON").replace(ours, "0123456789abcdef");
    koel.write("new/results/load.json", &theirs);
    let drawn = small("");
    assert_eq!(drawn.status(0), b"new/results/report.html\n");
    assert!(drawn.stderr.starts_with("load: 72 cases, all of them measured before by another build: "), "{}", drawn.stderr);
    assert!(drawn.stderr.ends_with(", program 0123456789abcdef\n"), "{}", drawn.stderr);
    assert!(koel.read("new/results/load.json") == theirs.as_bytes());
    check("--seed 0x2 --again", "");
    assert!(koel.read("new/results/load.csv") != csv);
    assert_eq!(record(&koel, "new/results/load")["run"]["scope"]["seed"], 2);
}

/// No measurement is lost, and the results are those of an uninterrupted run.
#[test]
#[cfg(unix)]
fn the_same_command_continues_after_a_signal_or_a_kill() {
    let koel = Koel::new();
    // The run is long enough to be stopped in the middle.
    let long = "experiment load --quick --max-slots 1000 --out parts";
    let file = koel.path("parts/load.json");
    // Returns the number of cases in the record, which is replaced as a whole.
    let saved = || {
        let record = fs::read(&file).ok().map(|text| serde_json::from_slice::<Value>(&text).expect("JSON"));
        record.and_then(|record| record["measured"].as_array().map(Vec::len)).unwrap_or(0)
    };
    let started = |more: &str| {
        let before = saved();
        let mut child = koel.spawn(&format!("{long} {more}"));
        while saved() <= before {
            assert!(child.try_wait().expect("a child").is_none(), "it ended too soon");
            std::thread::yield_now();
        }
        child
    };
    let stopped = |more: &str, meanwhile: &dyn Fn()| {
        let child = started(more);
        meanwhile();
        // Tests in the background of a script ignore Ctrl-C, and so does all that they start.
        koel.shell(&format!("kill -TERM {}", child.id())).ok();
        let run = Run::wait(child);
        assert_eq!(run.status(143), b"");
        run.stderr
    };
    let stderr = stopped("--again", &|| ());
    assert!(stderr.ends_with(" in parts, and the same command without --again continues\n"), "{stderr}");
    let stderr = stopped("--threads 2", &|| {
        koel.run(long).error(&["parts/load.lock", "another process", "wait", "another --out"]);
    });
    assert!(stderr.starts_with("load: 144 cases, "), "{stderr}");
    assert!(
        stderr.ends_with("\nkoel: interrupted; the results so far are in parts, and the same command continues\n"),
        "{stderr}"
    );
    let finished = saved();
    assert!((2..144).contains(&finished) && record(&koel, "parts/load")["complete"] == false, "{finished}");
    let mut child = started("");
    child.kill().expect("it is there");
    child.wait().expect("it is there");
    let before = saved();
    assert!((finished + 1..144).contains(&before), "{before}");
    let last = koel.run(long);
    assert_eq!(last.status(0), b"parts/report.html\n");
    assert_eq!(last.stderr, format!("load: 144 cases, {before} of them measured before\n"));
    koel.run(&long.replace("parts", "whole")).status(0);
    assert!(koel.read("parts/load.csv") == koel.read("whole/load.csv"));
    assert!(record(&koel, "parts/load")["measured"] == record(&koel, "whole/load")["measured"]);
    assert_eq!(koel.shell("ls -A parts").text(), koel.shell("ls -A whole").text());
}

/// The longest cases come first, so a run may be stopped before the first result.
#[test]
#[cfg(unix)]
fn a_run_that_is_stopped_at_once_says_so() {
    use std::io::Read as _;
    let koel = Koel::new();
    let mut child = koel.spawn("experiment load --max-slots 10000000 --out new");
    // It has begun.
    child.stderr.as_mut().expect("its messages").read_exact(&mut [0]).expect("a byte");
    koel.shell(&format!("kill -TERM {}", child.id())).ok();
    let run = Run::wait(child);
    assert_eq!(run.status(143), b"");
    assert!(run.stderr.ends_with("koel: interrupted; nothing has been measured yet\n"), "{}", run.stderr);
}

/// Results are written before charts. Only if they have been, the message says so.
#[test]
fn results_are_kept_if_a_chart_cannot_be_written() {
    let koel = Koel::new();
    let args = "--f 8,12 --items 100 --measure space --out out";
    std::fs::create_dir_all(koel.path("out/sweep-space-by-f.svg")).expect("a folder");
    let run = sweep(&koel, args);
    assert_eq!(run.status, 2);
    let message = "out/sweep-space-by-f.svg could not be written: Is a directory (os error 21); the results so far are in out, and the \
                   same command continues\n";
    assert!(run.stderr.ends_with(message), "{}", run.stderr);
    assert!(!run.stderr.contains(".tmp"), "{}", run.stderr);
    assert_eq!(record(&koel, "out/sweep")["measured"].as_array().map(Vec::len), Some(4));
    std::fs::remove_dir(koel.path("out/sweep-space-by-f.svg")).expect("a folder");
    assert!(sweep(&koel, args).text().contains("out/report.html"));
    std::fs::remove_file(koel.path("out/sweep.json")).expect("a file");
    std::fs::create_dir(koel.path("out/sweep.json")).expect("a folder");
    let refused = sweep(&koel, args);
    assert_eq!(refused.status, 2);
    assert!(!refused.stderr.contains("the results so far"), "{}", refused.stderr);
}

#[test]
fn sweep_has_one_row_per_combination_and_lists_those_left_out() {
    let koel = Koel::new();
    let args = "--table packed,single --b 2,4 --f 3..9:3 --load 0.5..0.7:0.1 --items 100 --measure fpr,space --seed 3 --out out";
    let run = sweep(&koel, args);
    assert_eq!(run.status(0), b"out/report.html\n");
    let left_out = "9 × bucket size: 2 given, but the packed table takes 4; give one of those; 3 × fingerprint bits: 3 given, but the \
                    packed table takes 4 to 32; give one of those";
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
    koel.shell("test -e out/sweep-fpr-by-f.svg -a -e out/sweep-space-by-load.svg").ok();

    // A larger sweep does not repeat measurements.
    let second = sweep(&koel, &args.replace("0.5..0.7:0.1", "0.5..0.8:0.1"));
    second.status(0);
    assert!(second.stderr.contains("sweep: 32 cases, 24 of them measured before\n"), "{}", second.stderr);
    // --again deletes old results and their charts, but no other files.
    koel.write("out/sweep-notes.svg", "mine");
    sweep(&koel, "--table packed --f 8..12 --load 0.5 --items 100 --measure space --out out --again").status(0);
    assert_eq!(koel.shell("cd out; ls *.svg").unbroken(), "sweep-notes.svg sweep-space-by-f.svg");
}

#[test]
fn compare_shows_differences_and_sets_the_exit_status() {
    let koel = Koel::new();
    for (out, args) in [("a", "--f 8,12"), ("noise", "--f 8,12 --seed 2"), ("b", "--f 12,16")] {
        sweep(&koel, &format!("--table packed --items 1000 --measure space,fpr,load --load 0.5,0.95 --out {out} {args}"))
            .status(0);
    }
    let same = koel.run("experiment compare a a").printed();
    assert!(same.starts_with("A: a\nB: a\n\nsweep: 4 cases in both; "), "{same}");
    let noise = koel.run("experiment compare a noise");
    noise.ok();
    assert!(noise.unbroken().contains(" Seed: 1 / 2 ") && noise.text().contains(" figures: 0 different, 0 unknown, "));

    // The changed record has a larger table with a higher rate.
    let mut changed = record(&koel, "b/sweep");
    let row = &mut changed["measured"][0]["rows"][0];
    row["bytes"] = (row["bytes"].as_u64().expect("a number") + 8).into();
    for name in ["rate", "rate_low", "rate_high"] {
        row[name] = (row[name].as_f64().expect("a number") * 3.0).into();
    }
    koel.write("b/sweep.json", changed.to_string());
    let run = koel.run("experiment compare a b");
    run.status(1);
    let only = "\n  only in A: {\"table\":\"packed\",\"b\":4,\"f\":8,";
    for part in ["sweep: 2 cases in both; ", "2 different", "  bytes, bytes", "  rate ", only] {
        assert!(run.text().contains(part), "no {part}: {}", run.text());
    }
    let object = koel.run("experiment compare a b --json");
    object.status(1);
    let object = object.json();
    let figures = object["experiments"][0]["figures"].as_array().expect("a list").iter();
    assert_eq!(figures.filter(|figure| figure["verdict"] == "different").count(), 2);
    // JSON has a name that is not UTF-8 as messages have it.
    #[cfg(target_os = "linux")]
    {
        let run =
            koel.shell("odd=$(printf 'r\\351s'); cp -r a \"$odd\"; koel experiment compare --json a \"$odd\"; rm -r \"$odd\"");
        assert_eq!(run.json()["folders"], serde_json::json!(["a", "r\u{fffd}s"]));
    }
    koel.given("experiment compare a").refuses(&[
        ("none", &["none"]),
        (".", &[".: no results here", "koel experiment"]),
        ("", &["<B>"]),
        ("b --time-tolerance 2", &["--time-tolerance", "'2'", "at most 100%"]),
    ]);
}

/// Returns the files of a folder, except those that the repository does not keep.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = entries.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    let kept = named.filter(|(name, _)| name != "report.html");
    kept.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

/// docs/tuning has the charts of its results, all columns of its tables are described, and docs/TUNING.md shows only existing
/// charts.
#[test]
fn charts_in_the_documents_match_their_results() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let committed = files(&docs.join("tuning"));
    let koel = Koel::new();
    for (name, csv) in committed.iter().filter_map(|(file, bytes)| Some((file.strip_suffix(".csv")?, bytes))) {
        let bytes = &committed[&format!("{name}.json")];
        let record: Value = serde_json::from_slice(bytes).expect("JSON");
        let columns = record["columns"].as_array().expect("a list");
        let is_described = |name: &str| columns.iter().any(|column| column["name"] == name && column["about"] != "");
        let header = String::from_utf8_lossy(csv).lines().next().expect("a header").to_owned();
        assert!(header.split(',').all(is_described), "{name}: {header}");
    }
    for about in experiments::all() {
        let name = about.name;
        let record = committed.get(&format!("{name}.json"));
        let record = record.unwrap_or_else(|| panic!("docs/tuning has no results of this experiment: run `docs/measure {name}`"));
        // The experiment gets its own folder, because a report shows all results of a folder.
        fs::create_dir(koel.path(name)).expect("a new folder");
        koel.write(&format!("{name}/{name}.json"), record);
        let run = koel.run(&format!("experiment --out {name} {name}"));
        assert!(
            run.status == 0 && run.stderr.contains(" cases, all of them measured before"),
            "docs/tuning/{name}.json is older than the experiment: run `docs/measure {name}`\n{}",
            run.stderr
        );
        let redraw =
            format!("run `cargo run --release -p koel-cli -- experiment {name} --out docs/tuning; docs/measure --records`");
        let drawn = files(&koel.path(name));
        let is_of_experiment = |file: &str| file.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', '-']));
        for (file, bytes) in &drawn {
            let there = committed.get(file);
            assert!(there == Some(bytes), "docs/tuning/{file} is not what the experiment writes from its results: {redraw}");
        }
        for file in committed.keys().filter(|file| is_of_experiment(file)) {
            assert!(drawn.contains_key(file), "docs/tuning/{file}: the experiment writes no such file: delete it, and {redraw}");
        }
    }

    let text = fs::read_to_string(docs.join("TUNING.md")).expect("the document");
    let shown: Vec<_> = text.split("](tuning/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for name in shown {
        assert!(committed.contains_key(name), "docs/TUNING.md shows tuning/{name}, which is not there");
    }
}
