//! The load up to which a table is planned: `tables/max_load.tsv`, which was measured and is compiled in by `build.rs`.

use super::Addressing;
use crate::bits::low_half;

include!(concat!(env!("OUT_DIR"), "/max_load.rs"));

/// A load in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load(u32);

const WHOLE: u64 = 10_000;

impl Load {
    /// The number of items at this load of `slots`, rounded down.
    pub(crate) fn of(self, slots: u64) -> u64 {
        let load = u64::from(self.0);
        // As ⌊slots · load / WHOLE⌋, which may not fit on the way.
        slots / WHOLE * load + slots % WHOLE * load / WHOLE
    }

    /// As a share, 0 to 1.
    #[cfg(feature = "std")]
    pub(crate) fn share(self) -> f64 {
        f64::from(self.0) / WHOLE as f64
    }

    /// The number of slots of which `items` are this load, rounded up.
    pub(crate) fn slots_for(self, items: u64) -> u64 {
        let load = u64::from(self.0);
        // Beyond 64 bits, the largest number: no table has so many slots.
        (items / load).saturating_mul(WHOLE).saturating_add((items % load * WHOLE).div_ceil(load))
    }
}

/// Bits of the length of a fingerprint in a kind, as `build.rs` writes it. The bucket size is above, and then the addressing.
const FINGERPRINT_BITS: u32 = 6;
const BUCKET_SIZE_BITS: u32 = 5;

/// The load up to which a table of `buckets` buckets is planned.
///
/// Between two measured sizes it is the smaller one of their loads. For bucket sizes and fingerprints between the measured ones
/// it is that of the next smaller: larger buckets and longer fingerprints only help.
///
/// It is called where parameters are refused, too, and is inlined nowhere, to keep that code small.
#[inline(never)]
pub(crate) fn safe_load(addressing: Addressing, bucket_size: u32, fingerprint_bits: u32, buckets: u64) -> Load {
    let mut loads = Loads::of(Measured::of(addressing, bucket_size, fingerprint_bits));
    loop {
        let (last, load) = loads.next();
        if buckets <= last {
            return load;
        }
    }
}

/// A kind of table that was measured, as its place in [`KINDS`]. It stands for those with larger buckets and longer fingerprints up to
/// the next measured ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured(usize);

impl Measured {
    /// The kind that stands for these tables.
    pub fn of(addressing: Addressing, bucket_size: u32, fingerprint_bits: u32) -> Self {
        let sizes = (addressing as u32) << BUCKET_SIZE_BITS | bucket_size;
        // Kinds are sorted, and each bucket size begins with the shortest fingerprints of all.
        let end = KINDS.partition_point(|&kind| u32::from(kind >> FINGERPRINT_BITS) <= sizes);
        let is_measured = |&kind: &usize| u32::from(KINDS[kind]) % (1 << FINGERPRINT_BITS) <= fingerprint_bits;
        Self((0..end).rev().find(is_measured).unwrap_or(0))
    }

    /// The fewest buckets, of `b` slots each, of a table that is planned for `capacity` items, and its load. `u64::MAX` buckets, which
    /// no table has, if these are too many items.
    ///
    /// A table with more buckets may be planned for fewer items, because the load changes with the size.
    pub fn fewest_buckets(self, addressing: Addressing, b: u32, capacity: u64) -> (u64, Load) {
        let mut loads = Loads::of(self);
        let mut first = 0;
        loop {
            let (last, load) = loads.next();
            // Not even full tables with fewer buckets hold as much.
            if last.saturating_mul(b.into()) >= capacity {
                let buckets = addressing.at_least(load.slots_for(capacity).div_ceil(b.into()).max(first));
                if buckets <= last {
                    return (buckets, load);
                }
            }
            first = last + 1;
        }
    }
}

/// The loads of a kind, from small tables to large ones.
struct Loads {
    row: Row,
    /// The number of sizes that were read.
    place: usize,
    /// The last size that was read and its load, before they are returned.
    exact: Option<(u64, Load)>,
}

impl Loads {
    fn of(kind: Measured) -> Self {
        Self { row: Row::of(kind.0), place: 0, exact: None }
    }

