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
    params::Params,
    table::{Change, Deep, DeepGeometry, Form, Geometry, Instructions, Narrow, Portable, Read, Single, Wide, WideDeep},
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

/// Calls a method of BMI2 or portable code for the kind of table at hand. (The vector kernels use BMI2 for single operations.)
/// Branching on the kernel first takes the fewest instructions.
macro_rules! for_table {
    ($dispatch:ident, $geometry:ident, $method:ident or $portable:ident, ($($argument:expr),*)) => {
        match $dispatch.bmi2() {
            #[cfg(x86_kernels)]
            Some(bmi2) => match $geometry {
                Geometry::Narrow(geometry) => bmi2.$method(Narrow, geometry, $($argument),*),
                Geometry::Wide(geometry) => bmi2.$method(Wide, geometry, $($argument),*),
                Geometry::Single(geometry) => bmi2.$method(Single, geometry, $($argument),*),
            },
            #[cfg(not(x86_kernels))]
            Some(never) => match never {},
            None => match $geometry {
                Geometry::Narrow(geometry) => $portable(Narrow, geometry, $($argument),*),
                Geometry::Wide(geometry) => $portable(Wide, geometry, $($argument),*),
                Geometry::Single(geometry) => $portable(Single, geometry, $($argument),*),
            },
        }
    };
}

/// A task that works on many tables.
pub(crate) trait Task {
    type Output;

    /// Runs the task. Should be `#[inline(always)]`: inlined code is compiled for the instructions.
    fn run<I: Instructions>(self, instructions: I) -> Self::Output;
}

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

    #[cfg(not(x86_kernels))]
    #[inline(always)]
    fn bmi2(self) -> Option<core::convert::Infallible> {
        let Self::Portable = self;
        None
    }

    /// Runs a [`Read`] on a table.
    #[inline(always)]
    pub fn read<R: Read>(self, geometry: &Geometry, bytes: &[u8], read: R) -> R::Output {
        for_table!(self, geometry, read or read_portably, (bytes, read))
    }

    /// Runs a [`Change`] on a table.
    #[inline(always)]
    pub fn change<C: Change>(self, geometry: &Geometry, bytes: &mut [u8], change: C) -> C::Output {
        for_table!(self, geometry, change or change_portably, (bytes, change))
    }

    /// Runs a [`Read`] on a table with its column.
    #[inline(always)]
    pub fn read_deep<R: Read>(self, &DeepGeometry { table, column }: &DeepGeometry, bytes: &[u8], read: R) -> R::Output {
        match column.width() {
            // A filter that was planned for its final size has no column. All others have one most of the time.
            0 if table.is_narrow() => self.read_form(Narrow, &table, bytes, read),
            1..=Deep::MAX_COLUMN_BITS if table.is_narrow() => self.read_form(Deep, &(table, column), bytes, read),
            // This encoding spreads and gathers nothing, so portable code is as fast.
            _ => read_portably(WideDeep, &(table, column), bytes, read),
        }
    }

    /// Runs a [`Change`] on a table with its column.
    #[inline(always)]
    pub fn change_deep<C: Change>(
        self,
        &DeepGeometry { table, column }: &DeepGeometry,
        bytes: &mut [u8],
        change: C,
    ) -> C::Output {
        match column.width() {
            // As in `read_deep`.
            0 if table.is_narrow() => self.change_form(Narrow, &table, bytes, change),
            1..=Deep::MAX_COLUMN_BITS if table.is_narrow() => self.change_form(Deep, &(table, column), bytes, change),
            _ => change_portably(WideDeep, &(table, column), bytes, change),
        }
    }

    #[inline(always)]
    fn read_form<F: Form, R: Read>(self, form: F, geometry: &F::Geometry, bytes: &[u8], read: R) -> R::Output {
        match self.bmi2() {
            #[cfg(x86_kernels)]
            Some(bmi2) => bmi2.read(form, geometry, bytes, read),
            #[cfg(not(x86_kernels))]
            Some(never) => match never {},
            None => read_portably(form, geometry, bytes, read),
        }
    }

    #[inline(always)]
    fn change_form<F: Form, C: Change>(self, form: F, geometry: &F::Geometry, bytes: &mut [u8], change: C) -> C::Output {
        match self.bmi2() {
            #[cfg(x86_kernels)]
            Some(bmi2) => bmi2.change(form, geometry, bytes, change),
            #[cfg(not(x86_kernels))]
            Some(never) => match never {},
            None => change_portably(form, geometry, bytes, change),
        }
    }

    /// Runs a [`Task`] with the instructions for single operations.
    #[inline(always)]
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self.bmi2() {
            #[cfg(x86_kernels)]
            Some(bmi2) => bmi2.run(task),
            #[cfg(not(x86_kernels))]
            Some(never) => match never {},
            None => run_portably(task),
        }
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
                avx512.contains_all(params, geometry, bytes, hashes, answer);
            }
            #[cfg(x86_kernels)]
            Self::Avx2(avx2) if hashes.len() >= MIN_FOR_VECTORS => {
                avx2.contains_all(params, geometry, bytes, hashes, answer);
            }
            _ => hashes.each_batch(0..hashes.len(), |hashes| {
                answer(self.look_up(params, geometry, bytes, hashes));
                true
            }),
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
fn read_portably<F: Form, R: Read>(_: F, geometry: &F::Geometry, bytes: &[u8], read: R) -> R::Output {
    F::read(geometry, bytes, Portable, read)
}

/// Runs a [`Task`] with portable code.
#[inline(never)]
fn run_portably<T: Task>(task: T) -> T::Output {
    task.run(Portable)
}

/// Runs a [`Change`] with portable code, in one function per kind of table.
#[inline(never)]
fn change_portably<F: Form, C: Change>(_: F, geometry: &F::Geometry, bytes: &mut [u8], change: C) -> C::Output {
    F::change(geometry, bytes, Portable, change)
}
