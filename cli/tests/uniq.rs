//! `koel uniq` prints each line once, however its runs end.

use crate::common::{Koel, facts, numbers};

#[test]
fn lines_are_printed_once_across_runs() {
    let koel = Koel::new();
    koel.write("list", "alice\nbob\nalice\n\nbob\n");
    assert_eq!(koel.run("uniq list --filter seen.koel").ok(), b"alice\nbob\n\n");
    assert_eq!(koel.feed("bob\r\ncarol", "uniq --filter seen.koel").ok(), b"carol\n");
    assert_eq!(koel.run("uniq list --filter seen.koel").status(1), b"");
    assert_eq!(koel.feed("dave\nbob\nerin\n", "uniq - --filter seen.koel --count-only").ok(), b"2\n");
    assert_eq!(koel.feed("dave\n", "uniq --filter seen.koel --count-only").status(1), b"0\n");
    let facts = facts(&koel, "seen.koel");
    assert_eq!((&facts["format"], &facts["items"]), (&"koel-growing".into(), &6.into()));
    assert_eq!(facts["most_false_positive_rate"], 1e-6);
    // The help names this minimum.
    assert!((190_000..210_000).contains(&koel.read("seen.koel").len()));
    // Other commands can use the filter.
    assert_eq!(koel.run("query seen.koel --item erin --item frank").ok(), b"erin\n");
    koel.run("remove seen.koel --item bob").ok();
    assert_eq!(koel.feed("bob\n", "uniq --filter seen.koel").ok(), b"bob\n");
    assert_eq!(koel.names(), ["list", "seen.koel"]);
}

#[test]
fn key_compares_a_field_and_prints_whole_lines() {
    let koel = Koel::new();
    let log = "1 alice\n2 bob\n3 alice\n4 carol\n";
    assert_eq!(koel.feed(log, "uniq --filter seen.koel --key 2").ok(), b"1 alice\n2 bob\n4 carol\n");
    assert_eq!(koel.feed("dave,x\nbob,y\n", "uniq --filter seen.koel --key 1 --delimiter ,").ok(), b"dave,x\n");
    assert_eq!(koel.feed("a\nb\0c\0a\nb\0", "uniq --filter seen.koel --nul").ok(), b"a\nb\0c\0");
}

#[test]
fn no_line_is_lost_at_the_limit_of_the_filter() {
    let koel = Koel::new();
    let list = numbers(0..100_000);
    let all = koel.feed(&list, "uniq --filter seen.koel");
    assert!(all.ok() == list.as_bytes());
    // As the help says.
    assert!(koel.read("seen.koel").len() < 600_000);
    // A limit ends the run. The printed lines are remembered, and the next run prints the rest.
    let first = koel.feed(&list, "uniq --filter small.koel --max-bytes 64KiB");
    assert_eq!(first.status, 2, "{}", first.stderr);
    assert!(first.stderr.contains("of standard input") && first.stderr.contains("are remembered"), "{}", first.stderr);
    let second = koel.feed(&list, "uniq --filter small.koel");
    assert!([first.stdout, second.ok().to_vec()].concat() == list.as_bytes());
    // A full filter of fixed size ends the run, too.
    koel.feed("", "build - -o fixed.koel --capacity 100 --bits 32").ok();
    let first = koel.feed(&list, "uniq --filter fixed.koel");
    assert_eq!(first.status, 2, "{}", first.stderr);
    assert_eq!(facts(&koel, "fixed.koel")["items"], first.text().lines().count());
}

