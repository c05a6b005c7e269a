//! Items: the types that a filter takes, and their bytes.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    ffi::CString,
    rc::Rc,
    string::String,
    vec::Vec,
};
use core::{
    ffi::CStr,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    num::NonZero,
};
#[cfg(all(feature = "std", unix))]
use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use crate::bits::wide;

/// A type whose values can be put into a filter. Each value has bytes, the same on every machine and in every release.
///
/// Two items with the same bytes are the same item to a filter. Two different values of one type never have the same bytes;
/// values of different types may.
///
/// # The bytes
/// | type | bytes |
/// |---|---|
/// | `str`, `String` | the UTF-8 bytes, without a length or a zero |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | the bytes themselves |
/// | `CStr`, `CString` | the bytes, without the zero at the end |
/// | `OsStr`, `OsString`, `Path`, `PathBuf` | the bytes as the system has them; only on Unix, with the feature `std` |
/// | `u8` to `u128`, `i8` to `i128` | 1, 2, 4, 8 or 16 bytes, little-endian, in two's complement |
/// | `usize`, `isize` | 8 bytes: those of `u64` and `i64`, even on targets with shorter words |
/// | `NonZero<T>` | those of `T` |
/// | `bool` | 1 byte: 0 or 1 |
/// | `char` | 4 bytes: those of the code point as a `u32` |
/// | `Ipv4Addr`, `Ipv6Addr` | 4 or 16 bytes: the octets, in network order |
/// | `IpAddr` | a byte, 4 or 6, and the octets |
/// | `SocketAddrV4` | 6 bytes: the octets, and the port as a `u16` |
/// | `SocketAddrV6` | 26 bytes: the octets, the port, and the flow information and scope each as a `u32` |
/// | `SocketAddr` | a byte, 4 or 6, and the above |
/// | `[T]`, `[T; N]`, `Vec<T>` | the *parts* of the elements, one after another |
/// | tuples of 1 to 12 | the *parts* of the fields, one after another |
/// | `()` | 1 byte: 0 |
/// | `Option<T>` | for `None` a 0; for `Some` a 1 and the *part* of the value |
/// | `&T`, `&mut T`, `Box<T>`, `Rc<T>`, `Arc<T>`, `Cow<T>` | those of `T` |
///
/// If an item is a *part* of another and its type does not determine where it ends, its length comes first, so that `("ab", "c")`
/// and `("a", "bc")` are different items. The length has 8 bytes, little-endian:
/// - for strings, paths, and types that implement `Item` themselves, it is the number of bytes;
/// - for arrays, slices and vectors, it is the number of elements. For `[u8]`, both are the same.
///
/// All other items have the same bytes alone and as a part.
/// ```
/// use koel::Item;
/// let bytes = |item: &(u16, &str, Option<bool>)| item.with_bytes(<[u8]>::to_vec);
/// assert_eq!(bytes(&(513, "ab", None)), b"\x01\x02\x02\0\0\0\0\0\0\0ab\0");
/// assert_eq!(bytes(&(513, "", Some(true))), b"\x01\x02\0\0\0\0\0\0\0\0\x01\x01");
/// ```
///
/// # Memory
/// Items of several parts with more than 128 bytes in total are copied to the heap to be hashed. If the allocator has no memory
/// for them, the program aborts, as with any vector. All other items, including strings and byte slices of any length, are hashed
/// in place.
///
/// # Which values are the same item
/// - `"a"`, `String::from("a")`, `b"a"`, `[97u8]` and `97u8` are the same item. So are a vector, an array and a slice of the same
///   elements, also as parts.
/// - `1u32` and `1u64` are different items. So are `'a'` and `"a"`, and `"a"` and `("a",)`. Insert and query with the same type:
///   a literal such as `1` or `[1, 2]` is an `i32` or an array of `i32` unless the context says otherwise.
/// - An `Ipv4Addr` and the `IpAddr` of the same address are different items.
/// - `Path::new("a//b")` and `Path::new("a/b")` are different items, although `==` says that they are equal: bytes are not
///   normalized.
///
/// Floats are not items: `0.0` and `-0.0` are equal but have different bits, and `NaN` does not equal itself. Insert `to_bits()`
/// to compare bits. Paths of systems other than Unix have no bytes of their own; insert `path.to_str()`. For all other types that
/// implement `core::hash::Hash`, there is [`StdHasher`](crate::hash::StdHasher).
///
/// # Example
/// For a struct, pass on the bytes of a tuple of its fields:
/// ```
/// use koel::{CuckooFilter, Item};
///
/// struct Endpoint { host: String, port: u16 }
///
/// impl Item for Endpoint {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         (&self.host, self.port).with_bytes(read)
///     }
/// }
///
/// let endpoint = |port| Endpoint { host: "localhost".into(), port };
/// let mut seen = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// seen.insert(&endpoint(80))?;
/// assert!(seen.contains(&endpoint(80)));
/// assert!(!seen.contains(&endpoint(443)));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a filter",
    note = "strings, byte strings, integers, addresses, and tuples, slices and options of these can; for a type of your own, \
            implement `koel::Item`, or use `koel::hash::StdHasher`, which takes every type that implements `Hash`"
)]
pub trait Item {
    /// Calls `read` once with the item's bytes and returns its result.
    ///
    /// Different values must have different bytes, and a value must always have the same bytes.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;

