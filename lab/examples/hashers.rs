//! A complete custom experiment: the effect of a weak hash function on a filter. It fills tables with the numbers 0, 1, 2, … until
//! they refuse one, and then queries them for absent numbers.
//!
//! `cargo run --release -p koel-lab --example hashers` writes tables, a chart and a report to the folder `hashers`. After an
//! interruption with Ctrl-C, the same command continues the run.

use std::process::ExitCode;

use koel::{
    CuckooFilter, Xxh3,
    hash::{Hasher, HasherId, Uniform},
};
use koel_lab::{About, Axis, Chart, Experiment, Findings, Interrupt, Measured, Plan, Scope, Series, Settings, report};
use serde::{Deserialize, Serialize};

pub(crate) struct Hashers;

/// The parameters of one measurement. Its JSON identifies it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Case {
    hash: Hash,
    buckets: u32,
}

/// The results of a case.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    /// The load at the first refusal, 0 to 1.
    load: f64,
    /// The share of absent numbers that were found.
    rate: f64,
    /// The share that is expected with a good hash function.
    expected_rate: f64,
}

/// A hash function to compare.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Hash {
    Xxh3,
    /// The sum of the bytes, times a large odd number.
    Sum,
    /// The number itself.
    Identity,
}

impl Hasher for Hash {
    fn id(&self) -> HasherId {
        const { HasherId::custom(0x8001) }
    }

    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        match self {
            Self::Xxh3 => Xxh3.hash(seed, bytes),
            Self::Sum => Uniform::new(bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            Self::Identity => Uniform::new(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))),
        }
    }
}

const PROBES: u32 = 100_000;

impl Experiment for Hashers {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "Packed tables with fingerprints of 13 bits are filled with 0, 1, 2, … until one is refused.";
        About::new("hashers", "Weak hash functions", text)
    }

    fn cases(&self, _: &Scope) -> Vec<Case> {
        let hashes = [Hash::Xxh3, Hash::Sum, Hash::Identity].into_iter();
        hashes.flat_map(|hash| [1 << 10, 1 << 12, 1 << 14].map(|buckets| Case { hash, buckets })).collect()
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let builder = CuckooFilter::builder().bucket_size(4).fingerprint_bits(13).hasher(case.hash).seed(seed);
        let mut filter = builder.buckets(case.buckets.into()).build()?;
        let slots = 4 * case.buckets;
        let refused = (0..slots).find(|number| filter.insert(number).is_err()).unwrap_or(slots);
        interrupt.check()?;
        let found: u32 = (1..=PROBES).map(|probe| u32::from(filter.contains(&(refused + probe)))).sum();
        let rate = f64::from(found) / f64::from(PROBES);
        Ok(vec![Row { load: filter.load_factor(), rate, expected_rate: filter.false_positive_rate() }])
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        let names = [("XXH3", Hash::Xxh3), ("sum of bytes", Hash::Sum), ("identity", Hash::Identity)];
        let series = names.into_iter().enumerate().map(|(color, (name, hash))| {
            let of_hash = measured.iter().filter(|measured| measured.case.hash == hash);
            let points = of_hash.filter_map(|measured| Some((f64::from(measured.case.buckets), measured.row()?.load)));
            Series::new(name, color, points.collect())
        });
        let axes = [Axis::log("buckets"), Axis::linear("load").from_to(0.0, 1.0)];
        let chart = Chart::new("load", "Load at the first refusal, by hash function", axes, series);
        let caption = "A hash function that sends many keys to the same buckets makes a table refuse items early.";
        Findings { charts: vec![chart.captioned(caption)], ..Findings::default() }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let settings = Settings::new("hashers");
    let plan = Plan::new(Hashers, &settings)?;
    let outcome = koel_lab::run("hashers", vec![plan], &settings)?;
    println!("{}", settings.folder.join(report::FILE).display());
    Ok(outcome.into())
}