    /// The largest number of buckets with the next load, and this load. The last one is that of all larger tables.
    fn next(&mut self) -> (u64, Load) {
        if let Some(exact) = self.exact.take() {
            return exact;
        }
        let before = self.row.last;
        let Some(size) = SIZES.get(self.place) else { return (u64::MAX, Load(before)) };
        let load = self.row.next(self.place);
        self.place += 1;
        self.exact = Some((1 << size, Load(load)));
        ((1 << size) - 1, Load(before.min(load)))
    }
}

/// A row of loads, which is read from its beginning: `build.rs` describes the bits.
struct Row {
    /// The position of the next bit.
    at: usize,
    is_curved: bool,
    order: u32,
    /// The load before the last, and the last one.
    before: u32,
    last: u32,
}

impl Row {
    fn of(kind: usize) -> Self {
        Self { at: STARTS[kind].into(), is_curved: false, order: 0, before: 10_000, last: 10_000 }
    }

    /// The next 64 bits, of which 57 are those in the table at least.
    fn window(&self) -> u64 {
        let mut window = [0; 8];
        window.copy_from_slice(&LOADS[self.at / 8..][..8]);
        u64::from_be_bytes(window) << (self.at % 8)
    }

    /// The load at this place, which follows the one before.
    #[inline(never)]
    fn next(&mut self, place: usize) -> u32 {
        if place == 0 || ENDS.contains(&place) {
            let head = self.window();
            (self.is_curved, self.order) = (head >> 63 == 1, low_half(head >> 59 & 15));
            self.at += 5;
        }
        let window = self.window();
        let zeros = window.leading_zeros();
        let digits = zeros + 1 + self.order;
        self.at += (zeros + digits) as usize;
        let number = low_half(window << zeros >> (64 - digits)) - (1 << self.order);
        let (before, last) = (self.before, self.last);
        let predicted = if self.is_curved { (last * last + before / 2) / before } else { last };
        let half = number / 2;
        (self.before, self.last) = (last, if number.is_multiple_of(2) { predicted + half } else { predicted - half - 1 });
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    struct Row {
        kind: (Addressing, u32, u32),
        log2_buckets: u32,
        load: Load,
    }

    /// The file read independently of `build.rs`.
    fn rows() -> Vec<Row> {
        let lines = include_str!("../../tables/max_load.tsv").lines().skip(2);
        let row = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |at: usize| fields[at].parse().expect("a number");
            let addressing = if fields[0] == "AnySize" { Addressing::AnySize } else { Addressing::PowerOfTwo };
            let load = fields[4].replace("0.", "").replace("1.", "1").parse().expect("a load");
            Row { kind: (addressing, number(1), number(2)), log2_buckets: number(3), load: Load(load) }
        };
        lines.map(row).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_measured_size_has_its_own_load_and_others_the_smaller_of_their_neighbours() {
        let rows = rows();
        let kinds = 1 + rows.windows(2).filter(|pair| pair[0].kind != pair[1].kind).count();
        assert_eq!((KINDS.len(), STARTS.len()), (kinds, kinds));
        for pair in rows.windows(2).filter(|pair| pair[0].kind == pair[1].kind) {
            let [below, above] = pair else { unreachable!() };
            let (addressing, b, f) = below.kind;
            let load = |buckets| safe_load(addressing, b, f, buckets);
            assert_eq!(load(1 << below.log2_buckets), below.load);
            assert_eq!(load(1 << above.log2_buckets), above.load);
            if below.log2_buckets > 0 {
                let between = load((1 << below.log2_buckets) + 1);
                assert_eq!(between, below.load.min(above.load));
                assert_eq!(load((1 << above.log2_buckets) - 1), between);
                for log2_buckets in below.log2_buckets + 1..above.log2_buckets {
                    assert_eq!(load(1 << log2_buckets), between);
                }
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_taken_for_the_next_smaller() {
        for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
            assert_eq!(safe_load(addressing, 5, 8, 1 << 10), safe_load(addressing, 4, 8, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 11, 1 << 10), safe_load(addressing, 4, 8, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 32, 1 << 10), safe_load(addressing, 4, 12, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 12, 1 << 40), safe_load(addressing, 4, 12, 1 << 60));
        }
    }

    #[test]
    fn loads_and_slots_are_rounded_to_the_safe_side() {
        let load = Load(9_700);
        assert_eq!(load.of(8), 7);
        assert_eq!(load.slots_for(8), 9);
        assert_eq!(load.slots_for(u64::MAX), u64::MAX);
        assert_eq!(load.of(100 << 50), 97 << 50);
    }
}
