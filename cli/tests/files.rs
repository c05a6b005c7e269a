//! Files are replaced atomically or not at all, and keep their links and permissions.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink},
};

use crate::common::{Koel, facts, numbers};

fn mode(koel: &Koel, name: &str) -> u32 {
    fs::metadata(koel.path(name)).expect("a file").permissions().mode() & 0o7777
}

#[test]
fn links_stay_and_their_targets_are_replaced() {
    let koel = Koel::new();
    fs::create_dir(koel.path("far")).unwrap();
    symlink("far/away.koel", koel.path("near.koel")).unwrap();
    symlink("near.koel", koel.path("link.koel")).unwrap();
    // In the first round, the target does not exist.
    for items in [5, 7] {
        koel.feed(numbers(0..items), "build - -o link.koel").ok();
        assert_eq!(facts(&koel, "far/away.koel")["items"], items);
    }
    koel.run("add link.koel --item x").ok();
    koel.run("remove link.koel --item 1").ok();
    assert_eq!(facts(&koel, "far/away.koel")["items"], 7);
    for link in ["link.koel", "near.koel"] {
        assert!(fs::symlink_metadata(koel.path(link)).unwrap().is_symlink());
    }
    symlink("round", koel.path("round")).unwrap();
    koel.run("build - -o round").error(&["round"]);
    assert_eq!(koel.names(), ["far", "link.koel", "near.koel", "round"]);
}

#[test]
fn replaced_files_keep_permissions_and_new_files_follow_the_umask() {
    let koel = Koel::new();
    for (mask, expected) in [("022", 0o644), ("077", 0o600), ("002", 0o664)] {
        koel.shell(&format!("umask {mask}; rm -f f.koel; echo a | koel build - -o f.koel")).ok();
        assert_eq!(mode(&koel, "f.koel"), expected);
    }
    for expected in [0o600, 0o666, 0o750] {
        fs::set_permissions(koel.path("f.koel"), Permissions::from_mode(expected)).unwrap();
        koel.run("add f.koel --item b").ok();
        assert_eq!(mode(&koel, "f.koel"), expected);
        koel.feed("a\n", "build - -o f.koel --capacity 100").ok();
        assert_eq!(mode(&koel, "f.koel"), expected);
    }
}

#[test]
fn files_are_replaced_and_not_written_in_place() {
    let koel = Koel::with_filter("a\n");
    fs::hard_link(koel.path("f.koel"), koel.path("before.koel")).unwrap();
    let before = koel.read("f.koel");
    koel.run("add f.koel --item b").ok();
    assert!(koel.read("before.koel") == before && koel.read("f.koel") != before);
    assert_ne!(fs::metadata(koel.path("f.koel")).unwrap().ino(), fs::metadata(koel.path("before.koel")).unwrap().ino());
}

#[test]
fn folders_are_refused_as_output() {
    let koel = Koel::with_filter("a\n");
    fs::create_dir(koel.path("folder")).unwrap();
    koel.given("build f.koel -o").refuses(&[
        ("folder", &["folder: is a folder", "name of a file"]),
        ("f.koel/f.koel", &["f.koel/f.koel", "f.koel is a file, not a folder; give a name in a folder"]),
        (&"x".repeat(300), &["xxx"]),
    ]);
    koel.run(["build", "f.koel", "-o", ""]).error(&["koel: "]);
}

#[test]
fn write_protected_files_are_not_replaced() {
    let koel = Koel::with_filter("a\n");
    let before = koel.read("f.koel");
    fs::set_permissions(koel.path("f.koel"), Permissions::from_mode(0o444)).unwrap();
    fs::create_dir(koel.path("closed")).unwrap();
    fs::set_permissions(koel.path("closed"), Permissions::from_mode(0o555)).unwrap();
    // The superuser can write to protected files, so the test then checks nothing.
    if fs::write(koel.path("closed/probe"), "").is_err() {
        koel.run("add f.koel --item b").error(&["f.koel: cannot be written", "Permission denied", "change its permissions"]);
        koel.feed("a\n", "build - -o f.koel").error(&[
            "f.koel: cannot be written",
            "Permission denied",
            "change its permissions",
        ]);
        koel.feed("a\n", "build - -o closed/f.koel").error(&["closed/f.koel", "permission denied", "another"]);
        assert!(koel.read("f.koel") == before);
    }
    fs::set_permissions(koel.path("closed"), Permissions::from_mode(0o755)).unwrap();
}

