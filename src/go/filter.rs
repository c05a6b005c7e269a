//! A Go filter: a table and the victim.

use alloc::vec::Vec;
use std::{
    io::{self, Write as _},
    path::Path,
};

use super::{
    GoError,
    format::{self, Victim},
    order::Order,
};
use crate::{
    bits::wide,
    filter::{CuckooFilter, Full, Items, answers_in_order, by_own_methods, hashed, same_length},
    hash::{HashItem, Hasher, MetroHash64},
    kernel::{Hashes, Kernel},
    params::ParamError,
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
/// The methods have the guarantees of those of [`CuckooFilter`]. The victim is looked up, counted and removed as if it were in
/// the table. Convert with [`into_filter`](Self::into_filter) to use the other methods.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoFilter {
    pub(super) filter: CuckooFilter<MetroHash64>,
    pub(super) victim: Victim,
    /// Go's order of slots, for writing the file back.
    pub(super) order: Order,
}

impl GoFilter {
    /// Inserts an item, even if it is already present. If there is a victim, then tries to store it in the table, too.
    ///
    /// # Errors
    /// [`Full`] if no slot was found for the item. The filter is then unchanged, bit for bit.
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), Full>
    where
        MetroHash64: HashItem<T>,
    {
        self.insert_uniform(self.filter.uniform(item))
    }

    fn insert_uniform(&mut self, hash: Uniform) -> Result<(), Full> {
        // The item first: if there is room for only one of the two, nothing has to be undone.
        self.filter.insert_uniform(hash).map_err(|full| self.with_victim(full))?;
        // Failure is fine: the victim then stays outside the table.
        _ = self.settle();
        Ok(())
    }

    /// Inserts an item unless [`contains`](Self::contains) returns true for it. Returns true if it was inserted.
    ///
    /// # Errors
    /// [`Full`] if no slot was found for the item. The filter is then unchanged, bit for bit.
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, Full>
    where
        MetroHash64: HashItem<T>,
    {
        let hash = self.filter.uniform(item);
        if self.filter.raw().contains(hash) || self.is_victim(hash) {
            return Ok(false);
        }
        self.insert_uniform(hash).map(|()| true)
    }

    /// False if the item is not in the filter; true if it probably is.
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        MetroHash64: HashItem<T>,
    {
        let hash = self.filter.uniform(item);
        self.filter.raw().contains(hash) || self.is_victim(hash)
    }

    /// [`contains`](Self::contains) for each item; the answer for `items[i]` is written to `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_batch<I: Items<MetroHash64> + ?Sized>(&self, items: &I, found: &mut [bool]) {
        let hashes = hashed(self.filter.hasher(), self.filter.raw().params(), items);
        same_length(hashes.len(), found.len());
        self.each_answer(&hashes, answers_in_order(found));
    }

    /// The number of items for which [`contains`](Self::contains) returns true.
    #[must_use]
    pub fn count_members<I: Items<MetroHash64> + ?Sized>(&self, items: &I) -> usize {
        let mut count = 0;
        let hashes = hashed(self.filter.hasher(), self.filter.raw().params(), items);
        self.each_answer(&hashes, |answers| count += answers.count_ones() as usize);
        count
    }

    /// Looks up hashes in batches. Bit i of what `answer` is given is the answer for the i-th of a batch.
    fn each_answer(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        hashes.each_batch(0..hashes.len(), |batch| {
            self.filter.raw().contains_all(&batch, |found| {
                let is_found = |(place, &hash): (u32, &u64)| found >> place & 1 == 1 || self.is_victim(Uniform(hash));
                answer((0..).zip(batch).fold(0, |all, (place, hash)| all | u64::from(is_found((place, hash))) << place));
            });
            true
        });
    }

    /// The number of copies of an item. Fingerprint collisions can only make it too high.
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        MetroHash64: HashItem<T>,
    {
        let hash = self.filter.uniform(item);
        self.filter.raw().count(hash) + u32::from(self.is_victim(hash))
    }

    /// Removes one copy of an item. Returns true if a copy was found. Remove only items that were inserted: see
    /// [Removal](CuckooFilter#removal).
    ///
    /// A copy in the table is removed in preference to the victim, which is then stored in the table if there is room, as in Go.
    pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
    where
        MetroHash64: HashItem<T>,
    {
        let hash = self.filter.uniform(item);
        if self.filter.raw_mut().remove(hash) {
            // Failure is fine: the victim then stays outside the table.
            _ = self.settle();
            return true;
        }
        let is_victim = self.is_victim(hash);
        self.victim.is_used &= !is_victim;
        is_victim
    }

    /// The hash of an item, for [`Prehashed`](crate::Prehashed).
    #[must_use]
    pub fn hash<T: ?Sized>(&self, item: &T) -> u64
    where
        MetroHash64: HashItem<T>,
    {
        self.filter.hash(item)
    }

    /// The number of items in the filter, counting the victim and duplicates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filter.len() + usize::from(self.victim.is_used)
    }

    /// True if the filter holds no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The filter without the victim, for its parameters, load and hasher. Its answers ignore the victim.
    #[must_use]
    pub fn filter(&self) -> &CuckooFilter<MetroHash64> {
        &self.filter
    }

    /// The expected false-positive rate ε at the current load, 0 to 1.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.filter.params().false_positive_rate_at(self.len() as f64 / self.filter.slots() as f64)
    }

    /// The memory used by the filter, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        self.filter.size_in_bytes() + size_of::<Self>() - size_of_val(&self.filter) + self.order.size_in_bytes()
    }

    /// True if there is a victim.
    #[must_use]
    pub fn has_victim(&self) -> bool {
        self.victim.is_used
    }

    /// [`CuckooFilter::set_kernel`].
    ///
    /// # Errors
    /// If the kernel is not available.
    pub fn set_kernel(&mut self, kernel: Kernel) -> Result<(), ParamError> {
        self.filter.set_kernel(kernel)
    }

    /// Converts to a [`CuckooFilter`], with the victim in the table.
    ///
    /// # Errors
    /// If the table has no room for the victim. Returns this filter, unchanged: remove an item first, or continue with the
    /// `GoFilter`.
    #[expect(clippy::result_large_err, reason = "the error returns the filter itself, which is hardly larger than the result")]
    pub fn into_filter(mut self) -> Result<CuckooFilter<MetroHash64>, Self> {
        match self.settle() {
            Ok(()) => Ok(self.filter),
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
        format::file(&self.filter, self.victim, &self.order)
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

    fn is_victim(&self, hash: Uniform) -> bool {
        self.victim.is_used && {
            let (buckets, fingerprint) = Address::new(&self.filter.params()).buckets(hash);
            self.victim.is(buckets, fingerprint)
        }
    }

    /// Stores the victim in the table, if there is one. Changes nothing if there is no room.
    fn settle(&mut self) -> Result<(), Full> {
        if let Some(hash) = self.victim.hash() {
            self.filter.insert_uniform(Uniform(hash)).map_err(|full| self.with_victim(full))?;
            self.victim.is_used = false;
        }
        Ok(())
    }

    /// Adds the victim to the number of items in the error.
    fn with_victim(&self, full: Full) -> Full {
        full.with_items(self.len())
    }
}

/// Succeeds if Go's library can read such a filter. The hasher may also be `MetroHash64` as an [`AnyHasher`](crate::AnyHasher).
impl<H: Hasher> TryFrom<CuckooFilter<H>> for GoFilter {
    type Error = GoError;

    fn try_from(filter: CuckooFilter<H>) -> Result<Self, GoError> {
        let victim = Victim::default();
        format::header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)?;
        let (raw, _) = filter.into_raw();
        Ok(Self { filter: CuckooFilter::from_raw(raw, MetroHash64), victim, order: Order::default() })
    }
}

by_own_methods!(GoFilter, MetroHash64);
