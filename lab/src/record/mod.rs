//! The files of an experiment's results:
//!
//! - `NAME.json`, the record: the run (what, how much, where, when) and all results. Replaced atomically.
//! - `NAME.partial.jsonl`, the journal of an unfinished run: a line for each finished case. However the run ends, they are
//!   kept here for the next run. Locked, so that there is only one run at a time.
//! - `NAME.csv`: a line for each row, with the fields of its case.

mod journal;

pub(crate) use journal::Journal;

use std::{
    collections::HashSet,
    fs,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    experiment::{Column, Measured, Scope, Table, typed},
    provenance::{Build, Machine},
};

/// What the user can do about results that are in the way.
pub(crate) const REMEDY: &str = "choose another --out, or measure everything --again";

/// A run: what was measured, and where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) experiment: String,
    /// The version of koel.
    pub(crate) koel: String,
    /// The program that measured. All results in a file are of one.
    pub(crate) build: Build,
    pub(crate) scope: Scope,
    pub(crate) machine: Machine,
    /// When it started, in UTC.
    pub(crate) started: String,
}

/// A chart in a file, with its texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) file: String,
    pub(crate) title: String,
    /// Whether the title says what the chart shows, and not only what is drawn.
    pub(crate) is_finding: bool,
    pub(crate) caption: String,
}

/// An experiment with all of its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) run: Run,
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) columns: Vec<Column>,
    /// Whether all cases have been measured.
    pub(crate) complete: bool,
    /// The time spent measuring, of all parts of an interrupted run together.
    pub(crate) seconds: f64,
    /// What a reader must know before the figures.
    pub(crate) warnings: Vec<String>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) tables: Vec<Table>,
    pub(crate) measured: Vec<Measured>,
}

/// Reads the results of the experiment with this name in a folder: none if there is no record.
///
/// # Errors
/// If the record cannot be read, or has other fields than these.
pub fn read_results<C: DeserializeOwned, R: DeserializeOwned>(
    folder: &Path,
    name: &'static str,
) -> anyhow::Result<Vec<Measured<C, R>>> {
    let place = Place::new(folder, name);
    place.read()?.map_or_else(|| Ok(Vec::new()), |record| place.typed(&record))
}

/// The paths of an experiment's files.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    name: &'static str,
}

impl Place {
    pub(crate) fn new(folder: &Path, name: &'static str) -> Self {
        Self { folder: folder.to_owned(), name }
    }

    pub(crate) fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.file(".json")
    }

    /// Reads the record, if there is one.
    pub(crate) fn read(&self) -> anyhow::Result<Option<Record>> {
        let path = self.json();
        read(&path)?.map(|text| parse(&text, &path)).transpose()
    }

    /// The results of the record in the types of its experiment.
    pub(crate) fn typed<C: DeserializeOwned, R: DeserializeOwned>(&self, record: &Record) -> anyhow::Result<Vec<Measured<C, R>>> {
        typed(&record.measured).with_context(|| damaged(&self.json()))
    }

    /// Writes the record, and deletes the pictures of an earlier one that this one does not have: of a run with other parameters,
    /// for example.
    pub(crate) fn write(&self, record: Record) -> anyhow::Result<()> {
        let earlier = self.read().ok().flatten().map_or_else(Vec::new, |record| record.pictures);
        let kept: Vec<_> = record.pictures.iter().map(|picture| picture.file.clone()).collect();
        replace(&self.json(), lines(record)?.as_bytes())?;
        for Picture { file, .. } in earlier.into_iter().filter(|picture| !kept.contains(&picture.file)) {
            // Whatever the earlier record says, nothing but pictures of this experiment.
            let ours = file.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".svg"));
            if ours.is_some_and(|rest| !rest.contains(['/', '\\'])) {
                remove(&self.folder.join(&file))?;
            }
        }
        Ok(())
    }

    pub(crate) fn write_csv(&self, measured: &[Measured], columns: &[Column]) -> anyhow::Result<()> {
        let path = self.file(".csv");
        replace(&path, &table(measured, columns).with_context(|| path.display().to_string())?)
    }
}

