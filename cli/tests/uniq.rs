//! `koel uniq` prints each line once, however its runs end.

use crate::common::{Koel, facts, numbers, value_after};

#[test]
fn lines_are_printed_once_across_runs() {
    let koel = Koel::new();
    koel.write("list", "alice\nbob\nalice\n\nbob\n");
    assert_eq!(koel.run("uniq list --filter seen.koel").ok(), b"alice\nbob\n\n");
    assert_eq!(koel.feed("bob\r\ncarol", "uniq --filter seen.koel").ok(), b"carol\n");
    // The filter keeps its rate.
    assert_eq!(koel.run("uniq list --filter seen.koel --fpr 1e-6").status(1), b"");
    assert_eq!(koel.feed("dave\nbob\nerin\n", "uniq - --filter seen.koel --count-only").ok(), b"2\n");
    assert_eq!(koel.feed("dave\n", "uniq --filter seen.koel --count-only").status(1), b"0\n");
    let facts = facts(&koel, "seen.koel");
    assert_eq!((&facts["format"], &facts["items"]), (&"koel-growing".into(), &6.into()));
    assert_eq!(facts["most_false_positive_rate"], 1e-6);
    // A few lines take little more than the header.
    assert!(koel.read("seen.koel").len() < 300);
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

/// A short line never ends a run unless that is asked for.
#[test]
fn short_lines_are_passed_left_out_or_errors() {
    let koel = Koel::new();
    let list = "1 a\n\n2 b\n3\n4 a\n\n";
    let run = koel.feed(list, "uniq --key 2 --filter seen.koel");
    assert_eq!(run.status(0), b"1 a\n\n2 b\n3\n\n");
    let note = "koel: 3 lines of standard input have no field 2, line 2 first; they are new, and not remembered; --short skip";
    assert!(run.stderr.starts_with(note), "{}", run.stderr);
    // An explicit choice needs no note, and no short line is remembered.
    assert_eq!(koel.feed(list, "uniq --key 2 --short pass --filter seen.koel").ok(), b"\n3\n\n");
    assert_eq!(facts(&koel, "seen.koel")["items"], 2);
    assert_eq!(koel.feed(list, "uniq --key 2 --short skip --filter seen.koel").status(1), b"");
    assert_eq!(koel.feed("\n5 c\n6\n", "uniq --key 2 --short skip --filter seen.koel").ok(), b"5 c\n");
    // The number of new lines is that of the printed ones.
    assert_eq!(koel.feed(list, "uniq --key 2 --short pass --count-only").ok(), b"5\n");
    assert_eq!(koel.feed("\n", "uniq --key 2 --short pass").ok(), b"\n");
    // Printed lines are remembered, and the next run goes on after the error.
    let ended = koel.feed("7 d\n8\n9 e\n", "uniq --key 2 --short error --filter seen.koel");
    assert_eq!(ended.status(2), b"7 d\n");
    assert!(ended.stderr.starts_with("koel: line 2 of standard input: has 1 field, but --key is 2; "), "{}", ended.stderr);
    assert!(ended.stderr.ends_with("; the lines before it are remembered\n"), "{}", ended.stderr);
    assert_eq!(koel.feed("7 d\n9 e\n", "uniq --key 2 --filter seen.koel").ok(), b"9 e\n");
}

/// The other commands leave short lines out, or end with an error that names this option.
#[test]
fn short_lines_are_the_same_in_every_command() {
    let koel = Koel::new();
    koel.write("list.txt", "1 a\n\n2 b\n3\n4 a\n");
    let built = koel.run("build list.txt -o f.koel --key 2 --short skip").printed();
    let expected = "\n  distinct        2 of 3\n  left out        2 lines of list.txt have no field 2, line 2 first\n";
    assert!(built.contains(expected), "{built}");
    let added = koel.run("add f.koel list.txt --key 2 --short skip --unique").text();
    assert!(added.starts_with("0 added, 3 skipped as already present; 3 in f.koel now"), "{added}");
    assert!(added.ends_with("; 2 lines of list.txt have no field 2, line 2 first\n"), "{added}");
    let removed = koel.run("remove f.koel list.txt --key 2 --short skip");
    assert!(removed.ok().starts_with(b"3 removed, 0 not found; 0 in f.koel now"), "{}", removed.text());
    koel.feed("a\n", "build - -o f.koel").ok();
    for (options, lines) in [
        ("--absent --short pass", "\n2 b\n3\n"),
        ("--absent --short skip", "2 b\n"),
        ("--short pass", "1 a\n4 a\n"),
        ("--short skip", "1 a\n4 a\n"),
    ] {
        assert_eq!(koel.run(&format!("query f.koel list.txt --key 2 {options}")).ok(), lines.as_bytes(), "{options}");
    }
    let noted = koel.run("query f.koel list.txt --key 2 --absent --count");
    assert_eq!(noted.status(0), b"3\n");
    assert_eq!(
        noted.stderr,
        "koel: 2 lines of list.txt have no field 2, line 2 first; they count as absent; --short skip leaves out such lines\n"
    );
    let tuned = koel.run("tune --keys list.txt --fpr 1% --key 2 --short skip").text();
    assert!(tuned.contains("--key 2 --short skip"), "{tuned}");
}

#[test]
fn lines_are_forgotten_without_a_filter() {
    let koel = Koel::new();
    for _ in 0..2 {
        assert_eq!(koel.feed("a\nb\na\n", "uniq").ok(), b"a\nb\n");
    }
    assert_eq!(koel.feed("", "uniq").status(1), b"");
    assert_eq!(koel.feed("a\na\n", "uniq --count-only").ok(), b"1\n");
    assert!(koel.names().is_empty());
}

/// `mktemp` makes such a file.
#[test]
fn an_empty_file_is_a_new_filter() {
    let koel = Koel::new();
    koel.write("seen.koel", "");
    #[cfg(unix)]
    koel.shell("chmod 600 seen.koel; ln -s seen.koel link").ok();
    let name = if cfg!(unix) { "link" } else { "seen.koel" };
    assert_eq!(koel.feed("a\nb\n", &format!("uniq --filter {name} --fpr 0.001")).ok(), b"a\nb\n");
    assert_eq!(koel.feed("b\nc\n", "uniq --filter seen.koel").ok(), b"c\n");
    assert_eq!(facts(&koel, "seen.koel")["most_false_positive_rate"], 0.001);
    #[cfg(unix)]
    assert_eq!(koel.shell("test -L link; ls -l seen.koel").text().split(' ').next(), Some("-rw-------"));
    // It is one even if no line is new.
    koel.write("other.koel", "");
    koel.feed("", "uniq --filter other.koel").status(1);
    assert_eq!(facts(&koel, "other.koel")["items"], 0);
}

#[test]
fn a_summary_follows_on_request() {
    let koel = Koel::new();
    let run = koel.feed("1 a\n2 b\n3 a\n4\n", "uniq --key 2 --filter seen.koel --summary --short pass --count-only");
    assert_eq!(run.status(0), b"3\n");
    let expected = "lines            4
  new            3
  short          1, without the field of --key; counted as new
  seen before    1
filter           seen.koel, 2 items (tables of ";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    let (_, rate) = run.stderr.split_once("\nfalse positives  ").expect("a rate");
    assert!(rate.ends_with('\n') && rate.contains(" %, one in "), "{rate}");
    let run = koel.feed("1 a\n\n5 e\n", "uniq --key 2 --short skip --filter seen.koel --summary");
    assert_eq!(run.status(0), b"5 e\n");
    assert!(run.stderr.starts_with("lines            3\n  new            1\n  short          1, "), "{}", run.stderr);
    assert!(run.stderr.contains("left out\n  seen before    1\nfilter           seen.koel, 3 items"), "{}", run.stderr);
    // It comes before an error, too.
    let run = koel.feed("6 f\n\n", "uniq --key 2 --short error --filter seen.koel --summary");
    assert_eq!(run.status(2), b"6 f\n");
    let expected = "lines            2\n  new            1\n  short          1, without the field of --key; an error\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains("\nkoel: line 2 of standard input"), "{}", run.stderr);
    let run = koel.feed("a\na\n", "uniq --summary");
    assert!(
        run.stderr.starts_with("lines            2\n  new            1\n  seen before    1\nfilter           not kept, 1 item (")
    );
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
    let first = koel.feed(&list, "uniq --filter small.koel --max-bytes 300kB --summary");
    assert_eq!(first.status, 2, "{}", first.stderr);
    assert!(first.stderr.contains("\n  seen before    0\nfilter           small.koel, "), "{}", first.stderr);
    assert!(first.stderr.contains("of standard input") && first.stderr.contains("are remembered"), "{}", first.stderr);
    let second = koel.feed(&list, "uniq --filter small.koel");
    assert!([first.stdout, second.ok().to_vec()].concat() == list.as_bytes());
    // A full filter of fixed size ends the run, too.
    koel.feed("", "build - -o fixed.koel --capacity 100 --bits 32").ok();
    let first = koel.feed(&list, "uniq --filter fixed.koel");
    assert_eq!(first.status, 2, "{}", first.stderr);
    assert_eq!(facts(&koel, "fixed.koel")["items"], first.text().lines().count());
}

/// A run that is killed or cannot print leaves the filter unchanged.
#[test]
#[cfg(unix)]
fn lines_that_were_not_printed_are_printed_by_the_next_run() {
    let koel = Koel::new();
    let run = koel.shell("seq 1000000 | koel uniq --filter seen.koel | head -n 1");
    assert_eq!(run.status(0), b"1\n");
    assert!(run.stderr.contains("seen.koel: was not written"), "{}", run.stderr);
    let closed = koel.shell("{ seq 1000000 | koel uniq --filter seen.koel || echo $? >&2; } | head -n 1");
    assert_eq!((closed.status(0), closed.stderr.lines().last()), (&b"1\n"[..], Some("141")), "{}", closed.stderr);
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

/// The signals that a shell sends, and the status of what they end. The tests, and all that they start, ignore a hang-up under `nohup`,
/// and Ctrl-C as a background job of a script.
#[cfg(unix)]
fn signals() -> impl Iterator<Item = (&'static str, i32)> {
    let is_ignored = |signal: &str| {
        let survivor = Koel::new().shell(&format!("{{ sh -c 'kill -{signal} $$; echo ignored'; }} 2>/dev/null || true"));
        !survivor.text().is_empty()
    };
    [("INT", 130), ("TERM", 143), ("HUP", 129)].into_iter().filter(move |&(signal, _)| !is_ignored(signal))
}

/// Waits for the end of a process, and returns the status that shells report for the signal that ended it, if one did.
#[cfg(unix)]
fn ended_by(child: &mut std::process::Child) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    child.wait().expect("its end").signal().map(|signal| 128 + signal)
}

/// A signal that can be caught ends the run at once, even if more lines may come, and the filter has the printed lines.
#[test]
#[cfg(unix)]
fn an_interrupted_run_remembers_printed_lines() {
    use std::io::{Read as _, Write as _};
    for (signal, status) in signals() {
        let koel = Koel::new();
        let mut child = koel.spawn("uniq --filter seen.koel --summary");
        // It stays open.
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(b"ten\n").expect("a reader");
        child.stdout.as_mut().expect("its output").read_exact(&mut [0; 4]).expect("a line");
        koel.shell(&format!("kill -{signal} {}", child.id())).ok();
        assert_eq!(ended_by(&mut child), Some(status), "{signal}");
        let mut summary = String::new();
        child.stderr.take().expect("its messages").read_to_string(&mut summary).expect("a summary");
        assert!(summary.starts_with("lines            1\n  new            1\n"), "{signal}: {summary}");
        assert_eq!(koel.feed("ten\neleven\n", "uniq --filter seen.koel").ok(), b"eleven\n", "{signal}");
    }
}

/// A signal before the first line is no different: it leaves an empty filter. So is one while the command waits for another one.
#[test]
#[cfg(unix)]
fn an_interrupted_run_without_lines_has_the_same_status() {
    for (signal, status) in signals() {
        let koel = Koel::new();
        let mut child = koel.spawn("uniq --filter seen.koel");
        // It stays open.
        let _stdin = child.stdin.take();
        while !koel.path("seen.koel").exists() {
            std::thread::yield_now();
        }
        koel.shell(&format!("kill -{signal} {}", child.id())).ok();
        assert_eq!(ended_by(&mut child), Some(status), "{signal}");
        assert_eq!(koel.feed("ten\n", "uniq --filter seen.koel").ok(), b"ten\n", "{signal}");
    }
}

/// A signal ends the other commands without a change. Shells report 128 plus its number.
#[test]
#[cfg(unix)]
fn an_interrupted_command_changes_nothing() {
    use std::{fs::OpenOptions, io::Write as _};
    for (signal, status) in signals() {
        for command in ["build lines -o f.koel", "add f.koel lines", "remove f.koel lines", "query f.koel lines", "uniq lines"] {
            let koel = Koel::with_filter("ten\n");
            koel.shell("mkfifo lines").ok();
            let before = koel.read("f.koel");
            let mut child = koel.spawn(command);
            let mut lines = OpenOptions::new().write(true).open(koel.path("lines")).expect("a reader");
            lines.write_all(b"ten\n").expect("a reader");
            koel.shell(&format!("kill -{signal} {}", child.id())).ok();
            assert_eq!(ended_by(&mut child), Some(status), "{command}, {signal}");
            assert!(koel.read("f.koel") == before && koel.names() == ["f.koel", "lines"], "{command}, {signal}");
        }
    }
}

/// Writers often end a block within a line. The lines before it do not wait for its end, nor for the end of lines that are left out.
#[test]
fn lines_are_printed_while_the_next_one_is_incomplete() {
    use std::io::{Read as _, Write as _};
    let koel = Koel::with_filter("alice\n");
    for (command, block) in [
        ("uniq", "alice\nali"),
        ("uniq --filter seen.koel", "alice\nali"),
        ("uniq --filter folder --forget 1h", "alice\nali"),
        ("query f.koel", "alice\nali"),
        ("uniq --key 1 --short skip", "alice\n\n"),
        ("query f.koel --key 1 --short skip", "alice\n\n"),
        ("uniq --csv --key 1", "alice\n\"b\n"),
        ("query f.koel --csv --key 1", "alice\n\"b\nc\n"),
    ] {
        let mut child = koel.spawn(command);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (mut stdin, mut stdout) = (stdin.expect("its input"), stdout.expect("its output"));
        stdin.write_all(block.as_bytes()).expect("a reader");
        let mut line = [0; 6];
        stdout.read_exact(&mut line).expect("a line");
        assert_eq!(&line, b"alice\n", "{command}");
        // Close the quote, if there is one.
        stdin.write_all(if command.contains("csv") { b"\"\n" } else { b"" }).expect("a reader");
        drop(stdin);
        assert!(child.wait().expect("its end").success(), "{command}");
    }
}

/// A second signal does not wait for a reader that does not read.
#[test]
#[cfg(unix)]
fn a_second_signal_ends_a_run_that_cannot_print() {
    use std::{io::Read as _, os::unix::process::ExitStatusExt as _};
    let koel = Koel::new();
    koel.feed("old\n", "uniq --filter seen.koel").ok();
    let before = koel.read("seen.koel");
    // The run blocks in the middle of a line that is longer than the pipe's buffer.
    koel.write("list", "x".repeat(4 << 20));
    let mut child = koel.spawn("uniq list --filter seen.koel");
    let mut stdout = child.stdout.take().expect("its output");
    stdout.read_exact(&mut [0]).expect("a byte");
    let ended = loop {
        koel.shell(&format!("kill -TERM {}", child.id())).ok();
        if let Some(ended) = child.try_wait().expect("a process") {
            break ended;
        }
    };
    assert_eq!(ended.signal(), Some(15));
    assert!(koel.read("seen.koel") == before);
}

/// This holds even for the first two runs, which both find no filter.
#[test]
#[cfg(unix)]
fn concurrent_runs_print_no_line_twice() {
    let koel = Koel::new();
    for (filter, options) in [("1", ""), ("2", ""), ("3", ""), ("4", ""), ("5", ""), ("folder", "--forget 1h")] {
        let uniq = format!("koel uniq --filter {filter} {options}");
        let run = koel.shell(&format!(
            "seq 20000 | {uniq} > a & seq 10000 30000 | {uniq} > b
             wait; sort -n a b | uniq | wc -l; cat a b | wc -l",
        ));
        let counts: Vec<_> = run.text().split_whitespace().map(String::from).collect();
        assert_eq!(counts, ["30000", "30000"], "{filter}: {}", run.stderr);
    }
}

/// As `nohup` ignores a hang-up, and a script Ctrl-C for what it starts in the background.
#[test]
#[cfg(unix)]
fn a_signal_that_is_ignored_stays_ignored() {
    for signal in ["HUP", "INT"] {
        let koel = Koel::new();
        let run = koel.shell(&format!(
            "mkfifo lines; trap '' {signal}; koel uniq lines --filter seen.koel > printed & exec 3> lines; echo ten >&3
             until grep -q ten printed; do :; done; kill -{signal} $!; echo eleven >&3; exec 3>&-; wait $!; cat printed",
        ));
        assert_eq!(run.status(0), b"ten\neleven\n", "{signal}");
    }
}

/// The number is printed before the filter is written.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_leaves_the_filter_unchanged() {
    let koel = Koel::new();
    koel.feed("old\n", "uniq --filter seen.koel").ok();
    let before = koel.read("seen.koel");
    for count in ["--count-only", ""] {
        for (sink, said) in
            [("> /dev/full", "standard output: No space left"), (">&-", "standard output: is not open for writing")]
        {
            for filter in ["seen.koel", "new.koel"] {
                let run = koel.shell(&format!("seq 99 | {{ koel uniq --filter {filter} {count} {sink} || echo $? >&2; }}"));
                assert!(run.stderr.contains(said) && run.stderr.ends_with("\n2\n"), "{sink} {count}: {}", run.stderr);
                assert!(koel.read("seen.koel") == before && koel.names() == ["seen.koel"], "{sink} {count}");
            }
        }
        // The reader has closed the pipe before the command has anything to print.
        let run = koel.shell(&format!(
            "mkfifo lines closed; {{ koel uniq lines --filter seen.koel {count} || echo $? >&2; }} > closed & {{ :; }} < closed
             seq 99 > lines; wait; rm lines closed",
        ));
        assert!(run.stderr.starts_with("koel: seen.koel: is unchanged; ") && run.stderr.ends_with("\n141\n"), "{}", run.stderr);
        assert!(koel.read("seen.koel") == before, "{count}");
    }
    assert_eq!(koel.shell("seq 99 | koel uniq --filter seen.koel --count-only").ok(), b"99\n");
    // Without a filter, no line is lost.
    let run = koel.shell(
        "mkfifo lines closed; { koel uniq lines --count-only && echo 0 >&2; } > closed & { :; } < closed; seq 9 > lines; wait",
    );
    assert_eq!(run.stderr, "0\n");
}

/// The number of the lines that are remembered is always printed.
#[test]
fn a_count_comes_before_an_error() {
    let koel = Koel::new();
    let run = koel.feed("1 a\n2 b\n\n3 c\n", "uniq --key 2 --short error --count-only --filter seen.koel");
    assert_eq!(run.status(2), b"2\n", "{}", run.stderr);
    assert!(run.stderr.ends_with("; the lines before it are remembered\n"), "{}", run.stderr);
    let run = koel.feed(numbers(0..100_000), "uniq --max-bytes 300kB --count-only --filter small.koel");
    run.status(2);
    assert_eq!(run.text(), format!("{}\n", facts(&koel, "small.koel")["items"]));
    assert_eq!(koel.feed("a\na\n\n", "uniq --key 1 --short error --count-only").status(2), b"1\n");
    koel.run("uniq no.txt --count-only").error(&["no.txt"]);
}

/// The numbers of the lines so far come before the signal, too. The pipe holds a few of these lines, so when all have been
/// written, most have been read.
#[test]
#[cfg(unix)]
fn an_interrupted_run_prints_its_counts() {
    for option in ["--count-only", "-c"] {
        let koel = Koel::new();
        let run = koel.shell(&format!(
            "mkfifo lines; koel uniq {option} lines --filter seen.koel > counts & exec 3> lines; yes ten | head -n 200000 >&3
             kill -TERM $!; wait $! || echo $?; exec 3>&-; cat counts",
        ));
        let text = run.text();
        let counts = text.strip_prefix("143\n").expect("the status of the signal");
        if option == "-c" {
            let count = counts.strip_suffix(" ten\n").and_then(|count| count.trim_start().parse().ok());
            assert!(count.is_some_and(|count| (1..=200_000).contains(&count)), "{counts}");
        } else {
            assert_eq!(counts, format!("{}\n", facts(&koel, "seen.koel")["items"]));
        }
    }
}

/// A run that fails before its first line leaves no trace.
#[test]
fn a_failed_run_creates_no_filter() {
    let koel = Koel::new();
    koel.write("list.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    koel.write("short.txt", "\n1 a\n");
    koel.write("empty", "");
    let before = koel.names();
    for filter in ["new.koel", "empty"] {
        for rest in ["no.txt", "list.gz", "short.txt --key 2 --short error", "short.txt --max-bytes 1k", "short.txt --fpr 7"] {
            let run = koel.run(&format!("uniq {rest} --filter {filter}"));
            run.error(&[]);
            assert!(!run.stderr.contains("remembered"), "{}", run.stderr);
            assert!(koel.names() == before && koel.read("empty").is_empty(), "{rest} --filter {filter}");
        }
    }
    // A run without lines is a success, and makes a filter.
    koel.feed("", "uniq --filter new.koel").status(1);
    assert_eq!(facts(&koel, "new.koel")["items"], 0);
}

#[test]
#[cfg(unix)]
fn the_target_of_a_link_is_created() {
    let koel = Koel::new();
    koel.shell("mkdir far; ln -s far/target far.koel; ln -s far.koel link.koel").ok();
    koel.run("uniq no.txt --filter link.koel").error(&["no.txt"]);
    assert!(!koel.path("far/target").exists());
    assert_eq!(koel.feed("a\n", "uniq --filter link.koel").ok(), b"a\n");
    assert_eq!(facts(&koel, "far/target")["items"], 1);
    koel.shell("test -L link.koel && test -L far.koel").ok();
}

#[test]
fn a_limit_below_the_smallest_filter_is_refused() {
    let koel = Koel::new();
    for filter in ["", "--filter seen.koel"] {
        let refused = koel.feed(numbers(0..9), &format!("uniq {filter} --max-bytes 1KiB"));
        refused.error(&["koel: --max-bytes: 1024 given, but an empty filter takes up to ", "; give more"]);
        assert!(koel.names().is_empty());
    }
    let refused = koel.run("uniq --max-bytes 0 --filter seen.koel");
    let least = value_after(&refused.stderr, "takes up to ").parse::<usize>().expect("a number");
    // The help names this minimum.
    assert!((1500..=1600).contains(&least), "{least}");
    koel.run(&format!("uniq --max-bytes {} --filter seen.koel", least - 1)).error(&["--max-bytes"]);
    let list = numbers(0..1_000_000);
    let first = koel.feed(&list, &format!("uniq --max-bytes {least} --filter seen.koel"));
    first.status(2);
    assert!(koel.read("seen.koel").len() <= least);
    // A filter that is larger already is used, but does not grow.
    let second = koel.feed(&list, "uniq --max-bytes 0 --filter seen.koel");
    assert_eq!(second.status(2), b"");
    let taken = value_after(&second.stderr, "seen.koel: takes ").parse::<usize>().expect("a number");
    let note = format!("koel: seen.koel: takes {taken} bytes already, and --max-bytes is 0, so it does not grow\n");
    assert!(second.stderr.starts_with(&note) && taken <= least, "{}", second.stderr);
    // The least limit has room for a line.
    koel.feed("0\n", "uniq --max-bytes 0 --filter seen.koel --count-only").status(1);
}

/// As `uniq -d` prints them: each once, but as soon as it is repeated.
#[test]
fn repeated_lines_are_printed_once() {
    let koel = Koel::new();
    assert_eq!(koel.feed("a\nb\na\na\nb\nc\n", "uniq -d").ok(), b"a\nb\n");
    assert_eq!(koel.feed("a\nb\n", "uniq --repeated").status(1), b"");
    assert_eq!(koel.feed("a\nb\na\n", "uniq -d --count-only").ok(), b"1\n");
    // With a filter, lines of earlier runs count, also of those without the option.
    assert_eq!(koel.feed("a\nb\nb\n", "uniq --filter seen.koel").ok(), b"a\nb\n");
    assert_eq!(koel.feed("c\na\na\n", "uniq -d --filter seen.koel").ok(), b"a\n");
    assert_eq!(koel.feed("a\nc\nb\n", "uniq -d --filter seen.koel").ok(), b"c\nb\n");
    assert_eq!(koel.feed("a\nb\nc\n", "uniq -d --filter seen.koel").status(1), b"");
}

/// `uniq` prints the same, for sorted lines.
#[test]
#[cfg(unix)]
fn counts_are_those_of_uniq() {
    let koel = Koel::new();
    koel.write("list", "to\nbe\nor\nnot\nto\nbe\n\n  \n\n\n");
    for options in ["-c", "-d", "-u", "-cd", "-cu", "-ci"] {
        let run = koel.shell(&format!("sort list | uniq {options} | sort > expected; koel uniq {options} list | sort"));
        assert_eq!(run.text().into_bytes(), koel.read("expected"), "{options}: {}", run.stderr);
    }
    assert_eq!(koel.run("uniq -c list").ok(), b"      2 to\n      2 be\n      1 or\n      1 not\n      3 \n      1   \n");
    assert_eq!(koel.run("uniq -u list --count-only").ok(), b"3\n");
    assert_eq!(koel.feed("a\na\n", "uniq -u").status(1), b"");
    koel.given("uniq").refuses(&[("-u -d", &["cannot be used with"]), ("-c --count-only", &["cannot be used with"])]);
    // With a filter, the counts are those of all runs, but only lines of this run are printed.
    assert_eq!(koel.feed("a\nb\na\n", "uniq -c --filter seen.koel").ok(), b"      2 a\n      1 b\n");
    assert_eq!(koel.feed("b\nc\nb\n", "uniq -c --filter seen.koel").ok(), b"      3 b\n      1 c\n");
    assert_eq!(koel.feed("a\nd\n", "uniq -u --filter seen.koel").ok(), b"d\n");
    // Short lines are not counted.
    let run = koel.feed("1 x\n2\n3 x\n2\n", "uniq -c --key 2 --summary");
    assert_eq!(run.status(0), b"      2 1 x\n      1 2\n      1 2\n");
    let expected = "lines            4\n  new            3\n  short          2, without the field of --key; counted as new\n  \
                    seen before    1\nprinted          3\n";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}

/// Counts of many lines are exact at the default rate, and their memory has a limit.
#[test]
fn counts_are_never_too_low() {
    let koel = Koel::new();
    let list: String = [numbers(0..30_000), numbers(0..10_000), numbers(0..100)].concat();
    for (rate, most) in [("1e-6", 1), ("0.01", 600)] {
        let counted = koel.feed(&list, &format!("uniq -c --fpr {rate}")).text();
        let mut wrong = 0;
        for line in counted.lines() {
            let (count, number) = line.trim_start().split_once(' ').expect("a count");
            let [count, number]: [u32; 2] = [count, number].map(|text| text.parse().expect("a number"));
            let expected = 1 + u32::from(number < 10_000) + u32::from(number < 100);
            assert!(count >= expected, "{line}");
            wrong += u32::from(count > expected);
        }
        assert!(wrong < most && counted.lines().count() + most as usize > 30_000, "{rate}: {wrong}");
    }
    // At the limit, the lines until then are printed and remembered.
    let run = koel.feed(&list, "uniq -c --max-bytes 100kB --filter seen.koel");
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("give a higher --max-bytes; the lines before it are remembered"), "{}", run.stderr);
    assert_eq!(facts(&koel, "seen.koel")["items"], run.text().lines().count());
}

/// Lines that cannot be kept are neither printed nor remembered.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_for_temporary_files_is_an_error() {
    let koel = Koel::new();
    let run = koel.shell("printf 'a\n' | { TMPDIR=/no/such koel uniq -c || test $? = 2; }");
    assert!(run.stderr.starts_with("koel: /no/such: no file can be created in this folder"), "{}", run.stderr);
    let run = koel.shell("ulimit -f 8; seq 100000 | { TMPDIR=$PWD koel uniq -c --filter seen.koel || test $? = 2; }");
    assert!(run.stderr.contains("; set TMPDIR to another folder: File too large"), "{}", run.stderr);
    assert!(run.status(0).is_empty() && koel.names().is_empty(), "{:?}", koel.names());
}

