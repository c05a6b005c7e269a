//! Bit fields of any width at any bit of a byte slice, least significant bit first. A field may straddle bytes and words. Tables
//! access their bytes only through this module.

/// True in programs for browsers, which are to be small: code that is there in any case takes the place of faster code.
pub(crate) const IS_SMALL: bool = cfg!(target_family = "wasm");

/// True in the npm package, which has most of the code that reads filters, and has it once: not for each kind of table.
pub(crate) const IS_SMALLEST: bool = cfg!(smallest);

/// The number of padding bytes behind a table. They allow loading eight bytes from the first byte of any field, even of an empty
/// field at the very end.
pub(crate) const PADDING: usize = 8;

/// The number of bits of a window of eight bytes after its first byte.
const WINDOW_BITS: u32 = 56;

/// Returns how many bits a window always covers if they begin at a multiple of `step`: 57 if `step` is odd, 58, 60 or 64 if it is a
/// multiple of 2, 4 or 8.
pub(crate) const fn window_bits(step: u32) -> u32 {
    let zeros = step.trailing_zeros();
    WINDOW_BITS + (1 << if zeros < 3 { zeros } else { 3 })
}

/// Loads the eight bytes at `byte`. Avoids `copy_from_slice`, as [`set`] does: without link-time optimization it is a call.
#[inline]
fn window(bytes: &[u8], byte: usize) -> u64 {
    bytes[byte..byte + 8].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// Returns the [`word`]s at two bits. Both share one panic, so a lookup has a single cold path, and nothing else in it needs the
/// stack.
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

/// Panics on behalf of every access to a bucket. The message names no index: keeping one would take a register that a lookup needs.
#[cold]
#[inline(never)]
pub(crate) fn beyond() -> ! {
    panic!("a bucket is beyond the end of the bytes");
}

/// Returns the word that begins at `bit`. Only its lowest [`window_bits`] bits are meaningful.
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

/// A writer of consecutive fields, which stores a word at a time.
pub(crate) struct Writer {
    byte: usize,
    /// The bits that are not stored yet.
    word: u64,
    /// The number of bits in `word`, 0 to 63.
    bits: u32,
}

impl Writer {
    /// Starts at `bit`, a multiple of 8.
    #[inline]
    pub(crate) fn new(bit: u64) -> Self {
        debug_assert!(bit.is_multiple_of(8));
        Self { byte: index(bit / 8), word: 0, bits: 0 }
    }

    /// Appends a value of `width` < 64 bits.
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
            // `self.bits` is not 0 here, because a value has fewer than 64 bits.
            self.word = value >> (u64::BITS - self.bits);
        }
        self.bits = bits % u64::BITS;
    }

    /// Stores the remaining bits. The bits behind them stay unchanged.
    ///
    /// # Panics
    /// As [`word`].
    #[inline]
    pub(crate) fn finish(self, bytes: &mut [u8]) {
        set(bytes, wide(self.byte) * 8, self.bits, self.word);
    }
}

/// Returns a mask of `width` < 64 ones.
#[inline]
pub(crate) const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

// Named casts, each with its justification.

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

/// Converts a count of items or bytes. Saturates at `usize::MAX`, which a plan for a 64-bit machine may exceed on a 32-bit one.
#[inline]
pub(crate) fn in_memory(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the upper and lower 64 bits of the 128-bit product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) const fn product(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    ((product >> 64) as u64, product as u64)
}

/// Returns the lower 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// Returns the lower 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) fn low_word(value: u128) -> u64 {
    value as u64
}

/// Returns the lowest 16 bits.
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
    pub ones: u64,
    /// The highest bit of every field.
    pub tops: u64,
}

impl Fields {
    /// Lays out `count` fields of `width` bits, at most 64 bits in total. Fields of width 0 never match.
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

    /// Lays out a field of `width` bits at each bit that is set in `ones`.
    #[inline]
    pub(crate) const fn from_ones(ones: u64, width: u32) -> Self {
        Self { ones, tops: if width > 0 { ones << (width - 1) } else { 0 } }
    }

    /// Returns the fields inside the lowest `bits` > 0 bits.
    #[inline]
    pub(crate) const fn first_bits(self, bits: u32) -> Self {
        let mask = u64::MAX >> (64 - bits);
        Self { ones: self.ones & mask, tops: self.tops & mask }
    }

    /// Returns a word with `value` in every field. `value` must fit into a field.
    #[inline]
    pub(crate) const fn splat(self, value: u32) -> u64 {
        (value as u64).wrapping_mul(self.ones)
    }

    /// Returns all bits of the fields except their highest.
    #[inline]
    pub(crate) const fn low_bits(self) -> u64 {
        self.tops - self.ones
    }

    /// Returns the highest bit of each field of `word` that is zero.
    ///
    /// A field's low bits plus their mask carry into the highest bit if one of them is set, and never beyond it.
    #[inline]
    pub(crate) const fn zero(self, word: u64) -> u64 {
        let low = self.low_bits();
        !((word & low).wrapping_add(low) | word) & self.tops
    }

    /// Returns the highest bit of each field of `word` that is not zero but has no bit of `mask`. `mask` must fit into a field.
    #[inline]
    pub(crate) const fn without(self, word: u64, mask: u32) -> u64 {
        self.zero(word & self.splat(mask)) & !self.zero(word)
    }

    /// Returns the highest bit of each field of `word` that equals `value`.
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

        /// Writing a field changes that field and nothing else, as in bitvec.
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

        /// A [`Writer`] stores the same bytes as individual calls of [`set`].
        #[test]
        fn consecutive_fields_equal_individually_set_ones(
            before in prop::collection::vec(any::<u8>(), 48 + PADDING),
            byte in 0_u64..8,
            values in prop::collection::vec((0u32..=60, any::<u64>()), 0..6),
        ) {
            let (mut written, mut expected) = (before.clone(), before);
            let (mut writer, mut bit) = (Writer::new(8 * byte), 8 * byte);
            for (width, value) in values {
                let value = value & mask(width);
                writer.push(&mut written, width, value);
                // In two halves, because a window has fewer bits.
                set(&mut expected, bit, width / 2, value & mask(width / 2));
                set(&mut expected, bit + u64::from(width / 2), width - width / 2, value >> (width / 2));
                bit += u64::from(width);
            }
            writer.finish(&mut written);
            prop_assert_eq!(written, expected);
        }

        /// For every width and number of fields, the marks are the highest bits of the matching fields.
        #[test]
        fn exactly_the_equal_fields_are_marked(word: u64, value: u32, copies: u64, width in 1u32..=32, count in 1u32..=64) {
            let count = count.min(64 / width);
            let value = value & u32::MAX >> (32 - width);
            let mask = u64::MAX >> (64 - width);
            let field = |word: u64, n: u32| word >> (n * width) & mask;
            // Make some fields equal, since wide random fields hardly ever are.
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
    fn fields_without_bits_never_match() {
        assert_eq!(Fields::new(0, 4).equal(0, 0), 0);
        assert_eq!(Fields::new(5, 0).equal(0, 0), 0);
    }

    #[test]
    fn padding_is_sufficient_and_necessary() {
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
