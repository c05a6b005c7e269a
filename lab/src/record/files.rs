//! Reading and replacing whole files.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use anyhow::Context as _;

/// The text of a file. `None` if it does not exist.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Replaces a file atomically: until all of it is written, the old one stays. A link stays, too: it leads to the new file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let write = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".koel-").suffix(".tmp");
        // Those of an ordinary new file: the umask is applied.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(target.parent().unwrap_or(Path::new(".")))?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        file.persist(&target)?;
        Ok(())
    };
    write().with_context(|| format!("{} could not be written", path.display()))
}

/// Syncs the file's folder, so that a new name in it is durable.
#[cfg(unix)]
pub(super) fn sync(path: &Path) -> io::Result<()> {
    match fs::File::open(path.parent().unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()) {
        // A folder without read permission, or a file system that cannot sync folders: there is no other way.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput | ErrorKind::Unsupported) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "on Unix, it can fail")]
pub(super) fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}
