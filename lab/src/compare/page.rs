//! The page of a comparison.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::{Compared, Comparison, Difference, Verdict};
use crate::{chart::Chart, report};

/// The name of its file.
pub const FILE: &str = "compare.html";

/// More rows would make the page long; all are in compare.csv.
const MOST_ROWS: usize = 200;

/// The page, with the charts of each experiment.
pub(super) fn page(comparison: &Comparison, drawn: &[Vec<(Chart, String)>]) -> Markup {
    let [a, b] = comparison.folders.each_ref().map(|folder| folder.display().to_string());
    let different = comparison.with(Verdict::Different).count();
    let mut rules = BTreeSet::new();
    let sections: Vec<_> =
        comparison.experiments.iter().zip(drawn).map(|(one, charts)| section(one, charts, &mut rules)).collect();
    let body = html! {
            header {
                h1 { "Koel: two runs" }
                dl.facts {
                    div { dt { "A" } dd { (a) } }
                    div { dt { "B" } dd { (b) } }
                    div { dt { "Different" } dd { (different) " figures" } }
                    @for (run, names) in ["A", "B"].iter().zip(&comparison.alone) {
                        @if !names.is_empty() { div { dt { "Only in " (run) } dd { (names.join(", ")) } } }
                    }
                }
                p {
                    "Figures differ if chance does not explain it: the intervals of all differences on this page hold together \
                     with a probability of 99 %."
                }
            }
            main { @for section in &sections { (section) } }
    };
    report::frame("Koel: two runs", &rules, &body)
}

fn section(compared: &Compared, charts: &[(Chart, String)], rules: &mut BTreeSet<String>) -> Markup {
    let count = |verdict| compared.with(verdict).count();
    let (different, unknown) = (count(Verdict::Different), count(Verdict::Unknown));
    html! {
        section id=(compared.name) {
            h2 { (compared.name) }
            p {
                (compared.cases) " cases in both; " (compared.alone[0].len()) " only in A, " (compared.alone[1].len()) " only in B. "
                (compared.figures.len()) " figures, " (different) " of them different"
                @if unknown > 0 { "; of " (unknown) " more that differ, the spread is not known" }
                "."
            }
            @if !compared.runs.is_empty() {
                dl.facts { @for (name, [a, b]) in &compared.runs { div { dt { (name) } dd { (a) " / " (b) } } } }
            }
            div.charts {
                @for (chart, svg) in charts {
                    figure { (PreEscaped(report::without_rules(svg, rules).unwrap_or_default())) figcaption { (chart.caption) } }
                }
            }
            @if different > 0 { (table(compared)) }
        }
    }
}

fn table(compared: &Compared) -> Markup {
    let rows: Vec<_> = compared.with(Verdict::Different).collect();
    let more = rows.len().saturating_sub(MOST_ROWS);
    html! {
        div.wide role="region" aria-label="Differences" tabindex="0" {
            table {
                caption { "Figures that differ" @if more > 0 { "; " (more) " more are in compare.csv" } }
                thead { tr { @for name in ["case", "figure", "A", "B", "B − A", "interval"] { th scope="col" { (name) } } } }
                tbody { @for figure in rows.into_iter().take(MOST_ROWS) { (row(figure)) } }
            }
        }
    }
}

fn row(figure: &Difference) -> Markup {
    let half = figure.half_interval.map_or_else(String::new, |half| format!("± {half:.3e}"));
    html! {
        tr {
            td { (figure.case) " " (figure.row) }
            td { (figure.column) }
            td.number { (figure.a) }
            td.number { (figure.b) }
            td.number { (format!("{:.3e}", figure.b - figure.a)) }
            td { (half) }
        }
    }
}
