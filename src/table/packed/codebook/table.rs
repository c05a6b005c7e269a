//! The codebook as a table of all codewords, 8 KiB: decoding is one load.

use super::{CODEWORD_BITS, CODEWORDS, binomial};
use crate::bits::index;

include!(concat!(env!("OUT_DIR"), "/codebook.rs"));

/// One table for decoding and encoding. Entries below [`CODEWORDS`] are the nibbles of the codewords; from `FIRST_RANK` on, there
/// are sixteen numbers for each place of a nibble; all others are zero. Every 12-bit number has an entry, so no index needs a
/// check.
static CODEBOOK: [u16; 1 << CODEWORD_BITS] = {
    let mut codebook = [0; 1 << CODEWORD_BITS];
    let mut codeword = 0;
    while codeword < NIBBLES.len() {
        codebook[codeword] = NIBBLES[codeword];
        codeword += 1;
    }
    let mut place = 0;
    while place < 4 {
        let mut nibble = 0;
        while nibble < 16 {
            codebook[FIRST_RANK + 16 * place + nibble as usize] = rank(place, nibble);
            nibble += 1;
        }
        place += 1;
    }
    codebook
};

/// The first of the 64 entries of [`CODEBOOK`] for encoding. They are between the codewords and the last four entries.
const FIRST_RANK: usize = LAST_DECODED as usize - 64;
const _: () = assert!(CODEWORDS as usize <= FIRST_RANK);

/// The highest index from which eight bytes can be loaded. Kernels that load eight bytes must use it instead of any higher
/// codeword. Those are invalid and decode alike, because the last four entries are zero.
pub(crate) const LAST_DECODED: u16 = (1 << CODEWORD_BITS) - 4;

/// Returns the contribution of a nibble of a sorted quadruple to its rank, by place.
///
/// The rank of a ≤ b ≤ c ≤ d is 3875 minus the number of quadruples after it. C(18−a, 4) of those have a larger first nibble;
/// C(17−b, 3) have the same first and a larger second nibble; and so on with C(16−c, 2) and C(15−d, 1).
const fn rank(place: usize, nibble: u16) -> u16 {
    match place {
        0 => CODEWORDS - 1 - binomial(18 - nibble, 4),
        1 => binomial(17 - nibble, 3),
        2 => binomial(16 - nibble, 2),
        _ => binomial(15 - nibble, 1),
    }
}

/// Returns the four nibbles of the codeword in the lowest 12 bits, the smallest nibble in the lowest four bits. Invalid codewords
/// give unspecified nibbles, so untrusted input must be checked against [`CODEWORDS`].
#[inline]
pub(crate) fn decode(codeword: u64) -> u16 {
    CODEBOOK[index(codeword & ((1 << CODEWORD_BITS) - 1))]
}

/// Returns the decoding table, indexed by codeword. Eight bytes can be loaded from any index up to [`LAST_DECODED`].
#[cfg(any(x86_kernels, test))]
pub(crate) fn nibbles() -> &'static [u16] {
    &CODEBOOK
}

/// Returns the codeword of four sorted nibbles, the smallest in the lowest four bits.
#[inline]
pub(crate) fn encode(nibbles: u16) -> u16 {
    let nibble = |place: usize| usize::from(nibbles >> (4 * place) & 15);
    debug_assert!([nibble(0), nibble(1), nibble(2), nibble(3)].is_sorted(), "{nibbles:#06x}");
    let rank = |place: usize| CODEBOOK[FIRST_RANK + 16 * place + nibble(place)];
    rank(0) - rank(1) - rank(2) - rank(3)
}
