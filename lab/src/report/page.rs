//! The HTML of the page, with a summary at its top.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Part;
use crate::{
    experiment::{Fields, Table},
    record::{Picture, Run},
};

const STYLE: &str = include_str!("style.css");

/// Loads nothing and runs no script, whatever the chart files contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole page.
pub(super) fn page(parts: &[Part], rules: &BTreeSet<String>) -> Markup {
    let known = parts.first().map(|part| facts(&part.record.run)).unwrap_or_default();
    let body = html! {
        header {
            h1 { "Koel: experiments" }
            p {
                "Cuckoo filters, measured by " code { "koel experiment" } ". This file has everything: charts, summary tables, \
                 and all rows as CSV files to save. The same program and seed give the same numbers on every machine, \
                 except where time is measured."
            }
            (summary(parts))
            (warning(parts))
            (notes(parts))
            dl.facts {
                @for (name, value) in &known { div { dt { (name) } dd { (value) } } }
                div { dt { "Time spent" } dd { (time(parts.iter().map(|part| part.record.seconds).sum())) } }
            }
        }
        nav aria-label="Contents" {
            ol {
                @for part in parts { li { a href={ "#" (part.name) } { (part.record.title) } } }
            }
        }
        main {
            @for part in parts { (section(part, &known)) }
        }
    };
    frame("Koel: experiments", rules, &body)
}

/// A page with this body, and the rules of its charts.
pub(crate) fn frame(title: &str, rules: &BTreeSet<String>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style {
                    (PreEscaped(STYLE))
                    @for rule in rules { (PreEscaped(rule)) }
                }
            }
            body { (body) }
        }
    }
}

/// What differs between two runs, with the values of both.
pub(crate) fn facts_apart(runs: [&Run; 2]) -> Vec<(String, [String; 2])> {
    let [a, b] = runs.map(facts);
    let both = a.into_iter().zip(b).filter(|(one, other)| one != other);
    both.map(|((name, one), (_, other))| (name.to_owned(), [one, other])).collect()
}

/// A warning about experiments that ran without optimization.
fn warning(parts: &[Part]) -> Markup {
    let slow: Vec<_> = parts.iter().filter(|part| !part.record.run.machine.optimized).map(|part| part.name.as_str()).collect();
    html! {
        @if !slow.is_empty() {
            p.warning {
                strong { "Not optimized. " }
                "The program that measured " (slow.join(", ")) " was compiled without optimization, so koel is faster than it \
                 shows. Build the program with " code { "--release" } ", and measure again."
            }
        }
    }
}

/// What readers must know before the figures of all experiments.
fn notes(parts: &[Part]) -> Markup {
    let named = |is: fn(&Part) -> bool| parts.iter().filter(|part| is(part)).map(|part| part.name.as_str()).collect::<Vec<_>>();
    let unknown = named(|part| part.record.run.build.program.is_none());
    let warned = named(|part| !part.record.warnings.is_empty());
    html! {
        @if !unknown.is_empty() {
            p.note {
                strong { "Unknown program. " }
                "The records of " (unknown.join(", ")) " do not say which program measured them."
            }
        }
        @if !warned.is_empty() {
            p.note { strong { "Read first. " } "There are notes above the charts of " (warned.join(", ")) "." }
        }
    }
}

