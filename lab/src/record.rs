//! The files of an experiment's results:
//!
//! - `NAME.json`, the record: a description of the run and all results, a line for each case. It is replaced atomically.
//! - `NAME.csv`: a line for each row, with the fields of its case.
//! - `NAME.lock`, while a process measures the experiment.

use std::{
    collections::{BTreeSet, HashSet},
    fs::{self, File, TryLockError},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, bail};
use same_file::Handle;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tempfile::{NamedTempFile, TempPath};

use crate::{
    About, Build, Column, Machine, Measured, Scope, Table,
    experiment::typed,
    files::{remove, replace},
};

/// The advice to the user about conflicting results in the folder.
pub(crate) const REMEDY: &str = "choose another --out, or measure everything --again";

/// The description of a run: what was measured, where and when.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) experiment: String,
    pub(crate) koel: String,
    /// The program that measured. All results in a file are from one build.
    pub(crate) build: Build,
    pub(crate) scope: Scope,
    pub(crate) machine: Machine,
    /// The time of the start, in UTC.
    pub(crate) started: String,
}

/// The file of a chart, with its texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Picture {
    pub(crate) file: String,
    pub(crate) title: String,
    /// True if the title states a finding. Otherwise, it is the topic.
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
    pub(crate) complete: bool,
    /// The time spent measuring, in seconds, summed over all parts of an interrupted run.
    pub(crate) seconds: f64,
    /// The warnings that precede the figures in the report.
    pub(crate) warnings: Vec<String>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) tables: Vec<Table>,
    pub(crate) measured: Vec<Measured>,
}

impl Record {
    /// Returns a record without results, of a run that starts now.
    pub(crate) fn new(about: &About, scope: &Scope) -> Self {
        Self {
            run: Run {
                experiment: about.name.to_owned(),
                koel: env!("CARGO_PKG_VERSION").to_owned(),
                build: Build::current().clone(),
                scope: scope.clone(),
                machine: Machine::current(),
                started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            },
            title: about.title.to_owned(),
            about: about.text.to_owned(),
            columns: about.columns.clone(),
            complete: false,
            seconds: 0.0,
            warnings: Vec::new(),
            pictures: Vec::new(),
            tables: Vec::new(),
            measured: Vec::new(),
        }
    }
}

/// Reads the results of the experiment with this name in a folder. Without a record, the list is empty.
///
/// # Errors
/// If the record cannot be read, or its fields do not match these types.
pub fn read_results<C: DeserializeOwned, R: DeserializeOwned>(
    folder: &Path,
    name: &'static str,
) -> anyhow::Result<Vec<Measured<C, R>>> {
    let files = ResultFiles::new(folder, name);
    files.read()?.map_or_else(|| Ok(Vec::new()), |record| files.typed(&record))
}

/// The paths of an experiment's files.
#[derive(Clone, Debug)]
pub(crate) struct ResultFiles {
    folder: PathBuf,
    name: &'static str,
}

impl ResultFiles {
    pub(crate) fn new(folder: &Path, name: &'static str) -> Self {
        Self { folder: folder.to_owned(), name }
    }

    pub(crate) fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    pub(crate) fn json(&self) -> PathBuf {
        self.file(".json")
    }

    pub(crate) fn read(&self) -> anyhow::Result<Option<Record>> {
        let path = self.json();
        read(&path)?.map(|text| serde_json::from_str(&text).with_context(|| damaged(&path))).transpose()
    }

    /// Locks the experiment in this folder. The locked file is deleted on drop. If it stays, it does not stop the next run,
    /// because nothing locks it.
    ///
    /// # Errors
    /// If another process has locked it.
    pub(crate) fn lock(&self) -> anyhow::Result<NamedTempFile> {
        let path = self.file(".lock");
        let name = path.display();
        loop {
            let file = File::create(&path).with_context(|| format!("{name} could not be created"))?;
            match file.try_lock() {
                Ok(()) => {}
                // Where there are no locks, the user must not start two runs at a time.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(error).with_context(|| format!("{name} could not be locked")),
                Err(TryLockError::WouldBlock) => {
                    bail!(
                        "{name}: another process is measuring this experiment; wait until it has finished, or choose another --out"
                    )
                }
            }
            // The process that had the lock may have deleted the file since it was opened here, and another may have created it.
            let is_same = || Ok::<_, io::Error>(Handle::from_file(file.try_clone()?)? == Handle::from_path(&path)?);
            if is_same().unwrap_or(false) {
                let path = TempPath::try_from_path(&path).with_context(|| format!("{name} could not be locked"))?;
                return Ok(NamedTempFile::from_parts(file, path));
            }
        }
    }

    /// Converts the results of the record to the types of its experiment.
    pub(crate) fn typed<C: DeserializeOwned, R: DeserializeOwned>(&self, record: &Record) -> anyhow::Result<Vec<Measured<C, R>>> {
        typed(&record.measured).with_context(|| damaged(&self.json()))
    }

