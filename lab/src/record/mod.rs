//! The files of an experiment's results:
//!
//! - `NAME.json`, the record: the run (what, how much, where, when) and all results. Replaced atomically.
//! - `NAME.partial.jsonl`, the journal of an unfinished run: a line for each finished case. However the run ends, they are
//!   kept here for the next run. Locked, so that there is only one run at a time.
//! - `NAME.csv`: a line for each row, with the fields of its case.

mod files;
mod journal;

pub(crate) use files::{Results, all, names, replace, results};
pub(crate) use journal::Journal;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    build::Build,
    experiment::{Column, Measured, Scope, Table},
    machine::Machine,
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
    #[serde(default)]
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
    #[serde(default)]
    pub(crate) is_finding: bool,
    pub(crate) caption: String,
}

/// An experiment with all of its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) run: Run,
    pub(crate) title: String,
    pub(crate) about: String,
    /// Missing in records of koel before columns were described.
    #[serde(default)]
    pub(crate) columns: Vec<Column>,
    /// Whether all cases have been measured.
    pub(crate) complete: bool,
    /// The time spent measuring, of all parts of an interrupted run together.
    pub(crate) seconds: f64,
    /// What a reader must know before the figures.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) tables: Vec<Table>,
    pub(crate) measured: Vec<Measured>,
}

/// The results of an experiment, and where they are from.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The machine that measured.
    pub machine: Machine,
    /// What was measured.
    pub measured: Vec<Measured>,
}

/// Reads the results of the experiment with this name in a folder. `None` if there are none.
///
/// # Errors
/// If the record cannot be read.
pub fn read_results(folder: &Path, name: &'static str) -> anyhow::Result<Option<Recorded>> {
    let record = Place::new(folder, name).read()?;
    Ok(record.map(|Record { run, measured, .. }| Recorded { machine: run.machine, measured }))
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
        let Some(text) = files::read(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).with_context(|| damaged(&path))
    }

    /// The files of the pictures that the record names, if there is one that can be read. Whatever it says, they are files of this
    /// experiment.
    pub(crate) fn pictures(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Drawn {
            pictures: Vec<Picture>,
        }
        let text = files::read(&self.json()).ok().flatten();
        let record: Option<Drawn> = text.and_then(|text| serde_json::from_str(&text).ok());
        let files = record.into_iter().flat_map(|record| record.pictures).map(|picture| picture.file);
        let is_ours = |file: &String| {
            let rest = file.strip_prefix(self.name).and_then(|rest| rest.strip_prefix('-'));
            rest.and_then(|rest| rest.strip_suffix(".svg")).is_some_and(|rest| !rest.contains(['/', '\\']))
        };
        files.filter(is_ours).collect()
    }

    /// Deletes files of the folder. It is no error if they are gone already.
    pub(crate) fn delete(&self, files: &[String]) -> anyhow::Result<()> {
        for file in files {
            let path = self.folder.join(file);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{} could not be deleted", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, record: &Record) -> anyhow::Result<()> {
        replace(&self.json(), lines(record)?.as_bytes())
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
    fn add<'a>(header: &mut Vec<&'a str>, names: impl Iterator<Item = &'a str>) {
        for name in names {
            if !header.contains(&name) {
                header.push(name);
            }
        }
    }
    let mut of_cases = Vec::new();
    add(&mut of_cases, measured.iter().flat_map(|measured| measured.case.keys()).map(String::as_str));
    let mut of_rows = Vec::new();
    add(&mut of_rows, columns.iter().map(|column| &*column.name).filter(|name| !of_cases.contains(name)));
    add(&mut of_rows, measured.iter().flat_map(|measured| &measured.rows).flat_map(|row| row.keys()).map(String::as_str));
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
fn lines(record: &Record) -> anyhow::Result<String> {
    let Value::Object(mut object) = serde_json::to_value(record)? else { bail!("a record must be an object") };
    let measured = object.remove("measured");
    let mut text = serde_json::to_string_pretty(&object)?;
    // Without the closing brace and the newline before it.
    text.truncate(text.len() - 2);
    text += ",\n  \"measured\": [";
    let cases = measured.as_ref().and_then(Value::as_array).into_iter().flatten();
    for (place, case) in cases.enumerate() {
        text += if place == 0 { "\n    " } else { ",\n    " };
        text += &case.to_string();
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

/// What to say of a record that cannot be read.
pub(crate) fn damaged(path: &Path) -> String {
    format!("{}: not a record of koel, or a damaged one: {REMEDY}", path.display())
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
