//! Lookups of batches, one item for each number of a [`Vector`]: in one table, and in many. The algorithm is the same for every vector.
//!
//! The buckets of one batch are loaded from memory while the batch before it is compared ([`pipelined`]).

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{marker::PhantomData, ptr};

use super::{bmi2::prefetch, vector::Vector};
use crate::{
    bits::{PADDING, beyond, index},
    kernel::{BATCH, Hashes, PREFETCH_FROM, Tables},
    params::Params,
    table::{
        Address, AnySize, Geometry, Instructions as _, MULTIPLIER, PackedGeometry, SingleGeometry, Uniform,
        codebook::{self, CODEWORD_BITS, LAST_DECODED},
    },
};

/// Looks up all hashes in two stages. `locate` finds out where the first hashes of a batch are, as many as its second argument
/// says, and prefetches their buckets. `look_up` compares: bit i of its result is the answer for item i, if there are so many.
/// Calls `answer` with each batch, in order, and the answers.
///
/// Each stage must be a function of its own ([`Vector::run`]), which is called once for a batch: inlined, it would be compiled for
/// every type of items and results.
#[inline(always)]
fn pipelined<T>(
    hashes: &impl Hashes,
    mut targets: [T; 2],
    locate: impl Fn(&[u64; BATCH], usize, &mut T),
    look_up: impl Fn(&T, usize) -> u64,
    mut answer: impl FnMut(&[u64], u64),
) {
    // This batch and the one before, alternating: copying the targets would take a quarter of the total time.
    let mut batches = [[0; BATCH]; 2];
    let (mut start, mut len_before, mut turn) = (0, 0, 0);
    loop {
        let len = (hashes.len() - start).min(BATCH);
        if len > 0 {
            hashes.fill(start, &mut batches[turn]);
            locate(&batches[turn], len, &mut targets[turn]);
        }
        turn ^= 1;
        if len_before > 0 {
            let answers = look_up(&targets[turn], len_before);
            answer(&batches[turn][..len_before], answers & u64::MAX >> (BATCH - len_before));
        }
        if len == 0 {
            return;
        }
        (start, len_before) = (start + len, len);
    }
}

/// The answers for a batch, a vector at a time: `found` gives those of the vector that begins at its argument.
#[inline(always)]
fn answers<V: Vector>(len: usize, found: impl Fn(usize) -> u32) -> u64 {
    let mut answers = 0;
    for at in (0..len).step_by(V::COUNT) {
        answers |= u64::from(found(at) & ((1 << V::COUNT) - 1)) << at;
    }
    answers
}

// One table.

/// Where to look up a batch: for each item, the first bit of each of its two buckets, and its fingerprint.
struct Targets {
    bits: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

impl Targets {
    #[inline(always)]
    fn new() -> Self {
        Self { bits: [[0; BATCH]; 2], fingerprints: [0; BATCH] }
    }
}

/// Vectorised lookup in one table.
pub(super) struct OneTable<'a, V: Vector> {
    proof: V::Proof,
    geometry: &'a Geometry,
    bytes: &'a [u8],
    bucket_bits: u64,
    address: Address,
    /// The same, if it can be computed in vectors. Otherwise hashes are located one by one.
    in_vectors: Option<VectorAddress>,
}

impl<'a, V: Vector> OneTable<'a, V> {
    /// # Panics
    /// If `geometry` is not that of `params`, or `bytes` is shorter than the table and its padding. Gathers rely on both checks.
    pub fn new(proof: V::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        assert!(params.table_bytes() + PADDING <= bytes.len(), "the table is shorter than its parameters say");
        assert!(*geometry == Geometry::new(params), "the geometry is not that of the parameters");
        // SAFETY: both are as required.
        unsafe { Self::unchecked(proof, params, geometry, bytes) }
    }

    /// # Safety
    /// Before a lookup, `geometry` must be that of `params`, and `bytes` as long as the table and its padding.
    unsafe fn unchecked(proof: V::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        let address = Address::new(params);
        let in_vectors = address.any_size().and_then(VectorAddress::new);
        Self { proof, geometry, bytes, bucket_bits: params.bucket_bits().into(), address, in_vectors }
    }

    #[inline(always)]
    fn splat(&self, value: u64) -> V {
        V::splat(self.proof, value)
    }

    /// The words that begin at these bits of the table.
    ///
    /// # Safety
    /// All bits must be inside the table.
    #[inline(always)]
    unsafe fn words(&self, bits: V) -> V {
        // SAFETY: the bits are inside the table, so the bytes read are inside the table or the padding, which is as long as a
        // word; `new` has checked that both are there.
        let words = unsafe { bits.shift_right::<3>().gather(self.bytes.as_ptr()) };
        words.shift_right_by(bits.and(self.splat(7)))
    }

