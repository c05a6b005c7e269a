//! The look-ups, in the instructions of particular processors. All kernels give the same answers; which one gives them is
//! chosen once per process, and can be said otherwise for each filter.
//!
//! All of the library's `unsafe` code is here.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's processor, what is called is not")]

mod batch;
mod choice;
mod memory;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
mod vector;
#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
mod x86_64;

pub(crate) use batch::{BATCH, Hashes, Located};
pub use choice::Kernel;
pub(crate) use memory::Memory;

use core::hint::black_box;

use crate::{
    address::Address,
    table::{AnyTable, Table, with_table},
};

impl Kernel {
    /// Looks one hash up.
    #[inline]
    #[cfg_attr(not(all(feature = "kernels", target_arch = "x86_64")), allow(clippy::unused_self))]
    pub(crate) fn contains(self, table: &AnyTable, address: &Address, hash: u64) -> bool {
        match table {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            AnyTable::Packed(packed) if self >= Self::Bmi2 => {
                // SAFETY: only a kernel that is available can be chosen, and BMI2 is part of this one and those after it.
                #[allow(unsafe_code)]
                unsafe {
                    x86_64::contains(packed, address, hash)
                }
            }
            table => {
                let (buckets, fingerprint) = address.buckets(hash);
                with_table!(table, table => table.contains(buckets, fingerprint))
            }
        }
    }

    /// Has two buckets fetched, so that they are at hand when they are needed.
    #[inline(always)]
    pub(crate) fn fetch<T: Table>(self, table: &T, buckets: [u64; 2]) {
        for bucket in buckets {
            let position = table.position(bucket);
            match self {
                #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
                Self::Bmi2 | Self::Avx2 | Self::Avx512 => x86_64::fetch(table.memory().as_ptr().wrapping_add(position)),
                // A read that nothing waits for.
                _ => _ = black_box(table.memory()[position]),
            }
        }
    }

    /// Looks all hashes up. Each [`BATCH`] of them, in their order, gives `answer` one number whose bit i is the answer for
    /// the i-th of them.
    pub(crate) fn contains_all(self, table: &AnyTable, address: &Address, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        match self {
            #[cfg(all(feature = "kernels", target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 | Self::Bmi2 => {
                // SAFETY: only a kernel that is available can be chosen.
                #[allow(unsafe_code)]
                unsafe {
                    match self {
                        Self::Avx512 => x86_64::avx512(table, address, hashes, answer),
                        Self::Avx2 => x86_64::avx2(table, address, hashes, answer),
                        _ => x86_64::bmi2(table, address, hashes, answer),
                    }
                }
            }
            _ => with_table!(table, table => {
                let contains = |buckets, fingerprint| table.contains(buckets, fingerprint);
                scalar::contains_all(self, table, address, hashes, contains, answer);
            }),
        }
    }
}
