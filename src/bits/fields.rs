//! Equal-width fields in a word, compared with a value in parallel (SWAR).

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
    use proptest::{prelude::*, test_runner::RngSeed};

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

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
}
