//! The error for parameters that no filter can have.

use alloc::string::String;
use core::{error::Error, fmt};

use super::{Request, TableKind};
use crate::{bits::wide, text::Listed};

/// A parameter that no filter can have.
///
/// The message names the parameter, the value given, and the limit. `tuning::nearest` finds the nearest value that works, given
/// the other parameters; that takes code which a program without it does not have. Where there is another remedy, the message
/// names it, too.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Parameter, TableKind, tuning::nearest};
/// let builder = CuckooFilter::builder().capacity(100).table(TableKind::Packed);
/// let error = builder.clone().fingerprint_bits(3).params().unwrap_err();
/// assert_eq!(error.parameter(), Parameter::FingerprintBits);
/// assert_eq!(error.to_string(), "fingerprint bits: 3 given, but the packed table takes 4 to 32");
/// assert_eq!(nearest(&error).map(|nearest| nearest.to_string()).as_deref(), Some("the nearest that works is 4"));
/// assert!(builder.fingerprint_bits(4).build().is_ok());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ParamError {
    parameter: Parameter,
    why: Why,
}

// Whatever can fail returns one, or an error that has one.
const _: () = assert!(size_of::<ParamError>() < 128);

/// What the words of an error are made from, and the nearest value that works.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// The words themselves, from the value given on.
    Words(String),
    /// The same, of a filter that grows.
    Growing(String, GrowingRequest),
    /// A request for a filter of fixed size.
    Fixed(Request, Limit),
}

/// What a refused parameter may be, as far as it does not follow from the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// It follows from the request.
    OfRequest,
    /// The longest fingerprints with which there is a table of that size.
    Bits(u32),
    /// The most buckets.
    Buckets(u64),
    /// Slots of the largest table.
    Slots { table: TableKind, fingerprint_bits: u32, slots: u64 },
}

/// A request for a filter that grows, as far as it says what would work instead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrowingRequest {
    pub(crate) capacity: Option<u64>,
    pub(crate) max_capacity: Option<u64>,
    pub(crate) false_positive_rate: Option<Rate>,
    pub(crate) table: Option<TableKind>,
    pub(crate) bucket_size: Option<u32>,
    pub(crate) lanes: Option<u16>,
    /// The limit of memory, if it was too low.
    pub(crate) max_bytes: Option<usize>,
}

/// A rate, which equals itself, whatever it is.
#[derive(Clone, Copy)]
pub(crate) struct Rate(pub(crate) f64);

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Rate {}

/// In the fewest digits that are this number: 0.001, 1e-12. Beyond 10^±22, in up to nine. The standard library knows all digits of
/// all numbers, which takes 14 KB of code.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0.abs();
        if self.0.is_nan() {
            return f.write_str("NaN");
        }
        if self.0 < 0.0 {
            f.write_str("-")?;
        }
        if rate == 0.0 || rate == f64::INFINITY {
            return f.write_str(if rate == 0.0 { "0" } else { "inf" });
        }
        let (digits, exponent) = shortest(rate);
        let places = digits.ilog10();
        let power = exponent + places.cast_signed();
        // The point stands after the first digit, or where it belongs.
        let is_short = (-4..7).contains(&power);
        let after = if is_short { exponent.min(0).unsigned_abs() } else { places };
        let one = 10_u64.pow(after);
        let whole = if is_short && exponent > 0 { digits * 10_u64.pow(exponent.unsigned_abs()) } else { digits / one };
        write!(f, "{whole}")?;
        if after > 0 {
            write!(f, ".{:0width$}", digits % one, width = after as usize)?;
        }
        if is_short { Ok(()) } else { write!(f, "e{power}") }
    }
}

