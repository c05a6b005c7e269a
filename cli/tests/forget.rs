//! `koel uniq --forget` forgets lines on time, and never prints one too early, however its runs end. Variables of the environment replace
//! the clock, and kill a run: builds with debug assertions read them.

#![cfg(debug_assertions)]

use std::collections::HashMap;

use crate::common::{Koel, Run, data, facts, numbers, value_after};

/// A moment at which slices of every length begin, in seconds since 1970.
const START: i64 = 1_800_000_000;

/// A shell's command for a run whose first line arrives this many seconds after the start, and the others as many seconds apart.
fn at(second: i64, apart: u64) -> String {
    format!("KOEL_CLOCK={}+{apart} koel uniq --filter seen", START + second)
}

/// Runs a shell's command with this input.
fn feed(koel: &Koel, input: impl AsRef<[u8]>, command: &str) -> Run {
    koel.write("input", input);
    koel.shell(&format!("{command} < input"))
}

#[test]
fn lines_are_forgotten_within_the_stated_slack() {
    let koel = Koel::new();
    let lines = |second, lines: &str, options: &str| {
        let run = feed(&koel, lines, &format!("{} {options}", at(second, 1)));
        assert_eq!(run.stderr, "", "{second}");
        run.text()
    };
    assert_eq!(lines(0, "a\nb\na\n", "--forget 1h"), "a\nb\n");
    // The folder knows the time.
    assert_eq!(lines(3600, "a\n", ""), "");
    assert_eq!(lines(3600 + 300, "b\n", ""), "b\n");
    // That `a` was seen again counts.
    assert_eq!(lines(2 * 3600, "a\n", "--forget 60m"), "");
    assert_eq!(lines(3 * 3600 + 300, "a\nb\n", ""), "a\nb\n");
    // A run may be longer than the window.
    let list = "x\n".repeat(50) + "y\n" + &"x\n".repeat(50) + "y\n";
    assert_eq!(feed(&koel, &list, &at(20_000, 100)).ok(), b"x\ny\ny\n");
    assert_eq!(feed(&koel, "x\ny\nz\n", &at(20_000 + 101 * 100, 0)).ok(), b"z\n");
}

/// A folder of an earlier version, with a journal that a killed run left, goes on to remember its lines.
#[test]
fn a_golden_folder_is_read() {
    let koel = Koel::new();
    koel.shell("mkdir seen").ok();
    for name in
        ["20270115T080000Z-300s.koel", "20270115T080500Z-300s.koel", "20270115T081000Z-300s.koel", "20270115T081000Z-300s.hashes"]
    {
        koel.write(&format!("seen/{name}"), data(&format!("window/{name}")));
    }
    let found = facts(&koel, "seen");
    assert_eq!((&found["items"], &found["items_in_journals"]), (&3.into(), &1.into()), "{found}");
    koel.run("verify seen").ok();
    // `c` and `d` came 300 and 600 seconds after `a` and `b`.
    assert_eq!(feed(&koel, "a\nb\nc\nd\ne\n", &at(3600, 0)).ok(), b"e\n");
    assert!(!koel.shell("ls seen").text().contains("hashes"));
}

/// Runs of many lines and any length print exactly those that were in none of the last 13 slices.
#[test]
fn runs_agree_with_a_model() {
    let koel = Koel::new();
    let (mut last_slice, mut second, mut state) = (HashMap::new(), 0, 1_u64);
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for run in 0..8 {
        let apart = [0, 3, 17, 60, 100][usize::try_from(random(5)).expect("an index")];
        second += [0, 59, 700, 800][usize::try_from(random(4)).expect("an index")];
        let lines: Vec<_> = (0..100).map(|_| format!("{}\n", random(50).pow(2) / 30)).collect();
        let mut expected = String::new();
        let mut time = second;
        for line in &lines {
            let slice = time / 60;
            let is_seen = last_slice.insert(line.clone(), slice).is_some_and(|last| slice - last <= 12);
            expected += if is_seen { "" } else { line };
            time += apart;
        }
        let input = lines.concat();
        let command = format!("{} --forget 12m || test $? = 1", at(i64::try_from(second).expect("a time"), apart));
        let printed = koel.shell(&format!("printf '{input}' | {{ {command}; }}"));
        assert_eq!((printed.text(), &*printed.stderr), (expected, ""), "run {run}");
        second = time;
    }
}

