//! Derives safe loads from measured ones: fewer than one table in 10⁴ refuses an item below its safe load.
//!
//! Only long fingerprints count here. With them, a table is full when the walk finds no more room, at a load that hardly varies
//! from table to table. What short fingerprints cost, the library computes (`src/params/fitting.rs`).

use koel::Addressing;

/// Sizes beyond the measured ones for which a load is planned, as logarithms of the number of buckets.
const EXTRAPOLATED: [u32; 6] = [22, 25, 28, 32, 36, 40];
/// With more trials than this, the worst trial itself is the limit.
const MANY_TRIALS: u64 = 30_000;
/// With fewer trials than this, their standard deviation is unreliable.
const FEW_TRIALS: u64 = 50;

/// The length of fingerprints whose loads make the rows.
const LONG: u32 = 12;
/// With two and three slots, the worst trials of small tables differ a lot. There, all fingerprints of this length and more count.
const LONG_IN_SMALL: u32 = 8;

/// A kind of tables of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) addressing: Addressing,
    pub(crate) b: u32,
    pub(crate) f: u32,
}

/// All kinds of tables, with the measurements of each.
pub(crate) type Measured = Vec<(Group, Vec<Cell>)>;

/// The loads of tables of one size at the first refusal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) log2_buckets: u32,
    pub(crate) trials: u64,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Cell {
    /// Rounds to the digits of the file, so that a plan from the file equals the plan from the measurement.
    pub(crate) fn rounded(self) -> Self {
        Self { min: digits(self.min, 4), mean: digits(self.mean, 4), deviation: digits(self.deviation, 5), ..self }
    }
}

fn digits(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().expect("a number")
}

/// Returns the file of measured loads.
pub(crate) fn file(seed: u64, groups: &[(Group, Vec<Cell>)]) -> String {
    let mut lines = vec![
        format!(
            "# Loads of cuckoo tables at the first refusal: README.md has the columns, the method and the command. Seed {seed}."
        ),
        String::from("addressing\tb\tf\tlog2_buckets\ttrials\tmin\tmean\tdeviation"),
    ];
    for (Group { addressing, b, f }, cells) in groups {
        for Cell { log2_buckets, trials, min, mean, deviation } in cells {
            lines.push(format!("{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{trials}\t{min:.4}\t{mean:.4}\t{deviation:.5}"));
        }
    }
    lines.join("\n") + "\n"
}

/// Reads a file that [`file`] wrote: the seed and the measured cells.
pub(crate) fn read(text: &str) -> Option<(u64, Measured)> {
    let mut lines = text.lines();
    let seed = lines.next()?.rsplit(' ').next()?.trim_end_matches('.').parse().ok()?;
    let mut groups = Measured::new();
    for line in lines.skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [addressing, b, f, log2_buckets, trials, min, mean, deviation] = fields[..] else { return None };
        let addressing = if addressing == "AnySize" { Addressing::AnySize } else { Addressing::PowerOfTwo };
        let group = Group { addressing, b: b.parse().ok()?, f: f.parse().ok()? };
        if groups.last().is_none_or(|(last, _)| *last != group) {
            groups.push((group, Vec::new()));
        }
        let [min, mean, deviation] = [min.parse().ok()?, mean.parse().ok()?, deviation.parse().ok()?];
        let (log2_buckets, trials) = (log2_buckets.parse().ok()?, trials.parse().ok()?);
        groups.last_mut()?.1.push(Cell { log2_buckets, trials, min, mean, deviation });
    }
    Some((seed, groups))
}

