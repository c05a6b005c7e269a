//! Views: snapshots of growing filters, queried in place.

use super::{super::ElasticFilter, SnapshotShards, reading::Reading};
use crate::{
    bits::wide,
    hash::{Hasher, HasherId, Xxh3},
    snapshot::{Slice, SnapshotError, too_long, xxh3},
};

/// A read-only growing filter that is queried in place, inside a snapshot held by `D`: a `&[u8]`, `Vec<u8>`, `Arc<[u8]>`, `Bytes`
/// or a memory-mapped file (`memmap2::Mmap`). What a [`FilterView`](crate::FilterView) is to a
/// [`CuckooFilter`](crate::CuckooFilter).
///
/// A view has all methods of [`ElasticFilter`] that only read. [`over`](ElasticView::over) validates the header and the lists of
/// shards, and reads nothing of their tables: a file of gigabytes is open in a millisecond or so.
/// [`verify`](ElasticView::verify) validates the rest. Without it, corrupt bytes can give wrong answers, false negatives included,
/// but no bytes cause a read out of bounds.
///
/// [`to_filter`](ElasticView::to_filter) copies the view into a filter that can be updated.
///
/// # Panics
/// Methods that read the tables panic if `D::as_ref` returns fewer bytes than when the view was made. (It is called on every
/// access. The types above always return the same bytes.)
///
/// # Example
/// ```
/// use koel::{ElasticFilter, ElasticView};
/// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// filter.insert_iter(0..100_000u64)?;
///
/// let seen = ElasticView::over(filter.to_bytes())?;
/// assert!(seen.contains(&7u64) && seen.len() == 100_000);
/// seen.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub type ElasticView<D, H = Xxh3> = ElasticFilter<H, SnapshotShards<D>>;

impl<D: AsRef<[u8]>> ElasticView<D> {
    /// Opens a snapshot to be queried in place. Takes time proportional to the number of shards, and allocates a directory of them:
    /// at most twice the length of the snapshot, or 32 MiB; usually less than a hundredth of it.
    ///
    /// Validates the header, the lists of shards, and that the data is exactly as long as they say; [`verify`](Self::verify)
    /// validates the rest. The bytes need no alignment.
    ///
    /// # Errors
    /// If the data is not a valid snapshot of a growing filter; the error says what is wrong and at which offset. If other bytes
    /// follow the snapshot: then use [`over_prefix`](Self::over_prefix). If the filter's hasher is not [`Xxh3`]: then use
    /// [`over_with`](Self::over_with).
    ///
    /// # Example
    /// A memory-mapped file; [`FilterView::over`](crate::FilterView::over) says why mapping is `unsafe`.
    /// ```no_run
    /// use koel::ElasticView;
    /// use memmap2::Mmap;
    ///
    /// let file = std::fs::File::open("seen.koel")?;
    /// // SAFETY: no process modifies the files in this folder; they are only replaced.
    /// let seen: ElasticView<Mmap> = ElasticView::over(unsafe { Mmap::map(&file)? })?;
    /// println!("{}", seen.contains("alice"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over(data: D) -> Result<Self, SnapshotError> {
        Self::over_with(data, xxh3)
    }

    /// Opens the snapshot at the start of the data, and returns it with its length, the offset of the first byte behind it.
    ///
    /// # Errors
    /// As [`over`](Self::over), except that other bytes may follow the snapshot.
    pub fn over_prefix(data: D) -> Result<(Self, usize), SnapshotError> {
        Self::over_prefix_with(data, xxh3)
    }
}

impl<D: AsRef<[u8]>, H: Hasher> ElasticView<D, H> {
    /// [`over`](ElasticView::over) for filters with other hashers. See
    /// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `over`.
    pub fn over_with(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let given = data.as_ref().len();
        let (view, end) = Self::over_prefix_with(data, hasher)?;
        if given > end { Err(too_long(wide(given), wide(end))) } else { Ok(view) }
    }

    /// [`over_prefix`](ElasticView::over_prefix) for filters with other hashers.
    ///
    /// # Errors
    /// As `over_prefix`.
    pub fn over_prefix_with(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, usize), SnapshotError> {
        let (storage, params, hasher) = SnapshotShards::open(data, hasher)?;
        let end = storage.end();
        Ok((Self { storage, params, hasher }, end))
    }

    /// Copies the view into a filter that owns its shards and can be updated. The copy is [verified](Self::verify).
    ///
    /// # Errors
    /// As `verify`, and if memory cannot be allocated.
    pub fn to_filter(&self) -> Result<ElasticFilter<H>, SnapshotError>
    where
        H: Clone,
    {
        ElasticFilter::from_bytes_with(self.storage.bytes(), |_| Some(self.hasher.clone()))
    }
}

impl<D: AsRef<[u8]>, H> ElasticView<D, H> {
    /// Validates everything that opening did not: the checksum of each table, that every bucket is valid, and that each shard has
    /// as many items as the list says. Takes time proportional to the snapshot.
    ///
    /// # Errors
    /// If the snapshot is corrupt; the error says what is wrong and at which offset.
    ///
    /// # Example
    /// ```
    /// use koel::{ElasticFilter, ElasticView};
    /// let mut bytes = ElasticFilter::builder().false_positive_rate(0.001).build()?.to_bytes();
    /// ElasticView::over(&bytes)?.verify()?;
    /// let table = bytes.len() - 100;
    /// bytes[table] ^= 1;
    /// assert!(ElasticView::over(&bytes)?.verify().is_err());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        let mut reading = Reading::start(Slice(self.storage.bytes()))?;
        for lane in 0..wide(self.params.lanes()) {
            let listing = reading.present(lane)?;
            reading.tables(&listing, |_| true)?;
        }
        reading.finish().map(|_| ())
    }

    /// The snapshot, without what follows it.
    #[cfg(feature = "serde")]
    pub(crate) fn snapshot(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// The data that the view was made from.
    #[must_use]
    pub fn data(&self) -> &D {
        self.storage.data()
    }

    /// Converts the view back into its data.
    #[must_use]
    pub fn into_data(self) -> D {
        self.storage.into_data()
    }
}
