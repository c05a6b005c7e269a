//! Snapshots that are queried in place.

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
    /// The filter in a snapshot, queried in place.
    ///
    /// Validates the header, and that the snapshot is complete and nothing follows it: see [`FilterView`] for what that means,
    /// and [`verify`](Self::verify) for the rest. Constant time; copies nothing. The bytes may begin at any address.
    ///
    /// # Errors
    /// What is wrong, and where. Among others if other bytes follow the snapshot ([`over_prefix`](Self::over_prefix) takes
    /// them), or if the filter's hasher is not [`Xxh3`](crate::Xxh3) ([`over_with`](Self::over_with) takes others).
    ///
    /// # Example
    /// A filter that is part of the program:
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
    /// A file that is mapped. Mapping is `unsafe`, for nobody else may change the file or cut it short as long as the view is
    /// there. [`save`](CuckooFilter::save) and the command `koel` never change a file: they put another in its place, and a map
    /// keeps the one it has. [`load`](CuckooFilter::load) is the safe way.
    /// ```no_run
    /// use koel::FilterView;
    /// use memmap2::Mmap;
    ///
    /// let file = std::fs::File::open("seen.koel")?;
    /// // SAFETY: nobody changes the files in this folder; they are replaced.
    /// let seen: FilterView<Mmap> = FilterView::over(unsafe { Mmap::map(&file)? })?;
    /// println!("{}", seen.contains("alice"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn over(data: D) -> Result<Self, SnapshotError> {
        Self::over_with(data, xxh3)
    }

    /// The filter in the snapshot that the bytes begin with, and where it ends: the offset of the first byte that is not part
    /// of it. For snapshots that follow each other in one buffer.
    ///
    /// # Errors
    /// As [`over`](Self::over), but other bytes may follow.
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
    /// [`over`](FilterView::over) for filters with other hashers, as [`CuckooFilter::from_bytes_with`] takes them.
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
    /// Verifies everything that opening did not: the table's checksum, that a koel filter could have written every bucket,
    /// and that as many items are in it as the header says. Takes time in proportion to the snapshot, and no memory.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn verify(&self) -> Result<(), SnapshotError> {
        verify(self.raw())
    }

    /// A filter with memory of its own, which can be changed. [Verified](Self::verify).
    ///
    /// # Errors
    /// What is wrong, and where; or if there is no memory for the table.
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

    /// What the view was made of.
    #[must_use]
    pub fn data(&self) -> &D {
        self.raw().storage().data()
    }

    /// Gives back what the view was made of.
    #[must_use]
    pub fn into_data(self) -> D {
        self.into_raw().0.into_storage().into_data()
    }
}

/// A view of a snapshot of so many bytes, whose header has been read. The trailer is as long as the padding that a table has
/// behind it.
fn view<D: AsRef<[u8]>, H>(data: D, header: &Header, hasher: H, end: u64) -> FilterView<D, H> {
    let storage = Snapshot::new(data, index(end) - HEADER_BYTES);
    CuckooFilter::from_raw(RawFilter::from_parts(header.params, storage, header.len), hasher)
}