    /// Writes the record, and deletes pictures that only the earlier record had, for example from a run with other parameters.
    pub(crate) fn write(&self, record: &Record) -> anyhow::Result<()> {
        let earlier = self.read().ok().flatten().map_or_else(Vec::new, |record| record.pictures);
        let kept: Vec<_> = record.pictures.iter().map(|picture| picture.file.clone()).collect();
        replace(&self.json(), to_json(record)?.as_bytes())?;
        for Picture { file, .. } in earlier.into_iter().filter(|picture| !kept.contains(&picture.file)) {
            // Even if the earlier record names another file, only pictures of this experiment are deleted.
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

/// Returns all rows as CSV. Its columns are the fields of cases, then the other fields that `columns` describes, then the rest in
/// the order of their first occurrence. A field that a row lacks, for example after an error, is an empty cell. Spaces separate
/// the values of a list.
pub(crate) fn table(measured: &[Measured], columns: &[Column]) -> anyhow::Result<Vec<u8>> {
    let mut seen = HashSet::new();
    let names = measured.iter().flat_map(|measured| measured.case.keys()).map(String::as_str);
    let case_fields: Vec<_> = names.filter(|name| seen.insert(*name)).collect();
    let described = columns.iter().map(|column| &*column.name).filter(|name| !case_fields.contains(name));
    let found = measured.iter().flat_map(|measured| &measured.rows).flat_map(|row| row.keys()).map(String::as_str);
    let mut seen = HashSet::new();
    let row_fields: Vec<_> = described.chain(found).filter(|name| seen.insert(*name)).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(case_fields.iter().chain(&row_fields))?;
    for Measured { case, rows } in measured {
        for row in rows {
            let cells = case_fields.iter().map(|name| case.get(*name)).chain(row_fields.iter().map(|name| row.get(*name)));
            writer.write_record(cells.map(|value| value.map_or_else(String::new, cell)))?;
        }
    }
    Ok(writer.into_inner()?)
}

/// Returns the record as JSON, with each case on its own line.
fn to_json(record: &Record) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(&Record { measured: Vec::new(), ..record.clone() })?;
    // The empty list of results is the last field.
    text.truncate(text.len() - "]\n}".len());
    for (index, case) in record.measured.iter().enumerate() {
        text += if index == 0 { "\n    " } else { ",\n    " };
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

/// Reads a text file. Returns `None` if it does not exist.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// The order of the experiments in a report: those in `experiments::ALL`, then `sweep`, then those of koel-peers. All others
/// follow, sorted by name.
pub(crate) const ORDER: [&str; 7] = ["load", "space", "fpr", "speed", "sweep", "peers", "growth"];

/// Reads the records of all experiments except `excluded`, in [`ORDER`]. Skips other JSON files, which users may keep in the folder.
/// `damaged` returns the message about a record that cannot be read.
pub(crate) fn read_all(folder: &Path, excluded: &[&str], damaged: impl Fn(&Path) -> String) -> anyhow::Result<Vec<Record>> {
    let mut names = BTreeSet::new();
    let unreadable = || format!("{}: cannot be read; give a folder that `koel experiment` has written", folder.display());
    for entry in fs::read_dir(folder).with_context(unreadable)? {
        let file = entry.with_context(unreadable)?.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".json")).filter(|name| !excluded.contains(name));
        names.extend(name.map(|name| (order_of(name), name.to_owned())));
    }
    let mut records = Vec::new();
    for (order, name) in names {
        let path = folder.join(format!("{name}.json"));
        let is_ours = |text: &String| order < ORDER.len() || text.contains(&format!("\"experiment\": \"{name}\""));
        if let Some(text) = read(&path)?.filter(is_ours) {
            records.push(serde_json::from_str(&text).with_context(|| damaged(&path))?);
        }
    }
    Ok(records)
}

/// Returns the index of an experiment in [`ORDER`], or its length for other experiments.
fn order_of(name: &str) -> usize {
    ORDER.iter().position(|&known| known == name).unwrap_or(ORDER.len())
}

/// Returns the message about a record that a run cannot read.
pub(crate) fn damaged(path: &Path) -> String {
    format!("{}: not a record of koel, or a damaged one: {REMEDY}, or delete the file", path.display())
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a complete record of these results.
    pub(crate) fn made_up(experiment: &str, columns: &[Column], measured: &Value) -> Record {
        let machine = json!({
            "processor": "a processor", "cores": 2, "memory_mib": 2048, "system": "a system", "kernel": "portable", "optimized": true,
        });
        let scope = json!({ "quick": true, "seed": 5, "max_slots": null });
        let build = json!({ "commit": "c0ffee", "program": "0123456789abcdef" });
        let run = json!({
            "experiment": experiment, "koel": "0.1.0", "build": build, "scope": scope, "machine": machine,
            "started": "2026-11-21T00:52:47Z",
        });
        let record = json!({
            "run": run, "title": "", "about": "", "columns": columns, "complete": true, "seconds": 61.6,
            "warnings": [], "pictures": [], "tables": [], "measured": measured,
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn rows_need_not_have_the_same_fields() -> anyhow::Result<()> {
        let measured: Vec<Measured> = serde_json::from_value(json!([
            { "case": { "n": 1 }, "rows": [{ "name": "one", "error": "too large" }, { "name": "two", "n": 5, "left": null }] },
            { "case": { "n": 2, "m": 3 }, "rows": [] },
        ]))?;
        let table = |measured, columns: &[Column]| Ok(String::from_utf8(super::table(measured, columns)?)?);
        // The fields of a case come first, even if a row has a field of the same name. A described field has a column, even if no
        // row has it.
        let lines = "n,m,unused,name,error,n,left\n1,,,one,too large,,\n1,,,two,,5,\n";
        let found: anyhow::Result<_> = table(&measured, &[Column::key("n", "", ""), Column::key("unused", "", "")]);
        assert_eq!(found?, lines);
        assert_eq!(table(&[], &["n", "m", "name", "error"].map(|name| Column::new(name, "", "")))?, "n,m,name,error\n");
        Ok(())
    }
}