/// A positive number as digits, without zeros at the end, and the power of ten that they are multiplied by.
fn shortest(rate: f64) -> (u64, i32) {
    // Powers of ten up to this one are exact, and so is the test below.
    const EXACT: u32 = 22;
    // What is smaller has too few bits, and is wrong anyway.
    let rate = rate.max(1e-300);
    let ten_to = |power: u32| (0..power).fold(1.0, |product, _| product * 10.0);
    let mut power = 0_i32;
    while power < 308 && ten_to(power.unsigned_abs() + 1) <= rate {
        power += 1;
    }
    while ten_to(power.unsigned_abs()) * rate < 1.0 {
        power -= 1;
    }
    let mut places = 0;
    loop {
        let exponent = power - places;
        let scale = ten_to(exponent.unsigned_abs());
        let scaled = if exponent > 0 { rate / scale } else { rate * scale };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and of 16 digits")]
        let mut digits = (scaled + 0.5) as u64;
        let same = if exponent > 0 { digits as f64 * scale } else { digits as f64 / scale };
        let error = (same - rate).abs();
        if error == 0.0 || places == 15 || exponent.unsigned_abs() > EXACT && error < rate * 1e-8 {
            let mut exponent = exponent;
            while digits >= 10 && digits.is_multiple_of(10) {
                (digits, exponent) = (digits / 10, exponent + 1);
            }
            return (digits.max(1), exponent);
        }
        places += 1;
    }
}

/// Longer texts are not repeated in a message.
const MAX_SHOWN_BYTES: usize = 40;

impl ParamError {
    /// The error with these words, from the value given on: "3 given, but …; …".
    pub(crate) fn new(parameter: Parameter, words: String) -> Self {
        Self { parameter, why: Why::Words(words) }
    }

    /// The error about a request.
    pub(crate) fn of(parameter: Parameter, why: Why) -> Self {
        Self { parameter, why }
    }

    /// A text that is none of a parameter's names.
    pub(crate) fn unknown_name(parameter: Parameter, given: &str, names: impl Iterator<Item = &'static str> + Clone) -> Self {
        let limit = Listed(names);
        let words = match given.len() {
            ..=MAX_SHOWN_BYTES => text!("{given:?} given, but the names are {limit}; use one of them"),
            bytes => text!("a text of {bytes} bytes given, but the names are {limit}; use one of them"),
        };
        Self::new(parameter, words)
    }

    /// A name that this build lacks, which has these.
    pub(crate) fn not_in_this_build(
        parameter: Parameter,
        given: &str,
        names: impl Iterator<Item = &'static str> + Clone,
        remedy: &str,
    ) -> Self {
        let alone = if names.clone().count() == 1 { " alone" } else { "" };
        Self::new(parameter, text!("{given:?} given, but this build has {}{alone}; {remedy}", Listed(names)))
    }

    /// The first parameter that is out of range.
    #[must_use]
    pub fn parameter(&self) -> Parameter {
        self.parameter
    }

    pub(crate) fn why(&self) -> &Why {
        &self.why
    }
}
impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameter = self.parameter;
        write!(f, "{parameter}: ")?;
        match &self.why {
            // There may have been no memory for them.
            Why::Words(words) | Why::Growing(words, _) => f.write_str(if words.is_empty() { "…" } else { words }),
            Why::Fixed(request, limit) => request.refused(parameter, *limit, f),
        }
    }
}

/// Its words: a `Box<dyn Error>` has this in it even if nothing calls it, and the fields would be kilobytes of code.
impl fmt::Debug for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParamError({self})")
    }
}

impl Error for ParamError {}

