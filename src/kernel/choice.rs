//! Which kernels there are, and which one this processor runs best.

use alloc::{format, string::String};
use core::{fmt, str::FromStr};

use crate::error::{ParamError, Parameter};

/// The instructions with which a filter looks items up, puts them in and takes them out. All kernels give the same answers,
/// and all of them write the same bytes; they differ in speed only (docs/PERFORMANCE.md).
///
/// Without being told otherwise, a filter takes the [`best`](Self::best) one.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Safe Rust, on every machine.
    Portable,
    /// x86-64 with BMI1 and BMI2: bits are spread by `pdep`, and batches prefetched.
    Bmi2,
    /// x86-64 with AVX2 as well: batches are looked up four at a time.
    Avx2,
    /// x86-64 with AVX-512 F and DQ as well: batches are looked up eight at a time.
    Avx512,
}

impl Kernel {
    /// All of them. Each has the instructions of those before it, which is what their order means.
    const ALL: [Self; 4] = [Self::Portable, Self::Bmi2, Self::Avx2, Self::Avx512];

    /// The kernels of this build that the processor can run, from the fewest instructions to the most.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// Was it compiled in (feature `kernels`, on x86-64), and can the processor run it?
    #[must_use]
    pub fn is_available(self) -> bool {
        self == Self::Portable || detect::runs(self)
    }

    /// The one that a filter takes unless it is told otherwise. The processor is asked once per process.
    #[must_use]
    pub fn best() -> Self {
        detect::best()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Bmi2 => "bmi2",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The same kernel, if it is available.
    pub(crate) fn check(self) -> Result<Self, ParamError> {
        if self.is_available() { Ok(self) } else { Err(unavailable(self.name())) }
    }
}

fn unavailable(given: &str) -> ParamError {
    let names = Kernel::available().fold(String::new(), |names, kernel| {
        let comma = if names.is_empty() { "" } else { ", " };
        names + comma + kernel.name()
    });
    ParamError {
        parameter: Parameter::Kernel,
        given: given.into(),
        limit: format!("this build on this processor has {names}"),
        remedy: format!("ask for one of these, or for none, which takes {}", Kernel::best()),
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By its name: `portable`, `bmi2`, `avx2` or `avx512`; an error if it is not available.
impl FromStr for Kernel {
    type Err = ParamError;

    fn from_str(name: &str) -> Result<Self, ParamError> {
        let known = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        known.ok_or_else(|| unavailable(name))?.check()
    }
}

#[cfg(all(feature = "kernels", target_arch = "x86_64"))]
mod detect {
    #![allow(unsafe_code, reason = "the detecting macros ask the processor with it")]

    use super::Kernel;
    use core::{arch::x86_64::__cpuid, num::NonZeroUsize};
    use once_cell::race::OnceNonZeroUsize;

    cpufeatures::new!(bmi2, "bmi1", "bmi2");
    cpufeatures::new!(avx2, "avx2");
    // To the compiler, AVX-512 comes with FMA.
    cpufeatures::new!(avx512, "avx512f", "avx512dq", "fma");

    pub(super) fn runs(kernel: Kernel) -> bool {
        match kernel {
            Kernel::Portable => true,
            Kernel::Bmi2 => bmi2::get(),
            Kernel::Avx2 => bmi2::get() && avx2::get(),
            Kernel::Avx512 => bmi2::get() && avx2::get() && avx512::get(),
        }
    }

    pub(super) fn best() -> Kernel {
        // The kernel's place among all of them, counted from 1.
        static BEST: OnceNonZeroUsize = OnceNonZeroUsize::new();
        let place = BEST.get_or_init(|| {
            let fastest = Kernel::ALL.iter().rposition(|&kernel| runs(kernel) && !is_slow(kernel));
            NonZeroUsize::MIN.saturating_add(fastest.unwrap_or(0))
        });
        Kernel::ALL[place.get() - 1]
    }

    /// AMD's processors before the third Zen (family 0x17) have `pdep`, but in microcode: it takes them some hundred cycles.
    /// The others need it, too, for single look-ups.
    fn is_slow(kernel: Kernel) -> bool {
        // SAFETY: every x86-64 processor has the instruction. (Newer compilers know it.)
        #[allow(unused_unsafe)]
        let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
        let vendor = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat();
        let family = (version.eax >> 8 & 15) + (version.eax >> 20 & 255);
        // Hygon's are AMD's first ones, by another name.
        kernel != Kernel::Portable && (vendor == b"AuthenticAMD" && family <= 0x17 || vendor == b"HygonGenuine")
    }
}

#[cfg(not(all(feature = "kernels", target_arch = "x86_64")))]
mod detect {
    use super::Kernel;

    pub(super) fn runs(_: Kernel) -> bool {
        false
    }

    pub(super) fn best() -> Kernel {
        Kernel::Portable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_best_is_available_and_stays_the_same() {
        assert!(Kernel::best().is_available());
        assert_eq!(Kernel::best(), Kernel::best());
        assert!(Kernel::available().is_sorted());
        assert!(Kernel::available().any(|kernel| kernel == Kernel::Portable));
    }

    #[test]
    fn names_are_read_back() {
        for kernel in Kernel::ALL {
            match kernel.to_string().parse::<Kernel>() {
                Ok(read) => assert_eq!(read, kernel),
                Err(error) => {
                    assert!(!kernel.is_available());
                    assert_eq!(error.parameter(), Parameter::Kernel);
                }
            }
        }
        let error = "mmx".parse::<Kernel>().unwrap_err().to_string();
        assert!(error.starts_with("kernel: mmx given, but this build on this processor has portable"), "{error}");
    }
}
