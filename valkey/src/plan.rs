//! The plan of a filter, from the options of CF.RESERVE and CF.INSERT.

use std::{fmt, io::Write as _, ops::RangeInclusive};

use koel::{ElasticBuilder, ElasticFilter};

use crate::reply::Failure;

pub(crate) const CAPACITIES: RangeInclusive<i64> = 2..=1 << 40;

/// The capacities without the option BUCKETSIZE.
pub(crate) const USUAL_CAPACITIES: RangeInclusive<i64> = 2 * DEFAULT_BUCKET_SIZE..=*CAPACITIES.end();

pub(crate) const EXPANSIONS: RangeInclusive<i64> = 0..=32768;

/// RedisBloom's ranges and defaults of options that do not change the filter here. The bucket size only limits the capacity.
pub(crate) const BUCKET_SIZES: RangeInclusive<i64> = 1..=255;
const DEFAULT_BUCKET_SIZE: i64 = 2;
const ITERATIONS: RangeInclusive<i64> = 1..=65535;

/// A filter with a small capacity is planned for at least this many items. That costs a few bytes per item while the filter is
/// small.
const MIN_PLANNED: i64 = 4_000_000;

/// The largest capacity that counts as small. Larger ones are planned for at least a million items: a filter that is reserved for
/// its final size needs no more.
const MAX_SMALL_CAPACITY: i64 = 250_000;
const MIN_PLANNED_IF_LARGE: i64 = 1_000_000;

/// The fewest items of a partition, in a filter that is planned for its final size. If the filter grows nevertheless, each partition
/// does so by itself.
const MIN_PARTITION_ITEMS: u64 = 15_000;
const MAX_PARTITIONS: usize = 256;

/// The parameters of a filter, as a client gives them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) capacity: i64,
    /// The factor that the filter is planned to grow by. 0 if it must not hold more than `capacity` distinct items.
    pub(crate) expansion: i64,
    pub(crate) error_rate: f64,
    pub(crate) seed: i64,
}

impl Plan {
    /// Returns a builder of such filters.
    pub(crate) fn builder(&self) -> ElasticBuilder {
        let planned = match self.expansion {
            0 => self.capacity,
            times => {
                let least = if self.capacity <= MAX_SMALL_CAPACITY { MIN_PLANNED } else { MIN_PLANNED_IF_LARGE };
                self.capacity.saturating_mul(times).max(least)
            }
        };
        let mut partitions = 1;
        if planned / 2 < self.capacity {
            while partitions < MAX_PARTITIONS && self.capacity.unsigned_abs() / (2 * partitions as u64) >= MIN_PARTITION_ITEMS {
                partitions *= 2;
            }
        }
        let items = |items: i64| usize::try_from(items).unwrap_or(usize::MAX);
        let builder = ElasticFilter::builder()
            .capacity(items(self.capacity))
            .false_positive_rate(self.error_rate)
            .partitions(partitions)
            .seed(self.seed.unsigned_abs());
        // Hashes have bits for a limited number of items. Beyond that number, a filter grows by further generations.
        let mut planned = planned;
        while planned > self.capacity && builder.clone().max_capacity(items(planned)).params().is_err() {
            planned = (planned / 2).max(self.capacity);
        }
        builder.max_capacity(items(planned))
    }

    /// Returns the bytes of an empty filter, or `None` if the plan is invalid.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.builder().params().ok().map(|params| params.size_in_bytes() as u64)
    }

    /// Returns advice for the case that an empty filter takes more than this many bytes: a capacity that fits, but not always the
    /// largest, since a few capacities take less than the ones before.
    pub(crate) fn remedy(&self, bytes: u64) -> Remedy {
        let (mut fits, mut exceeds) = (0, self.capacity);
        while exceeds - fits > 1 {
            let capacity = fits + (exceeds - fits) / 2;
            let is_enough = Self { capacity, ..*self }.bytes().is_some_and(|needed| needed <= bytes);
            *(if is_enough { &mut fits } else { &mut exceeds }) = capacity;
        }
        Remedy { fits }
    }

    /// Returns the arguments of CF.RESERVE, after the key, that give this plan whatever the server's settings are.
    pub(crate) fn arguments(&self) -> [Word; 7] {
        let [expansion, error, seed] = self.options();
        [Word::new(self.capacity), expansion[0], expansion[1], error[0], error[1], seed[0], seed[1]]
    }

    /// Returns the options of the first CF.LOADCHUNK of a filter from which `deleted` items were removed.
    pub(crate) fn chunk_options(&self, deleted: u64) -> [Word; 8] {
        let [expansion, error, seed] = self.options();
        let deleted = [Word::new("DELETED"), Word::new(deleted.min(i64::MAX.unsigned_abs()))];
        [expansion[0], expansion[1], error[0], error[1], seed[0], seed[1], deleted[0], deleted[1]]
    }

    /// Returns the options of the first CF.LOADCHUNK of a filter with an own part, whose snapshot has the rate and the seed. The rate may
    /// be lower than ERROR may.
    pub(crate) fn snapshot_options(&self, deleted: u64) -> [Word; 4] {
        let [name, expansion, .., deleted_name, deleted] = self.chunk_options(deleted);
        [name, expansion, deleted_name, deleted]
    }

    fn options(&self) -> [[Word; 2]; 3] {
        let Self { expansion, error_rate, seed, .. } = *self;
        [
            [Word::new("EXPANSION"), Word::new(expansion)],
            [Word::new("ERROR"), Word::new(format_args!("{error_rate:e}"))],
            [Word::new("SEED"), Word::new(seed)],
        ]
    }
}

