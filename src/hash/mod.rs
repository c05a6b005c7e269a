//! From an item to 64 bits.
//!
//! [`Item`] says which bytes an item has, and a [`Hasher`] turns bytes into a hash: both are the same on every machine, so
//! a filter can be stored and read elsewhere. [`StdHasher`] uses `core::hash::Hash` instead, which is implemented for more
//! types but promises nothing beyond the process. [`HashItem`] is what the two have in common, and all that a filter's
//! operations need.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod item;

use core::{
    any::type_name,
    fmt,
    hash::{BuildHasher, Hash, Hasher as _},
    str::FromStr,
};

use crate::params::{Addressing, ParamError, Parameter};
pub use item::Item;

/// A portable hash function: from a seed and an item's bytes to 64 uniformly distributed bits.
///
/// A filter takes its buckets and fingerprints from all 64 bits, so each of them must depend on every byte and on the
/// seed. The same seed and bytes must give the same hash on every machine and in every release: snapshots store the
/// [`id`](Self::id) of the hasher instead of the items. For hashers that cannot promise that, there is
/// [`StdHasher`].
///
/// (`core::hash::Hasher` is another trait: the state of a hash in progress.)
///
/// # Example
/// A hasher of your own takes an id from 0x8000 up:
/// ```
/// use koel::{CuckooFilter, Hasher, HasherId, Xxh3};
///
/// /// For items whose case does not matter.
/// #[derive(Clone, Debug)]
/// struct IgnoreCase;
///
/// impl Hasher for IgnoreCase {
///     fn id(&self) -> HasherId {
///         const { HasherId::custom(0x8000) }
///     }
///     fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
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
    note = "a filter can be stored only if its hasher implements `koel::Hasher`: the same hashes on every machine and in every \
            release. `koel::StdHasher` cannot promise that",
    note = "to store the filter, use `koel::Xxh3`, the default, and implement `koel::Item` for the items; or implement \
            `koel::Hasher` for a hash function with a specification"
)]
pub trait Hasher {
    /// The number of this hash function in a snapshot's header.
    fn id(&self) -> HasherId;

    /// The hash of `bytes` under `seed`.
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64;
}

/// A hasher that takes items of type `T`: the bound of every operation that takes an item.
///
/// Every [`Hasher`] takes every [`Item`], and [`StdHasher`] takes every type that implements
/// `core::hash::Hash`. All take keys that are hashed already, as [`Prehashed`](crate::Prehashed). To write a hasher, implement [`Hasher`]; to add a type of items, implement [`Item`].
///
/// # Example
/// A function for filters with any hasher, as long as it takes strings:
/// ```
/// use koel::{HashItem, Xxh3};
///
/// fn shard(hasher: &impl HashItem<str>, name: &str) -> u64 {
///     hasher.hash_item(0, name) % 16
/// }
///
/// assert_eq!(shard(&Xxh3, "alice"), shard(&Xxh3, "alice"));
/// ```
#[diagnostic::on_unimplemented(
    message = "the hasher `{Self}` does not take items of type `{T}`",
    note = "a `koel::Hasher`, such as `Xxh3`, takes every type that implements `koel::Item`",
    note = "`koel::StdHasher` takes every type that implements `core::hash::Hash`"
)]
pub trait HashItem<T: ?Sized> {
    /// The hash of `item` under `seed`: 64 uniformly distributed bits.
    fn hash_item(&self, seed: u64, item: &T) -> u64;

    /// The same, in a filter with this addressing, on which only the mixing of [`Prehashed`](crate::Prehashed) keys depends.
    #[doc(hidden)]
    #[inline(always)]
    fn place_item(&self, seed: u64, _addressing: Addressing, item: &T) -> u64 {
        self.hash_item(seed, item)
    }
}

impl<H: Hasher, T: Item + ?Sized> HashItem<T> for H {
    #[inline]
    fn hash_item(&self, seed: u64, item: &T) -> u64 {
        item.with_bytes(|bytes| self.hash(seed, bytes))
    }
}

