//! The charts: time against space.

use koel_lab::{Axis, Chart, Mark, Quartiles, Series};

use super::labels;
use crate::{peer::Family, row::Record, set::Set};

/// The charts of these results. Some filters may have failed: the titles then do not compare.
pub(super) fn of(set: Set, records: &[Record], items: usize, some_failed: bool) -> Vec<Chart> {
    let chart = |file, label, what, topic, time| {
        let chart = against_space(set, records, items, &Texts { file, label, what, topic }, time);
        if some_failed { Chart { finding: None, ..chart } } else { chart }
    };
    let [find, build, remove] = match set {
        Set::Fixed => ["Time to look up an absent item, by space", "Time to build, by space", "Time to remove, by space"],
        Set::Growing => {
            ["Time to look up after growth, by space", "Time to add, by space", "Time to remove after growth, by space"]
        }
    };
    vec![
        chart("find", "find an absent item, ns", "lookup", find, |record| Some(record.find_absent_ns)),
        chart("build", "build, ns per item", "item built", build, |record| Some(record.add_ns)),
        chart("remove", "remove an item, ns", "removal", remove, |record| record.remove_ns),
    ]
}

/// The families in the charts of filters of a fixed size. There are six colours that can be told apart, and counting Bloom
/// filters, four times as large as others, would squeeze all the rest into a corner.
const FIXED: [(Family, &str); 6] = [
    (Family::Koel, "koel"),
    (Family::Cuckoo, "other cuckoo"),
    (Family::Quotient, "quotient"),
    (Family::Bloom, "Bloom"),
    (Family::Blocked, "blocked Bloom"),
    (Family::Fuse, "binary fuse (static)"),
];

/// The families in the charts of filters that grow.
const GROWING: [(Family, &str); 5] = [
    (Family::Koel, "koel"),
    (Family::Cuckoo, "a list of cuckoo filters"),
    (Family::Quotient, "quotient"),
    (Family::Bloom, "Bloom, at its final size"),
    (Family::Aleph, "Aleph"),
];

/// The texts of a chart that differ between its kinds.
struct Texts {
    file: &'static str,
    label: &'static str,
    /// What takes time.
    what: &'static str,
    topic: &'static str,
}

fn against_space(set: Set, records: &[Record], items: usize, texts: &Texts, time: fn(&Record) -> Option<Quartiles>) -> Chart {
    let drawn = match set {
        Set::Fixed => &FIXED[..],
        Set::Growing => &GROWING[..],
    };
    let shown: Vec<_> = records.iter().filter(|record| drawn.iter().any(|(family, _)| *family == record.family)).collect();
    let names: Vec<_> = shown.iter().map(|record| &*record.filter).collect();
    let all = shown.into_iter().zip(labels::short(&names));
    let all: Vec<_> = all.filter_map(|(record, label)| Some(Point { record, label, time: time(record)? })).collect();
    // Filled marks are comparable, hollow ones are not.
    let (alike, own): (Vec<_>, Vec<_>) = all.into_iter().partition(|point| is_comparable(set, point.record, items));
    let mut series = Vec::new();
    for (colour, &(family, name)) in drawn.iter().enumerate() {
        let [alike, own] =
            [&alike, &own].map(|points| points.iter().filter(|point| point.record.family == family).collect::<Vec<_>>());
        if !alike.is_empty() || !own.is_empty() {
            series.push(marks(name, colour, Mark::Dots, &alike));
        }
        // Hollow marks: a dashed line of one point is not visible.
        let hollow = |point| marks("", colour, Mark::DashedPoints, &[point]);
        series.extend(own.into_iter().map(hollow));
    }
    let sizes = alike.iter().chain(&own).map(|point| point.record.bits_per_item);
    let times = alike.iter().chain(&own).flat_map(|point| [point.time.low, point.time.median, point.time.high]);
    let y = within(Axis::log(texts.label), times);
    let (x, caption) = match set {
        Set::Fixed => (Axis::linear("bits per item"), CAPTION_FIXED),
        // The largest filter takes more than thirty times the space of the smallest.
        Set::Growing => (within(Axis::log("bits per item"), sizes), CAPTION_GROWING),
    };
    Chart {
        file: texts.file.to_owned(),
        topic: texts.topic.to_owned(),
        finding: finding(&alike, texts.what),
        caption: caption.to_owned(),
        x,
        y,
        series,
    }
}