/// The folder keeps its rate exactly, so that it can be given again.
#[test]
fn a_rate_may_be_given_or_not() {
    for rate in ["1e-6", "0.001", "0.0007", "1/3", "0.9"] {
        let koel = Koel::new();
        for (second, options) in [(0, &*format!("--forget 1h --fpr {rate}")), (1000, ""), (2000, &*format!("--fpr {rate}"))] {
            feed(&koel, numbers(0..2), &format!("{} {options} || test $? = 1", at(second, 1000))).status(0);
        }
    }
}

#[test]
fn nothing_is_kept_without_a_folder() {
    let koel = Koel::new();
    let run = feed(&koel, "a\nb\na\na\nb\n", "KOEL_CLOCK=0+5 koel uniq --forget 12s --summary");
    assert_eq!(run.status(0), b"a\nb\nb\n");
    assert!(run.stderr.contains("\nfilter           not kept, 3 items (tables of "), "{}", run.stderr);
    assert_eq!(koel.names(), ["input"]);
}

#[test]
fn the_clock_of_the_system_is_used() {
    let koel = Koel::new();
    assert_eq!(koel.feed("a\na\n", "uniq --forget 7d --filter seen").ok(), b"a\n");
    assert_eq!(koel.feed("a\nb\n", "uniq --filter seen").ok(), b"b\n");
    // If the clock goes back, lines are remembered for longer.
    let run = feed(&koel, "a\nb\nc\n", "KOEL_CLOCK=0+0 koel uniq --filter seen");
    assert_eq!(run.status(0), b"c\n");
    assert!(run.stderr.contains("which is in the future for this machine's clock"), "{}", run.stderr);
}

#[test]
fn info_and_verify_understand_the_folder() {
    let koel = Koel::new();
    feed(&koel, numbers(0..1000), &format!("{} --forget 1h", at(0, 1))).ok();
    let found = facts(&koel, "seen");
    assert_eq!((&found["format"], &found["items"], &found["filters"]), (&"koel-window".into(), &1000.into(), &4.into()));
    assert_eq!((&found["forgets_after_seconds"], &found["items_in_journals"]), (&3600.into(), &0.into()));
    assert_eq!((&found["from"], &found["to"]), (&"2027-01-15T08:00:00Z".into(), &"2027-01-15T08:20:00Z".into()));
    let rate = found["false_positive_rate"].as_f64().expect("a rate");
    assert!(rate > 0.0 && rate <= 1e-6, "{rate}");
    let line = koel.run("verify seen").text();
    assert!(line.starts_with("seen: ok: folder of koel uniq --forget, 1000 items, 4 filters, forgets after 1h, "), "{line}");
    assert!(koel.run("info seen").text().contains("\nforgets after    1h to 1h 5m\n"), "{}", koel.run("info seen").text());
    // Each file is an ordinary snapshot.
    let name = "20270115T080500Z-300s.koel";
    assert_eq!(koel.run(["query", &format!("seen/{name}"), "--item", "400", "--item", "1"]).ok(), b"400\n");
    let mut bad = koel.read(&format!("seen/{name}"));
    bad[100] ^= 1;
    koel.write(&format!("seen/{name}"), bad);
    koel.run("verify seen").error(&[name, "at byte "]);
    koel.run("uniq --filter seen").error(&[name, "at byte "]);
    let remedy = "; to go on without the lines in this file, remove it\n";
    let damaged = koel.read(&format!("seen/{name}"));
    for bytes in [&damaged[..], &damaged[..200], &damaged[..20], &damaged[..3], b""] {
        koel.write(&format!("seen/{name}"), bytes);
        koel.run("verify seen").error(&[name, remedy]);
        koel.run("uniq --filter seen").error(&[name, remedy]);
    }
}

/// A remedy that loses lines is only for damaged files.
#[test]
#[cfg(unix)]
fn errors_about_reading_a_good_file_do_not_suggest_to_remove_it() {
    let koel = Koel::new();
    feed(&koel, "a\n", &format!("{} --forget 1h", at(0, 1))).ok();
    for command in ["query seen --item a", "info seen", "uniq --filter seen"] {
        let run = koel.run_with("foo", command);
        run.error(&["koel: KOEL_KERNEL: foo given"]);
        assert!(!run.stderr.contains("remove"), "{}", run.stderr);
    }
    // The system does not open a link to itself.
    let name = "20270115T080000Z-300s.koel";
    koel.shell(&format!("rm seen/{name}; ln -s {name} seen/{name}")).ok();
    let refused = koel.run("uniq --filter seen");
    refused.error(&[&format!("seen/{name}: cannot be read")]);
    assert!(!refused.stderr.contains("remove"), "{}", refused.stderr);
}

