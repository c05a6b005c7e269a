//! The hashers of this crate.

use core::{
    any::type_name,
    fmt,
    hash::{BuildHasher, Hash, Hasher as _},
    str::FromStr,
};

#[cfg(feature = "serde")]
use super::FromHasherId;
use super::{HashItem, Hasher, HasherId, Uniform, hash_bytes};
use crate::{bits::IS_SMALLEST, params::ParamError};

/// XXH3 with 64 bits, the default hasher. It is specified, fast on short items, and implemented in most languages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Xxh3;

impl Hasher for Xxh3 {
    fn id(&self) -> HasherId {
        HasherId::XXH3
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        Uniform(xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed))
    }
}

/// `MetroHash64`, the hash function of Go's linvon/cuckoo-filter, which seeds it with 1337.
///
/// Only on little-endian targets, because the crate that implements it reads words in the machine's byte order.
#[cfg(go_files)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetroHash64;

#[cfg(go_files)]
impl Hasher for MetroHash64 {
    fn id(&self) -> HasherId {
        HasherId::METRO_HASH_64
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        let mut hasher = metrohash::MetroHash64::with_seed(seed);
        hasher.write(bytes);
        Uniform(hasher.finish())
    }
}

/// `MurmurHash64A`, arranged so that a filter with RedisBloom's table, fingerprints and addressing stores items where RedisBloom
/// does. RedisBloom's seed is 0.
///
/// [`RedisBloomFilter::to_filter`](crate::redisbloom::RedisBloomFilter::to_filter) converts RedisBloom's filters to such filters.
/// Any other filter may use this hasher, too: it uses all 64 bits of RedisBloom's hash.
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

    /// Let h be the result of `MurmurHash64A`. RedisBloom takes the bucket from h mod 2³² and the fingerprint from h mod 255. A
    /// filter with power-of-two addressing takes the bucket from the upper half of the hash and the fingerprint from the lower
    /// half. So the upper half is h mod 2³², and the lower half is h mod (2³² − 1): 255 divides 2³² − 1, so the fingerprint is
    /// the same, and the lower half also depends on the bits of h that the upper half lacks.
    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        let hash = murmur2::murmur64a(bytes, seed);
        Uniform((hash << 32) | (hash % u64::from(u32::MAX)))
    }
}

/// One of this crate's hashers, chosen at run time, for snapshots of unknown origin and for tools.
///
/// Its text form is the name of the hasher's [id](HasherId).
///
/// # Example
/// ```
/// use koel::{CuckooFilter, hash::AnyHasher};
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

    const NAMES: &[&'static str] = &[
        "xxh3",
        #[cfg(go_files)]
        "metrohash64",
        #[cfg(feature = "redisbloom")]
        "redisbloom",
    ];

    /// Returns the hasher with this id, or `None` if this build has none.
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

