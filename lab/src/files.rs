//! Replacing and removing files.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use anyhow::Context as _;

/// Replaces a file atomically: the old one stays until the new one is complete. A symbolic link stays, and points to the new file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let write = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".koel-").suffix(".tmp");
        // These are the permissions of an ordinary new file, since the umask applies.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let created = builder.tempfile_in(target.parent().unwrap_or(Path::new(".")));
        // The error's own message would name the temporary file.
        let mut file = created.map_err(|error| io::Error::from(error.kind()))?;
        file.write_all(bytes)?;
        file.as_file().sync_data()?;
        file.persist(&target)?;
        Ok(())
    };
    write().with_context(|| format!("{} could not be written", path.display()))
}

/// Removes a file. A missing file is not an error.
pub(crate) fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} could not be deleted", path.display()))
        }
        _ => Ok(()),
    }
}
