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

/// The contribution of each nibble of a sorted quadruple to its rank, by position.
///
/// The rank of a ≤ b ≤ c ≤ d is 3875 minus the number of quadruples after it. These have a larger first nibble, C(18−a, 4) of
/// them; or the same first and a larger second, C(17−b, 3); and so on with C(16−c, 2) and C(15−d, 1).
static RANK: [[u16; 16]; 4] = {
    let mut rank = [[0; 16]; 4];
    let mut nibble = 0;
    while nibble < 16 {
        rank[0][nibble as usize] = CODEWORDS - 1 - binomial(18 - nibble, 4);
        rank[1][nibble as usize] = binomial(17 - nibble, 3);
        rank[2][nibble as usize] = binomial(16 - nibble, 2);
        rank[3][nibble as usize] = binomial(15 - nibble, 1);
        nibble += 1;
    }
    rank
};

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

/// The nibbles of the codeword in the lowest 12 bits, the smallest in the lowest four bits. Invalid codewords give zeros, so
/// untrusted input must be checked against [`CODEWORDS`].
#[inline]
pub(crate) fn decode(codeword: u64) -> u16 {
    let codeword = codeword & ((1 << CODEWORD_BITS) - 1);
    NIBBLES[index(codeword.min(CODEWORDS.into()))]
}

/// The decoding table, indexed by codeword and padded with zeros: eight bytes can be loaded from any index up to [`CODEWORDS`].
#[cfg(x86_kernels)]
pub(crate) fn nibbles() -> &'static [u16] {
    &NIBBLES
}

/// The codeword of four sorted nibbles, the smallest in the lowest four bits.
#[inline]
pub(crate) fn encode(nibbles: u16) -> u16 {
    let nibble = |place: u32| usize::from(nibbles >> (4 * place) & 15);
    let [a, b, c, d] = [nibble(0), nibble(1), nibble(2), nibble(3)];
    debug_assert!([a, b, c, d].is_sorted(), "{nibbles:#06x}");
    RANK[0][a] - RANK[1][b] - RANK[2][c] - RANK[3][d]
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
        assert!(NIBBLES[usize::from(CODEWORDS)..].iter().all(|&nibbles| nibbles == 0));
        assert!((CODEWORDS..4096).all(|codeword| nibbles_of(codeword) == [0; 4]));
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
    fn codewords_with_a_zero_nibble_come_first() {
        assert_eq!(nibbles_of(0), [0; 4]);
        assert_eq!((0..CODEWORDS).take_while(|&codeword| nibbles_of(codeword)[0] == 0).count(), usize::from(CODEWORDS_WITH_ZERO));
        assert!((CODEWORDS_WITH_ZERO..CODEWORDS).all(|codeword| nibbles_of(codeword)[0] > 0));
    }

    #[test]
    fn the_static_data_fits_eight_kibibytes() {
        assert!(size_of_val(&NIBBLES) + size_of_val(&RANK) <= 8 << 10);
    }
}
