//! What the laboratory predicts, real filters keep.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use std::ops::RangeInclusive;

use crate::common::{ADDRESSINGS, SplitMix64, split_mix::unfolded};
use koel::{
    Addressing, CuckooFilter, Params, Prehashed, TableKind, Xxh3,
    tuning::{Candidate, Constraints, HIGHEST_RATE, Recommendation, best_rate, crowded_pairs, recommend, safe_load},
};

/// With this many standard deviations of tolerance, one of a thousand predictions may be wrong by chance in ten runs; but the
/// hashes are always the same.
const DEVIATIONS: f64 = 4.5;

/// Builds the filter that was recommended, and holds it against the prediction.
fn holds(candidate: &Candidate, items: usize) {
    let mut filter = CuckooFilter::new(*candidate.params(), Xxh3).expect("there is memory");
    let what = format!("{candidate:?}");
    let addressing = candidate.params().addressing();
    for hash in SplitMix64(items as u64).take(items).map(|hash| unfolded(addressing, hash)) {
        filter.insert(&Prehashed(hash)).unwrap_or_else(|full| panic!("{what}: {full}"));
    }
    let bytes = filter.to_bytes();
    assert_eq!(bytes.len() - 72, candidate.bytes(), "{what}");
    assert!((filter.load_factor() - candidate.load()).abs() < 1e-12, "{what}");
    assert!((filter.bits_per_item() - candidate.bits_per_item()).abs() < 1e-9, "{what}");
    let rate = candidate.false_positive_rate();
    let samples = 40_000;
    let expected = rate * f64::from(samples);
    let found = SplitMix64(!0).take(samples as usize).map(|hash| unfolded(addressing, hash));
    let found = found.filter(|&hash| filter.contains(&Prehashed(hash))).count() as f64;
    // Rates of single filters vary a little more than coins do, since their loads differ from bucket to bucket.
    let tolerance = DEVIATIONS * (1.2 * expected * (1.0 - rate)).sqrt() + 1.0;
    assert!((found - expected).abs() <= tolerance, "{what}: {found} of {samples} found, {expected:.1} expected");
}

#[test]
fn predictions_hold_for_more_than_two_hundred_sets_of_parameters() {
    let mut held = 0;
    for items in [100, 1000, 3333, 20_000] {
        for rate in [0.3, 0.03, 0.01, 0.001, 1e-5] {
            for addressing in ADDRESSINGS {
                let constraints = Constraints::default().addressing(addressing);
                for candidate in recommend(items, rate, &constraints).candidates() {
                    assert!(candidate.false_positive_rate() <= rate * (1.0 + 1e-12));
                    holds(candidate, items);
                    held += 1;
                }
            }
        }
    }
    assert!(held >= 200, "{held}");
}

fn names(recommendation: &Recommendation) -> Vec<(TableKind, u32)> {
    let candidates = recommendation.candidates().iter();
    candidates.map(|candidate| (candidate.params().table(), candidate.params().bucket_size())).collect()
}

#[test]
fn the_first_is_what_the_builder_takes() {
    for (items, rate) in [(10, 0.1), (1000, 0.001), (1_000_000, 0.0001), (1_000_000_000, 0.03)] {
        let advice = recommend(items, rate, &Constraints::default().bucket_size(4));
        let params = CuckooFilter::builder().capacity(items).false_positive_rate(rate).params().expect("right");
        assert_eq!(advice.best().map(Candidate::params), Some(&params));
        let all = recommend(items, rate, &Constraints::default());
        assert!(all.best().expect("there is one").bytes() <= params.table_bytes());
        assert!(all.candidates().is_sorted_by_key(Candidate::bytes));
    }
}

