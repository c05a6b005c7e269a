//! What a filter is made from: the options of CF.RESERVE and CF.INSERT.

use std::{fmt, io::Write as _, ops::RangeInclusive};

use koel::{ElasticBuilder, ElasticFilter};

use crate::reply::Failure;

pub(crate) const CAPACITIES: RangeInclusive<i64> = 2..=1 << 40;
pub(crate) const EXPANSIONS: RangeInclusive<i64> = 0..=32768;

/// RedisBloom's ranges and defaults of options that have no effect here.
const BUCKET_SIZES: RangeInclusive<i64> = 1..=255;
const DEFAULT_BUCKET_SIZE: i64 = 2;
const ITERATIONS: RangeInclusive<i64> = 1..=65535;

/// A filter of a small capacity is planned for this many items: while it is small, it takes a few bytes more for each.
const PLANNED_AT_LEAST: i64 = 4_000_000;

/// Larger ones are planned for a million at least: what was reserved for its final size takes no more than that needs.
const SMALL: i64 = 250_000;
const PLANNED_IF_NOT_SMALL: i64 = 1_000_000;

/// The fewest items of a partition in a filter that is planned for its final size. A partition's only table is then so small that
/// it splits in a millisecond if the filter grows nevertheless.
const ITEMS_OF_A_PARTITION: u64 = 15_000;
const MOST_PARTITIONS: usize = 256;

/// What a filter is made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) capacity: i64,
    /// 0 if the filter must not hold more than `capacity` different items.
    pub(crate) expansion: i64,
    pub(crate) error_rate: f64,
    pub(crate) seed: i64,
}

impl Plan {
    /// A builder of such filters.
    pub(crate) fn builder(&self) -> ElasticBuilder {
        let planned = match self.expansion {
            0 => self.capacity,
            times => {
                let least = if self.capacity <= SMALL { PLANNED_AT_LEAST } else { PLANNED_IF_NOT_SMALL };
                self.capacity.saturating_mul(times).max(least)
            }
        };
        let mut partitions = 1;
        if planned / 2 < self.capacity {
            while partitions < MOST_PARTITIONS && self.capacity.unsigned_abs() / (2 * partitions as u64) >= ITEMS_OF_A_PARTITION {
                partitions *= 2;
            }
        }
        let items = |items: i64| usize::try_from(items).unwrap_or(usize::MAX);
        let builder = ElasticFilter::builder()
            .capacity(items(self.capacity))
            .false_positive_rate(self.error_rate)
            .partitions(partitions)
            .seed(self.seed.unsigned_abs());
        // Hashes have bits for so many items only. Beyond them a filter goes on growing, in another way.
        let mut planned = planned;
        while planned > self.capacity && builder.clone().max_capacity(items(planned)).params().is_err() {
            planned = (planned / 2).max(self.capacity);
        }
        builder.max_capacity(items(planned))
    }

    /// The bytes of an empty filter, if there can be one.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.builder().params().ok().map(|params| params.size_in_bytes() as u64)
    }

    /// What to do where an empty filter takes more than this many bytes.
    pub(crate) fn remedy(&self, bytes: u64) -> Remedy {
        let (mut fits, mut exceeds) = (0, self.capacity);
        while exceeds - fits > 1 {
            let capacity = fits + (exceeds - fits) / 2;
            let is_enough = Self { capacity, ..*self }.bytes().is_some_and(|needed| needed <= bytes);
            *(if is_enough { &mut fits } else { &mut exceeds }) = capacity;
        }
        Remedy { fits }
    }

    /// The arguments of CF.RESERVE behind the key that give this plan, whatever the settings are.
    pub(crate) fn arguments(&self) -> [Word; 7] {
        let [expansion, error, seed] = self.options();
        [Word::new(self.capacity), expansion[0], expansion[1], error[0], error[1], seed[0], seed[1]]
    }

    /// The options of the first CF.LOADCHUNK of a filter from which this many items were removed.
    pub(crate) fn options_of_chunks(&self, deleted: u64) -> [Word; 8] {
        let [expansion, error, seed] = self.options();
        let deleted = [Word::new("DELETED"), Word::new(deleted.min(i64::MAX.unsigned_abs()))];
        [expansion[0], expansion[1], error[0], error[1], seed[0], seed[1], deleted[0], deleted[1]]
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

/// The largest capacity that fits, in words.
pub(crate) struct Remedy {
    fits: i64,
}

impl fmt::Display for Remedy {
    fn fmt(&self, words: &mut fmt::Formatter<'_>) -> fmt::Result {
        if CAPACITIES.contains(&self.fits) {
            write!(words, "reserve a capacity of at most {}", self.fits)
        } else {
            words.write_str("no capacity fits")
        }
    }
}

/// A short word of a command. It takes no memory besides, so that a filter can be saved and replicated when there is none.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    bytes: [u8; Self::MOST_BYTES],
    len: usize,
}

impl Word {
    /// The longest number is a rate, as in 1.2345678901234567e-300.
    const MOST_BYTES: usize = 24;

    fn new(value: impl fmt::Display) -> Self {
        let mut bytes = [0; Self::MOST_BYTES];
        let mut rest = &mut bytes[..];
        // What is longer would be cut off.
        let _ = write!(rest, "{value}");
        let len = Self::MOST_BYTES - rest.len();
        Self { bytes, len }
    }
}

