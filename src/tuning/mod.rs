//! Choosing parameters: the formulas of cuckoo filters, and recommendations that follow from them. Nothing here builds a filter.
//!
#![cfg_attr(feature = "std", doc = "```")]
#![cfg_attr(not(feature = "std"), doc = "```ignore")]
//! use koel::tuning::{Constraints, lower_bound, recommend};
//!
//! let advice = recommend(1_000_000, 0.001, &Constraints::default());
//! let best = advice.best().expect("there is a filter like that");
//! assert!(best.bits_per_item() < 12.4);
//! assert!(best.false_positive_rate() <= 0.001);
//! // No structure can do with fewer bits than this.
//! assert!(best.bits_per_item() > lower_bound(0.001));
//! # Ok::<(), koel::ParamError>(())
//! ```
//!
//! In the formulas, f is the length of a fingerprint in bits, b the number of slots in a bucket, m the number of buckets, α the
//! load (items/slots, 0 to 1), ε the false-positive rate and n the number of items. *The paper* is Fan, Andersen, Kaminsky and
//! Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom" (CoNEXT 2014).

#[cfg(feature = "std")]
mod formulas;
#[cfg(feature = "std")]
mod recommend;

#[cfg(feature = "std")]
pub use {
    formulas::{
        bits_per_item, crowded_pairs, false_positive_rate, fingerprint_bits, fingerprint_bits_for_load, least_fingerprint_bits,
        lower_bound, safe_load,
    },
    recommend::{Candidate, Constraints, HIGHEST_RATE, Recommendation, Rejection, best_rate, recommend},
};

pub use crate::params::Nearest;
use crate::{
    elastic,
    params::{self, ParamError, Why},
};

/// What works in place of a parameter that a builder refused: mostly the nearest value. With it, and with the other parameters
/// that [`Nearest`] names, there is a filter, if there is enough memory. `None` if the message of the error says all that there is
/// to say, or if there is no memory to find out.
///
/// It tries values until one works, which takes up to some milliseconds.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, tuning::nearest};
/// let builder = CuckooFilter::builder().fingerprint_bits(13);
/// let error = builder.clone().buckets(99).params().unwrap_err();
/// let nearest = nearest(&error).expect("there is a nearest number");
/// assert_eq!(nearest.to_string(), "the nearest that works is 100");
/// assert!(builder.buckets(100).build().is_ok());
/// ```
#[must_use]
pub fn nearest(error: &ParamError) -> Option<Nearest> {
    match error.why() {
        Why::Words(_) => None,
        Why::Fixed(..) => params::nearest(error),
        Why::Growing(_, request) => elastic::nearest(error.parameter(), *request),
    }
}