#[test]
fn everything_is_either_recommended_or_refused_with_a_reason() {
    let all = 1 + 16;
    let reasons = |advice: &Recommendation, part: &str| {
        assert_eq!(advice.candidates().len() + advice.rejections().len(), all, "{advice:?}");
        let with = advice.rejections().iter().filter(|rejection| rejection.reason().contains(part)).count();
        assert!(with > 0, "{part:?} is not in {advice:?}");
        with
    };
    let of = |constraints: &Constraints| recommend(1000, 0.001, constraints);
    assert_eq!(names(&of(&Constraints::default().table(TableKind::Packed))), [(TableKind::Packed, 4)]);
    assert_eq!(reasons(&of(&Constraints::default().table(TableKind::Packed)), "single table was not requested"), 16);
    assert_eq!(reasons(&of(&Constraints::default().bucket_size(2)), "only buckets of 2 slots were requested"), 16);
    assert_eq!(reasons(&of(&Constraints::default().bucket_size(1)), "only buckets of 1 slot were requested"), 16);
    let smallest = of(&Constraints::default()).best().expect("there is one").bytes();
    assert_eq!(of(&Constraints::default().max_bytes(smallest)).candidates().len(), 1);
    assert_eq!(reasons(&of(&Constraints::default().max_bytes(smallest - 1)), &format!("there may be {}", smallest - 1)), all);
    assert_eq!(reasons(&recommend(1000, 1e-12, &Constraints::default()), "keep rates from"), all);
    assert_eq!(reasons(&recommend(1000, 0.51, &Constraints::default()), "give 0.5 or less"), all);
    assert_eq!(reasons(&recommend(1000, 1.0, &Constraints::default()), "give 0.5 or less"), all);
    assert_eq!(reasons(&recommend(1000, 0.0, &Constraints::default()), "keep rates from"), all);
    assert_eq!(reasons(&recommend(usize::MAX, 0.01, &Constraints::default()), "at most"), all);
}

/// A bucket size that no table has is named with those that there are.
#[test]
fn a_bucket_size_that_is_not_there_is_a_reason() {
    let of = |b, table| {
        let constraints = Constraints::default().bucket_size(b);
        [recommend(1000, 0.001, &constraints), best_rate(1000, 10_000, &constraints)].map(|advice| {
            let mut reasons = advice.rejections().iter().filter(|rejection| rejection.bucket_size() == b);
            reasons.find(|rejection| rejection.table() == table).map(|rejection| rejection.reason().to_owned())
        })
    };
    for b in [0, 17] {
        for (table, limit) in [(TableKind::Single, "1 to 16"), (TableKind::Packed, "4")] {
            let reason = format!("bucket size: {b} given, but the {table} table takes {limit}; give one of those");
            assert_eq!(of(b, table), [Some(reason.clone()), Some(reason)]);
        }
    }
    assert_eq!(names(&recommend(1000, 0.001, &Constraints::default().bucket_size(3))), [(TableKind::Single, 3)]);
}

/// Both ways, what is equally good is in the same order: the smaller first, the single table before the packed one, larger
/// buckets before smaller ones.
#[test]
fn equals_have_an_order() {
    let orderly = |advice: &Recommendation| {
        advice.candidates().is_sorted_by_key(|candidate| {
            (candidate.bytes(), candidate.params().table() == TableKind::Packed, -i64::from(candidate.params().bucket_size()))
        })
    };
    for addressing in ADDRESSINGS {
        let constraints = Constraints::default().addressing(addressing);
        for items in 0..20 {
            assert!(orderly(&recommend(items, 0.5, &constraints)), "{items}");
        }
        // Where there are no items, no rate is better than another.
        let advice = best_rate(0, 1000, &constraints);
        assert!(advice.candidates().len() == 17 && orderly(&advice), "{advice:?}");
    }
}