/// A hasher that its id alone determines. A filter can be deserialised if its hasher is one.
///
/// For a hasher that needs more, such as a key, store the snapshot's bytes and pass the hasher to
/// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with).
///
/// # Example
/// For the hasher `IgnoreCase` of the example at [`Hasher`]:
/// ```
/// # use koel::{FromHasherId, Hasher, HasherId};
/// # struct IgnoreCase;
/// # impl Hasher for IgnoreCase {
/// #     fn id(&self) -> HasherId { const { HasherId::custom(0x8000) } }
/// #     fn hash(&self, seed: u64, bytes: &[u8]) -> u64 { koel::Xxh3.hash(seed, &bytes.to_ascii_lowercase()) }
/// # }
/// impl FromHasherId for IgnoreCase {
///     fn from_hasher_id(id: HasherId) -> Option<Self> {
///         (id == IgnoreCase.id()).then_some(IgnoreCase)
///     }
/// }
/// ```
#[cfg(feature = "serde")]
pub trait FromHasherId: Hasher + Sized {
    /// The hasher with that id, or `None` if this type has none. A result with another id is refused.
    fn from_hasher_id(id: HasherId) -> Option<Self>;
}

#[cfg(feature = "serde")]
impl FromHasherId for Xxh3 {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == HasherId::XXH3).then_some(Self)
    }
}

#[cfg(all(feature = "serde", go_files))]
impl FromHasherId for MetroHash64 {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == HasherId::METRO_HASH_64).then_some(Self)
    }
}

#[cfg(all(feature = "serde", feature = "redisbloom"))]
impl FromHasherId for RedisBloomHash {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == HasherId::REDIS_BLOOM).then_some(Self)
    }
}

#[cfg(feature = "serde")]
impl FromHasherId for AnyHasher {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        Self::from_id(id)
    }
}

/// XXH3 with 64 bits: the default. Specified, fast on short items, and implemented in most languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xxh3;

impl Hasher for Xxh3 {
    fn id(&self) -> HasherId {
        HasherId::XXH3
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
    }
}

/// `MetroHash64`, the hash function of Go's linvon/cuckoo-filter, which seeds it with 1337.
///
/// Only on little-endian targets: the crate that implements it reads words in the machine's byte order.
#[cfg(go_files)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetroHash64;

#[cfg(go_files)]
impl Hasher for MetroHash64 {
    fn id(&self) -> HasherId {
        HasherId::METRO_HASH_64
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
        let mut hasher = metrohash::MetroHash64::with_seed(seed);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// `MurmurHash64A`, arranged so that a filter with the table, the fingerprints and the addressing of RedisBloom's has items where
/// RedisBloom has them. RedisBloom's seed is 0.
///
/// [`RedisBloomFilter::to_filter`](crate::redisbloom::RedisBloomFilter::to_filter) makes such filters from RedisBloom's. Any
/// other filter may have this hasher, too: it uses all 64 bits of RedisBloom's hash.
///
/// # Example
/// A filter that RedisBloom could have:
/// ```
/// use koel::{Addressing, CuckooFilter, TableKind, redisbloom::{RedisBloomFilter, RedisBloomHash}};
///
/// let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(8).bucket_size(2);
/// let builder = builder.addressing(Addressing::PowerOfTwo).hasher(RedisBloomHash);
/// let mut filter = builder.capacity(1000).build()?;
/// filter.insert("alice")?;
/// assert!(RedisBloomFilter::from_filter(&filter)?.contains("alice"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[cfg(feature = "redisbloom")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisBloomHash;

#[cfg(feature = "redisbloom")]
impl Hasher for RedisBloomHash {
    fn id(&self) -> HasherId {
        HasherId::REDIS_BLOOM
    }

    /// With h = `MurmurHash64A`, RedisBloom takes the bucket from h mod 2³² and the fingerprint from h mod 255. A filter with
    /// powers of two takes them from the upper half and from the lower one; 255 divides 2³² − 1, so the lower half keeps the
    /// fingerprint, and with it the bits of h that the upper half lacks.
    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
        let hash = murmur2::murmur64a(bytes, seed);
        (hash << 32) | (hash % u64::from(u32::MAX))
    }
}

/// One of this crate's hashers, chosen at run time: for snapshots of unknown origin, and for tools.
///
/// In text, it is the name of the hasher's [id](HasherId).
///
/// # Example
/// ```
/// use koel::{AnyHasher, CuckooFilter};
///
/// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// let read = CuckooFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id)?;
/// assert_eq!(read.hasher(), &AnyHasher::Xxh3);
/// assert_eq!("xxh3".parse(), Ok(AnyHasher::Xxh3));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyHasher {
    #[default]
    /// [`Xxh3`]
    Xxh3,
    /// [`MetroHash64`]
    #[cfg(go_files)]
    MetroHash64,
    /// [`RedisBloomHash`]
    #[cfg(feature = "redisbloom")]
    RedisBloomHash,
}

