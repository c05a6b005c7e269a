//! The command as users run it.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

fn peers(arguments: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_koel-peers")).args(arguments.split_whitespace()).output();
    output.expect("cargo has built the command")
}

/// The cells of the table's rows, without the header.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    // The notes are a table of their own.
    let lines = stdout.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn a_table_and_where_it_was_made() {
    let output = peers("--items 2000 --rounds 2");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let rows = rows(&stdout);
    assert!(rows.len() > 10 && rows.iter().all(|cells| cells.len() == 9), "{stdout}");
    assert!(stdout.lines().last().is_some_and(|line| line.contains("ε = 0.001, 2000 items, medians of 2 rounds")), "{stdout}");
    // One line of progress for each row in each round.
    assert_eq!(stderr.lines().count(), 2 * rows.len(), "{stderr}");
}

/// In a process of its own, since the allocator counts the memory of the whole process.
#[test]
fn bits_per_item_are_the_tables() {
    let output = peers("--items 20000 --rounds 1");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bits = |name: &str| -> Vec<f64> {
        let rows = rows(&stdout).into_iter().filter(|cells| cells[0].starts_with(name));
        rows.map(|cells| cells[7].parse().expect("a number")).collect()
    };
    // The sizes of their tables are known: koel's fingerprints at their load, a power of two of slots or of quotients. Besides
    // the table they have almost nothing, except for one with a list of tables, a list of items and a random generator.
    for (name, count, table, beside) in [
        ("koel packed f = 13, load 0.95", 2, 12.0 / 0.95, 0.05),
        ("koel single f = 12, load 0.95", 1, 12.0 / 0.95, 0.05),
        ("koel single f = 13, load 0.95", 1, 13.0 / 0.95, 0.05),
        ("cuckoofilter", 2, 8.0 * 32768.0 / 20000.0, 0.05),
        ("scalable_cuckoo_filter", 1, 12.0 * 32768.0 / 20000.0, 0.6),
        ("qfilter 0.3, remainders", 1, (9.0 + 2.125) * 32768.0 / 20000.0, 0.05),
        ("bloomfilter", 1, 14.38, 0.05),
        ("fastbloom 0.17", 2, 14.38, 0.05),
        ("fastbloom-rs", 1, 57.51, 0.05),
        ("sbbf-rs-safe", 1, 16.89, 0.05),
    ] {
        let bits = bits(name);
        assert_eq!(bits.len(), count, "{name}: {stdout}");
        let range = table - 0.01..table + beside;
        assert!(bits.iter().all(|bits| range.contains(bits)), "{name}: {bits:?}, not {range:?}");
    }
}

#[test]
fn one_item_is_enough() {
    let output = peers("--rate 0.01 --quick --items 1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("ε = 0.01, 1 items, 1 round"));
}

#[test]
fn each_set_has_files_of_its_own_and_is_not_measured_again() {
    let folder = tempfile::tempdir().expect("a folder");
    // It does not exist yet.
    let folder = folder.path().join("new");
    let run = |arguments: &str| {
        let output = peers_into(&folder, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), folder.join("report.html").display().to_string());
    };
    run("--items 700 --rounds 2");
    let first = measured(&folder, "peers");
    let rounds = first.as_array().expect("rounds");
    assert_eq!(rounds.len(), 2);
    for (round, number) in rounds.iter().zip(1..) {
        assert_eq!(round["case"], serde_json::json!({ "items": 700, "rate_per_billion": 1_000_000, "round": number }));
        assert!(round["rows"].as_array().is_some_and(|rows| rows.len() > 10), "{round}");
    }
    // Two measurements never take the same time.
    run("--items 700 --rounds 2");
    assert_eq!(measured(&folder, "peers"), first);
    run("--growing --items 700 --rounds 1");
    for name in ["growth", "peers"] {
        for ending in [".json", ".csv", "-find.svg", "-build.svg", "-remove.svg"] {
            assert!(folder.join(format!("{name}{ending}")).exists(), "{name}{ending}");
        }
    }
}

fn peers_into(folder: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koel-peers"));
    let output = command.args(arguments.split_whitespace()).arg("--out").arg(folder).output();
    output.expect("cargo has built the command")
}

