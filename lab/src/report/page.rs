//! What the page looks like.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Part;
use crate::{
    experiment::Table,
    record::{Picture, Run},
};

const STYLE: &str = include_str!("style.css");

/// Nothing is fetched and nothing is run, whatever the charts' files say.
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
                title { "Koel: what was measured" }
                style {
                    (PreEscaped(STYLE))
                    @for rule in rules { (PreEscaped(rule)) }
                }
            }
            body {
                header {
                    h1 { "Koel: what was measured" }
                    p {
                        "Cuckoo filters, measured by " code { "koel experiment" } ". All of it is in this one file: the charts, the \
                         numbers in short, and all rows as tables to save. The same seed gives the same numbers on every machine, \
                         except where time is measured."
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

/// Of experiments whose times mean nothing.
fn warning(parts: &[Part]) -> Markup {
    let slow: Vec<_> = parts.iter().filter(|part| !part.record.run.machine.optimized).map(|part| part.name.as_str()).collect();
    html! {
        @if !slow.is_empty() {
            p.warning {
                strong { "Not optimized. " }
                "The program that measured " (slow.join(", ")) " was compiled without optimization: all of it is slower than koel is. \
                 Build it with " code { "--release" } ", and measure again."
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
                    (record.measured.len()) " cases were measured before it was interrupted; the same command goes on from there."
                }
            }
            @if !others.is_empty() {
                p.soft { "This is of another run than the first:" }
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
                ". Begun on " time datetime=(run.started) { (run.started.replace('T', " at ").replace('Z', " UTC")) }
                "; measuring took " (time(record.seconds)) "."
            }
        }
    }
}

/// The title is in the picture.
fn figure(picture: &Picture, svg: &str) -> Markup {
    html! { figure { (PreEscaped(svg)) figcaption { (picture.caption) } } }
}

/// It scrolls by itself where it is wider than the page.
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

/// What a run's numbers depend on. The same names in the same order for every run.
fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let (machine, scope) = (&run.machine, &run.scope);
    let size = if scope.quick { "quick: smaller tables, and fewer" } else { "full" };
    let most = scope.max_slots.map_or_else(|| String::from("as they come"), |slots| format!("{slots} slots"));
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

/// As people write it.
fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds.round()) {
        Ok(time) if time >= Duration::from_secs(1) => humantime::format_duration(time).to_string(),
        _ => String::from("less than a second"),
    }
}