    /// Bit i of the result is set if item i is in one of its buckets of a single table. `buckets` are their first bits.
    ///
    /// # Safety
    /// The buckets must be inside the table.
    #[inline(always)]
    unsafe fn in_single(&self, geometry: &SingleGeometry, (buckets, fingerprints): ([V; 2], V)) -> u32 {
        let mut found = 0;
        for (offset, slots) in geometry.windows() {
            let (tops, low) = (self.splat(slots.tops()), self.splat(slots.low_bits()));
            let wanted = fingerprints.product_low(self.splat(slots.ones()));
            for bits in buckets {
                // SAFETY: every window begins inside its bucket, which the caller guarantees to be inside the table.
                let words = unsafe { self.words(bits.add(self.splat(offset))) };
                // As in `Fields::zero`: leaves the highest bit of each zero slot.
                let difference = words.xor(wanted);
                let zero = difference.and(low).add(low).or(difference).xor(tops);
                found |= !zero.none(tops);
            }
        }
        found
    }

    /// The words that begin with the first and the second pair of high parts of wide buckets, which begin at these bits.
    ///
    /// # Safety
    /// The buckets must be inside the table.
    #[inline(always)]
    unsafe fn pairs(&self, width: u32, bits: V) -> [V; 2] {
        let first = bits.add(self.splat(CODEWORD_BITS.into()));
        // SAFETY: every pair of high parts begins inside its bucket.
        unsafe { [self.words(first), self.words(first.add(self.splat((2 * width).into())))] }
    }

    /// Bit i of the result is set if item i is in one of its buckets of a packed table. `buckets` are their first bits.
    ///
    /// # Safety
    /// The buckets must be inside the table.
    #[inline(always)]
    unsafe fn in_packed(&self, geometry: &PackedGeometry, is_narrow: bool, (buckets, fingerprints): ([V; 2], V)) -> u32 {
        // Gathers all words before comparing any. A gather needs a mask register, and the instruction that sets it has a false
        // dependency on the result of the last comparison.
        // SAFETY: the caller guarantees that the buckets begin inside the table.
        let words = unsafe { [self.words(buckets[0]), self.words(buckets[1])] };
        let highs = if is_narrow {
            narrow_highs(words)
        } else {
            let width = geometry.high_bits();
            // SAFETY: as above.
            unsafe { [self.pairs(width, buckets[0]), self.pairs(width, buckets[1])] }
        };
        found(self.proof, geometry, is_narrow, words, highs, fingerprints)
    }

    /// Looks up all hashes. Calls `answer` with each batch of them, in order, and the answers: bit i is that for the i-th.
    #[inline(always)]
    pub fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(&[u64], u64)) {
        let targets = [Targets::new(), Targets::new()];
        let locate = |hashes: &_, len, targets: &mut _| self.locate(hashes, len, targets);
        pipelined(hashes, targets, locate, |targets, len| self.look_up(targets, len), answer);
    }

    /// Computes the targets of a batch and prefetches them.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets) {
        V::run(self.proof, move || {
            if let Some(address) = self.in_vectors {
                for at in (0..len).step_by(V::COUNT) {
                    let (located, fingerprints) = address.buckets(self.proof, V::load(self.proof, &hashes[at..]));
                    for (bits, bucket) in targets.bits.iter_mut().zip(located) {
                        bucket.product(self.splat(self.bucket_bits)).store(&mut bits[at..]);
                    }
                    fingerprints.store(&mut targets.fingerprints[at..]);
                }
            } else {
                for (at, &hash) in hashes.iter().enumerate().take(len.next_multiple_of(V::COUNT)) {
                    let ((first, second), fingerprint) = self.address.buckets(Uniform(hash));
                    targets.bits[0][at] = first * self.bucket_bits;
                    targets.bits[1][at] = second * self.bucket_bits;
                    targets.fingerprints[at] = fingerprint.wide();
                }
            }
            if self.bytes.len() >= PREFETCH_FROM {
                let bmi2 = V::bmi2(self.proof);
                for bits in targets.bits.as_flattened() {
                    bmi2.prefetch(self.bytes, index(bits / 8));
                }
            }
        });
    }

    /// The answers for the first `len` targets.
    fn look_up(&self, targets: &Targets, len: usize) -> u64 {
        let at = |at: usize| {
            let buckets = [V::load(self.proof, &targets.bits[0][at..]), V::load(self.proof, &targets.bits[1][at..])];
            (buckets, V::load(self.proof, &targets.fingerprints[at..]))
        };
        // SAFETY: `locate` only gives buckets below the number of buckets, whatever the hash, and has also filled the vector behind
        // the last hash. `new` has checked that the table is as long as its parameters require, so the buckets are inside it, and
        // that the geometry is theirs, so what is read is inside the buckets.
        V::run(self.proof, move || unsafe {
            // Copies the geometry, so that the compiler keeps values computed from it in registers.
            match *self.geometry {
                Geometry::Single(geometry) => answers::<V>(len, |i| self.in_single(&geometry, at(i))),
                Geometry::Narrow(geometry) => answers::<V>(len, |i| self.in_packed(&geometry, true, at(i))),
                Geometry::Wide(geometry) => answers::<V>(len, |i| self.in_packed(&geometry, false, at(i))),
            }
        })
    }
}

