//! Bit fields of any width at any bit of a byte slice, least significant bit first. Tables access their bytes only through this
//! module; a field may straddle bytes and words.

/// Bytes of padding behind a table, so that eight bytes can be loaded from the first byte of any field, even of an empty field at
/// the very end.
pub(crate) const PADDING: usize = 8;

/// Bits that a window of eight bytes covers, whichever bit of its first byte they begin at.
const WINDOW_BITS: u32 = 56;

/// The same for bits that begin at a multiple of `step`: the window covers more if `step` is a multiple of 2, 4 or 8.
pub(crate) const fn window_bits(step: u32) -> u32 {
    let zeros = step.trailing_zeros();
    WINDOW_BITS + (1 << if zeros < 3 { zeros } else { 3 })
}

/// Without `copy_from_slice`, as in [`set`]: where there is no link-time optimisation, it is a call.
#[inline]
fn window(bytes: &[u8], byte: usize) -> u64 {
    bytes[byte..byte + 8].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// [`word`] at two bits. With one panic for both, a lookup has a single cold path, and nothing else in it needs the stack.
///
/// # Panics
/// As [`word`].
#[cfg(any(x86_kernels, test))]
#[inline]
pub(crate) fn words(bytes: &[u8], first: u64, second: u64) -> [u64; 2] {
    let eight = |bit: u64| bytes.get(index(bit / 8)..index(bit / 8) + 8)?.first_chunk().map(|word| u64::from_le_bytes(*word));
    match (eight(first), eight(second)) {
        (Some(one), Some(other)) => [one >> (first % 8), other >> (second % 8)],
        _ => beyond(),
    }
}

/// The panic of all accesses on the way to a bucket. One that names an index would have to keep it, in a register that a lookup
/// needs.
#[cold]
#[inline(never)]
pub(crate) fn beyond() -> ! {
    panic!("a bucket is beyond the end of the bytes");
}

/// The word that begins at `bit`. Its lowest [`window_bits`] bits are meaningful, the others are not.
///
/// # Panics
/// If fewer than [`PADDING`] bytes begin at the byte of `bit`.
#[inline]
pub(crate) fn word(bytes: &[u8], bit: u64) -> u64 {
    window(bytes, index(bit / 8)) >> (bit % 8)
}

/// Reads the field of `width` ≤ 32 bits at `bit`.
///
/// # Panics
/// As [`word`].
#[inline]
pub(crate) fn get(bytes: &[u8], bit: u64, width: u32) -> u32 {
    debug_assert!(width <= 32);
    low_half(word(bytes, bit) & mask(width))
}

/// Writes the lowest `width` bits of `value` at `bit`, and leaves all other bits unchanged. `width` must be at most
/// [`window_bits`].
///
/// # Panics
/// As [`word`].
#[inline]
pub(crate) fn set(bytes: &mut [u8], bit: u64, width: u32, value: u64) {
    let (byte, shift, mask) = (index(bit / 8), bit % 8, mask(width));
    debug_assert!(width + low_half(shift) <= 64);
    let word = window(bytes, byte) & !(mask << shift) | (value & mask) << shift;
    if let Some(place) = bytes[byte..byte + 8].first_chunk_mut() {
        *place = word.to_le_bytes();
    }
}

/// Writes fields one behind the other, a word at a time.
pub(crate) struct Writer {
    byte: usize,
    /// What is still to be written, and how many bits that are: less than a word.
    word: u64,
    bits: u32,
}

impl Writer {
    /// Begins at a bit, a multiple of 8.
    #[inline]
    pub(crate) fn new(bit: u64) -> Self {
        debug_assert!(bit.is_multiple_of(8));
        Self { byte: index(bit / 8), word: 0, bits: 0 }
    }

    /// Writes a value of `width` < 64 bits.
    ///
    /// # Panics
    /// As [`word`].
    #[inline]
    pub(crate) fn push(&mut self, bytes: &mut [u8], width: u32, value: u64) {
        debug_assert!(value & !mask(width) == 0);
        let bits = self.bits + width;
        self.word |= value << self.bits;
        if bits >= u64::BITS {
            if let Some(place) = bytes[self.byte..self.byte + 8].first_chunk_mut() {
                *place = self.word.to_le_bytes();
            }
            self.byte += 8;
            // There were some bits, since no value has as many as a word.
            self.word = value >> (u64::BITS - self.bits);
        }
        self.bits = bits % u64::BITS;
    }

    /// Writes what is left. Bits behind it stay as they are.
    ///
    /// # Panics
    /// As [`word`].
    #[inline]
    pub(crate) fn finish(self, bytes: &mut [u8]) {
        set(bytes, wide(self.byte) * 8, self.bits, self.word);
    }
}

/// A mask of `width` < 64 ones.
#[inline]
pub(crate) const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

// Named casts, each with the reason why it is correct.

/// Converts a position inside a table in memory. No table is longer than `isize::MAX` bytes ([`crate::Params`]), so the position
/// fits into a `usize`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "positions inside a table in memory")]
pub(crate) const fn index(position: u64) -> usize {
    debug_assert!(position <= usize::MAX as u64, "a position is beyond the address space");
    position as usize
}

/// Converts a `usize`, which has at most 64 bits on every target.
#[inline]
pub(crate) const fn wide(value: usize) -> u64 {
    value as u64
}

/// A number of items or bytes in memory; `usize::MAX` for more, as a plan for a 64-bit machine may have on one of 32 bits.
#[inline]
pub(crate) fn in_memory(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The upper and lower 64 bits of a 128-bit product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) const fn product(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    ((product >> 64) as u64, product as u64)
}

/// The lower 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// The lowest 16 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lowest quarter")]
pub(crate) const fn low_quarter(value: u64) -> u16 {
    value as u16
}

// Equal-width fields in a word, compared with a value in parallel (SWAR).

/// The layout of equal-width fields in a word, packed from its lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The lowest bit of every field.
    ones: u64,
    /// The highest bit of every field.
    tops: u64,
}

