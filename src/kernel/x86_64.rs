//! The kernels of x86-64.
//!
//! # Safety
//! Every function here may only be called on a processor that has the instructions it is compiled for.

#![allow(unsafe_code, reason = "the instructions of particular processors")]

use core::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_prefetch, _mm256_add_epi64, _mm256_and_si256, _mm256_castsi256_pd,
    _mm256_cmpeq_epi64, _mm256_cmpgt_epi64, _mm256_i64gather_epi64, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_pd,
    _mm256_mul_epu32, _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srl_epi64,
    _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_xor_si256, _mm512_add_epi64, _mm512_and_si512,
    _mm512_i64gather_epi64, _mm512_loadu_si512, _mm512_mask_add_epi64, _mm512_min_epu64, _mm512_movepi64_mask, _mm512_mul_epu32,
    _mm512_mullo_epi64, _mm512_or_si512, _mm512_set1_epi64, _mm512_srl_epi64, _mm512_srlv_epi64, _mm512_storeu_si512,
    _mm512_sub_epi64, _mm512_testn_epi64_mask, _mm512_xor_si512, _pdep_u64, _pext_u64,
};
use core::ops::Range;

use super::{
    Kernel,
    batch::{Hashes, one_by_one},
    vector::{Lanes, Vector},
};
use crate::{
    bits::low_quarter,
    storage::Storage,
    table::Address,
    table::codebook::{self, CODEWORD_BITS},
    table::{AnyTable, Fingerprint, Narrow, Packed, Spread, Table as _},
};

/// Looks one hash up: spreads both buckets over fields of 16 or 32 bits and compares all their fingerprints, without a
/// branch. Absent or present costs the same.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
pub(super) fn contains<S: Storage>(table: &Packed<S>, address: &Address, hash: u64) -> bool {
    let ((first, second), fingerprint) = address.buckets(hash);
    if !table.is_narrow() {
        return in_wide_buckets(table, first, second, fingerprint);
    }
    // Not keys, in the order of the slots: fingerprints as they are take fewer steps to compare.
    let (spread, wanted) = (table.spread(), u64::from(fingerprint.get()).wrapping_mul(LANES));
    let (first, second) = (table.word(first), table.word(second));
    let difference = |bucket: u64| {
        let nibbles = u64::from(codebook::decode(bucket));
        (_pdep_u64(bucket >> CODEWORD_BITS, spread) | _pdep_u64(nibbles, 15 * LANES)) ^ wanted
    };
    has_zero(difference(first), LANES) | has_zero(difference(second), LANES)
}

/// Inserts into a narrow table.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
pub(super) fn insert(table: &mut Packed, address: &Address, hash: u64) -> bool {
    let (buckets, fingerprint) = address.buckets(hash);
    table.insert_as::<Narrow<Deposits>>(buckets, fingerprint)
}

/// Inserts into a narrow table, into the item's first bucket only.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
pub(super) fn put(table: &mut Packed, address: &Address, hash: u64) -> bool {
    let (bucket, fingerprint) = address.locate(hash);
    table.put_as::<Narrow<Deposits>>(bucket, fingerprint)
}

/// Removes from a narrow table.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
pub(super) fn remove(table: &mut Packed, address: &Address, hash: u64) -> bool {
    let (buckets, fingerprint) = address.buckets(hash);
    table.remove_as::<Narrow<Deposits>>(buckets, fingerprint)
}

/// Checks buckets of a narrow table, and counts what is in them.
#[target_feature(enable = "bmi1,bmi2")]
pub(super) fn taken<S: Storage>(table: &Packed<S>, buckets: Range<u64>) -> Option<u64> {
    table.taken_as::<Narrow<Deposits>>(buckets)
}

/// The lowest bits of the two fields of a word, each for a fingerprint of a wide bucket.
const WIDE: u64 = 0x0000_0001_0000_0001;

/// Of its own, for the registers that it takes.
#[target_feature(enable = "bmi1,bmi2")]
#[inline(never)]
fn in_wide_buckets<S: Storage>(table: &Packed<S>, first: u64, second: u64, fingerprint: Fingerprint) -> bool {
    let spread = table.spread();
    let wanted = u64::from(fingerprint.get()).wrapping_mul(WIDE);
    let in_bucket = |bucket: u64| {
        let nibbles = u64::from(codebook::decode(table.word(bucket)));
        let [first, second] = table.pairs(bucket);
        let pair = |high, nibbles| _pdep_u64(high, spread) | _pdep_u64(nibbles, 15 * WIDE);
        has_zero(pair(first, nibbles) ^ wanted, WIDE) | has_zero(pair(second, nibbles >> 8) ^ wanted, WIDE)
    };
    in_bucket(first) | in_bucket(second)
}

