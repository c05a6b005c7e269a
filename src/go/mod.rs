//! Reads and writes files of Go's linvon/cuckoo-filter, version 0.4, in the format of its `Encode` and `Decode`.
//! [`guide::go`](crate::guide::go) describes the format.
//!
//! ```
//! use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
//!
//! // Go's library needs these three settings; you choose all others.
//! let mut filter = CuckooFilter::builder()
//!     .capacity(1000)
//!     .false_positive_rate(0.001)
//!     .addressing(Addressing::PowerOfTwo)
//!     .hasher(MetroHash64)
//!     .seed(1337)
//!     .build()?;
//! filter.insert("alice")?; // in Go: Contain([]byte("alice"))
//! let file = go::encode(&filter)?;
//!
//! let mut read = go::decode(&file)?;
//! assert!(read.contains("alice"));
//! read.insert("bob")?;
//! let file = read.encode()?;
//! # assert!(go::decode(&file)?.contains("bob"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - Lookups return what Go's library returns, false positives included. A file that is read and not changed is written back byte
//!   for byte.
//! - If Go's library finds no slot for an item, it keeps that one item outside the table: the *victim*. So does [`GoFilter`],
//!   until there is room for it.
//! - Safe for untrusted input: [`decode`] validates everything, and allocates memory only for bytes that exist.
//! - Items are hashed as the bytes of their [`Item`](crate::Item) implementation. Go's program must pass the same bytes to `Add`.

mod format;

use alloc::vec::Vec;
use core::{error::Error, fmt};
use std::{
    io::{self, Write as _},
    path::Path,
};

pub use crate::hash::hashers::MetroHash64;
use crate::{
    bits::wide,
    filter::{
        Content, Core, CoreMut, CuckooFilter, InsertError, InsertErrorKind, changes, lookups, planned, same_content, unsupported,
    },
    hash::{Hasher, HasherId, Uniform},
    kernel::{Dispatch, Hashes, answers},
    params::{Addressing, Params},
    snapshot::{boxed, check_length, replace_with},
    storage::OutOfMemory,
    table::Address,
};
use format::{Header, Order, Victim};
pub use format::{decode, encode};

/// A filter of Go's linvon/cuckoo-filter: a [`CuckooFilter`] and a victim.
///
/// Go's library evicts at random and gives up after 500 steps. It keeps the fingerprint that is left over, the *victim*, outside
/// the table, and refuses all insertions while there is one. This type continues to insert: the table often has room that a random
/// walk did not find, for the victim as well.
///
/// The operations are those of [`CuckooFilter`], with their guarantees. The victim is looked up, counted and removed as if it were
/// in the table, and moves there as soon as there is room. Convert with [`into_filter`](GoFilter::into_filter) to use the other
/// methods.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, go::{GoFilter, MetroHash64}};
/// let filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
/// let filter = filter.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337).build()?;
/// let mut go = GoFilter::try_from(filter)?;
/// go.insert("alice")?;
/// assert!(go.contains("alice"));
/// assert!(go.remove("alice") && go.is_empty());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct GoFilter {
    core: WithVictim,
    hasher: MetroHash64,
}

lookups! {
    impl [] GoFilter, MetroHash64;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?", open "# // Not a view."
}
changes! {
    impl [] GoFilter, MetroHash64;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?"
}
planned!(impl [] GoFilter, "GoFilter", Params);

/// Compares parameters and contents, as `==` of a [`CuckooFilter`] does. The victim is an item like any other.
impl PartialEq for GoFilter {
    fn eq(&self, other: &Self) -> bool {
        self.params() == other.params()
            && self.len() == other.len()
            && same_content(|salt| [self.core.content(salt), other.core.content(salt)])
    }
}

impl Eq for GoFilter {}

/// A table and its victim, the core of a [`GoFilter`].
#[derive(Clone)]
struct WithVictim {
    filter: CuckooFilter<MetroHash64>,
    victim: Victim,
    /// Go's slot order, used to write the file back byte for byte.
    order: Order,
}

impl WithVictim {
    fn is_victim(&self, hash: Uniform) -> bool {
        self.victim.is_used && {
            let (buckets, fingerprint) = Address::new(self.filter.core.params()).buckets(hash);
            self.victim.matches(buckets, fingerprint)
        }
    }

    /// Moves the victim, if there is one, into the table. Without room there, it stays where it is.
    fn store_victim(&mut self) {
        if let Some(hash) = self.victim.hash() {
            self.victim.is_used = !self.filter.core.insert_into_table(hash);
        }
    }

