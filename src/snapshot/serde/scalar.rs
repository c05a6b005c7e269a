//! Single numbers and texts. Not by serde's own implementations: their errors repeat what they were given, however long it
//! is, and so would take more memory than the input.

use core::{
    fmt::{self, Display},
    marker::PhantomData,
};

use serde::de::{DeserializeSeed, Deserializer, Error, Expected, Visitor};

/// Longer texts are not repeated in errors.
const SHOWN: usize = 40;

/// A text was given where there should be something else.
pub(super) fn unexpected<E: Error>(text: &str, expected: &dyn Expected) -> E {
    E::custom(format_args!("invalid type: {}, expected {expected}", Shown(text)))
}

/// A text as errors show it.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            ..=SHOWN => write!(f, "{:?}", self.0),
            bytes => write!(f, "a text of {bytes} bytes"),
        }
    }
}

/// A whole number of the type `T`.
pub(super) struct Number<T> {
    what: &'static str,
    of: PhantomData<T>,
}

impl<T> Number<T> {
    /// For errors: `what` it is.
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, of: PhantomData }
    }
}

impl<'de, T: TryFrom<u64>> DeserializeSeed<'de> for Number<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        match size_of::<T>() {
            // Such formats know numbers from texts. Asked for a number, they would themselves repeat a text.
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

/// A text, and what is made of it: `None` if nothing can be.
pub(super) struct Text<F> {
    /// For errors: what it should be.
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
