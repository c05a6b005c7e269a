//! The way in for `core::hash::Hash` and `BuildHasher`.

use core::{
    any::type_name,
    fmt,
    hash::{BuildHasher, Hash, Hasher as _},
};

use super::HashItem;

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
/// A stored filter would lose its items with no error. So a filter with a `StdHasher` cannot be stored: `StdHasher` does
/// not implement [`Hasher`](crate::Hasher), which snapshots, `save`, serde and Go's files ask for.
/// ```compile_fail,E0277
/// # use koel::{CuckooFilter, StdHasher};
/// # use std::hash::RandomState;
/// # let hasher = StdHasher::new(RandomState::new());
/// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.001).hasher(hasher).build()?;
/// filter.to_bytes(); // error: `StdHasher<RandomState>` is not a portable hasher
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