#[test]
fn another_time_or_rate_or_folder_is_refused() {
    let koel = Koel::new();
    koel.write("list", "a\n");
    koel.run("uniq list --filter seen --forget 1h").ok();
    koel.run("build list -o file.koel").ok();
    std::fs::create_dir(koel.path("empty")).expect("a folder");
    std::fs::create_dir(koel.path("other")).expect("a folder");
    koel.write("other/README", "");
    koel.given("uniq list --filter").refuses(&[
        ("seen --forget 2h", &["--forget: 2h given, but seen forgets after 1h; leave --forget out"]),
        ("seen --fpr 0.001", &["--fpr: 0.001 given, but seen was built for 1e-6; leave --fpr out"]),
        ("seen --count", &["--count: is not for filters that forget"]),
        ("new --forget 1h --repeated", &["--repeated: is not for filters that forget"]),
        ("new --forget 1h --fpr 1e-9", &["--fpr: 1e-9 given, but a filter with --forget keeps rates from"]),
        ("new --forget 1h --fpr 7", &["--fpr: 7 given"]),
        ("new --forget 3600", &["--forget", "with its unit, from 1s"]),
        ("no/new --forget 1h", &["no/new: cannot be created as a folder"]),
        ("file.koel --forget 1h", &["file.koel: is not a folder, which --forget takes"]),
        ("empty", &["empty: is a folder"]),
        ("other --forget 1h", &["other: has other files, such as README"]),
        (". --forget 1h", &["has other files"]),
        ("new --forget 1h no.txt", &["no.txt: cannot be read"]),
    ]);
    koel.run("uniq list --filter seen --fpr 1e-6 --forget 1h").status(1);
    for command in ["add", "remove"] {
        koel.run(&format!("{command} seen --item a"))
            .error(&["seen: is a folder of `koel uniq --forget`, which no other command changes"]);
    }
    // No other command writes to the folder, or to its files.
    let names = || {
        let names = std::fs::read_dir(koel.path("seen")).expect("a folder").map(|entry| entry.expect("an entry").file_name());
        names.map(|name| name.into_string().expect("UTF-8")).collect::<Vec<_>>()
    };
    let files = names();
    let slice = files.iter().find(|name| name.strip_suffix(".koel").is_some()).expect("a slice");
    let before = koel.read(&format!("seen/{slice}"));
    for command in [
        "build list -o",
        "build list --grow -o",
        "merge file.koel file.koel -o",
        "convert file.koel --to koel -o",
        "uniq list --filter",
        "add --item a",
        "man",
    ] {
        for (path, message) in [
            ("seen", "is a folder of `koel uniq --forget`, which no other command changes; give the name of another filter"),
            (
                &format!("seen/{slice}"),
                "is in a folder of `koel uniq --forget`, which no other command changes; give a name in another folder",
            ),
            ("seen/new.koel", "is in a folder of `koel uniq --forget`"),
            (slice, "has the name of a file that only `koel uniq --forget` changes; give another name, such as that of a copy"),
        ] {
            if command != "uniq list --filter" || path != "seen" {
                koel.run(&format!("{command} {path}")).error(&[path, message]);
            }
        }
    }
    // Nor through a link, even if it leads to no file yet.
    #[cfg(unix)]
    for target in [format!("seen/{slice}"), String::from("seen/new.koel")] {
        koel.shell(&format!("ln -s {target} near; ln -s near link")).ok();
        koel.run("build list -o link").error(&["link: is in a folder of `koel uniq --forget`"]);
        koel.shell("rm near link").ok();
    }
    koel.write("log", "insert a\n");
    for command in
        ["demo --keep seen", "tune --trace log --fpr 0.1 --out seen", "experiment load --quick --max-slots 1000 --out seen"]
    {
        koel.run(command).error(&["seen: is a folder of `koel uniq --forget`, which no other command changes"]);
    }
    assert!(koel.read(&format!("seen/{slice}")) == before && names() == files);
    koel.run("uniq list --filter seen").status(1);
    koel.shell(&format!("cd seen && koel convert {slice} --to koel -o - > ../converted.koel")).status(0);
    assert!(koel.read("converted.koel") == before);
    std::fs::copy(koel.path(&format!("seen/{slice}")), koel.path("copy.koel")).expect("a copy");
    koel.run("add copy.koel --item b").ok();
    // A rate is named as it was given, although each filter has a thirteenth of it.
    for rate in ["1e-7", "2e-7", "5e-8", "0.00123"] {
        koel.run(&format!("uniq list --filter {rate} --forget 1h --fpr {rate}")).ok();
        let built = format!("but {rate} was built for {rate};");
        koel.run(&format!("uniq list --filter {rate} --fpr 1e-6")).error(&[&built]);
    }
    // The lowest rate that the message names is possible.
    let low = koel.run("uniq list --filter lowest --forget 1h --fpr 1e-9");
    let lowest = value_after(&low.stderr, "keeps rates from ");
    koel.run(&format!("uniq list --filter lowest --forget 1h --fpr {lowest}")).ok();
    // Each file of the folder is one that this command writes.
    for (file, copy, message) in [
        ("file.koel", "seen/20270115T080000Z-300s.koel", "was not written by `koel uniq --forget`; remove it from the folder"),
        ("list", "seen/20270115T080000Z-300s.koel", "neither a koel snapshot nor"),
        ("file.koel", "seen/20270115T080000Z-10s.koel", "seen: has slices of "),
    ] {
        std::fs::copy(koel.path(file), koel.path(copy)).expect("a copy");
        koel.run("uniq list --filter seen").error(&[message]);
        koel.run("verify seen").error(&[message]);
        std::fs::remove_file(koel.path(copy)).expect("a file");
    }
    koel.run("uniq list --filter empty --forget 1h --fpr 1e-4").ok();
    assert!(facts(&koel, "empty")["false_positive_rate"].as_f64().is_some_and(|rate| rate < 1e-4));
}

