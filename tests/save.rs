//! Saving replaces a file atomically or not at all, and keeps its permissions and its symbolic links. Errors of loading name the file.

use crate::common::{Folder, same_bits};
use koel::{CuckooFilter, FilterView, SnapshotErrorKind};
use std::{
    fs,
    io::{self, ErrorKind},
};

fn filter(items: u32) -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build().expect("valid parameters");
    (0..items).for_each(|item| filter.insert(&item).expect("there is room"));
    filter
}

#[test]
fn saved_files_have_the_bytes_of_the_filter() {
    let folder = Folder::new("saved");
    for items in [10, 20, 0] {
        let filter = filter(items);
        filter.save(folder.path("f.koel")).expect("there is room");
        let bytes = fs::read(folder.path("f.koel")).expect("it is there");
        assert!(bytes == filter.to_bytes());
        // Views can be saved, too.
        FilterView::over(&bytes).map(|view| view.save(folder.path("g.koel"))).expect("valid snapshot").expect("there is room");
        assert!(fs::read(folder.path("g.koel")).expect("it is there") == bytes);
        // No temporary file is left.
        assert_eq!(folder.names(), ["f.koel", "g.koel"]);
    }
}

#[test]
fn several_threads_can_save_at_the_same_time() {
    let folder = Folder::new("many");
    std::thread::scope(|scope| {
        for items in 0..8 {
            let path = folder.path("f.koel");
            scope.spawn(move || filter(items).save(path).expect("there is room"));
        }
    });
    let saved = fs::read(folder.path("f.koel")).expect("it is there");
    // The file is complete, and from one of the threads.
    assert!((0..8).any(|items| filter(items).to_bytes() == saved));
    assert_eq!(folder.names(), ["f.koel"]);
}

#[test]
fn a_failed_save_changes_nothing() {
    let folder = Folder::new("stays");
    fs::create_dir(folder.path("inner")).expect("there is room");
    let error = filter(1).save(folder.path("inner")).expect_err("a folder");
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
    assert!(error.to_string().contains("inner: is a folder; give the name of a file in it"), "{error}");
    let error = filter(1).save(folder.path("missing/f.koel")).expect_err("there is no such folder");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("missing/f.koel: cannot be written"), "{error}");
    filter(1).save("").expect_err("no name");
    filter(1).save(folder.path("..")).expect_err("a folder");
    assert_eq!(folder.names(), ["inner"]);
}

#[test]
fn a_file_that_goes_on_after_its_snapshot_is_read_as_a_stream() {
    let folder = Folder::new("goes-on");
    let (path, one) = (folder.path("two.koel"), filter(1).to_bytes());
    fs::write(&path, [&one[..], &one].concat()).expect("there is room");
    let error = CuckooFilter::load(&path).expect_err("more bytes follow");
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::TrailingBytes, one.len() as u64));
    let message = error.to_string();
    assert!(message.contains("the file goes on after the snapshot's end") && message.contains("read_from, which leave the rest"));
    let mut file = fs::File::open(&path).expect("the file exists");
    for _ in 0..2 {
        assert!(same_bits(&CuckooFilter::read_from(&mut file).expect("the file has two snapshots"), &filter(1)));
    }
}

