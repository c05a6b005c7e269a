//! Tests the command as users run it.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

fn peers_into(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-peers"));
    let output = command.args(arguments.split_whitespace()).arg("--out").arg(folder).output();
    output.expect("cargo has built the command")
}

/// Runs the command, checks that it succeeds, and returns its output.
fn printed(folder: &Path, arguments: &str) -> String {
    let Output { status, stdout, stderr } = peers_into(folder, arguments);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).expect("text")
}

/// Returns the cells of the table's rows, without the header.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    // The notes are a separate table.
    let lines = stdout.lines().take_while(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn record(folder: &Path, name: &str) -> Value {
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["complete"], true);
    record
}

/// Runs the command in a separate process, because the allocator counts the memory of a whole process.
#[test]
fn bits_per_item_match_the_table_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let stdout = printed(folder.path(), "--items 20000 --rounds 1");
    // The sizes of the tables are known: koel's fingerprints at their load, a power of two of slots or of quotients, or segments of
    // 1024 slots. Filters have almost no other memory, except for one that has a list of tables, a list of items and a random
    // generator.
    let sizes = [
        ("koel packed f = 13, load 0.95", 12.0 / 0.95, 0.05),
        ("koel packed f = 13, load 0.97", 12.0 / 0.97, 0.05),
        ("koel single f = 12, load 0.95", 12.0 / 0.95, 0.05),
        ("koel single f = 13, load 0.95", 13.0 / 0.95, 0.05),
        ("cuckoofilter", 8.0 * 32768.0 / 20000.0, 0.05),
        ("scalable_cuckoo_filter", 12.0 * 32768.0 / 20000.0, 0.6),
        ("qfilter", (9.0 + 2.125) * 32768.0 / 20000.0, 0.05),
        ("bloomfilter", 14.38, 0.05),
        ("fastbloom", 14.38, 0.05),
        ("fastbloom-rs", 57.51, 0.05),
        ("sbbf-rs-safe", 16.89, 0.05),
        ("xorf 0.13, BinaryFuse8", 8.0 * 24.0 * 1024.0 / 20000.0, 0.05),
        ("xorf 0.13, BinaryFuse16", 16.0 * 24.0 * 1024.0 / 20000.0, 0.05),
    ];
    let mut measured = HashSet::new();
    for cells in rows(&stdout) {
        let is_named =
            |name: &str| cells[0].strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',']));
        let size = sizes.iter().find(|(name, ..)| is_named(name));
        let &(name, table, other) = size.unwrap_or_else(|| panic!("add the size of its table to this list: {cells:?}"));
        let bits: f64 = cells[7].parse().expect("a number");
        let range = table - 0.01..table + other;
        assert!(range.contains(&bits), "{cells:?}: {bits} bits, not {range:?}");
        measured.insert(name);
    }
    for (name, ..) in sizes {
        assert!(measured.contains(name), "{name} is in this list of sizes, but was not measured: {stdout}");
    }
}

#[test]
fn sets_have_separate_files_and_are_measured_once() {
    let folder = tempfile::tempdir().expect("a folder");
    // The command creates this folder.
    let folder = folder.path().join("new");
    let stdout = printed(&folder, "--items 20000 --rounds 2");
    let table = rows(&stdout);
    assert!(table.len() > 10 && table.iter().all(|cells| cells.len() == 9), "{stdout}");
    assert_eq!(stdout.lines().last(), folder.join("report.html").to_str());
    let first = record(&folder, "peers");
    for (round, number) in first["measured"].as_array().expect("rounds").iter().zip(1..) {
        assert_eq!(round["case"], json!({ "items": 20000, "rate_per_billion": 1_000_000, "round": number }));
        assert_eq!(round["rows"].as_array().map(Vec::len), Some(table.len()), "{round}");
    }
    // Equal times show that nothing was measured again.
    assert_eq!(printed(&folder, "--items 20000 --rounds 2"), stdout);
    assert_eq!(record(&folder, "peers")["measured"], first["measured"]);
    printed(&folder, "--growing --items 700 --rounds 1");
    for name in ["growth", "peers"] {
        for ending in [".json", ".csv", "-find.svg", "-build.svg", "-remove.svg"] {
            assert!(folder.join(format!("{name}{ending}")).exists(), "{name}{ending}");
        }
    }
}

/// The record is changed to that of a run in which a filter failed.
#[test]
fn failures_are_kept_in_the_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let stdout = printed(folder.path(), "--rate 0.01 --items 700 --rounds 1");
    assert!(stdout.contains("Built for 700 items, ε = 0.01; one round"), "{stdout}");
    let mut changed = record(folder.path(), "peers");
    changed["measured"][0]["rows"][0] =
        json!({ "filter": "a large one", "family": "fuse", "asked_rate": null, "error": "it is too large" });
    fs::write(folder.path().join("peers.json"), changed.to_string()).expect("it can be written");
    let output = peers_into(folder.path(), "--rate 0.01 --items 700 --rounds 1");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of the filters could not be measured"), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("| a large one | could not be measured: it is too large |"), "{stdout}");
    let csv = fs::read_to_string(folder.path().join("peers.csv")).expect("a table");
    assert!(csv.lines().next().is_some_and(|header| header.ends_with(",disturbed,error")), "{csv}");
    assert!(csv.lines().any(|line| line.contains(",a large one,fuse,,") && line.ends_with(",it is too large")), "{csv}");
}

#[test]
fn invalid_options_are_named_with_their_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    for (arguments, parts) in [
        ("--items 0", ["'0'", "--items", "1..=4294967296"]),
        ("--items 4294967297", ["'4294967297'", "--items", "1..=4294967296"]),
        ("--rounds 1001", ["'1001'", "--rounds", "1..=1000"]),
        ("--rate 0", ["'0'", "--rate", "from 0.000001 to 0.1, such as 0.001"]),
        ("--rate 0.2", ["'0.2'", "--rate", "from 0.000001 to 0.1, such as 0.001"]),
        ("--rate -0.001", ["'-0.001'", "--rate", "from 0.000001 to 0.1, such as 0.001"]),
        ("--rate nan", ["'nan'", "--rate", "from 0.000001 to 0.1, such as 0.001"]),
    ] {
        let output = peers_into(folder.path(), arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty() && parts.iter().all(|part| stderr.contains(part)), "{arguments}: {stderr}");
    }
}

/// Compares the pictures in docs/PERFORMANCE.md and docs/GROWTH.md with newly drawn ones.
#[test]
fn pictures_in_the_documents_match_the_numbers() {
    for (name, option) in [("peers", ""), ("growth", "--growing")] {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tuning");
        let folder = tempfile::tempdir().expect("a folder");
        let file = format!("{name}.json");
        fs::copy(committed.join(&file), folder.path().join(&file)).expect("the committed results");
        let rounds = record(folder.path(), name)["measured"].as_array().map_or(0, Vec::len);
        printed(folder.path(), &format!("{option} --rounds {rounds}"));
        let mut pictures = 0;
        for entry in fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let file = entry.file_name().expect("a name").to_string_lossy().into_owned();
            if file.starts_with(name) {
                let (drawn, existing) = (fs::read(&entry).expect("a file"), fs::read(committed.join(&file)).ok());
                assert!(existing == Some(drawn), "{file} is not what `koel-peers --out` makes of the numbers: run it again");
                pictures += usize::from(entry.extension().is_some_and(|ending| ending == "svg"));
            }
        }
        assert_eq!(pictures, 3, "{name}");
    }
}
