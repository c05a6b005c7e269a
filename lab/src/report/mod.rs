//! The report: one self-contained HTML page with the charts, tables and rows of all results in a folder.

mod page;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fs, io::ErrorKind, path::Path};

use anyhow::{Context as _, bail};

use crate::record::{self, Record, Results};

pub(crate) use page::{facts_apart, frame};

/// The name of its file.
pub const FILE: &str = "report.html";

/// An experiment's section of the page.
struct Part {
    name: String,
    record: Record,
    /// The SVG of each picture.
    charts: Vec<String>,
    /// All rows as CSV.
    csv: Vec<u8>,
}

impl Part {
    fn rows(&self) -> usize {
        self.record.measured.iter().map(|measured| measured.rows.len()).sum()
    }
}

/// Checks that the results in the folder can be part of the page, but for these experiments, which are about to be measured.
///
/// # Errors
/// If a record or a chart cannot be read, or is damaged.
pub fn check(folder: &Path, but: &[&str]) -> anyhow::Result<()> {
    for name in record::names(folder)?.iter().filter(|name| !but.contains(&name.as_str())) {
        read(folder, name, &mut BTreeSet::new())?;
    }
    Ok(())
}

/// Writes the page of all experiments in the folder.
///
/// # Errors
/// If the folder has no results; if a record or a chart cannot be read, or is damaged; if the page cannot be written.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    let mut parts = Vec::new();
    // Every chart has the same rules, which apply to the whole page.
    let mut rules = BTreeSet::new();
    for name in record::names(folder)? {
        parts.extend(read(folder, &name, &mut rules)?);
    }
    if parts.is_empty() {
        bail!("{}: no results here: measure some with `koel experiment all`", folder.display());
    }
    record::replace(&folder.join(FILE), page::page(&parts, &rules).into_string().as_bytes())
}

/// Reads the experiment of this name. `None` if the file is something else: users may keep other JSON files in the folder.
fn read(folder: &Path, name: &str, rules: &mut BTreeSet<String>) -> anyhow::Result<Option<Part>> {
    let Some(Results { name, record }) = record::results(folder, name)? else { return Ok(None) };
    let mut charts = Vec::new();
    for picture in &record.pictures {
        charts.push(chart(folder, &name, &picture.file, rules)?);
    }
    let csv = record::table(&record.measured, &record.columns).with_context(|| format!("{name}.json"))?;
    Ok(Some(Part { name, record, charts, csv }))
}

/// Reads a chart, without its rules for dark pages, which are collected in `rules`.
fn chart(folder: &Path, name: &str, file: &str, rules: &mut BTreeSet<String>) -> anyhow::Result<String> {
    let remedy = format!("run the experiment {name} again with the same options, which draws it without measuring");
    if Path::new(file).file_name() != Some(file.as_ref()) {
        bail!("{name}.json: a chart must be in the same folder, but {file:?} is not: {remedy}");
    }
    let path = folder.join(file);
    let svg = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{}: this chart is missing: {remedy}", path.display()),
        text => text.with_context(|| format!("{}: this chart cannot be read: {remedy}", path.display()))?,
    };
    if !(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>")) {
        bail!("{}: this chart is damaged: {remedy}", path.display());
    }
    let Some(svg) = without_rules(&svg, rules) else { bail!("{}: this chart is damaged: {remedy}", path.display()) };
    Ok(svg)
}

/// The chart without its rules for dark pages, which are collected in `rules`. `None` if it is damaged.
pub(crate) fn without_rules(svg: &str, rules: &mut BTreeSet<String>) -> Option<String> {
    let Some((head, rest)) = svg.split_once("<style>") else { return Some(svg.to_owned()) };
    let (style, body) = rest.split_once("</style>")?;
    rules.insert(style.to_owned());
    Some(format!("{head}{body}"))
}
