//! Files: mapped by the caller, who hands the map over, or read as a whole.

use super::*;
use crate::common::Folder;
use memmap2::Mmap;
use std::{
    error::Error as _,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

/// As a service would have it that gives its views away.
#[derive(Clone)]
struct Shared(Arc<Mmap>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn map(path: &Path) -> Mmap {
    let file = File::open(path).expect("it is there");
    // SAFETY: nobody changes the files of these tests; they are replaced or deleted.
    #[allow(unsafe_code, reason = "nothing else writes to the mapped file")]
    unsafe { Mmap::map(&file) }.expect("it can be mapped")
}

fn open(path: &Path) -> FilterView<Mmap> {
    FilterView::over(map(path)).expect("a snapshot")
}

#[test]
fn a_file_answers_as_the_filter_does() {
    let folder = Folder::new("answers");
    for (kind, buckets) in [(PACKED, 16), (PACKED, 300_000), (Kind { table: TableKind::Single, f: 7, b: 3, ..PACKED }, 46)] {
        let (filter, path) = (filled(kind, buckets), folder.path("f.koel"));
        filter.save(&path).expect("there is room");
        let mut view = open(&path);
        same(&mut view, &filter);
        view.verify().expect("it is as it was written");
        assert!(CuckooFilter::load(&path).expect("a snapshot") == filter);
        // What is cloned stays mapped.
        let view = FilterView::over(Shared(Arc::new(view.into_data()))).expect("a snapshot");
        let (mut again, other) = (view.clone(), view.to_filter().expect("it is right"));
        drop(view);
        same(&mut again, &other);
    }
}

#[test]
fn a_view_keeps_the_file_that_save_replaces() {
    let folder = Folder::new("replaced");
    let (old, new) = (filled(PACKED, 3000), filled(PACKED, 16));
    old.save(folder.path("f.koel")).expect("there is room");
    let mut view = open(&folder.path("f.koel"));
    new.save(folder.path("f.koel")).expect("there is room");
    same(&mut view, &old);
    same(&mut open(&folder.path("f.koel")), &new);
    assert!(CuckooFilter::load(folder.path("f.koel")).expect("a snapshot") == new);
    fs::remove_file(folder.path("f.koel")).expect("it is there");
    view.verify().expect("it is mapped still");
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let folder = Folder::new("refused");
    let load = |path: PathBuf| CuckooFilter::load(path).expect_err("it is no snapshot");
    for (name, bytes, kind) in [
        ("empty", &b""[..], SnapshotErrorKind::Length),
        ("short", b"KOEL", SnapshotErrorKind::Length),
        ("text", b"not a filter, but quite long: longer than a header is, which has sixty-four bytes", SnapshotErrorKind::Magic),
    ] {
        let path = folder.path(name);
        fs::write(&path, bytes).expect("there is room");
        assert_eq!(FilterView::over(map(&path)).expect_err("it is no snapshot").kind(), kind);
        assert_eq!(load(path).kind(), kind);
    }
    for path in [folder.path("missing"), folder.path("")] {
        let error = load(path.clone());
        assert_eq!(error.kind(), SnapshotErrorKind::Io);
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(error.io_kind().is_some() && error.source().is_none(), "{error}");
    }
}

/// One file is one snapshot: whatever follows was not written by `save`.
#[test]
fn a_file_that_goes_on_is_refused() {
    let folder = Folder::new("longer");
    let filter = filled(PACKED, 16);
    let bytes = filter.to_bytes();
    for more in [1, 8, 1000] {
        let path = folder.path("longer.koel");
        fs::write(&path, [&bytes[..], &vec![0; more]].concat()).expect("there is room");
        for error in [CuckooFilter::load(&path).map(drop), FilterView::over(map(&path)).map(drop)] {
            let error = error.expect_err("it goes on");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::TrailingBytes, bytes.len() as u64), "{error}");
        }
        fs::write(&path, &bytes[..bytes.len() - more.min(bytes.len())]).expect("there is room");
        for error in [CuckooFilter::load(&path).map(drop), FilterView::over(map(&path)).map(drop)] {
            assert_eq!(error.expect_err("it ends too early").kind(), SnapshotErrorKind::Length);
        }
    }
}
