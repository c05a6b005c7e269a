//! Look-ups in vectors of 64-bit lanes, one item in each: the same steps for every width of vector.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's instructions, what is called is not")]

use super::{super::batch::BATCH, Bmi2};
use crate::{
    bits::{PADDING, index, wide},
    kernel::{Hashes, PREFETCH_FROM},
    params::Params,
    table::{
        Address, Geometry, Instructions as _, MULTIPLIER, PackedGeometry, SingleGeometry, Uniform,
        codebook::{self, CODEWORD_BITS, CODEWORDS},
    },
};

/// A vector of 64-bit lanes. A value of the type exists only where its proof does, so that its methods are safe to call; they
/// are inlined into functions that are compiled for the instructions.
pub(super) trait Lanes: Copy {
    /// What proves that the processor has the instructions.
    type Proof: Copy;

    const COUNT: usize;

    fn bmi2(proof: Self::Proof) -> Bmi2;
    fn splat(proof: Self::Proof, value: u64) -> Self;
    /// The first [`COUNT`](Self::COUNT) values.
    fn load(proof: Self::Proof, values: &[u64]) -> Self;
    fn store(self, values: &mut [u64]);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_right<const BITS: u32>(self) -> Self;
    fn shift_right_by(self, bits: Self) -> Self;
    /// The products of the lanes' lower halves.
    fn product(self, other: Self) -> Self;
    /// The lower halves of the products.
    fn product_low(self, other: Self) -> Self;
    /// Bit i is set if lane i has none of the bits of `mask`.
    fn none(self, mask: Self) -> u32;
    /// Adds `other` to the lanes whose highest bit is set.
    fn add_if_negative(self, other: Self) -> Self;
    /// The smaller of both, of numbers below 2³².
    fn min(self, other: Self) -> Self;
    /// Eight bytes from each of the places `base + self`.
    ///
    /// # Safety
    /// All of them are inside one allocation.
    unsafe fn gather(self, base: *const u8) -> Self;
    /// Eight bytes from each of the places `base + 2·self`.
    ///
    /// # Safety
    /// All of them are inside one allocation.
    unsafe fn gather_pairs(self, base: *const u16) -> Self;
}

/// Where to look: for each item the first bits of its two buckets, and its fingerprint.
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

/// Look-ups in one table.
pub(super) struct Vector<'a, L: Lanes> {
    proof: L::Proof,
    geometry: &'a Geometry,
    bytes: &'a [u8],
    bucket_bits: u64,
    address: Address,
    /// The number of buckets, if they are fewer than 2³² and of [`Addressing::AnySize`]: products of 32 bits will do then.
    ///
    /// [`Addressing::AnySize`]: crate::Addressing::AnySize
    buckets: Option<u64>,
}

impl<'a, L: Lanes> Vector<'a, L> {
    /// # Panics
    /// If the bytes are fewer than those of the table and its padding: what is gathered is not checked again.
    pub(super) fn new(proof: L::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        assert!(params.table_bytes() + PADDING <= bytes.len(), "the table is shorter than its parameters say");
        Self::unchecked(proof, params, geometry, bytes)
    }

    fn unchecked(proof: L::Proof, params: &Params, geometry: &'a Geometry, bytes: &'a [u8]) -> Self {
        let address = Address::new(params);
        let buckets = address.buckets_of_any_size().filter(|&buckets| buckets < 1 << 32);
        Self { proof, geometry, bytes, bucket_bits: params.bucket_bits().into(), address, buckets }
    }

    #[inline(always)]
    fn splat(&self, value: u64) -> L {
        L::splat(self.proof, value)
    }

    /// [`Address::buckets`], in vectors.
    #[inline(always)]
    fn locate_lanes(&self, hash: L, buckets: u64) -> ([L; 2], L) {
        let (m, one, multiplier) = (self.splat(buckets), self.splat(1), self.splat(MULTIPLIER));
        let both = product(hash, m);
        let first = both.shift_right::<32>();
        let fingerprint = both.product(self.splat(self.address.fingerprints())).shift_right::<32>().add(one);
        let spread = fingerprint.product_low(multiplier);
        let spread = spread.product_low(spread.shift_right::<32>());
        let sum = product(spread, m).shift_right::<32>().or(one);
        ([first, sum.sub(first).add_if_negative(m)], fingerprint)
    }

    /// The words that begin at the bits.
    ///
    /// # Safety
    /// All bits are inside the table.
    #[inline(always)]
    unsafe fn words(&self, bits: L) -> L {
        // SAFETY: the padding behind a table's last byte is as long as a word, and `new` has seen that it is there.
        let words = unsafe { bits.shift_right::<3>().gather(self.bytes.as_ptr()) };
        words.shift_right_by(bits.and(self.splat(7)))
    }

    /// Bit i is set if item i is in one of its buckets of a single table, which begin at the bits.
    ///
    /// # Safety
    /// They do.
    #[inline(always)]
    unsafe fn in_single(&self, geometry: &SingleGeometry, buckets: [L; 2], fingerprints: L) -> u32 {
        let mut found = 0;
        for (offset, slots) in geometry.windows() {
            let (tops, low) = (self.splat(slots.tops()), self.splat(slots.low_bits()));
            let wanted = fingerprints.product_low(self.splat(slots.ones()));
            for bits in buckets {
                // SAFETY: a window begins inside its bucket.
                let words = unsafe { self.words(bits.add(self.splat(offset))) };
                // As `Fields::zero` does it; the highest bit of a slot that is zero is left.
                let difference = words.xor(wanted);
                let zero = difference.and(low).add(low).or(difference).xor(tops);
                found |= !zero.none(tops);
            }
        }
        found
    }