/// Is one of the fields zero that begin where `ones` has its bits, and fill the word?
#[inline]
fn has_zero(word: u64, ones: u64) -> bool {
    // The lowest field that is zero borrows, and none below it does.
    word.wrapping_sub(ones) & !word & ones.rotate_right(1) != 0
}

/// By the instructions made for it.
struct Deposits;

/// The lowest bit of each lane.
const LANES: u64 = 0x0001_0001_0001_0001;

// SAFETY of all four: nobody sees this type but the functions above, which are compiled for BMI2.
impl Spread for Deposits {
    #[inline(always)]
    fn spread(fields: u64, width: u32) -> u64 {
        unsafe { _pdep_u64(fields, ((1 << width) - 1) * LANES) }
    }

    #[inline(always)]
    fn gather(lanes: u64, width: u32) -> u64 {
        unsafe { _pext_u64(lanes, ((1 << width) - 1) * LANES) }
    }

    #[inline(always)]
    fn spread_nibbles(nibbles: u16) -> u64 {
        unsafe { _pdep_u64(nibbles.into(), LANES * 0xf000) }
    }

    #[inline(always)]
    fn gather_nibbles(lanes: u64) -> u16 {
        low_quarter(unsafe { _pext_u64(lanes, LANES * 0xf000) })
    }
}

/// Has the cache line with a byte fetched.
#[inline]
pub(super) fn fetch(byte: *const u8) {
    // SAFETY: SSE is part of every x86-64 processor, and a prefetch of whatever address is harmless.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(byte.cast()) };
}

/// One at a time, fetched ahead.
#[target_feature(enable = "bmi1,bmi2")]
pub(super) fn bmi2(table: &AnyTable<impl Storage>, address: &Address, hashes: &impl Hashes, answer: impl FnMut(u64)) {
    match table {
        AnyTable::Packed(table) => {
            one_by_one(Kernel::Bmi2, table, address, hashes, |hash| contains(table, address, hash), answer);
        }
        AnyTable::Single(table) => {
            let contains = |hash| {
                let (buckets, fingerprint) = address.buckets(hash);
                table.contains(buckets, fingerprint)
            };
            one_by_one(Kernel::Bmi2, table, address, hashes, contains, answer);
        }
    }
}

/// Four at a time.
#[target_feature(enable = "bmi1,bmi2,avx2")]
pub(super) fn avx2(table: &AnyTable<impl Storage>, address: &Address, hashes: &impl Hashes, answer: impl FnMut(u64)) {
    // SAFETY: this function is compiled for it.
    let vector = unsafe { Vector::<Four, _>::new(table, address) };
    vector.contains_all(hashes, answer);
}

/// Eight at a time.
#[target_feature(enable = "bmi1,bmi2,avx2,avx512f,avx512dq")]
pub(super) fn avx512(table: &AnyTable<impl Storage>, address: &Address, hashes: &impl Hashes, answer: impl FnMut(u64)) {
    // SAFETY: this function is compiled for it.
    let vector = unsafe { Vector::<Eight, _>::new(table, address) };
    vector.contains_all(hashes, answer);
}

/// Implements [`Lanes`] by one instruction for each method that is one.
macro_rules! lanes {
    ($name:ident($vector:ty) { $($method:ident = $instruction:ident;)* } $($rest:tt)*) => {
        #[derive(Clone, Copy)]
        struct $name($vector);

        // SAFETY: each method is the instruction that its name says.
        unsafe impl Lanes for $name {
            $(
                #[inline(always)]
                unsafe fn $method(self, other: Self) -> Self {
                    Self(unsafe { $instruction(self.0, other.0) })
                }
            )*
            #[inline(always)]
            unsafe fn fetch(byte: *const u8) {
                fetch(byte);
            }
            $($rest)*
        }
    };
}

