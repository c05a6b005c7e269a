//! Lookups of batches in vectors, in one table or in many. Each number of a [`Vector`] belongs to one item, and the algorithm is
//! the same for every type of vector.
//!
//! The buckets of one batch are loaded from memory while the batch before it is compared ([`VectorLookup::contains_all`]).

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{marker::PhantomData, ptr};

use super::{bmi2::prefetch, vector::Vector};
use crate::{
    bits::{PADDING, beyond, index},
    kernel::{BATCH, Hashes, PREFETCH_FROM, Tables},
    params::Params,
    table::{
        Address, AnySize, Geometry, MULTIPLIER, PackedGeometry, SingleGeometry, Uniform,
        codebook::{self, CODEWORD_BITS, LAST_DECODED},
    },
};

/// Collects the results for a batch. `found` returns the results for the vector that begins at its argument.
#[inline(always)]
fn collect_results<V: Vector>(len: usize, found: impl Fn(usize) -> u32) -> u64 {
    let mut results = 0;
    for at in (0..len).step_by(V::COUNT) {
        results |= u64::from(found(at) & ((1 << V::COUNT) - 1)) << at;
    }
    results
}

/// The source of tables: one table for all items, or one of many for each item.
pub(super) trait TableSource {
    /// For a batch, the address where each item's table begins. Empty if there is only one table.
    type Starts;

    /// The value before any table is found.
    const NO_STARTS: Self::Starts;

    /// Finds the tables of the first `len` hashes.
    fn find(&self, hashes: &[u64; BATCH], len: usize, starts: &mut Self::Starts);
    /// Returns the address of a byte in the table of the item with this index.
    fn byte(&self, starts: &Self::Starts, item: usize, byte: u64) -> *const u8;
    /// For each item of the vector that begins at index `at`, loads eight bytes of its table, from the byte in `bytes` on.
    ///
    /// # Safety
    /// The items' tables must have been found, and the eight bytes must be inside them or their padding.
    unsafe fn gather<V: Vector>(&self, proof: V::Proof, starts: &Self::Starts, at: usize, bytes: V) -> V;
}

/// One table with its padding.
pub(super) struct OneTable<'a>(&'a [u8]);

impl TableSource for OneTable<'_> {
    type Starts = ();

    const NO_STARTS: () = ();

    #[inline(always)]
    fn find(&self, _: &[u64; BATCH], _: usize, (): &mut ()) {}

    #[inline(always)]
    fn byte(&self, (): &(), _: usize, byte: u64) -> *const u8 {
        self.0.as_ptr().wrapping_add(index(byte))
    }

    #[inline(always)]
    unsafe fn gather<V: Vector>(&self, _: V::Proof, (): &(), _: usize, bytes: V) -> V {
        // SAFETY: the caller guarantees that the bytes are inside the slice.
        unsafe { bytes.gather(self.0.as_ptr()) }
    }
}

/// Many tables of one layout. Words are gathered from addresses.
pub(super) struct ManyTables<'a, T> {
    tables: T,
    /// The length of each table with its padding.
    table_bytes: usize,
    /// The addresses in `Starts` belong to tables that live this long.
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a, T: Tables<'a>> TableSource for ManyTables<'a, T> {
    type Starts = [*const u8; BATCH];

    const NO_STARTS: Self::Starts = [ptr::null(); BATCH];

    #[inline(always)]
    fn find(&self, hashes: &[u64; BATCH], len: usize, starts: &mut Self::Starts) {
        // One loop for each kind of work that the processor does best alone: arithmetic, which the compiler turns into vectors,
        // and loads that depend on each other.
        let mut streams = [0; BATCH];
        for (stream, &hash) in streams.iter_mut().zip(hashes) {
            *stream = self.tables.stream(Uniform(hash));
        }
        let needed = self.table_bytes;
        self.tables.each_table(&hashes[..len], &streams[..len], &mut starts[..len], |table| {
            if table.len() < needed {
                beyond();
            }
            let start = table.as_ptr();
            _ = start.expose_provenance();
            start
        });
    }

    #[inline(always)]
    fn byte(&self, starts: &Self::Starts, item: usize, byte: u64) -> *const u8 {
        starts[item].wrapping_add(index(byte))
    }

    /// Uses [`Vector::gather_from`]. Under Miri, which checks pointers, loads each word from a pointer instead of an address.
    #[inline(always)]
    unsafe fn gather<V: Vector>(&self, proof: V::Proof, starts: &Self::Starts, at: usize, bytes: V) -> V {
        let starts = &starts[at..];
        if cfg!(miri) {
            let mut words = [0; BATCH];
            bytes.store(&mut words);
            for (word, start) in words.iter_mut().zip(&starts[..V::COUNT]) {
                // SAFETY: the caller guarantees that the bytes are inside the table, whose length `find` has checked.
                *word = unsafe { start.add(index(*word)).cast::<u64>().read_unaligned() };
            }
            return V::load(proof, &words);
        }
        // SAFETY: as above, and `find` has exposed the provenance of each start.
        unsafe { bytes.gather_from(starts) }
    }
}