impl Request {
    /// The words about a parameter, from the value given on.
    fn refused(&self, parameter: Parameter, limit: Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.widest_kind();
        let given = match parameter {
            Parameter::BucketSize => self.bucket_size.map(u64::from),
            Parameter::FingerprintBits => self.fingerprint_bits.map(u64::from),
            Parameter::FalsePositiveRate => match (self.false_positive_rate, self.fingerprint_bits) {
                (Some(rate), None) => {
                    write!(f, "{rate}")?;
                    None
                }
                (rate, _) => {
                    return not_one_of_two(f, rate.is_some(), "a rate", "a number of bits", "the length of a fingerprint");
                }
            },
            _ => match (self.capacity, self.buckets) {
                (Some(capacity), None) => Some(wide(capacity)),
                (None, Some(buckets)) => Some(buckets),
                (capacity, _) => {
                    return not_one_of_two(f, capacity.is_some(), "a capacity", "a number of buckets", "the size");
                }
            },
        };
        if let Some(given) = given {
            write!(f, "{given}")?;
        }
        f.write_str(" given, but ")?;
        match limit {
            Limit::OfRequest if parameter == Parameter::FalsePositiveRate => {
                f.write_str("it lies between 0 and 1, both excluded")
            }
            Limit::OfRequest => {
                let range = if parameter == Parameter::BucketSize { kind.bucket_sizes() } else { kind.fingerprint_bits() };
                match self.table {
                    Some(table) => write!(f, "the {} table takes {}", table.name(), range.start())?,
                    None => write!(f, "a table takes {}", range.start())?,
                }
                if range.start() == range.end() { Ok(()) } else { write!(f, " to {}", range.end()) }
            }
            Limit::Bits(32) => f.write_str("fingerprints have 32 bits at most"),
            Limit::Bits(bits) => write!(f, "fingerprints in a table of that size have {bits} bits at most"),
            Limit::Buckets(most) => {
                let addressing = self.addressing;
                let (name, rule, fewest) = (addressing.name(), addressing.rule(), addressing.fewest_buckets());
                write!(f, "{name} addressing takes {rule} from {fewest} to {most}")
            }
            Limit::Slots { table, fingerprint_bits, slots } => {
                let name = table.name();
                write!(f, "a {name} table with fingerprints of {fingerprint_bits} bits has {slots} slots at most")
            }
        }
    }
}

/// Two parameters that exclude each other are both given, or neither is. `what` follows from either one.
fn not_one_of_two(f: &mut fmt::Formatter<'_>, both: bool, one: &str, other: &str, what: &str) -> fmt::Result {
    let (which, and, remedy) =
        if both { ("both", "and", "leave one of them out") } else { ("neither", "nor", "give one of them") };
    write!(f, "{which} {one} {and} {other} given, but {what} follows from exactly one of them; {remedy}")
}

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
    /// The name of a hasher, or its [`HasherId`](crate::hash::HasherId).
    Hasher,
    /// The kernel: the instruction set that a filter uses.
    Kernel,
    /// The number of lanes of a growing filter.
    Lanes,
    /// The most bytes that a growing filter may take.
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
            Self::MaxBytes => "max bytes",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn rates_are_short() {
        let rates = [0.001, 1e-5, 2.0, -0.5, 1e300, f64::NAN, f64::NEG_INFINITY, 0.0].map(|rate| Rate(rate).to_string());
        assert_eq!(rates, ["0.001", "1e-5", "2", "-0.5", "1e300", "NaN", "-inf", "0"]);
        let rates = [0.999, 0.999_999_999_999_999, 1.5e-12, 1.000_01, 123.25, 1e7, 1.25e9, 0.000_25, 1200.0].map(Rate);
        let words = ["0.999", "0.999999999999999", "1.5e-12", "1.00001", "123.25", "1e7", "1.25e9", "0.00025", "1200"];
        assert_eq!(rates.map(|rate| rate.to_string()), words);
    }

    /// What a person would write is read back from it, however small; other numbers nearly.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn rates_are_those_of_the_standard_library() {
        for exponent in -22..15 {
            for digits in [1, 2, 9, 12, 99, 101, 12_345, 999_999] {
                let rate: f64 = text!("{digits}e{exponent}").parse().expect("a number");
                assert_eq!(Rate(rate).to_string().parse(), Ok(rate), "{rate:e}");
                assert!(Rate(rate).to_string().len() <= text!("{rate}").len().min(text!("{rate:e}").len()) + 5, "{rate:e}");
            }
        }
        for n in 0..7000 {
            let rate = 1e-300 * 1.22_f64.powi(n);
            let read: f64 = Rate(rate).to_string().parse().expect("a number");
            let is_near = (read / rate - 1.0).abs() < 1e-8 || rate.is_infinite() && read.is_infinite();
            assert!(is_near, "{rate:e}: {read:e}");
        }
    }
}