impl Fields {
    /// `count` fields of `width` bits, at most 64 bits in total. Fields without bits never match.
    #[inline]
    pub(crate) const fn new(width: u32, count: u32) -> Self {
        assert!(width * count <= 64, "a word has 64 bits");
        let (mut ones, mut field) = (0, 0);
        while field < count && width > 0 {
            ones |= 1 << (field * width);
            field += 1;
        }
        Self::from_ones(ones, width)
    }

    /// Fields of `width` bits that begin at the bits set in `ones`.
    #[inline]
    pub(crate) const fn from_ones(ones: u64, width: u32) -> Self {
        Self { ones, tops: if width > 0 { ones << (width - 1) } else { 0 } }
    }

    /// The fields inside the lowest `bits` > 0 bits.
    #[inline]
    pub(crate) const fn first_bits(self, bits: u32) -> Self {
        let mask = u64::MAX >> (64 - bits);
        Self { ones: self.ones & mask, tops: self.tops & mask }
    }

    /// The lowest bit of every field.
    #[inline]
    pub(crate) const fn ones(self) -> u64 {
        self.ones
    }

    /// A word with `value` in every field. `value` must fit into a field.
    #[inline]
    pub(crate) const fn splat(self, value: u32) -> u64 {
        (value as u64).wrapping_mul(self.ones)
    }

    /// All bits of the fields except their highest.
    #[inline]
    pub(crate) const fn low_bits(self) -> u64 {
        self.tops - self.ones
    }

    /// The highest bit of every field.
    #[inline]
    pub(crate) const fn tops(self) -> u64 {
        self.tops
    }

    /// Sets the highest bit of each field of `word` that is zero.
    ///
    /// Adding the mask of a field's low bits to its low bits carries into the highest bit if one of them is set, and never
    /// beyond.
    #[inline]
    pub(crate) const fn zero(self, word: u64) -> u64 {
        let low = self.low_bits();
        !((word & low).wrapping_add(low) | word) & self.tops
    }

    /// Sets the highest bit of each field of `word` that has bits, but none of those in `mask`, which must fit into a field.
    #[inline]
    pub(crate) const fn without(self, word: u64, mask: u32) -> u64 {
        self.zero(word & self.splat(mask)) & !self.zero(word)
    }

