//! The charts: time against space.

use koel_lab::{Axis, Chart, Mark, Series};

use crate::{peer::Family, row::Record, set::Set};

pub(super) fn of(set: Set, records: &[Record], items: usize) -> Vec<Chart> {
    let chart = |file, label, title, time| against_space(set, records, items, &Texts { file, label, title }, time);
    let [find, build, remove] = match set {
        Set::Fixed => ["Looking up, by space", "Building, by space", "Removing, by space"],
        Set::Growing => ["Looking up after growth, by space", "Adding, by space", "Removing after growth, by space"],
    };
    vec![
        chart("find", "find an absent item, ns", find, |record| Some(record.find_absent_ns)),
        chart("build", "build, ns per item", build, |record| Some(record.add_ns)),
        chart("remove", "remove an item, ns", remove, |record| record.remove_ns),
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
    title: &'static str,
}

fn against_space(set: Set, records: &[Record], items: usize, texts: &Texts, time: fn(&Record) -> Option<f64>) -> Chart {
    let drawn = match set {
        Set::Fixed => &FIXED[..],
        Set::Growing => &GROWING[..],
    };
    // Filled marks are comparable, hollow ones are not.
    let filled = |record: &Record| match set {
        Set::Fixed => record.asked_rate.is_some(),
        Set::Growing => record.keeps_rate(items) == Some(true) && record.lost_by_removal.unwrap_or(0) == 0,
    };
    let mut series = Vec::new();
    for (colour, &(family, name)) in drawn.iter().enumerate() {
        let records = records.iter().filter(|record| record.family == family);
        let points = records.filter_map(|record| Some((filled(record), (record.bits_per_item, time(record)?))));
        let (alike, own): (Vec<_>, Vec<_>) = points.partition(|(filled, _)| *filled);
        if !alike.is_empty() || !own.is_empty() {
            let alike = alike.into_iter().map(|(_, point)| point).collect();
            series.push(Series::new(name, colour, alike).marked(Mark::Dots));
        }
        // Hollow marks: a dashed line of one point is not visible.
        let hollow = |(_, point)| Series::new("", colour, vec![point]).marked(Mark::DashedPoints);
        series.extend(own.into_iter().map(hollow));
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let y = within(Axis::log(texts.label), points().map(|point| point.1));
    let (x, caption) = match set {
        Set::Fixed => (Axis::linear("bits per item"), CAPTION_FIXED),
        // The largest filter takes more than thirty times the space of the smallest.
        Set::Growing => (within(Axis::log("bits per item"), points().map(|point| point.0)), CAPTION_GROWING),
    };
    Chart { file: texts.file.to_owned(), title: texts.title.to_owned(), caption: caption.to_owned(), x, y, series }
}

const CAPTION_FIXED: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner is \
    better. Hollow marks and crosses are filters with a rate of their own, higher or lower; the table has it, and the \
    overhead, which takes it into account. The counting Bloom filter is left out: it takes four times the space of a plain \
    one.";

const CAPTION_GROWING: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner \
    is better. Hollow marks and crosses are filters that did not keep the promised rate, or lost items when others were \
    removed.";

/// The axis with round ends close to these values, if there are any.
fn within(axis: Axis, values: impl Iterator<Item = f64>) -> Axis {
    match ends(values) {
        Some((low, high)) => axis.from_to(low, high),
        None => axis,
    }
}

/// The nearest 1, 2 or 5 times a power of ten below and above all values: whole powers would leave most of a chart empty.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let round = |value: f64| {
        let power = 10_f64.powf(value.log10().floor());
        [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power)
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
        assert_eq!(ends([4.4, 170.0, 33.0].into_iter()), Some((2.0, 200.0)));
        assert_eq!(ends([1.0, 10.0].into_iter()), Some((1.0, 10.0)));
        assert_eq!(ends([0.6, 95.0].into_iter()), Some((0.5, 100.0)));
        assert_eq!(ends([].into_iter()), None);
        assert_eq!(ends([0.0].into_iter()), None);
    }
}
