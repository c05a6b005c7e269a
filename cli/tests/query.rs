//! `koel query` behaves like grep, and queries a filter in a file in place: without reading it, with every kernel, and even if the
//! file is replaced or removed.

use crate::common::{Koel, facts, numbers};

#[test]
fn the_exit_status_tells_whether_an_item_was_selected() {
    let koel = Koel::with_filter("apple\nbanana\n");
    // The filter has some items of the first list, all of the second, and none of the third.
    let lists = ["apple\ncherry\nbanana\nplum\n", "apple\n", "plum\n"];
    for (options, expected) in [
        ("", [("apple\nbanana\n", 0), ("apple\n", 0), ("", 1)]),
        ("--absent", [("cherry\nplum\n", 0), ("", 1), ("plum\n", 0)]),
        ("--count", [("2\n", 0), ("1\n", 0), ("0\n", 1)]),
        ("--count --absent", [("2\n", 0), ("0\n", 1), ("1\n", 0)]),
        ("--quiet", [("", 0), ("", 0), ("", 1)]),
        ("--quiet --absent", [("", 0), ("", 1), ("", 0)]),
    ] {
        for (list, (printed, status)) in lists.into_iter().zip(expected) {
            let run = koel.feed(list, &format!("query f.koel {options}"));
            assert_eq!(run.status(status), printed.as_bytes(), "{options:?} {list}");
            assert_eq!(run.stderr, "");
        }
    }
}

#[test]
fn errors_exit_with_status_2() {
    Koel::with_filter("apple\n").given("query").refuses(&[
        ("no.koel --item apple", &["no.koel", "No such file"]),
        ("f.koel no.txt", &["no.txt: cannot be read: no such file", "use --item"]),
        ("f.koel - -", &["standard input", "both"]),
        ("- - --item x", &["standard input", "several filters"]),
        ("f.koel --count --quiet", &["--count", "--quiet"]),
        ("f.koel .", &[".: is a folder", "one item per line"]),
        (". --item x", &[".: is a folder", "koel build"]),
        ("-", &["standard input", "both", "--item"]),
    ]);
}

#[test]
#[cfg(unix)]
fn quiet_stops_at_the_first_selected_item() {
    // `yes` never ends.
    Koel::with_filter("apple\n").shell("yes apple | koel query f.koel --quiet").ok();
}

/// Items go in and come out through pipes, so each result must come before the next item.
#[test]
#[cfg(unix)]
fn a_query_continues_with_the_old_file() {
    let koel = Koel::new();
    koel.feed("apple\nbanana\n", "build - -o f.koel --capacity 1000").ok();
    let run = koel.shell(
        "mkfifo items found; koel query f.koel < items > found & exec 3> items 4< found
         ask() { printf '%s\\n' \"$@\" >&3; read -r item <&4; echo \"$item\"; }
         ask apple; ask cherry banana
         koel add f.koel --item cherry > told; koel remove f.koel --item banana > told
         ask cherry banana
         seq 100000 | koel build - -o f.koel > told
         ask 99999 banana
         rm f.koel
         ask cherry apple
         exec 3>&-; wait $!",
    );
    assert_eq!(run.ok(), b"apple\nbanana\nbanana\nbanana\napple\n");
}

/// The results are compared for mapped filters and filters in memory, with all kinds of tables. Built and merged files are
/// compared, too.
#[test]
fn all_kernels_give_the_same_results() {
    let koel = Koel::new();
    koel.write("items.txt", numbers(0..5000));
    koel.write("queries.txt", numbers(0..50_000));
    for options in ["--table single", "--table packed", "--grow"] {
        let all = |kernel: &str| {
            let run = |args: &str| koel.run_with(kernel, args).ok().to_vec();
            run(&format!("build items.txt -o f.koel --fpr 0.01 --capacity 20000 {options}"));
            run("merge f.koel f.koel -o twice.koel");
            let found = run("query f.koel queries.txt");
            assert!(run("query f.koel queries.txt --verify") == found, "{kernel}");
            (found, koel.read("f.koel"), koel.read("twice.koel"))
        };
        let portable = all("portable");
        assert!(portable.0.starts_with(numbers(0..5000).as_bytes()) && portable.0.len() > numbers(0..5000).len());
        assert!(koel.feed(&portable.1, "query - queries.txt").ok() == portable.0);
        for kernel in koel::Kernel::available() {
            assert!(all(&kernel.to_string()) == portable, "{kernel}");
        }
    }
}

/// A table that is far larger than the memory limit is queried without reading it, also in a growing filter.
#[test]
#[cfg(target_os = "linux")]
fn mapped_filters_take_no_memory() {
    for options in ["", "--grow --max-capacity 40000000"] {
        let koel = Koel::new();
        koel.feed("apple\n", &format!("build - -o f.koel --capacity 40000000 {options}")).ok();
        let bytes = facts(&koel, "f.koel")["table_bytes"].as_u64().expect("a number");
        assert!(bytes > 50_000_000);
        // `ulimit -d` limits the process's own memory, not mapped files.
        for options in ["", "--verify"] {
            koel.shell(&format!("ulimit -d 32768; koel query f.koel --item apple --quiet {options}")).ok();
        }
        let read = koel.shell("ulimit -d 32768; koel query - --item apple --quiet < f.koel 2>&1 || test $? = 2");
        assert!(read.text().contains("memory"), "{}", read.text());
    }
}

#[test]
#[cfg(unix)]
fn filters_are_read_from_pipes() {
    let koel = Koel::with_filter("apple\n");
    let run = koel.shell("mkfifo pipe; cat f.koel > pipe & timeout 20 koel query pipe --item apple --item plum && wait $!");
    assert_eq!(run.ok(), b"apple\n");
    let run = koel.shell("cat f.koel > pipe & timeout 20 koel verify pipe && wait $!");
    assert!(run.ok().starts_with(b"pipe: ok: "));
}

#[test]
fn several_filters_are_named_like_files_in_grep() {
    let koel = Koel::new();
    for (name, items) in [("a.koel", "apple\nfig\n"), ("b.koel", "banana\nfig\n"), ("c.koel", "cherry\n")] {
        koel.feed(items, &format!("build - -o {name}")).ok();
    }
    koel.write("list", "fig\napple\nplum\n");
    let expected = b"a.koel:fig\nb.koel:fig\na.koel:apple\n";
    assert_eq!(koel.run("query a.koel b.koel c.koel list").ok(), expected);
    assert_eq!(koel.feed("fig\napple\nplum\n", "query a.koel b.koel c.koel").ok(), expected);
    assert_eq!(koel.feed("fig\napple\nplum\n", "query a.koel b.koel c.koel -").ok(), expected);
    assert_eq!(koel.run("query a.koel b.koel --item fig --absent --item plum").ok(), b"a.koel:plum\nb.koel:plum\n");
    assert_eq!(koel.run("query a.koel b.koel c.koel list --count").ok(), b"a.koel:2\nb.koel:1\nc.koel:0\n");
    assert_eq!(koel.run("query c.koel a.koel list --quiet").status(0), b"");
    assert_eq!(koel.run("query b.koel c.koel --quiet --item apple").status(1), b"");
    koel.run("query a.koel no.koel list").error(&["no.koel", "No such file"]);
}
