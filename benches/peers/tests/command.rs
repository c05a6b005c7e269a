//! The command, as it is typed.

use std::process::{Command, Output};

fn peers(arguments: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_koel-peers")).args(arguments.split_whitespace()).output();
    output.expect("cargo has built the command")
}

/// The cells of the table's rows, without the header.
fn rows(stdout: &str) -> Vec<Vec<&str>> {
    let lines = stdout.lines().filter(|line| line.starts_with('|')).skip(2);
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

/// In a process of its own, for the allocator's count belongs to all of a process.
#[test]
fn bits_per_item_are_the_tables() {
    let output = peers("--items 20000 --rounds 1");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bits = |name: &str| -> Vec<f64> {
        let rows = rows(&stdout).into_iter().filter(|cells| cells[0].starts_with(name));
        rows.map(|cells| cells[7].parse().expect("a number")).collect()
    };
    // Their tables' sizes are known: koel's fingerprints at their load, a power of two of slots or of quotients. What they have
    // beside the table is next to nothing, but for one, which has a list of tables, a list of items and a generator.
    for (name, count, table, beside) in [
        ("koel packed f = 13, load 0.95", 3, 12.0 / 0.95, 0.05),
        ("koel single f = 12, load 0.95", 1, 12.0 / 0.95, 0.05),
        ("koel single f = 13, load 0.95", 1, 13.0 / 0.95, 0.05),
        ("cuckoofilter", 2, 8.0 * 32768.0 / 20000.0, 0.05),
        ("scalable_cuckoo_filter", 1, 12.0 * 32768.0 / 20000.0, 0.6),
        ("qfilter", 1, (9.0 + 2.125) * 32768.0 / 20000.0, 0.05),
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
fn another_rate_is_another_size() {
    let output = peers("--quick --items 20000 --rate 0.01");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout.lines().last().is_some_and(|line| line.contains("ε = 0.01, 20000 items, 1 round")), "{stdout}");
    for (name, count) in [("koel packed f = 10,", 5), ("koel single f = 10,", 1), ("koel single f = 9,", 1)] {
        assert_eq!(rows(&stdout).iter().filter(|cells| cells[0].starts_with(name)).count(), count, "{name}: {stdout}");
    }
    // log₂(1/ε)/ln 2, and some bytes.
    let rows = rows(&stdout);
    let bloom = rows.iter().find(|cells| cells[0].starts_with("bloomfilter")).expect("a Bloom filter");
    assert!((9.58..9.63).contains(&bloom[7].parse().expect("a number")), "{stdout}");
}

#[test]
fn one_item_is_enough() {
    let output = peers("--items 1 --rounds 1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
        ("--rounds many", ["'many'", "--rounds", "whole number", "such as 3"]),
    ] {
        let output = peers(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty() && parts.iter().all(|part| stderr.contains(part)), "{arguments}: {stderr}");
    }
}

#[test]
fn help_has_examples() {
    let output = peers("--help");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("--items <N>") && stdout.contains("Examples:"), "{stdout}");
}
