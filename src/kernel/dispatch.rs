//! The choice of code for a kernel and a kind of table: the only place that branches on them.

#![allow(clippy::inline_always, reason = "the choice is inlined into its caller, the chosen code is a separate function")]

use super::{Hashes, Kernel, batch::BatchLookup};
#[cfg(x86_kernels)]
use super::{
    Tables,
    batch::MIN_FOR_VECTORS,
    x86_64::{Avx2, Avx512, Bmi2},
};
use crate::{
    bits::IS_SMALLEST,
    params::Params,
    table::{Change, Deep, DeepGeometry, Form, Geometry, Narrow, Portable, Read, Single, Slotwise, SlotwiseGeometry, Task, Wide},
};

/// A kernel that the processor supports. Only detection makes the tokens.
#[derive(Clone, Copy)]
pub(crate) enum Dispatch {
    Portable,
    #[cfg(x86_kernels)]
    Bmi2(Bmi2),
    #[cfg(x86_kernels)]
    Avx2(Avx2),
    #[cfg(x86_kernels)]
    Avx512(Avx512),
}

#[cfg_attr(not(x86_kernels), expect(clippy::unused_self, reason = "the only kernel is the portable one"))]
impl Dispatch {
    /// Returns the fastest kernel available.
    pub fn best() -> Self {
        Self::of(Kernel::best()).unwrap_or(Self::Portable)
    }

    /// Returns this kernel if it is compiled in and the processor supports it.
    pub fn of(kernel: Kernel) -> Option<Self> {
        match kernel {
            Kernel::Portable => Some(Self::Portable),
            #[cfg(x86_kernels)]
            Kernel::Bmi2 => Bmi2::detect().map(Self::Bmi2),
            #[cfg(x86_kernels)]
            Kernel::Avx2 => Avx2::detect().map(Self::Avx2),
            #[cfg(x86_kernels)]
            Kernel::Avx512 => Avx512::detect().map(Self::Avx512),
            #[cfg(not(x86_kernels))]
            _ => None,
        }
    }

    /// Returns the public name of this kernel.
    pub fn kernel(self) -> Kernel {
        match self {
            Self::Portable => Kernel::Portable,
            #[cfg(x86_kernels)]
            Self::Bmi2(_) => Kernel::Bmi2,
            #[cfg(x86_kernels)]
            Self::Avx2(_) => Kernel::Avx2,
            #[cfg(x86_kernels)]
            Self::Avx512(_) => Kernel::Avx512,
        }
    }

    /// Returns the instructions for single operations, or `None` for portable code.
    #[cfg(x86_kernels)]
    #[inline(always)]
    fn bmi2(self) -> Option<Bmi2> {
        match self {
            Self::Portable => None,
            Self::Bmi2(bmi2) => Some(bmi2),
            Self::Avx2(avx2) => Some(avx2.bmi2()),
            Self::Avx512(avx512) => Some(avx512.bmi2()),
        }
    }

    /// Runs a [`Read`] on a table.
    #[inline(always)]
    pub fn read<R: Read>(self, geometry: &Geometry, bytes: &[u8], read: R) -> R::Output {
        match geometry {
            // One piece of code for all tables, except for lookups in the most frequent kind.
            geometry if IS_SMALLEST && !(R::IS_HOT && matches!(geometry, Geometry::Narrow(_))) => {
                read_slotwise(geometry.into(), bytes, read)
            }
            Geometry::Narrow(geometry) => {
                #[cfg(x86_kernels)]
                if let Some(bmi2) = self.bmi2() {
                    return bmi2.read::<Narrow, R>(geometry, bytes, read);
                }
                read_portably::<Narrow, R>(geometry, bytes, read)
            }
            // These spread and gather nothing, which is what BMI2 is for.
            Geometry::Wide(geometry) => read_portably::<Wide, R>(geometry, bytes, read),
            Geometry::Single(geometry) => read_portably::<Single, R>(geometry, bytes, read),
        }
    }

    /// Runs a [`Change`] on a table.
    #[inline(always)]
    pub fn change<C: Change>(self, geometry: &Geometry, bytes: &mut [u8], change: C) -> C::Output {
        match geometry {
            Geometry::Narrow(geometry) => {
                #[cfg(x86_kernels)]
                if let Some(bmi2) = self.bmi2() {
                    return bmi2.change::<Narrow, C>(geometry, bytes, change);
                }
                change_portably::<Narrow, C>(geometry, bytes, change)
            }
            Geometry::Wide(geometry) => change_portably::<Wide, C>(geometry, bytes, change),
            Geometry::Single(geometry) => change_portably::<Single, C>(geometry, bytes, change),
        }
    }

