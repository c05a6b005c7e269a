//! The comparison of packed buckets with fingerprints, in vectors.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::lanes::Lanes;
use crate::table::codebook::{self, CODEWORD_BITS, LAST_DECODED};

/// For the two buckets of each item and their four slots: the items (bit i for item i) whose high part is in the slot.
pub(super) type Agree = [[u32; 4]; 2];

/// Bit i of the result is set if item i is in a slot where both its high part and its nibble are. The lowest bits of `words` are
/// the codewords of the two buckets.
#[inline(always)]
pub(super) fn with_nibbles<L: Lanes>(proof: L::Proof, words: [L; 2], agree: &Agree, fingerprints: L) -> u32 {
    // With long fingerprints, an absent item hardly ever has a match.
    if agree.as_flattened().iter().fold(0, |any, agree| any | agree) == 0 {
        return 0;
    }
    let splat = |value| L::splat(proof, value);
    let low = fingerprints.and(splat(15)).product(splat(0x1111));
    let mut found = 0;
    for (word, agree) in words.into_iter().zip(agree) {
        let codeword = word.and(splat((1 << CODEWORD_BITS) - 1)).min(splat(LAST_DECODED.into()));
        // SAFETY: eight bytes can be loaded from any index up to `LAST_DECODED`.
        let nibbles = unsafe { codeword.gather_pairs(codebook::nibbles().as_ptr()) };
        let difference = nibbles.xor(low);
        for (slot, agree) in (0..).zip(agree) {
            found |= agree & difference.none(splat(15 << (4 * slot)));
        }
    }
    found
}
