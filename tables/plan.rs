//! From measured loads to safe ones: those that fewer than one table in 10⁴ falls short of.
//!
//! Two things keep a table from filling up. The walk no longer finds room, at a load that hardly varies from table to
//! table ([`concentrated`]); or, with short fingerprints or small buckets, more than 2b items have the same two buckets,
//! which comes early in some tables and late in others ([`scattered`], [`crowding`]).
//!
//! With one slot in a bucket, only crowding counts: the walk finds every place that there is, and an item is refused when
//! some connected set of buckets would get more items than it has buckets ([`crowded_sets`]).

use koel::{Addressing, tuning::crowded_pairs};

/// Sizes beyond the measured ones for which a load is planned, as logarithms of the number of buckets: always these, and
/// between them those at which the load changes by more than [`STEP`].
const PLANNED: [u32; 6] = [22, 25, 28, 32, 36, 40];
const STEP: f64 = 0.003;
/// With more trials than this, the worst of them speaks for itself.
const MANY_TRIALS: u64 = 30_000;
/// With fewer trials than this, their standard deviation says little.
const FEW_TRIALS: u64 = 50;
/// The chance of a refusal that a plan allows where it can be computed; a share is left for what cannot.
const CHANCE: f64 = 8e-5;
/// And where it is extrapolated from the worst trial, which is itself a matter of luck.
const EXTRAPOLATED_CHANCE: f64 = 3e-5;

/// The tables of one kind, whatever their size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) addressing: Addressing,
    pub(crate) b: u32,
    pub(crate) f: u32,
}

/// All kinds of tables, and what was measured of each.
pub(crate) type Measured = Vec<(Group, Vec<Cell>)>;

/// The loads at first refusal of tables of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) log2_buckets: u32,
    pub(crate) trials: u64,
    pub(crate) min: f64,
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Cell {
    /// To the digits of the file, so that a plan from the file is the plan from the measurement.
    pub(crate) fn rounded(self) -> Self {
        Self { min: digits(self.min, 4), mean: digits(self.mean, 4), deviation: digits(self.deviation, 5), ..self }
    }
}

fn digits(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$}").parse().expect("a number")
}

/// The whole file.
pub(crate) fn file(seed: u64, groups: &[(Group, Vec<Cell>)]) -> String {
    let mut lines = vec![
        format!("# Safe loads of cuckoo tables: README.md has the columns, the method and the command. Seed {seed}."),
        String::from("addressing\tb\tf\tlog2_buckets\tsafe_load\ttrials\tmin\tmean\tdeviation"),
    ];
    for (group, cells) in groups {
        let Group { addressing, b, f } = group;
        let mut safe_loads = Vec::new();
        let mut spread = 0.0;
        for cell in cells {
            // Larger tables spread less; a few trials do not tell how much less.
            spread = if cell.trials < FEW_TRIALS { cell.deviation.max(spread) } else { cell.deviation };
            let safe = safe_load(*group, cell, spread);
            safe_loads.push(safe);
            let Cell { log2_buckets, trials, min, mean, deviation } = cell;
            lines.push(format!(
                "{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{safe:.4}\t{trials}\t{min:.4}\t{mean:.4}\t{deviation:.5}"
            ));
        }
        let last = cells.last().map_or(0, |cell| cell.log2_buckets);
        let beyond = |log2_buckets| beyond(*group, cells, &safe_loads, log2_buckets);
        let steps = |log2_buckets: u32| (beyond(log2_buckets - 1) - beyond(log2_buckets)).abs() > STEP;
        for log2_buckets in last + 1..=PLANNED[PLANNED.len() - 1] {
            if !PLANNED.contains(&log2_buckets) && !steps(log2_buckets) && !steps(log2_buckets + 1) {
                continue;
            }
            let safe = beyond(log2_buckets);
            lines.push(format!("{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{safe:.4}\t0\t-\t-\t-"));
        }
    }
    lines.join("\n") + "\n"
}

/// Reads what [`file`] wrote: the seed and the measured cells.
pub(crate) fn read(text: &str) -> Option<(u64, Measured)> {
    let mut lines = text.lines();
    let seed = lines.next()?.rsplit(' ').next()?.trim_end_matches('.').parse().ok()?;
    let mut groups = Measured::new();
    for line in lines.skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [addressing, b, f, log2_buckets, _, trials, min, mean, deviation] = fields[..] else { return None };
        let addressing = if addressing == "AnySize" { Addressing::AnySize } else { Addressing::PowerOfTwo };
        let group = Group { addressing, b: b.parse().ok()?, f: f.parse().ok()? };
        if groups.last().is_none_or(|(last, _)| *last != group) {
            groups.push((group, Vec::new()));
        }
        let trials = trials.parse().ok()?;
        if trials > 0 {
            let [min, mean, deviation] = [min.parse().ok()?, mean.parse().ok()?, deviation.parse().ok()?];
            groups.last_mut()?.1.push(Cell { log2_buckets: log2_buckets.parse().ok()?, trials, min, mean, deviation });
        }
    }
    Some((seed, groups))
}

