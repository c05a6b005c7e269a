//! Real filters agree with the predictions of `koel::tuning`.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use std::ops::RangeInclusive;

use crate::common::{ADDRESSINGS, SplitMix64, split_mix::unfolded};
use koel::{
    Addressing, CuckooFilter, Params, Prehashed, TableKind, Xxh3,
    tuning::{self, Candidate, Constraints, MAX_RATE, Recommendation, best_rate, overfull_pairs, recommend, safe_load},
};

/// The tolerance in standard deviations: about one of 100,000 correct predictions lies outside. The hashes are fixed, so all runs
/// give the same result.
const DEVIATIONS: f64 = 4.5;

/// Builds a recommended filter and compares it with the prediction.
fn check_prediction(candidate: &Candidate, items: usize) {
    let mut filter = CuckooFilter::new(*candidate.params(), Xxh3).expect("there is memory");
    let case = format!("{candidate:?}");
    let addressing = candidate.params().addressing();
    for hash in SplitMix64(items as u64).take(items).map(|hash| unfolded(addressing, hash)) {
        filter.insert(&Prehashed(hash)).unwrap_or_else(|full| panic!("{case}: {full}"));
    }
    let bytes = filter.to_bytes();
    assert_eq!(bytes.len() - 72, candidate.bytes(), "{case}");
    assert!((filter.load_factor() - candidate.load()).abs() < 1e-12, "{case}");
    assert!((filter.bits_per_item() - candidate.bits_per_item()).abs() < 1e-9, "{case}");
    let rate = candidate.false_positive_rate();
    let samples = 40_000;
    let expected = rate * f64::from(samples);
    let found = SplitMix64(!0).take(samples as usize).map(|hash| unfolded(addressing, hash));
    let found = found.filter(|&hash| filter.contains(&Prehashed(hash))).count() as f64;
    // The rate of a single filter varies a little more than a binomial distribution, because buckets differ in load.
    let tolerance = DEVIATIONS * (1.2 * expected * (1.0 - rate)).sqrt() + 1.0;
    assert!((found - expected).abs() <= tolerance, "{case}: {found} of {samples} found, {expected:.1} expected");
}

