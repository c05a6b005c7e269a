//! Casts that need a reason, each with its name.

/// A position inside a table that is in memory: no table is longer than `isize::MAX` bytes ([`crate::Params`]), so the
/// positions within it fit a `usize`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "positions inside a table in memory")]
pub(crate) const fn index(position: u64) -> usize {
    position as usize
}

/// `usize` is at most 64 bits wide on every target of Rust.
#[inline]
pub(crate) const fn wide(value: usize) -> u64 {
    value as u64
}

/// The upper and the lower half of a product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
pub(crate) const fn product(a: u64, b: u64) -> (u64, u64) {
    let product = a as u128 * b as u128;
    ((product >> 64) as u64, product as u64)
}

/// The lower 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
pub(crate) const fn low_half(value: u64) -> u32 {
    value as u32
}

/// The lowest 16 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lowest quarter is what is asked for")]
pub(crate) const fn low_quarter(value: u64) -> u16 {
    value as u16
}
