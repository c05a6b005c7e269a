//! Look-ups in vectors of 64-bit lanes, one item in each: the same steps for every width of vector.

#![allow(unsafe_code, reason = "the instructions of particular processors")]

use core::marker::PhantomData;

use super::batch::{BATCH, FETCH_FROM, Hashes};
use crate::{
    bits::PADDING,
    bits::{index, wide},
    storage::Storage,
    table::codebook::{self, CODEWORD_BITS, CODEWORDS},
    table::{Address, MULTIPLIER},
    table::{AnyTable, Packed, Single, Table as _, with_table},
};

/// A vector of 64-bit lanes.
///
/// # Safety
/// The methods may only be called where the processor is known to have the instructions. They are inlined into functions
/// that are compiled for it.
pub(super) unsafe trait Lanes: Copy {
    const COUNT: usize;

    unsafe fn splat(value: u64) -> Self;
    unsafe fn load(values: &[u64]) -> Self;
    unsafe fn store(self, values: &mut [u64]);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn shift_right<const BITS: u32>(self) -> Self;
    unsafe fn shift_right_by(self, bits: Self) -> Self;
    /// The products of the lanes' lower halves.
    unsafe fn product(self, other: Self) -> Self;
    /// The lower halves of the products.
    unsafe fn product_low(self, other: Self) -> Self;
    /// Bit i is set if lane i has none of the bits of `mask`.
    unsafe fn none(self, mask: Self) -> u32;
    /// Adds `other` to the lanes whose highest bit is set.
    unsafe fn add_if_negative(self, other: Self) -> Self;
    /// Eight bytes from each of the places `base + self`, all of which are inside one allocation.
    unsafe fn gather(self, base: *const u8) -> Self;
    /// The smaller of both, of numbers below 2³².
    unsafe fn min(self, other: Self) -> Self;
    /// Eight bytes from each of the places `base + 2·self`.
    unsafe fn gather_pairs(self, base: *const u16) -> Self;
    /// Tells the processor that a byte will be needed.
    unsafe fn fetch(byte: *const u8);
}

/// Where to look: for each item the first bits of its two buckets, and its fingerprint.
pub(super) struct Places {
    pub(super) bits: [[u64; BATCH]; 2],
    pub(super) fingerprints: [u64; BATCH],
}

impl Places {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self { bits: [[0; BATCH]; 2], fingerprints: [0; BATCH] }
    }
}

/// Look-ups in one table.
pub(super) struct Vector<'a, L, S> {
    table: &'a AnyTable<S>,
    bytes: &'a [u8],
    bucket_bits: u64,
    address: &'a Address,
    /// The number of buckets, if they are fewer than 2³² and of [`Addressing::AnySize`]: products of 32 bits will do then.
    ///
    /// [`Addressing::AnySize`]: crate::Addressing::AnySize
    buckets: Option<u64>,
    lanes: PhantomData<L>,
}

impl<'a, L: Lanes, S: Storage> Vector<'a, L, S> {
    /// # Safety
    /// The processor has the instructions of `L`, and what uses this is compiled for them.
    #[inline(always)]
    pub(super) unsafe fn new(table: &'a AnyTable<S>, address: &'a Address) -> Self {
        let bucket_bits = match table {
            AnyTable::Single(single) => single.layout().bucket_bits(),
            AnyTable::Packed(packed) => packed.bucket_bits(),
        };
        let buckets = address.buckets_of_any_size().filter(|&buckets| buckets < 1 << 32);
        let bytes = with_table!(table, table => table.memory());
        Self { table, bytes, bucket_bits: bucket_bits.into(), address, buckets, lanes: PhantomData }
    }

    /// [`Address::locate`] and [`Address::alternate`], in vectors.
    #[inline(always)]
    unsafe fn locate_lanes(&self, hash: L, buckets: u64) -> ([L; 2], L) {
        unsafe {
            let (m, one) = (L::splat(buckets), L::splat(1));
            let multiplier = L::splat(MULTIPLIER);
            let hash = hash.product_low(multiplier);
            let hash = hash.xor(hash.shift_right::<32>()).product_low(multiplier);
            let both = product(hash, m);
            let first = both.shift_right::<32>();
            let fingerprint = both.product(L::splat(self.address.fingerprints())).shift_right::<32>().add(one);
            let spread = fingerprint.product_low(multiplier);
            let spread = spread.product_low(spread.shift_right::<32>());
            let sum = product(spread, m).shift_right::<32>().or(one);
            ([first, sum.sub(first).add_if_negative(m)], fingerprint)
        }
    }

    /// The words that begin at the bits.
    ///
    /// # Safety
    /// All bits are inside the table.
    #[inline(always)]
    unsafe fn words(&self, bits: L) -> L {
        // SAFETY: the padding behind a table's last byte is as long as a word.
        unsafe { bits.shift_right::<3>().gather(self.bytes.as_ptr()).shift_right_by(bits.and(L::splat(7))) }
    }

    /// Bit i is set if item i is in one of its buckets of a single table, which begin at the bits.
    #[inline(always)]
    unsafe fn in_single(&self, table: &Single<S>, buckets: [L; 2], fingerprints: L) -> u32 {
        unsafe {
            let mut found = 0;
            for (offset, slots) in table.layout().windows() {
                let (tops, low) = (L::splat(slots.tops()), L::splat(slots.low_bits()));
                let wanted = fingerprints.product_low(L::splat(slots.splat(1)));
                for bits in buckets {
                    // As `Fields::zero` does it; the highest bit of a slot that is zero is left.
                    let difference = self.words(bits.add(L::splat(offset))).xor(wanted);
                    let zero = difference.and(low).add(low).or(difference).xor(tops);
                    found |= !zero.none(tops);
                }
            }
            found
        }
    }

