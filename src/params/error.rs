//! The error for invalid parameters.

use core::{error::Error, fmt, ops::RangeInclusive};

use super::{
    Addressing, TableKind,
    rate::{Rate, round_up_rate},
};
use crate::message::{Text, text};

/// The error for an invalid parameter, with the value given and its limits as numbers.
///
/// The message names the parameter, the value if it is a number, the limits and a remedy. Neither creating nor displaying the error
/// allocates memory.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, ParamError, TableKind};
/// let builder = CuckooFilter::builder().capacity(100).table(TableKind::Packed);
/// let error = builder.clone().fingerprint_bits(3).params().unwrap_err();
/// assert_eq!(error.to_string(), "fingerprint bits: 3 given, but the packed table takes 4 to 32; give one of those");
/// let ParamError::FingerprintBits { given: 3, table } = error else { panic!("{error}") };
/// assert!(builder.fingerprint_bits(*table.fingerprint_bits().start()).build().is_ok());
/// ```
#[derive(Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ParamError {
    /// Neither a capacity nor a number of buckets was given.
    NoSize,
    /// Both a capacity and a number of buckets were given.
    TwoSizes,
    /// Neither a false-positive rate nor a fingerprint length was given.
    NoPrecision,
    /// Both a false-positive rate and a fingerprint length were given.
    TwoPrecisions,
    /// A growing filter was given no false-positive rate.
    NoRate,
    /// The capacity exceeds that of the largest table, or the maximum capacity of a growing filter.
    Capacity {
        /// The number of items given.
        given: usize,
        /// The largest valid number.
        max: usize,
    },
    /// The hashes have too few bits for the maximum capacity.
    MaxCapacity {
        /// The number of items given.
        given: usize,
        /// The largest valid number.
        max: usize,
    },
    /// The number of buckets is invalid for the addressing, or too large.
    Buckets {
        /// The number given.
        given: u64,
        /// The largest valid number.
        max: u64,
        /// The addressing: [`AnySize`](Addressing::AnySize) takes even numbers, [`PowerOfTwo`](Addressing::PowerOfTwo) takes powers
        /// of two.
        addressing: Addressing,
    },
    /// The false-positive rate is not between 0 and 1, or no filter of this size keeps it.
    FalsePositiveRate {
        /// The rate given.
        given: f64,
        /// The lowest valid rate with the other parameters. All rates from there to 1 (excluded) are valid.
        min: f64,
    },
    /// The fingerprint length is invalid for the table.
    FingerprintBits {
        /// The number of bits given.
        given: u32,
        /// The table. [`TableKind::fingerprint_bits`] returns the valid lengths.
        table: TableKind,
    },
    /// The bucket size is invalid for the table.
    BucketSize {
        /// The number of slots given.
        given: u32,
        /// The table. [`TableKind::bucket_sizes`] returns the valid sizes.
        table: TableKind,
    },
    /// The number of partitions is not a power of two from 1 to 256.
    Partitions {
        /// The number given.
        given: usize,
    },
    /// The memory limit is below the least one.
    MaxBytes {
        /// The number of bytes given.
        given: usize,
        /// The least limit: the most bytes that an empty filter may take, with room for the first item.
        needed: usize,
    },
    /// The text is not the name of a table, an addressing, a hasher or a kernel; or the kernel is not available.
    Name {
        /// The parameter that has such names.
        parameter: &'static str,
        /// The names that are valid in this build, on this processor.
        names: &'static [&'static str],
    },
}

// Many functions return this error or one that contains it.
const _: () = assert!(size_of::<ParamError>() <= 40);

