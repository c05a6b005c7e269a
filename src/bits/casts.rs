//! Named numeric casts, each with the reason why it is correct.

/// Converts a position inside a table in memory. No table is longer than `isize::MAX` bytes ([`crate::Params`]), so the position
/// fits into a `usize`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "positions inside a table in memory")]
pub(crate) const fn index(position: u64) -> usize {
    position as usize
}

/// Converts a `usize`, which has at most 64 bits on every target.
#[inline]
pub(crate) const fn wide(value: usize) -> u64 {
    value as u64
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
