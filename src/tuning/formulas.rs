//! Formulas. Some need a logarithm or an exponential, which only the standard library has.

use crate::params::{self, Addressing, TableKind};

/// Returns the expected false-positive rate ε: the probability that `contains` returns true for an item that was never inserted.
///
/// It is 1 − e^(−2bα/(2ᶠ − 1)). Such an item is found if another item has the same fingerprint and the same pair of buckets; on
/// average, 2bα/(2ᶠ − 1) items do. The paper's bound (section 5.1) is 2b/2ᶠ. docs/TUNING.md compares the formula with
/// measurements.
///
/// # Panics
/// If f is not from 1 to 32.
///
/// # Example
/// ```
/// use koel::tuning::false_positive_rate;
/// assert!((false_positive_rate(13, 4, 0.97) - 9.47e-4).abs() < 1e-6);
/// ```
#[must_use]
pub fn false_positive_rate(fingerprint_bits: u32, bucket_size: u32, load: f64) -> f64 {
    assert!((1..=32).contains(&fingerprint_bits), "fingerprints have 1 to 32 bits, not {fingerprint_bits}");
    params::false_positive_rate(fingerprint_bits, bucket_size, load)
}

/// Returns the shortest fingerprint length, 1 to 32 bits, whose [`false_positive_rate`] at that load is at most ε = `rate`. Returns
/// `None` if 32 bits are not enough.
///
/// # Example
/// ```
/// use koel::tuning::fingerprint_bits;
/// assert_eq!(fingerprint_bits(0.001, 4, 0.97), Some(13));
/// assert_eq!(fingerprint_bits(1e-12, 4, 0.97), None);
/// ```
#[must_use]
pub fn fingerprint_bits(rate: f64, bucket_size: u32, load: f64) -> Option<u32> {
    (1..=32).find(|&f| params::false_positive_rate(f, bucket_size, load) <= rate)
}

/// Returns the bits of the table per item: f/α in the single table, (f − 1)/α in the packed one (paper, section 5.2). Infinite at a
/// load of 0.
///
/// # Example
/// ```
/// use koel::{TableKind, tuning::bits_per_item};
/// assert_eq!(bits_per_item(TableKind::Packed, 13, 0.96), 12.5);
/// ```
#[must_use]
pub fn bits_per_item(table: TableKind, fingerprint_bits: u32, load: f64) -> f64 {
    // The bits saved per slot: the packed table saves four in a bucket of four.
    let saved = match table {
        TableKind::Single => 0,
        TableKind::Packed => 1,
    };
    f64::from(fingerprint_bits.saturating_sub(saved)) / load
}

/// Returns the load, 0 to 1, up to which a filter is planned: fewer than one filter in 10⁴ refuses an item at a lower load.
///
/// With long fingerprints, it was measured; tables/README.md describes how. Bucket sizes and table sizes between the measured ones
/// have the load of the next smaller one, or a lower load. Short fingerprints have a lower load in large tables, which follows
/// from [`overfull_pairs`] (docs/DESIGN.md, "Capacity").
///
/// # Panics
/// If `buckets` is 0, if b is not from 1 to 16, or if f is not from 2 to 32.
///
/// # Example
/// ```
/// use koel::{Addressing, tuning::safe_load};
/// let load = safe_load(Addressing::AnySize, 4, 13, 1 << 20);
/// assert!((0.96..0.98).contains(&load));
/// ```
#[must_use]
pub fn safe_load(addressing: Addressing, bucket_size: u32, fingerprint_bits: u32, buckets: u64) -> f64 {
    let (sizes, lengths) = (TableKind::Single.bucket_sizes(), TableKind::Single.fingerprint_bits());
    let is_possible = buckets > 0 && sizes.contains(&bucket_size) && lengths.contains(&fingerprint_bits);
    assert!(is_possible, "no table has {buckets} buckets of {bucket_size} slots with fingerprints of {fingerprint_bits} bits");
    let items = params::fitting_items(addressing, bucket_size, fingerprint_bits, buckets);
    items as f64 / buckets.saturating_mul(bucket_size.into()) as f64
}

/// Returns the smallest number of bits per item with which any data structure can have a false-positive rate ε: log₂(1/ε) (Carter,
/// Floyd, Gill, Markowsky and Wegman, "Exact and approximate membership testers", 1978).
///
/// # Example
/// ```
/// assert_eq!(koel::tuning::lower_bound(1.0 / 1024.0), 10.0);
/// ```
#[must_use]
pub fn lower_bound(rate: f64) -> f64 {
    -rate.log2()
}

/// Returns the paper's lower bound for the fingerprint length, in bits, with which n items find room: log₂(n)/2b, up to a constant
/// (section 4).
///
/// Items with the same fingerprint and the same buckets compete for 2b slots. The shorter the fingerprints, the more such items
/// there are. [`overfull_pairs`] is the expected number of pairs of buckets with too many of them; [`fingerprint_bits_for_load`]
/// gives measured lengths.
///
/// # Example
/// ```
/// assert_eq!(koel::tuning::min_fingerprint_bits(1 << 32, 4), 4.0);
/// ```
#[must_use]
pub fn min_fingerprint_bits(items: u64, bucket_size: u32) -> f64 {
    (items.max(1) as f64).log2() / (2.0 * f64::from(bucket_size))
}