/// The seconds between two lines of a story.
const APART: u64 = 30;

/// Returns lines of a run that takes several slices. Some fill the buffer of standard output, and one is longer.
fn story() -> Vec<String> {
    let [long, other, longer] = [("x", 40_000), ("y", 40_000), ("z", 70_000)].map(|(letter, times)| letter.repeat(times));
    ["a", "b", &long, &other, "a", &longer, &long, "c", "d", "a"].map(String::from).to_vec()
}

/// Returns the printed lines with the seconds at which they were read. The first one was read at `second`.
#[track_caller]
fn with_times(story: &[String], second: u64, printed: &[u8]) -> Vec<(String, u64)> {
    let mut times = story.iter().zip(0..).map(|(line, place)| (line, second + place * APART));
    let printed = String::from_utf8_lossy(printed).into_owned();
    let found = printed.lines().map(|line| times.find(|(read, _)| *read == line).map(|(_, time)| (line.to_owned(), time)));
    found.collect::<Option<_>>().expect("lines in the order of the story")
}

/// A run is killed at each step, while it forgets the lines of an earlier one. The next run begins when it would have ended, and prints
/// no line that it has printed: lines are remembered for 720 seconds.
#[test]
fn no_line_is_printed_too_early_after_a_kill() {
    let story = story();
    let text = story.join("\n") + "\n";
    let mut printed_again = Vec::new();
    for step in 1.. {
        let koel = Koel::new();
        koel.write("list", &text);
        feed(&koel, "old\nolder\n", &format!("{} --forget 12m", at(-750, 30))).ok();
        let command = format!("KOEL_ABORT_AT={step} {} list --forget 12m > first || echo killed", at(0, APART));
        let is_killed = koel.shell(&command).text() == "killed\n";
        // Queries know all lines that were printed, those of a killed run from its journal.
        let absent = koel.run("query seen first -v");
        assert!(absent.stdout.is_empty() && (absent.status == 1 || koel.read("first").is_empty()), "{step}: {}", absent.stderr);
        let second = feed(&koel, &text, &format!("{} --forget 12m", at(300, APART)));
        assert_eq!((second.status, &*second.stderr), (i32::from(second.stdout.is_empty()), ""), "{step}");
        let (first, second) = (with_times(&story, 0, &koel.read("first")), with_times(&story, 300, &second.stdout));
        for (line, time) in &second {
            let before = first.iter().chain(&second).filter(|(other, before)| other == line && before < time);
            let last = before.map(|(_, before)| *before).max();
            assert!(last.is_none_or(|last| time - last > 720), "killed at step {step}: {line:.9} at {time}, printed at {last:?}");
        }
        // Nothing but filters is left, and the lock of the killed run.
        let entries = std::fs::read_dir(koel.path("seen")).expect("a folder");
        let names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        assert!(names.iter().all(|name| name.ends_with("s.koel") || is_killed && name == "lock"), "{step}: {names:?}");
        koel.run("verify seen").ok();
        printed_again.push(second.len());
        if !is_killed {
            break;
        }
    }
    // The first run is killed before its first line, at many steps, and at last not any more.
    assert_eq!((printed_again.first(), printed_again.last()), (Some(&7), Some(&0)), "{printed_again:?}");
    assert!(printed_again.len() > 25, "{printed_again:?}");
}

