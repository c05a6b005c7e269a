//! Fields of any width at any bit of a byte string, least significant bit first: the one arithmetic path that every
//! table goes through. A field may straddle bytes and words.

use crate::num::{index, low_half};

/// Bytes that follow a table's own, so that eight bytes can be fetched from wherever a field begins, be it
/// a field of no bits just behind the last byte.
pub(crate) const PADDING: usize = 8;

/// Bits that one window of eight bytes surely holds, wherever in its first byte they begin.
const WINDOW_BITS: u32 = 56;

#[inline]
fn window(bytes: &[u8], byte: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[byte..byte + 8]);
    u64::from_le_bytes(word)
}

/// The field of `width` ≤ 32 bits at `bit`.
///
/// # Panics
/// If the field lies outside `bytes`, or nearer to their end than [`PADDING`].
#[inline]
pub(crate) fn get(bytes: &[u8], bit: u64, width: u32) -> u32 {
    debug_assert!(width <= 32);
    low_half(window(bytes, index(bit / 8)) >> (bit % 8) & mask(width))
}

/// Stores the `width` ≤ 128 lowest bits of `value` at `bit`; every other bit stays.
///
/// # Panics
/// As [`get`] does.
#[inline]
pub(crate) fn set(bytes: &mut [u8], bit: u64, width: u32, mut value: u128) {
    let (mut byte, shift, mut left) = (index(bit / 8), bit % 8, width);
    while left > 0 {
        let piece = mask(left.min(WINDOW_BITS));
        #[expect(clippy::cast_possible_truncation, reason = "one piece at a time")]
        let bits = value as u64 & piece;
        let word = window(bytes, byte) & !(piece << shift) | bits << shift;
        bytes[byte..byte + 8].copy_from_slice(&word.to_le_bytes());
        value >>= WINDOW_BITS;
        left = left.saturating_sub(WINDOW_BITS);
        byte += WINDOW_BITS as usize / 8;
    }
}

/// `width` < 64 ones.
#[inline]
const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};
    use bitvec::{field::BitField, order::Lsb0, view::BitView};
    use proptest::{prelude::*, test_runner::RngSeed};

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Against bitvec, which knows nothing of windows: the field is written, and nothing else is.
        #[test]
        fn fields_agree_with_bitvec(
            before in prop::collection::vec(any::<u8>(), 48),
            bit in 0usize..200,
            width in 1u32..=128,
            value: u128,
        ) {
            let value = value & u128::MAX >> (128 - width);
            let mut ours: Vec<u8> = before.clone();
            set(&mut ours, bit as u64, width, value);
            let mut oracle = before;
            oracle.view_bits_mut::<Lsb0>()[bit..bit + width as usize].store_le(value);
            prop_assert_eq!(&ours, &oracle);
            if width <= 32 {
                prop_assert_eq!(u128::from(get(&ours, bit as u64, width)), value);
            }
        }
    }

    #[test]
    fn the_padding_suffices_and_is_needed() {
        let mut bytes = vec![0; 1 + PADDING];
        set(&mut bytes, 7, 1, 1);
        assert_eq!((bytes[0], get(&bytes, 7, 1)), (0x80, 1));
        assert_eq!(get(&bytes, 8, 0), 0);
        assert!(std::panic::catch_unwind(|| get(&bytes[1..], 8, 0)).is_err());
    }
}
