//! Charts with the results of both runs: lines for the first, rings for the second.

use crate::{
    chart::{Chart, Mark, Series},
    experiments,
    record::Results,
};

/// The charts of an experiment with both results in each. There are none of other programs' experiments.
pub(super) fn overlaid(records: &[Results; 2]) -> anyhow::Result<Vec<Chart>> {
    let [a, b] = [charts(&records[0])?, charts(&records[1])?];
    Ok(a.into_iter().filter_map(|one| Some(overlay(&one, b.iter().find(|other| other.file == one.file)?))).collect())
}

fn charts(results: &Results) -> anyhow::Result<Vec<Chart>> {
    let experiment = experiments::with_name(&results.name);
    experiment.map_or(Ok(Vec::new()), |experiment| Ok(experiment.findings(&results.record.measured)?.charts))
}

/// A series of the second run that is equal to that of the first is not drawn.
fn overlay(a: &Chart, b: &Chart) -> Chart {
    let name = |series: &Series, run: &str| match series.name.as_str() {
        "" => String::new(),
        name => format!("{name}, {run}"),
    };
    let is_same = |one: &Series, other: &Series| (&one.name, one.colour, one.mark) == (&other.name, other.colour, other.mark);
    let mut series = Vec::new();
    for one in &a.series {
        match b.series.iter().find(|other| is_same(one, other)) {
            Some(other) if other.points == one.points => series.push(one.clone()),
            _ => series.push(Series { name: name(one, "A"), mark: without_marks(one.mark), ..one.clone() }),
        }
    }
    for other in &b.series {
        if a.series.iter().all(|one| !is_same(one, other) || one.points != other.points) {
            series.push(Series { name: name(other, "B"), mark: Mark::Rings, ..other.clone() });
        }
    }
    let same = series.iter().all(|series| series.mark != Mark::Rings);
    let what = if same { "Both runs are the same." } else { "Lines: A. Rings: B, where it differs." };
    Chart { finding: None, caption: format!("{what} {}", a.caption), series, ..a.clone() }
}

fn without_marks(mark: Mark) -> Mark {
    match mark {
        Mark::Points => Mark::Line,
        Mark::DashedPoints => Mark::Dashes,
        other => other,
    }
}
