//! The errors. Each names the value, the limit and the remedy; their insides are their own.

use alloc::string::String;
use core::{error::Error, fmt};

/// A parameter that no filter can have.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Parameter, TableKind};
/// let error = CuckooFilter::builder().capacity(100).fingerprint_bits(3).table(TableKind::Packed).build().unwrap_err();
/// assert_eq!(error.parameter(), Parameter::FingerprintBits);
/// assert_eq!(error.to_string(), "fingerprint bits: 3 given, but the packed table takes 4 to 32; the nearest that works is 4");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    pub(crate) parameter: Parameter,
    pub(crate) given: String,
    /// What is possible, as the end of a sentence: "the packed table takes 4 to 32".
    pub(crate) limit: String,
    /// What to do, as a sentence: "the nearest that works is 4".
    pub(crate) remedy: String,
}

impl ParamError {
    /// The parameter in question.
    #[must_use]
    pub fn parameter(&self) -> Parameter {
        self.parameter
    }
}

/// What a filter's builder can be told; displayed in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameter {
    /// Items the filter must hold.
    Capacity,
    /// Buckets of the table.
    Buckets,
    /// The false-positive rate.
    FalsePositiveRate,
    /// The length of a fingerprint.
    FingerprintBits,
    /// Slots of a bucket.
    BucketSize,
    /// The kernel: the instructions that a filter works with.
    Kernel,
    /// The memory that the table takes, which follows from the others.
    TableSize,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Capacity => "capacity",
            Self::Buckets => "buckets",
            Self::FalsePositiveRate => "false-positive rate",
            Self::FingerprintBits => "fingerprint bits",
            Self::BucketSize => "bucket size",
            Self::Kernel => "kernel",
            Self::TableSize => "table size",
        })
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} given, but {}; {}", self.parameter, self.given, self.limit, self.remedy)
    }
}

impl Error for ParamError {}
