//! Writes the report: one self-contained HTML page with the charts, tables and rows of all results in a folder.

use std::{collections::BTreeSet, path::Path, time::Duration};

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    Table, counted,
    experiments::times::is_disturbed,
    files::replace,
    record::{self, Picture, Record, Run},
};

/// The file name of the report.
pub const FILE: &str = "report.html";

/// An experiment's section of the page.
struct Part {
    record: Record,
    charts: Vec<Svg>,
    csv: Vec<u8>,
}

impl Part {
    fn name(&self) -> &str {
        &self.record.run.experiment
    }

    fn rows(&self) -> usize {
        self.record.measured.iter().map(|measured| measured.rows.len()).sum()
    }
}

/// A chart's SVG and its style rules for dark pages, separately. All charts have the same rules, so the page has them once.
struct Svg {
    rules: String,
    picture: String,
}

/// Checks that the report can include the results in the folder. Skips the experiments `excluded`, which are about to be measured.
///
/// # Errors
/// If a record or a chart cannot be read, or is damaged.
pub fn check(folder: &Path, excluded: &[&str]) -> anyhow::Result<()> {
    read_parts(folder, excluded).map(drop)
}

/// Writes the report of all experiments in the folder.
///
/// # Errors
/// If the folder has no results; if a record or a chart cannot be read or is damaged; if the page cannot be written.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    let parts = read_parts(folder, &[])?;
    if parts.is_empty() {
        bail!("{}: no results here: measure some with `koel experiment all`", folder.display());
    }
    replace(&folder.join(FILE), page(&parts).into_string().as_bytes())
}

fn read_parts(folder: &Path, excluded: &[&str]) -> anyhow::Result<Vec<Part>> {
    let part = |record: Record| {
        let name = &record.run.experiment;
        let charts = record.pictures.iter().map(|picture| read_chart(folder, name, &picture.file)).collect::<Result<_, _>>()?;
        let csv = record::table(&record.measured, &record.columns).with_context(|| format!("{name}.json"))?;
        Ok(Part { record, charts, csv })
    };
    record::read_all(folder, excluded, record::damaged)?.into_iter().map(part).collect()
}

fn read_chart(folder: &Path, name: &str, file: &str) -> anyhow::Result<Svg> {
    let remedy = format!("run the experiment {name} again with the same options, which draws it without measuring");
    if Path::new(file).file_name() != Some(file.as_ref()) {
        bail!("{name}.json: a chart must be in the same folder, but {file:?} is not: {remedy}");
    }
    let path = folder.join(file);
    let Some(svg) = record::read(&path)? else { bail!("{}: this chart is missing: {remedy}", path.display()) };
    let parts = || {
        let (head, rest) = svg.trim_end().strip_suffix("</svg>")?.split_once("<style>")?;
        let (rules, body) = rest.split_once("</style>")?;
        head.starts_with("<svg ").then(|| Svg { rules: rules.to_owned(), picture: format!("{head}{body}</svg>") })
    };
    parts().with_context(|| format!("{}: this chart is damaged: {remedy}", path.display()))
}

const STYLE: &str = include_str!("style.css");

/// The content security policy. The page loads nothing and runs no script, even if a chart file refers to one.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

fn page(parts: &[Part]) -> Markup {
    let rules: BTreeSet<_> = parts.iter().flat_map(|part| &part.charts).map(|svg| &svg.rules).collect();
    let known = parts.first().map(|part| facts(&part.record.run)).unwrap_or_default();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Koel: experiments" }
                style {
                    (PreEscaped(STYLE))
                    @for rule in rules { (PreEscaped(rule)) }
                }
            }
            body {
                header {
                    h1 { "Koel: experiments" }
                    p {
                        "Cuckoo filters, measured by " code { "koel experiment" } ". This file has everything: charts, summary \
                         tables, and all rows as CSV files to save. The same program and seed give the same numbers on every \
                         machine, except where time is measured."
                    }
                    (summary(parts))
                    (notes(parts))
                    dl.facts { @for (name, value) in &known { div { dt { (name) } dd { (value) } } } }
                }
                main { @for part in parts { (section(part, &known)) } }
            }
        }
    }
}

