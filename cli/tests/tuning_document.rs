//! docs/TUNING.md and the results it shows: the pictures are those of the numbers, as this program draws them. Records describe
//! the columns of their tables.

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

/// A record says of every column of its table what it is.
#[test]
fn every_column_is_described() {
    let committed = files(&docs().join("tuning"));
    let tables: Vec<_> = committed.iter().filter_map(|(name, bytes)| Some((name.strip_suffix(".csv")?, bytes))).collect();
    assert!(tables.len() >= 6, "{tables:?}");
    for (name, csv) in tables {
        let record: Value = serde_json::from_slice(&committed[&format!("{name}.json")]).expect("JSON");
        let columns = record["columns"].as_array().expect("a list");
        let described = |name: &str| {
            let column = columns.iter().find(|column| column["name"] == name);
            column.is_some_and(|column| column["about"].as_str().is_some_and(|about| !about.is_empty()))
        };
        let header = String::from_utf8_lossy(csv).lines().next().expect("a header").to_owned();
        let unknown: Vec<_> = header.split(',').filter(|column| !described(column)).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}
