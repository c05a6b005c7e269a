//! Tests that compare every kernel that this processor supports with an oracle, which reads buckets slot by slot.

use alloc::{format, string::ToString, vec, vec::Vec};

#[cfg(x86_kernels)]
mod shards;

use super::{BATCH, Kernel};
use crate::{
    filter::{Core as _, RawFilter},
    hash::hashers::mix,
    params::{Addressing, Params, TableKind},
    table::{Address, Change, Fingerprint, Read, Table, TableMut, Uniform, fingerprints},
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Puts the fingerprint of a hash, or one that differs from it in one bit, into one of its two buckets.
    fn put(&mut self, filter: &mut RawFilter, hash: u64) {
        let (buckets, fingerprint) = Address::new(filter.params()).buckets(Uniform(hash));
        let flipped = fingerprint.wide() ^ 1 << (self.next() % u64::from(filter.params().fingerprint_bits()));
        let fingerprint = if self.next().is_multiple_of(2) { Some(fingerprint) } else { Fingerprint::new(flipped) };
        if let Some(fingerprint) = fingerprint {
            let bucket = if self.next().is_multiple_of(2) { buckets.0 } else { buckets.1 };
            filter.change(Put(bucket, fingerprint));
        }
    }
}

struct Put(u64, Fingerprint);

impl Change for Put {
    type Output = bool;

    fn run<T: TableMut>(self, table: &mut T) -> bool {
        table.replace(self.0, None, Some(self.1))
    }
}

struct Holds(u64, Fingerprint);

impl Read for Holds {
    type Output = bool;

    fn run<T: Table>(self, table: &T) -> bool {
        fingerprints(&table.values(self.0)).any(|other| other == self.1)
    }
}

/// Returns a table filled to about `load`/4. Half of its fingerprints come from the hashes; half differ from these in one bit,
/// and may be in a wrong bucket.
fn filled(params: &Params, hashes: &[u64], load: u64, random: &mut Random) -> RawFilter {
    let mut filter = RawFilter::new(*params).unwrap();
    let slots = params.buckets() * u64::from(params.bucket_size());
    for &hash in hashes.iter().cycle().take((slots * load / 4) as usize) {
        random.put(&mut filter, hash);
    }
    filter
}

fn oracle(filter: &RawFilter, hash: u64) -> bool {
    let ((first, second), fingerprint) = Address::new(filter.params()).buckets(Uniform(hash));
    [first, second].into_iter().any(|bucket| filter.read(Holds(bucket, fingerprint)))
}

fn agree(params: &Params) {
    for load in 0..=4 {
        // Only some kinds of tables are tested with every batch length: testing all would take too long.
        let all_lengths = load == 3 && params.bucket_size() == 4 && params.fingerprint_bits() % 8 == 5;
        agree_at(params, load, if all_lengths { 1 } else { 61 });
    }
}

/// Compares all kernels at one load, with every `step`-th batch length.
fn agree_at(params: &Params, load: u64, step: usize) {
    let mut random = Random(u64::from(params.fingerprint_bits() * 100 + params.bucket_size()) + load);
    // Miri is slow: one whole batch and a part of one.
    let batches = if cfg!(miri) { 1 } else { 3 };
    let hashes: Vec<u64> = (0..=batches * BATCH + load as usize * 17).map(|_| random.next()).collect();
    let mut filter = filled(params, &hashes, load, &mut random);
    let expected: Vec<bool> = hashes.iter().map(|&hash| oracle(&filter, hash)).collect();
    for kernel in Kernel::available() {
        filter.set_dispatch(kernel.dispatch().unwrap());
        let context = format!("{kernel}, {params:?}, load {load}/4");
        for (&hash, &expected) in hashes.iter().zip(&expected) {
            assert_eq!(filter.contains(Uniform(hash)), expected, "{context}");
        }
        for len in (0..hashes.len()).step_by(step) {
            let mut found = Vec::new();
            filter.contains_all(&&hashes[..len], |results| {
                found.extend((0..BATCH).map(|i| results >> i & 1 == 1));
            });
            assert_eq!(found.len(), len.next_multiple_of(BATCH), "{context}, {len} hashes");
            assert_eq!(found[..len], expected[..len], "{context}, {len} hashes");
            assert!(!found[len..].contains(&true), "{context}: results behind the last of {len} hashes");
        }
    }
}