/// The results of all rounds in a folder.
fn measured(folder: &Path, name: &str) -> serde_json::Value {
    let text = fs::read_to_string(folder.join(format!("{name}.json"))).expect("a record");
    let mut record: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(record["complete"], true);
    record["measured"].take()
}

/// The record is like that of a run in which a filter failed.
#[test]
fn a_failure_is_remembered() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(peers_into(folder.path(), "--items 700 --rounds 1").status.success());
    let path = folder.path().join("peers.json");
    let mut record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).expect("a record")).expect("JSON");
    record["measured"][0]["rows"][0] = serde_json::json!({
        "filter": "a large one", "family": "fuse", "asked_rate": null, "error": "it is too large",
    });
    fs::write(&path, record.to_string()).expect("it can be written");
    let output = peers_into(folder.path(), "--items 700 --rounds 1");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of the filters could not be measured"), "{stderr}");
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).expect("a record")).expect("JSON");
    let note = serde_json::json!(["a large one", "could not be measured: it is too large"]);
    assert!(record["tables"].as_array().is_some_and(|tables| tables.iter().any(|table| table["rows"][0] == note)), "{record}");
    let csv = fs::read_to_string(folder.path().join("peers.csv")).expect("a table");
    assert!(csv.lines().next().is_some_and(|header| header.ends_with(",disturbed,error")), "{csv}");
    assert!(csv.lines().any(|line| line.contains(",a large one,fuse,,") && line.ends_with(",it is too large")), "{csv}");
}

#[test]
fn mistakes_are_named_with_their_limits() {
    for (arguments, parts) in [
        ("--items 0", ["'0'", "--items", "from 1 to 4294967296", "such as 10000000"]),
        ("--items 4294967297", ["'4294967297'", "--items", "from 1 to 4294967296", "such as 10000000"]),
        ("--items -1", ["'-1'", "--items", "whole number", "such as 10000000"]),
        ("--items 1e7", ["'1e7'", "--items", "whole number", "such as 10000000"]),
        ("--rounds 0", ["'0'", "--rounds", "from 1 to 1000", "such as 3"]),
        ("--rate 0", ["'0'", "--rate", "from 0.000001 to 0.1", "such as 0.001"]),
        ("--rate 0.2", ["'0.2'", "--rate", "from 0.000001 to 0.1", "such as 0.001"]),
        ("--rate -0.001", ["'-0.001'", "--rate", "from 0.000001 to 0.1", "such as 0.001"]),
        ("--rate nan", ["'nan'", "--rate", "from 0.000001 to 0.1", "such as 0.001"]),
        ("--rate 1%", ["'1%'", "--rate", "from 0.000001 to 0.1", "such as 0.001"]),
        ("--again", ["--out <FOLDER>", "required", "--again", "Usage"]),
        ("--rounds many", ["'many'", "--rounds", "whole number", "such as 3"]),
    ] {
        let output = peers(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty() && parts.iter().all(|part| stderr.contains(part)), "{arguments}: {stderr}");
    }
}

/// The pictures in docs/TUNING.md and docs/GROWTH.md.
#[test]
fn the_documents_pictures_are_those_of_the_numbers() {
    for (name, option) in [("peers", ""), ("growth", "--growing")] {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tuning");
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = format!("{name}.json");
        fs::copy(committed.join(&record), folder.path().join(&record)).expect("the committed results");
        let rounds = measured(folder.path(), name).as_array().map_or(0, Vec::len);
        let output = peers_into(folder.path(), &format!("{option} --rounds {rounds}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut pictures = 0;
        for entry in fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            let file = entry.file_name().expect("a name").to_string_lossy().into_owned();
            if file.starts_with(name) {
                let (drawn, there) = (fs::read(&entry).expect("a file"), fs::read(committed.join(&file)).ok());
                assert!(there == Some(drawn), "{file} is not what `koel-peers --out` makes of the numbers: run it again");
                pictures += usize::from(entry.extension().is_some_and(|ending| ending == "svg"));
            }
        }
        assert_eq!(pictures, 3, "{name}");
    }
}