/// Parses the names of the hashers in [`ALL`](AnyHasher::ALL), as they are displayed.
impl FromStr for AnyHasher {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<Self, ParamError> {
        let id = text.parse::<HasherId>().ok();
        id.and_then(Self::from_id).ok_or(ParamError::Name { parameter: "hasher", names: Self::NAMES })
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
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        match self {
            Self::Xxh3 if IS_SMALLEST => hash_bytes(&Xxh3, seed, bytes),
            Self::Xxh3 => Xxh3.hash(seed, bytes),
            #[cfg(go_files)]
            Self::MetroHash64 => MetroHash64.hash(seed, bytes),
            #[cfg(feature = "redisbloom")]
            Self::RedisBloomHash => RedisBloomHash.hash(seed, bytes),
        }
    }
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

/// A hasher for every type that implements [`core::hash::Hash`], with any [`BuildHasher`]: `RandomState` of the standard library,
/// or those of foldhash, ahash and rapidhash. **Only for filters that stay within one process.**
///
/// Use it for items of a foreign type that is no [`Item`](crate::Item), for structs with `#[derive(Hash)]`, and for keyed
/// hashers.
///
/// # Not portable
/// The hashes may differ
/// - between processes: `RandomState` and most others choose random keys;
/// - between versions of the crate that the hasher is from;
/// - between versions of Rust: how the standard library's types are fed to a hasher may change;
/// - between machines: integers are fed in the machine's byte order, `usize` in its width.
///
/// A stored filter would lose its items without an error. So a filter with a `StdHasher` cannot be stored: `StdHasher` does not
/// implement [`Hasher`], which snapshots, `save`, serde and Go's files require.
/// ```compile_fail,E0599
/// # use koel::{CuckooFilter, hash::StdHasher};
/// # use std::hash::RandomState;
/// # let hasher = StdHasher::new(RandomState::new());
/// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).hasher(hasher).build()?;
/// filter.to_bytes(); // error: `StdHasher<RandomState>` is not a portable hasher
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
/// Within a process there is no such limit: threads may share the filter, or use clones of it.
///
/// # Merging
/// Two hashers are equal if they hash a few fixed values alike. Two instances of `RandomState::new()` are not equal, because each
/// has keys of its own: give filters that are to be merged clones of one hasher.
///
/// # Quality
/// A filter needs 64 uniformly distributed bits. Many hashers that are made for hash tables end in one multiplication, after
/// which regular items still have regular hashes. With these, a table may refuse items far below its capacity, or have a higher
/// false-positive rate. `StdHasher` therefore mixes the result (the finalizer of `SplitMix64`). With this mix, foldhash, FNV and
/// a bare multiplication keep a filter's promises (`tests/std_hasher.rs`).
///
/// Mixing cannot separate items to which the hasher gives the same 64 bits. Do not use a hasher of 32 bits, or an identity
/// hasher, which keeps only the last integer that it is fed.
///
/// The hasher is first fed the filter's seed, by `write_u64`, then the item.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, hash::StdHasher};
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
/// Hashers of other crates:
/// ```text
/// StdHasher::new(foldhash::fast::RandomState::default())
/// StdHasher::new(ahash::RandomState::new())
/// StdHasher::new(rapidhash::fast::RandomState::new())
/// ```
#[derive(Clone, Copy, Default)]
pub struct StdHasher<B>(B);

impl<B> StdHasher<B> {
    /// Creates a hasher that uses `build_hasher`.
    pub const fn new(build_hasher: B) -> Self {
        Self(build_hasher)
    }

    /// Returns the `BuildHasher`.
    #[must_use]
    pub const fn inner(&self) -> &B {
        &self.0
    }

    /// Returns the `BuildHasher` by value.
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
    fn uniform(&self, seed: u64, item: &T) -> Uniform {
        let mut state = self.0.build_hasher();
        state.write_u64(seed);
        item.hash(&mut state);
        Uniform(mix(state.finish()))
    }
}

/// The finalizer of `SplitMix64`, a bijection. With one multiplication instead of two, multiples of 2³² under `FxHash` would have
/// four times the intended false-positive rate.
#[inline]
pub(crate) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// Returns the n-th number of the `SplitMix64` sequence (Steele, Lea and Flood, 2014).
pub(crate) fn split_mix(n: u64) -> u64 {
    mix(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Compares the hashes of a few fixed values, because a `BuildHasher` need not be comparable. Different keys pass for equal with
/// a probability of 2⁻¹²⁸.
impl<B: BuildHasher> PartialEq for StdHasher<B> {
    fn eq(&self, other: &Self) -> bool {
        // Has short and long input, because many hashers treat the two differently.
        const PROBE: (u64, &str) = (0x6b6f_656c, "the probe by which two hashers are compared: long enough for every code path");
        [0, u64::MAX].iter().all(|&seed| self.uniform(seed, &PROBE) == other.uniform(seed, &PROBE))
    }
}

impl<B: BuildHasher> Eq for StdHasher<B> {}

/// Shows the type of the `BuildHasher`, but not its keys, which may be secret.
impl<B> fmt::Debug for StdHasher<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StdHasher").field(&format_args!("{}", type_name::<B>())).finish()
    }
}