#[test]
fn the_reverse_finds_the_best_that_fits() {
    for (items, bytes) in [(1000, 2000), (100_000, 100_000), (1_000_000_000, 1_600_000_000)] {
        let advice = best_rate(items, bytes, &Constraints::default());
        let best = advice.best().expect("that is enough");
        assert!(best.bytes() <= bytes && best.params().capacity() >= items);
        assert!(advice.candidates().iter().all(|other| other.false_positive_rate() >= best.false_positive_rate()));
        // One bit more would not fit.
        let longer = CuckooFilter::builder()
            .capacity(items)
            .table(best.params().table())
            .bucket_size(best.params().bucket_size())
            .fingerprint_bits(best.params().fingerprint_bits() + 1);
        assert!(longer.params().expect("right").table_bytes() > bytes);
    }
    let nothing = best_rate(1000, 10, &Constraints::default());
    assert!(nothing.best().is_none());
    assert!(nothing.rejections().iter().all(|rejection| rejection.reason().contains("there may be 10")), "{nothing:?}");
    // As small as it gets and is of use: very short fingerprints cannot fill a large table, and longer ones take less.
    for (items, bytes) in [(1000, 10), (1_000_000, 1000)] {
        for rejection in best_rate(items, bytes, &Constraints::default()).rejections() {
            let (table, b) = (rejection.table(), rejection.bucket_size());
            let builder = CuckooFilter::builder().capacity(items).table(table).bucket_size(b);
            let all = table.fingerprint_bits().filter_map(|f| builder.clone().fingerprint_bits(f).params().ok());
            let least = all
                .filter(|params| params.false_positive_rate_at_capacity() <= HIGHEST_RATE)
                .min_by_key(Params::table_bytes)
                .expect("there is one");
            let (f, size) = (least.fingerprint_bits(), least.table_bytes());
            assert!(rejection.reason().contains(&format!("fingerprints of {f} bits, it takes {size} bytes")), "{rejection:?}");
        }
    }
    // Whichever is less.
    let twice = best_rate(1000, 4000, &Constraints::default().max_bytes(2000));
    assert_eq!(twice, best_rate(1000, 2000, &Constraints::default()));
}

/// All kinds of tables with buckets of these sizes, and all lengths of their fingerprints.
fn kinds(bucket_sizes: RangeInclusive<u32>) -> impl Iterator<Item = (TableKind, u32, u32)> {
    let tables =
        [TableKind::Packed, TableKind::Single].into_iter().flat_map(|table| table.bucket_sizes().map(move |b| (table, b)));
    let tables = tables.filter(move |(_, b)| bucket_sizes.contains(b));
    tables.flat_map(|(table, b)| table.fingerprint_bits().map(move |f| (table, b, f)))
}

/// Of all tables of a kind, the smallest one that is planned for the items and keeps the rate: every number of buckets is tried.
fn smallest_by_trying((table, b, f): (TableKind, u32, u32), items: usize, rate: f64, most: usize) -> Option<usize> {
    let builder = CuckooFilter::builder().table(table).bucket_size(b).fingerprint_bits(f);
    let mut tables = (1..).map(|half| builder.clone().buckets(2 * half).params().expect("there is one"));
    let fits = |params: &Params| params.capacity() >= items && params.false_positive_rate_at_capacity() <= rate;
    tables
        .find(|params| params.table_bytes() >= most || fits(params))
        .map(|params| params.table_bytes())
        .filter(|&bytes| bytes < most)
}

#[test]
fn the_smallest_is_the_smallest_of_all_tables() {
    let mut unusual = 0;
    for items in (1..40).step_by(3).chain([17, 47, 64, 77, 100, 128, 200, 333, 500, 1000, 2500]) {
        for rate in [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-6] {
            let advice = recommend(items, rate, &Constraints::default());
            let best = advice.best().expect("there is one");
            assert!(best.params().capacity() >= items && best.params().false_positive_rate_at_capacity() <= rate, "{best:?}");
            let smaller = kinds(1..=16).find_map(|kind| smallest_by_trying(kind, items, rate, best.bytes()));
            assert_eq!(smaller, None, "{items} items, rate {rate}: {best:?}");
            unusual += usize::from(!best.params().bucket_size().is_power_of_two());
        }
    }
    let nine = recommend(17, 0.001, &Constraints::default());
    assert_eq!(nine.best().map(|best| (best.params().bucket_size(), best.bytes())), Some((9, 34)));
    assert!(unusual > 50, "{unusual}");
}

