//! Paths that stand for an open file descriptor: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/3`, and symbolic links to them.

use std::{fs, path::Path};

use super::folder;

/// Symbolic links that are followed, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file descriptor that a path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// Of this process, with its number.
    Own(u32),
    /// Of another process.
    Foreign,
}

impl Descriptor {
    /// The descriptor that the path stands for, if it stands for one. The descriptor need not be open.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            if let Some(descriptor) = Self::named(&path) {
                return Some(descriptor);
            }
            path = folder(&path).join(fs::read_link(&path).ok()?);
        }
        None
    }

    /// The descriptor that the last component of the path names.
    fn named(path: &Path) -> Option<Self> {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        let folder = fs::canonicalize(folder(path)).ok()?;
        // On Linux these are links to /proc/PID/fd and /proc/PID/task/TID/fd; elsewhere /dev/fd is a folder.
        let own = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];
        if own.iter().any(|own| fs::canonicalize(own).is_ok_and(|own| own == folder)) {
            return Some(Self::Own(number));
        }
        (folder.starts_with("/proc") && folder.ends_with("fd")).then_some(Self::Foreign)
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::{os::unix::fs::symlink, path::PathBuf};

    #[test]
    #[cfg(target_os = "linux")]
    fn every_name_of_a_descriptor_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let links = ["near", "far"].map(|name| folder.path().join(name));
        symlink("/dev/stderr", &links[0]).unwrap();
        symlink("near", &links[1]).unwrap();
        let own = format!("/proc/{}/fd/2", std::process::id());
        let names = ["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2", "/proc/thread-self/fd/2", "/dev/../dev/fd/2", &own];
        for path in names.into_iter().map(Path::new).chain(links.iter().map(PathBuf::as_path)) {
            assert_eq!(Descriptor::of(path), Some(Descriptor::Own(2)), "{}", path.display());
        }
        assert_eq!(Descriptor::of(Path::new("/dev/fd/4000000000")), Some(Descriptor::Own(4_000_000_000)));
        let parent = format!("/proc/{}/fd/2", std::os::unix::process::parent_id());
        assert_eq!(Descriptor::of(Path::new(&parent)), Some(Descriptor::Foreign));
    }

    #[test]
    fn other_paths_are_none() {
        let folder = tempfile::tempdir().unwrap();
        symlink("round", folder.path().join("round")).unwrap();
        fs::create_dir(folder.path().join("fd")).unwrap();
        for name in ["2", "fd/2", "round", "missing/2", "..", ""] {
            assert_eq!(Descriptor::of(&folder.path().join(name)), None, "{name}");
        }
        for path in ["2", "", "/", "/dev/null", "/dev/fd", "/dev/fd/x", "/proc/self/fd"] {
            assert_eq!(Descriptor::of(Path::new(path)), None, "{path}");
        }
    }
}
