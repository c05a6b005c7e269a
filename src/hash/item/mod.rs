//! What can be put into a filter, and which bytes it has there.

mod composites;
mod owners;
mod parts;
mod scalars;
mod sequences;
mod text;

use parts::{Bytes, Parts};

/// A type whose values can be put into a filter: each has bytes, the same on every machine and in every release.
///
/// Two items with the same bytes are the same item to a filter. Two different values of one type never have the same
/// bytes; values of different types may.
///
/// # The bytes
/// | type | bytes |
/// |---|---|
/// | `str`, `String` | the UTF-8 bytes, with no length and no zero |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | the bytes themselves |
/// | `CStr`, `CString` | the bytes, without the zero at the end |
/// | `OsStr`, `OsString`, `Path`, `PathBuf` | the bytes as the system has them; on Unix only, and with the feature `std` |
/// | `u8` to `u128`, `i8` to `i128` | 1, 2, 4, 8 or 16 bytes, little-endian, in two's complement |
/// | `usize`, `isize` | 8 bytes, those of `u64` and `i64`, also where words are shorter |
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
/// Where an item is a *part* of another, a length comes first if its type does not determine where it ends, so that
/// `("ab", "c")` and `("a", "bc")` are different items. The length has 8 bytes, little-endian:
/// - in front of strings, paths, and types that implement `Item` themselves, the number of bytes;
/// - in front of arrays, slices and vectors, the number of elements. For `[u8]` the two are the same.
///
/// All other items are the same bytes as a part as they are alone.
/// ```
/// use koel::Item;
/// let bytes = |item: &(u16, &str, Option<bool>)| item.with_bytes(<[u8]>::to_vec);
/// assert_eq!(bytes(&(513, "ab", None)), b"\x01\x02\x02\0\0\0\0\0\0\0ab\0");
/// assert_eq!(bytes(&(513, "", Some(true))), b"\x01\x02\0\0\0\0\0\0\0\0\x01\x01");
/// ```
///
/// # Memory
/// Items of several parts whose bytes are more than 128 together are copied to the heap to be hashed; if the allocator has no
/// memory for them, the program aborts, as with any vector. All other items, strings and byte slices of any length among them,
/// are hashed where they are.
///
/// # Which values are the same item
/// - `"a"`, `String::from("a")`, `b"a"`, `[97u8]` and `97u8` are. So are a vector, an array and a slice of the same elements,
///   also as parts.
/// - `1u32` and `1u64` are not, nor `'a'` and `"a"`, nor `"a"` and `("a",)`. Insert and query with the same type: a literal such
///   as `1` or `[1, 2]` has `i32` if nothing else is said.
/// - `Ipv4Addr` and the `IpAddr` of the same address are not.
/// - `Path::new("a//b")` and `Path::new("a/b")` are not, although `==` says so; `[u8]` does not normalise.
///
/// Floats are no items: `0.0` and `-0.0` are equal and have different bits, and `NaN` does not equal itself. Insert
/// `to_bits()` if bits are what you mean. Paths of systems other than Unix have no bytes of their own; insert
/// `path.to_str()`. For everything else that implements `core::hash::Hash`, there is
/// [`StdHasher`](crate::StdHasher).
///
/// Items made of parts are collected on the stack up to 128 bytes, and on the heap beyond.
///
/// # Example
/// For a struct, give the bytes of a tuple of its fields:
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
            implement `koel::Item`, or use `StdHasher`, which takes every type that implements `Hash`"
)]
pub trait Item {
    /// Calls `read` once with the item's bytes and returns what it returned.
    ///
    /// Different values must have different bytes, and a value always the same.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;

    /// Appends the bytes that the item has as a part of another. No part may be a prefix of another value's, so that parts can
    /// follow one another; none is empty.
    #[doc(hidden)]
    #[inline]
    fn write_part(&self, parts: &mut Parts) {
        self.with_bytes(|bytes| {
            parts.push_len(bytes.len());
            parts.push(bytes);
        });
    }

    /// The items, if they are bytes: `[u8]` is read where it is, which two implementations for slices could not express. Only
    /// this crate can name the type of the result, so no other type can claim to be bytes.
    #[doc(hidden)]
    #[inline]
    fn as_byte_slice(_items: &[Self]) -> Option<Bytes<'_>>
    where
        Self: Sized,
    {
        None
    }
}