/// The next run prints the lines that the reader did not take.
#[test]
#[cfg(target_os = "linux")]
fn lines_that_were_not_printed_are_forgotten() {
    let koel = Koel::new();
    feed(&koel, "old\n", &format!("{} --forget 1h", at(0, 0))).ok();
    for sink in ["> /dev/full", "| true"] {
        let run = koel.shell(&format!("{{ seq 20000; echo old; }} | {{ {} || echo $? >&2; }} {sink}", at(1, 0)));
        let forgets = run.stderr.contains("koel: seen: lines that were not printed are forgotten; the next run prints them\n");
        assert!(forgets || sink == "| true", "{sink}: {}", run.stderr);
    }
    let run = koel.shell(&format!("seq 20000 | {} | head -n 1 > first; koel verify seen -q", at(1, 0)));
    assert_eq!(run.status(0), b"", "{}", run.stderr);
    assert_eq!(feed(&koel, "old\n20000\n", &at(1, 0)).ok(), b"20000\n");
}

/// If a slice or its journal cannot be written, what was printed is remembered, and nothing else.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_no_line() {
    let koel = Koel::new();
    feed(&koel, numbers(0..5000), &format!("{} --forget 1h", at(0, 0))).ok();
    // The snapshot of the first slice is longer than the limit, also when the run tries again at its end.
    let run = koel.shell(&format!("ulimit -f 8; printf 'x\\ny\\nz\\n' | {{ {} || echo $?; }}", at(0, 200)));
    assert_eq!(run.status(0), b"x\ny\n2\n");
    assert!(run.stderr.contains("20270115T080000Z-300s.koel: ") && run.stderr.contains("File too large"), "{}", run.stderr);
    assert_eq!(facts(&koel, "seen")["items_in_journals"], 2);
    assert!(koel.run("verify seen").text().contains(" 5000 items and 2 more in journals, "));
    assert_eq!(feed(&koel, "x\ny\n4000\nz\n", &at(400, 0)).ok(), b"z\n");
    // The journal cannot be written beyond the limit.
    let run = koel.shell(&format!("ulimit -f 8; seq 9000 20000 | {{ {} || echo $? >&2; }}", at(400, 0)));
    assert!(run.stderr.contains("20270115T080500Z-300s.hashes: cannot be written: File too large"), "{}", run.stderr);
    let next = feed(&koel, numbers(9000..20_001), &at(400, 0));
    assert!(run.text() + &next.text() == numbers(9000..20_001), "{}", run.text().len());
}

/// The limit is that of all filters together, and a higher one lets the next run go on.
#[test]
fn memory_has_a_limit() {
    let koel = Koel::new();
    let refused = koel.run("uniq --filter seen --forget 1h --max-bytes 5000");
    refused.error(&["koel: --max-bytes: 5000 given, but 13 empty filters take up to ", "; give more"]);
    assert!(koel.names().is_empty());
    let least = value_after(&refused.stderr, "take up to ");
    let first = koel.feed(numbers(0..10_000), &format!("uniq --filter seen --forget 1h --max-bytes {least}"));
    assert_eq!(first.status, 2);
    assert!(
        first.stderr.contains("its share of --max-bytes; give a higher --max-bytes; the lines before it are"),
        "{}",
        first.stderr
    );
    let second = koel.feed(numbers(0..10_000), "uniq --filter seen");
    assert_eq!(first.text() + &second.text(), numbers(0..10_000));
}

/// Signals end a run as without --forget.
#[test]
fn an_interrupted_run_remembers_printed_lines() {
    let koel = Koel::new();
    let run = koel.shell(
        "mkfifo lines; koel uniq lines --filter seen --forget 1h > printed & exec 3> lines; echo ten >&3
         until grep -q ten printed; do :; done; kill -TERM $!; wait $! || echo $?
         printf 'ten\\neleven\\n' | koel uniq --filter seen; ls seen | grep -c koel",
    );
    assert_eq!(run.status(0), b"143\neleven\n1\n");
    // A kill is no different, because the line was remembered before it was printed.
    let run = koel.shell(
        "koel uniq lines --filter seen > printed & exec 3> lines; echo twelve >&3
         until grep -q twelve printed; do :; done; kill -9 $!; wait $! || echo $?
         printf 'twelve\\nthirteen\\n' | koel uniq --filter seen",
    );
    assert_eq!(run.status(0), b"137\nthirteen\n");
}
