//! Vectorised look-up, one item per 64-bit lane. The algorithm is the same for every vector width; [`Lanes`] hides the intrinsics.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{super::batch::BATCH, Bmi2};
use crate::{
    bits::{PADDING, index, wide},
    kernel::{Hashes, PREFETCH_FROM},
    params::Params,
    table::{
        Address, Geometry, Instructions as _, MULTIPLIER, PackedGeometry, SingleGeometry, Uniform,
        codebook::{self, CODEWORD_BITS, LAST_DECODED},
    },
};

/// A vector of 64-bit lanes. A value can be made only with a proof, so the methods are safe to call. They must be inlined into
/// functions that are compiled for the instructions.
pub(super) trait Lanes: Copy {
    /// Proof that the processor supports the instructions.
    type Proof: Copy;

    const COUNT: usize;

    fn bmi2(proof: Self::Proof) -> Bmi2;
    fn splat(proof: Self::Proof, value: u64) -> Self;
    /// Loads the first [`COUNT`](Self::COUNT) values.
    fn load(proof: Self::Proof, values: &[u64]) -> Self;
    fn store(self, values: &mut [u64]);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_right<const BITS: u32>(self) -> Self;
    fn shift_right_by(self, bits: Self) -> Self;
    /// The 64-bit products of the lower 32 bits of the lanes.
    fn product(self, other: Self) -> Self;
    /// The lower 64 bits of the products.
    fn product_low(self, other: Self) -> Self;
    /// Bit i of the result is set if lane i has no bit in common with `mask`.
    fn none(self, mask: Self) -> u32;
    /// Adds `other` to the lanes whose highest bit is set.
    fn add_if_negative(self, other: Self) -> Self;
    /// The smaller of the two, for numbers below 2³².
    fn min(self, other: Self) -> Self;
    /// Loads eight bytes from each address `base + self`.
    ///
    /// # Safety
    /// The eight bytes at each address must be inside the same allocation as `base`.
    unsafe fn gather(self, base: *const u8) -> Self;
    /// Loads eight bytes from each address `base + 2·self`.
    ///
    /// # Safety
    /// The eight bytes at each address must be inside the same allocation as `base`.
    unsafe fn gather_pairs(self, base: *const u16) -> Self;
}

/// Where to look up a batch: for each item, the first bit of each of its two buckets, and its fingerprint.
pub(super) struct Targets {
    bits: [[u64; BATCH]; 2],
    fingerprints: [u64; BATCH],
}

impl Targets {
    #[inline(always)]
    fn new() -> Self {
        Self { bits: [[0; BATCH]; 2], fingerprints: [0; BATCH] }
    }
}

/// Vectorised look-up in one table.
pub(super) struct Vector<'a, L: Lanes> {
    proof: L::Proof,
    geometry: &'a Geometry,
    bytes: &'a [u8],
    bucket_bits: u64,
    address: Address,
    /// The number of buckets and that of different fingerprints, if there are fewer than 2³² buckets and addressing is
    /// [`Addressing::AnySize`]: then 32-bit products suffice. Otherwise hashes are located one by one.
    ///
    /// [`Addressing::AnySize`]: crate::Addressing::AnySize
    in_lanes: Option<(u64, u64)>,
}

impl<'a, L: Lanes> Vector<'a, L> {
    /// # Panics
    /// If `geometry` is not that of `params`, or `bytes` is shorter than the table and its padding. Gathers rely on both checks.
    pub(super) fn new(proof: L::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        assert!(params.table_bytes() + PADDING <= bytes.len(), "the table is shorter than its parameters say");
        assert!(*geometry == Geometry::new(params), "the geometry is not that of the parameters");
        // SAFETY: both are as required.
        unsafe { Self::unchecked(proof, params, geometry, bytes) }
    }