#[test]
fn predictions_hold_for_more_than_two_hundred_sets_of_parameters() {
    let mut checked = 0;
    for items in [100, 1000, 3333, 20_000] {
        for rate in [0.3, 0.03, 0.01, 0.001, 1e-5] {
            for addressing in ADDRESSINGS {
                let constraints = Constraints::default().addressing(addressing);
                for candidate in recommend(items, rate, &constraints).candidates() {
                    assert!(candidate.false_positive_rate() <= rate * (1.0 + 1e-12));
                    check_prediction(candidate, items);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked >= 200, "{checked}");
}

fn candidate_kinds(recommendation: &Recommendation) -> Vec<(TableKind, u32)> {
    let candidates = recommendation.candidates().iter();
    candidates.map(|candidate| (candidate.params().table(), candidate.params().bucket_size())).collect()
}

#[test]
fn the_first_candidate_is_the_builders_choice() {
    for (items, rate) in [(10, 0.1), (1000, 0.001), (1_000_000, 0.0001), (1_000_000_000, 0.03)] {
        let advice = recommend(items, rate, &Constraints::default().bucket_size(4));
        let params = CuckooFilter::builder().capacity(items).false_positive_rate(rate).params().expect("valid parameters");
        assert_eq!(advice.best().map(Candidate::params), Some(&params));
        let all = recommend(items, rate, &Constraints::default());
        assert!(all.best().expect("at least one candidate").bytes() <= params.table_bytes());
        assert!(all.candidates().is_sorted_by_key(Candidate::bytes));
    }
}

#[test]
fn all_kinds_are_recommended_or_rejected_with_a_reason() {
    let all = 1 + 16;
    let count_reasons = |advice: &Recommendation, part: &str| {
        assert_eq!(advice.candidates().len() + advice.rejections().len(), all, "{advice:?}");
        let count = advice.rejections().iter().filter(|rejection| rejection.reason().contains(part)).count();
        assert!(count > 0, "{part:?} is not in {advice:?}");
        count
    };
    let advise = |constraints: &Constraints| recommend(1000, 0.001, constraints);
    assert_eq!(candidate_kinds(&advise(&Constraints::default().table(TableKind::Packed))), [(TableKind::Packed, 4)]);
    assert_eq!(count_reasons(&advise(&Constraints::default().table(TableKind::Packed)), "single table was not requested"), 16);
    assert_eq!(count_reasons(&advise(&Constraints::default().bucket_size(2)), "only buckets of 2 slots were requested"), 16);
    assert_eq!(count_reasons(&advise(&Constraints::default().bucket_size(1)), "only buckets of 1 slot were requested"), 16);
    let smallest = advise(&Constraints::default()).best().expect("at least one candidate").bytes();
    assert_eq!(advise(&Constraints::default().max_bytes(smallest)).candidates().len(), 1);
    assert_eq!(
        count_reasons(&advise(&Constraints::default().max_bytes(smallest - 1)), &format!("there may be {}", smallest - 1)),
        all
    );
    assert_eq!(count_reasons(&recommend(1000, 1e-12, &Constraints::default()), "keep rates from"), all);
    assert_eq!(count_reasons(&recommend(1000, 0.51, &Constraints::default()), "give 0.5 or less"), all);
    assert_eq!(count_reasons(&recommend(1000, 1.0, &Constraints::default()), "give 0.5 or less"), all);
    assert_eq!(count_reasons(&recommend(1000, 0.0, &Constraints::default()), "keep rates from"), all);
    assert_eq!(count_reasons(&recommend(usize::MAX, 0.01, &Constraints::default()), "at most"), all);
}

#[test]
fn formulas_hold_for_any_bucket_size() {
    assert!((tuning::false_positive_rate(13, 1 << 31, 0.9) - 1.0).abs() < 1e-9);
    assert_eq!(tuning::fingerprint_bits(0.001, 1 << 31, 0.9), None);
    assert!(tuning::min_fingerprint_bits(1000, u32::MAX) < 1e-8);
}

/// The reason for rejecting a bucket size that no table has names the valid sizes.
#[test]
fn invalid_bucket_sizes_are_rejected_with_the_valid_ones() {
    let reasons = |b, table| {
        let constraints = Constraints::default().bucket_size(b);
        [recommend(1000, 0.001, &constraints), best_rate(1000, 10_000, &constraints)].map(|advice| {
            let mut rejections = advice.rejections().iter().filter(|rejection| rejection.bucket_size() == b);
            rejections.find(|rejection| rejection.table() == table).map(|rejection| rejection.reason().to_owned())
        })
    };
    for b in [0, 17] {
        for (table, limit) in [(TableKind::Single, "1 to 16"), (TableKind::Packed, "4")] {
            let reason = format!("bucket size: {b} given, but the {table} table takes {limit}; give one of those");
            assert_eq!(reasons(b, table), [Some(reason.clone()), Some(reason)]);
        }
    }
    assert_eq!(candidate_kinds(&recommend(1000, 0.001, &Constraints::default().bucket_size(3))), [(TableKind::Single, 3)]);
}

/// `recommend` and `best_rate` order equally good candidates alike: smaller tables first, single tables before packed ones, large
/// buckets before small ones.
#[test]
fn equally_good_candidates_have_a_fixed_order() {
    let is_ordered = |advice: &Recommendation| {
        advice.candidates().is_sorted_by_key(|candidate| {
            (candidate.bytes(), candidate.params().table() == TableKind::Packed, -i64::from(candidate.params().bucket_size()))
        })
    };
    for addressing in ADDRESSINGS {
        let constraints = Constraints::default().addressing(addressing);
        for items in 0..20 {
            assert!(is_ordered(&recommend(items, 0.5, &constraints)), "{items}");
        }
        // Without items, all candidates have the same rate.
        let advice = best_rate(0, 1000, &constraints);
        assert!(advice.candidates().len() == 17 && is_ordered(&advice), "{advice:?}");
    }
}

#[test]
fn best_rate_finds_the_lowest_rate_that_fits() {
    for (items, bytes) in [(1000, 2000), (100_000, 100_000), (1_000_000_000, 1_600_000_000)] {
        let advice = best_rate(items, bytes, &Constraints::default());
        let best = advice.best().expect("at least one candidate");
        assert!(best.bytes() <= bytes && best.params().capacity() >= items);
        assert!(advice.candidates().iter().all(|other| other.false_positive_rate() >= best.false_positive_rate()));
        // Fingerprints with one more bit do not fit.
        let longer = CuckooFilter::builder()
            .capacity(items)
            .table(best.params().table())
            .bucket_size(best.params().bucket_size())
            .fingerprint_bits(best.params().fingerprint_bits() + 1);
        assert!(longer.params().expect("valid parameters").table_bytes() > bytes);
    }
    let too_small = best_rate(1000, 10, &Constraints::default());
    assert!(too_small.best().is_none());
    assert!(too_small.rejections().iter().all(|rejection| rejection.reason().contains("there may be 10")), "{too_small:?}");
    // The reason names the smallest useful table. Short fingerprints cannot fill a large table, so longer ones may take less space.
    for (items, bytes) in [(1000, 10), (1_000_000, 1000)] {
        for rejection in best_rate(items, bytes, &Constraints::default()).rejections() {
            let (table, b) = (rejection.table(), rejection.bucket_size());
            let builder = CuckooFilter::builder().capacity(items).table(table).bucket_size(b);
            let all = table.fingerprint_bits().filter_map(|f| builder.clone().fingerprint_bits(f).params().ok());
            let least = all
                .filter(|params| params.false_positive_rate_at_capacity() <= MAX_RATE)
                .min_by_key(Params::table_bytes)
                .expect("at least one useful table");
            let (f, size) = (least.fingerprint_bits(), least.table_bytes());
            assert!(rejection.reason().contains(&format!("fingerprints of {f} bits, it takes {size} bytes")), "{rejection:?}");
        }
    }
    // The smaller of both limits applies.
    let two_limits = best_rate(1000, 4000, &Constraints::default().max_bytes(2000));
    assert_eq!(two_limits, best_rate(1000, 2000, &Constraints::default()));
}

/// Returns all tables with these bucket sizes: kind, bucket size and fingerprint length.
fn kinds(bucket_sizes: RangeInclusive<u32>) -> impl Iterator<Item = (TableKind, u32, u32)> {
    let tables =
        [TableKind::Packed, TableKind::Single].into_iter().flat_map(|table| table.bucket_sizes().map(move |b| (table, b)));
    let tables = tables.filter(move |(_, b)| bucket_sizes.contains(b));
    tables.flat_map(|(table, b)| table.fingerprint_bits().map(move |f| (table, b, f)))
}

/// Returns the bytes of the smallest table of a kind that is planned for `items` and keeps `rate`, if it takes less than `most`
/// bytes. Tries every number of buckets.
fn smallest_by_search((table, b, f): (TableKind, u32, u32), items: usize, rate: f64, most: usize) -> Option<usize> {
    let builder = CuckooFilter::builder().table(table).bucket_size(b).fingerprint_bits(f);
    let mut tables = (1..).map(|half| builder.clone().buckets(2 * half).params().expect("valid parameters"));
    let fits = |params: &Params| params.capacity() >= items && params.false_positive_rate_at_capacity() <= rate;
    tables
        .find(|params| params.table_bytes() >= most || fits(params))
        .map(|params| params.table_bytes())
        .filter(|&bytes| bytes < most)
}

#[test]
fn recommend_finds_the_smallest_of_all_tables() {
    let mut unusual = 0;
    for items in (1..40).step_by(3).chain([17, 47, 64, 77, 100, 128, 200, 333, 500, 1000, 2500]) {
        for rate in [0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-6] {
            let advice = recommend(items, rate, &Constraints::default());
            let best = advice.best().expect("at least one candidate");
            assert!(best.params().capacity() >= items && best.params().false_positive_rate_at_capacity() <= rate, "{best:?}");
            let smaller = kinds(1..=16).find_map(|kind| smallest_by_search(kind, items, rate, best.bytes()));
            assert_eq!(smaller, None, "{items} items, rate {rate}: {best:?}");
            unusual += usize::from(!best.params().bucket_size().is_power_of_two());
        }
    }
    let best_for_17 = recommend(17, 0.001, &Constraints::default());
    assert_eq!(best_for_17.best().map(|best| (best.params().bucket_size(), best.bytes())), Some((9, 34)));
    assert!(unusual > 50, "{unusual}");
}

#[test]
fn best_rate_finds_the_lowest_of_all_tables() {
    for items in [0, 1, 5, 17, 40, 100, 333, 1000, 10_000_usize] {
        for bits in [3, 4, 5, 6, 8, 11, 17, 24, 40] {
            let bytes = (items * bits).div_ceil(8);
            let advice = best_rate(items, bytes, &Constraints::default());
            // Of each kind, the largest table that fits; with the longest fingerprints, the one that is planned for the items.
            let tables = kinds(1..=16).filter_map(|(table, b, f)| {
                let builder = CuckooFilter::builder().table(table).bucket_size(b).fingerprint_bits(f);
                if f == *table.fingerprint_bits().end() {
                    return builder.capacity(items).params().ok().filter(|params| params.table_bytes() <= bytes);
                }
                let most = (8 * bytes / (b * f) as usize + 2) as u64;
                let mut sizes = (1..=most).rev().filter_map(|half| builder.clone().buckets(2 * half).params().ok());
                sizes.find(|params| params.table_bytes() <= bytes).filter(|params| params.capacity() >= items)
            });
            let useful = tables.filter(|params| params.false_positive_rate_at_capacity() <= MAX_RATE);
            let lowest =
                useful.map(|params| params.false_positive_rate_at(items as f64 / params.slots() as f64)).reduce(f64::min);
            match (advice.best().map(Candidate::false_positive_rate), lowest) {
                // The smallest table of each capacity is planned. Small ones of several sizes have the same capacity.
                (Some(rate), Some(lowest)) => {
                    let most = if items < 1000 { 1.1 } else { 1.005 };
                    assert!(rate <= most * lowest, "{items}, {bytes}: {rate}, not {lowest}");
                }
                (rate, lowest) => assert_eq!(rate, lowest, "{items}, {bytes}"),
            }
        }
    }
}

/// The smallest table that `recommend` finds for the highest useful rate is also the smallest that `best_rate` accepts.
#[test]
fn useless_filters_are_not_recommended() {
    for items in [1, 17, 1000, 1_000_000, 1_000_000_000] {
        let least = recommend(items, MAX_RATE, &Constraints::default()).best().expect("at least one candidate").bytes();
        let best = best_rate(items, least, &Constraints::default());
        assert!(best.best().expect("at least one candidate").params().false_positive_rate_at_capacity() <= MAX_RATE);
        let none = best_rate(items, least - 1, &Constraints::default());
        assert!(none.best().is_none(), "{none:?}");
        assert!(
            none.rejections().iter().any(|rejection| rejection.reason().contains(&format!("it takes {least} bytes"))),
            "{none:?}"
        );
    }
}

/// Shows why the builder does not compare bucket sizes. docs/TUNING.md has the printed figures.
#[test]
fn other_bucket_sizes_save_little() {
    for items in [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000] {
        let (mut saved, mut smaller) = (Vec::new(), 0);
        for step in 0..100 {
            let rate = 0.3 * (1e-6_f64 / 0.3).powf(f64::from(step) / 99.0);
            let usual = CuckooFilter::builder()
                .capacity(items)
                .false_positive_rate(rate)
                .params()
                .expect("valid parameters")
                .table_bytes();
            let best = recommend(items, rate, &Constraints::default()).best().expect("at least one candidate").bytes();
            saved.push(1.0 - best as f64 / usual as f64);
            smaller += usize::from(best < usual);
        }
        let (most, mean) = (saved.iter().copied().fold(0.0, f64::max), saved.iter().sum::<f64>() / 100.0);
        println!("{items} items: {smaller} of 100 rates, {:.2} % at most, {:.2} % on average", 100.0 * most, 100.0 * mean);
        assert!(items < 10_000 || most < 0.025 && mean < 0.001, "{items} items: {most}, {mean}");
    }
}

/// Measured loads are low where the formula of the paper's section 4 predicts that too many items share two buckets.
#[test]
fn short_fingerprints_cannot_fill_large_tables() {
    let load = |f, log2: u32| safe_load(Addressing::AnySize, 4, f, 1 << log2);
    assert!(load(12, 19) > 0.97 && load(4, 19) < 0.9);
    for f in [4, 5, 6] {
        assert!(load(f, 40) < load(f, 12));
        assert!(overfull_pairs(4, f, 1 << 40, load(f, 12)) > 1e-4);
        assert!(overfull_pairs(4, f, 1 << 40, load(f, 40)) <= 1e-4);
    }
}