impl AnyHasher {
    /// The hashers of this build.
    pub const ALL: &'static [Self] = &[
        Self::Xxh3,
        #[cfg(go_files)]
        Self::MetroHash64,
        #[cfg(feature = "redisbloom")]
        Self::RedisBloomHash,
    ];

    /// The hasher with that id, or `None` if this build has none.
    #[must_use]
    pub fn from_id(id: HasherId) -> Option<Self> {
        Self::ALL.iter().copied().find(|hasher| hasher.id() == id)
    }
}

impl fmt::Display for AnyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// The names of [`ALL`](AnyHasher::ALL), as they are displayed.
impl FromStr for AnyHasher {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let id = text.parse::<HasherId>().ok();
        id.and_then(Self::from_id).ok_or_else(|| {
            let names = Self::ALL.iter().filter_map(|hasher| hasher.id().name());
            match id.and_then(HasherId::remedy_if_missing) {
                Some(remedy) => ParamError::not_in_this_build(Parameter::Hasher, text, names, remedy),
                None => ParamError::unknown_name(Parameter::Hasher, text, names),
            }
        })
    }
}

impl Hasher for AnyHasher {
    fn id(&self) -> HasherId {
        match self {
            Self::Xxh3 => Xxh3.id(),
            #[cfg(go_files)]
            Self::MetroHash64 => MetroHash64.id(),
            #[cfg(feature = "redisbloom")]
            Self::RedisBloomHash => RedisBloomHash.id(),
        }
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
        match self {
            Self::Xxh3 => Xxh3.hash(seed, bytes),
            #[cfg(go_files)]
            Self::MetroHash64 => MetroHash64.hash(seed, bytes),
            #[cfg(feature = "redisbloom")]
            Self::RedisBloomHash => RedisBloomHash.hash(seed, bytes),
        }
    }
}

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

