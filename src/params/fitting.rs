//! The number of items that a table is planned for.
//!
//! Two things limit it. From a certain load on, the eviction walk finds no more room. This load depends on the number and the size
//! of buckets, and was measured ([`SAFE_LOADS`]). And short fingerprints distinguish few items; a formula tells how many
//! ([`are_distinct`]).

use super::{
    Addressing,
    formulas::{crowded_sets, excess_items, mean_matches},
    safe_loads::{BUCKET_SIZES, SAFE_LOADS, SIZES},
};

/// Loads are in ten-thousandths.
const WHOLE: u64 = 10_000;

/// The expected number of items without room that a plan allows because of short fingerprints. The rest of 10⁻⁴ is for the walk.
const EXPECTED_EXCESS: f64 = 8e-5;

/// Returns the number of items that a table of `buckets` buckets is planned for: they fit, except with a probability below 10⁻⁴.
///
/// Not inlined, to keep the code small of functions that refuse parameters.
#[inline(never)]
pub(crate) fn fitting_items(addressing: Addressing, b: u32, f: u32, buckets: u64) -> u64 {
    let slots = buckets.saturating_mul(b.into());
    let load = |&(last, _): &(u64, u64)| buckets <= last;
    let load = walk_loads(addressing, b, f).find(load).map_or(WHOLE, |(_, load)| load);
    // ⌊slots · load / WHOLE⌋, computed so that no product overflows.
    let most = slots / WHOLE * load + slots % WHOLE * load / WHOLE;
    let fewest = always_fitting(addressing, b).min(slots);
    if most <= fewest || are_distinct(b, f, buckets, most) {
        return most.max(fewest);
    }
    // Fewer items than `most` fit, and at least `fewest`.
    smallest(fewest, most, |items| !are_distinct(b, f, buckets, items)) - 1
}

/// Returns the fewest buckets of a table that is planned for this many items, or more than any table has if there are too many
/// items.
///
/// A table with more buckets may be planned for fewer items, because the load depends on the size.
pub(super) fn min_buckets(addressing: Addressing, b: u32, f: u32, items: u64) -> u64 {
    let mut first = addressing.min_buckets();
    if items <= always_fitting(addressing, b) {
        return first;
    }
    let full = items.div_ceil(b.into());
    if !are_distinct(b, f, full, items) {
        first = smallest(full, u64::MAX, |buckets| are_distinct(b, f, buckets, items));
    }
    for (last, load) in walk_loads(addressing, b, f) {
        // Saturates at `u64::MAX`, which is more than any table has.
        let slots = (items / load).saturating_mul(WHOLE).saturating_add((items % load * WHOLE).div_ceil(load));
        let buckets = addressing.round_up(slots.div_ceil(b.into()).max(first));
        if buckets <= last {
            return buckets;
        }
        first = first.max(last.saturating_add(1));
    }
    u64::MAX
}

/// Returns the number of items that fit into a table of any size: those that fill a bucket, or two if every item has two.
fn always_fitting(addressing: Addressing, b: u32) -> u64 {
    addressing.min_buckets() * u64::from(b)
}

