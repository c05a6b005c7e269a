//! Formulas for cuckoo filters, and recommendations of parameters. Nothing here builds a filter.
//!
//! ```
//! use koel::tuning::{Constraints, lower_bound, recommend};
//!
//! let advice = recommend(1_000_000, 0.001, &Constraints::default());
//! let best = advice.best().expect("such a filter exists");
//! assert!(best.bits_per_item() < 12.4);
//! assert!(best.false_positive_rate() <= 0.001);
//! // No data structure needs fewer bits than the lower bound.
//! assert!(best.bits_per_item() > lower_bound(0.001));
//! ```
//!
//! In the formulas, f is the length of a fingerprint in bits, b the number of slots in a bucket, m the number of buckets, α the
//! load factor (items/slots, 0 to 1), ε the false-positive rate and n the number of items. *The paper* is Fan, Andersen, Kaminsky
//! and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom" (CoNEXT 2014).

mod formulas;
mod recommend;

pub use {
    formulas::{
        bits_per_item, false_positive_rate, fingerprint_bits, fingerprint_bits_for_load, lower_bound, min_fingerprint_bits,
        overfull_pairs, safe_load,
    },
    recommend::{Candidate, Constraints, MAX_RATE, Recommendation, Rejection, best_rate, recommend},
};