/// Returns the names of the facts that differ between two runs, with the values of both.
pub(crate) fn differing_facts(runs: [&Run; 2]) -> Vec<(String, [String; 2])> {
    let [a, b] = runs.map(facts);
    let both = a.into_iter().zip(b).filter(|(one, other)| one != other);
    both.map(|((name, one), (_, other))| (name.to_owned(), [one, other])).collect()
}

/// Returns the warnings about all experiments, for the top of the page.
fn notes(parts: &[Part]) -> Markup {
    let names_of = |matches: fn(&Record) -> bool| {
        let names: Vec<_> = parts.iter().filter(|part| matches(&part.record)).map(Part::name).collect();
        names.join(", ")
    };
    let slow = names_of(|record| !record.run.machine.optimized);
    let warned = names_of(|record| !record.warnings.is_empty());
    html! {
        @if !slow.is_empty() {
            p.warning {
                strong { "Not optimized. " }
                "The program that measured " (slow) " was compiled without optimization, so koel is faster than it shows. Build \
                 the program with " code { "--release" } ", and measure again."
            }
        }
        @if !warned.is_empty() {
            p.note { strong { "Read first. " } "There are notes above the charts of " (warned) "." }
        }
    }
}

fn section(part: &Part, known: &[(&'static str, String)]) -> Markup {
    let record = &part.record;
    let run = &record.run;
    let differing: Vec<_> = facts(run).into_iter().zip(known).filter(|(one, other)| one != *other).map(|(one, _)| one).collect();
    html! {
        section id=(part.name()) aria-labelledby={ (part.name()) "-title" } {
            h2 id={ (part.name()) "-title" } { (record.title) }
            p { (record.about) }
            @if !record.complete {
                p.warning {
                    strong { "Not complete. " }
                    (record.measured.len()) " cases were measured before the run was interrupted. The same command continues it."
                }
            }
            @for warning in &record.warnings { p.note { (warning) } }
            @if !differing.is_empty() {
                p.soft { "Different from the first experiment on this page:" }
                dl.facts { @for (name, value) in &differing { div { dt { (name) } dd { (value) } } } }
            }
            div.charts {
                // The title is part of the picture.
                @for (Picture { caption, .. }, svg) in record.pictures.iter().zip(&part.charts) {
                    figure { (PreEscaped(&svg.picture)) figcaption { (caption) } }
                }
            }
            @for table in &record.tables { (small_table(table)) }
            p.soft {
                @if part.rows() > 0 {
                    a download={ (part.name()) ".csv" } href={ "data:text/csv;charset=utf-8;base64," (STANDARD.encode(&part.csv)) } {
                        "All " (part.rows()) " rows as " (part.name()) ".csv"
                    }
                    ". "
                }
                "Started on " time datetime=(run.started) { (run.started.replace('T', " at ").replace('Z', " UTC")) }
                "; measuring took " (time(record.seconds)) ". Measured by koel " (run.koel) ", " (run.build) "."
            }
        }
    }
}

/// Returns a table that scrolls if it is wider than the page.
fn small_table(table: &Table) -> Markup {
    // A dash alone means that there is no number.
    let is_number = |cell: &String| cell.trim_start_matches("< ").starts_with(|c: char| c.is_ascii_digit() || "-−–".contains(c));
    let class = |column: usize| {
        let mut cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.all(is_number).then_some("number")
    };
    html! {
        div.wide role="region" aria-label=(table.caption) tabindex="0" {
            table {
                caption { (table.caption) }
                thead { tr { @for (column, name) in table.header.iter().enumerate() { th scope="col" class=[class(column)] { (name) } } } }
                tbody {
                    @for row in &table.rows {
                        tr { @for (column, cell) in row.iter().enumerate() { td class=[class(column)] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// Returns the facts that a run's numbers depend on. Every run has the same names in the same order.
fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let (machine, scope) = (&run.machine, &run.scope);
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| String::from("unknown"));
    let size = if scope.quick { "quick: smaller and fewer tables" } else { "full" };
    let most = scope.max_slots.map_or_else(|| String::from("no limit"), |slots| format!("{slots} slots"));
    vec![
        ("Processor", machine.processor.clone()),
        ("Cores", machine.cores.to_string()),
        ("Memory", format!("{:.1} GiB", machine.memory_mib as f64 / 1024.0)),
        ("System", format!("{}, {}", machine.system, machine.system_kernel.as_deref().unwrap_or("unknown version"))),
        ("Kernel", machine.kernel.clone()),
        ("Compiled", String::from(if machine.optimized { "with optimization" } else { "without optimization" })),
        ("Koel", format!("{}, {}", run.koel, run.build.source())),
        ("Program", known(&run.build.program)),
        ("Compiler", known(&run.build.compiler)),
        ("Target", known(&run.build.target)),
        ("Flags", known(&run.build.flags)),
        ("Seed", scope.seed.to_string()),
        ("Size", String::from(size)),
        ("Largest tables", most),
    ]
}

fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Ok(time) if time >= Duration::from_secs(1) => humantime::format_duration(time).to_string(),
        _ => String::from("less than a second"),
    }
}

/// Returns the summary: what was measured and where, how many rows were disturbed, and the table of contents with the findings.
fn summary(parts: &[Part]) -> Markup {
    let machines: BTreeSet<_> = parts.iter().map(|part| part.record.run.machine.processor.as_str()).collect();
    let rows = || parts.iter().flat_map(|part| &part.record.measured).flat_map(|measured| &measured.rows);
    let disturbed = rows().filter(|row| is_disturbed(row)).count();
    html! {
        p {
            strong { "Summary. " }
            (counted(parts.len(), "experiment")) " with " (counted(rows().count(), "row")) ", measured in "
            (time(parts.iter().map(|part| part.record.seconds).sum())) " on "
            (machines.into_iter().collect::<Vec<_>>().join(" and ")) ". "
            @if disturbed > 0 {
                "Other work on the processor disturbed " (disturbed) " of the rows; the sections say which."
            } @else {
                "No row is marked as disturbed by other work on the processor."
            }
        }
        nav aria-label="Contents" {
            ol {
                @for part in parts {
                    // The most important chart of an experiment comes first.
                    @let found = part.record.pictures.iter().find(|picture| picture.is_finding);
                    li {
                        a href={ "#" (part.name()) } { (part.record.title) }
                        @if let Some(found) = found { span.finding { ": " (found.title) "." } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::{
        Axis, Chart, Series, chart,
        record::{ResultFiles, tests::made_up},
    };

    /// Text that must be escaped in the page.
    const HOSTILE: &str = "<script>alert(\"1\")</script> & 'more'";

    /// Writes an experiment with two rows, a table and a chart into the folder. `change` may modify its record first.
    fn put(folder: &TempDir, name: &'static str, change: impl Fn(&mut Record)) {
        let [title, caption, about] = [(); 3].map(|()| HOSTILE.to_owned());
        let rows = json!([{ "mean": 0.1, "note": HOSTILE }, { "mean": 0.937_461_038_961_038_9, "note": null }]);
        let table = Table::new(HOSTILE, &["what", HOSTILE], [vec![String::from("7"), HOSTILE.to_owned()]]);
        let mut record = Record {
            title: format!("The title of {name} {HOSTILE}"),
            about,
            pictures: vec![Picture { file: format!("{name}-one.svg"), title, is_finding: name == "load", caption }],
            tables: vec![table],
            ..made_up(name, &[], &json!([{ "case": { "slots": 100 }, "rows": rows }]))
        };
        change(&mut record);
        let files = ResultFiles::new(folder.path(), name);
        files.write_csv(&record.measured, &[]).unwrap();
        files.write(&record).unwrap();
        let series = Series::new(HOSTILE, 0, vec![(1.0, 1.0), (2.0, 10.0)]);
        let chart = Chart::new("one", HOSTILE, [Axis::linear(HOSTILE), Axis::log("y")], [series]);
        chart::save(&chart.captioned(HOSTILE), &files.file("-one.svg")).unwrap();
    }

    fn folder(names: &[&'static str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| put(&folder, name, |_| ()));
        folder
    }

    fn page(folder: &TempDir) -> String {
        write(folder.path()).unwrap();
        fs::read_to_string(folder.path().join(FILE)).unwrap()
    }

    /// Writes the page of `load` and of `fpr`, whose record `change` modifies. Returns the part of the page before the section of
    /// `fpr`, and the rest.
    fn with_fpr(change: impl Fn(&mut Record)) -> [String; 2] {
        let folder = folder(&["load"]);
        put(&folder, "fpr", change);
        let page = page(&folder);
        let (head, section) = page.split_once("<section id=\"fpr\"").unwrap();
        [head, section].map(String::from)
    }

    #[track_caller]
    fn assert_refused(folder: &TempDir, problem: &str) {
        fs::remove_file(folder.path().join(FILE)).ok();
        let error = format!("{:#}", write(folder.path()).unwrap_err());
        assert!(error.contains(problem) && !folder.path().join(FILE).exists(), "no \"{problem}\" in: {error}");
    }

    #[test]
    fn texts_are_escaped_and_nothing_is_fetched() {
        let page = page(&folder(&["load", "peers"])).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        // The page has such text in the title, the contents, the description, a caption, and the table's caption, label, header
        // and cells; the chart has it in its title, label, text, axis and legend.
        assert!(!page.contains("<script") && page.matches("&lt;script").count() >= 2 * 12, "{page}");
        for reference in ["http:", "https:", "//", "src=", "url(", "@import", "<link", "<iframe", "<object"] {
            assert!(!page.contains(reference), "{reference}");
        }
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn koels_experiments_come_first() {
        let page = page(&folder(&["abacus", "growth", "peers", "speed", "fpr", "space", "load", "zebra"]));
        let at = |name: &str| page.find(&format!("<section id=\"{name}\"")).unwrap_or_else(|| panic!("{name} is missing"));
        let positions = ["load", "space", "fpr", "speed", "peers", "growth", "abacus", "zebra"].map(at);
        assert!(positions.is_sorted(), "{positions:?}");
        assert_eq!(page.matches("<svg ").count(), 8);
        // The page has the color rules of all charts once.
        assert_eq!((page.matches("<style>").count(), page.matches("[fill=\"#1D1D21\"]").count()), (1, 1));
        assert!(page.contains("<a href=\"#zebra\">"));
    }

    #[test]
    fn the_page_contains_the_csv_file() {
        let folder = folder(&["load"]);
        let page = page(&folder);
        let (_, rest) = page.split_once("href=\"data:text/csv;charset=utf-8;base64,").unwrap();
        let (encoded, rest) = rest.split_once('"').unwrap();
        assert!(rest.starts_with(">All 2 rows as load.csv</a>"), "{}", &rest[..60]);
        let csv = STANDARD.decode(encoded).unwrap();
        assert_eq!(csv, fs::read(folder.path().join("load.csv")).unwrap());
        assert!(csv.starts_with(b"slots,mean,note\n100,0.1,"));
    }

    #[test]
    fn columns_of_numbers_are_aligned() {
        let rows = [["4 a", "1.5 (1–2)", "–", "-2"], ["b", "< 0.1 %", "3", "−2"]].map(|row| row.map(String::from).to_vec());
        let table = small_table(&Table::new("", &["text", "one", "two", "three"], rows)).into_string();
        assert_eq!((table.matches("<td>").count(), table.matches("<td class=\"number\">").count()), (2, 6), "{table}");
        assert_eq!(table.matches("<th scope=\"col\" class=\"number\">").count(), 3, "{table}");
    }

    #[test]
    fn facts_appear_once_unless_they_differ() {
        let same = with_fpr(|_| ()).concat();
        assert_eq!((same.matches("<dd>a processor</dd>").count(), same.matches("<dt>Seed</dt>").count()), (1, 1));
        assert!(same.contains("2026-11-21 at 00:52:47 UTC") && same.contains("took 1m 2s"));
        assert!(same.contains("<html lang=\"en\">") && same.matches("<h1>").count() == 1);
        let [head, section] = with_fpr(|record| record.run.machine.processor = String::from("another one"));
        let other = "<dd>another one</dd>";
        assert!(!head.contains(other) && head.contains("on a processor and another one."), "{head}");
        assert!(section.contains(other) && !section.contains("<dt>Seed</dt>"), "{section}");
    }

    #[test]
    fn warnings_name_the_problem() {
        assert!(!with_fpr(|_| ()).concat().contains("class=\"warning\""));
        let slow = with_fpr(|record| record.run.machine.optimized = false).concat();
        let part = with_fpr(|record| record.complete = false).concat();
        for (page, text) in [(slow, "that measured fpr was compiled without optimization"), (part, "1 cases were measured")] {
            assert!(page.matches("class=\"warning\"").count() == 1 && page.contains(text), "no \"{text}\" in {page}");
        }
        let [head, section] = with_fpr(|record| {
            record.warnings.push(format!("Seven times were disturbed. {HOSTILE}"));
            let build = &mut record.run.build;
            (build.commit, build.modified, build.program) = (Some(String::from("beefbeefbeefbeef")), Some(true), None);
        });
        assert!(head.contains("There are notes above the charts of fpr."), "{head}");
        assert!(head.contains("Measured by koel 0.1.0, commit c0ffee, program 0123456789abcdef."), "{head}");
        assert!(section.contains("Measured by koel 0.1.0, commit beefbeefbe with changes, program unknown."), "{section}");
        let note = section.find("<p class=\"note\">Seven times were disturbed. &lt;script").unwrap();
        assert!(note < section.find("<svg ").unwrap());
    }

    #[test]
    fn errors_name_the_damaged_file_and_the_remedy() {
        let folder = folder(&["load"]);
        let [svg, json] = ["load-one.svg", "load.json"].map(|name| folder.path().join(name));
        let [chart, record] = [&svg, &json].map(|path| fs::read_to_string(path).unwrap());
        for text in [&chart[..chart.len() / 2], "", &chart.replace("</style>", "")] {
            fs::write(&svg, text).unwrap();
            assert_refused(&folder, "load-one.svg: this chart is damaged: run the experiment load again");
        }
        fs::remove_file(&svg).unwrap();
        assert_refused(&folder, "load-one.svg: this chart is missing: run the experiment load again");
        put(&folder, "load", |record| record.pictures[0].file = String::from("../load-one.svg"));
        assert_refused(&folder, "\"../load-one.svg\" is not");
        for text in ["", "{}", &record[..record.len() - 4]] {
            fs::write(&json, text).unwrap();
            let remedy = "choose another --out, or measure everything --again";
            assert_refused(&folder, &format!("load.json: not a record of koel, or a damaged one: {remedy}"));
        }
        fs::remove_file(&json).unwrap();
        assert_refused(&folder, "no results here: measure some with `koel experiment all`");
    }

    /// Users may keep other files in the folder.
    #[test]
    fn unrelated_files_are_ignored() {
        let folder = folder(&["load", "abacus"]);
        fs::write(folder.path().join("package.json"), "{\"name\": \"mine\", // not even JSON").unwrap();
        fs::copy(folder.path().join("load.json"), folder.path().join("copy of load.json")).unwrap();
        assert_eq!(page(&folder).matches("<section ").count(), 2);
        // A truncated record is detected even if the experiment is unknown.
        let path = folder.path().join("abacus.json");
        let json = fs::read_to_string(&path).unwrap();
        fs::write(&path, &json[..json.len() / 2]).unwrap();
        assert_refused(&folder, "abacus.json: not a record of koel, or a damaged one");
    }

    #[test]
    fn the_summary_has_findings_and_counts_disturbed_rows() {
        let [summary, _] = with_fpr(|_| ());
        assert!(summary.contains("2 experiments with 4 rows, measured in 2m"), "{summary}");
        assert!(summary.contains("on a processor. No row is marked as disturbed"), "{summary}");
        // Only the chart of load has a finding.
        assert!(summary.contains("<a href=\"#load\">The title of load") && summary.contains("<a href=\"#fpr\">"), "{summary}");
        assert_eq!(summary.matches("class=\"finding\"").count(), 1);
        for disturbed in [json!(true), json!(2)] {
            let [summary, _] = with_fpr(|record| {
                let rows = record.measured[0].rows.iter_mut().zip([disturbed.clone(), json!(0)]);
                rows.for_each(|(row, disturbed)| _ = row.insert(String::from("disturbed"), disturbed));
            });
            assert!(summary.contains("with 4 rows") && summary.contains("disturbed 1 of the rows"), "{summary}");
        }
    }
}