#[test]
fn several_files_are_read_one_after_another() {
    let koel = Koel::new();
    koel.write("one", "a\nb\n");
    koel.write("two", "b\nc");
    koel.write("three", "c\n\n4 d\n");
    assert_eq!(koel.run("uniq one two three").ok(), b"a\nb\nc\n\n4 d\n");
    assert_eq!(koel.feed("x\na\n", "uniq one - two --count-only").ok(), b"4\n");
    assert_eq!(koel.run("uniq -c two one two").ok(), b"      3 b\n      2 c\n      1 a\n");
    // Lines are counted in each file.
    let run = koel.run("uniq one three two --key 2 --short error --filter seen.koel");
    run.error(&["koel: line 1 of one: has 1 field"]);
    let run = koel.run("uniq three one --key 2");
    assert!(run.stderr.starts_with("koel: 2 lines of three have no field 2, line 1 first; "), "{}", run.stderr);
    assert!(run.stderr.contains("\nkoel: 2 lines of one have no field 2, line 1 first; "), "{}", run.stderr);
    // A missing file is found before anything is printed.
    koel.run("uniq one no.txt").error(&["no.txt: cannot be read: No such file"]);
    koel.run("uniq two --filter seen.koel").ok();
    koel.run("uniq one seen.koel --filter seen.koel").error(&["seen.koel: cannot be both the list and the filter"]);
}

