//! Standard streams that are open in the wrong direction, closed by their reader at any time, or given under another name.

use crate::common::{Koel, facts, numbers};

/// Runs a line in a shell, which must fail with status 2, and returns standard error.
#[track_caller]
fn refused(koel: &Koel, line: &str) -> String {
    let run = koel.shell(&format!("{{ {line}; }} || test $? = 2 && echo refused >> statuses"));
    assert_eq!(run.status(0), b"", "{line}");
    assert_eq!(koel.read("statuses"), b"refused\n", "{line}: {}", run.stderr);
    std::fs::remove_file(koel.path("statuses")).expect("a file to remove");
    run.stderr
}

/// Creates a folder with a filter and a list.
fn folder() -> Koel {
    let koel = Koel::with_filter("apple\n");
    koel.write("list.txt", "apple\nplum\n");
    koel
}

#[test]
fn errors_keep_their_status_without_an_error_stream() {
    let koel = folder();
    assert_eq!(refused(&koel, "koel info no.koel 2>&-"), "");
}

/// Python's `subprocess.DEVNULL` and `daemon(3)` open the null device this way.
#[test]
fn null_devices_open_in_both_directions_work() {
    let koel = folder();
    koel.shell("koel info f.koel 0<>/dev/null 1<>/dev/null 2<>/dev/null").ok();
    koel.shell("koel build - -o empty.koel 0<>/dev/null").status(0);
    assert_eq!(facts(&koel, "empty.koel")["items"], 0);
    koel.shell("koel query f.koel </dev/null || test $? = 1; koel query f.koel --item apple >/dev/null").ok();
}

#[test]
fn a_stream_open_in_the_wrong_direction_is_an_error() {
    let koel = folder();
    let (before, filter) = (koel.names(), koel.read("f.koel"));
    for command in ["build - -o x", "query f.koel", "info -", "uniq", "uniq --filter x"] {
        for stream in ["0>/dev/null", "0<&-"] {
            let message = refused(&koel, &format!("koel {command} {stream}"));
            let expected = "koel: standard input: is not open for reading; redirect it from a file or from /dev/null\n";
            assert_eq!(message, expected, "{command} {stream}");
        }
    }
    for command in [
        "build list.txt -o x",
        "build list.txt -o -",
        "add f.koel --item plum",
        "query f.koel --item apple",
        "query f.koel --item apple --count",
        "uniq list.txt",
        "uniq list.txt --filter x",
        "info f.koel",
        "tune --items 9 --fpr 0.1",
        "--help",
    ] {
        for stream in ["1</dev/null", "1>&-"] {
            let message = refused(&koel, &format!("koel {command} {stream}"));
            let expected = "koel: standard output: is not open for writing; redirect it to a file or to /dev/null\n";
            assert_eq!(message, expected, "{command} {stream}");
        }
    }
    // What prints nothing does not need it.
    koel.shell("koel query f.koel --item apple --quiet >&-").ok();
    // The output must not be a real device: a faulty `koel` would replace the device of the whole machine.
    assert_eq!(refused(&koel, "koel build list.txt -o /dev/stderr 2<f.koel"), "");
    assert_eq!((koel.names(), koel.read("f.koel")), (before, filter));
}

