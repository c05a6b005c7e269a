//! Filters of other crates, as `koel-peers` measured them on this machine: what is known of their times. Koel's own are among
//! them: measured in the same rounds, they say how the others compare, whatever the machine did in that hour.

use std::{collections::BTreeMap, path::Path};

use koel_lab::{Measured, experiments::speed::Speeds, read_results};
use serde::Deserialize;

use super::{
    super::Tune,
    cost::{Cost, Workload},
};

/// Results of so many times more or fewer items are of no use: other caches hold the filters.
const NEAR: f64 = 2.0;

/// A round of koel-peers; it has more fields.
#[derive(Deserialize)]
struct Case {
    items: u64,
}

/// A filter in a round. Without times, it could not be measured.
#[derive(Deserialize)]
struct Row {
    filter: String,
    family: String,
    add_ns: Option<f64>,
    find_absent_ns: Option<f64>,
    find_present_ns: Option<f64>,
    remove_ns: Option<f64>,
    rate: Option<f64>,
    bits_per_item: Option<f64>,
}

/// Another filter and what it costs.
pub(super) struct Rival {
    /// The crate's name and version, and then what tells its filters apart.
    pub(super) name: String,
    pub(super) rate: f64,
    pub(super) bytes: f64,
    pub(super) cost: Cost,
}

impl Rival {
    /// The name of the crate: without its version, and what tells its filters apart. Of koel's, the table and the length of
    /// fingerprints stay.
    pub(super) fn product(&self) -> &str {
        let end: &[char] = if self.is_koels() { &[','] } else { &[' ', ','] };
        self.name.split(end).next().unwrap_or_default()
    }

    /// Whether it is koel's.
    pub(super) fn is_koels(&self) -> bool {
        self.name.starts_with("koel ")
    }
}

/// The filters of other crates.
pub(super) struct Rivals {
    /// The cheapest first.
    pub(super) priced: Vec<Rival>,
    /// Those left out, each with the reason.
    pub(super) rejected: Vec<(String, String)>,
    /// How many items they had when they were measured. `None` if there are no results for about as many items.
    pub(super) items: Option<u64>,
}

impl Rivals {
    /// Those in a folder, if they were measured with about so many items.
    pub(super) fn read(folder: &Path, items: usize, workload: &Workload, asked: &Tune) -> anyhow::Result<Self> {
        let mut rivals = Self { priced: Vec::new(), rejected: Vec::new(), items: None };
        let measured = read_results(folder, "peers")?.map_or_else(Vec::new, |recorded| recorded.measured);
        let measured = Measured::<Case, Row>::typed(&measured)?;
        let is_near = |of: u64| (of as f64 / items as f64).ln().abs() <= NEAR.ln();
        let mut rows = BTreeMap::<String, Vec<Row>>::new();
        for round in measured.into_iter().filter(|round| is_near(round.case.items)) {
            rivals.items = Some(round.case.items);
            for row in round.rows.into_iter().filter(|row| !row.filter.contains("batches")) {
                rows.entry(row.filter.clone()).or_default().push(row);
            }
        }
        for (name, rounds) in rows {
            match price(&rounds, items, workload, asked) {
                Ok((rate, bytes, cost)) => rivals.priced.push(Rival { name, rate, bytes, cost }),
                Err(reason) => rivals.rejected.push((name, reason)),
            }
        }
        rivals.priced.sort_by(|one, other| one.cost.total().total_cmp(&other.cost.total()));
        Ok(rivals)
    }

    /// The cheapest of each product; or all of them.
    pub(super) fn shown(&self, all: bool) -> Vec<&Rival> {
        let is_first = |place: usize, rival: &Rival| self.priced[..place].iter().all(|other| other.product() != rival.product());
        let shown = self.priced.iter().enumerate().filter(|&(place, rival)| all || is_first(place, rival));
        shown.map(|(_, rival)| rival).collect()
    }
}

/// The rate, the bytes and the cost of a filter, by the medians of its rounds; or why it cannot be used.
fn price(rounds: &[Row], items: usize, workload: &Workload, asked: &Tune) -> Result<(f64, f64, Cost), String> {
    let median = |of: fn(&Row) -> Option<f64>| {
        let values: Option<Vec<_>> = rounds.iter().map(of).collect();
        koel_lab::Quartiles::of(values?).map(|quartiles| quartiles.median)
    };
    let needed = |of| median(of).ok_or_else(|| String::from("it could not be measured"));
    let is_static = rounds.iter().any(|row| row.family == "fuse" || row.filter.contains("build_from_items"));
    if workload.insertions > 0.0 && is_static {
        return Err(String::from("it is built from all items at once"));
    }
    let remove = median(|row| row.remove_ns);
    if (workload.removals > 0.0 || asked.deletes) && remove.is_none() {
        return Err(String::from("it cannot delete"));
    }
    let speeds = Speeds {
        find_absent: needed(|row| row.find_absent_ns)?,
        find_present: needed(|row| row.find_present_ns)?,
        insert: needed(|row| row.add_ns)?,
        build: needed(|row| row.add_ns)?,
        remove: remove.unwrap_or(0.0),
    };
    let rate = needed(|row| row.rate)?;
    let bytes = needed(|row| row.bits_per_item)? * items as f64 / 8.0;
    if let Some(limit) = asked.fpr.filter(|&limit| rate > limit * 1.1) {
        return Err(format!("its rate is {}, and it may be {limit}", crate::figures::three_digits(rate)));
    }
    if let Some(limit) = asked.bytes.filter(|&limit| bytes > limit as f64) {
        return Err(format!("it takes {bytes:.0} bytes, and there may be {limit}"));
    }
    Ok((rate, bytes, workload.cost(&speeds, rate, bytes)))
}
