//! Both kinds of tables, at every fingerprint length, compared with an oracle that shares no code with them. The oracle keeps
//! each bucket as a list and writes the documented layout with bitvec.

use alloc::{vec, vec::Vec};
use bitvec::{field::BitField, order::Lsb0, vec::BitVec};
use proptest::{
    prelude::*,
    test_runner::{RngSeed, TestRunner},
};

use super::{
    Corrupt, Deep, DeepGeometry, Fingerprint, Form, Geometry, Narrow, Pair, Portable, Single, Slotwise, Table, TableMut,
    TableParams, Wide, fingerprints, packed::codebook,
};
use crate::{
    bits::{self, PADDING},
    elastic::ShardParams,
    params::{Addressing, Params, TableKind},
    storage::Owned,
    table::{Change, Read},
};

const BUCKETS: u64 = 6;

/// The expected values of all slots. An empty slot is 0. Fingerprints have f bits, some of which are in a column behind the
/// table.
struct Oracle {
    kind: TableKind,
    f: usize,
    column: usize,
    buckets: Vec<Vec<u64>>,
}

impl Oracle {
    fn new(kind: TableKind, f: u32, b: u32, column: u32) -> Self {
        Self { kind, f: f as usize, column: column as usize, buckets: vec![vec![0; b as usize]; BUCKETS as usize] }
    }

    fn taken(&self, bucket: u64) -> usize {
        self.buckets[bucket as usize].iter().filter(|&&value| value != 0).count()
    }

    /// Changes the first `old` in the bucket to `new`. Returns false if there is none.
    fn change(&mut self, bucket: u64, old: u64, new: u64) -> bool {
        let bucket = &mut self.buckets[bucket as usize];
        let Some(slot) = bucket.iter().position(|&value| value == old) else { return false };
        bucket[slot] = new;
        if self.kind == TableKind::Packed {
            let in_table = 1 << (self.f - self.column);
            bucket.sort_by_key(|&value| (value % 16, value % in_table, value));
        }
        true
    }

    /// Encodes the table, literally as in docs/FORMAT.md, "Tables".
    fn bytes(&self) -> Vec<u8> {
        let mut bits = BitVec::<u8, Lsb0>::new();
        let mut push = |value: u64, width: usize| bits.extend((0..width).map(|bit| value >> bit & 1 == 1));
        let in_table = self.f - self.column;
        for bucket in &self.buckets {
            match self.kind {
                TableKind::Single => bucket.iter().for_each(|&value| push(value, in_table)),
                TableKind::Packed => {
                    let nibbles: Vec<u64> = bucket.iter().map(|value| value % 16).collect();
                    push(rank(&nibbles), 12);
                    bucket.iter().for_each(|&value| push(value / 16, in_table - 4));
                }
            }
        }
        bits.resize(bits.len().next_multiple_of(8), false);
        for &value in self.buckets.iter().flatten() {
            bits.extend((in_table..self.f).map(|bit| value >> bit & 1 == 1));
        }
        bits.resize(bits.len().next_multiple_of(8), false);
        bits.chunks(8).map(BitField::load_le).collect()
    }
}

/// Returns the rank among all sorted quadruples, by counting those before it.
fn rank(nibbles: &[u64]) -> u64 {
    let quadruples = (0..0x1_0000_u64).map(|word| [word >> 12, word >> 8 & 15, word >> 4 & 15, word & 15]);
    quadruples.filter(|other| other.is_sorted()).take_while(|other| other != nibbles).count() as u64
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Put,
    Insert,
    Remove,
    Replace,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![2 => Just(Step::Put), 3 => Just(Step::Insert), 2 => Just(Step::Remove), 1 => Just(Step::Replace)]
}

fn params(kind: TableKind, f: u32, b: u32, buckets: u64) -> Params {
    Params::new(kind, f, b, buckets, Addressing::AnySize, 0).unwrap()
}

/// A geometry with the bytes of a table.
struct Bound {
    geometry: Geometry,
    /// `None` for a table without a column, which differs from one with a column of width 0.
    deep: Option<DeepGeometry>,
    bytes: Owned,
    len: usize,
    /// True to read slot by slot.
    is_slotwise: bool,
}

