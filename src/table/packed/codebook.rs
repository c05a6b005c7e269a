//! The codebook: encodes four sorted nibbles as one 12-bit codeword, as in the paper's semi-sorted buckets (section 5.2).
//!
//! Four nibbles in any order take 16 bits. There are only C(19, 4) = 3876 sorted quadruples, so 12 bits suffice for these. A
//! codeword is the lexicographic rank of its quadruple. `build.rs` generates the decoding table; `tables/codebook.tsv` is the
//! published copy, for other readers of the format.

use crate::bits::index;

include!(concat!(env!("OUT_DIR"), "/codebook.rs"));

/// The length of a codeword in bits.
pub(crate) const CODEWORD_BITS: u32 = 12;
/// The number of codewords. The values from `CODEWORDS` to 4095 are invalid, and rejected in untrusted input.
pub(crate) const CODEWORDS: u16 = 3876;
/// Exactly the codewords below this one have a zero nibble. Only they can occur in a bucket with an empty slot.
pub(crate) const CODEWORDS_WITH_ZERO: u16 = 816;

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

const fn binomial(n: u16, k: u16) -> u16 {
    let (mut product, mut divisor, mut i) = (1, 1, 0);
    while i < k {
        // For n < k a factor saturates to 0, and so does the product, as it must.
        product *= (n as u32).saturating_sub(i as u32);
        divisor *= i as u32 + 1;
        i += 1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "C(18, 4) = 3060 is the largest")]
    let quotient = (product / divisor) as u16;
    quotient
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Counts through all 16-bit numbers and keeps those whose hexadecimal digits are sorted: an enumeration independent of the
    /// nested loops in `build.rs`.
    fn enumeration() -> Vec<[u8; 4]> {
        (0..0x1_0000u32)
            .map(|word| [12, 8, 4, 0].map(|shift| (word >> shift & 15) as u8))
            .filter(|nibbles| nibbles.windows(2).all(|pair| pair[0] <= pair[1]))
            .collect()
    }

    fn nibbles_of(codeword: u16) -> [u8; 4] {
        [0, 4, 8, 12].map(|shift| (decode(codeword.into()) >> shift & 15) as u8)
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_generated_table_is_the_enumeration() {
        let expected = enumeration();
        assert_eq!(expected.len(), usize::from(CODEWORDS));
        assert_eq!(NIBBLES.len(), usize::from(CODEWORDS));
        for (codeword, nibbles) in (0..).zip(expected) {
            assert_eq!(nibbles_of(codeword), nibbles);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_published_table_is_the_enumeration() {
        let rows: Vec<&str> =
            include_str!("../../../tables/codebook.tsv").lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows[0], "codeword\ta\tb\tc\td");
        assert_eq!(rows.len() - 1, usize::from(CODEWORDS));
        for ((codeword, [a, b, c, d]), row) in enumeration().into_iter().enumerate().zip(&rows[1..]) {
            assert_eq!(*row, alloc::format!("{codeword}\t{a}\t{b}\t{c}\t{d}"));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn encode_undoes_decode() {
        for codeword in 0..CODEWORDS {
            assert_eq!(encode(decode(codeword.into())), codeword);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_quadruple_encodes_as_its_sorted_self() {
        for word in 0..=u16::MAX {
            let mut nibbles = [0, 4, 8, 12].map(|shift| (word >> shift & 15) as u8);
            nibbles.sort_unstable();
            let sorted = nibbles.iter().rev().fold(0, |word, &nibble| word << 4 | u16::from(nibble));
            assert_eq!(nibbles_of(encode(sorted)), nibbles);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn codewords_with_a_zero_nibble_come_first() {
        assert_eq!(nibbles_of(0), [0; 4]);
        assert_eq!((0..CODEWORDS).take_while(|&codeword| nibbles_of(codeword)[0] == 0).count(), usize::from(CODEWORDS_WITH_ZERO));
        assert!((CODEWORDS_WITH_ZERO..CODEWORDS).all(|codeword| nibbles_of(codeword)[0] > 0));
    }

    #[test]
    fn the_last_entries_are_equal() {
        assert!((LAST_DECODED..1 << CODEWORD_BITS).all(|codeword| decode(codeword.into()) == 0));
        assert!(nibbles().len() >= usize::from(LAST_DECODED) + 4);
    }

    #[test]
    fn the_static_data_fits_eight_kibibytes() {
        assert!(size_of_val(&CODEBOOK) <= 8 << 10);
    }
}
