//! Kernels: the code of all filter operations, compiled for different instruction sets. All kernels return the same results and
//! write the same bytes. The fastest one is chosen once per process; each filter can be set to use another.
//!
//! ```text
//! RawFilter ──Read or Change──▶ Dispatch ──▶ Portable ─┐
//!                                        ──▶ Bmi2 ─────┴──▶ Single, Narrow, Wide
//!                                        ──▶ Avx2, Avx512   lookups in batches; otherwise Bmi2
//! ```
//!
//! [`Dispatch`] is the only place that branches on the kernel and the kind of table. The code behind it is compiled separately
//! for each combination. `unsafe` is confined to `x86_64`: a value of a token type there proves that the processor supports the
//! instructions.

mod batch;
mod dispatch;
#[cfg(test)]
mod tests;
#[cfg(x86_kernels)]
mod x86_64;

use core::{fmt, str::FromStr};

use crate::params::ParamError;
pub(crate) use batch::{BATCH, Hashes, MIN_FOR_VECTORS, PREFETCH_FROM, Tables, answers, prefetch};
pub(crate) use dispatch::Dispatch;

/// The instruction set for which a filter's operations are compiled. All kernels give the same results and write the same bytes;
/// only their speed differs (docs/PERFORMANCE.md).
///
/// By default, a filter uses the [`best`](Self::best) kernel; [`Builder::kernel`](crate::Builder::kernel) selects another.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Kernel};
/// let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
/// for kernel in Kernel::available() {
///     let mut filter = builder.clone().kernel(kernel).build()?;
///     filter.insert("alice")?;
///     assert!(filter.contains("alice"));
/// }
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Safe Rust, on every target.
    Portable,
    /// x86-64 with BMI1, BMI2 and POPCNT. Unpacks buckets with `pdep`, and prefetches batches.
    Bmi2,
    /// [`Bmi2`](Self::Bmi2) plus AVX2. Looks up batches four hashes at a time.
    Avx2,
    /// [`Avx2`](Self::Avx2) plus AVX-512 F and DQ. Looks up batches eight hashes at a time.
    Avx512,
}

impl Kernel {
    /// All kernels. Each one needs the instructions of those before it.
    const ALL: [Self; 4] = [Self::Portable, Self::Bmi2, Self::Avx2, Self::Avx512];

    const NAMES: [&'static str; 4] = ["portable", "bmi2", "avx2", "avx512"];

    /// Iterates over the kernels of this build that the processor supports, from the fewest instructions to the most.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Returns true if the kernel is compiled in (feature `kernels`, on x86-64) and the processor supports it.
    #[must_use]
    pub fn is_available(self) -> bool {
        Dispatch::of(self).is_some()
    }

    /// Returns the kernel that filters use by default: the fastest one available. It is detected once per process.
    #[must_use]
    pub fn best() -> Self {
        Self::ALL[fastest()]
    }

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the kernel's implementation, or an error if it is not available.
    pub(crate) fn dispatch(self) -> Result<Dispatch, ParamError> {
        Dispatch::of(self).ok_or_else(unavailable)
    }
}

fn unavailable() -> ParamError {
    // Each kernel needs the instructions of those before it, so the available ones come first.
    ParamError::Name { parameter: "kernel", names: &Kernel::NAMES[..Kernel::available().count()] }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Parses a kernel's name: `portable`, `bmi2`, `avx2` or `avx512`. Returns an error if the kernel is not available.
impl FromStr for Kernel {
    type Err = ParamError;

    fn from_str(name: &str) -> Result<Self, ParamError> {
        Self::available().find(|kernel| kernel.name() == name).ok_or_else(unavailable)
    }
}

/// Returns the index of the fastest kernel in [`Kernel::ALL`].
#[cfg(x86_kernels)]
fn fastest() -> usize {
    use core::num::NonZeroUsize;
    use once_cell::race::OnceNonZeroUsize;
    use x86_64::has_slow_pdep;

    // The index plus one, because it must not be zero.
    static FASTEST: OnceNonZeroUsize = OnceNonZeroUsize::new();
    let place = FASTEST.get_or_init(|| {
        let is_fast = |kernel: Kernel| kernel == Kernel::Portable || kernel.is_available() && !has_slow_pdep();
        let place = Kernel::ALL.iter().rposition(|&kernel| is_fast(kernel));
        NonZeroUsize::MIN.saturating_add(place.unwrap_or(0))
    });
    place.get() - 1
}

#[cfg(not(x86_kernels))]
fn fastest() -> usize {
    0
}