impl Bound {
    fn new(params: &impl TableParams) -> Self {
        Self::of(params, Owned::zeroed(params.table_bytes()).unwrap())
    }

    fn of(params: &impl TableParams, bytes: Owned) -> Self {
        Self { geometry: Geometry::new(params), deep: None, bytes, len: params.table_bytes(), is_slotwise: false }
    }

    fn table(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn slotwise(&self) -> Slotwise<'_> {
        let geometry = self.deep.as_ref().map_or_else(|| (&self.geometry).into(), Into::into);
        Slotwise { geometry, bytes: &self.bytes }
    }

    fn read<R: Read>(&self, read: R) -> R::Output {
        let bytes = &self.bytes;
        if self.is_slotwise {
            return read.run(&self.slotwise());
        }
        match &self.deep {
            None => self.geometry.read_with(bytes, Portable, read),
            Some(deep) if deep.table.is_narrow() => Deep::<Narrow>::read(deep, bytes, Portable, read),
            Some(deep) => Deep::<Wide>::read(deep, bytes, Portable, read),
        }
    }

    fn change<C: Change>(&mut self, change: C) -> C::Output {
        let bytes = &mut self.bytes;
        match (&self.geometry, &self.deep) {
            (Geometry::Single(geometry), _) => Single::change(geometry, bytes, Portable, change),
            (Geometry::Narrow(geometry), None) => Narrow::change(geometry, bytes, Portable, change),
            (Geometry::Wide(geometry), None) => Wide::change(geometry, bytes, Portable, change),
            (Geometry::Narrow(_), Some(deep)) => Deep::<Narrow>::change(deep, bytes, Portable, change),
            (Geometry::Wide(_), Some(deep)) => Deep::<Wide>::change(deep, bytes, Portable, change),
        }
    }

    /// Looks up a fingerprint's part in the table.
    fn has_low(&self, buckets: (u64, u64), low: Fingerprint) -> bool {
        self.geometry.read_with(&self.bytes, Portable, contains(buckets, low))
    }
}

/// Wraps methods of tables as [`Read`] or [`Change`] operations.
macro_rules! operations {
    ($operation:ident: $method:ident($($argument:ident: $type:ty),*) -> $output:ty, $table:ident $(, $mut:tt)?) => {
        #[allow(non_camel_case_types)]
        struct $method($($type),*);

        impl $operation for $method {
            type Output = $output;

            fn run<T: $table>(self, table: & $($mut)? T) -> $output {
                let Self($($argument),*) = self;
                table.$method($($argument),*)
            }
        }
    };
}
operations!(Read: contains(buckets: (u64, u64), fingerprint: Fingerprint) -> bool, Table);
operations!(Read: has_room(bucket: u64) -> bool, Table);
operations!(Read: taken(buckets: core::ops::Range<u64>, low: Option<Fingerprint>) -> Option<u64>, Table);
operations!(Change: insert(buckets: (u64, u64), fingerprint: Fingerprint) -> bool, TableMut, mut);
operations!(Change: remove(buckets: (u64, u64), fingerprint: Fingerprint) -> bool, TableMut, mut);
operations!(Change: replace(bucket: u64, old: Option<Fingerprint>, new: Option<Fingerprint>) -> bool, TableMut, mut);

struct Residents(u64);

impl Read for Residents {
    type Output = Vec<Fingerprint>;

    fn run<T: Table>(self, table: &T) -> Vec<Fingerprint> {
        fingerprints(&table.values(self.0)).collect()
    }
}

