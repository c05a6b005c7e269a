//! Measures how full tables get, and plans what may be promised of them.

use koel::{Addressing, CuckooFilter, TableKind};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

pub(crate) const BUCKET_SIZES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
pub(crate) const FINGERPRINT_BITS: [u32; 7] = [2, 3, 4, 5, 6, 8, 12];
/// Sizes that are measured, as logarithms of the number of buckets.
const MEASURED: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 19];
/// Sizes beyond them, for which a load is planned by extrapolation.
const PLANNED: [u32; 6] = [22, 25, 28, 32, 36, 40];
/// Slots filled for each measured size; it divides into trials.
const SLOTS_PER_CELL: u64 = 12 << 20;
const MOST_TRIALS: u64 = 40_000;
const LEAST_TRIALS: u64 = 6;
const ENOUGH_TRIALS: u64 = 50;
const SEED: u64 = 20_261_120;

/// What was found about tables of one size.
#[derive(Clone, Copy)]
struct Cell {
    log2_buckets: u32,
    safe: f64,
    trials: u64,
    min: f64,
    mean: f64,
    deviation: f64,
}

pub(crate) fn print(bucket_sizes: &[u32], fingerprint_bits: &[u32]) {
    println!("# Safe loads of cuckoo tables: see README.md for the columns, the method and the command. Seed {SEED}.");
    println!("addressing\tb\tf\tlog2_buckets\tsafe_load\ttrials\tmin\tmean\tdeviation");
    let mut groups = Vec::new();
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        for &b in bucket_sizes {
            for &f in fingerprint_bits {
                groups.push((addressing, b, f));
            }
        }
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![String::new(); groups.len()]));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(addressing, b, f)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let rows = group(addressing, b, f);
                    let place = groups.iter().position(|&other| other == (addressing, b, f)).expect("it came from there");
                    done.lock().expect("no thread panics")[place] = rows;
                    eprintln!("{addressing:?} b = {b} f = {f}");
                }
            });
        }
    });
    print!("{}", done.into_inner().expect("no thread panics").concat());
}

/// All sizes of one kind of table, as lines of the file.
fn group(addressing: Addressing, b: u32, f: u32) -> String {
    // One bucket alone is the whole table, and any item may use all of it.
    let one = Cell { log2_buckets: 0, safe: 1.0, trials: 1, min: 1.0, mean: 1.0, deviation: 0.0 };
    let mut cells = if addressing == Addressing::PowerOfTwo { vec![one] } else { Vec::new() };
    let mut spread = 0.0;
    for log2 in MEASURED {
        let mut cell = measure(addressing, b, f, log2);
        // Larger tables spread less; a few trials do not tell how much less.
        spread = if cell.trials < ENOUGH_TRIALS { cell.deviation.max(spread) } else { cell.deviation };
        cell.safe = safe(&cell, spread);
        cells.push(cell);
    }
    for log2 in PLANNED {
        let planned = plan(&cells, b, f, log2);
        cells.push(planned);
    }
    let line = |cell: &Cell| {
        let Cell { log2_buckets, safe, trials, min, mean, deviation } = cell;
        format!("{addressing:?}\t{b}\t{f}\t{log2_buckets}\t{safe:.4}\t{trials}\t{min:.4}\t{mean:.4}\t{deviation:.5}\n")
    };
    cells.iter().map(line).collect()
}

fn measure(addressing: Addressing, b: u32, f: u32, log2_buckets: u32) -> Cell {
    let slots = u64::from(b) << log2_buckets;
    let trials = (SLOTS_PER_CELL / slots).clamp(LEAST_TRIALS, MOST_TRIALS);
    let builder = CuckooFilter::builder().table(TableKind::Single).addressing(addressing).buckets(1 << log2_buckets);
    let mut filter = builder.bucket_size(b).fingerprint_bits(f).build().expect("the parameters are right");
    let mut random = SEED ^ u64::from(b) << 56 ^ u64::from(f) << 48 ^ u64::from(log2_buckets) << 40;
    let mut loads: Vec<f64> = (0..trials)
        .map(|_| {
            filter.clear();
            while filter.insert_hash(split_mix(&mut random)).is_ok() {}
            filter.load_factor()
        })
        .collect();
    loads.sort_by(f64::total_cmp);
    let count = trials as f64;
    let mean = loads.iter().sum::<f64>() / count;
    let deviation = (loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    Cell { log2_buckets, safe: 0.0, trials, min: loads[0], mean, deviation }
}

/// The load that fewer than one table in 10⁴ falls short of.
///
/// Where there were more trials than that, the worst of them. Where there were fewer, also 5.5 standard deviations below
/// the mean: the distribution leans to the low side, and 4 would do for a normal one.
fn safe(cell: &Cell, spread: f64) -> f64 {
    let measured = if cell.trials > 20_000 { cell.min } else { cell.min.min(cell.mean - 5.5 * spread) };
    // There is room for as many items as a bucket has slots, whatever they are.
    let least = 0.5f64.powi(cell.log2_buckets.cast_signed());
    floor(measured.max(least))
}

/// For sizes that are not measured: the loss per doubling of the last measured ones goes on, and no more than 2b items
/// with the same two buckets may be expected.
fn plan(cells: &[Cell], b: u32, f: u32, log2_buckets: u32) -> Cell {
    let measured: Vec<&Cell> = cells.iter().filter(|cell| cell.trials > 0).collect();
    let [.., before, _, last] = measured[..] else { unreachable!("there are more than three") };
    let doublings = f64::from(last.log2_buckets - before.log2_buckets);
    let loss = ((before.mean - last.mean) / doublings).max(0.0);
    let safe = last.safe - loss * f64::from(log2_buckets - last.log2_buckets);
    let previous = cells.last().map_or(1.0, |cell| cell.safe);
    let safe = floor(safe.min(crowding(b, f, log2_buckets)).min(previous).max(0.0001));
    Cell { log2_buckets, safe, trials: 0, min: 0.0, mean: 0.0, deviation: 0.0 }
}

/// The load at which the expected number of bucket pairs with more than 2b items is 10⁻⁵.
///
/// There are m(2ᶠ − 1)/2 pairs; the items of each are Poisson distributed.
fn crowding(b: u32, f: u32, log2_buckets: u32) -> f64 {
    let buckets = 2f64.powi(log2_buckets.cast_signed());
    let pairs = buckets * (2f64.powi(f.cast_signed()) - 1.0) / 2.0;
    let crowded = |load: f64| {
        let items = load * f64::from(b) * buckets / pairs;
        let first: f64 = (1..=2 * b + 1).map(|k| items / f64::from(k)).product::<f64>() * (-items).exp();
        let mut term = first;
        let mut tail = 0.0;
        for k in 2 * b + 2..2 * b + 200 {
            tail += term;
            term *= items / f64::from(k);
        }
        pairs * tail
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if crowded(middle) > 1e-5 { high = middle } else { low = middle }
    }
    low
}

fn floor(load: f64) -> f64 {
    (load * 10_000.0).floor() / 10_000.0
}

/// The generator of Steele, Lea and Flood (2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
