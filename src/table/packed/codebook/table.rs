//! All codewords in a table: decoding is one load, from 8 KiB.

use super::{CODEWORD_BITS, CODEWORDS, binomial};
use crate::bits::index;

include!(concat!(env!("OUT_DIR"), "/codebook.rs"));

/// For decoding, the nibbles of each codeword; for encoding, sixteen numbers for each place, from `FIRST_RANK`; elsewhere zeros.
/// There is an entry for every 12 bits, so that no index needs a check.
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

/// The first of the 64 entries of [`CODEBOOK`] for encoding. They lie between the codewords and the last entries.
const FIRST_RANK: usize = LAST_DECODED as usize - 64;
const _: () = assert!(CODEWORDS as usize <= FIRST_RANK);

/// The highest index from which eight bytes can be loaded. Kernels that do so must use it for the codewords above it, which are
/// invalid and decoded alike: the last four entries are zero.
pub(crate) const LAST_DECODED: u16 = (1 << CODEWORD_BITS) - 4;

/// The contribution of a nibble of a sorted quadruple to its rank, by place.
///
/// The rank of a ≤ b ≤ c ≤ d is 3875 minus the number of quadruples after it. These have a larger first nibble, C(18−a, 4) of
/// them; or the same first and a larger second, C(17−b, 3); and so on with C(16−c, 2) and C(15−d, 1).
const fn rank(place: usize, nibble: u16) -> u16 {
    match place {
        0 => CODEWORDS - 1 - binomial(18 - nibble, 4),
        1 => binomial(17 - nibble, 3),
        2 => binomial(16 - nibble, 2),
        _ => binomial(15 - nibble, 1),
    }
}

/// The nibbles of the codeword in the lowest 12 bits, the smallest in the lowest four bits. Invalid codewords give any number, so
/// untrusted input must be checked against [`CODEWORDS`].
#[inline]
pub(crate) fn decode(codeword: u64) -> u16 {
    CODEBOOK[index(codeword & ((1 << CODEWORD_BITS) - 1))]
}

/// The decoding table, indexed by codeword. Eight bytes can be loaded from any index up to [`LAST_DECODED`].
#[cfg(any(x86_kernels, test))]
pub(crate) fn nibbles() -> &'static [u16] {
    &CODEBOOK
}

/// The codeword of four sorted nibbles, the smallest in the lowest four bits.
#[inline]
pub(crate) fn encode(nibbles: u16) -> u16 {
    let nibble = |place: usize| usize::from(nibbles >> (4 * place) & 15);
    debug_assert!([nibble(0), nibble(1), nibble(2), nibble(3)].is_sorted(), "{nibbles:#06x}");
    let rank = |place: usize| CODEBOOK[FIRST_RANK + 16 * place + nibble(place)];
    rank(0) - rank(1) - rank(2) - rank(3)
}
