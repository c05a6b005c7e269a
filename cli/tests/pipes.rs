//! The reader of `koel`'s output may stop at any time.

use crate::common::{Koel, numbers};

/// Runs `koel …` into a pipe that is not read to the end, and returns its exit status and its messages.
#[track_caller]
fn into(reader: &str, koel: &Koel, command: &str) -> (String, String) {
    koel.shell(&format!("{{ koel {command} && echo 0 > status || echo $? > status; }} 2> said | {reader}")).status(0);
    let [status, said] = ["status", "said"].map(|name| String::from_utf8(koel.read(name)).expect("UTF-8"));
    (status.trim().to_owned(), said)
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let koel = Koel::new();
    koel.write("list.txt", numbers(0..200_000));
    koel.write("small.txt", numbers(0..100));
    koel.run(["build", "list.txt", "-o", "f.koel"]).ok();
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
    // What was to be done has been done.
    assert!(koel.read("g.koel") == koel.read("f.koel"));
    let (status, _) = into("true", &koel, "build list.txt -o -");
    assert_eq!(status, "0");
}

#[test]
fn the_status_does_not_depend_on_readers() {
    let koel = Koel::with_filter("apple\nbanana\n");
    assert_eq!(into("true", &koel, "query f.koel --item plum --count").0, "1");
    assert_eq!(into("true", &koel, "query f.koel --item apple --count").0, "0");
    assert_eq!(into("true", &koel, "remove f.koel --item plum").0, "1");
    assert_eq!(into("true", &koel, "query no.koel --item plum").0, "2");
    assert_eq!(into("true", &koel, "query no.koel --item plum 2>&1").0, "2");
}

#[test]
fn nothing_but_errors_on_standard_error() {
    let koel = Koel::new();
    koel.write("list.txt", numbers(0..200_000));
    // No bar where there is no terminal, for any kind of input.
    koel.run(["build", "list.txt", "-o", "f.koel"]).ok();
    koel.run(["build", "list.txt", "-o", "f.koel", "--capacity", "300000"]).ok();
    koel.feed(numbers(0..200_000), ["build", "-", "-o", "f.koel", "--capacity", "300000"]).ok();
    koel.run(["add", "f.koel", "list.txt", "--unique"]).ok();
    koel.run(["query", "f.koel", "list.txt", "--count"]).ok();
    koel.run(["remove", "f.koel", "list.txt"]).ok();
    koel.run(["tune", "--keys", "list.txt", "--fpr", "0.1"]).ok();
}
