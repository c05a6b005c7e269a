//! From what a user wants to [`Params`]: the factory's decisions, before anything is allocated.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    error::ParamError,
    kind::{Addressing, TableKind},
    max_load,
    num::wide,
    params::{DEFAULT_BUCKET_SIZE, Params},
};

/// What a [`Builder`](crate::Builder) was told. `None`: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    pub(crate) capacity: Option<usize>,
    pub(crate) buckets: Option<u64>,
    pub(crate) false_positive_rate: Option<f64>,
    pub(crate) fingerprint_bits: Option<u32>,
    pub(crate) table: Option<TableKind>,
    pub(crate) bucket_size: Option<u32>,
    pub(crate) addressing: Addressing,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy)]
enum Size {
    Capacity(usize),
    Buckets(u64),
}

#[derive(Clone, Copy)]
enum Precision {
    Rate(f64),
    Bits(u32),
}

impl Request {
    /// The smallest table that does what was asked; the single one of two that are equally large, since it is simpler.
    ///
    /// # Errors
    /// If no table does.
    pub(crate) fn params(&self) -> Result<Params, ParamError> {
        let size = self.size()?;
        let precision = self.precision()?;
        let b = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let kinds = match self.table {
            Some(TableKind::Single) => &[TableKind::Single][..],
            Some(TableKind::Packed) => &[TableKind::Packed],
            None if TableKind::Packed.bucket_sizes().contains(&b) => &[TableKind::Single, TableKind::Packed],
            None => &[TableKind::Single],
        };
        let tables: Vec<_> = kinds.iter().map(|&kind| self.table(kind, b, size, precision)).collect();
        let smallest = tables.iter().flatten().min_by_key(|params| params.table_bytes()).cloned();
        // The single table takes whatever the packed one does, and more: its complaint is the one that counts.
        smallest.map_or_else(|| tables.into_iter().next().unwrap_or_else(|| unreachable!("there is a kind")), Ok)
    }

    fn size(&self) -> Result<Size, ParamError> {
        match (self.capacity, self.buckets) {
            (Some(capacity), None) => Ok(Size::Capacity(capacity)),
            (None, Some(buckets)) => Ok(Size::Buckets(buckets)),
            (capacity, _) => {
                Err(either("capacity", capacity.is_some(), "the size follows from a capacity or from a number of buckets"))
            }
        }
    }

    fn precision(&self) -> Result<Precision, ParamError> {
        match (self.false_positive_rate, self.fingerprint_bits) {
            (Some(rate), None) if rate > 0.0 && rate < 1.0 => Ok(Precision::Rate(rate)),
            (Some(rate), None) => Err(ParamError {
                parameter: "false-positive rate",
                given: rate.to_string(),
                limit: String::from("it lies between 0 and 1, both excluded"),
                remedy: format!("the nearest that works is about {}", if rate >= 1.0 { "0.99" } else { "1e-8" }),
            }),
            (None, Some(bits)) => Ok(Precision::Bits(bits)),
            (rate, _) => Err(either(
                "false-positive rate",
                rate.is_some(),
                "the fingerprints' length follows from a false-positive rate or from a number of bits",
            )),
        }
    }

    fn table(&self, kind: TableKind, b: u32, size: Size, precision: Precision) -> Result<Params, ParamError> {
        match precision {
            Precision::Bits(f) => sized(&self.smallest(kind, f, b)?, size),
            Precision::Rate(rate) => self.precise(kind, b, size, rate),
        }
    }

    /// The smallest table that keeps to the rate. Mostly the one with the shortest fingerprints that do; but very short
    /// ones cannot fill a very large table, and longer ones then take less.
    fn precise(&self, kind: TableKind, b: u32, size: Size, rate: f64) -> Result<Params, ParamError> {
        let mut best = 1.0;
        let mut smallest_table: Option<Params> = None;
        for f in kind.fingerprint_bits() {
            let smallest = self.smallest(kind, f, b)?;
            if smallest_table.as_ref().is_some_and(|params| params.table_bytes() <= full_table_bytes(&smallest, size)) {
                break;
            }
            let sized = sized(&smallest, size);
            // Where the size is too large, these fingerprints are to be complained of only if they are the ones to use.
            let params = sized.clone().or_else(|_| smallest.with_buckets(smallest.most_buckets()))?;
            best = params.false_positive_rate_at_capacity();
            if best <= rate {
                match (sized, &smallest_table) {
                    (Err(error), None) => return Err(error),
                    (Ok(params), None) => smallest_table = Some(params),
                    (Ok(params), Some(other)) if params.table_bytes() < other.table_bytes() => smallest_table = Some(params),
                    _ => {}
                }
            }
        }
        smallest_table.ok_or_else(|| ParamError {
            parameter: "false-positive rate",
            given: format!("{rate:e}"),
            limit: format!("fingerprints have {} bits at most", kind.fingerprint_bits().end()),
            // A little more than the best, since it is rounded.
            remedy: format!("the nearest that works is {:.2e}", best * 1.01),
        })
    }

    fn smallest(&self, kind: TableKind, f: u32, b: u32) -> Result<Params, ParamError> {
        let buckets = match self.addressing {
            Addressing::AnySize => 2,
            Addressing::PowerOfTwo => 1,
        };
        Params::new(kind, f, b, buckets, self.addressing, self.seed)
    }
}

/// Bytes of a table of the kind of `smallest` if it could be filled to the last slot.
fn full_table_bytes(smallest: &Params, size: Size) -> usize {
    let buckets = match size {
        Size::Buckets(buckets) => buckets,
        Size::Capacity(capacity) => wide(capacity).div_ceil(smallest.bucket_size().into()),
    };
    smallest.table_bytes_of(buckets)
}

/// The kind of `smallest` in the size asked for.
fn sized(smallest: &Params, size: Size) -> Result<Params, ParamError> {
    match size {
        Size::Buckets(buckets) => smallest.with_buckets(buckets),
        Size::Capacity(capacity) => fit(smallest, capacity),
    }
}

/// The smallest table of the kind of `smallest` that is planned for `capacity` items.
fn fit(smallest: &Params, capacity: usize) -> Result<Params, ParamError> {
    let (f, b, addressing) = (smallest.fingerprint_bits(), smallest.bucket_size(), smallest.addressing());
    let mut buckets = smallest.buckets();
    // More buckets change the load they are planned for, which may call for more again; the load is bounded from below,
    // so this ends, after two or three rounds.
    loop {
        let slots = max_load::safe_load(addressing, b, f, buckets).slots_for(wide(capacity));
        let needed = slots.div_ceil(b.into());
        if needed <= buckets {
            return smallest.with_buckets(buckets);
        }
        let wanted = match addressing {
            Addressing::AnySize => needed.checked_next_multiple_of(2),
            Addressing::PowerOfTwo => needed.checked_next_power_of_two(),
        };
        let most = smallest.most_buckets();
        match wanted {
            Some(wanted) if wanted <= most => buckets = wanted,
            _ => {
                let largest = smallest.with_buckets(most)?;
                return Err(ParamError {
                    parameter: "capacity",
                    given: capacity.to_string(),
                    limit: format!(
                        "a {} table with fingerprints of {f} bits has {} slots at most",
                        largest.table(),
                        largest.slots()
                    ),
                    remedy: format!("the nearest that works is {}", largest.capacity()),
                });
            }
        }
    }
}

fn either(parameter: &'static str, both: bool, limit: &str) -> ParamError {
    ParamError {
        parameter,
        given: String::from(if both { "two answers" } else { "nothing" }),
        limit: String::from(limit),
        remedy: String::from("give exactly one of the two"),
    }
}
