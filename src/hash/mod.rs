//! Hashers, and the traits for code that is generic over them.
//!
//! An [`Item`] has bytes, and a [`Hasher`] turns bytes into 64 bits. Both are the same on every machine, so a filter can be
//! stored and read elsewhere. [`StdHasher`] uses `core::hash::Hash` instead, which more types implement, but whose hashes may
//! differ in another process. [`HashItem`] is the bound that both satisfy, and all that a filter's operations need.
//!
//! [`Prehashed::of`](crate::Prehashed::of) hashes an item without a filter.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

pub(crate) mod hashers;
pub(crate) mod item;
pub(crate) mod items;

use core::{fmt, str::FromStr};

use crate::params::ParamError;
pub use crate::table::Uniform;
#[cfg(go_files)]
pub(crate) use hashers::MetroHash64;
#[cfg(feature = "redisbloom")]
pub(crate) use hashers::RedisBloomHash;
pub use {
    hashers::{AnyHasher, StdHasher},
    items::Items,
};
pub(crate) use {
    hashers::{Xxh3, split_mix},
    item::Item,
    items::{Hashed, Prehashed, assert_same_length, results_writer},
};

/// A portable hash function, from a seed and an item's bytes to 64 uniformly distributed bits.
///
/// A filter takes buckets and fingerprints from all 64 bits, so each bit must depend on every byte and on the seed. The same seed
/// and bytes must give the same hash on every machine and in every release, because snapshots store the [`id`](Self::id) of the
/// hasher, not the items. For hashers that cannot promise this, there is [`StdHasher`].
///
/// (`core::hash::Hasher` is a different trait: the state of a hash in progress.)
///
/// # Example
/// A custom hasher takes an id from 0x8000 up:
/// ```
/// use koel::{CuckooFilter, Xxh3, hash::{Hasher, HasherId, Uniform}};
///
/// /// For items whose case does not matter.
/// #[derive(Clone, Debug)]
/// struct IgnoreCase;
///
/// impl Hasher for IgnoreCase {
///     fn id(&self) -> HasherId {
///         const { HasherId::custom(0x8000) }
///     }
///     fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
///         Xxh3.hash(seed, &bytes.to_ascii_lowercase())
///     }
/// }
///
/// let mut names = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).hasher(IgnoreCase).build()?;
/// names.insert("Koel")?;
/// let bytes = names.to_bytes();
/// let read = CuckooFilter::from_bytes_with(&bytes, |id| (id == IgnoreCase.id()).then_some(IgnoreCase))?;
/// assert!(read.contains("KOEL"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a portable hasher",
    note = "a filter can be stored only if its hasher implements `koel::hash::Hasher`: the same hashes on every machine and in every \
            release. `koel::hash::StdHasher` cannot promise that",
    note = "to store the filter, use `koel::Xxh3`, the default, and implement `koel::Item` for the items; or implement \
            `koel::hash::Hasher` for a hash function with a specification"
)]
pub trait Hasher {
    /// Returns the id of this hash function, which a snapshot's header stores.
    fn id(&self) -> HasherId;

    /// Hashes `bytes` with `seed`. To hash an item for a filter, use [`Prehashed::of`](crate::Prehashed::of).
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform;
}

/// A hasher for items of type `T`: the bound of every operation that takes an item.
///
/// Every [`Hasher`] takes every [`Item`], [`StdHasher`] takes every type that implements `core::hash::Hash`, and both take
/// [`Prehashed`] keys. This trait is sealed: implement [`Hasher`] for a new hasher, and [`Item`] for a new type of items.
///
/// # Example
/// A function for filters with any hasher for strings:
/// ```
/// use koel::{CuckooFilter, hash::HashItem};
///
/// fn known<'a, H: HashItem<str>>(filter: &CuckooFilter<H>, names: &[&'a str]) -> Vec<&'a str> {
///     names.iter().copied().filter(|name| filter.contains(*name)).collect()
/// }
///
/// let filter = CuckooFilter::builder().false_positive_rate(0.001).build_from_items(&["alice"])?;
/// assert_eq!(known(&filter, &["alice", "bob"]), ["alice"]);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the hasher `{Self}` does not take items of type `{T}`",
    note = "a `koel::hash::Hasher`, such as `Xxh3`, takes every type that implements `koel::Item`",
    note = "a `BuildHasher`, such as `RandomState`, is wrapped: `koel::hash::StdHasher::new(RandomState::new())` takes every type that \
            implements `core::hash::Hash`"
)]
pub trait HashItem<T: ?Sized> {
    #[doc(hidden)]
    fn uniform(&self, seed: u64, item: &T) -> Uniform;
}

impl<H: Hasher, T: Item + ?Sized> HashItem<T> for H {
    #[inline]
    fn uniform(&self, seed: u64, item: &T) -> Uniform {
        item.with_bytes(|bytes| if T::IS_FIXED { self.hash(seed, bytes) } else { hash_bytes(self, seed, bytes) })
    }
}

