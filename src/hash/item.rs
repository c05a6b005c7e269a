//! What can be put into a filter.

use alloc::{
    borrow::{Cow, ToOwned},
    boxed::Box,
    rc::Rc,
    string::String,
    vec::Vec,
};

/// Something with bytes of its own, the same on every machine.
///
/// Two items with the same bytes are the same item to a filter: `"a"`, `String::from("a")`, `b"a"` and `97u8` all are.
/// Integers give their little-endian bytes, all of them, so `1u32` and `1u64` are different items; `usize` and `isize`
/// always give eight.
///
/// # Example
/// A type of one's own chooses its bytes, and never lets two different values give the same ones:
/// ```
/// use koel::{CuckooFilter, Item};
///
/// struct Endpoint { address: [u8; 4], port: u16 }
///
/// impl Item for Endpoint {
///     fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
///         let [a, b, c, d] = self.address;
///         let [low, high] = self.port.to_le_bytes();
///         read(&[a, b, c, d, low, high])
///     }
/// }
///
/// let mut seen = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// seen.insert(&Endpoint { address: [127, 0, 0, 1], port: 80 })?;
/// assert!(seen.contains(&Endpoint { address: [127, 0, 0, 1], port: 80 }));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a filter",
    note = "strings, byte strings, integers and references to them can; for other types, implement `koel::Item`"
)]
pub trait Item {
    /// Calls `read` once with the item's bytes and returns what it returned.
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R;
}

impl Item for [u8] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl<const N: usize> Item for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Item for Vec<u8> {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self)
    }
}

impl Item for str {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

impl Item for String {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.as_bytes())
    }
}

impl<T: Item + ToOwned + ?Sized> Item for Cow<'_, T> {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        T::with_bytes(self, read)
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T: Item + ?Sized> Item for $pointer {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                T::with_bytes(self, read)
            }
        }
    )*};
}
pointers!(&T, &mut T, Box<T>, Rc<T>);
// Some of the smallest processors have no atomic pointers.
#[cfg(target_has_atomic = "ptr")]
pointers!(alloc::sync::Arc<T>);

macro_rules! integers {
    ($($integer:ty as $wide:ty),*) => {$(
        impl Item for $integer {
            #[inline]
            fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
                // `usize` and `isize` widen to what they are on the largest machines; the others are themselves.
                #[allow(clippy::cast_lossless, trivial_numeric_casts, reason = "one macro for all widths")]
                read(&(*self as $wide).to_le_bytes())
            }
        }
    )*};
}
integers!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, u128 as u128, usize as u64);
integers!(i8 as i8, i16 as i16, i32 as i32, i64 as i64, i128 as i128, isize as i64);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Item + ?Sized>(item: &T) -> Vec<u8> {
        item.with_bytes(<[u8]>::to_vec)
    }

    #[test]
    fn text_and_bytes_are_themselves() {
        let expected = b"koel";
        assert_eq!(bytes("koel"), expected);
        assert_eq!(bytes(&"koel"), expected);
        assert_eq!(bytes(&String::from("koel")), expected);
        assert_eq!(bytes(&Cow::Borrowed("koel")), expected);
        assert_eq!(bytes(b"koel"), expected);
        assert_eq!(bytes(&b"koel"[..]), expected);
        assert_eq!(bytes(&b"koel".to_vec()), expected);
        assert_eq!(bytes(&Box::<str>::from("koel")), expected);
        assert_eq!(bytes(&alloc::sync::Arc::<[u8]>::from(&b"koel"[..])), expected);
        assert!(bytes("").is_empty());
    }

    #[test]
    fn integers_are_little_endian() {
        assert_eq!(bytes(&0x0102_u16), [2, 1]);
        assert_eq!(bytes(&-2_i32), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&1_u128).len(), 16);
        assert_eq!(bytes(&1_usize), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&-1_isize), [0xff; 8]);
        assert_eq!(bytes(&&mut 7_u8), [7]);
    }
}