    /// True if all values have the same number of bytes.
    #[doc(hidden)]
    const IS_FIXED: bool = false;

    /// Appends the bytes that the item has as a part of another. No part may be empty, or a prefix of another value's part, so
    /// that parts can follow one another.
    #[doc(hidden)]
    #[inline]
    fn write_part(&self, parts: &mut Parts) {
        self.with_bytes(|bytes| {
            if !Self::IS_FIXED {
                parts.push_len(bytes.len());
            }
            parts.push(bytes);
        });
    }

    /// Returns the items if they are bytes, so that `[u8]` is read in place; two implementations for slices cannot express this.
    /// Only this crate can name the type of the result, so no other type can claim to be bytes.
    #[doc(hidden)]
    #[inline]
    fn as_byte_slice(_items: &[Self]) -> Option<Bytes<'_>>
    where
        Self: Sized,
    {
        None
    }
}

// The bytes of composite items.

/// The number of bytes that need no heap. Most items fit: a string of a hundred bytes with an integer or two.
const ON_THE_STACK: usize = 128;

/// Items that are bytes.
#[derive(Debug)]
pub struct Bytes<'a>(&'a [u8]);

/// A buffer of bytes, which parts append to. The bytes move to the heap when the stack has no room for them.
#[derive(Debug)]
pub struct Parts {
    stack: [u8; ON_THE_STACK],
    len: usize,
    /// Either empty or all of the bytes.
    heap: Vec<u8>,
}

impl Parts {
    /// Calls `read` with the bytes that `write` appended.
    #[inline]
    fn collect<R>(write: impl FnOnce(&mut Self), read: impl FnOnce(&[u8]) -> R) -> R {
        let mut parts = Self { stack: [0; ON_THE_STACK], len: 0, heap: Vec::new() };
        write(&mut parts);
        read(parts.as_slice())
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        match self.stack.get_mut(self.len..end) {
            Some(room) => room.copy_from_slice(bytes),
            None => self.spill(bytes),
        }
        self.len = end;
    }

    /// Appends the length of a part whose type does not determine where it ends.
    #[inline]
    fn push_len(&mut self, len: usize) {
        self.push(&wide(len).to_le_bytes());
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        if self.heap.is_empty() {
            // Reserves as much again as on the stack, so that the following parts rarely cause another move.
            self.heap.reserve(self.len + bytes.len() + ON_THE_STACK);
            self.heap.extend_from_slice(&self.stack[..self.len]);
        }
        self.heap.extend_from_slice(bytes);
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        self.stack.get(..self.len).unwrap_or(&self.heap)
    }
}

// References and owners have the bytes of the item to which they lead. As parts, arrays have their length in front, although the
// type determines it, because an array and a slice of the same elements are the same item.

macro_rules! owners {
    ($([$($generic:tt)+] $owner:ty: $owned:ty, $is_fixed:expr;)+) => {$(
        impl<$($generic)+> Item for $owner {
            const IS_FIXED: bool = $is_fixed;

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                <$owned>::with_bytes(self, read)
            }

            #[inline]
            fn write_part(&self, parts: &mut Parts) {
                <$owned>::write_part(self, parts);
            }
        }
    )+};
}
owners! {
    [T: Item + ?Sized] &T: T, T::IS_FIXED;
    [T: Item + ?Sized] &mut T: T, T::IS_FIXED;
    [T: Item + ?Sized] Box<T>: T, T::IS_FIXED;
    [T: Item + ?Sized] Rc<T>: T, T::IS_FIXED;
    [T: Item + ?Sized + ToOwned] Cow<'_, T>: T, T::IS_FIXED;
    [T: Item] Vec<T>: [T], false;
    [T: Item, const N: usize] [T; N]: [T], T::IS_FIXED;
}
// Some of the smallest processors have no atomic pointers.
#[cfg(target_has_atomic = "ptr")]
owners!([T: Item + ?Sized] alloc::sync::Arc<T>: T, T::IS_FIXED;);

// Items that are bytes of any length or of a fixed length. As parts, only the former have their length in front.