    /// Runs a [`Read`] on a packed table with its column.
    #[inline(always)]
    pub fn read_deep<R: Read>(self, geometry: &DeepGeometry, bytes: &[u8], read: R) -> R::Output {
        if IS_SMALLEST {
            return read_slotwise(geometry.into(), bytes, read);
        }
        if !geometry.table.is_narrow() {
            // This encoding spreads and gathers nothing, so portable code is as fast.
            return read_portably::<Deep<Wide>, R>(geometry, bytes, read);
        }
        #[cfg(x86_kernels)]
        if let Some(bmi2) = self.bmi2() {
            return bmi2.read::<Deep<Narrow>, R>(geometry, bytes, read);
        }
        read_portably::<Deep<Narrow>, R>(geometry, bytes, read)
    }

    /// Runs a [`Change`] on a packed table with its column.
    #[inline(always)]
    pub fn change_deep<C: Change>(self, geometry: &DeepGeometry, bytes: &mut [u8], change: C) -> C::Output {
        if !geometry.table.is_narrow() {
            // As in `read_deep`.
            return change_portably::<Deep<Wide>, C>(geometry, bytes, change);
        }
        #[cfg(x86_kernels)]
        if let Some(bmi2) = self.bmi2() {
            return bmi2.change::<Deep<Narrow>, C>(geometry, bytes, change);
        }
        change_portably::<Deep<Narrow>, C>(geometry, bytes, change)
    }

    /// Runs a [`Task`] with the instructions for single operations.
    #[inline(always)]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        #[cfg(x86_kernels)]
        if let Some(bmi2) = self.bmi2() {
            return bmi2.run(task);
        }
        run_portably(task)
    }

    /// Looks up all hashes. Calls `answer` once for each [`BATCH`](super::BATCH) of them, in order. Bit i of its argument is the
    /// result for the i-th hash of the batch.
    pub fn contains_all(
        self,
        params: &Params,
        geometry: &Geometry,
        bytes: &[u8],
        hashes: &impl Hashes,
        mut answer: impl FnMut(u64),
    ) {
        match self {
            #[cfg(x86_kernels)]
            Self::Avx512(avx512) if hashes.len() >= MIN_FOR_VECTORS => {
                avx512.contains_all(params, bytes, hashes, answer);
            }
            #[cfg(x86_kernels)]
            Self::Avx2(avx2) if hashes.len() >= MIN_FOR_VECTORS => {
                avx2.contains_all(params, bytes, hashes, answer);
            }
            _ => hashes.each_batch(0..hashes.len(), |hashes| answer(self.look_up(params, geometry, bytes, hashes))),
        }
    }

    /// Looks up a batch. A separate function: inlined, it would be compiled for every type of items and results.
    #[inline(never)]
    fn look_up(self, params: &Params, geometry: &Geometry, bytes: &[u8], hashes: &[u64]) -> u64 {
        self.read(geometry, bytes, BatchLookup { params, hashes })
    }

    /// Looks up all hashes in many tables if the kernel has vectors and they pay; otherwise returns false without calling
    /// `answer`. Calls `answer` once for each [`BATCH`](super::BATCH) of the hashes, in order. Bit i of the second argument is
    /// the result for the i-th hash of the first.
    #[cfg(x86_kernels)]
    pub fn contains_all_in<'a>(
        self,
        tables: impl Tables<'a>,
        prefetches: bool,
        hashes: &impl Hashes,
        answer: impl FnMut(&[u64], u64),
    ) -> bool {
        match self {
            _ if hashes.len() < MIN_FOR_VECTORS => false,
            Self::Avx512(avx512) => avx512.contains_all_in(tables, prefetches, hashes, answer),
            Self::Avx2(avx2) => avx2.contains_all_in(tables, prefetches, hashes, answer),
            _ => false,
        }
    }
}

/// Runs a [`Read`] with portable code. There is one function per kind of table: if all were inlined into one function, each would
/// save the registers that the others need.
#[inline(never)]
fn read_portably<F: Form, R: Read>(geometry: &F::Geometry, bytes: &[u8], read: R) -> R::Output {
    F::read(geometry, bytes, Portable, read)
}

/// Runs a [`Read`] slot by slot.
#[inline(never)]
fn read_slotwise<R: Read>(geometry: SlotwiseGeometry<'_>, bytes: &[u8], read: R) -> R::Output {
    read.run(&Slotwise { geometry, bytes })
}

/// Runs a [`Task`] with portable code.
#[inline(never)]
fn run_portably<T: Task>(task: T) -> T::Output {
    task.run(Portable)
}

/// Runs a [`Change`] with portable code, in one function per kind of table.
#[inline(never)]
fn change_portably<F: Form, C: Change>(geometry: &F::Geometry, bytes: &mut [u8], change: C) -> C::Output {
    F::change(geometry, bytes, Portable, change)
}