/// Returns the source of `src/params/safe_loads.rs`: a row for each addressing and bucket size. With buckets of one slot, the walk
/// finds every free slot, so it does not limit the load.
pub(crate) fn source(groups: &[(Group, Vec<Cell>)], addressings: [Addressing; 2], bucket_sizes: &[u32]) -> String {
    // A single bucket is the whole table, and any item may use all of it.
    let mut sizes = vec![0];
    let mut blocks = Vec::new();
    for addressing in addressings {
        let mut rows = Vec::new();
        for &b in bucket_sizes {
            let kinds = groups.iter().filter(|(group, _)| (group.addressing, group.b) == (addressing, b)).collect::<Vec<_>>();
            let (_, cells) = kinds.iter().find(|(group, _)| group.f == LONG).expect("it was measured");
            let mut loads = safe_loads(cells);
            if b < 4 {
                let others = || kinds.iter().filter(|(group, _)| group.f >= LONG_IN_SMALL).flat_map(|(_, cells)| cells);
                for (cell, (_, load)) in cells.iter().zip(&mut loads).filter(|(cell, _)| cell.trials > MANY_TRIALS) {
                    let same_size = others().filter(|other| other.log2_buckets == cell.log2_buckets);
                    *load = second_best(same_size.map(|other| other.min).collect());
                }
            }
            loads.retain(|&(log2_buckets, _)| log2_buckets > 0);
            let loads_of_row = loads.iter().map(|&(_, load)| if b == 1 { 1.0 } else { load });
            let numbers: Vec<String> = loads_of_row.map(|load| format!("{:.0}", load * 1e4)).collect();
            rows.push(format!("        [10000, {}],\n", numbers.join(", ")));
            sizes.truncate(1);
            sizes.extend(loads.iter().map(|&(log2_buckets, _)| log2_buckets));
        }
        blocks.push(format!("    // {addressing:?}\n    [\n{}    ],\n", rows.concat()));
    }
    format!(
        "//! The loads up to which the eviction walk finds room: fewer than one table in 10⁴ refuses an item at a lower load. Generated by\n\
         //! `cargo run --release --example tables -- safe_loads > src/params/safe_loads.rs` from measured loads. `tables/README.md`\n\
         //! explains how, and `tests/tables.rs` checks this file.\n\n\
         /// Numbers of slots in a bucket.\n\
         pub(super) const BUCKET_SIZES: [u8; {}] = {bucket_sizes:?};\n\n\
         /// Sizes of tables, as logarithms of the number of buckets.\n\
         #[rustfmt::skip]\n\
         pub(super) const SIZES: [u8; {}] = {sizes:?};\n\n\
         /// Loads in ten-thousandths, by addressing, bucket size and table size.\n\
         #[rustfmt::skip]\n\
         pub(super) static SAFE_LOADS: [[[u16; SIZES.len()]; BUCKET_SIZES.len()]; {}] = [\n{}];\n",
        bucket_sizes.len(),
        sizes.len(),
        blocks.len(),
        blocks.concat()
    )
}

/// Returns the second highest load of all lengths. At a load where one table in 10⁴ refuses an item, none of 40,000 does so with a
/// probability of e⁻⁴. Two of six lengths are so lucky with a probability of 0.005.
fn second_best(mut loads: Vec<f64>) -> f64 {
    loads.sort_by(f64::total_cmp);
    loads[loads.len().max(2) - 2]
}

/// Returns the safe loads of all sizes, measured and extrapolated.
fn safe_loads(cells: &[Cell]) -> Vec<(u32, f64)> {
    let mut spread = 0.0;
    let mut loads: Vec<(u32, f64)> = Vec::new();
    for cell in cells {
        // Larger tables spread less, but a few trials do not tell how much less.
        spread = if cell.trials < FEW_TRIALS { cell.deviation.max(spread) } else { cell.deviation };
        // The distribution leans to the low side. For a normal one, 4 standard deviations would be enough.
        let walk_limit = if cell.trials > MANY_TRIALS { 1.0 } else { cell.mean - 5.5 * spread };
        loads.push((cell.log2_buckets, cell.min.min(walk_limit)));
    }
    // Beyond the measured sizes, each doubling loses as much as the last measured ones.
    let ([.., before, _, last], [.., (_, safe)]) = (cells, &loads[..]) else { unreachable!("there are more than three sizes") };
    let loss = ((before.mean - last.mean) / f64::from(last.log2_buckets - before.log2_buckets)).max(0.0);
    let load = |log2_buckets: u32| safe - loss * f64::from(log2_buckets - last.log2_buckets);
    let extrapolated = EXTRAPOLATED.map(|log2_buckets| (log2_buckets, load(log2_buckets)));
    loads.extend(extrapolated);
    loads
}
