//! Deserialises numbers and strings without serde's own implementations, whose errors repeat the given string, however long, and
//! so could take more memory than the input.

use core::{
    fmt::{self, Display},
    marker::PhantomData,
};

use serde::de::{DeserializeSeed, Deserializer, Error, Expected, Visitor};

/// The longest string, in bytes, that an error message repeats.
const SHOWN: usize = 40;

/// The error for an unexpected string.
pub(super) fn unexpected<E: Error>(text: &str, expected: &dyn Expected) -> E {
    E::custom(format_args!("invalid type: {}, expected {expected}", Shown(text)))
}

/// A string as shown in error messages.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            ..=SHOWN => write!(f, "{:?}", self.0),
            bytes => write!(f, "a text of {bytes} bytes"),
        }
    }
}

/// Deserialises an integer of type `T`.
pub(super) struct Number<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<T> Number<T> {
    /// `what` is the name of the number in error messages.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, of: PhantomData }
    }
}

impl<'de, T: TryFrom<u64>> DeserializeSeed<'de> for Number<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        match size_of::<T>() {
            // These formats are self-describing. Asked for a number, they would repeat a string in their own error.
            _ if deserializer.is_human_readable() => deserializer.deserialize_any(self),
            1 => deserializer.deserialize_u8(self),
            2 => deserializer.deserialize_u16(self),
            _ => deserializer.deserialize_u64(self),
        }
    }
}

impl<T: TryFrom<u64>> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, a whole number of {} bits", self.what, 8 * size_of::<T>())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::custom(format_args!("{number} given, expected {}", &self as &dyn Expected)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::custom(format_args!("{number} given, expected {}", &self as &dyn Expected))),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Err(unexpected(text, &self))
    }
}

/// Deserialises a string and parses it; `None` from `parse` is an error.
pub(super) struct Text<F> {
    /// What is expected, for error messages.
    pub(super) what: &'static str,
    pub(super) parse: F,
}

impl<'de, T, F: FnOnce(&str) -> Option<T>> DeserializeSeed<'de> for Text<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let what = self.what;
        (self.parse)(text).ok_or_else(|| E::custom(format_args!("{} given, expected {what}", Shown(text))))
    }
}
