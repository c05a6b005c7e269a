//! A filter and what Go keeps beside its table.

use alloc::vec::Vec;
use std::{
    io::{self, Write as _},
    path::Path,
};

use super::{
    GoError,
    format::{self, Victim},
    order::Order,
    write,
};
use crate::{
    bits::wide,
    filter::{Contains, CuckooFilter, Filter, Full},
    hash::{HashItem, Hasher, MetroHash64},
    kernel::Kernel,
    params::ParamError,
    snapshot::replace,
    table::{Address, Uniform},
};

/// A filter of Go's linvon/cuckoo-filter: a [`CuckooFilter`], and the victim.
///
/// Go evicts at random, and gives up after 500 steps. The fingerprint that it then has in hand is the *victim*, which stays
/// outside the table. As long as there is one, Go refuses every insertion. Here insertions go on: the table often has room
/// that a random walk has not found, also for the victim.
///
/// What there is of [`CuckooFilter`]'s methods keeps its promises; only that the victim is looked up, counted and removed as if
/// it were in the table. [`into_filter`](Self::into_filter) has the rest.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, MetroHash64, go::GoFilter};
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
    /// What Go's order was, for the day when it is written again.
    pub(super) order: Order,
}

impl GoFilter {
    /// Stores an item, also if it is there already.
    ///
    /// If there is a victim, it is put into the table, too, as soon as there is room.
    ///
    /// # Errors
    /// [`Full`] if there is no room. The filter is then bit for bit as it was.
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), Full>
    where
        MetroHash64: HashItem<T>,
    {
        self.insert_hash(self.filter.hash(item))
    }

    /// [`insert`](Self::insert) for a hash, as [`CuckooFilter::hash`] of [`filter`](Self::filter) gives it.
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), Full> {
        // The item before the victim: if there is room for one of them only, then nothing is lost and nothing to be undone.
        self.filter.insert_hash(hash).map_err(|full| self.with_victim(full))?;
        // It may stay where it is.
        _ = self.settle();
        Ok(())
    }

    /// Stores an item unless it seems to be there. True if it was stored.
    ///
    /// # Errors
    /// [`Full`] if it is not there and there is no room. The filter is then bit for bit as it was.
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, Full>
    where
        MetroHash64: HashItem<T>,
    {
        let hash = self.filter.hash(item);
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.insert_hash(hash).map(|()| true)
    }

    /// False: the item is not in the filter. True: it probably is.
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        MetroHash64: HashItem<T>,
    {
        self.contains_hash(self.filter.hash(item))
    }

    /// [`contains`](Self::contains) for a hash.
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_hash(hash) || self.is_victim(hash)
    }

    /// [`contains`](Self::contains) for each item: the answer for `items[i]` goes to `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_batch<T>(&self, items: &[T], found: &mut [bool])
    where
        MetroHash64: HashItem<T>,
    {
        self.filter.contains_batch(items, found);
        if self.victim.is_used {
            for (item, found) in items.iter().zip(found).filter(|(_, found)| !**found) {
                *found = self.is_victim(self.filter.hash(item));
            }
        }
    }

    /// How many copies of an item are in the filter, or more by chance.
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        MetroHash64: HashItem<T>,
    {
        self.count_hash(self.filter.hash(item))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u32 {
        self.filter.count_hash(hash) + u32::from(self.is_victim(hash))
    }

    /// Removes one copy of an item; true if one was found. Remove only what was inserted: see [`CuckooFilter`].
    ///
    /// A copy in the table is removed before the victim, and the victim then put into the table if there is room, as Go does.
    pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
    where
        MetroHash64: HashItem<T>,
    {
        self.remove_hash(self.filter.hash(item))
    }

    /// [`remove`](Self::remove) for a hash.
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        if self.filter.remove_hash(hash) {
            // It may stay where it is.
            _ = self.settle();
            return true;
        }
        let is_victim = self.is_victim(hash);
        self.victim.is_used &= !is_victim;
        is_victim
    }

    /// Items in the filter, the victim and duplicates counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.filter.len() + usize::from(self.victim.is_used)
    }

    /// Is nothing in the filter?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The filter without the victim: for its parameters, its load, its hasher. Its answers are not complete.
    #[must_use]
    pub fn filter(&self) -> &CuckooFilter<MetroHash64> {
        &self.filter
    }

    /// Is there a victim?
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

    /// The filter, with the victim in its table.
    ///
    /// # Errors
    /// If there is a victim and the table has no room for it: gives this filter back, unchanged. Remove an item first, or go on
    /// with the `GoFilter`.
    #[expect(clippy::result_large_err, reason = "it is given back where it was, and hardly larger than the filter")]
    pub fn into_filter(mut self) -> Result<CuckooFilter<MetroHash64>, Self> {
        match self.settle() {
            Ok(()) => Ok(self.filter),
            Err(_) => Err(self),
        }
    }

    /// The filter as a file that Go's `Decode` reads.
    ///
    /// As long as nothing was changed, these are the bytes that were read. In a packed table Go keeps some fingerprints in
    /// an order that does not matter; a bucket that was changed since may have another one.
    ///
    /// # Errors
    /// Only if there are 2³² items or more.
    ///
    /// # Panics
    /// As every vector does if there is no memory for the bytes.
    pub fn encode(&self) -> Result<Vec<u8>, GoError> {
        write::file(&self.filter, self.victim, &self.order)
    }

    /// Writes the bytes of [`encode`](Self::encode) to a file, which it creates or replaces as [`CuckooFilter::save`] does.
    ///
    /// # Errors
    /// What the system says, with the path; or what `encode` says, as the kind
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput). The old file is as it was, unless the message says otherwise.
    ///
    /// # Panics
    /// As `encode` does.
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
        let bytes = self.encode().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        replace(path.as_ref(), |mut file| file.write_all(&bytes))
    }

    fn is_victim(&self, hash: u64) -> bool {
        self.victim.is_used && {
            let (buckets, fingerprint) = Address::new(&self.filter.params()).buckets(Uniform(hash));
            self.victim.is(buckets, fingerprint)
        }
    }

    /// Puts the victim into the table, if there is one. Nothing has changed if there is no room.
    fn settle(&mut self) -> Result<(), Full> {
        if let Some(hash) = self.victim.hash() {
            self.filter.insert_hash(hash).map_err(|full| self.with_victim(full))?;
            self.victim.is_used = false;
        }
        Ok(())
    }

    /// What to say of an item that has no room in the table, where the victim counts, too.
    fn with_victim(&self, full: Full) -> Full {
        full.with_items(self.len())
    }
}

/// If Go could have such a filter; its hasher is then `MetroHash64`, be it as [`AnyHasher`](crate::AnyHasher).
impl<H: Hasher> TryFrom<CuckooFilter<H>> for GoFilter {
    type Error = GoError;

    fn try_from(filter: CuckooFilter<H>) -> Result<Self, GoError> {
        let victim = Victim::default();
        format::header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)?;
        let (raw, _) = filter.into_raw();
        Ok(Self { filter: CuckooFilter::from_raw(raw, MetroHash64), victim, order: Order::default() })
    }
}

impl Filter for GoFilter {
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_hash(hash)
    }

    fn count_hash(&self, hash: u64) -> u32 {
        self.count_hash(hash)
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn false_positive_rate(&self) -> f64 {
        self.filter.params().false_positive_rate_at(self.len() as f64 / self.filter.slots() as f64)
    }

    fn size_in_bytes(&self) -> usize {
        self.filter.size_in_bytes() + size_of::<Self>() - size_of_val(&self.filter) + self.order.size_in_bytes()
    }
}

impl<T: ?Sized> Contains<T> for GoFilter
where
    MetroHash64: HashItem<T>,
{
    fn hash(&self, item: &T) -> u64 {
        self.filter.hash(item)
    }
}
