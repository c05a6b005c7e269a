//! Commands that change one file at the same time wait for each other, and never undo changes that were made in the meantime.
#![cfg(unix)]

mod common;

use std::{
    fs::{self, File, TryLockError},
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::Child,
};

use common::{Koel, Run, facts};

const MANY: u32 = 26_000;

/// Returns a list that is longer than any pipe's buffer: items of 64 bytes each.
fn list() -> Vec<u8> {
    (0..MANY).flat_map(|n| format!("{n:063}\n").into_bytes()).collect()
}

/// A command that has read a part of its input, and waits for the rest.
struct Paused {
    child: Child,
    rest: Vec<u8>,
}

impl Paused {
    /// Starts a command. Its input is longer than the pipe's buffer, so it has begun to read when this returns.
    fn start(koel: &Koel, args: &str, input: &[u8]) -> Self {
        let mut child = koel.spawn(args);
        let (most, rest) = input.split_at(input.len() - 1);
        assert!(most.len() > 3 << 19, "a pipe may hold a MiB");
        child.stdin.as_mut().expect("its input").write_all(most).expect("a reader");
        Self { child, rest: rest.to_vec() }
    }

    fn finish(mut self) -> Run {
        self.child.stdin.take().expect("its input").write_all(&self.rest).expect("a reader");
        Run::wait(self.child)
    }
}

fn is_locked(koel: &Koel, name: &str) -> bool {
    matches!(File::open(koel.path(name)).expect("a file").try_lock(), Err(TryLockError::WouldBlock))
}

/// Returns all commands that replace `f.koel`, with their standard input.
fn commands(koel: &Koel) -> Vec<(&'static str, Vec<u8>)> {
    let options = "--capacity 400000 --bits 32 --addressing power-of-two --hasher metrohash64 --seed 1337";
    for (name, items) in [("large.koel", list()), ("small.koel", b"small\n".to_vec())] {
        koel.feed(items, &format!("build - -o {name} {options}")).ok();
    }
    let large = koel.read("large.koel");
    vec![
        ("build - -o f.koel", list()),
        ("build - -o f.koel --capacity 400000", list()),
        ("add f.koel", list()),
        ("add f.koel - --unique", list()),
        ("remove f.koel", list()),
        ("merge small.koel - -o f.koel", large.clone()),
        ("convert - -o f.koel --to koel", large.clone()),
        ("convert - -o f.koel --to go", large),
    ]
}

/// Builds a filter with the first item of the list and one that is not in it, and room for all items.
fn reset(koel: &Koel, name: &str) {
    koel.feed([&list()[..64], b"old\n"].concat(), &format!("build - -o {name} --capacity 400000")).ok();
}

#[test]
fn an_addition_during_a_build_is_applied_after_it() {
    let koel = Koel::new();
    reset(&koel, "f.koel");
    let build = Paused::start(&koel, "build - -o f.koel --capacity 400000", &list());
    let add = koel.spawn("add f.koel --item new");
    build.finish().ok();
    assert!(Run::wait(add).ok().starts_with(format!("1 added; {} in f.koel now", MANY + 1).as_bytes()));
    assert_eq!(koel.run("query f.koel --item old --item new").ok(), b"new\n");
}

/// A command must not replace the file if the path no longer leads to the locked file.
#[test]
fn commands_lock_their_output_before_reading() {
    let koel = Koel::new();
    let commands = commands(&koel);
    reset(&koel, "old.koel");
    koel.feed("other\n", "build - -o other.koel").ok();
    let [old, other] = ["old.koel", "other.koel"].map(|name| koel.read(name));
    for (args, input) in &commands {
        for event in ["true", "mv f.koel moved.koel", "rm f.koel", "cp other.koel f.new; mv f.new f.koel"] {
            koel.write("f.koel", &old);
            assert!(!is_locked(&koel, "f.koel"));
            let command = Paused::start(&koel, args, input);
            assert!(is_locked(&koel, "f.koel"), "{args}");
            koel.shell(event).ok();
            let before = koel.names();
            let run = command.finish();
            if event == "true" {
                // Most items are absent, so `remove` exits with status 1.
                run.status(i32::from(args.starts_with("remove")));
                assert!(!is_locked(&koel, "f.koel"), "{args}");
                continue;
            }
            run.error(&["koel: f.koel: was moved, removed or replaced", "nothing was written", "run the command again"]);
            assert_eq!(koel.names(), before, "{args}, {event}");
            for (name, expected) in [("moved.koel", &old), ("f.koel", &other)] {
                if before.contains(&String::from(name)) {
                    assert!(koel.read(name) == *expected, "{args}, {event}");
                    fs::remove_file(koel.path(name)).expect("a file to remove");
                }
            }
        }
    }
}

