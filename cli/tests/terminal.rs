//! After a command, its output and its messages stay on the terminal, and nothing of a progress bar.

use std::{fs::OpenOptions, io::Write as _};

use crate::common::{Koel, numbers, screen::Terminal};

#[test]
fn no_progress_bar_stays() {
    let koel = Koel::with_filter("alice\n");
    koel.write("names.txt", "alice\nbob\nalice\n");
    koel.write("many.txt", numbers(0..200_000));
    // A bar is shown while nothing else is printed.
    for (script, shown, lines) in [
        ("koel uniq --filter t.koel names.txt", false, &["alice", "bob"][..]),
        ("koel uniq --filter u.koel names.txt --count-only", true, &["2"]),
        ("koel uniq --filter v.koel names.txt > printed", true, &[]),
        ("koel uniq < names.txt", false, &["alice", "bob"]),
        ("koel uniq many.txt --max-bytes 1MB --filter w.koel > printed", true, &["koel: line"]),
        ("koel query f.koel names.txt", false, &["alice", "alice"]),
        ("koel query f.koel names.txt --count", true, &["2"]),
        ("koel query f.koel many.txt --absent | head -n 1", false, &["0"]),
        ("koel uniq many.txt | head -n 1", false, &["0"]),
        ("koel uniq many.txt --filter x.koel | head -n 1", false, &["0", "koel: x.koel: was not written"]),
        ("koel query f.koel many.txt --absent > printed", true, &[]),
        ("koel build many.txt -o g.koel > printed", true, &[]),
        ("koel build many.txt -o g.koel --capacity 10 > printed", true, &["koel: line"]),
        ("koel add f.koel many.txt > printed", true, &["koel: line"]),
        ("koel remove g.koel many.txt > printed", true, &[]),
    ] {
        let (screen, written) = Terminal::start(&koel, script).finish();
        assert_eq!(written.contains(" left"), shown, "{script}: {written:?}");
        // Long messages are wrapped, or continue; the order of two programs is not known.
        let found = |line: &&str| screen.iter().any(|shown| shown.starts_with(line));
        assert!(lines.iter().all(found), "{script}: {screen:?}");
        assert!(!screen.iter().any(|line| line.contains(" left") || line.contains('\u{2588}')), "{script}: {screen:?}");
        let is_exact = !lines.iter().any(|line| line.starts_with("koel: "));
        assert!(!is_exact || screen == lines, "{script}: {screen:?}");
    }
}

/// A signal removes the bar of every command that shows one.
#[test]
fn no_progress_bar_stays_after_a_signal() {
    for command in ["build lines -o f.koel", "uniq lines --filter f.koel --count-only", "query words.koel lines --count"] {
        let koel = Koel::new();
        koel.feed("a\n", "build - -o words.koel").ok();
        koel.shell("mkfifo lines").ok();
        let mut terminal = Terminal::start(&koel, &format!("exec koel {command}"));
        let mut lines = OpenOptions::new().write(true).open(koel.path("lines")).expect("a pipe");
        lines.write_all(b"ten\n").expect("a reader");
        terminal.read_until(" items");
        koel.shell(&format!("kill -TERM {}", terminal.child.id())).ok();
        let (screen, written) = terminal.finish();
        // The count of `koel uniq` comes after the bar. The signal may come before or after the line is counted.
        let is_count = |line: &String| command.starts_with("uniq ") && ["0", "1"].contains(&line.as_str());
        let counts = usize::from(command.starts_with("uniq "));
        assert!(screen.len() == counts && screen.iter().all(is_count), "{command}: {screen:?}, {written:?}");
    }
}

#[test]
fn filters_are_not_written_to_a_terminal() {
    let koel = Koel::with_filter("alice\n");
    koel.write("names.txt", "bob\n");
    for (script, stream) in [
        ("koel build names.txt -o -", "output"),
        ("koel build names.txt -o /dev/stdout", "output"),
        ("koel merge f.koel f.koel -o /dev/stderr", "error"),
        ("koel convert f.koel -o - --to go", "output"),
    ] {
        let (screen, written) = Terminal::start(&koel, &format!("{script}; echo $?")).finish();
        let expected = format!("koel: standard {stream}: is a terminal, and filters are binary; redirect it to a file or a pipe");
        // Long lines are wrapped, perhaps at a space.
        assert_eq!(screen.concat().replace(' ', ""), format!("{expected}2").replace(' ', ""), "{script}: {written:?}");
    }
    koel.shell("koel build names.txt -o - > g.koel").status(0);
    koel.run("query g.koel --item bob").ok();
}