/// Asserts that reads of two buckets return what the oracle has; `fingerprint` is the one to look up.
fn agree_on(table: &Bound, oracle: &Oracle, (bucket, other): Pair, fingerprint: Fingerprint) -> Result<(), TestCaseError> {
    let (f, in_table) = (oracle.f as u32, (oracle.f - oracle.column) as u32);
    let b = oracle.buckets[bucket as usize].len();
    let values: Vec<u64> = oracle.buckets[bucket as usize].iter().copied().filter(|&value| value != 0).collect();
    let found: Vec<u64> = table.read(Residents(bucket)).into_iter().map(Fingerprint::wide).collect();
    prop_assert_eq!(&found, &values);
    prop_assert_eq!(table.read(has_room(bucket)), values.len() < b);
    for value in [fingerprint.wide(), fingerprint.wide() ^ 1, fingerprint.wide() ^ 1 << (f - 1)] {
        let Some(fingerprint) = Fingerprint::new(value) else { continue };
        let expected = [bucket, other].map(|bucket| oracle.buckets[bucket as usize].contains(&value));
        let found = table.read(contains((bucket, other), fingerprint));
        prop_assert_eq!(found, expected[0] || expected[1]);
    }
    let low = fingerprint.low(in_table);
    let expected =
        [bucket, other].map(|bucket| oracle.buckets[bucket as usize].iter().any(|&value| value % (1 << in_table) == low.wide()));
    prop_assert_eq!(table.has_low((bucket, other), low), expected[0] || expected[1]);
    let occupied = Some(values.len() as u64);
    prop_assert_eq!(table.read(taken(bucket..bucket + 1, None)), occupied);
    prop_assert_eq!(table.slotwise().corrupt(bucket, None), None);
    for low_bits in [1, f / 2, f - 1] {
        let low = Fingerprint::new((1 << low_bits) - 1);
        let has_low = low.is_none_or(|low| values.iter().all(|value| value & low.wide() != 0));
        prop_assert_eq!(table.read(taken(bucket..bucket + 1, low)), occupied.filter(|_| has_low));
        prop_assert_eq!(table.slotwise().corrupt(bucket, low), (!has_low).then_some(Corrupt::Low));
    }
    Ok(())
}

fn agree(
    kind: TableKind,
    (f, column): (u32, Option<u32>),
    b: u32,
    steps: &[(Step, u64, u64, u64, prop::sample::Index)],
) -> Result<(), TestCaseError> {
    let in_table = f - column.unwrap_or(0);
    let mut oracle = Oracle::new(kind, f, b, f - in_table);
    let mut table = match column {
        None => Bound::new(&params(kind, f, b, BUCKETS)),
        Some(column) => {
            let params = ShardParams { buckets: BUCKETS as u32, low_bits: in_table as u8, upper_bits: column as u8, depth: 0 };
            Bound { deep: Some(DeepGeometry::new(&params)), ..Bound::new(&params) }
        }
    };
    for &(step, bucket, other, value, index) in steps {
        // Few distinct values, so that buckets hold copies and equal nibbles.
        let fingerprint = Fingerprint::new(value % (u64::MAX >> (64 - f)) + 1).unwrap();
        // A slot counts as empty if its part in the table is 0.
        let is_in_table = !fingerprint.wide().is_multiple_of(1 << in_table);
        let fingerprint = if is_in_table { fingerprint } else { fingerprint.with(1) };
        let residents = table.read(Residents(bucket));
        match step {
            Step::Put => {
                let expected = oracle.change(bucket, 0, fingerprint.wide());
                prop_assert_eq!(table.change(replace(bucket, None, Some(fingerprint))), expected);
            }
            Step::Insert => {
                let emptier = if oracle.taken(other) < oracle.taken(bucket) { other } else { bucket };
                let expected = oracle.change(emptier, 0, fingerprint.wide());
                prop_assert_eq!(table.change(insert((bucket, other), fingerprint)), expected);
            }
            Step::Remove => {
                let victim = if residents.is_empty() || value % 3 == 0 { fingerprint } else { *index.get(&residents) };
                let expected = oracle.change(bucket, victim.wide(), 0) || oracle.change(other, victim.wide(), 0);
                prop_assert_eq!(table.change(remove((bucket, other), victim)), expected);
            }
            Step::Replace if residents.is_empty() => {}
            Step::Replace => {
                let old = *index.get(&residents);
                let new = (value % 3 != 0).then_some(fingerprint);
                oracle.change(bucket, old.wide(), new.map_or(0, Fingerprint::wide));
                prop_assert!(table.change(replace(bucket, Some(old), new)));
            }
        }
        for is_slotwise in [true, false] {
            table.is_slotwise = is_slotwise;
            agree_on(&table, &oracle, (bucket, other), fingerprint)?;
        }
    }
    prop_assert_eq!(table.table(), oracle.bytes());
    prop_assert!(table.bytes.ends_with(&[0; PADDING]));
    Ok(())
}