// Many tables.

/// Lookup in many packed tables of one layout. The items of a batch are in different tables, so words are gathered from addresses, and
/// not from offsets in one table.
pub(super) struct ManyTables<'a, V: Vector, T> {
    proof: V::Proof,
    tables: T,
    /// Addresses in targets are of tables that live as long.
    lifetime: PhantomData<&'a [u8]>,
    address: VectorAddress,
    geometry: PackedGeometry,
    is_narrow: bool,
    /// The length of each table with its padding, in bytes.
    table_bytes: usize,
    /// Whether buckets are prefetched.
    prefetches: bool,
}

/// Where to look up a batch. Each of the first items, up to the end of a vector, has the address of a table, and two buckets inside it.
struct TargetsInMany {
    tables: [*const u8; BATCH],
    /// The first bit of each of the two buckets.
    firsts: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

impl<'a, V: Vector, T: Tables<'a>> ManyTables<'a, V, T> {
    /// `None` if tables are not packed, or have too many buckets for vectors.
    pub fn new(proof: V::Proof, tables: T, prefetches: bool) -> Option<Self> {
        let (geometry, is_narrow) = match *tables.geometry() {
            Geometry::Narrow(geometry) => (geometry, true),
            Geometry::Wide(geometry) => (geometry, false),
            Geometry::Single(_) => return None,
        };
        let address = VectorAddress::new(tables.address())?;
        let bits = tables.address().buckets.checked_mul(geometry.bucket_bits().into())?;
        let table_bytes = usize::try_from(bits.div_ceil(8)).ok()?.checked_add(PADDING)?;
        Some(Self { proof, tables, lifetime: PhantomData, address, geometry, is_narrow, table_bytes, prefetches })
    }

    /// The words that begin this many bits behind the first bits of two buckets of each table.
    ///
    /// # Safety
    /// As for [`Vector::gather_from`], for the byte of each bit.
    #[inline(always)]
    unsafe fn words(&self, tables: &[*const u8], [first, second]: [V; 2], behind: u32) -> [V; 2] {
        let (behind, seven) = (V::splat(self.proof, behind.into()), V::splat(self.proof, 7));
        let (first, second) = (first.add(behind), second.add(behind));
        // SAFETY: the caller guarantees it.
        let (words, others) =
            unsafe { (self.gather(tables, first.shift_right::<3>()), self.gather(tables, second.shift_right::<3>())) };
        [words.shift_right_by(first.and(seven)), others.shift_right_by(second.and(seven))]
    }

