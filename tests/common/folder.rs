//! Temporary folders for tests that write files.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

/// A temporary folder of one test, deleted on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates the folder. `name` must be unique to the test.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("koel-{name}-{}", process::id()));
        fs::create_dir_all(&path).expect("there is a folder for temporary files");
        Self(path)
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Returns the sorted names of the files in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder exists");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("the folder can be read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
