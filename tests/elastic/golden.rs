//! Golden snapshots of growing filters: every release reads them, and writes them unchanged.

#[path = "../common/growing.rs"]
mod growing;

use crate::golden::manifest as golden;
use growing::Growing;
use koel::{ElasticFilter, TableKind};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/growing")
}

fn goldens() -> Vec<Growing> {
    Growing::list(&fs::read_to_string(folder().join("growing.json")).expect("the list can be read"))
}

/// Every later release reads files of this format version, and writes the same bytes.
#[test]
fn golden_files_are_read_and_written() {
    for golden in goldens() {
        let name = &golden.file;
        let bytes = fs::read(folder().join(name)).expect("the file can be read");
        let (filter, answers) = golden.make();
        assert!(filter.to_bytes() == bytes, "{name} is written differently: see \"A growing filter\" in docs/CONTRIBUTING.md");
        assert_eq!(golden.answers.as_ref(), Some(&answers), "{name}");
        let read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(read.to_bytes() == bytes, "{name} changes when it is read and written");
        assert_eq!(golden.found(&read), answers.found, "{name}");
        let mut held = 0;
        for (run, copies) in answers.holds {
            held += (run.end - run.start) * copies;
            for n in run {
                assert!(golden.finds_item(&read, n), "{name} has lost item {n}");
            }
        }
        assert_eq!(read.len() as u64, held, "{name}");
    }
}

/// The list names exactly the files of the folder, and these cover every kind of filter.
#[test]
fn golden_files_cover_every_kind_of_filter() {
    let goldens = goldens();
    let listed: BTreeSet<String> = goldens.iter().map(|golden| golden.file.clone()).collect();
    let paths = fs::read_dir(folder()).expect("the folder exists").map(|entry| entry.expect("the file can be read").path());
    let snapshots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "koel"));
    let files =
        snapshots.map(|path| path.file_name().expect("the path has a file name").to_string_lossy().into_owned()).collect();
    assert_eq!(listed, files);
    let any = |which: fn(&Growing) -> bool| goldens.iter().any(which);
    let read = |golden: &Growing| {
        let bytes = fs::read(folder().join(&golden.file)).expect("the file can be read");
        ElasticFilter::from_bytes(&bytes).expect("a valid snapshot")
    };
    assert!(any(|golden| golden.steps.is_empty()), "empty");
    assert!(any(|golden| golden.table == TableKind::Packed) && any(|golden| golden.table == TableKind::Single), "tables");
    assert!(any(|golden| golden.capacity == golden.max_capacity), "no growth planned");
    assert!(any(|golden| golden.partitions > 1), "several partitions");
    assert!(any(|golden| golden.shrink), "shrunk");
    assert!(any(|golden| golden.items == golden::Items::Hash), "prehashed items");
    assert!(goldens.iter().any(|golden| read(golden).buckets_per_lookup() > 4), "three generations or more");
}
