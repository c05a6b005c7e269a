//! Single operations with `pdep` and `pext`. In one instruction, each of these moves all fields of a bucket to or from the
//! quarters of a word.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    arch::x86_64::{
        _MM_HINT_T0, _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_prefetch, _mm_set_epi64x, _mm_set1_epi16, _pdep_u64, _pext_u64,
    },
    ops::Deref,
};

use super::Bmi2;
use crate::{
    bits::low_quarter,
    table::{
        Change, Fingerprint, Form, Instructions, Keys, Packed, Pair, Read, TableMut, Task,
        codebook::{self, CODEWORD_BITS},
    },
};

/// The lowest bit of each quarter of a word.
const QUARTERS: u64 = 0x0001_0001_0001_0001;

/// Prefetches the cache line of an address, which may be invalid.
#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    // SAFETY: every x86-64 processor has SSE, and a prefetch is only a hint: it never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

impl Bmi2 {
    /// Runs a [`Read`] on a table.
    #[inline(always)]
    pub(in crate::kernel) fn read<F: Form, R: Read>(self, geometry: &F::Geometry, bytes: &[u8], read: R) -> R::Output {
        // If the whole program is compiled for these instructions, a lookup can be inlined into its caller.
        #[cfg(all(target_feature = "bmi1", target_feature = "bmi2", target_feature = "popcnt"))]
        {
            F::read(geometry, bytes, self, read)
        }
        #[cfg(not(all(target_feature = "bmi1", target_feature = "bmi2", target_feature = "popcnt")))]
        {
            /// Reads in one function per kind of table: if all were inlined into one function, each would save the registers that
            /// the others need.
            #[target_feature(enable = "bmi1,bmi2,popcnt")]
            #[inline(never)]
            fn run<F: Form, R: Read>(bmi2: Bmi2, geometry: &F::Geometry, bytes: &[u8], read: R) -> R::Output {
                F::read(geometry, bytes, bmi2, read)
            }
            // SAFETY: `self` proves that the processor has the instructions.
            unsafe { run::<F, R>(self, geometry, bytes, read) }
        }
    }

    /// Runs a [`Change`] on a table.
    #[inline(always)]
    pub(in crate::kernel) fn change<F: Form, C: Change>(self, geometry: &F::Geometry, bytes: &mut [u8], change: C) -> C::Output {
        #[target_feature(enable = "bmi1,bmi2,popcnt")]
        #[inline(never)]
        fn run<F: Form, C: Change>(bmi2: Bmi2, geometry: &F::Geometry, bytes: &mut [u8], change: C) -> C::Output {
            F::change(geometry, bytes, bmi2, change)
        }
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run::<F, C>(self, geometry, bytes, change) }
    }

    /// Runs a [`Task`].
    #[inline(always)]
    pub(in crate::kernel) fn run<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "bmi1,bmi2,popcnt")]
        #[inline(never)]
        fn run<T: Task>(bmi2: Bmi2, task: T) -> T::Output {
            task.run(bmi2)
        }
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run(self, task) }
    }

    #[allow(clippy::unused_self, reason = "`self` is the proof")]
    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { _pdep_u64(bits, mask) }
    }
}

impl Instructions for Bmi2 {
    #[inline(always)]
    fn spread(self, fields: u64, width: u32) -> u64 {
        self.deposit(fields, ((1 << width) - 1) * QUARTERS)
    }

    #[inline(always)]
    fn gather(self, quarters: u64, width: u32) -> u64 {
        self.extract(quarters, ((1 << width) - 1) * QUARTERS)
    }

    #[inline(always)]
    fn spread_nibbles(self, nibbles: u16) -> u64 {
        self.deposit(nibbles.into(), QUARTERS * 0xf000)
    }

    #[inline(always)]
    fn gather_nibbles(self, quarters: u64) -> u16 {
        low_quarter(self.extract(quarters, QUARTERS * 0xf000))
    }

    #[inline(always)]
    fn extract(self, word: u64, mask: u64) -> u64 {
        // SAFETY: `self` proves that the processor has the instruction.
        unsafe { _pext_u64(word, mask) }
    }

    /// Unpacks both buckets into quarters of words and compares all fingerprints without a branch, so that hits and misses take
    /// the same time. Compares plain fingerprints instead of `Keys`, which takes fewer steps.
    #[inline(always)]
    fn contains_narrow<K: Keys, B: Deref<Target = [u8]>, const COLUMN: bool>(
        table: &Packed<'_, K, B, Self, COLUMN>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        let (bmi2, highs) = (table.instructions, table.geometry.high_quarters);
        let fingerprints = |word: u64| {
            let nibbles = u64::from(codebook::decode(word));
            bmi2.deposit(word >> CODEWORD_BITS, highs) | bmi2.deposit(nibbles, 15 * QUARTERS)
        };
        // Avoids `map`, which is a call without link-time optimization.
        let [first, second] = table.words(buckets);
        any_quarter_equals(low_quarter(fingerprint.wide()), [fingerprints(first), fingerprints(second)])
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8], position: usize) {
        prefetch(bytes.as_ptr().wrapping_add(position));
    }

    #[inline(always)]
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output {
        #[inline(never)]
        #[target_feature(enable = "bmi1,bmi2,popcnt")]
        fn run<T: TableMut, C: Change>(table: &mut T, change: C) -> C::Output {
            change.run(table)
        }
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run(table, change) }
    }
}

/// Returns true if one of the words has `wanted` in one of its four quarters.
#[inline(always)]
fn any_quarter_equals(wanted: u16, [first, second]: [u64; 2]) -> bool {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe {
        let words = _mm_set_epi64x(second.cast_signed(), first.cast_signed());
        _mm_movemask_epi8(_mm_cmpeq_epi16(words, _mm_set1_epi16(wanted.cast_signed()))) != 0
    }
}
