//! The comparison of packed buckets with fingerprints, in vectors.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::lanes::Lanes;
use crate::table::{
    PackedGeometry,
    codebook::{self, CODEWORD_BITS, LAST_DECODED},
};

/// For the two buckets of each item and their four slots: the items (bit i for item i) whose high part is in the slot.
type Agree = [[u32; 4]; 2];

/// The high parts of two buckets, for each item: both pairs of each. (Of a narrow bucket they are in the same word.)
pub(super) type Highs<L> = [[L; 2]; 2];

/// The high parts in the words of narrow buckets.
#[inline(always)]
pub(super) fn narrow_highs<L: Lanes>(words: [L; 2]) -> Highs<L> {
    [[words[0].shift_right::<CODEWORD_BITS>(); 2], [words[1].shift_right::<CODEWORD_BITS>(); 2]]
}

/// Bit i of the result is set if item i is in one of its buckets. The lowest bits of `words` are the codewords of the two.
#[inline(always)]
pub(super) fn found<L: Lanes>(
    proof: L::Proof,
    geometry: &PackedGeometry,
    is_narrow: bool,
    words: [L; 2],
    highs: Highs<L>,
    fingerprints: L,
) -> u32 {
    let splat = |value| L::splat(proof, value);
    let width = geometry.high_bits();
    let wanted = fingerprints.shift_right::<4>().product_low(splat(geometry.highs().ones()));
    let masks = [high_part(width, 0), high_part(width, 1), high_part(width, 2), high_part(width, 3)];
    let mut agree: Agree = [[0; 4]; 2];
    for i in 0..2 {
        for (slot, agree) in agree[i].iter_mut().enumerate() {
            // A word has all four high parts of a narrow bucket, or one pair of a wide one.
            let mask = if is_narrow { masks[slot] } else { masks[slot % 2] };
            *agree = highs[i][slot / 2].xor(wanted).none(splat(mask));
        }
    }
    with_nibbles(proof, words, &agree, fingerprints)
}

/// A mask for the high part of a slot.
#[inline(always)]
fn high_part(width: u32, slot: u32) -> u64 {
    ((1 << width) - 1) << ((slot * width) & 63)
}

/// Bit i of the result is set if item i is in a slot where both its high part and its nibble are. The lowest bits of `words` are
/// the codewords of the two buckets.
#[inline(always)]
fn with_nibbles<L: Lanes>(proof: L::Proof, words: [L; 2], agree: &Agree, fingerprints: L) -> u32 {
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