fn safe_load(group: Group, cell: &Cell, spread: f64) -> f64 {
    // There is room for as many items as a bucket has slots, whatever they are.
    let least = 0.5f64.powi(cell.log2_buckets.cast_signed());
    let crowding = crowding(group, cell.log2_buckets);
    let extrapolated = concentrated(cell, spread).max(scattered(group, cell));
    let safe = match (group.b, cell.trials > MANY_TRIALS) {
        // In very small tables the formula counts sets that do not exist.
        (1, true) => cell.min,
        (1, false) | (_, true) => cell.min.min(crowding),
        (_, false) => cell.min.min(extrapolated).min(crowding),
    };
    safe.max(least)
}

/// 5.5 standard deviations below the mean: the distribution leans to the low side, and 4 would do for a normal one.
fn concentrated(cell: &Cell, spread: f64) -> f64 {
    cell.mean - 5.5 * spread
}

/// The chance that more than 2b items meet grows with the load to the power of 2b + 1; so does what the worst of this many
/// trials tells about the worst of many more.
fn scattered(group: Group, cell: &Cell) -> f64 {
    cell.min * (EXTRAPOLATED_CHANCE * cell.trials as f64).min(1.0).powf(1.0 / meeting(group))
}

fn meeting(group: Group) -> f64 {
    f64::from(2 * group.b + 1)
}

/// The load at which the expected number of crowded places is [`CHANCE`].
fn crowding(group: Group, log2_buckets: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if crowded(group, log2_buckets, middle) > CHANCE { high = middle } else { low = middle }
    }
    low
}

/// The expected number of places with more items than slots, at this load.
pub(crate) fn crowded(group: Group, log2_buckets: u32, load: f64) -> f64 {
    let buckets = 1 << log2_buckets;
    if group.b == 1 { crowded_sets(group.f, buckets, load) } else { crowded_pairs(group.b, group.f, buckets, load) }
}

/// With one slot in a bucket: the expected number of connected sets of buckets with more items than buckets. No more than
/// that of three cases, for which buckets are vertices, and items edges between them.
///
/// Each vertex has c = 2α edges on average, and a path of k edges begins there with c^k others. A connected set has more edges
/// than vertices when it has two circles. They are pairs of items with the same buckets, of which a vertex has c²/2t, where t is
/// the number of fingerprints; or they are longer.
fn crowded_sets(f: u32, buckets: u64, load: f64) -> f64 {
    let (c, m, t) = (2.0 * load, buckets as f64, f64::from(f).exp2() - 1.0);
    if c >= 1.0 {
        return f64::INFINITY;
    }
    let paths = 1.0 / (1.0 - c);
    // Two pairs of items, which share an item, or are connected by a path.
    let short = m / t.powi(2) * (c.powi(3) / 12.0 + c.powi(4) / 8.0 * paths);
    // A pair of items, and a longer circle, to which a path leads, or which the pair is part of.
    let mixed = (c.powi(3) / 4.0 * paths.powi(2) + c.powi(2) / 4.0 * paths) / t;
    // Two longer circles: the expected number of bicyclic components of a random multigraph (Janson, Knuth, Łuczak and
    // Pittel, "The birth of the giant component", 1993).
    let long = c.powi(2) * (3.0 + 2.0 * c) / 24.0 * paths.powi(3) / m;
    short + mixed + long
}

/// For sizes that are not measured: what the last doublings lost, each further one loses again; or, where items that meet
/// are the limit, as much less as keeps their chance the same in a larger table.
fn beyond(group: Group, cells: &[Cell], safe_loads: &[f64], log2_buckets: u32) -> f64 {
    if group.b == 1 {
        return crowding(group, log2_buckets).max(1e-4);
    }
    let ([.., before, _, last], [.., safe]) = (cells, safe_loads) else { unreachable!("there are more than three sizes") };
    let loss = ((before.mean - last.mean) / f64::from(last.log2_buckets - before.log2_buckets)).max(0.0);
    let doublings = f64::from(log2_buckets - last.log2_buckets);
    let concentrated = safe - loss * doublings;
    let scattered = safe * 2f64.powf(-doublings / meeting(group));
    concentrated.max(scattered).min(crowding(group, log2_buckets)).max(1e-4)
}
