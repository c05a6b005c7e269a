//! The module's settings in the server's configuration, as in `CONFIG SET koel.max-bytes 4gb`.

use std::{
    ffi::CStr,
    sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
};

use crate::{
    plan::{EXPANSIONS, Plan, USUAL_CAPACITIES, integer, rate},
    reply::{Failure, Message},
    server::{Alias, Number, Setting, Switch},
};

const DEFAULT_RATE: f64 = 0.01;

/// The capacity of a filter that is created by its first item.
pub(crate) static INITIAL_SIZE: Number = Number {
    name: c"initial-size",
    alias: Some(Alias {
        names: c"koel.initial-size|cf-initial-size",
        note: c"koel.initial-size was set, which is RedisBloom's cf-initial-size, too",
    }),
    range: (*USUAL_CAPACITIES.start(), *USUAL_CAPACITIES.end()),
    is_memory: false,
    value: AtomicI64::new(1024),
};

/// The size that a filter is planned to grow to, as a multiple of its capacity. 0 if it must not grow.
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

/// RedisBloom's other settings, with RedisBloom's defaults.
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

/// True if a filter that is being loaded looks absent to lookups. Otherwise lookups are errors.
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

/// Returns the plan of a filter that is created without options.
pub(crate) fn default_plan() -> Plan {
    Plan {
        capacity: INITIAL_SIZE.value.load(Relaxed),
        expansion: EXPANSION.value.load(Relaxed),
        error_rate: f64::from_bits(RATE.load(Relaxed)),
        seed: SEED.value.load(Relaxed),
    }
}

/// Returns the most bytes of a filter.
pub(crate) fn max_bytes() -> usize {
    usize::try_from(MAX_BYTES.value.load(Relaxed)).unwrap_or(usize::MAX)
}

pub(crate) fn is_absent_while_loading() -> bool {
    ABSENT_WHILE_LOADING.value.load(Relaxed)
}

/// The effect of one of RedisBloom's module arguments.
enum Effect {
    /// It sets the default of a setting.
    Default(&'static Number),
    /// It has no effect, for this reason.
    NoEffect(&'static str),
}

const PACKING: &str = "buckets of koel's filters have four slots";
const SEARCH: &str = "koel searches for room by its own rule";
const GROWTH: &str = "koel.max-bytes bounds the growth of filters";
const BLOOM: &str = "it is for Bloom filters, which koel does not have";

static ARGUMENTS: [(&str, Effect); 10] = [
    ("CF_INITIAL_SIZE", Effect::Default(&INITIAL_SIZE)),
    ("CF_EXPANSION_FACTOR", Effect::Default(&EXPANSION)),
    ("CF_BUCKET_SIZE", Effect::NoEffect(PACKING)),
    ("CF_MAX_ITERATIONS", Effect::NoEffect(SEARCH)),
    ("CF_MAX_EXPANSIONS", Effect::NoEffect(GROWTH)),
    ("ERROR_RATE", Effect::NoEffect(BLOOM)),
    ("INITIAL_SIZE", Effect::NoEffect(BLOOM)),
    ("BF_ERROR_RATE", Effect::NoEffect(BLOOM)),
    ("BF_INITIAL_SIZE", Effect::NoEffect(BLOOM)),
    ("BF_EXPANSION_FACTOR", Effect::NoEffect(BLOOM)),
];

/// Reads one of RedisBloom's module arguments and returns a line for the log. RedisBloom writes names in capitals with `_`; since
/// its release 8, in small letters with `-`. The argument sets a default, which the server's configuration overrides.
pub(crate) fn argument(name: &[u8], value: Option<&[u8]>) -> Result<Message, Failure> {
    let has_name = |known: &str| {
        let same = |(a, b): (u8, &u8)| a == b.to_ascii_uppercase() || (a, *b) == (b'_', b'-');
        known.len() == name.len() && known.bytes().zip(name).all(same)
    };
    let Some((known, effect)) = ARGUMENTS.iter().find(|(known, _)| has_name(known)) else {
        let names = ARGUMENTS.each_ref().map(|(name, _)| *name).join(", ");
        return Err(Failure::new(format_args!(
            "{} is no argument that koel knows: those of RedisBloom are {names}; koel's own settings, such as koel.error-rate, \
             belong into the server's configuration",
            name.escape_ascii()
        )));
    };
    let value = value.ok_or_else(|| Failure::new(format_args!("the argument {known} has no value")))?;
    match effect {
        Effect::NoEffect(reason) => Message::new(format_args!("RedisBloom's {known} has no effect: {reason}")),
        Effect::Default(number) => {
            let setting = format_args!("koel.{}", number.name.to_str().unwrap_or_default()).to_string();
            let (least, most) = number.range;
            let size = integer(value).filter(|size| (least..=most).contains(size)).ok_or_else(|| {
                Failure::new(format_args!(
                    "{known} {} cannot be {setting}, which must be in the range [{least}, {most}]",
                    value.escape_ascii()
                ))
            })?;
            number.value.store(size, Relaxed);
            Message::new(format_args!("RedisBloom's {known} {size} is the default of {setting}"))
        }
    }
}
