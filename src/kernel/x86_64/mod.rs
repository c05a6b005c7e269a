//! The x86-64 kernels.
//!
//! The tokens [`Bmi2`], [`Avx2`] and [`Avx512`] are made only after the instructions were detected, so their methods are safe to
//! call.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]
#![allow(unsafe_code, reason = "functions that are compiled for particular instructions, and prefetching")]

mod batch;
mod bmi2;
mod vector;

use core::{
    arch::x86_64::__cpuid,
    sync::atomic::{AtomicU8, Ordering},
};

use super::{Hashes, Tables};
use crate::params::Params;
use batch::{TableSource, VectorLookup};
use vector::{U64x4, U64x8};

// Each of these modules detects its features once per process.
cpufeatures::new!(cpu_bmi2, "bmi1", "bmi2", "popcnt");
// The compiler assumes that AVX2 implies all of these, and that AVX-512 implies FMA and F16C (`has_f16c`). A virtual machine may
// hide them nevertheless.
cpufeatures::new!(cpu_avx2, "sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2");
cpufeatures::new!(cpu_avx512, "avx512f", "avx512dq", "fma");

/// Proof that the processor supports BMI1, BMI2 and POPCNT.
#[derive(Clone, Copy)]
pub(crate) struct Bmi2(());

/// Proof that it also supports AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(Bmi2);

/// Proof that it also supports AVX-512 F and DQ.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Avx2);

/// Returns true for AMD processors before Zen 3 (family 0x17 and older), which run `pdep` in microcode and take up to hundreds of
/// cycles. All kernels except the portable one use `pdep` for single lookups.
pub(super) fn has_slow_pdep() -> bool {
    // Miri does not support `cpuid`.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: every x86-64 processor has `cpuid`. (Newer compilers know this, and need no `unsafe`.)
    #[allow(unused_unsafe)]
    let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
    let vendor = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    let vendor = vendor.as_flattened();
    let family = (version.eax >> 8 & 15) + (version.eax >> 20 & 255);
    // Hygon's processors are Zen 1 under another name.
    vendor == b"AuthenticAMD" && family <= 0x17 || vendor == b"HygonGenuine"
}

/// Returns true if the processor has F16C, which cpufeatures cannot detect. Runs `cpuid` only once per process, because it takes
/// microseconds in a virtual machine.
fn has_f16c() -> bool {
    const UNKNOWN: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    if cfg!(any(miri, target_feature = "f16c")) {
        return true;
    }
    let known = KNOWN.load(Ordering::Relaxed);
    if known != UNKNOWN {
        return known == 1;
    }
    // SAFETY: every x86-64 processor has `cpuid`. (Newer compilers know this, and need no `unsafe`.)
    #[allow(unused_unsafe)]
    let has_f16c = unsafe { __cpuid(1) }.ecx >> 29 & 1 == 1;
    KNOWN.store(has_f16c.into(), Ordering::Relaxed);
    has_f16c
}

impl Bmi2 {
    pub(super) fn detect() -> Option<Self> {
        cpu_bmi2::get().then_some(Self(()))
    }
}

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        Bmi2::detect().filter(|_| cpu_avx2::get()).map(Self)
    }

    #[inline]
    pub(super) fn bmi2(self) -> Bmi2 {
        self.0
    }
}

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        Avx2::detect().filter(|_| cpu_avx512::get() && has_f16c()).map(Self)
    }

    #[inline]
    pub(super) fn bmi2(self) -> Bmi2 {
        self.0.bmi2()
    }
}

/// Implements lookups of batches, with as many hashes at a time as `$vector` has numbers.
macro_rules! batches {
    ($token:ty, $vector:ty, $features:literal) => {
        impl $token {
            /// Implements [`Dispatch::contains_all`](super::Dispatch::contains_all).
            pub(super) fn contains_all(self, params: &Params, bytes: &[u8], hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
                self.look_up(VectorLookup::in_one(self, params, bytes), hashes, |_, results| answer(results));
            }

            /// Implements [`Dispatch::contains_all_in`](super::Dispatch::contains_all_in).
            pub(super) fn contains_all_in<'a>(
                self,
                tables: impl Tables<'a>,
                prefetches: bool,
                hashes: &impl Hashes,
                answer: impl FnMut(&[u64], u64),
            ) -> bool {
                let Some(look_up) = VectorLookup::in_many(self, tables, prefetches) else { return false };
                self.look_up(look_up, hashes, answer);
                true
            }

            fn look_up(
                self,
                look_up: VectorLookup<$vector, impl TableSource>,
                hashes: &impl Hashes,
                answer: impl FnMut(&[u64], u64),
            ) {
                #[allow(clippy::needless_pass_by_value, reason = "its fields stay in registers")]
                #[target_feature(enable = $features)]
                fn run(look_up: VectorLookup<$vector, impl TableSource>, hashes: &impl Hashes, answer: impl FnMut(&[u64], u64)) {
                    look_up.contains_all(hashes, answer);
                }
                // SAFETY: `self` proves that the processor has the instructions.
                unsafe { run(look_up, hashes, answer) }
            }
        }
    };
}

batches!(Avx2, U64x4, "bmi1,bmi2,popcnt,avx2");
batches!(Avx512, U64x8, "bmi1,bmi2,popcnt,avx2,avx512f,avx512dq");