/// Takes every type that implements [`core::hash::Hash`], hashed by any [`BuildHasher`]: `RandomState` of the standard
/// library, or those of foldhash, ahash and rapidhash. **Only for filters that stay within one process.**
///
/// For items whose type is not yours and is no [`Item`](crate::Item), for structs with `#[derive(Hash)]`, and for keyed
/// hashers.
///
/// # Not portable
/// The hashes may differ
/// - between processes: `RandomState` and most others choose random keys;
/// - between versions of the crate that the hasher is from;
/// - between versions of Rust: how the standard library's types are fed to a hasher may change;
/// - between machines: integers are fed in the machine's byte order, `usize` in its width.
///
/// A stored filter would lose its items with no error. So a filter with a `StdHasher` cannot be stored: `StdHasher` does not
/// implement [`Hasher`](crate::Hasher), which snapshots, `save`, serde and Go's files require.
/// ```compile_fail,E0599
/// # use koel::{CuckooFilter, StdHasher};
/// # use std::hash::RandomState;
/// # let hasher = StdHasher::new(RandomState::new());
/// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).hasher(hasher).build()?;
/// filter.to_bytes(); // error: unsatisfied: `StdHasher<RandomState>: koel::Hasher`
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
/// Within the process nothing limits it; threads may share the filter, or use clones of it.
///
/// # Merging
/// Two hashers are equal if they hash a few fixed values alike. Two of `RandomState::new()` are not, as each has keys of
/// its own: give filters that are to be merged clones of one hasher.
///
/// # Quality
/// A filter needs 64 uniformly distributed bits. Many hashers made for hash tables end in one multiplication, after which
/// regular items still have regular hashes; with these a table may refuse items far below its capacity, or have a higher
/// false-positive rate. `StdHasher` therefore mixes the result (the finaliser of `SplitMix64`). With that, foldhash, FNV and
/// a bare multiplication keep a filter's promises (`tests/std_hasher.rs`).
///
/// Mixing cannot separate items to which the hasher gives the same 64 bits. Do not use one of 32 bits, nor an identity
/// hasher, which keeps only the last integer that it is fed.
///
/// The filter's seed is fed to the hasher first, by `write_u64`, then the item.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, StdHasher};
/// use std::hash::RandomState;
///
/// #[derive(Hash)]
/// struct Visit { user: u64, page: &'static str }
///
/// let hasher = StdHasher::new(RandomState::new());
/// let mut seen = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).hasher(hasher).build()?;
/// seen.insert(&Visit { user: 7, page: "/" })?;
/// assert!(seen.contains(&Visit { user: 7, page: "/" }));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
/// Other hashers, of crates of these names:
/// ```text
/// StdHasher::new(foldhash::fast::RandomState::default())
/// StdHasher::new(ahash::RandomState::new())
/// StdHasher::new(rapidhash::fast::RandomState::new())
/// ```
#[derive(Clone, Copy, Default)]
pub struct StdHasher<B>(B);

impl<B> StdHasher<B> {
    /// A hasher that uses `build_hasher`.
    pub const fn new(build_hasher: B) -> Self {
        Self(build_hasher)
    }

    /// The `BuildHasher`.
    #[must_use]
    pub const fn inner(&self) -> &B {
        &self.0
    }

    /// The `BuildHasher`, by value.
    #[must_use]
    pub fn into_inner(self) -> B {
        self.0
    }
}

impl<B> From<B> for StdHasher<B> {
    fn from(build_hasher: B) -> Self {
        Self(build_hasher)
    }
}

impl<B: BuildHasher, T: Hash + ?Sized> HashItem<T> for StdHasher<B> {
    #[inline]
    fn hash_item(&self, seed: u64, item: &T) -> u64 {
        let mut state = self.0.build_hasher();
        state.write_u64(seed);
        item.hash(&mut state);
        mix(state.finish())
    }
}

/// The finaliser of `SplitMix64`, a bijection. With one multiplication instead of two, multiples of 2³² under `FxHash` have
/// four times the false-positive rate that they should have.
#[inline]
pub(crate) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// The n-th number of the `SplitMix64` sequence (Steele, Lea and Flood, 2014).
pub(crate) fn split_mix(n: u64) -> u64 {
    mix(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Compares the hashes of a few fixed values, as a `BuildHasher` need not be comparable. Different keys pass for equal with
/// a probability of 2⁻¹²⁸.
impl<B: BuildHasher> PartialEq for StdHasher<B> {
    fn eq(&self, other: &Self) -> bool {
        // Short and long input, as many hashers treat the two differently.
        const PROBE: (u64, &str) = (0x6b6f_656c, "the probe by which two hashers are compared: long enough for every code path");
        [0, u64::MAX].iter().all(|&seed| self.hash_item(seed, &PROBE) == other.hash_item(seed, &PROBE))
    }
}

impl<B: BuildHasher> Eq for StdHasher<B> {}

/// The type of the `BuildHasher`, and not its keys, which may be secret.
impl<B> fmt::Debug for StdHasher<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StdHasher").field(&format_args!("{}", type_name::<B>())).finish()
    }
}
