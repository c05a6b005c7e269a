//! Golden snapshots of growing filters: every release reads them, and writes them unchanged.

#[path = "../common/growing.rs"]
mod growing;

use crate::{
    golden::manifest as golden,
    operations::sections::{COPIES, RECORD, sections},
};
use growing::Growing;
use koel::{CuckooFilter, ElasticFilter, ElasticView, FilterView, SnapshotError, SnapshotErrorKind};
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

/// Returns the paths of the snapshots in a folder.
fn snapshots(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(folder).expect("the folder exists").map(|entry| entry.expect("the file can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "koel"))
}

/// Every later release reads files of this format version, and writes the same bytes.
#[test]
fn golden_files_are_read_and_written() {
    let mut changed = Vec::new();
    for golden in goldens() {
        let name = &golden.file;
        let bytes = fs::read(folder().join(name)).expect("the file can be read");
        let (filter, answers) = golden.make();
        if filter.to_bytes() != bytes {
            changed.push(name.clone());
            continue;
        }
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
    assert!(changed.is_empty(), "written differently: {changed:?}; see \"A growing filter\" in docs/CONTRIBUTING.md");
}

/// The list names exactly the files of the folder, and these cover every kind of filter.
#[test]
fn golden_files_cover_every_kind_of_filter() {
    let goldens = goldens();
    let listed: BTreeSet<String> = goldens.iter().map(|golden| golden.file.clone()).collect();
    let name = |path: PathBuf| path.file_name().expect("the path has a file name").to_string_lossy().into_owned();
    let files = snapshots(&folder()).map(name).collect();
    assert_eq!(listed, files);
    let any = |which: fn(&Growing) -> bool| goldens.iter().any(which);
    assert!(any(|golden| golden.steps.is_empty()), "empty");
    assert!(any(|golden| golden.capacity == golden.max_capacity), "no growth planned");
    assert!(any(|golden| golden.partitions > 1), "several partitions");
    assert!(any(|golden| golden.shrink), "shrunk");
    assert!(any(|golden| golden.items == golden::Items::Hash), "prehashed items");
    let files: Vec<Vec<Record>> = goldens.iter().map(|golden| records(&read(&golden.file))).collect();
    let has = |file: &[Record], which: fn(&Record) -> bool| file.iter().any(which);
    let any = |which: fn(&Record) -> bool| files.iter().any(|file| has(file, which));
    assert!(any(|record| record.is_list() && record.depth == 0), "a list of depth 0");
    for kind in [LIST, COPIES] {
        for count_bytes in [1, 2, 4] {
            let has = |record: &Record| record.kind == kind && record.count_bytes == count_bytes;
            assert!(files.iter().flatten().any(has), "counts of {count_bytes} bytes");
        }
    }
    assert!(any(|record| record.generation > 1), "three generations");
    let beside = |file: &&Vec<Record>| has(file, |one| one.is_list() && one.depth > 0) && has(file, |one| one.kind == TABLE);
    assert!(files.iter().any(|file| beside(&file)), "a list beside a table");
    let copies = |file: &&Vec<Record>| has(file, |record| record.kind == COPIES);
    let later = |file: &&Vec<Record>| has(file, |record| record.generation > 0);
    assert!(files.iter().any(|file| copies(&file) && !later(&file)), "extra copies");
    assert!(files.iter().any(|file| copies(&file) && later(&file)), "extra copies with extra bits");
}

fn read(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).expect("the file can be read")
}

const TABLE: u8 = 0;
const LIST: u8 = 1;

/// The first bytes of a record.
struct Record {
    generation: u8,
    depth: u8,
    kind: u8,
    count_bytes: u8,
}

impl Record {
    fn is_list(&self) -> bool {
        self.kind == LIST
    }
}

/// Returns the records of all sections.
fn records(bytes: &[u8]) -> Vec<Record> {
    let sections = sections(bytes);
    let offsets = sections.iter().flat_map(|section| section.records.clone().step_by(RECORD));
    let first_bytes = offsets.map(|at| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    first_bytes.map(|[generation, depth, kind, count_bytes]| Record { generation, depth, kind, count_bytes }).collect()
}

/// Snapshots of versions before the first release are refused by every reader, with a remedy.
#[test]
fn development_versions_are_refused_by_name() {
    let bytes = fs::read(folder().join("../version_1/growing.koel")).expect("the file can be read");
    let check = |read: Result<(), SnapshotError>| {
        let error = read.expect_err("an unknown version");
        let message = "at byte 8: a snapshot of version 1, written by a development version of this library, but this release reads \
                       version 2; write it again with this release";
        assert_eq!((error.kind(), error.to_string().as_str()), (SnapshotErrorKind::Version, message));
    };
    check(ElasticFilter::from_bytes(&bytes).map(drop));
    check(ElasticView::over(&bytes[..]).map(drop));
    check(CuckooFilter::from_bytes(&bytes).map(drop));
    check(FilterView::over(&bytes[..]).map(drop));
}