    /// # Safety
    /// Before a look-up, `geometry` must be that of `params`, and `bytes` as long as the table and its padding.
    unsafe fn unchecked(proof: L::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        let address = Address::new(params);
        let buckets = address.buckets_of_any_size().filter(|&buckets| buckets < 1 << 32);
        let in_lanes = buckets.map(|buckets| (buckets, address.fingerprints()));
        Self { proof, geometry, bytes, bucket_bits: params.bucket_bits().into(), address, in_lanes }
    }

    #[inline(always)]
    fn splat(&self, value: u64) -> L {
        L::splat(self.proof, value)
    }

    /// [`Address::buckets`], in vectors.
    #[inline(always)]
    fn locate_lanes(&self, hash: L, buckets: u64, fingerprints: u64) -> ([L; 2], L) {
        let (m, one, multiplier) = (self.splat(buckets), self.splat(1), self.splat(MULTIPLIER));
        let both = product(hash, m);
        let first = both.shift_right::<32>();
        let fingerprint = both.product(self.splat(fingerprints)).shift_right::<32>().add(one);
        let spread = fingerprint.product_low(multiplier);
        let spread = spread.product_low(spread.shift_right::<32>());
        let sum = product(spread, m).shift_right::<32>().or(one);
        ([first, sum.sub(first).add_if_negative(m)], fingerprint)
    }