macro_rules! bytes {
    ($is_fixed:literal: $($(#[$attribute:meta])* $item:ty: |$value:ident| $bytes:expr;)+) => {$(
        $(#[$attribute])*
        impl Item for $item {
            const IS_FIXED: bool = $is_fixed;

            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                let $value = self;
                read($bytes)
            }
        }
    )+};
}
bytes! { false:
    str: |text| text.as_bytes();
    String: |text| text.as_bytes();
    CStr: |text| text.to_bytes();
    CString: |text| text.as_bytes();
}

// On other systems, a path is not made of bytes, and the standard library's representation is not specified.
#[cfg(all(feature = "std", unix))]
bytes! { false:
    /// Only on Unix.
    OsStr: |text| text.as_bytes();
    /// Only on Unix.
    OsString: |text| text.as_bytes();
    /// Only on Unix.
    Path: |path| path.as_os_str().as_bytes();
    /// Only on Unix.
    PathBuf: |path| path.as_os_str().as_bytes();
}

bytes! { true:
    bool: |value| &[u8::from(*value)];
    char: |value| &u32::from(*value).to_le_bytes();
    Ipv4Addr: |address| &address.octets();
    Ipv6Addr: |address| &address.octets();
    // As wide as on the largest machines.
    usize: |value| &wide(*value).to_le_bytes();
    isize: |value| &(*value as i64).to_le_bytes();
    NonZero<u8>: |value| &[value.get()];
    NonZero<usize>: |value| &wide(value.get()).to_le_bytes();
    NonZero<isize>: |value| &(value.get() as i64).to_le_bytes();
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        bytes! { true:
            $integer: |value| &value.to_le_bytes();
            NonZero<$integer>: |value| &value.get().to_le_bytes();
        }
    )+};
}
integers!(u16, u32, u64, u128, i8, i16, i32, i64, i128);

/// A separate implementation, because slices of `u8` are read in place.
impl Item for u8 {
    const IS_FIXED: bool = true;

    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(&[*self])
    }

    #[inline]
    fn as_byte_slice(items: &[Self]) -> Option<Bytes<'_>> {
        Some(Bytes(items))
    }
}

/// The bytes of a slice: those of the parts of its elements, or for `[u8]`, the bytes themselves.
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

// Tuples, options and addresses consist of the parts of their fields. They have the same bytes as parts, because these determine
// where they end.

macro_rules! composites {
    ($([$($generic:ident)*] $composite:ty: |$value:ident, $parts:ident| $write:expr;)+) => {$(
        impl<$($generic: Item),*> Item for $composite {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                Parts::collect(|parts| self.write_part(parts), read)
            }

            #[inline]
            fn write_part(&self, $parts: &mut Parts) {
                let $value = self;
                $write
            }
        }
    )+};
}

composites! {
    [T] Option<T>: |option, parts| match option {
        None => parts.push(&[0]),
        Some(item) => {
            parts.push(&[1]);
            item.write_part(parts);
        }
    };
    // One byte: with an empty part, `[(); 1]` and `[(); 2]` would be the same item.
    [] (): |_unit, parts| parts.push(&[0]);
    [] IpAddr: |address, parts| match address {
        Self::V4(address) => (4_u8, address).write_part(parts),
        Self::V6(address) => (6_u8, address).write_part(parts),
    };
    [] SocketAddrV4: |address, parts| (address.ip(), address.port()).write_part(parts);
    [] SocketAddrV6: |address, parts| {
        (address.ip(), address.port(), address.flowinfo(), address.scope_id()).write_part(parts);
    };
    [] SocketAddr: |address, parts| match address {
        Self::V4(address) => (4_u8, address).write_part(parts),
        Self::V6(address) => (6_u8, address).write_part(parts),
    };
}

/// Implements tuples of these fields, and of the fields behind the first one.
macro_rules! tuples {
    () => {};
    ($first:ident $($field:ident)*) => {
        composites! {
            [$first $($field)*] ($first, $($field,)*): |tuple, parts| {
                #[allow(non_snake_case, reason = "the fields have the names of their types")]
                let ($first, $($field,)*) = tuple;
                $first.write_part(parts);
                $($field.write_part(parts);)*
            };
        }
        tuples!($($field)*);
    };
}
tuples!(A B C D E F G H I J K L);

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn parts_may_end_at_the_end_of_the_stack() {
        for first in [0, 1, ON_THE_STACK - 1, ON_THE_STACK, ON_THE_STACK + 1, 10 * ON_THE_STACK] {
            for second in [0, 1, 2, ON_THE_STACK, ON_THE_STACK + 1] {
                let write = |parts: &mut Parts| {
                    parts.push(&vec![1; first]);
                    parts.push(&vec![2; second]);
                    parts.push(&[]);
                    parts.push(&[3]);
                };
                let expected = [vec![1; first], vec![2; second], vec![3]].concat();
                assert_eq!(Parts::collect(write, <[u8]>::to_vec), expected, "{first} and {second}");
            }
        }
    }
}