/// A message that names a capacity that fits.
pub(crate) struct Remedy {
    fits: i64,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fits < *USUAL_CAPACITIES.start() {
            return f.write_str("no capacity fits");
        }
        write!(f, "reserve a capacity of {}", self.fits)?;
        // The option may demand more.
        if self.fits < 2 * BUCKET_SIZES.end() { f.write_str(" without BUCKETSIZE") } else { Ok(()) }
    }
}

/// A short argument of a command. It needs no heap memory, so a filter can be saved and replicated when there is none.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    bytes: [u8; Self::MAX_BYTES],
    len: usize,
}

impl Word {
    /// The longest argument is a rate, as in 1.2345678901234567e-300.
    const MAX_BYTES: usize = 24;

    fn new(value: impl fmt::Display) -> Self {
        let mut bytes = [0; Self::MAX_BYTES];
        let mut rest = &mut bytes[..];
        // No value is longer: the buffer has room for the longest rate.
        let _ = write!(rest, "{value}");
        let len = Self::MAX_BYTES - rest.len();
        Self { bytes, len }
    }
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// An option with a number.
pub(crate) enum NumberOption {
    Expansion,
    Error,
    Seed,
    Deleted,
    BucketSize,
    Iterations,
}

impl NumberOption {
    /// Returns the option with this name, ignoring case.
    pub(crate) fn find(word: &[u8]) -> Option<Self> {
        let options = [
            ("EXPANSION", Self::Expansion),
            ("ERROR", Self::Error),
            ("SEED", Self::Seed),
            ("DELETED", Self::Deleted),
            ("BUCKETSIZE", Self::BucketSize),
            ("MAXITERATIONS", Self::Iterations),
        ];
        options.into_iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, option)| option)
    }

    /// Parses the option's value and stores it.
    pub(crate) fn store(&self, value: &[u8], options: &mut Options) -> Result<(), Failure> {
        let number = |name: &str, range: RangeInclusive<i64>| {
            let number = integer(value).ok_or_else(|| Failure::new(format_args!("Couldn't parse {name}")))?;
            within(name, number, &range)
        };
        match self {
            Self::Expansion => options.plan.expansion = number("EXPANSION", EXPANSIONS)?,
            Self::Seed => options.plan.seed = number("SEED", 0..=i64::MAX)?,
            Self::Error => options.plan.error_rate = rate(value)?,
            Self::Deleted => options.deleted = number("DELETED", 0..=i64::MAX)?,
            Self::BucketSize => options.bucket_size = number("BUCKETSIZE", BUCKET_SIZES)?,
            // Accepted and not used: a walk here needs no limit.
            Self::Iterations => _ = number("MAXITERATIONS", ITERATIONS)?,
        }
        Ok(())
    }
}

/// The values of a command's options.
pub(crate) struct Options {
    pub(crate) plan: Plan,
    /// RedisBloom's bucket size, which limits the capacity here.
    pub(crate) bucket_size: i64,
    /// How many items were removed from a filter that is loaded.
    pub(crate) deleted: i64,
}

impl Options {
    /// Returns the options of a command that has none.
    pub(crate) fn new(default: Plan) -> Self {
        Self { plan: default, bucket_size: DEFAULT_BUCKET_SIZE, deleted: 0 }
    }
}

fn within(name: &str, number: i64, range: &RangeInclusive<i64>) -> Result<i64, Failure> {
    if range.contains(&number) {
        return Ok(number);
    }
    Err(Failure::new(format_args!("{name}: value must be in the range [{}, {}]", range.start(), range.end())))
}

/// Checks the range of EXPANSION.
pub(crate) fn check_expansion(expansion: i64) -> Result<i64, Failure> {
    within("EXPANSION", expansion, &EXPANSIONS)
}

/// Parses a capacity.
pub(crate) fn capacity(text: &[u8]) -> Result<i64, Failure> {
    integer(text).ok_or_else(|| Failure::new("Bad capacity"))
}

/// Checks the range of a capacity. It must be at least twice the bucket size that was given.
pub(crate) fn check_capacity(capacity: i64, bucket_size: i64) -> Result<(), Failure> {
    if (2 * bucket_size..=*CAPACITIES.end()).contains(&capacity) {
        Ok(())
    } else {
        Err(Failure::new(format_args!("Capacity must be in the range [2 * BUCKETSIZE, {}]", CAPACITIES.end())))
    }
}