/// Returns the smallest number above `low` and up to `high` for which `is_enough`, if all larger ones are enough, too.
fn smallest(mut low: u64, mut high: u64, is_enough: impl Fn(u64) -> bool) -> u64 {
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if is_enough(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

/// Returns true if fingerprints are long enough for this many items: except with a small probability, they leave room for every
/// item.
#[inline(never)]
fn are_distinct(b: u32, f: u32, buckets: u64, items: u64) -> bool {
    let (items, buckets) = (items as f64, buckets as f64);
    let excess = if b == 1 { crowded_sets(items, f, buckets) } else { excess_items(items, b, mean_matches(f, 1, 1.0) / buckets) };
    excess <= EXPECTED_EXCESS
}

/// Returns the loads up to which the walk finds room, from small tables to large ones. Each comes with the largest number of
/// buckets that has it. Between two measured sizes, it is the lower of their loads; bucket sizes that were not measured have the
/// load of the next smaller one.
fn walk_loads(addressing: Addressing, b: u32, f: u32) -> impl Iterator<Item = (u64, u64)> {
    let row = BUCKET_SIZES.iter().rposition(|&size| u32::from(size) <= b).unwrap_or(0);
    let loads = &SAFE_LOADS[addressing as usize][row];
    // With addresses as in Go's library, fingerprints of f bits lead from a bucket to at most 2^(2ᶠ − 1) others. So very short
    // ones divide the table into parts, whose item counts vary.
    let eighths = u64::from(if addressing == Addressing::PowerOfTwo { (2 * f - 1).min(8) } else { 8 });
    // In buckets of two slots, shorter fingerprints cost a little: the mean measured load is lower by a quarter of 2^−f. (With
    // three slots, it is lower by a fourteenth of 2^−f, which is not worth a rule.)
    let shift = if b == 2 { f + 2 } else { u64::BITS - 1 };
    // An even place is a size, an odd one the tables between it and the next size.
    (0..2 * SIZES.len()).map(move |place| {
        let size = place / 2;
        let load = u64::from(loads[size]);
        let (last, load) = match SIZES.get(size + 1) {
            _ if place.is_multiple_of(2) => (1_u64 << SIZES[size], load),
            Some(&next) => ((1_u64 << next) - 1, load.min(loads[size + 1].into())),
            // The last load applies to all larger tables.
            None => (u64::MAX, load),
        };
        let load = load * eighths / 8;
        (last, load - (load >> shift))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of items that a load in ten-thousandths leaves in so many slots.
    fn items_at(load: u16, slots: u64) -> u64 {
        u64::from(load) * slots / WHOLE
    }

    #[test]
    fn sizes_between_measured_ones_have_the_lower_load() {
        for addressing in Addressing::ALL {
            for (row, &b) in BUCKET_SIZES.iter().enumerate().skip(1) {
                let loads = SAFE_LOADS[addressing as usize][row];
                for place in 1..SIZES.len() - 1 {
                    let [below, above] = [SIZES[place], SIZES[place + 1]].map(|log2| 1_u64 << log2);
                    let fitting = |buckets| fitting_items(addressing, b.into(), 32, buckets);
                    assert_eq!(fitting(below), items_at(loads[place], below * u64::from(b)));
                    let lower = loads[place].min(loads[place + 1]);
                    for buckets in [below + 1, above - 1, below.midpoint(above)] {
                        if buckets > below && buckets < above {
                            let items = items_at(lower, buckets * u64::from(b)).max(always_fitting(addressing, b.into()));
                            assert_eq!(fitting(buckets), items, "{addressing} {b} {buckets}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn unmeasured_bucket_sizes_have_the_load_of_the_next_smaller() {
        for addressing in Addressing::ALL {
            let items = |b, buckets| fitting_items(addressing, b, 32, buckets);
            assert_eq!(items(5, 1 << 10) / 5, items(4, 1 << 10) / 4);
            assert_eq!(items(15, 1 << 20) / 15, items(12, 1 << 20) / 12);
            // The last load applies to all larger tables.
            assert_eq!(items(4, 1 << 60) >> 20, items(4, 1 << 40));
        }
    }

    #[test]
    fn items_round_down_and_slots_round_up() {
        let loads = SAFE_LOADS[0][3];
        assert_eq!((BUCKET_SIZES[3], SIZES[4], loads[4]), (4, 4, 7344));
        assert_eq!(fitting_items(Addressing::AnySize, 4, 32, 16), 47);
        assert_eq!(min_buckets(Addressing::AnySize, 4, 32, 47), 16);
        // Between 16 and 32 buckets, the load is that of 16.
        assert_eq!(min_buckets(Addressing::AnySize, 4, 32, 48), 18);
        assert!(min_buckets(Addressing::AnySize, 4, 32, u64::MAX) > 1 << 61);
    }

    /// One bucket less, or two with any-size addressing, would be too few.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn min_buckets_are_as_few_as_possible() {
        for addressing in Addressing::ALL {
            for (b, f) in [(1, 2), (1, 9), (1, 20), (2, 3), (2, 8), (3, 6), (4, 4), (4, 5), (4, 13), (7, 3), (16, 2), (16, 32)] {
                for items in (0..40).map(|place| 1_u64 << place).chain([0, 3, 5, 10, 100, 1000, 44_444, 10_000_019]) {
                    let buckets = min_buckets(addressing, b, f, items);
                    if buckets == u64::MAX {
                        continue;
                    }
                    assert!(fitting_items(addressing, b, f, buckets) >= items, "{addressing} {b} {f}: {items}");
                    let fewer = if addressing == Addressing::AnySize { buckets - 2 } else { buckets / 2 };
                    assert!(fewer == 0 || fitting_items(addressing, b, f, fewer) < items, "{addressing} {b} {f}: {items}");
                }
            }
        }
    }

    #[test]
    fn items_that_always_fit_need_no_load() {
        for b in 1..=16 {
            for f in 2..=32 {
                assert_eq!(fitting_items(Addressing::AnySize, b, f, 2), 2 * u64::from(b));
                assert_eq!(fitting_items(Addressing::PowerOfTwo, b, f, 1), u64::from(b));
            }
        }
    }
}