impl ParamError {
    /// Returns the parameter's name, as it begins the message; `None` if the error is about two parameters that exclude each other.
    ///
    /// A program with names of its own for parameters writes its name and the [`reason`](Self::reason).
    ///
    /// # Example
    /// ```
    /// let error = koel::CuckooFilter::builder().capacity(10).false_positive_rate(2.0).params().unwrap_err();
    /// assert_eq!(error.parameter(), Some("false-positive rate"));
    /// let message = format!("--rate: {}", error.reason());
    /// assert!(message.starts_with("--rate: 2 given, but filters of this size keep rates from "));
    /// ```
    #[must_use]
    pub fn parameter(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoSize | Self::TwoSizes | Self::NoPrecision | Self::TwoPrecisions => return None,
            Self::NoRate | Self::FalsePositiveRate { .. } => "false-positive rate",
            Self::Capacity { .. } => "capacity",
            Self::MaxCapacity { .. } => "maximum capacity",
            Self::Buckets { .. } => "buckets",
            Self::FingerprintBits { .. } => "fingerprint bits",
            Self::BucketSize { .. } => "bucket size",
            Self::Partitions { .. } => "partitions",
            Self::MaxBytes { .. } => "max bytes",
            Self::Name { parameter, .. } => parameter,
        })
    }

    /// Returns the message without the parameter's name: the value given, the limits and a remedy.
    #[must_use]
    pub fn reason(&self) -> impl fmt::Display + '_ {
        Reason(self)
    }

    /// Returns the message about a table that cannot exist, without the remedy: a text with gaps, and the numbers in them. (It is a
    /// separate function because a program that only reads snapshots displays no other parameter errors.)
    pub(crate) fn table_limits(&self) -> (Text, [u64; 3]) {
        let between = |given, range: RangeInclusive<u32>| [given, *range.start(), *range.end()].map(u64::from);
        match *self {
            Self::Buckets { given, max, addressing } => {
                let text = match addressing {
                    Addressing::AnySize => text!("buckets: {} given, but any-size addressing takes even numbers from {} to {}"),
                    Addressing::PowerOfTwo => {
                        text!("buckets: {} given, but power-of-two addressing takes powers of two from {} to {}")
                    }
                };
                (text, [given, addressing.min_buckets(), max])
            }
            Self::FingerprintBits { given, table } => {
                let text = match table {
                    TableKind::Single => text!("fingerprint bits: {} given, but the single table takes {} to {}"),
                    TableKind::Packed => text!("fingerprint bits: {} given, but the packed table takes {} to {}"),
                };
                (text, between(given, table.fingerprint_bits()))
            }
            Self::BucketSize { given, table } => {
                let text = match table {
                    TableKind::Single => text!("bucket size: {} given, but the single table takes {} to {}"),
                    TableKind::Packed => text!("bucket size: {} given, but the packed table takes {}"),
                };
                (text, between(given, table.bucket_sizes()))
            }
            _ => (text!(""), [0; 3]),
        }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parameter) = self.parameter() {
            write!(f, "{parameter}: ")?;
        }
        Reason(self).fmt(f)
    }
}

/// The message without the parameter's name.
struct Reason<'a>(&'a ParamError);

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            ParamError::NoSize => return f.write_str("neither a capacity nor a number of buckets given; give one of them"),
            ParamError::TwoSizes => return f.write_str("both a capacity and a number of buckets given; leave one of them out"),
            ParamError::NoPrecision => return f.write_str("neither a rate nor fingerprint bits given; give one of them"),
            ParamError::TwoPrecisions => return f.write_str("both a rate and fingerprint bits given; leave one of them out"),
            ParamError::NoRate => return f.write_str("none given; give one between 0 and 1, such as 0.001"),
            ParamError::Capacity { given, max } | ParamError::MaxCapacity { given, max } => {
                return write!(f, "{given} given, but with the other parameters at most {max} works; give no more");
            }
            ParamError::FalsePositiveRate { given, min } => {
                let (given, min) = (Rate(given), Rate(round_up_rate(min)));
                write!(f, "{given} given, but filters of this size keep rates from {min} to below 1")?;
            }
            ParamError::Buckets { .. } | ParamError::FingerprintBits { .. } | ParamError::BucketSize { .. } => {
                let (text, numbers) = self.0.table_limits();
                let name = self.0.parameter().map_or(0, |name| name.len() + ": ".len());
                text.write_from(name, &numbers, f)?;
            }
            ParamError::Partitions { given } => write!(f, "{given} given, but they are a power of two from 1 to 256")?,
            ParamError::MaxBytes { given, needed } => {
                return write!(f, "{given} given, but an empty filter takes up to {needed}; give more");
            }
            ParamError::Name { names, .. } => {
                f.write_str("the names here are ")?;
                for (number, name) in names.iter().enumerate() {
                    f.write_str(if number > 0 { ", " } else { "" })?;
                    f.write_str(name)?;
                }
            }
        }
        f.write_str("; give one of those")
    }
}

/// Shows the message. A `Box<dyn Error>` links this code even if nothing calls it, and derived code would take kilobytes.
impl fmt::Debug for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParamError({self})")
    }
}

impl Error for ParamError {}