    /// Returns the error for a hash that finds no room in the table, where copies are not counted.
    #[cold]
    fn refusal(&self, hash: Uniform) -> InsertError {
        let (buckets, fingerprint) = Address::new(self.params()).buckets(hash);
        let room = self.params().bucket_size() * (1 + u32::from(buckets.0 != buckets.1));
        InsertError::of(match self.filter.core.occurrences(buckets, fingerprint) {
            copies if copies == room => InsertErrorKind::BucketsFull { copies },
            _ => InsertErrorKind::Full { distinct: self.len(), len: self.len() },
        })
    }
}

/// Looks up and counts the victim as if it were in the table.
impl Core for WithVictim {
    fn seed(&self) -> u64 {
        self.filter.core.seed()
    }

    fn contains(&self, hash: Uniform) -> bool {
        self.filter.core.contains(hash) || self.is_victim(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.filter.core.count(hash) + u32::from(self.is_victim(hash))
    }

    fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        if !self.victim.is_used {
            return self.filter.core.contains_all(hashes, answer);
        }
        hashes.each_batch(0..hashes.len(), |batch| {
            let victims = answers(batch, |hash| self.is_victim(hash));
            self.filter.core.contains_all(&batch, |found| answer(found | victims));
        });
    }

    fn len(&self) -> usize {
        self.filter.len() + usize::from(self.victim.is_used)
    }

    fn capacity(&self) -> usize {
        self.filter.capacity()
    }

    fn slots(&self) -> u64 {
        self.filter.core.slots()
    }

    /// The victim has no slot.
    fn table_len(&self) -> usize {
        self.filter.core.table_len()
    }

    /// An absent item may also match the victim, as if that had a slot.
    fn false_positive_rate(&self) -> f64 {
        self.filter.params().false_positive_rate_at(self.len() as f64 / self.slots() as f64)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        self.filter.core.summarize(f, bytes)?;
        f.write_str(if self.victim.is_used { ", and a victim" } else { "" })
    }

    fn external_bytes(&self) -> usize {
        self.filter.core.external_bytes() + self.order.size_in_bytes()
    }
}

impl WithVictim {
    fn content(&self, salt: u64) -> Content {
        let mut content = self.filter.core.content(salt);
        if let Some(hash) = self.victim.hash() {
            let ((first, second), fingerprint) = Address::new(self.params()).buckets(hash);
            content.add(first.min(second), fingerprint.wide(), 1);
        }
        content
    }

    fn distinct(&self) -> usize {
        self.filter.distinct() + usize::from(self.victim.hash().is_some_and(|hash| !self.filter.core.contains(hash)))
    }

    fn params(&self) -> &Params {
        self.filter.core.params()
    }

    fn dispatch(&self) -> Dispatch {
        self.filter.core.dispatch()
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.filter.core.set_dispatch(dispatch);
    }
}

/// Insertions, and removals from the table, also try to move the victim into the table.
impl CoreMut for WithVictim {
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        // The item goes first: if only one of the two has room, nothing needs to be undone. Go's files hold only the table, so an
        // item without room there is refused, even if it is a copy.
        if !self.filter.core.insert_into_table(hash) {
            return Err(self.refusal(hash));
        }
        self.store_victim();
        Ok(())
    }

    fn clear(&mut self) {
        self.filter.clear();
        (self.victim, self.order) = (Victim::default(), Order::default());
    }

    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.contains(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    /// Removes a copy from the table in preference to the victim, then moves the victim into the table if there is room, as Go
    /// does.
    fn remove(&mut self, hash: Uniform) -> bool {
        if self.filter.core.remove(hash) {
            self.store_victim();
            return true;
        }
        let is_victim = self.is_victim(hash);
        self.victim.is_used &= !is_victim;
        is_victim
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.filter.core.prefetch(hashes);
    }
}

impl GoFilter {
    /// Returns the filter without the victim, for its parameters, load and hasher. Its lookups ignore the victim.
    #[must_use]
    pub fn filter(&self) -> &CuckooFilter<MetroHash64> {
        &self.core.filter
    }

    /// Returns true if there is a victim.
    #[must_use]
    pub fn has_victim(&self) -> bool {
        self.core.victim.is_used
    }

    /// Converts to a [`CuckooFilter`], with the victim in the table.
    ///
    /// # Errors
    /// If the table has no room for the victim. The error is this filter, unchanged: remove an item first, or continue with the
    /// `GoFilter`.
    #[allow(clippy::result_large_err, reason = "the error returns the filter itself, which is hardly larger than the result")]
    pub fn into_filter(mut self) -> Result<CuckooFilter<MetroHash64>, Self> {
        self.core.store_victim();
        if self.has_victim() { Err(self) } else { Ok(self.core.filter) }
    }

