//! The codebook as pairs of nibbles: about 650 bytes, for programs that have little room.
//!
//! This module numbers codewords, and pairs x ≤ y of nibbles, from the last one down. The number of a quadruple a ≤ b ≤ c ≤ d is
//! that of the quadruples after it: those with a greater first pair (a, b), which `GREATER` has; and those with the same first
//! pair and a greater second pair (c, d), which are as many as the number of the second pair. So decoding only has to find the
//! first pair.

use super::{CODEWORD_BITS, CODEWORDS, binomial};
use crate::bits::{low_quarter, mask};

/// The number of sorted pairs.
const COUNT: usize = 136;

/// All sorted pairs, from the last one down, each with the smaller nibble in the lowest four bits.
static PAIRS: [u8; COUNT] = {
    let mut pairs = [0; COUNT];
    let (mut x, mut left) = (0, COUNT);
    while x < 16 {
        let mut y = x;
        while y < 16 {
            left -= 1;
            pairs[left] = x | y << 4;
            y += 1;
        }
        x += 1;
    }
    pairs
};

/// The number of quadruples whose first pair is greater than this one: C(18 − a, 4) have a greater first nibble, and C(17 − b, 3)
/// have the same first and a greater second nibble.
static GREATER: [u16; COUNT] = {
    let mut greater = [0; COUNT];
    let mut pair = 0;
    while pair < COUNT {
        let (a, b) = (PAIRS[pair] as u16 & 15, PAIRS[pair] as u16 >> 4);
        greater[pair] = binomial(18 - a, 4) + binomial(17 - b, 3);
        pair += 1;
    }
    greater
};

/// The logarithm of the number of codewords that share a guess.
const GUESS_BITS: u32 = 4;

/// The first pair of the first codeword in each group that shares a guess. Most codewords have this first pair or the next one.
static GUESSES: [u8; (CODEWORDS as usize).div_ceil(1 << GUESS_BITS)] = {
    let mut guesses = [0; (CODEWORDS as usize).div_ceil(1 << GUESS_BITS)];
    let (mut guess, mut pair) = (0, 0);
    while guess < guesses.len() {
        while pair + 1 < COUNT && GREATER[pair + 1] as usize <= guess << GUESS_BITS {
            pair += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "pairs are fewer than 256")]
        let pair = pair as u8;
        guesses[guess] = pair;
        guess += 1;
    }
    guesses
};

/// Returns the four nibbles of the codeword in the lowest 12 bits, the smallest nibble in the lowest four bits. Invalid codewords
/// give unspecified nibbles, so untrusted input must be checked against [`CODEWORDS`].
// A separate function: inlined wherever buckets are read, it would add 1 to 6 KiB to a program.
#[inline(never)]
pub(crate) fn decode(codeword: u64) -> u16 {
    let number = (CODEWORDS - 1).saturating_sub(low_quarter(codeword & mask(CODEWORD_BITS)));
    // Every index has an entry. `get` keeps the code for a panic out of lookups.
    let greater = |pair: usize| GREATER.get(pair).map_or(u16::MAX, |&greater| greater);
    let nibbles = |pair: usize| PAIRS.get(pair).map_or(0, |&nibbles| u16::from(nibbles));
    let mut first = GUESSES.get(usize::from(number >> GUESS_BITS)).map_or(0, |&guess| usize::from(guess));
    // This step is unpredictable, so it has no branch. Further steps are rare.
    first += usize::from(greater(first + 1) <= number);
    while greater(first + 1) <= number {
        first += 1;
    }
    let second = number.wrapping_sub(greater(first));
    nibbles(first) | nibbles(second.into()) << 8
}

/// Returns the codeword of four sorted nibbles, the smallest in the lowest four bits.
#[inline]
pub(crate) fn encode(nibbles: u16) -> u16 {
    let nibble = |place: u32| nibbles >> (4 * place) & 15;
    debug_assert!([nibble(0), nibble(1), nibble(2), nibble(3)].is_sorted(), "{nibbles:#06x}");
    // C(16 − x, 2) pairs have a greater first nibble; 15 − y have the same first and a greater second nibble.
    let pair = |x: u16, y: u16| (16 - x) * (15 - x) / 2 + 15 - y;
    let (first, second) = (pair(nibble(0), nibble(1)), pair(nibble(2), nibble(3)));
    CODEWORDS - 1 - GREATER[usize::from(first)] - second
}

#[cfg(test)]
pub(super) fn static_bytes() -> usize {
    size_of_val(&PAIRS) + size_of_val(&GREATER) + size_of_val(&GUESSES)
}