    /// The words that begin at these bits of the table.
    ///
    /// # Safety
    /// All bits must be inside the table.
    #[inline(always)]
    unsafe fn words(&self, bits: L) -> L {
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
    unsafe fn in_single(&self, geometry: &SingleGeometry, buckets: [L; 2], fingerprints: L) -> u32 {
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

    /// Bit i of the result is set if item i is in one of its buckets of a packed table. `buckets` are their first bits.
    ///
    /// # Safety
    /// The buckets must be inside the table.
    #[inline(always)]
    unsafe fn in_packed(&self, geometry: &PackedGeometry, is_narrow: bool, buckets: [L; 2], fingerprints: L) -> u32 {
        let width = geometry.high_bits();
        let wanted = fingerprints.shift_right::<4>().product_low(self.splat(geometry.highs().ones()));
        let masks = [high_part(width, 0), high_part(width, 1), high_part(width, 2), high_part(width, 3)];
        // Gathers all words before comparing any. A gather needs a mask register, and the instruction that sets it has a false
        // dependency on the result of the last comparison.
        // SAFETY: the caller guarantees that the buckets begin inside the table.
        let words = unsafe { [self.words(buckets[0]), self.words(buckets[1])] };
        let high = |bucket: usize, pair: usize| {
            if is_narrow {
                return words[bucket].shift_right::<CODEWORD_BITS>();
            }
            let at = u64::from(CODEWORD_BITS) + u64::from(2 * width) * wide(pair);
            // SAFETY: every pair of high parts begins inside its bucket.
            unsafe { self.words(buckets[bucket].add(self.splat(at))) }
        };
        let highs = [[high(0, 0), high(0, 1)], [high(1, 0), high(1, 1)]];
        // For each bucket and slot, the items whose high part matches.
        let mut agree = [[0; 4]; 2];
        for i in 0..2 {
            for (slot, agree) in agree[i].iter_mut().enumerate() {
                // A word has all four high parts of a narrow bucket, or one pair of a wide one.
                let mask = if is_narrow { masks[slot] } else { masks[slot % 2] };
                *agree = highs[i][slot / 2].xor(wanted).none(self.splat(mask));
            }
        }
        // With long fingerprints, an absent item hardly ever has a match.
        if agree.as_flattened().iter().fold(0, |any, agree| any | agree) == 0 {
            return 0;
        }
        let low = fingerprints.and(self.splat(15)).product(self.splat(0x1111));
        let mut found = 0;
        for i in 0..2 {
            let codeword = words[i].and(self.splat((1 << CODEWORD_BITS) - 1)).min(self.splat(LAST_DECODED.into()));
            // SAFETY: eight bytes can be loaded from any index up to `LAST_DECODED`.
            let nibbles = unsafe { codeword.gather_pairs(codebook::nibbles().as_ptr()) };
            let difference = nibbles.xor(low);
            for (slot, agree) in (0..).zip(agree[i]) {
                found |= agree & difference.none(self.splat(15 << (4 * slot)));
            }
        }
        found
    }

    /// Looks up all hashes. Software pipelining: the buckets of one batch are loaded from memory while the batch before it is
    /// compared.
    #[inline(always)]
    pub(super) fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        // Copies the geometry, so that the compiler keeps values computed from it in registers.
        match *self.geometry {
            Geometry::Single(geometry) => self.contains_all_in(geometry, hashes, answer),
            Geometry::Narrow(geometry) => self.contains_all_in(NarrowBuckets(geometry), hashes, answer),
            Geometry::Wide(geometry) => self.contains_all_in(WideBuckets(geometry), hashes, answer),
        }
    }

    #[allow(clippy::needless_pass_by_value, reason = "what is computed of it is computed once")]
    #[inline(always)]
    fn contains_all_in(&self, buckets: impl Compare, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        let mut batch = [0; BATCH];
        // The targets of this batch and of the one before, alternating: copying them would take a quarter of the total time.
        let mut targets = [Targets::new(), Targets::new()];
        let (mut start, mut len_before, mut turn) = (0, 0, 0);
        loop {
            let len = (hashes.len() - start).min(BATCH);
            if len > 0 {
                hashes.fill(start, &mut batch);
                self.locate(&batch, len, &mut targets[turn]);
            }
            turn ^= 1;
            if len_before > 0 {
                answer(self.look_up(&buckets, &targets[turn], len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }

    /// Computes the targets of a batch and prefetches them.
    #[inline(always)]
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets) {
        if let Some((buckets, fingerprints)) = self.in_lanes {
            for at in (0..len).step_by(L::COUNT) {
                let (located, fingerprints) = self.locate_lanes(L::load(self.proof, &hashes[at..]), buckets, fingerprints);
                for (bits, bucket) in targets.bits.iter_mut().zip(located) {
                    bucket.product(self.splat(self.bucket_bits)).store(&mut bits[at..]);
                }
                fingerprints.store(&mut targets.fingerprints[at..]);
            }
        } else {
            for (at, &hash) in hashes.iter().enumerate().take(len.next_multiple_of(L::COUNT)) {
                let ((first, second), fingerprint) = self.address.buckets(Uniform(hash));
                targets.bits[0][at] = first * self.bucket_bits;
                targets.bits[1][at] = second * self.bucket_bits;
                targets.fingerprints[at] = fingerprint.wide();
            }
        }
        if self.bytes.len() >= PREFETCH_FROM {
            let bmi2 = L::bmi2(self.proof);
            for bits in targets.bits.as_flattened() {
                bmi2.prefetch(self.bytes, index(bits / 8));
            }
        }
    }

    /// Looks up a batch; bit i of the result is the answer for item i.
    #[inline(always)]
    fn look_up(&self, compare: &impl Compare, targets: &Targets, len: usize) -> u64 {
        let mut answers = 0;
        for at in (0..len).step_by(L::COUNT) {
            let buckets = [L::load(self.proof, &targets.bits[0][at..]), L::load(self.proof, &targets.bits[1][at..])];
            let fingerprints = L::load(self.proof, &targets.fingerprints[at..]);
            // SAFETY: `locate` only gives buckets below the number of buckets, whatever the hash, and has also filled the lanes
            // behind the last hash. `new` has checked that the table is as long as its parameters require, so the buckets are
            // inside it, and that the geometry is theirs, so what is read is inside the buckets.
            let found = unsafe { compare.found(self, buckets, fingerprints) };
            answers |= u64::from(found & ((1 << L::COUNT) - 1)) << at;
        }
        // Lanes behind the last item may hold answers for stale hashes.
        answers & u64::MAX >> (BATCH - len)
    }
}

/// The comparison of buckets with fingerprints, for one kind of table.
trait Compare {
    /// Bit i of the result is set if item i is in one of its buckets. `buckets` are their first bits.
    ///
    /// # Safety
    /// The buckets must be inside the table, and `self` must be its geometry.
    unsafe fn found<L: Lanes>(&self, vector: &Vector<'_, L>, buckets: [L; 2], fingerprints: L) -> u32;
}

impl Compare for SingleGeometry {
    #[inline(always)]
    unsafe fn found<L: Lanes>(&self, vector: &Vector<'_, L>, buckets: [L; 2], fingerprints: L) -> u32 {
        // SAFETY: the conditions are those of the caller.
        unsafe { vector.in_single(self, buckets, fingerprints) }
    }
}

struct NarrowBuckets(PackedGeometry);

impl Compare for NarrowBuckets {
    #[inline(always)]
    unsafe fn found<L: Lanes>(&self, vector: &Vector<'_, L>, buckets: [L; 2], fingerprints: L) -> u32 {
        // SAFETY: the conditions are those of the caller.
        unsafe { vector.in_packed(&self.0, true, buckets, fingerprints) }
    }
}

struct WideBuckets(PackedGeometry);

impl Compare for WideBuckets {
    #[inline(always)]
    unsafe fn found<L: Lanes>(&self, vector: &Vector<'_, L>, buckets: [L; 2], fingerprints: L) -> u32 {
        // SAFETY: the conditions are those of the caller.
        unsafe { vector.in_packed(&self.0, false, buckets, fingerprints) }
    }
}

/// The product of a 64-bit and a 32-bit number, shifted right by 32 bits.
#[inline(always)]
fn product<L: Lanes>(a: L, m: L) -> L {
    a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>())
}

/// A mask for the high part of a slot.
#[inline(always)]
fn high_part(width: u32, slot: u32) -> u64 {
    ((1 << width) - 1) << ((slot * width) & 63)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Avx2, Avx512, Eight, Four},
        *,
    };
    use crate::{
        params::{Addressing, Params, TableKind},
        table::Address,
    };

    /// Compares addresses only, so the tables may be larger than any memory.
    fn agree<L: Lanes>(proof: L::Proof, f: u32, buckets: u64, addressing: Addressing) {
        let params = Params::new(TableKind::Single, f, 4, buckets, addressing, 0).unwrap();
        let (geometry, address) = (Geometry::new(&params), Address::new(&params));
        // SAFETY: nothing is looked up.
        let vector = unsafe { Vector::<L>::unchecked(proof, &params, &geometry, &[]) };
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
        for f in [2, 5, 8, 13, 21, 28] {
            for buckets in [2, 6, 1 << 20, (1 << 31) - 2, 1 << 31, (1 << 32) - 2, 1 << 32, (1 << 32) + 2, 1 << 35] {
                if let Some(proof) = Avx2::detect() {
                    agree::<Four>(proof, f, buckets, Addressing::AnySize);
                }
                if let Some(proof) = Avx512::detect() {
                    agree::<Eight>(proof, f, buckets, Addressing::AnySize);
                }
            }
        }
        if let Some(proof) = Avx2::detect() {
            agree::<Four>(proof, 13, 1 << 31, Addressing::PowerOfTwo);
        }
    }

    #[test]
    #[should_panic(expected = "the table is shorter")]
    fn a_table_that_is_too_short_is_not_gathered_from() {
        let Some(proof) = Avx2::detect() else { panic!("the table is shorter, as far as this processor can tell") };
        let params = Params::new(TableKind::Packed, 13, 4, 1024, Addressing::AnySize, 0).unwrap();
        let bytes = alloc::vec![0; params.table_bytes() + PADDING - 1];
        let _ = Vector::<Four>::new(proof, &params, &Geometry::new(&params), &bytes);
    }
}