impl AsRef<[u8]> for Word {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// An option with a number, and where that goes.
pub(crate) enum Named {
    Expansion,
    Error,
    Seed,
    Deleted,
    BucketSize,
    Iterations,
}

impl Named {
    /// The option of this name, in capitals or not.
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

    /// Takes the option's value into a plan, or into the other numbers.
    pub(crate) fn take(&self, value: &[u8], plan: &mut Plan, others: &mut Others) -> Result<(), Failure> {
        let number = |name: &str, range: RangeInclusive<i64>| {
            let number = integer(value).ok_or_else(|| Failure::new(format_args!("Couldn't parse {name}")))?;
            if range.contains(&number) { Ok(number) } else { Err(out_of_range(name, &range)) }
        };
        match self {
            Self::Expansion => plan.expansion = number("EXPANSION", EXPANSIONS)?,
            Self::Seed => plan.seed = number("SEED", 0..=i64::MAX)?,
            Self::Error => plan.error_rate = rate(value)?,
            Self::Deleted => others.deleted = number("DELETED", 0..=i64::MAX)?,
            Self::BucketSize => others.bucket_size = number("BUCKETSIZE", BUCKET_SIZES)?,
            Self::Iterations => _ = number("MAXITERATIONS", ITERATIONS)?,
        }
        Ok(())
    }
}

/// Numbers that are no part of a plan.
pub(crate) struct Others {
    pub(crate) bucket_size: i64,
    pub(crate) deleted: i64,
}

impl Default for Others {
    fn default() -> Self {
        Self { bucket_size: DEFAULT_BUCKET_SIZE, deleted: 0 }
    }
}

fn out_of_range(name: &str, range: &RangeInclusive<i64>) -> Failure {
    Failure::new(format_args!("{name}: value must be in the range [{}, {}]", range.start(), range.end()))
}

/// A capacity, at least twice the size of a bucket that was asked for.
pub(crate) fn capacity(text: &[u8], bucket_size: i64) -> Result<i64, Failure> {
    let capacity = integer(text).ok_or_else(|| Failure::new("Bad capacity"))?;
    if (2 * bucket_size..=*CAPACITIES.end()).contains(&capacity) {
        Ok(capacity)
    } else {
        Err(Failure::new(format_args!("Capacity must be in the range [2 * BUCKETSIZE, {}]", CAPACITIES.end())))
    }
}

/// A false-positive rate.
pub(crate) fn rate(text: &[u8]) -> Result<f64, Failure> {
    let rate: f64 = parsed(text).ok_or_else(|| Failure::new("Couldn't parse ERROR"))?;
    match ElasticFilter::builder().capacity(1).max_capacity(1).false_positive_rate(rate).params() {
        Ok(_) => Ok(rate),
        Err(error) => Err(Failure::new(format_args!("ERROR: value must be in the range (0, 1): {error}"))),
    }
}

/// A number as the server writes them.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    parsed(text).filter(|_: &i64| text.first().is_some_and(|&first| first != b'+'))
}

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(capacity: i64, expansion: i64, error_rate: f64) -> Plan {
        Plan { capacity, expansion, error_rate, seed: 0 }
    }

    /// Every plan that the ranges allow can be made, but for its memory.
    #[test]
    fn all_plans_are_possible() {
        for capacity in [2, 3, 1000, 1_000_000, 1 << 30, *CAPACITIES.end()] {
            for expansion in [0, 1, 2, 1000, 32768] {
                for error_rate in [0.5, 0.01, 1e-6] {
                    let plan = plan(capacity, expansion, error_rate);
                    let result = plan.builder().params();
                    // Beyond 2³⁰ items of very low rates, hashes have too few bits.
                    assert!(result.is_ok() || capacity > 1 << 30 && error_rate < 0.01, "{plan:?}: {result:?}");
                }
            }
        }
    }

    /// What is replicated has room for every number, and says it exactly.
    #[test]
    fn words_are_whole() {
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
            assert_eq!(written.options_of_chunks(u64::MAX)[7].as_ref(), i64::MAX.to_string().as_bytes());
        }
    }

    #[test]
    fn wrong_values_are_named() {
        let mut plan = plan(1000, 1, 0.01);
        let mut take = |name: &[u8], value: &[u8]| {
            Named::find(name).unwrap().take(value, &mut plan, &mut Others::default()).map_err(|failure| failure.to_string())
        };
        assert_eq!(take(b"expansion", b"2x"), Err(String::from("Couldn't parse EXPANSION")));
        assert_eq!(take(b"EXPANSION", b"-1"), Err(String::from("EXPANSION: value must be in the range [0, 32768]")));
        assert_eq!(take(b"BucketSize", b"256"), Err(String::from("BUCKETSIZE: value must be in the range [1, 255]")));
        assert_eq!(take(b"SEED", b"9223372036854775808"), Err(String::from("Couldn't parse SEED")));
        for rate in ["0", "1", "-0.1", "inf", "NaN", "1e-300"] {
            let message = take(b"ERROR", rate.as_bytes()).unwrap_err();
            assert!(message.starts_with("ERROR: value must be in the range (0, 1)"), "{message}");
        }
        assert_eq!(capacity(b"+5", 2), Err(Failure::new("Bad capacity")));
        assert!(capacity(b"3", 2).is_err() && capacity(b"4", 2) == Ok(4));
    }
}