    /// Writes the filter as a file for Go's `Decode`.
    ///
    /// An unchanged filter gives the bytes that it was decoded from. In packed buckets that have changed, fingerprints may be in
    /// another order, which makes no difference to Go's library.
    ///
    /// # Errors
    /// If there are 2³² items or more, or memory for the bytes cannot be allocated.
    pub fn encode(&self) -> Result<Vec<u8>, GoError> {
        format::file(&self.core.filter, self.core.victim, &self.core.order)
    }

    /// Writes the bytes of [`encode`](Self::encode) to a file, which is created or replaced as by [`CuckooFilter::save`].
    ///
    /// # Errors
    /// The error of the operating system, with the path. Or the error of `encode`, with the kind
    /// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if memory cannot be allocated, otherwise
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput). The old file is unchanged, unless the message says otherwise.
    ///
    /// # Example
    /// ```
    /// # let folder = std::env::temp_dir();
    /// # let path = folder.join(format!("koel-doc-{}.go", std::process::id()));
    /// # let file = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 8, 1, 0, 0, 0, 0, 0, 0, 0];
    /// # std::fs::write(&path, file)?;
    /// let mut filter = koel::go::decode(&std::fs::read(&path)?)?;
    /// filter.insert("alice")?;
    /// filter.save(&path)?;
    /// # assert!(koel::go::decode(&std::fs::read(&path)?)?.contains("alice"));
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let bytes = self.encode().map_err(|error| match error {
            GoError::OutOfMemory(_) => io::ErrorKind::OutOfMemory.into(),
            error => boxed(io::ErrorKind::InvalidInput, error).unwrap_or_else(|_| io::ErrorKind::InvalidInput.into()),
        })?;
        replace_with(path.as_ref(), |mut file| file.write_all(&bytes), |file| check_length(file, wide(bytes.len())))
    }
}

/// Succeeds if Go's library can read such a filter. The hasher may also be `MetroHash64` as an
/// [`AnyHasher`](crate::hash::AnyHasher).
impl<H: Hasher> TryFrom<CuckooFilter<H>> for GoFilter {
    type Error = GoError;

    fn try_from(filter: CuckooFilter<H>) -> Result<Self, GoError> {
        let Header { victim, .. } = format::header_of(&filter, Victim::default())?;
        let filter = CuckooFilter { core: filter.core, hasher: MetroHash64 };
        Ok(Self { core: WithVictim { filter, victim, order: Order::default() }, hasher: MetroHash64 })
    }
}

/// The reason that a filter cannot be written as a file for Go's library.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
/// let filter = CuckooFilter::builder().capacity(10).addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(7);
/// let error = go::encode(&filter.fingerprint_bits(9).build()?).unwrap_err();
/// assert!(matches!(error, go::GoError::Seed(7)));
/// assert_eq!(error.to_string(), "seed: 7 given, but Go's library always uses 1337; build the filter with that seed");
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum GoError {
    /// The number of buckets must be a power of two.
    Addressing(Addressing),
    /// The hasher must be `MetroHash64`.
    Hasher(HasherId),
    /// The seed must be 1337.
    Seed(u64),
    /// There are more than 2³¹ buckets, the largest power of two that fits into the four bytes of the file's field.
    Buckets(u64),
    /// There are 2³² items or more, which do not fit into the four bytes of the file's field.
    Items(u64),
    /// With this fingerprint length and bucket size, slots of Go's single table overlap, and items are lost.
    #[non_exhaustive]
    Aliasing {
        /// The length of a fingerprint in bits.
        fingerprint_bits: u32,
        /// The number of slots in a bucket.
        bucket_size: u32,
    },
    /// This many copies are counted beside the table, and Go's files hold only the table.
    Copies(u64),
    /// Memory for the file cannot be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for GoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addressing(given) => unsupported(f, "addressing", given, "Go's library uses power-of-two", "that addressing"),
            Self::Hasher(given) => unsupported(f, "hasher", given, "Go's library uses metrohash64", "that hasher"),
            Self::Seed(given) => unsupported(f, "seed", given, "Go's library always uses 1337", "that seed"),
            Self::Buckets(given) => unsupported(f, "buckets", given, "a Go file holds at most 2147483648", "a smaller capacity"),
            Self::Items(items) => {
                write!(f, "items: {items} in the filter, but a Go file holds at most {}; use several filters", u32::MAX)
            }
            Self::Aliasing { fingerprint_bits, bucket_size } => write!(
                f,
                "fingerprint bits: {fingerprint_bits} given with buckets of {bucket_size}, but in Go's single table such slots \
                 share bits; build the filter with a bucket size that is a multiple of 4, or with another fingerprint length"
            ),
            Self::Copies(copies) => write!(
                f,
                "copies: {copies} are counted beside the table, and a Go file has the table alone; store items once, with insert_unique"
            ),
            Self::OutOfMemory(_) => f.write_str("the file cannot be allocated"),
        }
    }
}

impl Error for GoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}
