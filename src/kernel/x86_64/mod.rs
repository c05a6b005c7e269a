//! The kernels of x86-64.
//!
//! A value of [`Bmi2`], [`Avx2`] or [`Avx512`] exists only where the processor was asked and has the instructions, so that
//! their methods are safe to call.

#![allow(unsafe_code, reason = "functions that are compiled for particular instructions, and prefetching")]

mod bmi2;
mod lanes;
mod vector;

use core::arch::x86_64::__cpuid;

use super::Hashes;
use crate::{params::Params, table::Geometry};
use lanes::{Eight, Four};
use vector::Vector;

// Each of these asks the processor, once per process.
cpufeatures::new!(cpu_bmi2, "bmi1", "bmi2", "popcnt");
cpufeatures::new!(cpu_avx2, "avx2");
// To the compiler, AVX-512 comes with FMA.
cpufeatures::new!(cpu_avx512, "avx512f", "avx512dq", "fma");

/// Proof that the processor has BMI1, BMI2 and POPCNT.
#[derive(Clone, Copy)]
pub(crate) struct Bmi2(());

/// Proof that it has AVX2 as well.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(Bmi2);

/// Proof that it has AVX-512 F and DQ as well.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Avx2);

/// AMD's processors before the third Zen (family 0x17) have `pdep`, but in microcode: it takes them some hundred cycles. All
/// kernels need it for single look-ups.
pub(super) fn has_slow_deposits() -> bool {
    // SAFETY: every x86-64 processor has the instruction. (Newer compilers know it.)
    #[allow(unused_unsafe)]
    let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
    let vendor = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
    let family = (version.eax >> 8 & 15) + (version.eax >> 20 & 255);
    // Hygon's are AMD's first ones, by another name.
    vendor == b"AuthenticAMD" && family <= 0x17 || vendor == b"HygonGenuine"
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

    /// [`Dispatch::contains_all`](super::Dispatch::contains_all), four hashes at a time.
    pub(super) fn contains_all(
        self,
        params: &Params,
        geometry: &Geometry,
        bytes: &[u8],
        hashes: &impl Hashes,
        answer: impl FnMut(u64),
    ) {
        #[target_feature(enable = "bmi1,bmi2,popcnt,avx2")]
        fn run(vector: &Vector<'_, Four>, hashes: &impl Hashes, answer: impl FnMut(u64)) {
            vector.contains_all(hashes, answer);
        }
        let vector = Vector::new(self, params, geometry, bytes);
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run(&vector, hashes, answer) }
    }
}

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        Avx2::detect().filter(|_| cpu_avx512::get()).map(Self)
    }

    #[inline]
    pub(super) fn bmi2(self) -> Bmi2 {
        self.0.bmi2()
    }

    /// [`Dispatch::contains_all`](super::Dispatch::contains_all), eight hashes at a time.
    pub(super) fn contains_all(
        self,
        params: &Params,
        geometry: &Geometry,
        bytes: &[u8],
        hashes: &impl Hashes,
        answer: impl FnMut(u64),
    ) {
        #[target_feature(enable = "bmi1,bmi2,popcnt,avx2,avx512f,avx512dq")]
        fn run(vector: &Vector<'_, Eight>, hashes: &impl Hashes, answer: impl FnMut(u64)) {
            vector.contains_all(hashes, answer);
        }
        let vector = Vector::new(self, params, geometry, bytes);
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run(&vector, hashes, answer) }
    }
}
