//! Views: snapshots queried in place. Opening one validates what leads to the tables: the header, the length and, of a filter that
//! grows, the lists of shards. [`verify`](FilterView::verify) validates the tables.

use super::{
    SnapshotError,
    format::{Fixed, Header},
    read::{Reading, Slice, header_too_short, too_long, too_short, xxh3},
    verify::{verified_copy, verify},
};
use crate::{
    backing::SnapshotShards,
    bits::{index, wide},
    elastic::{Elastic, ElasticFilter, ElasticParams},
    filter::{CuckooFilter, FilterView, RawFilter},
    hash::{Hasher, HasherId, Xxh3},
    storage::Snapshot,
};

impl<D: AsRef<[u8]>> FilterView<D> {
    /// Opens a snapshot to be queried in place. Takes constant time and copies nothing.
    ///
    /// Validates the header, and that the data is exactly as long as the header says; [`verify`](Self::verify) validates the
    /// rest. See [`FilterView`] for what an unverified view guarantees. The bytes need no alignment.
    ///
    /// # Errors
    /// If the data is not a valid snapshot; the error says what is wrong and at which offset. If other bytes follow the snapshot:
    /// then use [`over_prefix`](Self::over_prefix). If the filter's hasher is not [`Xxh3`]: then use
    /// [`over_with`](Self::over_with).
    ///
    /// # Example
    /// A filter embedded in the program:
    /// ```
    /// use koel::FilterView;
    /// # const BYTES: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/packed_f13_any.koel"));
    /// # /*
    /// const BYTES: &[u8] = include_bytes!("items.koel");
    /// # */
    /// let items = FilterView::over(BYTES)?;
    /// assert!(items.contains("item-0"));
    /// # Ok::<(), koel::SnapshotError>(())
    /// ```
    ///
    /// A memory-mapped file. Mapping is `unsafe` because no process may modify or truncate the file while it is mapped.
    /// [`save`](CuckooFilter::save) and the command `koel` never do that: they replace the file, and existing maps keep the old
    /// one. [`load`](CuckooFilter::load) is the safe alternative.
    /// ```no_run
    /// use koel::FilterView;
    /// use memmap2::Mmap;
    ///
    /// let file = std::fs::File::open("seen.koel")?;
    /// // SAFETY: no process modifies the files in this folder; they are only replaced.
    /// let seen: FilterView<Mmap> = FilterView::over(unsafe { Mmap::map(&file)? })?;
    /// println!("{}", seen.contains("alice"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn over(data: D) -> Result<Self, SnapshotError> {
        Self::over_with(data, xxh3)
    }

    /// Opens the snapshot at the start of the data, and returns it with its length, the offset of the first byte behind it. For
    /// snapshots that are stored back to back in a buffer.
    ///
    /// # Errors
    /// As [`over`](Self::over), except that other bytes may follow the snapshot.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let empty = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build()?;
    /// let buffer = [empty.to_bytes(), empty.to_bytes()].concat();
    /// let (first, end) = FilterView::over_prefix(&buffer[..])?;
    /// let (second, _) = FilterView::over_prefix(&buffer[end..])?;
    /// assert_eq!(first, second);
    /// assert_eq!(end as u64, first.params().snapshot_bytes());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn over_prefix(data: D) -> Result<(Self, usize), SnapshotError> {
        Self::over_prefix_with(data, xxh3)
    }
}

impl<D: AsRef<[u8]>, H: Hasher> FilterView<D, H> {
    /// [`over`](FilterView::over) for filters with other hashers. See [`CuckooFilter::from_bytes_with`] for `hasher`.
    ///
    /// # Errors
    /// As `over`.
    pub fn over_with(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let given = wide(data.as_ref().len());
        let (header, hasher, end) = open(data.as_ref(), hasher)?;
        if given > end { Err(too_long(given, end)) } else { Ok(view(data, &header, hasher, end)) }
    }

    /// [`over_prefix`](FilterView::over_prefix) for filters with other hashers.
    ///
    /// # Errors
    /// As `over_prefix`.
    pub fn over_prefix_with(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, usize), SnapshotError> {
        let (header, hasher, end) = open(data.as_ref(), hasher)?;
        Ok((view(data, &header, hasher, end), index(end)))
    }
}