#[test]
fn case_may_be_ignored() {
    let koel = Koel::new();
    assert_eq!(koel.feed("Alice\nALICE\nalice\nBob\n", "uniq -i").ok(), b"Alice\nBob\n");
    assert_eq!(koel.feed("1 \u{c4}rger\n2 \u{e4}RGER\n", "uniq --ignore-case --key 2").ok(), "1 \u{c4}rger\n".as_bytes());
    // Other commands have the option, too.
    koel.feed("Alice\nBob\n", "build - -o f.koel -i").ok();
    assert_eq!(koel.feed("ALICE\nCarol\n", "query f.koel -i").ok(), b"ALICE\n");
    assert_eq!(koel.run("query f.koel -i --item BOB").ok(), b"BOB\n");
    assert_eq!(koel.run("query f.koel --item alice").ok(), b"alice\n");
    assert!(koel.run("remove f.koel --item BOB -i").text().starts_with("1 removed, 0 not found"));
}

#[test]
fn several_keys_are_one_item() {
    let koel = Koel::new();
    let log = "1 a x\n2 a y\n3 a x\n4 b x\n";
    assert_eq!(koel.feed(log, "uniq --key 2,3").ok(), b"1 a x\n2 a y\n4 b x\n");
    assert_eq!(koel.feed(log, "uniq --key 3 --key 2 --keys-only").ok(), b"x a\ny a\nx b\n");
    assert_eq!(koel.feed(log, "uniq --key 2 --keys-only -c").ok(), b"      3 a\n      1 b\n");
    assert_eq!(koel.feed("A;1\na;1\nx\n", "uniq --key 2,1 --delimiter ; -i --keys-only --short pass").ok(), b"1;A\nx\n");
    koel.feed(log, "build - -o f.koel --key 2,3").ok();
    assert_eq!(koel.feed("b x\nx b\n", "query f.koel").ok(), b"b x\n");
    koel.given("uniq").refuses(&[
        ("--keys-only", &["not provided:\n  --key <N>"]),
        ("--key 1,0", &["'0' for '--key <N>'"]),
        ("--key 1, --short skip", &["for '--key <N>'"]),
    ]);
    let run = koel.feed("a b\n", "uniq --key 1,3 --short error");
    run.error(&["line 1 of standard input: has 2 fields, but --key is 1,3; give another --key"]);
}

