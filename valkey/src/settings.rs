//! The module's settings in the server's configuration, as in `CONFIG SET koel.max-bytes 4gb`.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::{
    plan::{CAPACITIES, EXPANSIONS, Plan, rate},
    server::{Number, Setting},
};

const DEFAULT_RATE: f64 = 0.01;

/// The capacity of a filter that is made by its first item.
pub(crate) static INITIAL_SIZE: Number = Number {
    name: c"initial-size",
    default: 1024,
    range: (*CAPACITIES.start(), *CAPACITIES.end()),
    is_memory: false,
    value: AtomicI64::new(1024),
};

/// What a filter is planned to grow to, in multiples of its capacity; 0 if it does not grow.
pub(crate) static EXPANSION: Number = Number {
    name: c"expansion",
    default: 1,
    range: (*EXPANSIONS.start(), *EXPANSIONS.end()),
    is_memory: false,
    value: AtomicI64::new(1),
};

/// The most bytes of a filter that clients insert into, reserve or load.
pub(crate) static MAX_BYTES: Number =
    Number { name: c"max-bytes", default: 1 << 30, range: (1024, i64::MAX), is_memory: true, value: AtomicI64::new(1 << 30) };

/// The seed of new filters.
pub(crate) static SEED: Number =
    Number { name: c"seed", default: 0, range: (0, i64::MAX), is_memory: false, value: AtomicI64::new(0) };

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
