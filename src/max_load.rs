//! How full a table may be planned: `tables/max_load.tsv`, measured, compiled in by `build.rs`.

use crate::kind::Addressing;

include!(concat!(env!("OUT_DIR"), "/max_load.rs"));

/// A row of the file, which is sorted by these fields in this order.
struct Row {
    addressing: Addressing,
    bucket_size: u8,
    fingerprint_bits: u8,
    log2_buckets: u8,
    load: u16,
}

/// A load in ten-thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load(u16);

const WHOLE: u128 = 10_000;

impl Load {
    /// Items that make this load of `slots`.
    pub(crate) fn of(self, slots: u64) -> u64 {
        narrow(u128::from(slots) * u128::from(self.0) / WHOLE)
    }

    /// Slots of which `items` are this load.
    pub(crate) fn slots_for(self, items: u64) -> u64 {
        narrow((u128::from(items) * WHOLE).div_ceil(u128::from(self.0)))
    }
}

/// More than 64 bits hold is as good as that: no table has so many.
fn narrow(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

impl Row {
    /// The first `fields` columns as one number, in the order of the file.
    fn place(&self, fields: usize) -> u32 {
        place([self.addressing as u8, self.bucket_size, self.fingerprint_bits, self.log2_buckets], fields)
    }
}

fn place(row: [u8; 4], fields: usize) -> u32 {
    u32::from_be_bytes(row) >> (8 * (4 - fields))
}

/// The last row whose first `fields` columns do not come after those of `wanted`.
fn last_row(wanted: [u8; 4], fields: usize) -> usize {
    ROWS.partition_point(|row| row.place(fields) <= place(wanted, fields)).saturating_sub(1)
}

/// The load up to which a table of `buckets` buckets is planned.
///
/// Between two measured sizes, the smaller load of the two; for bucket sizes and fingerprints between the measured ones,
/// that of the next smaller: larger buckets and longer fingerprints only help.
#[expect(clippy::cast_possible_truncation, reason = "f and b are at most 32, a logarithm at most 63")]
pub(crate) fn safe_load(addressing: Addressing, bucket_size: u32, fingerprint_bits: u32, buckets: u64) -> Load {
    let mut wanted = [addressing as u8, bucket_size as u8, fingerprint_bits as u8, buckets.ilog2() as u8];
    wanted[1] = ROWS[last_row(wanted, 2)].bucket_size;
    wanted[2] = ROWS[last_row(wanted, 3)].fingerprint_bits;
    let below = last_row(wanted, 4);
    let measured = buckets == 1 << ROWS[below].log2_buckets;
    let above = ROWS.get(below + 1).filter(|row| !measured && row.place(3) == place(wanted, 3));
    Load(above.map_or(u16::MAX, |row| row.load).min(ROWS[below].load))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_in_order() {
        assert!(ROWS.is_sorted_by(|a, b| a.place(4) < b.place(4)));
        assert!(ROWS.iter().all(|row| row.load > 0 && u128::from(row.load) <= WHOLE));
    }

    #[test]
    fn a_measured_size_has_its_own_load_and_others_the_smaller_of_their_neighbours() {
        for pair in ROWS.windows(2).filter(|pair| pair[0].place(3) == pair[1].place(3)) {
            let [below, above] = pair else { unreachable!() };
            let load = |buckets| safe_load(below.addressing, below.bucket_size.into(), below.fingerprint_bits.into(), buckets);
            assert_eq!(load(1 << below.log2_buckets), Load(below.load));
            assert_eq!(load(1 << above.log2_buckets), Load(above.load));
            if below.log2_buckets > 0 {
                let between = load((1 << below.log2_buckets) + 1);
                assert_eq!(between, Load(below.load.min(above.load)));
                assert_eq!(load((1 << above.log2_buckets) - 1), between);
            }
        }
    }

    #[test]
    fn what_was_not_measured_is_taken_for_the_next_smaller() {
        for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
            assert_eq!(safe_load(addressing, 5, 8, 1 << 10), safe_load(addressing, 4, 8, 1 << 10));
            assert_eq!(safe_load(addressing, 4, 7, 1 << 10), safe_load(addressing, 4, 6, 1 << 10));
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
