//! Look-ups in many tables.

use alloc::{format, vec::Vec};
use core::ops::RangeInclusive;

use super::{Holds, Put, Random};
use crate::{
    filter::RawFilter,
    kernel::{BATCH, Dispatch, FEWEST_FOR_VECTORS, Kernel, Site, Sites},
    params::{Addressing, Params, TableKind},
    storage::Sealed as _,
    table::{AnySize, Fingerprint, Geometry, Uniform},
};

/// Packed tables of all lengths of fingerprints between two, each of which has some of the hashes.
struct Many {
    address: AnySize,
    tables: Vec<RawFilter>,
    geometries: Vec<Geometry>,
}

impl Many {
    /// Half of the fingerprints come from the hashes, half are similar ones.
    fn new(lengths: RangeInclusive<u32>, buckets: u64, hashes: &[u64], random: &mut Random) -> Self {
        let address = AnySize { buckets, fingerprint_bits: *lengths.start() };
        let table = |f| RawFilter::new(Params::new(TableKind::Packed, f, 4, buckets, Addressing::AnySize, 0).unwrap()).unwrap();
        let tables: Vec<RawFilter> = lengths.map(table).collect();
        let geometries = tables.iter().map(|table| Geometry::new(table.params())).collect();
        let mut many = Self { address, tables, geometries };
        for &hash in hashes {
            let (at, (buckets, fingerprint)) = (many.table(many.stream(Uniform(hash))), many.locate(hash));
            let length = many.tables[at].params().fingerprint_bits();
            let flipped = fingerprint.get() ^ 1 << (random.next() % u64::from(length));
            let fingerprint = if random.next().is_multiple_of(2) { Some(fingerprint) } else { Fingerprint::new(flipped) };
            if let Some(fingerprint) = fingerprint {
                let bucket = if random.next().is_multiple_of(2) { buckets.0 } else { buckets.1 };
                many.tables[at].change(Put(bucket, fingerprint));
            }
        }
        many
    }

    fn table(&self, stream: u64) -> usize {
        usize::try_from(stream % self.tables.len() as u64).unwrap()
    }

    /// The buckets and the whole fingerprint of a hash.
    fn locate(&self, hash: u64) -> ((u64, u64), Fingerprint) {
        let Site { upper, .. } = self.site(Uniform(hash), self.stream(Uniform(hash)));
        let (buckets, low) = self.address.buckets(Uniform(hash));
        (buckets, low.with(upper))
    }

    fn oracle(&self, hash: u64) -> bool {
        let ((first, second), fingerprint) = self.locate(hash);
        let table = &self.tables[self.table(self.stream(Uniform(hash)))];
        [first, second].into_iter().any(|bucket| table.read(Holds(bucket, fingerprint)))
    }
}

impl<'a> Sites<'a> for &'a Many {
    fn address(self) -> AnySize {
        self.address
    }

    fn stream(self, Uniform(hash): Uniform) -> u64 {
        hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
    }

    fn site(self, _: Uniform, stream: u64) -> Site<'a> {
        let at = self.table(stream);
        let table = &self.tables[at];
        let (length, low_bits) = (table.params().fingerprint_bits(), self.address.fingerprint_bits);
        let upper = (stream >> 8 & ((1 << (length - low_bits)) - 1)) << low_bits;
        Site { table: table.storage().bytes(), geometry: &self.geometries[at], upper }
    }
}

fn agree_on_many(lengths: RangeInclusive<u32>, buckets: u64, step: usize) {
    let mut random = Random(u64::from(lengths.end() * 100 + lengths.start()) + buckets);
    let slots = 4 * buckets as usize * lengths.clone().count();
    let hashes: Vec<u64> = (0..slots.max(3 * BATCH)).map(|_| random.next()).collect();
    let many = Many::new(lengths.clone(), buckets, &hashes, &mut random);
    let expected: Vec<bool> = hashes.iter().map(|&hash| many.oracle(hash)).collect();
    assert!(expected.contains(&true) && expected.contains(&false));
    for kernel in Kernel::available() {
        let dispatch = Dispatch::of(kernel).unwrap();
        for len in (0..hashes.len().min(4 * BATCH)).step_by(step) {
            for prefetches in [false, true] {
                let (mut found, mut asked) = (Vec::new(), Vec::new());
                let is_done = dispatch.contains_all_at(&many, prefetches, &&hashes[..len], |hashes, answers| {
                    asked.extend_from_slice(hashes);
                    found.extend((0..BATCH).map(|i| answers >> i & 1 == 1));
                });
                let has_vectors = !matches!(kernel, Kernel::Portable | Kernel::Bmi2);
                let what = format!("{kernel}, f = {lengths:?}, {buckets} buckets, {len} hashes");
                assert_eq!(is_done, has_vectors && len >= FEWEST_FOR_VECTORS, "{what}");
                if is_done {
                    assert_eq!((&asked[..], &found[..len]), (&hashes[..len], &expected[..len]), "{what}");
                    assert!(!found[len..].contains(&true), "{what}: answers behind the last");
                } else {
                    assert!(found.is_empty(), "{what}");
                }
            }
        }
    }
}

/// A subset that is small enough for Miri: buckets that are loaded as one, two and three words.
#[test]
fn all_kernels_agree_on_a_few_shards() {
    for lengths in [5..=6, 16..=17, 28..=29] {
        agree_on_many(lengths, 6, 70);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_kernels_agree_on_shards() {
    for f in TableKind::Packed.fingerprint_bits() {
        let longest = *TableKind::Packed.fingerprint_bits().end();
        for lengths in [f..=f, f..=longest.min(f + 1), f..=longest] {
            agree_on_many(lengths.clone(), 2, 13);
            agree_on_many(lengths, 46, 1);
        }
    }
}
