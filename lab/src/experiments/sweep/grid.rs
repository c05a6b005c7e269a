//! The combinations of parameters.

use koel::{CuckooFilter, TableKind};

use super::{Case, measures::Measures};
use crate::{experiment::Table, experiments::probe::Kind};

/// Values of parameters. Every combination of them is a case, if there can be such a filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The kinds of tables.
    pub tables: Vec<TableKind>,
    /// Slots per bucket.
    pub bucket_sizes: Vec<u32>,
    /// Bits of a fingerprint.
    pub fingerprint_bits: Vec<u32>,
    /// Loads, above 0 and at most 1: how many slots there are for the items.
    pub loads: Vec<f64>,
    /// Numbers of items.
    pub items: Vec<u64>,
}

/// Combinations that are impossible for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub reason: String,
    /// How many they are.
    pub combinations: usize,
}

impl Grid {
    /// All combinations: tables change slowest, then buckets, fingerprints, items and loads.
    fn all(&self, measures: &Measures, quick: bool) -> impl Iterator<Item = Case> {
        let mut cases = Vec::new();
        for &table in &self.tables {
            for &b in &self.bucket_sizes {
                for &f in &self.fingerprint_bits {
                    for &items in &self.items {
                        let of = |&load| Case { table: kind(table), b, f, load, items, measure: measures.clone(), quick };
                        cases.extend(self.loads.iter().map(of));
                    }
                }
            }
        }
        cases.into_iter()
    }

    /// The combinations that are possible.
    pub(super) fn cases(&self, measures: &Measures, quick: bool) -> Vec<Case> {
        self.all(measures, quick).filter(|case| impossible(case).is_none()).collect()
    }

    /// The others, with their reasons in the order of their first occurrence.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out: Vec<LeftOut> = Vec::new();
        for reason in self.all(&Measures::new(&[]), false).filter_map(|case| impossible(&case)) {
            match left_out.iter_mut().find(|other| other.reason == reason) {
                Some(known) => known.combinations += 1,
                None => left_out.push(LeftOut { reason, combinations: 1 }),
            }
        }
        left_out
    }
}

fn kind(table: TableKind) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.table() == table).unwrap_or(Kind::Single)
}

/// Why there is no such filter. `None` if there can be one.
fn impossible(case: &Case) -> Option<String> {
    let table = case.table.table();
    let (sizes, lengths) = (table.bucket_sizes(), table.fingerprint_bits());
    let between = |range: &std::ops::RangeInclusive<u32>| match (range.start(), range.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    if !sizes.contains(&case.b) {
        return Some(format!("b = {}: the {table} table has buckets of {} slots", case.b, between(&sizes)));
    }
    if !lengths.contains(&case.f) {
        return Some(format!("f = {}: the {table} table has fingerprints of {} bits", case.f, between(&lengths)));
    }
    let builder = CuckooFilter::builder().table(table).bucket_size(case.b).fingerprint_bits(case.f);
    builder.buckets(case.buckets()).params().err().map(|error| error.to_string())
}

/// The table of the report. `None` if nothing was left out.
pub(super) fn table(left_out: &[LeftOut]) -> Option<Table> {
    let mut table = Table::new("Combinations that were left out, since there is no such filter", &["combinations", "reason"]);
    table.rows = left_out.iter().map(|one| vec![one.combinations.to_string(), one.reason.clone()]).collect();
    (!left_out.is_empty()).then_some(table)
}