/// Validates the header and the length of the snapshot at the start of the bytes. Returns the header, the hasher and the length.
fn open<H: Hasher>(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Fixed, H, u64), SnapshotError> {
    let header = Header::<Fixed>::decode(bytes.first_chunk().ok_or_else(|| header_too_short(bytes))?)?;
    let hasher = header.hasher(hasher)?;
    let (given, end) = (wide(bytes.len()), header.fields.params.snapshot_bytes());
    if given < end { Err(too_short(given, end)) } else { Ok((header.fields, hasher, end)) }
}

/// The view of a snapshot that ends at `end`. The trailer serves as the table's padding.
fn view<D: AsRef<[u8]>, H>(data: D, header: &Fixed, hasher: H, end: u64) -> FilterView<D, H> {
    CuckooFilter { core: RawFilter::from_parts(header.params, Snapshot::new(data, index(end)), header.len), hasher }
}

impl<D: AsRef<[u8]>, H> FilterView<D, H> {
    /// Validates everything that opening did not: the checksum of the table, that every bucket is valid, and that the number of
    /// items is the one in the header. Takes time proportional to the snapshot, and allocates nothing.
    ///
    /// # Errors
    /// If the snapshot is corrupt; the error says what is wrong and at which offset.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let mut bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
    /// FilterView::over(&bytes)?.verify()?;
    /// bytes[100] ^= 1; // a bit of the table
    /// assert!(FilterView::over(&bytes)?.verify().is_err());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        verify(&self.core)
    }

    /// Copies the view into a filter that owns its table and can be updated. The copy is [verified](Self::verify).
    ///
    /// # Errors
    /// As `verify`, and if the memory for the table cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
    /// let mut filter = FilterView::over(&bytes)?.to_filter()?;
    /// filter.insert("alice")?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<CuckooFilter<H>, SnapshotError>
    where
        H: Clone,
    {
        verified_copy(&self.core).map(|raw| CuckooFilter { core: raw, hasher: self.hasher().clone() })
    }

    /// The data that the view was made from.
    #[must_use]
    pub fn data(&self) -> &D {
        self.core.storage().data()
    }

    /// Converts the view back into its data.
    #[must_use]
    pub fn into_data(self) -> D {
        self.core.into_storage().into_data()
    }
}

/// A read-only growing filter that is queried in place, inside a snapshot held by `D`: a `&[u8]`, `Vec<u8>`, `Arc<[u8]>`, `Bytes`
/// or a memory-mapped file (`memmap2::Mmap`). What a [`FilterView`] is to a
/// [`CuckooFilter`].
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
    /// A memory-mapped file; [`FilterView::over`] says why mapping is `unsafe`.
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
    /// [`CuckooFilter::from_bytes_with`] for `hasher`.
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
        let end = storage.snapshot().end();
        Ok((Self { core: Elastic { storage, params }, hasher }, end))
    }

    /// Copies the view into a filter that owns its shards and can be updated. The copy is [verified](Self::verify).
    ///
    /// # Errors
    /// As `verify`, and if memory cannot be allocated.
    pub fn to_filter(&self) -> Result<ElasticFilter<H>, SnapshotError>
    where
        H: Clone,
    {
        ElasticFilter::from_bytes_with(self.snapshot(), |_| Some(self.hasher.clone()))
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
    /// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// let mut bytes = filter.to_bytes();
    /// ElasticView::over(&bytes)?.verify()?;
    /// let table = bytes.len() - 100;
    /// bytes[table] ^= 1;
    /// assert!(ElasticView::over(&bytes)?.verify().is_err());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        let mut reading = Reading::<_, ElasticParams>::start(Slice(self.snapshot()))?;
        for lane in 0..wide(self.core.params.lanes()) {
            let listing = reading.present(lane)?;
            reading.tables(&listing, |_| true)?;
        }
        reading.finish().map(|_| ())
    }

    /// The snapshot, without what follows it.
    pub(super) fn snapshot(&self) -> &[u8] {
        self.core.storage.snapshot().all()
    }

    /// The data that the view was made from.
    #[must_use]
    pub fn data(&self) -> &D {
        self.core.storage.snapshot().data()
    }

    /// Converts the view back into its data.
    #[must_use]
    pub fn into_data(self) -> D {
        self.core.storage.into_data()
    }
}
