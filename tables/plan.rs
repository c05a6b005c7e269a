//! Derives safe loads from measured ones. Fewer than one table in 10⁴ refuses an item below its safe load.
//!
//! Two things keep a table from filling up. The walk finds no more room, at a load that hardly varies from table to table
//! ([`walk_limit`]). Or, with short fingerprints or small buckets, more than 2b items have the same two buckets, at a load that
//! varies a lot from table to table ([`collision_limit`], [`crowding_limit`]).
//!
//! With one slot in a bucket, only crowding counts: the walk finds every possible place, and an item is refused if some connected
//! set of buckets would get more items than it has buckets ([`crowded_sets`]).

use koel::{Addressing, tuning::overfull_pairs};

/// Sizes beyond the measured ones for which a load is always planned, as logarithms of the number of buckets. Between them, a
/// load is planned where it changes by more than [`STEP`].
const PLANNED: [u32; 6] = [22, 25, 28, 32, 36, 40];
const STEP: f64 = 0.003;
/// With more trials than this, the worst trial itself is the limit.
const MANY_TRIALS: u64 = 30_000;
/// With fewer trials than this, their standard deviation is unreliable.
const FEW_TRIALS: u64 = 50;
/// The probability of a refusal that a plan allows if it can be computed. The rest of 10⁻⁴ is for causes that cannot be computed.
const CHANCE: f64 = 8e-5;
/// The probability of a refusal that a plan allows if it is extrapolated from the worst trial, which is a random value itself.
const EXTRAPOLATED_CHANCE: f64 = 3e-5;

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

/// Returns the whole file.
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
            // Larger tables spread less, but a few trials do not tell how much less.
            spread = if cell.trials < FEW_TRIALS { cell.deviation.max(spread) } else { cell.deviation };
            let safe = safe_load(*group, cell, spread);
            safe_loads.push(safe);
            let Cell { log2_buckets, trials, min, mean, deviation } = cell;
            lines.push(format!(
                "{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{safe:.4}\t{trials}\t{min:.4}\t{mean:.4}\t{deviation:.5}"
            ));
        }
        let last = cells.last().map_or(0, |cell| cell.log2_buckets);
        let planned = |log2_buckets| extrapolated_load(*group, cells, &safe_loads, log2_buckets);
        let steps = |log2_buckets: u32| (planned(log2_buckets - 1) - planned(log2_buckets)).abs() > STEP;
        for log2_buckets in last + 1..=PLANNED[PLANNED.len() - 1] {
            if !PLANNED.contains(&log2_buckets) && !steps(log2_buckets) && !steps(log2_buckets + 1) {
                continue;
            }
            let safe = planned(log2_buckets);
            lines.push(format!("{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{safe:.4}\t0\t-\t-\t-"));
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
    // A table always has room for as many items as a bucket has slots.
    let least = 0.5f64.powi(cell.log2_buckets.cast_signed());
    let crowding = crowding_limit(group, cell.log2_buckets);
    let extrapolated = walk_limit(cell, spread).max(collision_limit(group, cell));
    let safe = match (group.b, cell.trials > MANY_TRIALS) {
        // In very small tables, the formula counts sets that do not exist.
        (1, true) => cell.min,
        (1, false) | (_, true) => cell.min.min(crowding),
        (_, false) => cell.min.min(extrapolated).min(crowding),
    };
    safe.max(least)
}

/// Returns the load at which the walk finds no more room: 5.5 standard deviations below the mean. The distribution leans to the
/// low side; for a normal one, 4 would be enough.
fn walk_limit(cell: &Cell, spread: f64) -> f64 {
    cell.mean - 5.5 * spread
}

/// Returns the load at which more than 2b items share two buckets, extrapolated from the worst trial. The probability of this
/// grows with the load to the power of 2b + 1.
fn collision_limit(group: Group, cell: &Cell) -> f64 {
    cell.min * (EXTRAPOLATED_CHANCE * cell.trials as f64).min(1.0).powf(1.0 / colliding_items(group))
}

fn colliding_items(group: Group) -> f64 {
    f64::from(2 * group.b + 1)
}

/// Returns the load at which the expected number of crowded places is [`CHANCE`].
fn crowding_limit(group: Group, log2_buckets: u32) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if expected_crowded_places(group, log2_buckets, middle) > CHANCE { high = middle } else { low = middle }
    }
    low
}

/// Returns the expected number of places with more items than slots, at this load.
pub(crate) fn expected_crowded_places(group: Group, log2_buckets: u32, load: f64) -> f64 {
    let buckets = 1 << log2_buckets;
    if group.b == 1 { crowded_sets(group.f, buckets, load) } else { overfull_pairs(group.b, group.f, buckets, load) }
}

/// Returns the expected number of connected sets with more items than buckets, for buckets of one slot. It is at most the sum of
/// three cases. In these, buckets are vertices, and items are edges between them.
///
/// Each vertex has c = 2α edges on average, and cᵏ paths of k edges begin at it. A connected set has more edges than vertices if
/// it has two cycles. A cycle is either a pair of items with the same buckets, of which a vertex has c²/2t, where t is the number
/// of fingerprints; or it is longer.
fn crowded_sets(f: u32, buckets: u64, load: f64) -> f64 {
    let (c, m, t) = (2.0 * load, buckets as f64, f64::from(f).exp2() - 1.0);
    if c >= 1.0 {
        return f64::INFINITY;
    }
    let paths = 1.0 / (1.0 - c);
    // Two pairs of items that share an item, or are connected by a path.
    let short = m / t.powi(2) * (c.powi(3) / 12.0 + c.powi(4) / 8.0 * paths);
    // A pair of items, and a longer cycle to which a path leads, or of which the pair is a part.
    let mixed = (c.powi(3) / 4.0 * paths.powi(2) + c.powi(2) / 4.0 * paths) / t;
    // Two longer cycles: the expected number of bicyclic components of a random multigraph (Janson, Knuth, Łuczak and Pittel,
    // "The birth of the giant component", 1993).
    let long = c.powi(2) * (3.0 + 2.0 * c) / 24.0 * paths.powi(3) / m;
    short + mixed + long
}

/// Extrapolates the safe load to sizes that are not measured. Each further doubling loses as much as the last measured ones; or,
/// if colliding items are the limit, so much that the probability of a collision stays the same in a larger table.
fn extrapolated_load(group: Group, cells: &[Cell], safe_loads: &[f64], log2_buckets: u32) -> f64 {
    if group.b == 1 {
        return crowding_limit(group, log2_buckets).max(1e-4);
    }
    let ([.., before, _, last], [.., safe]) = (cells, safe_loads) else { unreachable!("there are more than three sizes") };
    let loss = ((before.mean - last.mean) / f64::from(last.log2_buckets - before.log2_buckets)).max(0.0);
    let doublings = f64::from(log2_buckets - last.log2_buckets);
    let walk_limit = safe - loss * doublings;
    let collision_limit = safe * 2f64.powf(-doublings / colliding_items(group));
    walk_limit.max(collision_limit).min(crowding_limit(group, log2_buckets)).max(1e-4)
}