    /// [`Vector::gather_from`], or the same without addresses: Miri checks pointers.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn gather(&self, tables: &[*const u8], bytes: V) -> V {
        if cfg!(miri) {
            let mut words = [0; BATCH];
            bytes.store(&mut words);
            for (word, table) in words.iter_mut().zip(&tables[..V::COUNT]) {
                // SAFETY: the caller guarantees it.
                *word = unsafe { table.add(index(*word)).cast::<u64>().read_unaligned() };
            }
            return V::load(self.proof, &words);
        }
        // SAFETY: the caller guarantees it.
        unsafe { bytes.gather_from(tables) }
    }

    /// The answers for the items of a vector from this index on.
    ///
    /// # Safety
    /// Targets from there to the end of the vector must have been located.
    #[inline(always)]
    unsafe fn compare(&self, targets: &TargetsInMany, at: usize, is_narrow: bool) -> u32 {
        let tables = &targets.tables[at..];
        let bits = [V::load(self.proof, &targets.firsts[0][at..]), V::load(self.proof, &targets.firsts[1][at..])];
        // SAFETY: buckets are below the number of them, whatever the hash, and `locate` has checked that each table has so many, with
        // as many bytes of padding as a word has. All words begin inside their bucket.
        let words = unsafe { self.words(tables, bits, 0) };
        let highs = if is_narrow {
            narrow_highs(words)
        } else {
            // SAFETY: as above.
            let (firsts, seconds) = unsafe {
                let behind = CODEWORD_BITS + 2 * self.geometry.high_bits();
                (self.words(tables, bits, CODEWORD_BITS), self.words(tables, bits, behind))
            };
            [[firsts[0], seconds[0]], [firsts[1], seconds[1]]]
        };
        let fingerprints = V::load(self.proof, &targets.fingerprints[at..]);
        found(self.proof, &self.geometry, is_narrow, words, highs, fingerprints)
    }
    /// Looks up all hashes. Calls `answer` with each batch of them, in order, and the answers: bit i is that for the i-th.
    #[inline(always)]
    pub fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(&[u64], u64)) {
        let targets = || TargetsInMany { tables: [ptr::null(); BATCH], firsts: [[0; BATCH]; 2], fingerprints: [0; BATCH] };
        let locate = |hashes: &_, len, targets: &mut _| self.locate(hashes, len, targets);
        pipelined(hashes, [targets(), targets()], locate, |targets, len| self.look_up(targets, len), answer);
    }

    /// Finds out where the first `len` hashes are, and prefetches their buckets.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut TargetsInMany) {
        V::run(self.proof, move || {
            // One loop for each thing that the processor does best alone: arithmetic, which the compiler does in vectors; loads that
            // depend on each other; arithmetic again; prefetching.
            let mut streams = [0; BATCH];
            for (stream, &hash) in streams.iter_mut().zip(hashes) {
                *stream = self.tables.stream(Uniform(hash));
            }
            let end = len.next_multiple_of(V::COUNT);
            // Behind the last item, to the end of the vector, are hashes of earlier batches or zeros, which have tables, too.
            let needed = self.table_bytes;
            self.tables.each_table(&hashes[..end], &streams[..end], &mut targets.tables[..end], |table| {
                if table.len() < needed {
                    beyond();
                }
                let start = table.as_ptr();
                _ = start.expose_provenance();
                start
            });
            let bucket_bits = V::splat(self.proof, self.geometry.bucket_bits().into());
            for at in (0..end).step_by(V::COUNT) {
                let (buckets, fingerprints) = self.address.buckets(self.proof, V::load(self.proof, &hashes[at..]));
                for (bits, bucket) in targets.firsts.iter_mut().zip(buckets) {
                    bucket.product(bucket_bits).store(&mut bits[at..]);
                }
                fingerprints.store(&mut targets.fingerprints[at..]);
            }
            if self.prefetches {
                for bits in &targets.firsts {
                    for (table, bits) in targets.tables.iter().zip(bits).take(len) {
                        prefetch(table.wrapping_add(index(bits / 8)));
                    }
                }
            }
        });
    }

    /// The answers for the first `len` targets.
    fn look_up(&self, targets: &TargetsInMany, len: usize) -> u64 {
        // SAFETY: `locate` was called for as many items.
        V::run(self.proof, move || unsafe {
            if self.is_narrow {
                answers::<V>(len, |at| self.compare(targets, at, true))
            } else {
                answers::<V>(len, |at| self.compare(targets, at, false))
            }
        })
    }
}

// Addressing: [`AnySize`] in vectors.

/// The addressing of tables with fewer than 2³² buckets: 32-bit products suffice for them.
#[derive(Clone, Copy)]
struct VectorAddress {
    buckets: u64,
    /// The number of different fingerprints.
    fingerprints: u64,
}

impl VectorAddress {
    /// `None` if there are too many buckets.
    fn new(address: AnySize) -> Option<Self> {
        let AnySize { buckets, fingerprint_bits } = address;
        (buckets < 1 << 32).then_some(Self { buckets, fingerprints: (1 << fingerprint_bits) - 1 })
    }

    /// [`AnySize::buckets`].
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

/// The product of a 64-bit and a 32-bit number, shifted right by 32 bits.
#[inline(always)]
fn product<V: Vector>(a: V, m: V) -> V {
    a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>())
}

// The comparison of packed buckets with fingerprints.

/// For the two buckets of each item and their four slots: the items (bit i for item i) whose high part is in the slot.
type Agree = [[u32; 4]; 2];

/// The high parts of two buckets, for each item: both pairs of each. (Of a narrow bucket they are in the same word.)
type Highs<V> = [[V; 2]; 2];