/// The targets of a batch: for each item, its table, the first bit of each of its two buckets, and its fingerprint.
struct Targets<S> {
    starts: S,
    bits: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

impl<S> Targets<S> {
    #[inline(always)]
    fn new(starts: S) -> Self {
        Self { starts, bits: [[0; BATCH]; 2], fingerprints: [0; BATCH] }
    }
}

/// Lookups in vectors.
pub(super) struct VectorLookup<V: Vector, S> {
    proof: V::Proof,
    source: S,
    geometry: Geometry,
    bucket_bits: u64,
    locator: Locator,
    prefetches: bool,
}

/// The addressing of hashes: a whole vector at once, or each hash individually.
#[derive(Clone, Copy)]
enum Locator {
    Vector(VectorAddress),
    Scalar(Address),
}

impl<'a, V: Vector> VectorLookup<V, OneTable<'a>> {
    /// # Panics
    /// If `bytes` is shorter than the table and its padding. Gathers rely on this check.
    pub fn in_one(proof: V::Proof, params: &Params, bytes: &'a [u8]) -> Self {
        assert!(params.table_bytes() + PADDING <= bytes.len(), "the table is shorter than its parameters say");
        // SAFETY: the length was just checked.
        unsafe { Self::unchecked(proof, params, bytes) }
    }

    /// # Safety
    /// For lookups, `bytes` must be as long as the table and its padding.
    unsafe fn unchecked(proof: V::Proof, params: &Params, bytes: &'a [u8]) -> Self {
        let (geometry, address) = (Geometry::new(params), Address::new(params));
        let locator = match address.any_size().and_then(VectorAddress::new) {
            Some(address) => Locator::Vector(address),
            None => Locator::Scalar(address),
        };
        let (bucket_bits, prefetches) = (geometry.bucket_bits(), bytes.len() >= PREFETCH_FROM);
        Self { proof, source: OneTable(bytes), geometry, bucket_bits, locator, prefetches }
    }
}

impl<'a, V: Vector, T: Tables<'a>> VectorLookup<V, ManyTables<'a, T>> {
    /// Returns `None` if the tables have too many buckets for vectors.
    pub fn in_many(proof: V::Proof, tables: T, prefetches: bool) -> Option<Self> {
        let (geometry, address) = (*tables.geometry(), tables.address());
        let locator = Locator::Vector(VectorAddress::new(address)?);
        let bucket_bits = geometry.bucket_bits();
        let bits = address.buckets.checked_mul(bucket_bits)?;
        let table_bytes = usize::try_from(bits.div_ceil(8)).ok()?.checked_add(PADDING)?;
        let source = ManyTables { tables, table_bytes, lifetime: PhantomData };
        Some(Self { proof, source, geometry, bucket_bits, locator, prefetches })
    }
}

impl<V: Vector, S: TableSource> VectorLookup<V, S> {
    #[inline(always)]
    fn splat(&self, value: u64) -> V {
        V::splat(self.proof, value)
    }

    /// Reads the words that begin at these bits of the tables, for the items from index `at` on.
    ///
    /// # Safety
    /// The items must have been located, and all bits must be inside their buckets.
    #[inline(always)]
    unsafe fn words(&self, targets: &Targets<S::Starts>, at: usize, bits: V) -> V {
        // SAFETY: located items have tables that are as long as all their buckets, with padding that is as long as a word.
        let words = unsafe { self.source.gather(self.proof, &targets.starts, at, bits.shift_right::<3>()) };
        words.shift_right_by(bits.and(self.splat(7)))
    }

    /// Returns the first bits of the two buckets, and the fingerprints, of the items from index `at` on.
    #[inline(always)]
    fn items(&self, targets: &Targets<S::Starts>, at: usize) -> ([V; 2], V) {
        let load = |values: &[u64; BATCH]| V::load(self.proof, &values[at..]);
        ([load(&targets.bits[0]), load(&targets.bits[1])], load(&targets.fingerprints))
    }

