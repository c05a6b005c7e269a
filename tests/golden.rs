//! Snapshots of each hasher, and golden files, which every release reads and writes byte for byte.

#[path = "common/golden.rs"]
pub(crate) mod manifest;

use crate::common::same_bits;
use koel::{
    CuckooFilter, FilterView,
    hash::{AnyHasher, HasherId},
};
use manifest::{Golden, Step};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::xxh3_64;

#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn a_snapshot_is_read_only_with_its_hasher() {
    use koel::{SnapshotErrorKind, Xxh3, go::MetroHash64};
    let mut filter = CuckooFilter::builder()
        .capacity(100)
        .fingerprint_bits(12)
        .hasher(MetroHash64)
        .seed(1337)
        .build()
        .expect("valid parameters");
    filter.insert("koel").expect("there is room");
    let bytes = filter.to_bytes();
    let error = CuckooFilter::from_bytes(&bytes).expect_err("another hasher");
    assert_eq!(error.kind(), SnapshotErrorKind::Hasher);
    assert!(error.to_string().contains("metrohash64"), "{error}");
    // The caller cannot force another hasher, because all lookups would give wrong results.
    let error = CuckooFilter::from_bytes_with(&bytes, |_| Some(Xxh3)).expect_err("another hasher");
    assert_eq!(error.kind(), SnapshotErrorKind::Hasher);
    let own = |id| (id == HasherId::METRO_HASH_64).then_some(MetroHash64);
    assert!(same_bits(&CuckooFilter::from_bytes_with(&bytes, own).expect("its own hasher"), &filter));
    let any = CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).expect("any hasher");
    assert!(any.contains("koel") && any.params().seed() == 1337);
    assert_eq!(any.to_bytes(), bytes);
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn goldens() -> Vec<Golden> {
    Golden::list(&fs::read_to_string(folder().join("goldens.json")).expect("the list is here"))
}

/// All releases read and write files of this version.
#[test]
fn golden_files_are_read_and_written() {
    for golden in goldens() {
        let name = &golden.file;
        let bytes = fs::read(folder().join(name)).expect("the file is here");
        let Some((filter, results)) = golden.make() else {
            assert_ne!(golden.hasher, HasherId::XXH3, "every build has the default hasher");
            continue;
        };
        assert!(filter.to_bytes() == bytes, "{name} is written differently");
        let read = CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id);
        let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(same_bits(&read, &filter), "{name} is read differently");
        assert_eq!(golden.answers.as_ref(), Some(&results), "{name}");
        assert_eq!(golden.found(&read), results.found, "{name}");
        let view = FilterView::over_with(&bytes, AnyHasher::from_id).unwrap_or_else(|error| panic!("{name}: {error}"));
        view.verify().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(golden.found(&view), results.found, "{name}");
        for (n, copies) in results.holds.iter().flat_map(|(run, copies)| run.clone().map(move |n| (n, *copies))) {
            assert!(u64::from(golden.items.count(&read, n)) >= copies, "{name} has lost item {n}");
        }
        let copies: u64 = results.holds.iter().map(|(run, copies)| (run.end - run.start) * copies).sum();
        assert_eq!(read.len() as u64, copies, "{name}");
    }
}

#[cfg(feature = "std")]
#[test]
fn golden_files_are_read_from_streams() {
    for golden in goldens() {
        let bytes = fs::read(folder().join(&golden.file)).expect("the file is here");
        if AnyHasher::from_id(golden.hasher).is_none() {
            continue;
        }
        // A stream may have more bytes after the snapshot.
        let stream = [&bytes[..], b"more"].concat();
        let mut rest = &stream[..];
        let read = CuckooFilter::read_from_with(&mut rest, AnyHasher::from_id);
        let read = read.unwrap_or_else(|error| panic!("{}: {error}", golden.file));
        assert_eq!(rest, b"more");
        let mut written = Vec::new();
        read.write_to(&mut written).expect("a vector accepts everything");
        assert!(written == bytes, "{} is written differently", golden.file);
    }
}