fn section(part: &Part, known: &[(&'static str, String)]) -> Markup {
    let record = &part.record;
    let run = &record.run;
    let others: Vec<_> = facts(run).into_iter().zip(known).filter(|(one, other)| one != *other).map(|(one, _)| one).collect();
    html! {
        section id=(part.name) aria-labelledby={ (part.name) "-title" } {
            h2 id={ (part.name) "-title" } { (record.title) }
            p { (record.about) }
            @if !record.complete {
                p.warning {
                    strong { "Not complete. " }
                    (record.measured.len()) " cases were measured before the run was interrupted. The same command continues it."
                }
            }
            @for warning in &record.warnings { p.note { (warning) } }
            @if !others.is_empty() {
                p.soft { "Different from the first experiment on this page:" }
                dl.facts { @for (name, value) in &others { div { dt { (name) } dd { (value) } } } }
            }
            div.charts {
                @for (picture, svg) in record.pictures.iter().zip(&part.charts) { (figure(picture, svg)) }
            }
            @for table in &record.tables { (small(table)) }
            p.soft {
                @if part.rows() > 0 {
                    a download={ (part.name) ".csv" } href={ "data:text/csv;charset=utf-8;base64," (STANDARD.encode(&part.csv)) } {
                        "All " (part.rows()) " rows as " (part.name) ".csv"
                    }
                    ". "
                }
                "Started on " time datetime=(run.started) { (run.started.replace('T', " at ").replace('Z', " UTC")) }
                "; measuring took " (time(record.seconds)) ". Measured by koel " (run.koel) ", " (run.build) "."
            }
        }
    }
}

/// A chart with its caption. The title is part of the picture.
fn figure(picture: &Picture, svg: &str) -> Markup {
    html! { figure { (PreEscaped(svg)) figcaption { (picture.caption) } } }
}

/// A table, which scrolls if it is wider than the page.
fn small(table: &Table) -> Markup {
    let is_number = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '−');
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

/// What a run's numbers depend on: the same names in the same order for every run.
fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let (machine, scope) = (&run.machine, &run.scope);
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| String::from("unknown"));
    let size = if scope.quick { "quick: smaller and fewer tables" } else { "full" };
    let most = scope.max_slots.map_or_else(|| String::from("no limit"), |slots| format!("{slots} slots"));
    vec![
        ("Processor", machine.processor.clone()),
        ("Cores", machine.cores.to_string()),
        ("Memory", format!("{:.1} GiB", machine.memory_mib as f64 / 1024.0)),
        (
            "System",
            [Some(&machine.system), machine.system_kernel.as_ref()]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", "),
        ),
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

/// A duration in words.
pub(super) fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Ok(time) if time >= Duration::from_secs(1) => humantime::format_duration(time).to_string(),
        _ => String::from("less than a second"),
    }
}

/// What was measured and where, how disturbed it was, and what was found.
fn summary(parts: &[Part]) -> Markup {
    let machines: BTreeSet<_> = parts.iter().map(|part| part.record.run.machine.processor.as_str()).collect();
    let rows: usize = parts.iter().map(Part::rows).sum();
    let disturbed = fields(parts).filter(|row| is_disturbed(row)).count();
    let spent = time(parts.iter().map(|part| part.record.seconds).sum());
    html! {
        div.summary {
            p {
                strong { "Summary. " }
                (counted(parts.len(), "experiment")) " with " (counted(rows, "row")) ", measured in " (spent) " on "
                (machines.into_iter().collect::<Vec<_>>().join(" and ")) ". "
                @if disturbed > 0 {
                    "Other work on the processor disturbed " (disturbed) " of the rows; the sections say which."
                } @else {
                    "No row is marked as disturbed by other work on the processor."
                }
            }
            @let found: Vec<_> = parts.iter().filter_map(|part| Some((part, finding(part)?))).collect();
            @if !found.is_empty() {
                ul {
                    @for (part, finding) in found { li { a href={ "#" (part.name) } { (part.record.title) } ": " (finding) "." } }
                }
            }
        }
    }
}

/// What the first chart shows that says so: experiments have their most important one first.
fn finding(part: &Part) -> Option<&str> {
    part.record.pictures.iter().find(|picture| picture.is_finding).map(|picture| &*picture.title)
}

fn fields(parts: &[Part]) -> impl Iterator<Item = &Fields> {
    parts.iter().flat_map(|part| &part.record.measured).flat_map(|measured| &measured.rows)
}

/// Rows of single rounds count the times that were disturbed; rows of several rounds say whether there were too many.
fn is_disturbed(row: &Fields) -> bool {
    row.get("disturbed").is_some_and(|value| value.as_bool() == Some(true) || value.as_u64().is_some_and(|times| times > 0))
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
