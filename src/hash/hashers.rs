//! The hashers, and the numbers by which a snapshot knows them.

use core::fmt;

/// The number by which a snapshot knows its hasher. Below 0x8000 they are this crate's; from there on they are the user's
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HasherId(u16);

impl HasherId {
    /// [`Xxh3`].
    pub const XXH3: Self = Self(1);
    /// `MetroHash64`, whether or not it was compiled in.
    pub const METRO_HASH_64: Self = Self(2);

    const FIRST_CUSTOM: u16 = 0x8000;

    /// The id of a hasher of one's own.
    ///
    /// # Panics
    /// If `number` is below 0x8000; in a constant, when it is compiled.
    #[must_use]
    pub const fn custom(number: u16) -> Self {
        assert!(number >= Self::FIRST_CUSTOM, "ids below 0x8000 are koel's own");
        Self(number)
    }

    /// The number, as it stands in a snapshot's header.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_number(number: u16) -> Self {
        Self(number)
    }
}

impl fmt::Display for HasherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::XXH3 => f.write_str("xxh3"),
            Self::METRO_HASH_64 => f.write_str("metrohash64"),
            Self(id) => write!(f, "hasher {id:#06x}"),
        }
    }
}

/// From bytes and a seed to 64 bits that are all alike: each of them unpredictable from the others.
///
/// A hasher must give the same answer on every machine and in every release; what it is asked for travels in snapshots
/// as its [`id`](Self::id). (Not to be confused with `core::hash::Hasher`, which is fed piece by piece.)
///
/// # Example
/// A hasher of one's own takes an id from 0x8000 on:
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
pub trait Hasher {
    /// The number that goes into a snapshot's header.
    fn id(&self) -> HasherId;

    /// The hash of `bytes` under `seed`.
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64;
}

/// A hasher that can be made from its id alone: what a filter's hasher must be for the filter to be deserialised.
///
/// For a hasher that needs more than that, such as a key, keep the snapshot's bytes, and give the hasher to
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
    /// The hasher of that id, or `None` if it is not one of these. A hasher with another id is refused, too.
    fn from_hasher_id(id: HasherId) -> Option<Self>;
}

#[cfg(feature = "serde")]
impl FromHasherId for Xxh3 {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == HasherId::XXH3).then_some(Self)
    }
}

#[cfg(all(feature = "serde", feature = "metrohash", target_endian = "little"))]
impl FromHasherId for MetroHash64 {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        (id == HasherId::METRO_HASH_64).then_some(Self)
    }
}

#[cfg(feature = "serde")]
impl FromHasherId for AnyHasher {
    fn from_hasher_id(id: HasherId) -> Option<Self> {
        Self::from_id(id)
    }
}

/// XXH3, 64 bits: the default. Specified, fast on short items, and there is one for every language.
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

/// `MetroHash64`, as Go's linvon/cuckoo-filter computes it (there with the seed 1337).
///
/// Only on little-endian targets: the crate behind it reads words in the machine's own order.
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
        use core::hash::Hasher as _;
        let mut hasher = metrohash::MetroHash64::with_seed(seed);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// Any of this crate's hashers, chosen at run time: for snapshots of unknown origin, and for tools.
///
/// # Example
/// ```
/// use koel::{AnyHasher, CuckooFilter};
///
/// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// let read = CuckooFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id)?;
/// assert_eq!(read.hasher(), &AnyHasher::Xxh3);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyHasher {
    /// [`Xxh3`]
    Xxh3,
    /// [`MetroHash64`]
    #[cfg(go_files)]
    MetroHash64,
}

impl AnyHasher {
    /// The hasher of that id, or `None` if there is none in this build.
    #[must_use]
    pub fn from_id(id: HasherId) -> Option<Self> {
        match id {
            HasherId::XXH3 => Some(Self::Xxh3),
            #[cfg(go_files)]
            HasherId::METRO_HASH_64 => Some(Self::MetroHash64),
            _ => None,
        }
    }
}

impl Hasher for AnyHasher {
    fn id(&self) -> HasherId {
        match self {
            Self::Xxh3 => Xxh3.id(),
            #[cfg(go_files)]
            Self::MetroHash64 => MetroHash64.id(),
        }
    }

    #[inline]
    fn hash(&self, seed: u64, bytes: &[u8]) -> u64 {
        match self {
            Self::Xxh3 => Xxh3.hash(seed, bytes),
            #[cfg(go_files)]
            Self::MetroHash64 => MetroHash64.hash(seed, bytes),
        }
    }
}