/// The list names every file, and the files cover all kinds of filters.
#[test]
fn golden_files_cover_all_kinds_of_filters() {
    let goldens = goldens();
    let listed: BTreeSet<String> = goldens.iter().map(|golden| golden.file.clone()).collect();
    let paths = fs::read_dir(folder()).expect("it is here").map(|entry| entry.expect("it can be read").path());
    let snapshots = paths.filter(|path| path.extension().is_some_and(|extension| extension == "koel"));
    let files = snapshots.map(|path| path.file_name().expect("it is a file").to_string_lossy().into_owned()).collect();
    assert_eq!(listed, files);
    let kinds = |describe: fn(&Golden) -> String| goldens.iter().map(describe).collect::<BTreeSet<_>>();
    assert_eq!(kinds(|golden| format!("{} {} {}", golden.table, golden.addressing, golden.hasher)).len(), 9);
    for f in [2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 21, 25, 32] {
        assert!(goldens.iter().any(|golden| golden.f == f), "f = {f}");
    }
    for b in [1, 2, 3, 4, 8, 16] {
        assert!(goldens.iter().any(|golden| golden.b == b), "b = {b}");
    }
    assert_eq!(kinds(|golden| format!("{:?}", golden.items)).len(), 5);
    // Given hashes are used differently by the two kinds of addressing.
    assert_eq!(kinds(|golden| format!("{} {}", golden.items == manifest::Items::Hash, golden.addressing)).len(), 4);
    let several = |is_such: fn(&Golden) -> bool| goldens.iter().filter(|golden| is_such(golden)).count() > 1;
    assert!(several(|golden| golden.steps.is_empty()), "empty");
    assert!(several(|golden| golden.steps.iter().any(|step| matches!(step, Step::Remove(_)))), "with removed items");
    assert!(several(|golden| held_items(golden).iter().any(|(_, copies)| *copies > 1)), "with copies");
    assert!(several(|golden| golden.seed != 0), "with a seed");
    assert!(goldens.iter().any(|golden| matches!(golden.steps.first(), Some(Step::Convert(..)))), "converted");
    let is_full = |golden: &Golden| held_items(golden).iter().map(|(run, _)| run.end).max() < end_of_insertions(golden);
    assert!(goldens.iter().filter(|golden| is_full(golden)).count() > 1, "full");
}

/// Returns the items of the filter, as ranges with their number of copies.
fn held_items(golden: &Golden) -> &[(std::ops::Range<u64>, u64)] {
    &golden.answers.as_ref().expect("`cargo run --features redisbloom --example goldens` writes the answers").holds
}

/// Returns the end of the range of items whose insertion was tried, if that is the only step.
fn end_of_insertions(golden: &Golden) -> Option<u64> {
    match &golden.steps[..] {
        [Step::Insert(items)] => Some(items.end),
        _ => None,
    }
}

/// Every release reads the files of earlier ones. So a file that was released is never changed, renamed or removed, and what a
/// later release writes differently is in files of its own.
#[test]
fn released_files_never_change() {
    const REMEDY: &str = "see \"A stable format\" in docs/CONTRIBUTING.md";
    let list = fs::read_to_string(folder().join("digests.tsv")).expect("the list is here");
    let entries =
        list.lines().filter(|line| !line.starts_with('#')).map(|line| line.split_once('\t').expect("a digest and a name"));
    let listed: BTreeMap<String, String> = entries.map(|(digest, name)| (name.to_owned(), digest.to_owned())).collect();
    let mut files = BTreeMap::new();
    digests(&folder(), "", &mut files);
    for (name, digest) in &listed {
        let file = files.get(name).unwrap_or_else(|| panic!("tests/data/{name} is gone; restore it, {REMEDY}"));
        assert_eq!(file, digest, "tests/data/{name} has changed; restore it, {REMEDY}");
    }
    let new = files.iter().filter(|(name, _)| !listed.contains_key(*name)).map(|(name, digest)| format!("{digest}\t{name}\n"));
    let new: String = new.collect();
    assert!(new.is_empty(), "add these lines to tests/data/digests.tsv; {REMEDY}:\n{new}");
}

/// Adds the digests of all files that koel has written, by their paths. Files that other programs wrote, and lists, may be extended.
fn digests(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read").map(|entry| entry.expect("the entry can be read")) {
        let (path, name) = (entry.path(), format!("{prefix}{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            if !matches!(name.as_str(), "go" | "redisbloom") {
                digests(&path, &format!("{name}/"), files);
            }
        } else if !path.extension().is_some_and(|extension| extension == "json" || extension == "tsv") {
            files.insert(name, format!("{:016x}", xxh3_64(&fs::read(&path).expect("the file can be read"))));
        }
    }
}
