//! Values of one width, at equal distances in memory: integers, and byte strings of a fixed length.

#![allow(unsafe_code, reason = "the values are in memory of other libraries")]

use std::slice;

use koel::{Item, Prehashed, Xxh3};

/// The type of a value.
#[derive(Clone, Copy)]
pub enum Cell {
    /// Integers of 1, 2, 4 or 8 bytes.
    Integer { bytes: usize, is_signed: bool, is_swapped: bool },
    /// Byte strings of this length.
    Bytes(usize),
}

impl Cell {
    /// Returns the length of a value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Integer { bytes, .. } | Self::Bytes(bytes) => bytes,
        }
    }
}

/// Values in memory that something else keeps.
#[derive(Clone, Copy)]
pub struct Cells {
    start: *const u8,
    stride: isize,
    len: usize,
    cell: Cell,
}

// SAFETY: the memory is only read, as `new` demands.
unsafe impl Send for Cells {}
// SAFETY: as above.
unsafe impl Sync for Cells {}

/// Evaluates an expression with a function that reads an integer and widens it to 64 bits.
macro_rules! with_words {
    ($cells:expr, $bytes:expr, $is_signed:expr, $is_swapped:expr, $word:ident => $value:expr, { $($width:literal $signed:ty, $unsigned:ty;)+ }) => {
        match ($bytes, $is_signed) {
            $(
                ($width, true) => {
                    let $word = |item| {
                        let number: $signed = $cells.read(item);
                        i64::from(if $is_swapped { number.swap_bytes() } else { number }).cast_unsigned()
                    };
                    $value
                }
                ($width, false) => {
                    let $word = |item| {
                        let number: $unsigned = $cells.read(item);
                        u64::from(if $is_swapped { number.swap_bytes() } else { number })
                    };
                    $value
                }
            )+
            _ => unreachable!("integers have 1, 2, 4 or 8 bytes"),
        }
    };
    ($cells:expr, $bytes:expr, $is_signed:expr, $is_swapped:expr, $word:ident => $value:expr) => {
        with_words!($cells, $bytes, $is_signed, $is_swapped, $word => $value, { 1 i8, u8; 2 i16, u16; 4 i32, u32; 8 i64, u64; })
    };
}

impl Cells {
    /// Describes `len` values, of which each begins `stride` bytes after the one before.
    ///
    /// # Safety
    /// As long as the result is in use, all values can be read by any thread, and nobody writes to them.
    pub unsafe fn new(start: *const u8, stride: isize, len: usize, cell: Cell) -> Self {
        Self { start, stride, len, cell }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the values if they are integers of 64 bits, one after the other and aligned.
    #[allow(clippy::cast_ptr_alignment, reason = "it is checked before use")]
    pub fn words(&self) -> Option<&[u64]> {
        let words = self.start.cast::<u64>();
        let is_word = matches!(self.cell, Cell::Integer { bytes: 8, is_swapped: false, .. });
        if !is_word || self.stride != 8 || self.len == 0 || !words.is_aligned() {
            return None;
        }
        // SAFETY: `new` demands that there are `len` values.
        Some(unsafe { slice::from_raw_parts(words, self.len) })
    }

    /// Appends the hashes of these values.
    pub fn hash(&self, items: impl Iterator<Item = usize>, seed: u64, hashes: &mut Vec<u64>) {
        match self.cell {
            Cell::Integer { bytes, is_signed, is_swapped } => {
                with_words!(self, bytes, is_signed, is_swapped, word => hashes.extend(items.map(|item| hash(seed, &word(item)))));
            }
            Cell::Bytes(bytes) => hashes.extend(items.map(|item| hash(seed, self.value(item, bytes)))),
        }
    }

    /// Returns an integer as an index; `None` if it is negative.
    #[inline]
    pub fn index(&self, item: usize) -> Option<usize> {
        let Cell::Integer { bytes, is_signed, is_swapped } = self.cell else { return None };
        let word: u64 = with_words!(self, bytes, is_signed, is_swapped, word => word(item));
        if is_signed && word.cast_signed() < 0 { None } else { usize::try_from(word).ok() }
    }

    #[inline]
    fn at(&self, item: usize) -> *const u8 {
        assert!(item < self.len, "callers stay within the values");
        // SAFETY: `new` demands that there is a value, so its distance is no larger than an allocation.
        unsafe { self.start.offset(self.stride * item.cast_signed()) }
    }

    #[inline]
    fn read<T: Copy>(&self, item: usize) -> T {
        // SAFETY: `new` demands that the value can be read. It need not be aligned. `T` is an integer of its width.
        unsafe { self.at(item).cast::<T>().read_unaligned() }
    }

    #[inline]
    fn value(&self, item: usize, bytes: usize) -> &[u8] {
        // SAFETY: `new` demands that all bytes of the value can be read. An empty value has no place.
        if bytes == 0 { &[] } else { unsafe { slice::from_raw_parts(self.at(item), bytes) } }
    }
}

/// Returns the hash of an item for a batch.
#[inline]
pub fn hash<T: Item + ?Sized>(seed: u64, item: &T) -> u64 {
    Prehashed::of(&Xxh3, seed, item).0
}