/// A filter in a chart.
struct Point<'a> {
    record: &'a Record,
    label: String,
    time: Quartiles,
}

/// Whether the filter does what all of them were asked for.
fn is_comparable(set: Set, record: &Record, items: usize) -> bool {
    match set {
        Set::Fixed => record.asked_rate.is_some(),
        Set::Growing => record.keeps_rate(items) == Some(true) && record.lost_by_removal.unwrap_or(0) == 0,
    }
}

/// The smallest of koel's filters beside the smallest of the others that can delete, too. `None` without such a filter.
fn finding(comparable: &[Point<'_>], what: &str) -> Option<String> {
    let smallest = |is_ours: bool| {
        let deleting = comparable.iter().filter(|point| point.record.deletes && (point.record.family == Family::Koel) == is_ours);
        // Of equal ones, the first: without batches.
        deleting.min_by(|one, other| one.record.bits_per_item.total_cmp(&other.record.bits_per_item))
    };
    let (ours, theirs) = (smallest(true)?, smallest(false)?);
    let [(bits, ns), (their_bits, their_ns)] = [ours, theirs].map(|point| (point.record.bits_per_item, point.time.median));
    let them = &theirs.label;
    Some(format!("Koel: {ns:.1} ns per {what}, {bits:.1} bits per item; {them}: {their_ns:.1} ns, {their_bits:.1} bits"))
}

/// A series of times with their quartiles, by bits per item.
fn marks(name: &str, colour: usize, mark: Mark, points: &[&Point<'_>]) -> Series {
    let at = |point: &&Point<'_>| (point.record.bits_per_item, point.time.median);
    let quartiles = points.iter().map(|point| (point.time.low, point.time.high)).collect();
    let labels = points.iter().map(|point| point.label.clone()).collect();
    Series::new(name, colour, points.iter().map(at).collect()).marked(mark).within(quartiles).labelled(labels)
}

const CAPTION_FIXED: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner is \
    better. The title compares the smallest two that delete and have the same rate, koel's and another's. Bars are quartiles of the rounds. Hollow marks and crosses are filters with a rate of their own, higher or lower; the table has it, and the \
    overhead, which takes it into account. The counting Bloom filter is left out: it takes four times the space of a plain \
    one.";

const CAPTION_GROWING: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner \
    is better. The title compares the smallest two that delete, kept the promised rate and lost nothing, koel's and another's. Bars are quartiles of the rounds. Hollow marks and crosses are filters that did not keep the promised rate, or lost items when others were \
    removed.";

/// The axis with round ends close to these values, if there are any.
fn within(axis: Axis, values: impl Iterator<Item = f64>) -> Axis {
    match ends(values) {
        Some((low, high)) => axis.from_to(low, high),
        None => axis,
    }
}

/// The nearest round numbers below and above all values: whole powers of ten would leave most of a chart empty.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let round = |value: f64| {
        let power = 10_f64.powf(value.log10().floor());
        [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|digit| digit * power)
    };
    let below = round(low).into_iter().rev().find(|&end| end <= low);
    let above = round(high).into_iter().find(|&end| end >= high);
    if low > 0.0 && low <= high { below.zip(above) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_close_to_the_points() {
        assert_eq!(ends([4.4, 170.0, 33.0].into_iter()), Some((4.0, 200.0)));
        assert_eq!(ends([1.0, 10.0].into_iter()), Some((1.0, 10.0)));
        assert_eq!(ends([0.55, 102.0].into_iter()), Some((0.5, 120.0)));
        assert_eq!(ends([].into_iter()), None);
        assert_eq!(ends([0.0].into_iter()), None);
    }
}
