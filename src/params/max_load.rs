//! The load up to which a table is planned. `build.rs` compiles in the measured loads of `tables/max_load.tsv`.

use super::Addressing;
use crate::bits::low_half;

include!(concat!(env!("OUT_DIR"), "/max_load.rs"));

/// A load in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load(u32);

const WHOLE: u64 = 10_000;

impl Load {
    /// Returns the number of items that fill `slots` slots to this load, rounded down.
    pub(crate) fn items_in(self, slots: u64) -> u64 {
        let load = u64::from(self.0);
        // ⌊slots · load / WHOLE⌋, computed so that no product overflows.
        slots / WHOLE * load + slots % WHOLE * load / WHOLE
    }

    /// Returns the load as a fraction, 0 to 1.
    #[cfg(feature = "std")]
    pub(crate) fn fraction(self) -> f64 {
        f64::from(self.0) / WHOLE as f64
    }

    /// Returns the number of slots that `items` items fill to this load, rounded up.
    pub(crate) fn slots_for(self, items: u64) -> u64 {
        let load = u64::from(self.0);
        // Saturates at `u64::MAX`, which is more than any table has.
        (items / load).saturating_mul(WHOLE).saturating_add((items % load * WHOLE).div_ceil(load))
    }
}

/// The width of the fingerprint length in an entry of [`KINDS`], in bits. The bucket size follows above it, then the addressing.
const FINGERPRINT_BITS: u32 = 6;
const BUCKET_SIZE_BITS: u32 = 5;

/// Returns the load up to which a table of `buckets` buckets is planned.
///
/// Between two measured sizes, it is the lower of their loads. For bucket sizes and fingerprint lengths between the measured
/// ones, it is that of the next smaller one, because larger buckets and longer fingerprints only raise the load.
///
/// Not inlined, to keep the code small of functions that refuse parameters.
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

/// A measured kind of table, as an index into [`KINDS`]. It also represents kinds with larger buckets and longer fingerprints, up
/// to the next measured ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured(usize);

impl Measured {
    /// Returns the kind that represents these tables.
    pub fn of(addressing: Addressing, bucket_size: u32, fingerprint_bits: u32) -> Self {
        let sizes = (addressing as u32) << BUCKET_SIZE_BITS | bucket_size;
        // Kinds are sorted. Each bucket size begins with the shortest measured fingerprints.
        let end = KINDS.partition_point(|&kind| u32::from(kind >> FINGERPRINT_BITS) <= sizes);
        let is_measured = |&kind: &usize| u32::from(KINDS[kind]) % (1 << FINGERPRINT_BITS) <= fingerprint_bits;
        Self((0..end).rev().find(is_measured).unwrap_or(0))
    }

    /// Returns the fewest buckets, of `b` slots each, of a table that is planned for `capacity` items, and its load. Returns
    /// `u64::MAX` buckets, which no table has, if there are too many items.
    ///
    /// A table with more buckets may be planned for fewer items, because the load depends on the size.
    pub fn min_buckets(self, addressing: Addressing, b: u32, capacity: u64) -> (u64, Load) {
        let mut loads = Loads::of(self);
        let mut first = 0;
        loop {
            let (last, load) = loads.next();
            // Skips sizes at which not even a full table holds `capacity` items.
            if last.saturating_mul(b.into()) >= capacity {
                let buckets = addressing.round_up(load.slots_for(capacity).div_ceil(b.into()).max(first));
                if buckets <= last {
                    return (buckets, load);
                }
            }
            first = last + 1;
        }
    }
}

/// An iterator over the loads of a kind, from small tables to large ones.
struct Loads {
    row: Row,
    /// The number of sizes read so far.
    place: usize,
    /// The last size read and its load, until they are returned.
    exact: Option<(u64, Load)>,
}

impl Loads {
    fn of(kind: Measured) -> Self {
        Self { row: Row::of(kind.0), place: 0, exact: None }
    }

    /// Returns the largest number of buckets with the next load, and this load. The last load applies to all larger tables.
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

/// A decoder of a row of compressed loads, which reads it from the beginning. `build.rs` describes the bits.
struct Row {
    /// The position of the next bit.
    at: usize,
    is_curved: bool,
    order: u32,
    /// The second last load decoded.
    before: u32,
    /// The last load decoded.
    last: u32,
}

impl Row {
    fn of(kind: usize) -> Self {
        Self { at: STARTS[kind].into(), is_curved: false, order: 0, before: 10_000, last: 10_000 }
    }

    /// Returns a word that begins with the next bits of the row: at least 57 of its bits are valid.
    fn window(&self) -> u64 {
        let mut window = [0; 8];
        window.copy_from_slice(&LOADS[self.at / 8..][..8]);
        u64::from_be_bytes(window) << (self.at % 8)
    }

    /// Decodes the load at `place`, the index of a size. Calls must be in order from 0.
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

    /// Reads the file independently of `build.rs`.
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
    fn sizes_between_measured_ones_have_the_lower_load() {
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
    fn unmeasured_kinds_have_the_load_of_the_next_smaller() {
        for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
            assert_eq!(safe_load(addressing, 5, 8, 1 << 10), safe_load(addressing, 4, 8, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 11, 1 << 10), safe_load(addressing, 4, 8, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 32, 1 << 10), safe_load(addressing, 4, 12, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 12, 1 << 40), safe_load(addressing, 4, 12, 1 << 60));
        }
    }

    #[test]
    fn items_round_down_and_slots_round_up() {
        let load = Load(9_700);
        assert_eq!(load.items_in(8), 7);
        assert_eq!(load.slots_for(8), 9);
        assert_eq!(load.slots_for(u64::MAX), u64::MAX);
        assert_eq!(load.items_in(100 << 50), 97 << 50);
    }
}