/// A subset that is small enough for Miri.
#[test]
fn all_kernels_agree_on_a_few_tables() {
    let packed = |f, addressing, buckets| Params::new(TableKind::Packed, f, 4, buckets, addressing, 0).unwrap();
    let single = |f, b, buckets| Params::new(TableKind::Single, f, b, buckets, Addressing::AnySize, 0).unwrap();
    for params in [
        packed(5, Addressing::AnySize, 86),
        packed(13, Addressing::PowerOfTwo, 1),
        packed(29, Addressing::AnySize, 2),
        single(12, 4, 46),
        single(32, 3, 6),
    ] {
        agree_at(&params, 3, 200);
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_kernels_agree_on_packed_tables() {
    for f in TableKind::Packed.fingerprint_bits() {
        for (addressing, buckets) in
            [(Addressing::AnySize, 2), (Addressing::AnySize, 86), (Addressing::PowerOfTwo, 1), (Addressing::PowerOfTwo, 64)]
        {
            agree(&Params::new(TableKind::Packed, f, 4, buckets, addressing, 0).unwrap());
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_kernels_agree_on_single_tables() {
    for f in TableKind::Single.fingerprint_bits() {
        for b in TableKind::Single.bucket_sizes() {
            for (addressing, buckets) in
                [(Addressing::AnySize, 2), (Addressing::AnySize, 46), (Addressing::PowerOfTwo, 1), (Addressing::PowerOfTwo, 32)]
            {
                agree(&Params::new(TableKind::Single, f, b, buckets, addressing, 0).unwrap());
            }
        }
    }
}

/// Compares kernels on tables that are large enough for prefetching.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_kernels_agree_on_large_tables() {
    for (table, f, b) in [(TableKind::Packed, 13, 4), (TableKind::Packed, 25, 4), (TableKind::Single, 12, 4)] {
        for (addressing, buckets) in [(Addressing::AnySize, (1 << 20) - 2), (Addressing::PowerOfTwo, 1 << 20)] {
            let params = Params::new(table, f, b, buckets, addressing, 0).unwrap();
            assert!(params.table_bytes() >= super::PREFETCH_FROM);
            let mut random = Random(7);
            let hashes: Vec<u64> = (0..100_000).map(|_| random.next()).collect();
            let mut filter = filled(&params, &hashes, 1, &mut random);
            let expected: Vec<bool> = hashes.iter().map(|&hash| oracle(&filter, hash)).collect();
            assert!(expected.iter().filter(|&&expected| expected).count() > 30_000);
            for kernel in Kernel::available() {
                let mut found = vec![];
                filter.set_dispatch(kernel.dispatch().unwrap());
                filter.contains_all(&&hashes[..], |results| {
                    found.extend((0..BATCH).map(|i| results >> i & 1 == 1));
                });
                assert_eq!(found[..hashes.len()], expected, "{kernel} {params:?}");
            }
        }
    }
}

#[test]
fn the_best_kernel_is_available_and_does_not_change() {
    assert!(Kernel::best().is_available());
    assert_eq!(Kernel::best(), Kernel::best());
    assert!(Kernel::available().any(|kernel| kernel == Kernel::Portable));
}

#[test]
fn kernel_names_can_be_parsed() {
    for kernel in Kernel::ALL {
        assert_eq!(kernel.to_string().parse::<Kernel>().ok(), kernel.is_available().then_some(kernel));
    }
    let error = "mmx".parse::<Kernel>().unwrap_err().to_string();
    assert!(error.starts_with("kernel: the names here are portable"), "{error}");
}