#[test]
fn the_error_names_a_file_that_cannot_be_opened() {
    let folder = Folder::new("missing");
    let error = CuckooFilter::load(folder.path("missing.koel")).expect_err("the file does not exist");
    assert_eq!(error.io_kind(), Some(ErrorKind::NotFound));
    let message = error.to_string();
    let error = io::Error::from(error);
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::NotFound, message.clone()));
    assert!(message.contains("missing.koel: cannot be opened: "), "{message}");
    #[cfg(target_os = "linux")]
    assert!(message.ends_with("missing.koel: cannot be opened: No such file or directory (os error 2)"), "{message}");
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::{
        fs::Permissions,
        os::unix::{
            fs::{FileTypeExt as _, PermissionsExt as _, symlink},
            net::UnixListener,
        },
    };

    #[test]
    fn hard_links_keep_the_replaced_file() {
        let folder = Folder::new("kept");
        filter(1).save(folder.path("f.koel")).expect("there is room");
        fs::hard_link(folder.path("f.koel"), folder.path("before.koel")).expect("there is room");
        filter(2).save(folder.path("f.koel")).expect("there is room");
        assert!(fs::read(folder.path("before.koel")).expect("it is there") == filter(1).to_bytes());
        assert!(fs::read(folder.path("f.koel")).expect("it is there") == filter(2).to_bytes());
    }

    #[test]
    fn replaced_files_keep_their_permissions_and_new_ones_follow_the_umask() {
        let folder = Folder::new("permissions");
        let mode = |name: &str| fs::metadata(folder.path(name)).expect("it is there").permissions().mode() & 0o7777;
        fs::write(folder.path("usual"), "").expect("there is room");
        filter(0).save(folder.path("f.koel")).expect("there is room");
        assert_eq!(mode("f.koel"), mode("usual"));
        // The owner of a file can replace it even if it is read-only. Set-user-ID and set-group-ID bits are not kept.
        let modes = [0o640, 0o604, 0o600, 0o644, 0o666, 0o660, 0o606, 0o622, 0o400, 0o000, 0o755, 0o711, 0o777];
        let special = [(0o4755, 0o755), (0o2750, 0o750)];
        for (items, (before, after)) in (1..).zip(modes.map(|mode| (mode, mode)).into_iter().chain(special)) {
            fs::set_permissions(folder.path("f.koel"), Permissions::from_mode(before)).expect("we own the file");
            filter(items).save(folder.path("f.koel")).expect("there is room");
            assert_eq!(mode("f.koel"), after, "{before:o} became {:o}", mode("f.koel"));
            fs::set_permissions(folder.path("f.koel"), Permissions::from_mode(0o600)).expect("we own the file");
            assert!(fs::read(folder.path("f.koel")).expect("it is there") == filter(items).to_bytes());
        }
        assert_eq!(folder.names(), ["f.koel", "usual"]);
    }

    #[test]
    fn symbolic_links_are_followed_and_kept() {
        let folder = Folder::new("links");
        fs::create_dir(folder.path("far")).expect("there is room");
        symlink("far/away.koel", folder.path("near.koel")).expect("there is room");
        for (items, mode) in [(1, None), (2, Some(0o640)), (3, Some(0o400))] {
            if let Some(mode) = mode {
                fs::set_permissions(folder.path("far/away.koel"), Permissions::from_mode(mode)).expect("we own the file");
            }
            filter(items).save(folder.path("near.koel")).expect("there is room");
            assert!(fs::read(folder.path("far/away.koel")).expect("it is there") == filter(items).to_bytes());
            assert!(fs::symlink_metadata(folder.path("near.koel")).expect("it is there").is_symlink());
            let now = fs::metadata(folder.path("far/away.koel")).expect("it is there").permissions().mode() & 0o777;
            assert!(mode.is_none_or(|mode| mode == now), "{now:o}");
        }
        symlink("cycle", folder.path("cycle")).expect("there is room");
        let error = filter(1).save(folder.path("cycle")).expect_err("the links form a cycle");
        assert!(error.to_string().contains("symbolic links"), "{error}");
    }

    /// Replacing a device would delete it. A socket represents devices, because tests cannot create those.
    #[test]
    fn special_files_are_not_replaced() {
        let folder = Folder::new("special");
        let _socket = UnixListener::bind(folder.path("socket")).expect("there is room");
        let error = filter(1).save(folder.path("socket")).expect_err("a socket");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("socket: is not a regular file"), "{error}");
        assert!(fs::metadata(folder.path("socket")).expect("it is there").file_type().is_socket());
        assert_eq!(folder.names(), ["socket"]);
    }
}