    /// Bit i is set if item i is in one of its buckets of a packed table, which begin at the bits.
    #[inline(always)]
    unsafe fn in_packed(&self, table: &Packed<S>, buckets: [L; 2], fingerprints: L) -> u32 {
        unsafe {
            let width = table.high_bits();
            let wanted = fingerprints.shift_right::<4>().product_low(L::splat(table.highs().splat(1)));
            let masks = [high_part(width, 0), high_part(width, 1), high_part(width, 2), high_part(width, 3)];
            // Which items agree with the high part of slot j, in either bucket.
            let mut agree = [[0; 4]; 2];
            let mut words = buckets;
            for i in 0..2 {
                words[i] = self.words(buckets[i]);
                if table.is_narrow() {
                    let difference = words[i].shift_right::<CODEWORD_BITS>().xor(wanted);
                    for (agree, mask) in agree[i].iter_mut().zip(masks) {
                        *agree = difference.none(L::splat(mask));
                    }
                } else {
                    for j in (0..4).step_by(2) {
                        let pair = u64::from(CODEWORD_BITS) + u64::from(width) * wide(j);
                        let difference = self.words(buckets[i].add(L::splat(pair))).xor(wanted);
                        agree[i][j] = difference.none(L::splat(masks[0]));
                        agree[i][j + 1] = difference.none(L::splat(masks[1]));
                    }
                }
            }
            // With long fingerprints, hardly any do unless they are there.
            if agree.as_flattened().iter().fold(0, |any, agree| any | agree) == 0 {
                return 0;
            }
            let low = fingerprints.and(L::splat(15)).product(L::splat(0x1111));
            let mut found = 0;
            for i in 0..2 {
                // Whatever the bits are, this is a place in the codebook.
                let codeword = words[i].and(L::splat((1 << CODEWORD_BITS) - 1)).min(L::splat(CODEWORDS.into()));
                let difference = codeword.gather_pairs(codebook::nibbles().as_ptr()).xor(low);
                for (slot, agree) in (0..).zip(agree[i]) {
                    found |= agree & difference.none(L::splat(15 << (4 * slot)));
                }
            }
            found
        }
    }
}

/// The product of 64 and 32 bits, without its lowest 32.
#[inline(always)]
unsafe fn product<L: Lanes>(a: L, m: L) -> L {
    unsafe { a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>()) }
}

/// The bits of the high part in a slot.
#[inline(always)]
fn high_part(width: u32, slot: u32) -> u64 {
    ((1 << width) - 1) << ((slot * width) & 63)
}

impl<L: Lanes, S: Storage> Vector<'_, L, S> {
    /// Looks all hashes up. While the memory is at work on one batch, the processor is on the one before.
    #[inline(always)]
    pub(super) fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        // What is gathered below is inside the table because every bucket is.
        let bits = u128::from(self.address.bucket_count()) * u128::from(self.bucket_bits);
        assert!(bits <= 8 * (self.bytes.len() - PADDING) as u128, "the addressing is another table's");
        let mut batch = [0; BATCH];
        // Of this batch and the one before, in turns: copying them would cost a quarter of the whole.
        let mut places = [Places::new(), Places::new()];
        let (mut start, mut len_before, mut turn) = (0, 0, 0);
        loop {
            let len = (hashes.len() - start).min(BATCH);
            if len > 0 {
                hashes.fill(start, &mut batch);
                self.locate(&batch, len, &mut places[turn]);
            }
            turn ^= 1;
            if len_before > 0 {
                answer(self.look_up(&places[turn], len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }

    /// Finds out where to look, and has it fetched.
    #[inline(always)]
    pub(super) fn locate(&self, hashes: &[u64; BATCH], len: usize, places: &mut Places) {
        // SAFETY: as `new`.
        unsafe {
            if let Some(buckets) = self.buckets {
                for at in (0..len).step_by(L::COUNT) {
                    let (located, fingerprints) = self.locate_lanes(L::load(&hashes[at..]), buckets);
                    for (bits, bucket) in places.bits.iter_mut().zip(located) {
                        bucket.product(L::splat(self.bucket_bits)).store(&mut bits[at..]);
                    }
                    fingerprints.store(&mut places.fingerprints[at..]);
                }
            } else {
                for (at, &hash) in hashes.iter().enumerate().take(len.next_multiple_of(L::COUNT)) {
                    let ((first, second), fingerprint) = self.address.buckets(hash);
                    places.bits[0][at] = first * self.bucket_bits;
                    places.bits[1][at] = second * self.bucket_bits;
                    places.fingerprints[at] = fingerprint.get().into();
                }
            }
            if self.bytes.len() >= FETCH_FROM {
                for bits in places.bits.as_flattened() {
                    L::fetch(self.bytes.as_ptr().wrapping_add(index(bits / 8)));
                }
            }
        }
    }

    /// The answers, a bit for each.
    #[inline(always)]
    fn look_up(&self, places: &Places, len: usize) -> u64 {
        let mut answers = 0;
        for at in (0..len).step_by(L::COUNT) {
            // SAFETY: as `new`; and every address is one of a bucket inside the table.
            let found = unsafe {
                let buckets = [L::load(&places.bits[0][at..]), L::load(&places.bits[1][at..])];
                let fingerprints = L::load(&places.fingerprints[at..]);
                match self.table {
                    AnyTable::Single(table) => self.in_single(table, buckets, fingerprints),
                    AnyTable::Packed(table) => self.in_packed(table, buckets, fingerprints),
                }
            };
            answers |= u64::from(found & ((1 << L::COUNT) - 1)) << at;
        }
        // Behind the last item there may be others' answers.
        answers & u64::MAX >> (BATCH - len)
    }
}
