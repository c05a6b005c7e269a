//! The error for parameters that no filter can have.

use alloc::string::String;
use core::{error::Error, fmt};

use crate::text::Listed;

/// A parameter that no filter can have.
///
/// The message names the parameter, the value given, the limit and a remedy. Where the remedy is "the nearest that works is
/// v", the same request with v in place of the value given has [`Params`](crate::Params), and a filter can be built from it if
/// there is enough memory. If other parameters are out of range, too, the remedy says which one to change next.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Parameter, TableKind};
/// let builder = CuckooFilter::builder().capacity(100).table(TableKind::Packed);
/// let error = builder.clone().fingerprint_bits(3).params().unwrap_err();
/// assert_eq!(error.parameter(), Parameter::FingerprintBits);
/// assert_eq!(error.to_string(), "fingerprint bits: 3 given, but the packed table takes 4 to 32; the nearest that works is 4");
/// assert!(builder.fingerprint_bits(4).build().is_ok());
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

/// Longer texts are not repeated in a message.
const MAX_SHOWN_BYTES: usize = 40;

impl ParamError {
    /// A text that is none of a parameter's names.
    pub(crate) fn unknown_name(parameter: Parameter, given: &str, names: impl Iterator<Item = &'static str> + Clone) -> Self {
        let given = match given.len() {
            ..=MAX_SHOWN_BYTES => text!("{given:?}"),
            bytes => text!("a text of {bytes} bytes"),
        };
        let limit = text!("the names are {}", Listed(names));
        Self { parameter, given, limit, remedy: text!("use one of them") }
    }

    /// A name that this build lacks, which has these.
    pub(crate) fn not_in_this_build(
        parameter: Parameter,
        given: &str,
        names: impl Iterator<Item = &'static str> + Clone,
        remedy: &str,
    ) -> Self {
        let alone = if names.clone().count() == 1 { " alone" } else { "" };
        let limit = text!("this build has {}{alone}", Listed(names));
        Self { parameter, given: text!("{given:?}"), limit, remedy: text!("{remedy}") }
    }

    /// The first parameter that is out of range.
    #[must_use]
    pub fn parameter(&self) -> Parameter {
        self.parameter
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There may have been no memory for one of them.
        let [given, limit, remedy] =
            [&self.given, &self.limit, &self.remedy].map(|words| if words.is_empty() { "…" } else { words });
        write!(f, "{}: {given} given, but {limit}; {remedy}", self.parameter)
    }
}

impl Error for ParamError {}

/// The parameter that a [`ParamError`] is about. Its `Display` is its name in words: "false-positive rate".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameter {
    /// The number of items the filter must hold.
    Capacity,
    /// The number of buckets of the table.
    Buckets,
    /// The false-positive rate.
    FalsePositiveRate,
    /// The length of a fingerprint in bits.
    FingerprintBits,
    /// The number of slots of a bucket.
    BucketSize,
    /// The name of a [`TableKind`](crate::TableKind).
    Table,
    /// The name of an [`Addressing`](crate::Addressing).
    Addressing,
    /// The name of a hasher, or its [`HasherId`](crate::HasherId).
    Hasher,
    /// The kernel: the instructions that a filter works with.
    Kernel,
    /// The number of lanes of a filter that grows.
    Lanes,
    /// The number of parts in which a filter that grows is built, or that of one of them.
    Parts,
    /// The most bytes that the tables of a filter that grows may take.
    MaxBytes,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Capacity => "capacity",
            Self::Buckets => "buckets",
            Self::FalsePositiveRate => "false-positive rate",
            Self::FingerprintBits => "fingerprint bits",
            Self::BucketSize => "bucket size",
            Self::Table => "table",
            Self::Addressing => "addressing",
            Self::Hasher => "hasher",
            Self::Kernel => "kernel",
            Self::Lanes => "lanes",
            Self::Parts => "parts",
            Self::MaxBytes => "max bytes",
        })
    }
}
