//! The picture: cost by false-positive rate.

use koel::TableKind;
use koel_lab::{Axis, Chart, Mark, Series};

use super::{Costs, Priced};
use crate::figures::{three_digits, time};

impl Costs<'_> {
    /// A line for each kind of table, marks for what koel-peers measured, and a line for no filter.
    pub(super) fn chart(&self) -> Chart {
        let mut series = Vec::new();
        for (colour, table) in [TableKind::Packed, TableKind::Single].into_iter().enumerate() {
            let points = self.cheapest(table);
            if !points.is_empty() {
                series.push(Series::new(format!("koel, {table}"), colour, points).marked(Mark::Points));
            }
        }
        for (colour, name, are_koels) in [(2, "other crates, in koel-peers", false), (3, "koel, in koel-peers", true)] {
            let rivals = self.rivals.shown(false).into_iter();
            let rivals: Vec<_> = rivals.filter(|rival| rival.is_koels() == are_koels && rival.rate > 0.0).collect();
            if !rivals.is_empty() {
                let points = rivals.iter().map(|rival| (rival.rate, rival.cost.total())).collect();
                // Koel's stand on the lines, where there is no room for labels.
                let labelled = rivals.iter().filter(|rival| !rival.is_koels());
                let labels = labelled.map(|rival| rival.product().to_owned()).collect();
                series.push(Series::new(name, colour, points).marked(Mark::Rings).labelled(labels));
            }
        }
        let rates = || series.iter().flat_map(|series| series.points.iter().map(|&(rate, _)| rate));
        let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
        // A line needs a length.
        let (least, most) = if least < most { (least, most) } else { (least / 2.0, most * 2.0) };
        if self.without() > 0.0 {
            let line = vec![(least, self.without()), (most, self.without())];
            series.push(Series::new("no filter", Chart::MOST_COLOURS - 1, line).marked(Mark::Dashes));
        }
        let finding = self.filters.first().map(|best| {
            let (cost, rate) = (time(best.cost.total()), three_digits(best.candidate.false_positive_rate()));
            let beside = time(self.without());
            format!("koel: {cost} for an operation at least, at \u{3b5} = {rate}; {beside} without a filter")
        });
        Chart {
            file: String::from("cost"),
            topic: String::from("Expected time per operation, by false-positive rate"),
            finding,
            caption: String::new(),
            x: Axis::log("false-positive rate \u{3b5}"),
            y: Axis::log("time per operation, ns"),
            series,
        }
    }

    /// The rate and the cost of the cheapest filter of a kind for each length of fingerprints, by rate.
    fn cheapest(&self, table: TableKind) -> Vec<(f64, f64)> {
        let of_table: Vec<_> = self.filters.iter().filter(|priced| priced.params().table() == table).collect();
        let bits = |priced: &Priced| priced.params().fingerprint_bits();
        let is_first = |place: usize, priced: &Priced| of_table[..place].iter().all(|other| bits(other) != bits(priced));
        let cheapest = of_table.iter().enumerate().filter(|&(place, priced)| is_first(place, priced)).map(|(_, priced)| priced);
        let points = cheapest.map(|priced| (priced.candidate.false_positive_rate(), priced.cost.total()));
        let mut points: Vec<_> = points.filter(|&(rate, _)| rate > 0.0).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        points
    }
}
