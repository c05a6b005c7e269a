//! The HTML of the page.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Part;
use crate::{
    experiment::Table,
    record::{Picture, Run},
};

const STYLE: &str = include_str!("style.css");

/// Loads nothing and runs no script, whatever the chart files contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The whole page.
pub(super) fn page(parts: &[Part], rules: &BTreeSet<String>) -> Markup {
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
                        "Cuckoo filters, measured by " code { "koel experiment" } ". This file has everything: charts, summary tables, \
                         and all rows as CSV files to save. The same seed gives the same numbers on every machine, except where \
                         time is measured."
                    }
                    (warning(parts))
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
            }
        }
    }
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
            @if !others.is_empty() {
                p.soft { "Different from the first experiment on this page:" }
                dl.facts { @for (name, value) in &others { div { dt { (name) } dd { (value) } } } }
            }
            div.charts {
                @for (picture, svg) in record.pictures.iter().zip(&part.charts) { (figure(picture, svg)) }
            }
            @for table in &record.tables { (small(table)) }
            p.soft {
                a download={ (part.name) ".csv" } href={ "data:text/csv;charset=utf-8;base64," (STANDARD.encode(&part.csv)) } {
                    "All " (part.rows()) " rows as " (part.name) ".csv"
                }
                ". Started on " time datetime=(run.started) { (run.started.replace('T', " at ").replace('Z', " UTC")) }
                "; measuring took " (time(record.seconds)) "."
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
    let size = if scope.quick { "quick: smaller and fewer tables" } else { "full" };
    let most = scope.max_slots.map_or_else(|| String::from("no limit"), |slots| format!("{slots} slots"));
    vec![
        ("Processor", machine.processor.clone()),
        ("Cores", machine.cores.to_string()),
        ("Memory", format!("{:.1} GiB", machine.memory_mib as f64 / 1024.0)),
        ("System", machine.system.clone()),
        ("Kernel", machine.kernel.clone()),
        ("Compiled", String::from(if machine.optimized { "with optimization" } else { "without optimization" })),
        ("Koel", run.koel.clone()),
        ("Seed", scope.seed.to_string()),
        ("Size", String::from(size)),
        ("Largest tables", most),
    ]
}

/// A duration in words.
fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Ok(time) if time >= Duration::from_secs(1) => humantime::format_duration(time).to_string(),
        _ => String::from("less than a second"),
    }
}
