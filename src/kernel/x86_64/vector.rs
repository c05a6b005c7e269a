//! [`Vector`], which hides the intrinsics of AVX2 (four numbers) and AVX-512 (eight numbers).

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    arch::x86_64::{
        __m256i, __m512i, _mm_cvtsi32_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64,
        _mm256_cmpgt_epi64, _mm256_i64gather_epi64, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_pd, _mm256_mul_epu32,
        _mm256_or_si256, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srl_epi64, _mm256_srlv_epi64,
        _mm256_storeu_si256, _mm256_sub_epi64, _mm256_xor_si256, _mm512_add_epi64, _mm512_and_si512, _mm512_i64gather_epi64,
        _mm512_loadu_si512, _mm512_mask_add_epi64, _mm512_min_epu64, _mm512_movepi64_mask, _mm512_mul_epu32, _mm512_mullo_epi64,
        _mm512_or_si512, _mm512_set1_epi64, _mm512_srl_epi64, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
        _mm512_testn_epi64_mask, _mm512_xor_si512,
    },
    ptr,
};

use super::{Avx2, Avx512};

/// A vector of 64-bit numbers. A value can be made only with a proof, so the methods are safe to call. They must be inlined into
/// functions that are compiled for the instructions.
pub(super) trait Vector: Copy {
    /// Proof that the processor supports the instructions.
    type Proof: Copy;

    const COUNT: usize;

    /// Does the work in a separate function that is compiled for the instructions. Pass a `move` closure: it keeps one reference
    /// to a struct, other closures keep one to each field that they change.
    fn run<R>(proof: Self::Proof, work: impl FnOnce() -> R) -> R;
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
    /// Returns the 64-bit products of the lower 32 bits of the numbers.
    fn product(self, other: Self) -> Self;
    /// Returns the lower 64 bits of the products.
    fn product_low(self, other: Self) -> Self;
    /// Tests which numbers have no bit in common with `mask`: bit i of the result is set if number i has none.
    fn none(self, mask: Self) -> u32;
    /// Adds `other` to the numbers whose highest bit is set.
    fn add_if_negative(self, other: Self) -> Self;
    /// Returns the smaller numbers of the two vectors. All must be below 2³².
    fn min(self, other: Self) -> Self;
    /// Loads eight bytes from each address `base + self`.
    ///
    /// # Safety
    /// The eight bytes at each address must be inside the same allocation as `base`.
    unsafe fn gather(self, base: *const u8) -> Self;
    /// Loads eight bytes from each address `starts[i] + self`.
    ///
    /// # Safety
    /// The eight bytes at each address must be inside the same allocation as `starts[i]`, whose provenance must be exposed.
    unsafe fn gather_from(self, starts: &[*const u8]) -> Self;
    /// Loads eight bytes from each address `base + 2·self`.
    ///
    /// # Safety
    /// The eight bytes at each address must be inside the same allocation as `base`.
    unsafe fn gather_pairs(self, base: *const u16) -> Self;
}

/// Calls one or more intrinsics. The vector's type proves that the processor supports them.
macro_rules! proved {
    ($instructions:expr) => {{
        // SAFETY: a value of the vector type or of its proof exists only if the processor supports the instructions, and all
        // loads and stores are inside a slice.
        unsafe { $instructions }
    }};
}

/// Implements [`Vector`]. Methods that are a single instruction for two vectors are listed as pairs.
macro_rules! vector {
    (
        $name:ident($register:ty), $proof:ty, $features:literal,
        splat = $splat:ident, load = $load:ident, store = $store:ident, shift_right = $shift_right:ident
        { $($method:ident = $instruction:ident;)* } $($rest:tt)*
    ) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name($register);

        impl Vector for $name {
            type Proof = $proof;

            const COUNT: usize = size_of::<$register>() / size_of::<u64>();

            $(
                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    Self(proved!($instruction(self.0, other.0)))
                }
            )*
            // Only `inline(never)` on this outer function keeps the work separate: the compiler (1.95) inlines the inner one into
            // callers that are compiled for the same instructions, even against `inline(never)`.
            #[inline(never)]
            fn run<R>(_: $proof, work: impl FnOnce() -> R) -> R {
                #[target_feature(enable = $features)]
                fn run<R>(work: impl FnOnce() -> R) -> R {
                    work()
                }
                // SAFETY: the proof exists only if the processor has the instructions.
                unsafe { run(work) }
            }

            #[inline(always)]
            fn splat(_: $proof, value: u64) -> Self {
                Self(proved!($splat(value.cast_signed())))
            }

            #[inline(always)]
            fn load(_: $proof, values: &[u64]) -> Self {
                let values = &values[..Self::COUNT];
                Self(proved!($load(values.as_ptr().cast())))
            }

            #[inline(always)]
            fn store(self, values: &mut [u64]) {
                let values = &mut values[..Self::COUNT];
                proved!($store(values.as_mut_ptr().cast(), self.0));
            }

            #[inline(always)]
            fn shift_right<const BITS: u32>(self) -> Self {
                Self(proved!($shift_right(self.0, _mm_cvtsi32_si128(BITS.cast_signed()))))
            }

            #[inline(always)]
            unsafe fn gather_from(self, starts: &[*const u8]) -> Self {
                let starts = &starts[..Self::COUNT];
                let addresses = self.add(Self(proved!($load(starts.as_ptr().cast()))));
                // SAFETY: the caller guarantees that all addresses are inside allocations.
                unsafe { addresses.gather(ptr::with_exposed_provenance(0)) }
            }
            $($rest)*
        }
    };
}