/// Lines that wait for the end come out as they were, whatever bytes they have and however the input ends.
#[test]
fn lines_that_wait_are_printed_as_they_were() {
    let koel = Koel::new();
    for (input, expected) in [
        ("b\na\r", "b\na\r\n"),
        ("a\r\r\na\nb\n", "a\r\na\nb\n"),
        ("a\n\nb", "a\n\nb\n"),
        ("\r\n\r", "\n\r\n"),
        ("\u{feff}a\nb\0c\n", "a\nb\0c\n"),
    ] {
        assert_eq!(koel.feed(input, "uniq --unique").text(), expected, "{input:?}");
        assert_eq!(koel.feed(input, "uniq --unique --filter f.koel").text(), expected, "{input:?}");
        koel.shell("rm f.koel").ok();
    }
    // Records with several lines stay apart, also those of different files.
    koel.write("one", "k,\"a\nb\"\nk2,x");
    koel.write("two", "c,y\n");
    let printed = koel.run("uniq --csv --key 1 --count one two");
    assert_eq!(printed.text(), "      1 k,\"a\nb\"\n      1 k2,x\n      1 c,y\n");
}

/// Records may have newlines in quotes; they are printed as they are.
#[test]
fn csv_has_quoted_fields() {
    let koel = Koel::new();
    let table = "id,name\r\n1,\"Doe, Jane\"\r\n2,\"Doe, Jane\"\r\n3,\"two\r\nlines\"\r\n4,\"two\nlines\"\n\
                 5,\"\"\"q\"\"\"\n6,plain\n7,\"plain\"";
    let rows = "id,name\n1,\"Doe, Jane\"\n3,\"two\r\nlines\"\n5,\"\"\"q\"\"\"\n6,plain\n";
    assert_eq!(koel.feed(table, "uniq --csv --key 2").text(), rows);
    let names = "name\n\"Doe, Jane\"\n\"two\nlines\"\n\"\"\"q\"\"\"\nplain\n";
    assert_eq!(koel.feed(table, "uniq --csv --key 2 --keys-only").text(), names);
    assert_eq!(koel.feed(table, "uniq --csv --key 2 -d --keys-only").text(), "\"Doe, Jane\"\n\"two\nlines\"\nplain\n");
    let counts = "      1 name\n      2 \"Doe, Jane\"\n      2 \"two\nlines\"\n      1 \"\"\"q\"\"\"\n      2 plain\n";
    assert_eq!(koel.feed(table, "uniq --csv --key 2 -c --keys-only").text(), counts);
    koel.feed(table, "build - -o f.koel --csv --key 2").ok();
    assert_eq!(koel.run(["query", "f.koel", "--item", "Doe, Jane", "--item", "two\nlines"]).text(), "Doe, Jane\ntwo\nlines\n");
    let run = koel.feed("a,b\n\"c\nd\"\n", "uniq --csv --key 2 --short error");
    assert_eq!(run.status(2), b"a,b\n");
    assert!(run.stderr.starts_with("koel: record 2 of standard input: has 1 field, but --key is 2; "), "{}", run.stderr);
    // A quote that is never closed does not swallow the rest of the list.
    for (command, printed) in
        [("uniq --csv --key 1", "a\n"), ("uniq --csv --key 1 -u", "a\n"), ("build - -o new --csv --key 1", "")]
    {
        let run = koel.feed("a\n\"b\nc\n", command);
        assert_eq!(run.status(2), printed.as_bytes(), "{command}");
        assert!(
            run.stderr.starts_with("koel: record 2 of standard input: a quote in it is not closed; close it"),
            "{}",
            run.stderr
        );
    }
    koel.run(["uniq", "--csv", "--key", "1", "--delimiter", "\u{2192}"]).error(&["cannot separate the fields of --csv"]);
    koel.run("uniq --csv --key 1 --nul").error(&["cannot be used with"]);
}