/// The high parts in the words of narrow buckets.
#[inline(always)]
fn narrow_highs<V: Vector>(words: [V; 2]) -> Highs<V> {
    [[words[0].shift_right::<CODEWORD_BITS>(); 2], [words[1].shift_right::<CODEWORD_BITS>(); 2]]
}

/// Bit i of the result is set if item i is in one of its buckets. The lowest bits of `words` are the codewords of the two.
#[inline(always)]
fn found<V: Vector>(
    proof: V::Proof,
    geometry: &PackedGeometry,
    is_narrow: bool,
    words: [V; 2],
    highs: Highs<V>,
    fingerprints: V,
) -> u32 {
    let splat = |value| V::splat(proof, value);
    let width = geometry.high_bits();
    let wanted = fingerprints.shift_right::<4>().product_low(splat(geometry.highs().ones()));
    let masks = [high_part(width, 0), high_part(width, 1), high_part(width, 2), high_part(width, 3)];
    let mut agree: Agree = [[0; 4]; 2];
    for i in 0..2 {
        for (slot, agree) in agree[i].iter_mut().enumerate() {
            // A word has all four high parts of a narrow bucket, or one pair of a wide one.
            let mask = if is_narrow { masks[slot] } else { masks[slot % 2] };
            *agree = highs[i][slot / 2].xor(wanted).none(splat(mask));
        }
    }
    with_nibbles(proof, words, &agree, fingerprints)
}

/// A mask for the high part of a slot.
#[inline(always)]
fn high_part(width: u32, slot: u32) -> u64 {
    ((1 << width) - 1) << ((slot * width) & 63)
}

/// Bit i of the result is set if item i is in a slot where both its high part and its nibble are. The lowest bits of `words` are
/// the codewords of the two buckets.
#[inline(always)]
fn with_nibbles<V: Vector>(proof: V::Proof, words: [V; 2], agree: &Agree, fingerprints: V) -> u32 {
    // With long fingerprints, an absent item hardly ever has a match.
    if agree.as_flattened().iter().fold(0, |any, agree| any | agree) == 0 {
        return 0;
    }
    let splat = |value| V::splat(proof, value);
    let low = fingerprints.and(splat(15)).product(splat(0x1111));
    let mut found = 0;
    for (word, agree) in words.into_iter().zip(agree) {
        let codeword = word.and(splat((1 << CODEWORD_BITS) - 1)).min(splat(LAST_DECODED.into()));
        // SAFETY: eight bytes can be loaded from any index up to `LAST_DECODED`.
        let nibbles = unsafe { codeword.gather_pairs(codebook::nibbles().as_ptr()) };
        let difference = nibbles.xor(low);
        for (slot, agree) in (0..).zip(agree) {
            found |= agree & difference.none(splat(15 << (4 * slot)));
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

    /// Compares addresses only, so the tables may be larger than any memory.
    fn agree<V: Vector>(proof: V::Proof, f: u32, buckets: u64, addressing: Addressing) {
        let params = Params::new(TableKind::Single, f, 4, buckets, addressing, 0).unwrap();
        let (geometry, address) = (Geometry::new(&params), Address::new(&params));
        // SAFETY: nothing is looked up.
        let vector = unsafe { OneTable::<V>::unchecked(proof, &params, &geometry, &[]) };
        let mut hashes = [0; BATCH];
        for (i, hash) in hashes.iter_mut().enumerate() {
            *hash = (i as u64 * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32);
        }
        hashes[..4].copy_from_slice(&[0, 1, u64::MAX, u64::MAX << 32]);
        let mut targets = Targets::new();
        vector.locate(&hashes, BATCH, &mut targets);
        for (i, &hash) in hashes.iter().enumerate() {
            let ((first, second), fingerprint) = address.buckets(Uniform(hash));
            let bits = u64::from(params.bucket_bits());
            assert_eq!(targets.bits.map(|bits| bits[i]), [first * bits, second * bits], "{f} {buckets} {addressing} {hash:#x}");
            assert_eq!(targets.fingerprints[i], fingerprint.wide());
        }
    }

    #[test]
    fn vectors_find_the_same_buckets() {
        // The length decides on no branch and no access, so that one of them shows Miri, which takes its time, all there is.
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
    fn a_table_that_is_too_short_is_not_gathered_from() {
        let Some(proof) = Avx2::detect() else { panic!("the table is shorter, as far as this processor can tell") };
        let params = Params::new(TableKind::Packed, 13, 4, 1024, Addressing::AnySize, 0).unwrap();
        let bytes = alloc::vec![0; params.table_bytes() + PADDING - 1];
        let _ = OneTable::<U64x4>::new(proof, &params, &Geometry::new(&params), &bytes);
    }
}