#[test]
fn the_lowest_rate_is_the_lowest_of_all_tables() {
    for items in [0, 1, 5, 17, 40, 100, 333, 1000, 10_000_usize] {
        for bits in [3, 4, 5, 6, 8, 11, 17, 24, 40] {
            let bytes = (items * bits).div_ceil(8);
            let advice = best_rate(items, bytes, &Constraints::default());
            let tables = kinds(1..=16).filter_map(|(table, b, f)| {
                let builder = CuckooFilter::builder().capacity(items).table(table).bucket_size(b).fingerprint_bits(f);
                builder.params().ok().filter(|params| params.table_bytes() <= bytes)
            });
            let useful = tables.filter(|params| params.false_positive_rate_at_capacity() <= HIGHEST_RATE);
            let lowest =
                useful.map(|params| params.false_positive_rate_at(items as f64 / params.slots() as f64)).reduce(f64::min);
            assert_eq!(
                advice.best().map(|best| best.false_positive_rate().to_bits()),
                lowest.map(f64::to_bits),
                "{items}, {bytes}"
            );
        }
    }
}

/// Where the rate and the bytes meet: what is enough for a filter of use is what the one needs and the other takes.
#[test]
fn nothing_of_no_use_is_recommended() {
    for items in [1, 17, 1000, 1_000_000, 1_000_000_000] {
        let least = recommend(items, HIGHEST_RATE, &Constraints::default()).best().expect("there is one").bytes();
        let best = best_rate(items, least, &Constraints::default());
        assert!(best.best().expect("that is enough").params().false_positive_rate_at_capacity() <= HIGHEST_RATE);
        let none = best_rate(items, least - 1, &Constraints::default());
        assert!(none.best().is_none(), "{none:?}");
        assert!(
            none.rejections().iter().any(|rejection| rejection.reason().contains(&format!("it takes {least} bytes"))),
            "{none:?}"
        );
    }
}

/// Why a builder does not compare bucket sizes. docs/TUNING.md has what this prints.
#[test]
fn other_bucket_sizes_save_little() {
    for items in [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000] {
        let (mut saved, mut smaller) = (Vec::new(), 0);
        for step in 0..100 {
            let rate = 0.3 * (1e-6_f64 / 0.3).powf(f64::from(step) / 99.0);
            let usual = CuckooFilter::builder().capacity(items).false_positive_rate(rate).params().expect("right").table_bytes();
            let best = recommend(items, rate, &Constraints::default()).best().expect("there is one").bytes();
            saved.push(1.0 - best as f64 / usual as f64);
            smaller += usize::from(best < usual);
        }
        let (most, mean) = (saved.iter().copied().fold(0.0, f64::max), saved.iter().sum::<f64>() / 100.0);
        println!("{items} items: {smaller} of 100 rates, {:.2} % at most, {:.2} % on average", 100.0 * most, 100.0 * mean);
        assert!(items < 10_000 || most < 0.025 && mean < 0.001, "{items} items: {most}, {mean}");
    }
}

/// The paper's section 4 from both sides: where the formula says that items meet, the measured loads are low.
#[test]
fn short_fingerprints_cannot_fill_large_tables() {
    let load = |f, log2: u32| safe_load(Addressing::AnySize, 4, f, 1 << log2);
    assert!(load(12, 19) > 0.97 && load(4, 19) < 0.9);
    for f in [4, 5, 6] {
        assert!(load(f, 40) < load(f, 12));
        assert!(crowded_pairs(4, f, 1 << 40, load(f, 12)) > 1e-4);
        assert!(crowded_pairs(4, f, 1 << 40, load(f, 40)) <= 1e-4);
    }
}
