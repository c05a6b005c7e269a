//! docs/TUNING.md and the results it shows: the pictures are those of the numbers, as this program draws them. docs/RESULTS.md
//! describes every column.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::common::Koel;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The files of a folder, but for what is never kept.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let named = entries.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    let kept = named.filter(|(name, _)| name != "report.html" && !name.ends_with(".partial.jsonl"));
    kept.map(|(name, path)| (name, fs::read(path).expect("a file"))).collect()
}

#[test]
fn the_pictures_are_those_of_the_numbers() {
    let committed = files(&docs().join("tuning"));
    let koel = Koel::new();
    fs::create_dir(koel.path("results")).expect("a new folder");
    let mut names = Vec::new();
    for (name, bytes) in &committed {
        // Not the pictures, nor the tables; nor what another program has measured.
        if let Some(name) = name.strip_suffix(".json").filter(|name| !["peers", "growth"].contains(name)) {
            koel.write(&format!("results/{name}.json"), bytes);
            names.push(name);
        }
    }
    assert!(names.contains(&"load") && names.contains(&"space"), "{names:?}");
    let run = koel.run(["experiment", "--out", "results"].into_iter().chain(names.iter().copied()));
    run.status(0);
    let cases: Vec<_> = run.stderr.lines().filter(|line| line.contains(" cases")).collect();
    assert!(cases.len() == names.len() && cases.iter().all(|line| line.contains("all of them measured before")), "{cases:?}");
    let drawn = files(&koel.path("results"));
    for (name, bytes) in &committed {
        if names.iter().any(|&of| name.strip_prefix(of).is_some_and(|rest| rest.starts_with(['.', '-']))) {
            assert!(drawn.get(name) == Some(bytes), "{name} is not what `koel experiment` makes of the numbers: run it again");
        }
    }
    for name in drawn.keys() {
        assert!(committed.contains_key(name), "{name} is not in docs/tuning");
    }
}

#[test]
fn the_document_shows_what_is_there() {
    let text = fs::read_to_string(docs().join("TUNING.md")).expect("the document");
    let committed = files(&docs().join("tuning"));
    let shown: Vec<_> = text.split("](tuning/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(shown.len() >= 8, "{shown:?}");
    for name in shown {
        assert!(committed.contains_key(name), "docs/TUNING.md shows tuning/{name}, which is not there");
    }
}

/// Checks that docs/RESULTS.md describes the columns of a table as the record does, in the same order.
#[track_caller]
fn columns_are_described(name: &str, csv: &[u8], json: &[u8]) {
    let text = fs::read_to_string(docs().join("RESULTS.md")).expect("the document");
    let section = text.split("\n## ").find(|section| section.starts_with(&format!("{name}: "))).expect("a section");
    let cells = |line: &str| line.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect::<Vec<_>>();
    let described: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).map(cells).collect();
    let record: Value = serde_json::from_slice(json).expect("JSON");
    let text = |column: &Value, field: &str| column[field].as_str().expect("a text").to_owned();
    let columns = record["columns"].as_array().expect("a list").iter();
    let columns: Vec<_> =
        columns.map(|column| vec![format!("`{}`", text(column, "name")), text(column, "unit"), text(column, "about")]).collect();
    assert_eq!(described, columns, "{name}");
    // A table has no column for what no row has, such as the errors of filters that could not be measured.
    let header = String::from_utf8_lossy(csv).lines().next().expect("a header").to_owned();
    let mut names = described.iter().map(|cells| cells[0].trim_matches('`'));
    for name in header.split(',') {
        assert!(names.any(|described| described == name), "docs/RESULTS.md does not describe the column {name}, or not there");
    }
}

#[test]
fn every_column_is_described() {
    let committed = files(&docs().join("tuning"));
    let tables: Vec<_> = committed.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".csv")?, bytes))).collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for (name, csv) in tables {
        columns_are_described(name, csv, &committed[&format!("{name}.json")]);
    }
    // The repository has no sweep.
    let koel = Koel::new();
    koel.run(["experiment", "sweep", "--items", "100", "--out", "results"]).status(0);
    columns_are_described("sweep", &koel.read("results/sweep.csv"), &koel.read("results/sweep.json"));
}
