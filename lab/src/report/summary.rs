//! The summary at the top of the page: what was measured and where, how disturbed it was, and what was found.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{Fields, Part, page};

pub(super) fn of(parts: &[Part]) -> Markup {
    let machines: BTreeSet<_> = parts.iter().map(|part| part.record.run.machine.processor.as_str()).collect();
    let rows: usize = parts.iter().map(Part::rows).sum();
    let disturbed = fields(parts).filter(|row| is_disturbed(row)).count();
    let spent = page::time(parts.iter().map(|part| part.record.seconds).sum());
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
