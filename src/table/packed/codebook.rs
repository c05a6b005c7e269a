//! The codebook, which encodes four sorted nibbles as a 12-bit codeword, as in the paper's semi-sorted buckets (section 5.2).
//!
//! Four nibbles in any order take 16 bits. Only C(19, 4) = 3876 quadruples are sorted, so 12 bits are enough for those. A
//! codeword is the lexicographic rank of its quadruple. With the feature `kernels`, a table of 8 KiB lists all codewords
//! (`table`); without it, there are smaller tables of pairs (`pairs`). `tables/codebook.tsv` is the published copy, for other
//! readers of the format.

#[cfg(any(not(feature = "kernels"), test))]
mod pairs;
#[cfg(any(feature = "kernels", test))]
mod table;

#[cfg(not(feature = "kernels"))]
pub(crate) use pairs::{decode, encode};
#[cfg(any(x86_kernels, test))]
pub(crate) use table::{LAST_DECODED, nibbles};
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
        assert!(nibbles().len() >= usize::from(LAST_DECODED) + 4);
    }

    #[test]
    fn the_static_data_is_small() {
        assert!(size_of_val(nibbles()) <= 8 << 10);
        assert!(pairs::static_bytes() <= 704);
    }
}
