//! Tests of lookups in many tables.

use alloc::{format, vec::Vec};

use super::{Random, oracle};
use crate::{
    filter::RawFilter,
    kernel::{BATCH, Dispatch, Kernel, MIN_FOR_VECTORS, Tables},
    params::{Addressing, Params, TableKind},
    table::{AnySize, Geometry, Uniform},
};

/// Several tables, each of which has some of the hashes.
struct Many {
    address: AnySize,
    tables: Vec<RawFilter>,
    geometry: Geometry,
}

const TABLES: usize = 3;

/// The kind of table, the length of its fingerprints, and the slots of a bucket.
type Kind = (TableKind, u32, u32);

impl Many {
    /// Fills tables with fingerprints. Half of them come from the hashes, half differ from these in one bit.
    fn new((table, f, b): Kind, buckets: u64, hashes: &[u64], random: &mut Random) -> Self {
        let params = Params::new(table, f, b, buckets, Addressing::AnySize, 0).unwrap();
        let tables = (0..TABLES).map(|_| RawFilter::new(params).unwrap()).collect();
        let mut many = Self { address: AnySize { buckets, fingerprint_bits: f }, tables, geometry: Geometry::new(&params) };
        for &hash in hashes {
            let at = many.place(many.stream(Uniform(hash)));
            random.put(&mut many.tables[at], hash);
        }
        many
    }

    fn place(&self, stream: u64) -> usize {
        usize::try_from(stream % self.tables.len() as u64).unwrap()
    }

    fn oracle(&self, hash: u64) -> bool {
        oracle(&self.tables[self.place(self.stream(Uniform(hash)))], hash)
    }
}

impl<'a> Tables<'a> for &'a Many {
    fn address(self) -> AnySize {
        self.address
    }

    fn stream(self, Uniform(hash): Uniform) -> u64 {
        hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    fn geometry(self) -> &'a Geometry {
        &self.geometry
    }

    fn each_table(self, _: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8) {
        for (written, &stream) in places.iter_mut().zip(streams) {
            *written = place(&self.tables[self.place(stream)].storage);
        }
    }
}

fn agree_on_many(kind: Kind, buckets: u64, step: usize) {
    let (table, f, b) = kind;
    let mut random = Random(u64::from(f * 100) + buckets);
    let slots = b as usize * buckets as usize * TABLES;
    let hashes: Vec<u64> = (0..slots.max(3 * BATCH)).map(|_| random.next()).collect();
    let many = Many::new(kind, buckets, &hashes, &mut random);
    let expected: Vec<bool> = hashes.iter().map(|&hash| many.oracle(hash)).collect();
    assert!(expected.contains(&true) && (f < 5 || expected.contains(&false)), "{table}, f = {f}, b = {b}");
    for kernel in Kernel::available() {
        let dispatch = Dispatch::of(kernel).unwrap();
        for len in (0..hashes.len().min(4 * BATCH)).step_by(step) {
            for prefetches in [false, true] {
                let (mut found, mut looked_up) = (Vec::new(), Vec::new());
                let is_done = dispatch.contains_all_in(&many, prefetches, &&hashes[..len], |hashes, results| {
                    looked_up.extend_from_slice(hashes);
                    found.extend((0..BATCH).map(|i| results >> i & 1 == 1));
                });
                let has_vectors = !matches!(kernel, Kernel::Portable | Kernel::Bmi2);
                let context = format!("{kernel}, {table}, f = {f}, b = {b}, {buckets} buckets, {len} hashes");
                assert_eq!(is_done, has_vectors && len >= MIN_FOR_VECTORS, "{context}");
                if is_done {
                    assert_eq!((&looked_up[..], &found[..len]), (&hashes[..len], &expected[..len]), "{context}");
                    assert!(!found[len..].contains(&true), "{context}: results behind the last");
                } else {
                    assert!(found.is_empty(), "{context}");
                }
            }
        }
    }
}

/// A subset that is small enough for Miri, with buckets that are loaded as one word and as three.
#[test]
fn all_kernels_agree_on_a_few_shards() {
    for kind in [(TableKind::Packed, 5, 4), (TableKind::Packed, 16, 4), (TableKind::Packed, 29, 4), (TableKind::Single, 12, 8)] {
        agree_on_many(kind, 6, 70);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_kernels_agree_on_shards() {
    for f in TableKind::Packed.fingerprint_bits() {
        agree_on_many((TableKind::Packed, f, 4), 2, 13);
        agree_on_many((TableKind::Packed, f, 4), 46, 1);
    }
    for f in TableKind::Single.fingerprint_bits() {
        // With short fingerprints in large buckets, every item would be found.
        for b in if f < 8 { [1, 2, 3] } else { [1, 4, 16] } {
            agree_on_many((TableKind::Single, f, b), 2, 13);
            agree_on_many((TableKind::Single, f, b), 46, 11);
        }
    }
}
