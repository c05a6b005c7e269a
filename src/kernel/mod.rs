//! The instructions with which a filter works. All kernels give the same answers and write the same bytes; one is chosen
//! once per process, and each filter can be told to use another.
//!
//! ```text
//! RawFilter ──Read or Change──▶ Dispatch ──▶ Portable ─┐
//!                                        ──▶ Bmi2 ─────┴──▶ Single, Narrow, Wide
//!                                        ──▶ Avx2, Avx512   look-ups in batches; otherwise Bmi2
//! ```
//!
//! [`Dispatch`] is the only place that asks which kernel and which table it is. Everything behind it is compiled for each
//! pair of them, and for no other: `unsafe` is confined to `x86_64`, where a value of a token type proves that the
//! processor has the instructions.

mod batch;
mod choice;
mod dispatch;
#[cfg(test)]
mod tests;
#[cfg(x86_kernels)]
mod x86_64;

pub(crate) use batch::{BATCH, Given, Hashes, PREFETCH_FROM, prefetch};
pub use choice::Kernel;
pub(crate) use dispatch::Dispatch;
