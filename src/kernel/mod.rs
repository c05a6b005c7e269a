//! Kernels: the code of all filter operations, compiled for different instruction sets. All kernels give the same answers and
//! write the same bytes. The fastest one is chosen once per process; each filter can be set to use another.
//!
//! ```text
//! RawFilter ──Read or Change──▶ Dispatch ──▶ Portable ─┐
//!                                        ──▶ Bmi2 ─────┴──▶ Single, Narrow, Wide
//!                                        ──▶ Avx2, Avx512   look-ups in batches; otherwise Bmi2
//! ```
//!
//! [`Dispatch`] is the only place that branches on the kernel and the kind of table. The code behind it is compiled separately
//! for each combination. `unsafe` is confined to `x86_64`, where a value of a token type proves that the processor supports the
//! instructions.

mod batch;
mod choice;
mod dispatch;
#[cfg(test)]
mod tests;
#[cfg(x86_kernels)]
mod x86_64;

#[cfg(x86_kernels)]
pub(crate) use batch::Tables;
pub(crate) use batch::{BATCH, FEWEST_FOR_VECTORS, Hashes, PREFETCH_FROM, answers, prefetch};
pub use choice::Kernel;
pub(crate) use dispatch::{Dispatch, Layout, Task};