#[test]
fn mistakes_are_named() {
    let koel = Koel::with_filter("apple\n");
    koel.feed("", "uniq --filter seen.koel").status(1);
    koel.given("uniq").refuses(&[
        ("", &["--filter <FILTER>"]),
        ("--filter -", &["standard input", "give a file"]),
        ("no.txt --filter seen.koel", &["no.txt", "No such file"]),
        ("seen.koel --filter seen.koel", &["seen.koel", "both the list and the filter"]),
        ("--filter .", &[".: is a folder"]),
        ("--filter no/seen.koel", &["no folder no"]),
        ("--filter seen.koel --fpr 0.5", &["--fpr: 0.5 given", "0.000001", "leave --fpr out"]),
        ("--filter new.koel --fpr 2", &["--fpr", "2 given"]),
        ("--filter f.koel --max-bytes 1M", &["f.koel", "fixed size"]),
    ]);
    koel.feed("", "uniq --filter seen.koel --fpr 1e-6").status(1);
    koel.write("other.koel", "no filter");
    koel.run("uniq --filter other.koel").error(&["other.koel", "neither a koel snapshot"]);
    assert!(!koel.names().contains(&String::from("new.koel")));
}

/// A run that is killed or cannot print leaves the filter unchanged.
#[test]
#[cfg(unix)]
fn lines_that_were_not_printed_are_printed_by_the_next_run() {
    let koel = Koel::new();
    let run = koel.shell("seq 1000000 | koel uniq --filter seen.koel | head -n 1");
    assert_eq!(run.status(0), b"1\n");
    assert!(run.stderr.contains("seen.koel: is unchanged"), "{}", run.stderr);
    assert_eq!(koel.shell("seq 3 | koel uniq --filter seen.koel").ok(), b"1\n2\n3\n");
    let full =
        koel.shell("{ seq 9 | koel uniq --filter seen.koel > /dev/full || test $? = 2; }; seq 9 | koel uniq --filter seen.koel");
    assert_eq!(full.status(0), b"4\n5\n6\n7\n8\n9\n");
    let killed = koel.shell(
        "mkfifo lines; koel uniq lines --filter seen.koel > printed & exec 3> lines; echo ten >&3
         until grep -q ten printed; do :; done; kill -9 $!; wait $! || true; echo ten | koel uniq --filter seen.koel",
    );
    assert_eq!(killed.status(0), b"ten\n");
}

/// A signal that can be caught ends the run at once, even if more lines may come, and the filter has the printed lines.
#[test]
#[cfg(unix)]
fn an_interrupted_run_remembers_printed_lines() {
    // Under `nohup`, the tests and all that they start ignore a hang-up.
    let survivor = Koel::new().shell("{ sh -c 'kill -HUP $$; echo ignored'; } 2>/dev/null || true");
    let signals = ["INT", "TERM", "HUP"].into_iter().filter(|&signal| signal != "HUP" || survivor.text().is_empty());
    for signal in signals {
        let koel = Koel::new();
        let run = koel.shell(&format!(
            "mkfifo lines; koel uniq lines --filter seen.koel > printed & exec 3> lines; echo ten >&3
             until grep -q ten printed; do :; done; kill -{signal} $!; wait $! || echo $?
             printf 'ten\\neleven\\n' | koel uniq --filter seen.koel",
        ));
        assert_eq!(run.status(0), b"130\neleven\n", "{signal}");
    }
}

/// This holds even for the first two runs, which both find no filter.
#[test]
#[cfg(unix)]
fn concurrent_runs_print_no_line_twice() {
    let koel = Koel::new();
    for round in 0..5 {
        let run = koel.shell(&format!(
            "seq 20000 | koel uniq --filter {round}.koel > a & seq 10000 30000 | koel uniq --filter {round}.koel > b
             wait; sort -n a b | uniq | wc -l; cat a b | wc -l",
        ));
        let counts: Vec<_> = run.text().split_whitespace().map(String::from).collect();
        assert_eq!(counts, ["30000", "30000"], "{round}: {}", run.stderr);
    }
}

#[test]
#[cfg(unix)]
fn a_hang_up_that_is_ignored_stays_ignored() {
    let koel = Koel::new();
    let run = koel.shell(
        "mkfifo lines; trap '' HUP; koel uniq lines --filter seen.koel > printed & exec 3> lines; echo ten >&3
         until grep -q ten printed; do :; done; kill -HUP $!; echo eleven >&3; exec 3>&-; wait $!; cat printed",
    );
    assert_eq!(run.status(0), b"ten\neleven\n");
}
