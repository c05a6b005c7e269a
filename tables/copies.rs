//! Measures how full a table gets if each of its items is inserted several times: what copies cost.

use koel::{CuckooFilter, Prehashed};

use super::split_mix::SplitMix64;

const FINGERPRINT_BITS: u32 = 13;
/// Sizes, as logarithms of the number of buckets, and the number of tables that are filled.
const SIZES: [(u32, u64); 3] = [(8, 1000), (12, 200), (16, 10)];

/// For each size and number of copies, the least and the mean load at which a copy is refused.
pub(crate) fn file() -> String {
    let mut file =
        String::from("# Loads at the first refusal if every item is inserted so many times, one copy after the other.\n");
    file.push_str("buckets\tcopies\ttables\tmin\tmean\n");
    for (log2_buckets, tables) in SIZES {
        let builder = CuckooFilter::builder().fingerprint_bits(FINGERPRINT_BITS).buckets(1 << log2_buckets);
        let mut filter = builder.build().expect("the parameters are right");
        for copies in 1..=2 * filter.params().bucket_size() {
            let (mut least, mut sum) = (1.0_f64, 0.0);
            for seed in 0..tables {
                filter.clear();
                let mut hashes = SplitMix64(seed << 32 | u64::from(copies));
                let mut insert =
                    || hashes.next().is_some_and(|hash| (0..copies).all(|_| filter.insert(&Prehashed(hash)).is_ok()));
                while insert() {}
                (least, sum) = (least.min(filter.load_factor()), sum + filter.load_factor());
            }
            let mean = sum / tables as f64;
            file.extend([format!("{}\t{copies}\t{tables}\t{least:.3}\t{mean:.3}\n", 1 << log2_buckets)]);
        }
    }
    file
}
