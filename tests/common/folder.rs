//! Folders for tests that write files.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

/// A folder of its own for a test, gone when that is over.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// `name` is the test's.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("koel-{name}-{}", process::id()));
        fs::create_dir_all(&path).expect("there is a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// What is in it, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
