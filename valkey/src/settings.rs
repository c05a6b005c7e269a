//! The module's settings in the server's configuration, as in `CONFIG SET koel.max-bytes 4gb`.

use std::{
    ffi::CStr,
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
};

use crate::{
    plan::{CAPACITIES, EXPANSIONS, Plan, integer, rate},
    reply::{Failure, Words},
    server::{Alias, Number, Setting, Switch},
};

const DEFAULT_RATE: f64 = 0.01;

/// The capacity of a filter that is made by its first item.
pub(crate) static INITIAL_SIZE: Number = Number {
    name: c"initial-size",
    alias: Some(Alias {
        names: c"koel.initial-size|cf-initial-size",
        note: c"koel.initial-size was set, which is RedisBloom's cf-initial-size, too",
    }),
    range: (*CAPACITIES.start(), *CAPACITIES.end()),
    is_memory: false,
    value: AtomicI64::new(1024),
};

/// What a filter is planned to grow to, in multiples of its capacity; 0 if it does not grow.
pub(crate) static EXPANSION: Number = Number {
    name: c"expansion",
    alias: Some(Alias {
        names: c"koel.expansion|cf-expansion-factor",
        note: c"koel.expansion was set, which is RedisBloom's cf-expansion-factor, too",
    }),
    range: (*EXPANSIONS.start(), *EXPANSIONS.end()),
    is_memory: false,
    value: AtomicI64::new(1),
};

/// The most bytes of a filter that clients insert into, reserve or load.
pub(crate) static MAX_BYTES: Number =
    Number { name: c"max-bytes", alias: None, range: (1024, i64::MAX), is_memory: true, value: AtomicI64::new(1 << 30) };

/// The seed of new filters.
pub(crate) static SEED: Number =
    Number { name: c"seed", alias: None, range: (0, i64::MAX), is_memory: false, value: AtomicI64::new(0) };

/// RedisBloom's other settings, with its defaults.
pub(crate) static WITHOUT_EFFECT: [Number; 3] = [
    without_effect(c"cf-bucket-size", 2, c"RedisBloom's cf-bucket-size has no effect: buckets of koel's filters have four slots"),
    without_effect(
        c"cf-max-iterations",
        20,
        c"RedisBloom's cf-max-iterations has no effect: koel searches for room by its own rule",
    ),
    without_effect(
        c"cf-max-expansions",
        32,
        c"RedisBloom's cf-max-expansions has no effect: koel.max-bytes bounds the growth of filters",
    ),
];

const fn without_effect(name: &'static CStr, default: i64, note: &'static CStr) -> Number {
    let alias = Some(Alias { names: name, note });
    Number { name, alias, range: (0, i64::MAX), is_memory: false, value: AtomicI64::new(default) }
}

/// Does a filter that is being loaded look absent? Otherwise lookups are errors meanwhile.
pub(crate) static ABSENT_WHILE_LOADING: Switch = Switch { name: c"absent-while-loading", value: AtomicBool::new(false) };

/// The false-positive rate of new filters.
pub(crate) static ERROR_RATE: Setting = Setting::new(
    c"error-rate",
    c"0.01",
    || f64::from_bits(RATE.load(Relaxed)).to_string(),
    |text| {
        RATE.store(rate(text)?.to_bits(), Relaxed);
        Ok(())
    },
);

static RATE: AtomicU64 = AtomicU64::new(DEFAULT_RATE.to_bits());

/// The plan of a filter of which nothing was said.
pub(crate) fn default_plan() -> Plan {
    Plan {
        capacity: INITIAL_SIZE.value.load(Relaxed),
        expansion: EXPANSION.value.load(Relaxed),
        error_rate: f64::from_bits(RATE.load(Relaxed)),
        seed: SEED.value.load(Relaxed),
    }
}

/// The most bytes of a filter.
pub(crate) fn max_bytes() -> usize {
    usize::try_from(MAX_BYTES.value.load(Relaxed)).unwrap_or(usize::MAX)
}

pub(crate) fn is_absent_while_loading() -> bool {
    ABSENT_WHILE_LOADING.value.load(Relaxed)
}

/// What an argument of RedisBloom's means here.
enum Meaning {
    /// A setting's default.
    Of(&'static Number),
    /// Nothing, for this reason.
    None(&'static str),
}

const PACKING: &str = "buckets of koel's filters have four slots";
const SEARCH: &str = "koel searches for room by its own rule";
const GROWTH: &str = "koel.max-bytes bounds the growth of filters";
const BLOOM: &str = "it is for Bloom filters, which koel does not have";

static ARGUMENTS: [(&str, Meaning); 10] = [
    ("CF_INITIAL_SIZE", Meaning::Of(&INITIAL_SIZE)),
    ("CF_EXPANSION_FACTOR", Meaning::Of(&EXPANSION)),
    ("CF_BUCKET_SIZE", Meaning::None(PACKING)),
    ("CF_MAX_ITERATIONS", Meaning::None(SEARCH)),
    ("CF_MAX_EXPANSIONS", Meaning::None(GROWTH)),
    ("ERROR_RATE", Meaning::None(BLOOM)),
    ("INITIAL_SIZE", Meaning::None(BLOOM)),
    ("BF_ERROR_RATE", Meaning::None(BLOOM)),
    ("BF_INITIAL_SIZE", Meaning::None(BLOOM)),
    ("BF_EXPANSION_FACTOR", Meaning::None(BLOOM)),
];

/// Takes an argument of RedisBloom's, whose names it writes in capitals with `_`, or, since its release 8, in small letters with `-`.
/// Returns a line for the log. It sets a default: what the configuration says has precedence.
pub(crate) fn argument(name: &[u8], value: Option<&[u8]>) -> Result<Words, Failure> {
    let is_known = |known: &str| {
        let same = |(a, b): (u8, &u8)| a == b.to_ascii_uppercase() || (a, *b) == (b'_', b'-');
        known.len() == name.len() && known.bytes().zip(name).all(same)
    };
    let Some((known, meaning)) = ARGUMENTS.iter().find(|(known, _)| is_known(known)) else {
        let names = ARGUMENTS.each_ref().map(|(name, _)| *name).join(", ");
        return Err(Failure::new(format_args!(
            "{} is no argument that koel knows: those of RedisBloom are {names}; koel's own settings, such as koel.error-rate, \
             belong into the server's configuration",
            name.escape_ascii()
        )));
    };
    let value = value.ok_or_else(|| Failure::new(format_args!("the argument {known} has no value")))?;
    match meaning {
        Meaning::None(reason) => Words::new(format_args!("RedisBloom's {known} has no effect: {reason}")),
        Meaning::Of(number) => {
            let setting = format_args!("koel.{}", number.name.to_str().unwrap_or_default()).to_string();
            let (least, most) = number.range;
            let size = integer(value).filter(|size| (least..=most).contains(size)).ok_or_else(|| {
                Failure::new(format_args!(
                    "{known} {} cannot be {setting}, which must be in the range [{least}, {most}]",
                    value.escape_ascii()
                ))
            })?;
            number.value.store(size, Relaxed);
            Words::new(format_args!("RedisBloom's {known} {size} is the default of {setting}"))
        }
    }
}