/// All rows as CSV: the fields of cases, then those that the columns describe, then the others, in the order of their first
/// occurrence. Fields that a row does not have, such as those beside an error, are empty cells; lists are values with spaces
/// between them.
pub(crate) fn table(measured: &[Measured], columns: &[Column]) -> anyhow::Result<Vec<u8>> {
    let mut seen = HashSet::new();
    let names = measured.iter().flat_map(|measured| measured.case.keys()).map(String::as_str);
    let of_cases: Vec<_> = names.filter(|name| seen.insert(*name)).collect();
    let described = columns.iter().map(|column| &*column.name).filter(|name| !of_cases.contains(name));
    let found = measured.iter().flat_map(|measured| &measured.rows).flat_map(|row| row.keys()).map(String::as_str);
    let mut seen = HashSet::new();
    let of_rows: Vec<_> = described.chain(found).filter(|name| seen.insert(*name)).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(of_cases.iter().chain(&of_rows))?;
    for Measured { case, rows } in measured {
        for row in rows {
            let cells = of_cases.iter().map(|name| case.get(*name)).chain(of_rows.iter().map(|name| row.get(*name)));
            writer.write_record(cells.map(|value| value.map_or_else(String::new, cell)))?;
        }
    }
    Ok(writer.into_inner()?)
}

/// The record as JSON, with each case on a line of its own.
fn lines(mut record: Record) -> anyhow::Result<String> {
    let measured = std::mem::take(&mut record.measured);
    let mut text = serde_json::to_string_pretty(&record)?;
    // The list is the last field.
    text.truncate(text.len() - "]\n}".len());
    for (place, case) in measured.iter().enumerate() {
        text += if place == 0 { "\n    " } else { ",\n    " };
        text += &serde_json::to_string(case)?;
    }
    text += "\n  ]\n}\n";
    Ok(text)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

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

/// Removes a file. It is no error if it is gone already.
fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} could not be deleted", path.display()))
        }
        _ => Ok(()),
    }
}

/// The order of the experiments. Any others follow, sorted by name.
const ORDER: [&str; 7] = ["load", "space", "fpr", "speed", "sweep", "peers", "growth"];

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

/// The record of this name. `None` if the file is something else: users may keep other JSON files in the folder.
pub(crate) fn results(folder: &Path, name: &str) -> anyhow::Result<Option<Record>> {
    let path = folder.join(format!("{name}.json"));
    let is_ours = |text: &String| place(name) < ORDER.len() || text.contains(&format!("\"experiment\": \"{name}\""));
    read(&path)?.filter(is_ours).map(|text| parse(&text, &path)).transpose()
}

/// The records of all experiments.
pub(crate) fn all(folder: &Path) -> anyhow::Result<Vec<Record>> {
    names(folder)?.into_iter().filter_map(|name| results(folder, &name).transpose()).collect()
}

fn parse(text: &str, path: &Path) -> anyhow::Result<Record> {
    serde_json::from_str(text).with_context(|| damaged(path))
}

/// What to say of a record that cannot be read.
pub(crate) fn damaged(path: &Path) -> String {
    format!("{}: not a record of koel, or a damaged one: {REMEDY}, or delete the file", path.display())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn rows_need_not_have_the_same_fields() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let place = Place::new(folder.path(), "some");
        let measured: Vec<Measured> = serde_json::from_value(json!([
            { "case": { "n": 1 }, "rows": [{ "name": "one", "error": "too large" }, { "name": "two", "n": 5, "left": null }] },
            { "case": { "n": 2, "m": 3 }, "rows": [] },
        ]))?;
        place.write_csv(&measured, &[Column::key("n", "", ""), Column::key("unused", "", "")])?;
        // The fields of a case come first, even if a row has one of the same name; a described one that nobody has is there, too.
        let lines = ["n,m,unused,name,error,n,left", "1,,,one,too large,,", "1,,,two,,5,", ""];
        assert_eq!(fs::read_to_string(place.file(".csv"))?, lines.join("\n"));
        place.write_csv(&[], &["n", "m", "name", "error"].map(|name| Column::new(name, "", "")))?;
        assert_eq!(fs::read_to_string(place.file(".csv"))?, "n,m,name,error\n");
        Ok(())
    }
}
