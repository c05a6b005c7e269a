//! Reading and replacing whole files, and the records of a folder, of whatever experiments.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use anyhow::Context as _;

use super::Record;

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

/// The order of the experiments. Any others follow, sorted by name.
const ORDER: [&str; 7] = ["load", "space", "fpr", "speed", "sweep", "peers", "growth"];

/// The results of an experiment.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) name: String,
    pub(crate) record: Record,
}

/// The name of each file `NAME.json` in the folder, in the order of experiments.
pub(crate) fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let name = entry.with_context(|| folder.display().to_string())?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(String::from));
    }
    names.sort_by_cached_key(|name| (place(name), name.clone()));
    Ok(names)
}

fn place(name: &str) -> usize {
    ORDER.iter().position(|&known| known == name).unwrap_or(ORDER.len())
}

/// The results of this name. `None` if the file is something else: users may keep other JSON files in the folder.
pub(crate) fn results(folder: &Path, name: &str) -> anyhow::Result<Option<Results>> {
    let path = folder.join(format!("{name}.json"));
    let Some(text) = read(&path)? else { return Ok(None) };
    let ours = place(name) < ORDER.len() || text.contains(&format!("\"experiment\": \"{name}\""));
    if !ours {
        return Ok(None);
    }
    let record = serde_json::from_str(&text)
        .with_context(|| format!("{}: this record is damaged: measure {name} --again, or delete the file", path.display()))?;
    Ok(Some(Results { name: name.to_owned(), record }))
}

/// The results of all experiments.
pub(crate) fn all(folder: &Path) -> anyhow::Result<Vec<Results>> {
    let all = names(folder)?.into_iter().filter_map(|name| results(folder, &name).transpose());
    all.collect()
}
