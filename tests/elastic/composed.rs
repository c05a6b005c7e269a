//! Random sequences of all operations, checked against a multiset. The fuzz target `growing` runs the same code in
//! fuzz/src/composed.rs.

#[path = "../../fuzz/src/composed.rs"]
pub(crate) mod operations;

#[cfg(feature = "serde")]
#[path = "../../fuzz/src/formats.rs"]
mod formats;

use crate::common::{chosen, sequences::Target, split_mix};
use operations::{HEADER, STEP, Size, check, describe};

#[cfg(feature = "serde")]
pub(crate) use formats::FORMATS;
#[cfg(not(feature = "serde"))]
pub(crate) const FORMATS: &[operations::Format] = &[];

const TARGET: Target = Target { header: HEADER, record: STEP, check: |input| check(input, Size::LARGE, FORMATS), describe };

const HOSTILE: Target = Target { check: |input| check(input, Size::HOSTILE, FORMATS), ..TARGET };

/// Only here do growing filters run all operations in random order, so this test alone finds defects that take several kinds of them.
#[test]
fn random_sequences_of_operations_keep_every_promise() {
    // Debug builds take long; `just release` runs more sequences.
    let sequences = if cfg!(debug_assertions) { 60 } else { 300 };
    TARGET.check_all((0..sequences).map(|seed| TARGET.random(seed, 24)), 48);
}

/// Only here do millions of copies meet all operations. `just model 600` runs it for ten minutes.
#[test]
fn random_sequences_with_millions_of_copies_keep_every_promise() {
    let sequences = if cfg!(debug_assertions) { 30 } else { 300 };
    HOSTILE.check_all((1000..1000 + sequences).map(|seed| HOSTILE.random(seed, 24)), 96);
}
