//! Whole files, read and replaced.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use anyhow::Context as _;

/// The file's text; none if there is no such file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Writes a file, which is as before until all of it is there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".koel-").suffix(".tmp");
        // As any other file's, less what the user's mask takes away.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        file.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("{} could not be written", path.display()))
}

/// Makes names in the file's folder durable.
#[cfg(unix)]
pub(super) fn sync(path: &Path) -> io::Result<()> {
    match fs::File::open(path.parent().unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()) {
        // Folders that cannot be read, and file systems that cannot do it: nothing more can be done there.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(not(unix))]
pub(super) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
