//! Slices, arrays and vectors: the parts of their elements, and for bytes the bytes themselves.

use alloc::vec::Vec;

use super::{Bytes, Item, Parts};

impl<T: Item> Item for [T] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match T::as_byte_slice(self) {
            Some(Bytes(bytes)) => read(bytes),
            None => Parts::collect(|parts| self.iter().for_each(|item| item.write_part(parts)), read),
        }
    }

    #[inline]
    fn write_part(&self, parts: &mut Parts) {
        parts.push_len(self.len());
        match T::as_byte_slice(self) {
            Some(Bytes(bytes)) => parts.push(bytes),
            None => self.iter().for_each(|item| item.write_part(parts)),
        }
    }
}

macro_rules! like_slices {
    ($($(const $len:ident,)? $sequence:ty;)+) => {$(
        impl<T: Item, $(const $len: usize)?> Item for $sequence {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                self.as_slice().with_bytes(read)
            }

            #[inline]
            fn write_part(&self, parts: &mut Parts) {
                self.as_slice().write_part(parts);
            }
        }
    )+};
}
like_slices! {
    // With their length as parts, too, though the type has it: an array and a slice of the same elements are the same item.
    const N, [T; N];
    Vec<T>;
}
