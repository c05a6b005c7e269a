//! The experiment `space`: bits per item. The paper's sections 5.1 and 6, and its figures 3 and 4.

mod findings;

use koel::{Addressing, Builder, CuckooFilter};
use serde::{Deserialize, Serialize};

use super::{
    Hashes,
    probe::{self, KINDS, Kind, Probed},
};
use crate::{
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
};

/// Bits per item.
pub struct Space;

/// What a case shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shows {
    /// The space for a false-positive rate.
    Rate,
    /// The space for a number of items.
    Size,
}

/// Which numbers of buckets are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Buckets {
    /// Any even number: koel's own addressing.
    Any,
    /// A power of two, as in the paper and in Go.
    Power,
}

/// A filter for a number of items, with all of them in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    shows: Shows,
    table: Kind,
    buckets: Buckets,
    b: u32,
    f: u32,
    items: usize,
    probes: u64,
}

/// Its size and false-positive rate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    slots: usize,
    /// Fewer than in the case if one was refused.
    inserted: usize,
    bits_per_item: f64,
    hits: u64,
    /// The measured ε, and its 99 % confidence interval.
    rate: f64,
    low: f64,
    high: f64,
}

/// The ε at which numbers of items are compared.
const RATE: f64 = 0.001;
/// How many numbers of items there are from one to its double.
const PER_OCTAVE: u32 = 8;
const FEWEST_ITEMS: usize = 1000;
/// How many hits are wanted for ε, within the limit of probes.
const HITS: u64 = 20_000;
/// The same where ε is not shown.
const FEW_HITS: u64 = 1000;

impl Case {
    fn builder(&self) -> Builder {
        let addressing = match self.buckets {
            Buckets::Any => Addressing::AnySize,
            Buckets::Power => Addressing::PowerOfTwo,
        };
        let builder = CuckooFilter::builder().table(self.table.table()).bucket_size(self.b).addressing(addressing);
        builder.capacity(self.items).fingerprint_bits(self.f)
    }

    /// The case with as many probes as it needs. `None` if its filter is larger than allowed, or cannot be measured.
    fn within(self, scope: &Scope, hits: u64) -> Option<Self> {
        let params = self.builder().params().ok()?;
        let slots = params.slots() as u64;
        let rate = params.false_positive_rate_at(self.items as f64 / slots as f64);
        let probes = probe::probes(rate, hits, scope.choose(10_000_000, 100_000_000));
        let fits = scope.at_most(slots) == slots && rate < 0.5 && rate * probes as f64 > probe::LEAST_HITS as f64;
        fits.then_some(Self { probes, ..self })
    }
}

impl Experiment for Space {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "space"
    }

    fn title(&self) -> &'static str {
        "Space per item"
    }

    fn about(&self) -> &'static str {
        "Each filter is built for a number of items and filled with as many. The bits of its table are counted, and its \
         false-positive rate is measured with items that were not inserted. The paper's figures 3 and 4 show the same. Its curves, \
         and those of Bloom filters here, are formulas for any ε; real fingerprints have whole numbers of bits."
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::key(
                "shows",
                "",
                "what the case shows: rate (space for a false-positive rate) or size (space for a number of items)",
            ),
            Column::key("table", "", "packed or single"),
            Column::key("buckets", "", "possible numbers of buckets: any (even number) or power (of two)"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("f", "bits", "length of a fingerprint"),
            Column::key("items", "items", "items that the filter was built for"),
            Column::key("probes", "probes", "absent items that were looked up"),
            Column::new("slots", "slots", "slots of the table").compared(Role::Exact),
            Column::new("inserted", "items", "items in the filter: fewer if one was refused").compared(Role::Exact),
            Column::new("bits_per_item", "bits", "bits of the table, divided by items").compared(Role::Exact),
            Column::new("hits", "probes", "probes that were found: false positives"),
            Column::new("rate", "", "measured false-positive rate, 0 to 1").compared(Role::estimate("low", "high")),
            Column::new("low", "", "lower end of its 99 % confidence interval"),
            Column::new("high", "", "upper end of its 99 % confidence interval"),
        ]
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let mut cases = Vec::new();
        let most = scope.max_slots.and_then(|slots| usize::try_from(slots).ok()).unwrap_or(usize::MAX);
        // Fewer items if tables for this many are not allowed.
        let items = scope.choose(100_000, 1_000_000).min(most / 4 * 3);
        for (table, b) in KINDS {
            let of = |f| Case { shows: Shows::Rate, table, buckets: Buckets::Any, b, f, items, probes: 0 };
            cases.extend((4..=24).filter_map(|f| of(f).within(scope, HITS)));
        }
        for items in numbers_of_items(scope.choose(200_000, 10_000_000)) {
            for buckets in [Buckets::Any, Buckets::Power] {
                let case = Case { shows: Shows::Size, table: Kind::Packed, buckets, b: 4, f: 32, items, probes: 0 };
                // The shortest fingerprints within the rate: in a half-empty table they may be a bit shorter.
                let shortest = (4..=32).map(|f| Case { f, ..case.clone() }).find(|case| {
                    case.builder()
                        .params()
                        .is_ok_and(|params| params.false_positive_rate_at(items as f64 / params.slots() as f64) <= RATE)
                });
                cases.extend(shortest.and_then(|case| case.within(scope, FEW_HITS)));
            }
        }
        cases
    }

    fn effort(&self, case: &Case) -> u64 {
        // An insertion takes about as long as ten probes.
        case.items as u64 * 10 + case.probes
    }

    fn memory(&self, case: &Case) -> u64 {
        probe::OVERHEAD + case.builder().params().map_or(0, |params| params.table_bytes() as u64)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let mut filter = case.builder().build()?;
        probe::fill(&mut filter, &mut Hashes::new(seed), case.items, interrupt)?;
        let probed = Probed::new(&filter, &mut Hashes::new(!seed), case.probes, interrupt)?;
        let (low, high) = probed.interval();
        Ok(vec![Row {
            slots: filter.slots(),
            inserted: filter.len(),
            bits_per_item: filter.bits_per_item(),
            hits: probed.hits,
            rate: probed.rate(),
            low,
            high,
        }])
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        findings::of(measured)
    }
}

/// Numbers of items in equal ratios, at the same places between any two powers of two.
fn numbers_of_items(most: usize) -> Vec<usize> {
    let number = |place: u32| FEWEST_ITEMS as f64 * (f64::from(place) / f64::from(PER_OCTAVE)).exp2();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of items, some millions at most")]
    let numbers = (0..).map(|place| number(place).round() as usize);
    numbers.take_while(|&items| items <= most).collect()
}

#[cfg(test)]
mod tests;