/// If there is no file to lock at the start, the file that exists at the end is replaced.
#[test]
fn a_file_created_in_the_meantime_is_replaced() {
    let koel = Koel::new();
    let build = Paused::start(&koel, "build - -o f.koel", &list());
    koel.feed("other\n", "build - -o f.koel").ok();
    build.finish().ok();
    assert_eq!(facts(&koel, "f.koel")["items"], MANY);
}

/// Linux lists the processes that have a lock or wait for one.
#[cfg(target_os = "linux")]
mod waiting {
    use super::*;
    use std::{process, thread};

    /// Returns whether the list of locks has the process, as one that waits for a lock or as one that holds it.
    fn is_listed(process: u32, waiting: bool) -> bool {
        let locks = fs::read_to_string("/proc/locks").expect("locks");
        let process = process.to_string();
        let mut lines = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        lines.any(|words| words.contains(&"FLOCK") && words.contains(&&*process) && words.contains(&"->") == waiting)
    }

    /// Locks a file until the result is dropped.
    fn locked(koel: &Koel, name: &str) -> File {
        let file = File::open(koel.path(name)).expect("a file");
        file.lock().expect("a lock");
        // The list comes in pieces: a line may be missing if another process takes a lock or leaves one between two of them.
        assert!((0..1000).any(|_| is_listed(process::id(), false)), "/proc/locks is needed");
        file
    }

    /// Returns when the command waits for a lock.
    fn wait_until_blocked(command: &mut Child) {
        while !is_listed(command.id(), true) {
            assert!(command.try_wait().expect("a process").is_none(), "it did not wait for the lock");
            thread::yield_now();
        }
    }

    #[test]
    fn a_waiting_command_changes_the_current_file() {
        let koel = Koel::new();
        for (event, found) in [("true", "old\nnew\n"), ("mv other.koel f.koel", "other\nnew\n")] {
            reset(&koel, "f.koel");
            koel.feed("other\n", "build - -o other.koel --capacity 10").ok();
            let held = locked(&koel, "f.koel");
            let mut add = koel.spawn("add f.koel --item new");
            wait_until_blocked(&mut add);
            koel.shell(event).ok();
            drop(held);
            Run::wait(add).ok();
            let found_now = koel.run("query f.koel --item old --item other --item new");
            assert_eq!(found_now.ok(), found.as_bytes(), "{event}");
        }
    }

    /// Nobody watches the terminal of a cron job, but its messages are sent.
    #[test]
    fn a_waiting_command_says_so_once() {
        let koel = Koel::new();
        for args in
            ["add f.koel --item new", "build - -o f.koel", "uniq - --filter f.koel --count-only", "merge f.koel g.koel -o f.koel"]
        {
            for name in ["f.koel", "g.koel"] {
                reset(&koel, name);
            }
            let held = locked(&koel, "f.koel");
            let mut child = koel.spawn(args);
            let mut stderr = BufReader::new(child.stderr.take().expect("its messages"));
            let mut line = String::new();
            stderr.read_line(&mut line).expect("a message");
            assert_eq!(line, "koel: f.koel: waiting for another command that is changing it\n", "{args}");
            // It still waits, for the file that has been replaced in the meantime, and says so no more.
            koel.shell("cp f.koel other; mv other f.koel").ok();
            drop(held);
            let run = Run::wait(child);
            let mut rest = String::new();
            stderr.read_to_string(&mut rest).expect("messages");
            assert_eq!((run.status, rest.as_str()), (i32::from(args.starts_with("uniq")), ""), "{args}");
        }
    }

    #[test]
    fn a_file_removed_while_waiting_is_missing_or_rebuilt() {
        let koel = Koel::new();
        for (args, status) in [("add f.koel --item new", 2), ("build - -o f.koel", 0)] {
            reset(&koel, "f.koel");
            let held = locked(&koel, "f.koel");
            let mut child = koel.spawn(args);
            wait_until_blocked(&mut child);
            fs::remove_file(koel.path("f.koel")).expect("a file to remove");
            drop(held);
            let run = Run::wait(child);
            run.status(status);
            assert_eq!(koel.path("f.koel").exists(), status == 0);
        }
    }

    /// There is no file to lock at the start.
    #[test]
    fn a_locked_file_created_in_the_meantime_is_replaced_after_unlocking() {
        let koel = Koel::new();
        let mut build = Paused::start(&koel, "build - -o f.koel", &list());
        reset(&koel, "f.koel");
        let held = locked(&koel, "f.koel");
        let mut stdin = build.child.stdin.take().expect("its input");
        stdin.write_all(&build.rest).expect("a reader");
        drop(stdin);
        wait_until_blocked(&mut build.child);
        assert_eq!(facts(&koel, "f.koel")["items"], 2);
        drop(held);
        Run::wait(build.child).ok();
        assert_eq!(facts(&koel, "f.koel")["items"], MANY);
    }
}