/// A folder that has no room for new files is not called missing.
#[test]
#[cfg(target_os = "linux")]
fn folders_without_new_files_are_named() {
    let koel = Koel::with_filter("a\n");
    koel.feed("a\n", "build - -o /proc/f.koel").error(&["/proc/f.koel: no file can be created in the folder /proc", "another"]);
    koel.feed("a\n", "build - -o /proc/none/f.koel").error(&["there is no folder /proc/none; make it first"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_keeps_the_old_file() {
    let koel = Koel::with_filter(&numbers(0..10));
    let before = koel.read("f.koel");
    koel.write("list.txt", numbers(0..100_000));
    koel.run("build list.txt -o large.koel --addressing power-of-two --hasher metrohash64 --seed 1337").ok();
    // A limit on file sizes fails in the same place as a full disk, whether or not its signal is ignored already.
    for trap in ["", "trap '' XFSZ; "] {
        for command in ["build list.txt -o OUT", "build list.txt -o OUT --grow", "convert large.koel --to go -o OUT"] {
            for (out, whole) in [("f.koel", "; the old file is unchanged"), ("new.koel", "")] {
                let command = command.replace("OUT", out);
                let run = koel.shell(&format!("{trap}ulimit -f 1; koel {command} 2>&1 || test $? = 2"));
                assert!(run.text().contains(&format!("koel: {out}: cannot be written{whole}: File too large")), "{}", run.text());
            }
        }
        let run = koel.shell(&format!("{trap}ulimit -f 1; {{ koel build list.txt -o - > cut; }} 2>&1 || test $? = 2; rm cut"));
        assert!(run.text().contains("koel: standard output: File too large"), "{}", run.text());
    }
    assert!(koel.read("f.koel") == before);
    assert_eq!(koel.names(), ["f.koel", "large.koel", "list.txt"]);
    for command in ["query f.koel --item 1", "query f.koel --item 1 --count", "info f.koel", "--help"] {
        let run = koel.shell(&format!("koel {command} 2>&1 > /dev/full || test $? = 2"));
        assert!(run.text().contains("koel: standard output: No space left"), "{command}: {}", run.text());
    }
    // The change is made nevertheless, and the message says so, so that nobody repeats it.
    let run = koel.shell("koel add f.koel --item new 2>&1 > /dev/full || test $? = 2");
    assert!(run.text().contains("f.koel was written, but the report of it could not be"), "{}", run.text());
    koel.run("query f.koel --item new").ok();
    if device(&koel, "full", 7) {
        let run = koel.shell("echo a | koel build - -o - 2>&1 > full || test $? = 2");
        assert!(run.text().contains("koel: standard output: No space left"), "{}", run.text());
    }
}

/// Creates a device with this Linux device number, if that is possible here. Tests must never use `-o /dev/…`: a faulty `koel`, run
/// by the superuser, would replace the device of the whole machine.
#[cfg(target_os = "linux")]
fn device(koel: &Koel, name: &str, minor: u32) -> bool {
    koel.shell(&format!(
        "mknod {name} c 1 {minor} 2> told && dd if=/dev/zero of={name} count=0 2> told || rm -f {name}; rm told"
    ))
    .ok();
    koel.path(name).exists()
}

/// Only regular files are replaced, and opening a pipe without a reader would block forever. The test checks that the remedy in the
/// message works.
#[test]
fn devices_pipes_and_sockets_are_refused() {
    let koel = Koel::new();
    koel.shell("mkfifo pipe; ln -s pipe link").status(0);
    let _socket = std::os::unix::net::UnixListener::bind(koel.path("socket")).expect("a socket");
    for (name, kind) in [("pipe", "named pipe"), ("link", "named pipe"), ("socket", "socket")] {
        for command in ["build -", "build - --grow"] {
            let run = koel.shell(&format!("echo a | timeout 20 koel {command} -o {name} 2>&1 || test $? = 2"));
            let expected = format!("koel: {name}: is a {kind}, not a regular file");
            assert!(run.text().contains(&expected) && run.text().contains(&format!("`-o - > {name}`")), "{}", run.text());
        }
    }
    koel.shell("cat pipe > f.koel & echo a | koel build - -o - > pipe; wait").status(0);
    assert_eq!(facts(&koel, "f.koel")["items"], 1);
    // Changing a filter replaces its file, so a file that cannot be replaced is not read.
    koel.shell("timeout 20 koel add pipe --item x 2>&1 || test $? = 2").status(0);
    assert!(fs::metadata(koel.path("pipe")).unwrap().file_type().is_fifo());
    assert_eq!(koel.names(), ["f.koel", "link", "pipe", "socket"]);
    #[cfg(target_os = "linux")]
    if device(&koel, "null", 3) {
        koel.feed("a\n", "build - -o null").error(&["null: is a device, not a regular file"]);
        koel.shell("echo a | koel build - -o - > null").status(0);
        koel.run("build null -o f.koel").ok();
        koel.run("add null --item x").error(&["null: "]);
        assert!(fs::metadata(koel.path("null")).unwrap().file_type().is_char_device());
    }
}

#[test]
fn unusual_file_names_work() {
    let koel = Koel::new();
    fs::create_dir(koel.path("fd")).unwrap();
    // A number names a descriptor only in some folders.
    for name in ["name with spaces", "-o", "café.koel", "2", "fd/2", &"y".repeat(250)] {
        let out = format!("--output={name}");
        koel.feed("a\n", ["build", "-", &out]).ok();
        koel.run(["add", "--item", "b", "--", name]).ok();
        assert_eq!(koel.run(["query", "--item", "b", "--", name]).ok(), b"b\n");
    }
}

/// tests/locks.rs checks the locks of all commands that change a file.
#[test]
fn concurrent_changes_are_all_applied() {
    let koel = Koel::new();
    koel.feed("first\n", "build - -o f.koel --capacity 1000").ok();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let koel = &koel;
            scope.spawn(move || {
                for n in 5 * thread..5 * thread + 5 {
                    koel.run(&format!("add f.koel --item {n}")).ok();
                }
            });
        }
    });
    assert_eq!(facts(&koel, "f.koel")["items"], 21);
    assert_eq!(koel.feed(numbers(0..20), "query f.koel --count").ok(), b"20\n");
    assert_eq!(koel.names(), ["f.koel"]);
}
