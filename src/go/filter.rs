//! A Go filter: a table and the victim.

#![allow(private_bounds, private_interfaces, reason = "the traits are sealed")]

use alloc::vec::Vec;
use core::fmt;
use std::{
    io::{self, Write as _},
    path::Path,
};

use super::{
    GoError,
    format::{self, Order, Victim},
};
use crate::{
    bits::wide,
    filter::{Core, CoreMut, CoreRemove, CuckooFilter, Filter, Full, Planned},
    hash::{Hasher, MetroHash64},
    kernel::{Dispatch, Hashes, answers},
    params::{Addressing, Params},
    snapshot::{has_length, replace_with},
    table::{Address, Uniform},
    text::boxed_io_error,
};

/// A filter of Go's linvon/cuckoo-filter: a [`CuckooFilter`] and a victim.
///
/// Go's library evicts at random and gives up after 500 steps. The fingerprint that is then left over, the *victim*, is kept
/// outside the table, and as long as there is one, Go refuses all insertions. This type continues to insert: the table often has
/// room that a random walk has not found, for the victim as well.
///
/// The operations are those of [`CuckooFilter`], with their guarantees. The victim is looked up, counted and removed as if it were
/// in the table, and stored there as soon as there is room. Convert with [`into_filter`](GoFilter::into_filter) to use the other methods.
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
pub type GoFilter = Filter<WithVictim, MetroHash64>;

/// A table and the victim: the core of a [`GoFilter`].
#[derive(Clone, PartialEq, Eq)]
pub struct WithVictim {
    pub(super) filter: CuckooFilter<MetroHash64>,
    pub(super) victim: Victim,
    /// Go's order of slots, for writing the file back.
    pub(super) order: Order,
}

impl WithVictim {
    fn is_victim(&self, hash: Uniform) -> bool {
        self.victim.is_used && {
            let (buckets, fingerprint) = Address::new(self.filter.core.params()).buckets(hash);
            self.victim.is(buckets, fingerprint)
        }
    }

    /// Stores the victim in the table, if there is one. Changes nothing if there is no room.
    fn settle(&mut self) -> Result<(), Full> {
        if let Some(hash) = self.victim.hash() {
            CoreMut::insert(&mut self.filter.core, Uniform(hash)).map_err(|full| self.with_victim(full))?;
            self.victim.is_used = false;
        }
        Ok(())
    }

    /// Adds the victim to the number of items in the error.
    fn with_victim(&self, full: Full) -> Full {
        full.with_items(self.len())
    }
}

/// The victim is looked up and counted as if it were in the table.
impl Core for WithVictim {
    const NAME: &'static str = "GoFilter";

    fn seed(&self) -> u64 {
        self.filter.core.seed()
    }

    fn addressing(&self) -> Addressing {
        self.filter.core.addressing()
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
            true
        });
    }

    fn len(&self) -> usize {
        self.filter.len() + usize::from(self.victim.is_used)
    }

    fn false_positive_rate(&self) -> f64 {
        self.filter.params().false_positive_rate_at(self.len() as f64 / self.filter.slots() as f64)
    }

    fn describe(&self, debug: &mut fmt::DebugStruct<'_, '_>) {
        debug.field("has_victim", &self.victim.is_used);
    }

    fn bytes_behind(&self) -> usize {
        self.filter.core.bytes_behind() + self.order.size_in_bytes()
    }
}

impl Planned for WithVictim {
    type Params = Params;

    fn params(&self) -> Params {
        self.filter.params()
    }

    fn dispatch(&self) -> Dispatch {
        self.filter.core.dispatch()
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.filter.core.set_dispatch(dispatch);
    }
}

/// If there is a victim, an insertion then tries to store it in the table, too.
impl CoreMut for WithVictim {
    type Refusal = Full;

    fn insert(&mut self, hash: Uniform) -> Result<(), Full> {
        // The item first: if there is room for only one of the two, nothing has to be undone.
        CoreMut::insert(&mut self.filter.core, hash).map_err(|full| self.with_victim(full))?;
        // Failure is fine: the victim then stays outside the table.
        _ = self.settle();
        Ok(())
    }
}

/// A copy in the table is removed in preference to the victim, which is then stored in the table if there is room, as in Go.
impl CoreRemove for WithVictim {
    fn remove(&mut self, hash: Uniform) -> bool {
        if self.filter.core.remove(hash) {
            // Failure is fine: the victim then stays outside the table.
            _ = self.settle();
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
    /// The filter without the victim, for its parameters, load and hasher. Its answers ignore the victim.
    #[must_use]
    pub fn filter(&self) -> &CuckooFilter<MetroHash64> {
        &self.core.filter
    }

    /// True if there is a victim.
    #[must_use]
    pub fn has_victim(&self) -> bool {
        self.core.victim.is_used
    }

    /// Converts to a [`CuckooFilter`], with the victim in the table.
    ///
    /// # Errors
    /// If the table has no room for the victim. Returns this filter, unchanged: remove an item first, or continue with the
    /// `GoFilter`.
    #[allow(clippy::result_large_err, reason = "the error returns the filter itself, which is hardly larger than the result")]
    pub fn into_filter(mut self) -> Result<CuckooFilter<MetroHash64>, Self> {
        match self.core.settle() {
            Ok(()) => Ok(self.core.filter),
            Err(_) => Err(self),
        }
    }

    /// Writes the filter as a file for Go's `Decode`.
    ///
    /// If the filter has not been changed, these are the bytes that it was decoded from. In buckets of a packed table that have
    /// been changed, fingerprints may be in another order, which Go's library ignores.
    ///
    /// # Errors
    /// If there are 2³² items or more.
    ///
    /// # Panics
    /// If the bytes would be more than the address space holds (on 32-bit targets). If the allocator has no memory for them, the
    /// program aborts, as with any vector.
    pub fn encode(&self) -> Result<Vec<u8>, GoError> {
        format::file(&self.core.filter, self.core.victim, &self.core.order)
    }

    /// Writes the bytes of [`encode`](Self::encode) to a file, which is created or replaced as by [`CuckooFilter::save`].
    ///
    /// # Errors
    /// The error of the operating system, with the path; or that of `encode`, with the kind
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput). The old file is unchanged, unless the message says otherwise.
    ///
    /// # Panics
    /// As `encode`.
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
            error => boxed_io_error(io::ErrorKind::InvalidInput, error),
        })?;
        replace_with(path.as_ref(), |mut file| file.write_all(&bytes), |file| has_length(file, wide(bytes.len())))
    }
}

/// Succeeds if Go's library can read such a filter. The hasher may also be `MetroHash64` as an [`AnyHasher`](crate::AnyHasher).
impl<H: Hasher> TryFrom<CuckooFilter<H>> for GoFilter {
    type Error = GoError;

    fn try_from(filter: CuckooFilter<H>) -> Result<Self, GoError> {
        let victim = Victim::default();
        format::header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)?;
        let filter = CuckooFilter { core: filter.core, hasher: MetroHash64 };
        Ok(Self { core: WithVictim { filter, victim, order: Order::default() }, hasher: MetroHash64 })
    }
}