/// Compares a kind of table with the oracle at every length of the part in the table. `columns` are widths of the column, or `None`
/// for no column.
fn check_every_length(kind: TableKind, sizes: &[u32], columns: &[Option<u32>]) {
    for f in kind.fingerprint_bits() {
        for (&b, &column) in sizes.iter().flat_map(|b| columns.iter().map(move |column| (b, column))) {
            let config = ProptestConfig {
                cases: 8,
                rng_seed: RngSeed::Fixed(u64::from(f * 100 + b)),
                failure_persistence: None,
                ..ProptestConfig::default()
            };
            let values = prop_oneof![0_u64..8, any::<u64>()];
            let steps = prop::collection::vec((step(), 0..BUCKETS, 0..BUCKETS, values, any::<prop::sample::Index>()), 1..150);
            TestRunner::new(config)
                .run(&steps, |steps| agree(kind, (f + column.unwrap_or(0), column), b, &steps))
                .unwrap_or_else(|error| panic!("{kind} f = {f} b = {b}, {column:?} bits in the column: {error}"));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "the oracle's crate, bitvec, makes pointers of integers")]
fn a_single_table_equals_the_oracle() {
    check_every_length(TableKind::Single, &(1..=16).collect::<Vec<_>>(), &[None]);
}

#[test]
#[cfg_attr(miri, ignore = "the oracle's crate, bitvec, makes pointers of integers")]
fn a_packed_table_equals_the_oracle() {
    check_every_length(TableKind::Packed, &[4], &[None]);
}

#[test]
#[cfg_attr(miri, ignore = "the oracle's crate, bitvec, makes pointers of integers")]
fn a_table_with_a_column_equals_the_oracle() {
    check_every_length(TableKind::Packed, &[4], &[0, 1, 2, 7, 15, 16, 27, 29, 30, 31, 32].map(Some));
}

/// Tries all 4096 codewords in an untrusted bucket, at every fingerprint length.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn codewords_beyond_the_codebook_are_rejected() {
    for f in TableKind::Packed.fingerprint_bits() {
        let params = params(TableKind::Packed, f, 4, 2);
        for codeword in 0..4096u16 {
            let mut bytes = Owned::zeroed(params.table_bytes()).unwrap();
            bits::set(&mut bytes, u64::from(4 * (f - 1)), 12, codeword.into());
            let mut table = Bound::of(&params, bytes);
            let zeros = (codeword < 3876)
                .then(|| (0..4).filter(|n| (codebook::decode(codeword.into()) >> (4 * n)).trailing_zeros() >= 4).count());
            let reason = zeros.is_none().then_some(Corrupt::Codeword(codeword.into()));
            let occupied = zeros.map(|zeros| 4 - zeros as u64);
            for is_slotwise in [true, false] {
                table.is_slotwise = is_slotwise;
                assert_eq!(table.slotwise().corrupt(1, None), reason, "f = {f}");
                assert_eq!(table.read(taken(0..2, None)), occupied, "f = {f}");
                assert_eq!(table.read(taken(0..1, None)), Some(0));
            }
        }
    }
}

#[test]
fn unsorted_fingerprints_are_rejected() {
    let params = params(TableKind::Packed, 13, 4, 2);
    let mut table = Bound::new(&params);
    for value in [0x15, 0x25] {
        assert!(table.change(replace(0, None, Fingerprint::new(value))));
    }
    let mut storage = Owned::copied(table.table()).unwrap();
    let bytes = &mut storage;
    let high = |slot: u64| 12 + 9 * slot;
    assert_eq!((bits::get(bytes, high(2), 9), bits::get(bytes, high(3), 9)), (1, 2));
    bits::set(bytes, high(2), 9, 2);
    bits::set(bytes, high(3), 9, 1);
    let mut table = Bound::of(&params, storage);
    for is_slotwise in [true, false] {
        table.is_slotwise = is_slotwise;
        assert_eq!(table.slotwise().corrupt(0, None), Some(Corrupt::Order));
        assert_eq!(table.read(taken(0..2, None)), None);
    }
}