/// Hashes bytes of any length. A hash function is hundreds of bytes of code, unless the compiler knows the length.
#[inline(never)]
pub(crate) fn hash_bytes(hasher: &impl Hasher, seed: u64, bytes: &[u8]) -> Uniform {
    hasher.hash(seed, bytes)
}

impl<H> HashItem<Prehashed> for H {
    #[inline(always)]
    fn uniform(&self, _seed: u64, key: &Prehashed) -> Uniform {
        Uniform::of_prehashed(key.0)
    }
}

/// A hasher that is fully determined by its id. Deserializing a filter requires such a hasher.
///
/// For a hasher that needs more than its id, such as a key, store the snapshot's bytes and pass the hasher to
/// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with).
///
/// # Example
/// For the hasher `IgnoreCase` of the example at [`Hasher`]:
/// ```
/// # use koel::hash::{FromHasherId, Hasher, HasherId, Uniform};
/// # struct IgnoreCase;
/// # impl Hasher for IgnoreCase {
/// #     fn id(&self) -> HasherId { const { HasherId::custom(0x8000) } }
/// #     fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform { koel::Xxh3.hash(seed, &bytes.to_ascii_lowercase()) }
/// # }
/// impl FromHasherId for IgnoreCase {
///     fn from_hasher_id(id: HasherId) -> Option<Self> {
///         (id == IgnoreCase.id()).then_some(IgnoreCase)
///     }
/// }
/// ```
#[cfg(feature = "serde")]
pub trait FromHasherId: Hasher + Sized {
    /// Returns the hasher with this id, or `None` if this type has none. A hasher with another id is refused.
    fn from_hasher_id(id: HasherId) -> Option<Self>;
}

/// The id of a hasher, a number in a snapshot's header. Numbers below 0x8000 are reserved for this crate; custom hashers take one
/// from 0x8000 up.
///
/// In text, an id is the hasher's name, or `0x` and four digits if it has none.
///
/// # Example
/// ```
/// use koel::{Xxh3, hash::{AnyHasher, Hasher, HasherId}};
/// assert_eq!("xxh3".parse(), Ok(Xxh3.id()));
/// assert_eq!("0x8abc".parse(), Ok(HasherId::custom(0x8abc)));
/// assert_eq!(HasherId::custom(0x8abc).to_string(), "0x8abc");
/// assert!("0x0004".parse::<HasherId>().is_err()); // reserved
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HasherId(u16);

impl HasherId {
    /// The id of [`Xxh3`].
    pub const XXH3: Self = Self(1);
    /// The id of `MetroHash64`, also in builds without that hasher.
    pub const METRO_HASH_64: Self = Self(2);
    /// The id of `RedisBloomHash`, also in builds without that hasher.
    pub const REDIS_BLOOM: Self = Self(3);

    const NAMES: [(Self, &str); 3] =
        [(Self::XXH3, "xxh3"), (Self::METRO_HASH_64, "metrohash64"), (Self::REDIS_BLOOM, "redisbloom")];

    const FIRST_CUSTOM: u16 = 0x8000;

    /// Returns the id of a custom hasher.
    ///
    /// # Panics
    /// If `number` is below 0x8000. In a constant, this is a compile-time error.
    #[must_use]
    pub const fn custom(number: u16) -> Self {
        assert!(number >= Self::FIRST_CUSTOM, "ids below 0x8000 are koel's own");
        Self(number)
    }

    /// Returns the number in a snapshot's header.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// Returns the hasher's name, if it has one.
    pub(crate) fn name(self) -> Option<&'static str> {
        Self::NAMES.iter().find(|(id, _)| *id == self).map(|(_, name)| *name)
    }

    /// Returns what to do about a filter that was built with this hasher, and read with another.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Self::METRO_HASH_64 if !cfg!(go_files) => "read it with koel's feature metrohash, on a little-endian machine",
            Self::REDIS_BLOOM if !cfg!(feature = "redisbloom") => "read it with koel's feature redisbloom",
            Self::XXH3 => "read it with Xxh3, the default, or with AnyHasher::from_id",
            Self::METRO_HASH_64 => "read it with go::MetroHash64, or with AnyHasher::from_id",
            Self::REDIS_BLOOM => "read it with redisbloom::RedisBloomHash, or with AnyHasher::from_id",
            _ => "give that hasher to from_bytes_with, over_with, read_from_with or load_with",
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

/// Parses a name, or `0x` and four lowercase digits from 0x8000 up. Each id has exactly one notation.
impl FromStr for HasherId {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let named = Self::NAMES.iter().find(|(_, name)| *name == text).map(|(id, _)| *id);
        let names = &["xxh3", "metrohash64", "redisbloom", "0x8000 to 0xffff in lower case"];
        named.or_else(|| custom(text)).ok_or(ParamError::Name { parameter: "hasher", names })
    }
}

fn custom(text: &str) -> Option<HasherId> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 4)?;
    // Rejects the sign that `from_str_radix` takes, and a second notation of the same number.
    digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(())?;
    let number = u16::from_str_radix(digits, 16).ok()?;
    (number >= HasherId::FIRST_CUSTOM).then_some(HasherId(number))
}
