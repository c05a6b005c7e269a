//! `koel experiment`: what it leaves, however it ends.

use crate::common::Koel;
use serde_json::Value;

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
            let id = format!("process {}, started at ", child.id());
            let second = LONG.into_iter().chain(["--out", "parts"]);
            koel.run(second).error(&["parts/load.partial.jsonl", &id, "wait", "another --out"]);
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
    std::fs::create_dir(koel.path("results")).expect("a new folder");
    koel.write("results/speed.json", "{\"hello\": 1}");
    let run = koel.run(SMALL.into_iter().chain(["--out", "results"]));
    run.error(&["speed.json", "damaged", "delete the file"]);
    assert_eq!(koel.shell("ls -A results").text(), "speed.json\n");
    // Files of others are no concern of ours.
    koel.shell("mv results/speed.json results/mine.json").ok();
    koel.run(SMALL.into_iter().chain(["--out", "results"])).status(0);
}