    /// Looks up a vector of items in single tables. Bit i of the result is set if a bucket of item `at` + i holds its
    /// fingerprint.
    ///
    /// # Safety
    /// The items, up to the end of the vector, must have been located. `geometry` must be that of `self`.
    #[inline(always)]
    unsafe fn find_in_single(&self, geometry: &SingleGeometry, targets: &Targets<S::Starts>, at: usize) -> u32 {
        let (buckets, fingerprints) = self.items(targets, at);
        let mut found = 0;
        for (offset, slots) in geometry.windows() {
            let (tops, low) = (self.splat(slots.tops), self.splat(slots.low_bits()));
            let wanted = fingerprints.product_low(self.splat(slots.ones));
            for bits in buckets {
                // SAFETY: the caller guarantees that the items were located, and every window begins inside its bucket.
                let words = unsafe { self.words(targets, at, bits.add(self.splat(offset))) };
                // Leaves the highest bit of each zero slot, as in `Fields::zero`.
                let difference = words.xor(wanted);
                let zero = difference.and(low).add(low).or(difference).xor(tops);
                found |= !zero.none(tops);
            }
        }
        found
    }

    /// Looks up a vector of items in packed tables. Bit i of the result is set if a bucket of item `at` + i holds its
    /// fingerprint.
    ///
    /// # Safety
    /// The items, up to the end of the vector, must have been located. `geometry` must be that of `self`.
    #[inline(always)]
    unsafe fn find_in_packed(&self, geometry: &PackedGeometry, is_narrow: bool, targets: &Targets<S::Starts>, at: usize) -> u32 {
        let (buckets, fingerprints) = self.items(targets, at);
        // SAFETY: the caller guarantees that the items were located, and pairs of high parts begin inside their buckets.
        let words_behind = |bits: V, behind: u32| unsafe { self.words(targets, at, bits.add(self.splat(behind.into()))) };
        // Gathers all words before comparing any. A gather needs a mask register, and the instruction that sets it has a false
        // dependency on the result of the last comparison.
        // SAFETY: the caller guarantees that the items were located, and each word begins where a bucket does.
        let words = unsafe { [self.words(targets, at, buckets[0]), self.words(targets, at, buckets[1])] };
        // The words with the high parts: one for each pair of a wide bucket, and the same one for both pairs of a narrow bucket.
        let highs = if is_narrow {
            [[words[0].shift_right::<CODEWORD_BITS>(); 2], [words[1].shift_right::<CODEWORD_BITS>(); 2]]
        } else {
            let pairs = |bits| [words_behind(bits, CODEWORD_BITS), words_behind(bits, CODEWORD_BITS + 2 * geometry.high_bits())];
            [pairs(buckets[0]), pairs(buckets[1])]
        };
        let width = geometry.high_bits();
        let wanted = fingerprints.shift_right::<4>().product_low(self.splat(geometry.highs().ones));
        let masks = [high_mask(width, 0), high_mask(width, 1), high_mask(width, 2), high_mask(width, 3)];
        let mut matches: HighMatches = [[0; 4]; 2];
        for i in 0..2 {
            for (slot, matches) in matches[i].iter_mut().enumerate() {
                // A word has all four high parts of a narrow bucket, or one pair of a wide one.
                let mask = if is_narrow { masks[slot] } else { masks[slot % 2] };
                *matches = highs[i][slot / 2].xor(wanted).none(self.splat(mask));
            }
        }
        compare_nibbles(self.proof, words, &matches, fingerprints)
    }