lanes! {
    Four(__m256i) {
        add = _mm256_add_epi64;
        sub = _mm256_sub_epi64;
        and = _mm256_and_si256;
        or = _mm256_or_si256;
        xor = _mm256_xor_si256;
        shift_right_by = _mm256_srlv_epi64;
        product = _mm256_mul_epu32;
        min = _mm256_min_epu32;
    }

    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: u64) -> Self {
        Self(unsafe { _mm256_set1_epi64x(value.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn load(values: &[u64]) -> Self {
        Self(unsafe { _mm256_loadu_si256(values[..Self::COUNT].as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [u64]) {
        unsafe { _mm256_storeu_si256(values[..Self::COUNT].as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: u32>(self) -> Self {
        Self(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(BITS.cast_signed())) })
    }

    #[inline(always)]
    unsafe fn product_low(self, other: Self) -> Self {
        unsafe {
            // The upper halves' product is beyond the lower half of the whole.
            let (self_high, other_high) = (self.shift_right::<32>(), other.shift_right::<32>());
            let crossed = self_high.product(other).add(self.product(other_high));
            self.product(other).add(Self(_mm256_slli_epi64::<32>(crossed.0)))
        }
    }

    #[inline(always)]
    unsafe fn none(self, mask: Self) -> u32 {
        let equal = unsafe { _mm256_cmpeq_epi64(_mm256_and_si256(self.0, mask.0), _mm256_setzero_si256()) };
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(equal)) }.cast_unsigned()
    }

    #[inline(always)]
    unsafe fn add_if_negative(self, other: Self) -> Self {
        unsafe { self.add(Self(_mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0)).and(other)) }
    }

    #[inline(always)]
    unsafe fn gather(self, base: *const u8) -> Self {
        Self(unsafe { _mm256_i64gather_epi64::<1>(base.cast(), self.0) })
    }

    #[inline(always)]
    unsafe fn gather_pairs(self, base: *const u16) -> Self {
        Self(unsafe { _mm256_i64gather_epi64::<2>(base.cast(), self.0) })
    }
}

lanes! {
    Eight(__m512i) {
        add = _mm512_add_epi64;
        sub = _mm512_sub_epi64;
        and = _mm512_and_si512;
        or = _mm512_or_si512;
        xor = _mm512_xor_si512;
        shift_right_by = _mm512_srlv_epi64;
        product = _mm512_mul_epu32;
        product_low = _mm512_mullo_epi64;
        min = _mm512_min_epu64;
    }

    const COUNT: usize = 8;

    #[inline(always)]
    unsafe fn splat(value: u64) -> Self {
        Self(unsafe { _mm512_set1_epi64(value.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn load(values: &[u64]) -> Self {
        Self(unsafe { _mm512_loadu_si512(values[..Self::COUNT].as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, values: &mut [u64]) {
        unsafe { _mm512_storeu_si512(values[..Self::COUNT].as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    unsafe fn shift_right<const BITS: u32>(self) -> Self {
        Self(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(BITS.cast_signed())) })
    }

    #[inline(always)]
    unsafe fn none(self, mask: Self) -> u32 {
        unsafe { _mm512_testn_epi64_mask(self.0, mask.0) }.into()
    }

    #[inline(always)]
    unsafe fn add_if_negative(self, other: Self) -> Self {
        Self(unsafe { _mm512_mask_add_epi64(self.0, _mm512_movepi64_mask(self.0), self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn gather(self, base: *const u8) -> Self {
        Self(unsafe { _mm512_i64gather_epi64::<1>(self.0, base.cast()) })
    }

    #[inline(always)]
    unsafe fn gather_pairs(self, base: *const u16) -> Self {
        Self(unsafe { _mm512_i64gather_epi64::<2>(self.0, base.cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{BATCH, vector::Places},
        *,
    };
    use crate::{
        params::Params,
        params::{Addressing, TableKind},
    };

    /// Buckets of tables that no machine has the memory for: only where they would be is compared.
    fn agree<L: Lanes>(f: u32, buckets: u64, addressing: Addressing) {
        let params = |buckets| Params::new(TableKind::Single, f, 4, buckets, addressing, 0).unwrap();
        let (table, address) = (AnyTable::new(&params(2)).unwrap(), Address::new(&params(buckets)));
        // SAFETY: the caller has checked.
        let vector = unsafe { Vector::<L, _>::new(&table, &address) };
        let mut hashes = [0; BATCH];
        for (i, hash) in hashes.iter_mut().enumerate() {
            *hash = (i as u64 * 2 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32);
        }
        hashes[..4].copy_from_slice(&[0, 1, u64::MAX, u64::MAX << 32]);
        let mut places = Places::new();
        vector.locate(&hashes, BATCH, &mut places);
        for (i, &hash) in hashes.iter().enumerate() {
            let ((first, second), fingerprint) = address.buckets(hash);
            let bits = u64::from(params(2).bucket_bits());
            assert_eq!(places.bits.map(|bits| bits[i]), [first * bits, second * bits], "{f} {buckets} {addressing} {hash:#x}");
            assert_eq!(places.fingerprints[i], u64::from(fingerprint.get()));
        }
    }

    #[test]
    fn vectors_find_the_same_buckets() {
        for f in [2, 5, 8, 13, 21, 28] {
            for buckets in [2, 6, 1 << 20, (1 << 31) - 2, 1 << 31, (1 << 32) - 2, 1 << 32, (1 << 32) + 2, 1 << 35] {
                if Kernel::Avx2.is_available() {
                    agree::<Four>(f, buckets, Addressing::AnySize);
                }
                if Kernel::Avx512.is_available() {
                    agree::<Eight>(f, buckets, Addressing::AnySize);
                }
            }
        }
        if Kernel::Avx2.is_available() {
            agree::<Four>(13, 1 << 31, Addressing::PowerOfTwo);
        }
    }
}