#[test]
fn standard_streams_are_written_into_under_all_names() {
    let koel = folder();
    koel.shell("ln -s /dev/stdout out; ln -s out far").ok();
    koel.run("build list.txt -o expected.koel").ok();
    let linux = if cfg!(target_os = "linux") { &["/proc/self/fd/1", "/proc/thread-self/fd/1"][..] } else { &[] };
    let outputs = ["-", "/dev/stdout", "/dev/fd/1", "/dev/../dev/fd/1", "out", "far"]
        .iter()
        .chain(linux)
        .map(|name| (name, 1, 2, "output"));
    let errors = ["/dev/stderr", "/dev/fd/2"].iter().map(|name| (name, 2, 1, "error"));
    for (name, stream, other, what) in outputs.chain(errors) {
        // The filter is appended to earlier output, and later output follows it, as with any command.
        let build = format!("koel build list.txt -o {name} {other}> facts");
        koel.shell(&format!("{{ printf before >&{stream}; {build}; printf after >&{stream}; }} {stream}> all")).ok();
        let all = [&b"before"[..], &koel.read("expected.koel"), b"after"].concat();
        assert!(koel.read("all") == all, "{name}");
        assert!(koel.read("facts").starts_with(format!("filter            standard {what}\n").as_bytes()), "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn descriptors_of_files_are_refused_and_pipes_are_written_into() {
    let koel = folder();
    koel.run("build list.txt -o expected.koel").ok();
    for name in ["/dev/fd/3", "/proc/self/fd/3"] {
        let message = refused(&koel, &format!("koel build list.txt -o {name} 3>x"));
        assert!(message.starts_with(&format!("koel: {name}: is the descriptor of a regular file")), "{message}");
        assert!(message.ends_with("give the file's own name, or -o - >&3\n"), "{message}");
        assert_eq!(koel.read("x"), b"");
        let message = refused(&koel, &format!("koel add {name} --item plum 3<>f.koel"));
        assert!(message.starts_with(&format!("koel: {name}: is the descriptor of a regular file")), "{message}");
        assert!(message.ends_with("give the file's own name\n"), "{message}");
        let message = refused(&koel, &format!("koel build list.txt -o {name} 3>&-"));
        assert_eq!(message, format!("koel: {name}: this descriptor is not open; give the name of a file\n"));

        koel.shell(&format!("{{ koel build list.txt -o {name} 3>&1 >facts | cat >piped.koel; }}")).ok();
        assert!(koel.read("piped.koel") == koel.read("expected.koel"), "{name}");
    }
    let message = refused(&koel, "exec 4>x; koel build list.txt -o /proc/$$/fd/4");
    assert!(message.contains("/fd/4: is the descriptor of a regular file"), "{message}");
    assert!(refused(&koel, "koel build list.txt -o /dev/fd/4000000000").contains("this descriptor is not open"));
    // The remedy for other descriptors works.
    koel.shell("koel build list.txt -o - 3>y >&3 2>facts").ok();
    assert!(koel.read("y") == koel.read("expected.koel"));
    assert_eq!(koel.names(), ["expected.koel", "f.koel", "facts", "list.txt", "piped.koel", "x", "y"]);
}

/// Runs `koel …` into a pipe that is not read to the end, and returns its exit status and its messages.
#[track_caller]
fn into(reader: &str, koel: &Koel, command: &str) -> (String, String) {
    koel.shell(&format!("{{ koel {command} && echo 0 > status || echo $? > status; }} 2> stderr | {reader}")).status(0);
    let [status, stderr] = ["status", "stderr"].map(|name| String::from_utf8(koel.read(name)).expect("UTF-8"));
    (status.trim().to_owned(), stderr)
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let koel = Koel::new();
    koel.write("list.txt", numbers(0..200_000));
    koel.write("small.txt", numbers(0..100));
    koel.run("build list.txt -o f.koel").ok();
    let commands = [
        "query f.koel list.txt",
        "info f.koel",
        "info f.koel --json",
        "--help",
        "build --help",
        "tune --items 9 --fpr 0.1",
        "tune --items 9 --bytes 99 --json",
        "tune --keys small.txt --fpr 0.1",
        "build list.txt -o g.koel",
    ];
    for command in commands {
        for reader in ["head -n 1 > /dev/null", "true", "exec <&-"] {
            assert_eq!(into(reader, &koel, command), (String::from("0"), String::new()), "{command} | {reader}");
        }
    }
    // The command has done its work.
    assert!(koel.read("g.koel") == koel.read("f.koel"));
    assert_eq!(into("true", &koel, "build list.txt -o -").0, "0");
    // For any other closed pipe, it is an error that the pipe did not receive the filter.
    assert_eq!(into("true", &koel, "build list.txt -o /dev/stderr 2>&1 >facts").0, "2");
}

#[test]
fn the_exit_status_does_not_depend_on_the_reader() {
    let koel = Koel::with_filter("apple\nbanana\n");
    assert_eq!(into("true", &koel, "query f.koel --item plum --count").0, "1");
    assert_eq!(into("true", &koel, "query f.koel --item apple --count").0, "0");
    assert_eq!(into("true", &koel, "remove f.koel --item plum").0, "1");
    assert_eq!(into("true", &koel, "query no.koel --item plum").0, "2");
    assert_eq!(into("true", &koel, "query no.koel --item plum 2>&1").0, "2");
}