    /// Looks up all hashes in two stages: `locate` finds the buckets of a batch and prefetches them, and `look_up` compares them.
    /// Calls `answer` with each batch, in order, and the results: bit i is the result for the i-th hash.
    ///
    /// Each stage must be a separate function ([`Vector::run`]), which is called once for a batch: inlined, it would be compiled
    /// for every type of items and results.
    #[inline(always)]
    pub fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(&[u64], u64)) {
        // This batch and the one before, which take turns: copying the targets would take a quarter of the total time.
        let mut targets = [Targets::new(S::NO_STARTS), Targets::new(S::NO_STARTS)];
        let mut batches = [[0; BATCH]; 2];
        let (mut start, mut len_before, mut turn) = (0, 0, 0);
        loop {
            let len = (hashes.len() - start).min(BATCH);
            if len > 0 {
                hashes.fill(start, &mut batches[turn]);
                self.locate(&batches[turn], len, &mut targets[turn]);
            }
            turn ^= 1;
            if len_before > 0 {
                let results = self.look_up(&targets[turn], len_before);
                answer(&batches[turn][..len_before], results & u64::MAX >> (BATCH - len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }

    /// Finds the buckets of the first `len` hashes, and prefetches them. Behind the last hash, up to the end of the vector, are
    /// hashes of earlier batches or zeros. They are located, too.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets<S::Starts>) {
        V::run(self.proof, move || {
            let end = len.next_multiple_of(V::COUNT);
            self.source.find(hashes, end, &mut targets.starts);
            match self.locator {
                Locator::Vector(address) => {
                    for at in (0..end).step_by(V::COUNT) {
                        let (located, fingerprints) = address.buckets(self.proof, V::load(self.proof, &hashes[at..]));
                        for (bits, bucket) in targets.bits.iter_mut().zip(located) {
                            bucket.product(self.splat(self.bucket_bits)).store(&mut bits[at..]);
                        }
                        fingerprints.store(&mut targets.fingerprints[at..]);
                    }
                }
                Locator::Scalar(address) => {
                    for (at, &hash) in hashes.iter().enumerate().take(end) {
                        let ((first, second), fingerprint) = address.buckets(Uniform(hash));
                        targets.bits[0][at] = first * self.bucket_bits;
                        targets.bits[1][at] = second * self.bucket_bits;
                        targets.fingerprints[at] = fingerprint.wide();
                    }
                }
            }
            if self.prefetches {
                for bits in &targets.bits {
                    for (item, &bit) in bits.iter().enumerate().take(len) {
                        prefetch(self.source.byte(&targets.starts, item, bit / 8));
                    }
                }
            }
        });
    }

    /// Returns the results for the first `len` targets.
    fn look_up(&self, targets: &Targets<S::Starts>, len: usize) -> u64 {
        // `locate` was called for `len` items, and has filled the vector behind the last one, too. For any hash, it only returns
        // buckets below the number of buckets. `in_one` has checked that the table is as long as its parameters require; `find`
        // checks each of many tables. So all bytes that are read are inside the buckets or the padding. (There is one function
        // for each kind of table, because the compiler would not inline the vector instructions into one function for all.)
        match self.geometry {
            Geometry::Single(geometry) => V::run(self.proof, move || {
                // SAFETY: as above.
                collect_results::<V>(len, |at| unsafe { self.find_in_single(&geometry, targets, at) })
            }),
            Geometry::Narrow(geometry) => V::run(self.proof, move || {
                // SAFETY: as above.
                collect_results::<V>(len, |at| unsafe { self.find_in_packed(&geometry, true, targets, at) })
            }),
            Geometry::Wide(geometry) => V::run(self.proof, move || {
                // SAFETY: as above.
                collect_results::<V>(len, |at| unsafe { self.find_in_packed(&geometry, false, targets, at) })
            }),
        }
    }
}

// [`AnySize`] in vectors.

/// The addressing of tables with fewer than 2³² buckets, which only needs 32-bit products.
#[derive(Clone, Copy)]
struct VectorAddress {
    buckets: u64,
    /// The number of distinct fingerprints.
    fingerprints: u64,
}

impl VectorAddress {
    /// Returns `None` if there are too many buckets. The number of buckets must be even, as in every table, because only then is
    /// the second bucket below it.
    fn new(address: AnySize) -> Option<Self> {
        let AnySize { buckets, fingerprint_bits } = address;
        let is_valid = buckets.is_multiple_of(2) && (2..1 << 32).contains(&buckets);
        is_valid.then_some(Self { buckets, fingerprints: (1 << fingerprint_bits) - 1 })
    }

    /// Computes [`AnySize::buckets`] for a vector of hashes.
    #[inline(always)]
    fn buckets<V: Vector>(self, proof: V::Proof, hash: V) -> ([V; 2], V) {
        let splat = |value| V::splat(proof, value);
        let (m, one, multiplier) = (splat(self.buckets), splat(1), splat(MULTIPLIER));
        let both = product(hash, m);
        let first = both.shift_right::<32>();
        let fingerprint = both.product(splat(self.fingerprints)).shift_right::<32>().add(one);
        let spread = fingerprint.product_low(multiplier);
        let spread = spread.product_low(spread.shift_right::<32>());
        let sum = product(spread, m).shift_right::<32>().or(one);
        ([first, sum.sub(first).add_if_negative(m)], fingerprint)
    }
}

/// Returns the product of a 64-bit and a 32-bit number, shifted right by 32 bits.
#[inline(always)]
fn product<V: Vector>(a: V, m: V) -> V {
    a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>())
}

// The comparison of packed buckets with fingerprints.

/// The items whose high part is in a slot, for each of the two buckets and their four slots: bit i for item i.
type HighMatches = [[u32; 4]; 2];

/// Returns a mask for the high part of a slot.
#[inline(always)]
fn high_mask(width: u32, slot: u32) -> u64 {
    ((1 << width) - 1) << ((slot * width) & 63)
}

/// Compares the nibbles, given the slots where the high part matches. Bit i of the result is set if a slot holds both the high
/// part and the nibble of item i. The lowest bits of `words` are the codewords of the two buckets.
#[inline(always)]
fn compare_nibbles<V: Vector>(proof: V::Proof, words: [V; 2], matches: &HighMatches, fingerprints: V) -> u32 {
    // With long fingerprints, an absent item rarely has a match.
    if matches.as_flattened().iter().fold(0, |any, matches| any | matches) == 0 {
        return 0;
    }
    let splat = |value| V::splat(proof, value);
    let low = fingerprints.and(splat(15)).product(splat(0x1111));
    let mut found = 0;
    for (word, matches) in words.into_iter().zip(matches) {
        let codeword = word.and(splat((1 << CODEWORD_BITS) - 1)).min(splat(LAST_DECODED.into()));
        // SAFETY: eight bytes can be loaded from any index up to `LAST_DECODED`.
        let nibbles = unsafe { codeword.gather_pairs(codebook::CODEBOOK.as_ptr()) };
        let difference = nibbles.xor(low);
        for (slot, matches) in (0..).zip(matches) {
            found |= matches & difference.none(splat(15 << (4 * slot)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            Avx2, Avx512,
            vector::{U64x4, U64x8},
        },
        *,
    };
    use crate::{
        params::{Addressing, Params, TableKind},
        table::Address,
    };

    /// Compares the addresses of a vector with those of `Address`. Reads no table, so tables may be larger than any memory.
    fn agree<V: Vector>(proof: V::Proof, f: u32, buckets: u64, addressing: Addressing) {
        let params = Params::new(TableKind::Single, f, 4, buckets, addressing, 0).unwrap();
        let address = Address::new(&params);
        // SAFETY: nothing is looked up.
        let vector = unsafe { VectorLookup::<V, OneTable<'_>>::unchecked(proof, &params, &[]) };
        let mut hashes = [0; BATCH];
        for (i, hash) in hashes.iter_mut().enumerate() {
            *hash = (i as u64 * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32);
        }
        hashes[..4].copy_from_slice(&[0, 1, u64::MAX, u64::MAX << 32]);
        let mut targets = Targets::new(());
        vector.locate(&hashes, BATCH, &mut targets);
        for (i, &hash) in hashes.iter().enumerate() {
            let ((first, second), fingerprint) = address.buckets(Uniform(hash));
            let bits = u64::from(params.bucket_bits());
            assert_eq!(targets.bits.map(|bits| bits[i]), [first * bits, second * bits], "{f} {buckets} {addressing} {hash:#x}");
            assert_eq!(targets.fingerprints[i], fingerprint.wide());
        }
    }

    #[test]
    fn vectors_compute_the_same_buckets() {
        // No branch or access depends on the length, so one length shows Miri, which is slow, everything.
        let lengths: &[u32] = if cfg!(miri) { &[13] } else { &[2, 5, 8, 13, 21, 28] };
        for &f in lengths {
            for buckets in [2, 6, 1 << 20, (1 << 31) - 2, 1 << 31, (1 << 32) - 2, 1 << 32, (1 << 32) + 2, 1 << 35] {
                if let Some(proof) = Avx2::detect() {
                    agree::<U64x4>(proof, f, buckets, Addressing::AnySize);
                }
                if let Some(proof) = Avx512::detect() {
                    agree::<U64x8>(proof, f, buckets, Addressing::AnySize);
                }
            }
        }
        if let Some(proof) = Avx2::detect() {
            agree::<U64x4>(proof, 13, 1 << 31, Addressing::PowerOfTwo);
        }
    }

    #[test]
    #[should_panic(expected = "the table is shorter")]
    fn a_table_shorter_than_its_parameters_is_rejected() {
        let Some(proof) = Avx2::detect() else { panic!("the table is shorter: not tested, because this processor has no AVX2") };
        let params = Params::new(TableKind::Packed, 13, 4, 1024, Addressing::AnySize, 0).unwrap();
        let bytes = alloc::vec![0; params.table_bytes() + PADDING - 1];
        let _ = VectorLookup::<U64x4, _>::in_one(proof, &params, &bytes);
    }
}