    /// Bit i is set if item i is in one of its buckets of a packed table, which begin at the bits.
    ///
    /// # Safety
    /// They do.
    #[inline(always)]
    unsafe fn in_packed(&self, geometry: &PackedGeometry, is_narrow: bool, buckets: [L; 2], fingerprints: L) -> u32 {
        let width = geometry.high_bits();
        let wanted = fingerprints.shift_right::<4>().product_low(self.splat(geometry.highs().ones()));
        let masks = [high_part(width, 0), high_part(width, 1), high_part(width, 2), high_part(width, 3)];
        // Which items agree with the high part of slot j, in either bucket.
        let mut agree = [[0; 4]; 2];
        let mut words = buckets;
        for i in 0..2 {
            // SAFETY: the bucket begins inside the table.
            words[i] = unsafe { self.words(buckets[i]) };
            if is_narrow {
                let difference = words[i].shift_right::<CODEWORD_BITS>().xor(wanted);
                for (agree, mask) in agree[i].iter_mut().zip(masks) {
                    *agree = difference.none(self.splat(mask));
                }
            } else {
                for j in (0..4).step_by(2) {
                    let pair = u64::from(CODEWORD_BITS) + u64::from(width) * wide(j);
                    // SAFETY: a pair of high parts begins inside its bucket.
                    let difference = unsafe { self.words(buckets[i].add(self.splat(pair))) }.xor(wanted);
                    agree[i][j] = difference.none(self.splat(masks[0]));
                    agree[i][j + 1] = difference.none(self.splat(masks[1]));
                }
            }
        }
        // With long fingerprints, hardly any do unless they are there.
        if agree.as_flattened().iter().fold(0, |any, agree| any | agree) == 0 {
            return 0;
        }
        let low = fingerprints.and(self.splat(15)).product(self.splat(0x1111));
        let mut found = 0;
        for i in 0..2 {
            let codeword = words[i].and(self.splat((1 << CODEWORD_BITS) - 1)).min(self.splat(CODEWORDS.into()));
            // SAFETY: whatever the bits are, this is a place in the codebook, which is longer by a word.
            let nibbles = unsafe { codeword.gather_pairs(codebook::nibbles().as_ptr()) };
            let difference = nibbles.xor(low);
            for (slot, agree) in (0..).zip(agree[i]) {
                found |= agree & difference.none(self.splat(15 << (4 * slot)));
            }
        }
        found
    }

    /// Looks all hashes up. While the memory is at work on one batch, the processor is on the one before.
    #[inline(always)]
    pub(super) fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        let mut batch = [0; BATCH];
        // Of this batch and the one before, in turns: copying them would cost a quarter of the whole.
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
                answer(self.look_up(&targets[turn], len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }

    /// Finds out where to look, and has it prefetched.
    #[inline(always)]
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Targets) {
        if let Some(buckets) = self.buckets {
            for at in (0..len).step_by(L::COUNT) {
                let (located, fingerprints) = self.locate_lanes(L::load(self.proof, &hashes[at..]), buckets);
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

    /// The answers, a bit for each.
    #[inline(always)]
    fn look_up(&self, targets: &Targets, len: usize) -> u64 {
        let mut answers = 0;
        for at in (0..len).step_by(L::COUNT) {
            let buckets = [L::load(self.proof, &targets.bits[0][at..]), L::load(self.proof, &targets.bits[1][at..])];
            let fingerprints = L::load(self.proof, &targets.fingerprints[at..]);
            // SAFETY: `locate` gives buckets below the number of buckets, whatever the hash, and the slots behind the last hash
            // have been located, too; and as long as a table has its parameters' length, they are inside it.
            let found = unsafe {
                match self.geometry {
                    Geometry::Single(geometry) => self.in_single(geometry, buckets, fingerprints),
                    Geometry::Narrow(geometry) => self.in_packed(geometry, true, buckets, fingerprints),
                    Geometry::Wide(geometry) => self.in_packed(geometry, false, buckets, fingerprints),
                }
            };
            answers |= u64::from(found & ((1 << L::COUNT) - 1)) << at;
        }
        // Behind the last item there may be others' answers.
        answers & u64::MAX >> (BATCH - len)
    }
}

/// The product of 64 and 32 bits, without its lowest 32.
#[inline(always)]
fn product<L: Lanes>(a: L, m: L) -> L {
    a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>())
}

/// The bits of the high part in a slot.
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
    use crate::params::{Addressing, TableKind};

    /// Buckets of tables that no machine has the memory for: only where they would be is compared.
    fn agree<L: Lanes>(proof: L::Proof, f: u32, buckets: u64, addressing: Addressing) {
        let params = Params::new(TableKind::Single, f, 4, buckets, addressing, 0).unwrap();
        let (geometry, address) = (Geometry::new(&params), Address::new(&params));
        // Nothing is gathered here.
        let vector = Vector::<L>::unchecked(proof, &params, &geometry, &[]);
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
