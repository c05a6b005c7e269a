//! The records of a folder, of whatever experiments.

use std::{fs, path::Path};

use anyhow::Context as _;

use super::{Record, files};

/// The order of the experiments. Any others follow, sorted by name.
const ORDER: [&str; 8] = ["load", "space", "fpr", "walk", "speed", "sweep", "peers", "growth"];

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
    let Some(text) = files::read(&path)? else { return Ok(None) };
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