vector! {
    U64x4(__m256i), Avx2, "bmi1,bmi2,popcnt,avx2",
    splat = _mm256_set1_epi64x, load = _mm256_loadu_si256, store = _mm256_storeu_si256, shift_right = _mm256_srl_epi64
    {
        add = _mm256_add_epi64;
        sub = _mm256_sub_epi64;
        and = _mm256_and_si256;
        or = _mm256_or_si256;
        xor = _mm256_xor_si256;
        shift_right_by = _mm256_srlv_epi64;
        product = _mm256_mul_epu32;
        min = _mm256_min_epu32;
    }

    #[inline(always)]
    fn product_low(self, other: Self) -> Self {
        // The product of the upper halves does not reach the lower half of the result.
        let (self_high, other_high) = (self.shift_right::<32>(), other.shift_right::<32>());
        let crossed = self_high.product(other).add(self.product(other_high));
        self.product(other).add(Self(proved!(_mm256_slli_epi64::<32>(crossed.0))))
    }

    #[inline(always)]
    fn none(self, mask: Self) -> u32 {
        let equal = proved!(_mm256_cmpeq_epi64(_mm256_and_si256(self.0, mask.0), _mm256_setzero_si256()));
        proved!(_mm256_movemask_pd(_mm256_castsi256_pd(equal))).cast_unsigned()
    }

    #[inline(always)]
    fn add_if_negative(self, other: Self) -> Self {
        self.add(Self(proved!(_mm256_cmpgt_epi64(_mm256_setzero_si256(), self.0))).and(other))
    }

    #[inline(always)]
    unsafe fn gather(self, base: *const u8) -> Self {
        // SAFETY: the caller guarantees that all addresses are inside the allocation of `base`.
        Self(unsafe { _mm256_i64gather_epi64::<1>(base.cast(), self.0) })
    }

    #[inline(always)]
    unsafe fn gather_pairs(self, base: *const u16) -> Self {
        // SAFETY: the caller guarantees that all addresses are inside the allocation of `base`.
        Self(unsafe { _mm256_i64gather_epi64::<2>(base.cast(), self.0) })
    }
}

vector! {
    U64x8(__m512i), Avx512, "bmi1,bmi2,popcnt,avx2,avx512f,avx512dq",
    splat = _mm512_set1_epi64, load = _mm512_loadu_si512, store = _mm512_storeu_si512, shift_right = _mm512_srl_epi64
    {
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

    #[inline(always)]
    fn none(self, mask: Self) -> u32 {
        proved!(_mm512_testn_epi64_mask(self.0, mask.0)).into()
    }

    #[inline(always)]
    fn add_if_negative(self, other: Self) -> Self {
        Self(proved!(_mm512_mask_add_epi64(self.0, _mm512_movepi64_mask(self.0), self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn gather(self, base: *const u8) -> Self {
        // SAFETY: the caller guarantees that all addresses are inside the allocation of `base`.
        Self(unsafe { _mm512_i64gather_epi64::<1>(self.0, base.cast()) })
    }

    #[inline(always)]
    unsafe fn gather_pairs(self, base: *const u16) -> Self {
        // SAFETY: the caller guarantees that all addresses are inside the allocation of `base`.
        Self(unsafe { _mm512_i64gather_epi64::<2>(self.0, base.cast()) })
    }
}
