//! The codebook, which encodes four sorted nibbles as a 12-bit codeword, as in the paper's semi-sorted buckets (section 5.2).
//!
//! Four nibbles in any order take 16 bits. Only C(19, 4) = 3876 quadruples are sorted, so 12 bits are enough for those. A
//! codeword is the lexicographic rank of its quadruple. With the feature `kernels`, a table of 8 KiB lists all codewords
//! (`table`); without it, there are smaller tables of pairs (`pairs`). `tables/codebook.tsv` is the published copy, for other
//! readers of the format.

#[cfg(not(feature = "kernels"))]
pub(crate) use pairs::{decode, encode};
#[cfg(any(x86_kernels, test))]
pub(crate) use table::{CODEBOOK, LAST_DECODED};
#[cfg(feature = "kernels")]
pub(crate) use table::{decode, encode};

/// The length of a codeword in bits.
pub(crate) const CODEWORD_BITS: u32 = 12;
/// The number of codewords. Values from `CODEWORDS` to 4095 are invalid, and are rejected in untrusted input.
pub(crate) const CODEWORDS: u16 = 3876;
/// The number of codewords with a zero nibble, which come first. Only these can occur in a bucket with an empty slot.
pub(crate) const CODEWORDS_WITH_ZERO: u16 = 816;

const fn binomial(n: u16, k: u16) -> u16 {
    let (mut product, mut divisor, mut i) = (1, 1, 0);
    while i < k {
        // For n < k, a factor saturates to 0, and the product is 0, as it must be.
        product *= (n as u32).saturating_sub(i as u32);
        divisor *= i as u32 + 1;
        i += 1;
    }
    #[expect(clippy::cast_possible_truncation, reason = "C(18, 4) = 3060 is the largest")]
    let quotient = (product / divisor) as u16;
    quotient
}

#[cfg(any(feature = "kernels", test))]
mod table {
    //! The codebook as a table of all codewords, 8 KiB: decoding is one load.

    use super::{CODEWORD_BITS, CODEWORDS, binomial};
    use crate::bits::index;

    include!(concat!(env!("OUT_DIR"), "/codebook.rs"));

    /// One table for decoding and encoding. Entries below [`CODEWORDS`] are the nibbles of the codewords; from `FIRST_RANK` on, there
    /// are sixteen numbers for each place of a nibble; all others are zero. Every 12-bit number has an entry, so no index needs a
    /// check.
    pub(crate) static CODEBOOK: [u16; 1 << CODEWORD_BITS] = {
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

    /// Returns the codeword of four sorted nibbles, the smallest in the lowest four bits.
    #[inline]
    pub(crate) fn encode(nibbles: u16) -> u16 {
        let nibble = |place: usize| usize::from(nibbles >> (4 * place) & 15);
        debug_assert!([nibble(0), nibble(1), nibble(2), nibble(3)].is_sorted(), "{nibbles:#06x}");
        let rank = |place: usize| CODEBOOK[FIRST_RANK + 16 * place + nibble(place)];
        rank(0) - rank(1) - rank(2) - rank(3)
    }
}

#[cfg(any(not(feature = "kernels"), test))]
mod pairs {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A pair of functions that decode and encode, with its name.
    type Codec = (&'static str, fn(u64) -> u16, fn(u16) -> u16);
    const CODECS: [Codec; 2] = [("table", table::decode, table::encode), ("pairs", pairs::decode, pairs::encode)];

    /// Enumerates all 16-bit numbers and keeps those whose hexadecimal digits are sorted. This is independent of the nested loops
    /// in `build.rs`.
    fn enumeration() -> Vec<[u8; 4]> {
        (0..0x1_0000u32)
            .map(|word| [12, 8, 4, 0].map(|shift| (word >> shift & 15) as u8))
            .filter(|nibbles| nibbles.windows(2).all(|pair| pair[0] <= pair[1]))
            .collect()
    }

    fn separate(nibbles: u16) -> [u8; 4] {
        [0, 4, 8, 12].map(|shift| (nibbles >> shift & 15) as u8)
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn both_codecs_decode_the_enumeration() {
        let expected = enumeration();
        assert_eq!(expected.len(), usize::from(CODEWORDS));
        for (name, decode, _) in CODECS {
            for (codeword, nibbles) in (0..).zip(&expected) {
                assert_eq!(separate(decode(codeword)), *nibbles, "{name}");
            }
        }
    }

    /// Views of corrupt tables decode invalid codewords. Only the lowest 12 bits of a word are the codeword.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_word_decodes_without_a_panic() {
        for (_, decode, _) in CODECS {
            for word in 0..1 << CODEWORD_BITS {
                assert_eq!(decode(word), decode(word | u64::MAX << CODEWORD_BITS));
            }
        }
        for codeword in 0..CODEWORDS.into() {
            assert_eq!(table::decode(codeword), pairs::decode(codeword));
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
    fn encode_inverts_decode() {
        for (name, decode, encode) in CODECS {
            for codeword in 0..CODEWORDS {
                assert_eq!(encode(decode(codeword.into())), codeword, "{name}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_sorted_quadruple_survives_encoding_and_decoding() {
        for (name, decode, encode) in CODECS {
            for word in 0..=u16::MAX {
                let mut nibbles = separate(word);
                nibbles.sort_unstable();
                let sorted = nibbles.iter().rev().fold(0, |word, &nibble| word << 4 | u16::from(nibble));
                assert_eq!(separate(decode(encode(sorted).into())), nibbles, "{name}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn codewords_with_a_zero_nibble_come_first() {
        let lowest = |codeword: u16| separate(decode(codeword.into()))[0];
        assert_eq!(decode(0), 0);
        assert_eq!((0..CODEWORDS).take_while(|&codeword| lowest(codeword) == 0).count(), usize::from(CODEWORDS_WITH_ZERO));
        assert!((CODEWORDS_WITH_ZERO..CODEWORDS).all(|codeword| lowest(codeword) > 0));
    }

    #[test]
    fn the_last_entries_are_zero() {
        assert!((LAST_DECODED..1 << CODEWORD_BITS).all(|codeword| table::decode(codeword.into()) == 0));
        assert!(CODEBOOK.len() >= usize::from(LAST_DECODED) + 4);
    }

    #[test]
    fn the_static_data_is_small() {
        assert!(size_of_val(&CODEBOOK) <= 8 << 10);
        assert!(pairs::static_bytes() <= 704);
    }
}