/// Parses a false-positive rate.
pub(crate) fn rate(text: &[u8]) -> Result<f64, Failure> {
    check_rate(parse(text).ok_or_else(|| Failure::new("Couldn't parse ERROR"))?)
}

/// Returns the false-positive rate, or an error if not all small filters can keep it.
pub(crate) fn check_rate(rate: f64) -> Result<f64, Failure> {
    match ElasticFilter::builder().capacity(1).max_capacity(1).false_positive_rate(rate).params() {
        Ok(_) => Ok(rate),
        // The reason contains the lowest rate.
        Err(error) if rate > 0.0 && rate < 1.0 => Err(Failure::new(format_args!("ERROR: {}", error.reason()))),
        Err(error) => Err(Failure::new(format_args!("ERROR: value must be in the range (0, 1): {}", error.reason()))),
    }
}

/// Parses an integer in the server's format, which has neither a plus sign nor leading zeros.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    parse(text).filter(|_: &i64| text == b"0" || matches!(digits, [b'1'..=b'9', ..]))
}

fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(capacity: i64, expansion: i64, error_rate: f64) -> Plan {
        Plan { capacity, expansion, error_rate, seed: 0 }
    }

    /// Every plan within the ranges is valid, regardless of memory.
    #[test]
    fn plans_within_the_ranges_are_valid() {
        for capacity in [2, 3, 1000, 1_000_000, 1 << 30, *CAPACITIES.end()] {
            for expansion in [0, 1, 2, 1000, 32768] {
                for error_rate in [0.5, 0.01, 1e-6] {
                    let plan = plan(capacity, expansion, error_rate);
                    let result = plan.builder().params();
                    // Hashes have too few bits for more than 2³⁰ items at very low rates.
                    assert!(result.is_ok() || capacity > 1 << 30 && error_rate < 0.01, "{plan:?}: {result:?}");
                }
            }
        }
    }

    /// Replicated arguments are long enough for every number, and exact.
    #[test]
    fn arguments_are_not_truncated() {
        for (expansion, error_rate, seed) in [(0, 0.01, 0), (32768, 1.234_567_890_123_456_7e-300, i64::MAX), (1, 1.0 - 1e-16, 7)]
        {
            let written = Plan { capacity: 1 << 40, expansion, error_rate, seed };
            let [capacity, options @ ..] = written.arguments();
            assert_eq!(capacity.as_ref(), b"1099511627776");
            let value = |at: usize| std::str::from_utf8(options[at].as_ref()).unwrap();
            assert_eq!([value(0), value(2), value(4)], ["EXPANSION", "ERROR", "SEED"]);
            assert_eq!(value(1).parse(), Ok(expansion));
            assert_eq!(value(3).parse(), Ok(error_rate));
            assert_eq!(value(5).parse(), Ok(seed));
            assert_eq!(written.chunk_options(u64::MAX)[7].as_ref(), i64::MAX.to_string().as_bytes());
        }
    }

    #[test]
    fn errors_name_invalid_values() {
        let mut options = Options::new(plan(1000, 1, 0.01));
        let mut store = |name: &[u8], value: &[u8]| {
            NumberOption::find(name).unwrap().store(value, &mut options).map_err(|failure| failure.to_string())
        };
        assert_eq!(store(b"expansion", b"2x"), Err(String::from("Couldn't parse EXPANSION")));
        assert_eq!(store(b"EXPANSION", b"-1"), Err(String::from("EXPANSION: value must be in the range [0, 32768]")));
        assert_eq!(store(b"BucketSize", b"256"), Err(String::from("BUCKETSIZE: value must be in the range [1, 255]")));
        assert_eq!(store(b"SEED", b"9223372036854775808"), Err(String::from("Couldn't parse SEED")));
        for rate in ["0", "1", "-0.1", "inf", "NaN"] {
            let message = store(b"ERROR", rate.as_bytes()).unwrap_err();
            assert!(message.starts_with("ERROR: value must be in the range (0, 1)"), "{message}");
        }
        // The lowest rate that the message names works.
        let message = store(b"ERROR", b"1e-10").unwrap_err();
        let lowest = message.split("ERROR: 1e-10 given, but filters of this size keep rates from ").nth(1);
        let lowest = lowest.and_then(|rest| rest.split(' ').next()).unwrap_or_else(|| panic!("{message}"));
        assert_eq!(store(b"ERROR", lowest.as_bytes()), Ok(()));
        options.plan.capacity = 1 << 40;
        assert!(options.plan.bytes().is_some(), "{lowest}");
        for text in ["+5", "05", "00", "-0", "-05", "", "-", " 5", "5 "] {
            assert_eq!(capacity(text.as_bytes()), Err(Failure::new("Bad capacity")), "{text:?}");
        }
        assert_eq!([&b"0"[..], b"5", b"-50"].map(capacity), [Ok(0), Ok(5), Ok(-50)]);
        assert!(check_capacity(3, 2).is_err() && check_capacity(4, 2) == Ok(()));
    }
}
