//! Snapshot files that the caller maps for a view, or that `load` reads.

use super::*;
use crate::common::{Folder, same_bits};
use memmap2::Mmap;
use std::{
    error::Error as _,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A shared map, as a service would use it to clone views.
#[derive(Clone)]
struct Shared(Arc<Mmap>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn map(path: &Path) -> Mmap {
    let file = File::open(path).expect("the file exists");
    // SAFETY: nobody changes the files of these tests; they are replaced or deleted.
    #[allow(unsafe_code, reason = "nothing else writes to the mapped file")]
    unsafe { Mmap::map(&file) }.expect("the file can be mapped")
}

fn open(path: &Path) -> FilterView<Mmap> {
    FilterView::over(map(path)).expect("a valid snapshot")
}

#[test]
fn a_mapped_file_gives_the_results_of_its_filter() {
    let folder = Folder::new("answers");
    for (kind, buckets) in [(PACKED, 16), (PACKED, 300_000), (Kind { table: TableKind::Single, f: 7, b: 3, ..PACKED }, 46)] {
        let (filter, path) = (filled(kind, buckets), folder.path("f.koel"));
        filter.save(&path).expect("there is room");
        let mut view = open(&path);
        assert_same(&mut view, &filter);
        view.verify().expect("the bytes are unchanged");
        assert!(same_bits(&CuckooFilter::load(&path).expect("a valid snapshot"), &filter));
        // A clone keeps the file mapped.
        let view = FilterView::over(Shared(Arc::new(view.into_data()))).expect("a valid snapshot");
        let (mut again, other) = (view.clone(), view.to_filter().expect("a valid snapshot"));
        drop(view);
        assert_same(&mut again, &other);
    }
}

#[test]
fn a_view_keeps_the_file_that_save_replaces() {
    let folder = Folder::new("replaced");
    let (old, new) = (filled(PACKED, 3000), filled(PACKED, 16));
    old.save(folder.path("f.koel")).expect("there is room");
    let mut view = open(&folder.path("f.koel"));
    new.save(folder.path("f.koel")).expect("there is room");
    assert_same(&mut view, &old);
    assert_same(&mut open(&folder.path("f.koel")), &new);
    assert!(same_bits(&CuckooFilter::load(folder.path("f.koel")).expect("a valid snapshot"), &new));
    fs::remove_file(folder.path("f.koel")).expect("the file exists");
    view.verify().expect("the file is still mapped");
}

#[test]
fn files_that_are_not_snapshots_are_refused() {
    let folder = Folder::new("refused");
    let load = |path: PathBuf| CuckooFilter::load(path).expect_err("the bytes are not a snapshot");
    for (name, bytes, kind) in [
        ("empty", &b""[..], SnapshotErrorKind::Length),
        ("short", b"KOEL", SnapshotErrorKind::Length),
        ("text", b"not a filter, but quite long: longer than a header is, which has sixty-four bytes", SnapshotErrorKind::Magic),
    ] {
        let path = folder.path(name);
        fs::write(&path, bytes).expect("there is room");
        assert_eq!(FilterView::over(map(&path)).expect_err("the bytes are not a snapshot").kind(), kind);
        assert_eq!(load(path).kind(), kind);
    }
    for path in [folder.path("missing"), folder.path("")] {
        let error = load(path.clone());
        assert_eq!(error.kind(), SnapshotErrorKind::Io);
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.io_kind().is_some() && error.source().is_none(), "{error}");
    }
}

/// A file must have exactly one snapshot.
#[test]
fn files_that_are_too_long_or_too_short_are_refused() {
    let folder = Folder::new("longer");
    let filter = filled(PACKED, 16);
    let bytes = filter.to_bytes();
    for more in [1, 8, 1000] {
        let path = folder.path("longer.koel");
        fs::write(&path, [&bytes[..], &vec![0; more]].concat()).expect("there is room");
        for error in [CuckooFilter::load(&path).map(drop), FilterView::over(map(&path)).map(drop)] {
            let error = error.expect_err("more bytes follow");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::TrailingBytes, bytes.len() as u64), "{error}");
        }
        fs::write(&path, &bytes[..bytes.len() - more.min(bytes.len())]).expect("there is room");
        for error in [CuckooFilter::load(&path).map(drop), FilterView::over(map(&path)).map(drop)] {
            assert_eq!(error.expect_err("the bytes are truncated").kind(), SnapshotErrorKind::Length);
        }
    }
}