    /// Sets the highest bit of each field of `word` that equals `value`.
    #[inline]
    pub(crate) const fn equal(self, word: u64, value: u32) -> u64 {
        self.zero(word ^ self.splat(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};
    use bitvec::{field::BitField, order::Lsb0, view::BitView};
    use proptest::{prelude::*, test_runner::RngSeed};

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Compared with bitvec: the field is written, and nothing else is.
        #[test]
        fn fields_agree_with_bitvec(
            before in prop::collection::vec(any::<u8>(), 48),
            bit in 0usize..200,
            step in 0u32..=3,
            width in 1u32..=63,
            value: u64,
        ) {
            let bit = bit >> step << step;
            let width = width.min(window_bits(1 << step));
            let value = value & u64::MAX >> (64 - width);
            let mut ours: Vec<u8> = before.clone();
            set(&mut ours, bit as u64, width, value);
            let mut oracle = before.clone();
            oracle.view_bits_mut::<Lsb0>()[bit..bit + width as usize].store_le(value);
            prop_assert_eq!(&ours, &oracle);
            prop_assert_eq!(word(&ours, bit as u64) & mask(width), value);
            if width <= 32 {
                prop_assert_eq!(u64::from(get(&ours, bit as u64, width)), value);
            }
        }

        /// Fields that are written one behind the other are those that are set one by one.
        #[test]
        fn fields_in_a_row_are_those_that_are_set(
            before in prop::collection::vec(any::<u8>(), 48 + PADDING),
            byte in 0_u64..8,
            values in prop::collection::vec((0u32..=60, any::<u64>()), 0..6),
        ) {
            let (mut written, mut expected) = (before.clone(), before);
            let (mut writer, mut bit) = (Writer::new(8 * byte), 8 * byte);
            for (width, value) in values {
                let value = value & mask(width);
                writer.push(&mut written, width, value);
                // Half by half: a window has fewer bits.
                set(&mut expected, bit, width / 2, value & mask(width / 2));
                set(&mut expected, bit + u64::from(width / 2), width - width / 2, value >> (width / 2));
                bit += u64::from(width);
            }
            writer.finish(&mut written);
            prop_assert_eq!(written, expected);
        }

        /// For every width and number of fields: fields that match are marked, nothing else is.
        #[test]
        fn equal_fields_and_no_others_are_marked(word: u64, value: u32, copies: u64, width in 1u32..=32, count in 1u32..=64) {
            let count = count.min(64 / width);
            let value = value & u32::MAX >> (32 - width);
            let mask = u64::MAX >> (64 - width);
            let field = |word: u64, n: u32| word >> (n * width) & mask;
            // Make some fields equal; wide random fields hardly ever are.
            let word = (0..count).filter(|n| copies >> n & 1 == 1).fold(word, |word, n| {
                word & !(mask << (n * width)) | u64::from(value) << (n * width)
            });
            let marks = Fields::new(width, count).equal(word, value);
            for n in 0..count {
                prop_assert_eq!(field(marks, n) != 0, field(word, n) == u64::from(value));
                prop_assert!(field(marks, n) == 0 || field(marks, n) == 1 << (width - 1));
            }
            let beyond = u64::MAX.checked_shl(width * count).unwrap_or(0);
            prop_assert_eq!(marks & beyond, 0);
        }
    }

    #[test]
    fn fields_of_no_bits_are_never_marked() {
        assert_eq!(Fields::new(0, 4).equal(0, 0), 0);
        assert_eq!(Fields::new(5, 0).equal(0, 0), 0);
    }

    #[test]
    fn the_padding_suffices_and_is_needed() {
        let mut bytes = vec![0; 1 + PADDING];
        set(&mut bytes, 7, 1, 1);
        assert_eq!((bytes[0], get(&bytes, 7, 1)), (0x80, 1));
        assert_eq!(get(&bytes, 8, 0), 0);
        assert_eq!(words(&bytes, 7, 8), [1, 0]);
        #[cfg(panic = "unwind")]
        {
            assert!(std::panic::catch_unwind(|| get(&bytes[1..], 8, 0)).is_err());
            assert!(std::panic::catch_unwind(|| words(&bytes, 7, 16)).is_err());
            assert!(std::panic::catch_unwind(|| words(&bytes, 16, 7)).is_err());
        }
    }
}
