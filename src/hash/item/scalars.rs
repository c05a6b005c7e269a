//! Items of one fixed width: no part of them needs a length.

use core::{
    net::{Ipv4Addr, Ipv6Addr},
    num::NonZero,
};

use super::{Bytes, Item, Parts};
use crate::bits::wide;

macro_rules! scalars {
    ($($scalar:ty: |$value:ident| $bytes:expr;)+) => {$(
        impl Item for $scalar {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let $value = *self;
                read(&$bytes)
            }

            #[inline]
            fn write_part(&self, parts: &mut Parts) {
                self.with_bytes(|bytes| parts.push(bytes));
            }
        }
    )+};
}
scalars! {
    bool: |value| [u8::from(value)];
    char: |value| u32::from(value).to_le_bytes();
    Ipv4Addr: |address| address.octets();
    Ipv6Addr: |address| address.octets();
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        scalars! {
            $integer: |value| value.to_le_bytes();
            NonZero<$integer>: |value| value.get().to_le_bytes();
        }
    )+};
}
integers!(u16, u32, u64, u128, i8, i16, i32, i64, i128);

// As wide as on the largest machines.
scalars! {
    usize: |value| wide(value).to_le_bytes();
    isize: |value| (value as i64).to_le_bytes();
    NonZero<u8>: |value| [value.get()];
    NonZero<usize>: |value| wide(value.get()).to_le_bytes();
    NonZero<isize>: |value| (value.get() as i64).to_le_bytes();
}

/// Not one of the above, as slices of it are read where they are.
impl Item for u8 {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&[*self])
    }

    #[inline]
    fn write_part(&self, parts: &mut Parts) {
        parts.push(&[*self]);
    }

    #[inline]
    fn as_byte_slice(items: &[Self]) -> Option<Bytes<'_>> {
        Some(Bytes(items))
    }
}
