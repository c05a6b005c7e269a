//! Views: snapshots queried in place.

use super::{
    SnapshotError,
    format::{HEADER_BYTES, Header},
    read::{open_prefix, too_long, xxh3},
    verify::{verified_copy, verify},
};
use crate::{
    bits::{index, wide},
    filter::{CuckooFilter, FilterView, RawFilter},
    hash::{Hasher, HasherId},
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
    /// then use [`over_prefix`](Self::over_prefix). If the filter's hasher is not [`Xxh3`](crate::Xxh3): then use
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
        let bytes = data.as_ref();
        let given = wide(bytes.len());
        let (header, hasher, expected) = open_prefix(bytes, hasher)?;
        if given > expected { Err(too_long(given, expected)) } else { Ok(view(data, &header, hasher, expected)) }
    }

    /// [`over_prefix`](FilterView::over_prefix) for filters with other hashers.
    ///
    /// # Errors
    /// As `over_prefix`.
    pub fn over_prefix_with(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, usize), SnapshotError> {
        let (header, hasher, end) = open_prefix(data.as_ref(), hasher)?;
        Ok((view(data, &header, hasher, end), index(end)))
    }
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
        verify(self.raw())
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
        verified_copy(self.raw()).map(|raw| CuckooFilter::from_raw(raw, self.hasher().clone()))
    }

    /// The data that the view was made from.
    #[must_use]
    pub fn data(&self) -> &D {
        self.raw().storage().data()
    }

    /// Converts the view back into its data.
    #[must_use]
    pub fn into_data(self) -> D {
        self.into_raw().0.into_storage().into_data()
    }
}

/// A view of a snapshot that ends at `end` and whose header is validated. The trailer serves as the table's padding.
fn view<D: AsRef<[u8]>, H>(data: D, header: &Header, hasher: H, end: u64) -> FilterView<D, H> {
    let storage = Snapshot::new(data, index(end) - HEADER_BYTES);
    CuckooFilter::from_raw(RawFilter::from_parts(header.params, storage, header.len), hasher)
}