/// Returns the shortest fingerprint length, 2 to 32 bits, with which a table of this many buckets may be planned for that load. It
/// follows from the measured [`safe_load`]; [`min_fingerprint_bits`] is the paper's bound up to a constant. Returns `None` if no
/// length is enough.
///
/// # Panics
/// If `buckets` is 0, or if b is not from 1 to 16.
///
/// # Example
/// ```
/// use koel::{Addressing::AnySize, tuning::{fingerprint_bits_for_load, min_fingerprint_bits}};
/// // A billion slots in buckets of four: with seven bits, all but one table in 10⁴ reach a load of 95 %. (In the paper's figure 2,
/// // somewhat more than six bits fill 2³⁰ buckets, in ten tables.)
/// assert!((min_fingerprint_bits(1 << 30, 4) - 3.75).abs() < 1e-12);
/// assert_eq!(fingerprint_bits_for_load(AnySize, 4, 1 << 28, 0.95), Some(7));
/// assert_eq!(fingerprint_bits_for_load(AnySize, 4, 1 << 28, 0.99), None);
/// ```
#[must_use]
pub fn fingerprint_bits_for_load(addressing: Addressing, bucket_size: u32, buckets: u64, load: f64) -> Option<u32> {
    TableKind::Single.fingerprint_bits().find(|&f| safe_load(addressing, bucket_size, f, buckets) >= load)
}

/// Returns the expected number of pairs of buckets to which more than 2b items belong, so one of these has no room. If it is
/// small, it is nearly the probability that a table refuses an item for this reason.
///
/// There are m(2ᶠ − 1)/2 pairs of a bucket and its alternate, and the number of items of a pair has a Poisson distribution.
///
/// # Example
/// Five-bit fingerprints suffice for 2 M slots, but hardly for a billion:
/// ```
/// use koel::tuning::overfull_pairs;
/// assert!(overfull_pairs(4, 5, 1 << 19, 0.97) < 1e-4);
/// assert!(overfull_pairs(4, 5, 1 << 28, 0.97) > 0.03);
/// ```
#[must_use]
pub fn overfull_pairs(bucket_size: u32, fingerprint_bits: u32, buckets: u64, load: f64) -> f64 {
    let pairs = buckets as f64 * (f64::from(fingerprint_bits).exp2() - 1.0) / 2.0;
    let items = load * f64::from(bucket_size) * buckets as f64 / pairs;
    let room = 2 * bucket_size;
    // The probability of one item more than there is room for, and then of each larger number.
    let mut chance = (1..=room + 1).map(|k| items / f64::from(k)).product::<f64>() * (-items).exp();
    let mut tail = 0.0;
    for k in room + 2..room + 200 {
        tail += chance;
        chance *= items / f64::from(k);
    }
    pairs * tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_bits_returns_the_shortest_sufficient_length() {
        for b in [1, 2, 4, 8, 16] {
            for rate in [0.3, 0.1, 0.01, 0.001, 1e-6] {
                let f = fingerprint_bits(rate, b, 0.95).expect("there is one");
                assert!(false_positive_rate(f, b, 0.95) <= rate);
                assert!(f == 1 || false_positive_rate(f - 1, b, 0.95) > rate);
            }
        }
    }

    #[test]
    fn measured_lengths_agree_with_the_papers_bound_up_to_a_constant() {
        for b in [4, 8] {
            let mut last = 0;
            for log2 in [10, 20, 30, 40] {
                let f = fingerprint_bits_for_load(Addressing::AnySize, b, 1 << log2, 0.8).expect("there is one");
                let bound = min_fingerprint_bits(u64::from(b) << log2, b);
                assert!(f >= last && f64::from(f) > bound && f64::from(f) < bound + 4.0, "b {b}, 2^{log2} buckets: {f}, {bound}");
                last = f;
            }
        }
        // Tables with buckets of one slot never reach that load.
        assert_eq!(fingerprint_bits_for_load(Addressing::AnySize, 1, 1 << 20, 0.8), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[should_panic(expected = "no table has 2 buckets of 17 slots with fingerprints of 9 bits")]
    fn safe_load_panics_for_an_impossible_table() {
        let _ = safe_load(Addressing::AnySize, 17, 9, 2);
    }

    #[test]
    fn bits_per_item_agree_with_the_paper() {
        // Section 5.1: (log2(1/ε) + 3)/α with b = 4; section 5.2: one bit less.
        let f = fingerprint_bits(0.001, 4, 0.95).expect("there is one");
        let exact = (lower_bound(0.001) + 3.0) / 0.95;
        assert!((bits_per_item(TableKind::Single, f, 0.95) - exact).abs() < 1.0 / 0.95);
        assert!(
            (bits_per_item(TableKind::Single, f, 0.95) - bits_per_item(TableKind::Packed, f, 0.95) - 1.0 / 0.95).abs() < 1e-12
        );
        assert!((min_fingerprint_bits(1 << 32, 4) - 4.0).abs() < 1e-12);
    }
}
