//! The numbers and names by which snapshots know a hasher.

use core::{fmt, str::FromStr};

use crate::params::{ParamError, Parameter};

/// The number of a hasher in a snapshot's header. Numbers below 0x8000 are reserved for this crate; a hasher of your own
/// takes one from 0x8000 up.
///
/// In text, an id is the hasher's name, or `0x` and four digits if it has none.
///
/// # Example
/// ```
/// use koel::{AnyHasher, Hasher, HasherId, Xxh3};
/// assert_eq!("xxh3".parse(), Ok(Xxh3.id()));
/// assert_eq!("0x8abc".parse(), Ok(HasherId::custom(0x8abc)));
/// assert_eq!(HasherId::custom(0x8abc).to_string(), "0x8abc");
/// assert!("0x0004".parse::<HasherId>().is_err()); // reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HasherId(u16);

impl HasherId {
    /// [`Xxh3`](crate::Xxh3).
    pub const XXH3: Self = Self(1);
    /// `MetroHash64`, also in builds without it.
    pub const METRO_HASH_64: Self = Self(2);
    /// `RedisBloomHash`, also in builds without it.
    pub const REDIS_BLOOM: Self = Self(3);

    const NAMES: [(Self, &str); 3] =
        [(Self::XXH3, "xxh3"), (Self::METRO_HASH_64, "metrohash64"), (Self::REDIS_BLOOM, "redisbloom")];

    const FIRST_CUSTOM: u16 = 0x8000;

    /// The id of a hasher of your own.
    ///
    /// # Panics
    /// If `number` is below 0x8000. In a constant, this is a compile-time error.
    #[must_use]
    pub const fn custom(number: u16) -> Self {
        assert!(number >= Self::FIRST_CUSTOM, "ids below 0x8000 are koel's own");
        Self(number)
    }

    /// The number in a snapshot's header.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// Its name, if it has one.
    pub(crate) fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(id, _)| *id == self).map(|(_, name)| *name)
    }

    /// What to do about a hasher of this crate that this build lacks.
    pub(crate) fn remedy_if_missing(self) -> Option<&'static str> {
        match self {
            Self::METRO_HASH_64 if !cfg!(go_files) => Some("read it with koel's feature metrohash, on a little-endian machine"),
            Self::REDIS_BLOOM if !cfg!(feature = "redisbloom") => Some("read it with koel's feature redisbloom"),
            _ => None,
        }
    }
}

impl fmt::Display for HasherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#06x}", self.0),
        }
    }
}

/// A name, or `0x` and four lower-case digits from 0x8000 up: one way to write each id, and no other.
impl FromStr for HasherId {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let named = Self::NAMES.iter().find(|(_, name)| *name == text).map(|(id, _)| *id);
        named.or_else(|| custom(text)).ok_or_else(|| {
            let numbers = "the numbers 0x8000 to 0xffff, in lower case";
            ParamError::unknown_name(Parameter::Hasher, text, Self::NAMES.iter().map(|(_, name)| *name).chain([numbers]))
        })
    }
}

fn custom(text: &str) -> Option<HasherId> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 4)?;
    // Neither the sign that `from_str_radix` takes, nor a second way to write the same number.
    digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(())?;
    let number = u16::from_str_radix(digits, 16).ok()?;
    (number >= HasherId::FIRST_CUSTOM).then_some(HasherId(number))
}
