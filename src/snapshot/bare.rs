//! Bare tables: the table of a fixed filter, and the first half of the checksum that would follow it in a snapshot. The caller
//! keeps the contents of the header, once for many tables.

use alloc::vec::Vec;
use core::ops::Deref;

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Fixed, Header, HeaderBytes, TRAILER_BYTES, checksum},
    read::too_short,
    verify::{ExpectedChecksum, TableContext},
};
use crate::{
    bits::{PADDING, low_half, wide},
    filter::{CuckooFilter, FilterView, RawFilter},
    hash::{Hasher, HasherId, Xxh3},
    params::Params,
    storage::Snapshot,
};

/// The length of a bare table's checksum.
const CHECKSUM_BYTES: usize = 4;

impl Params {
    /// Returns the length in bytes of a bare table of a filter with these parameters: the table and 4 bytes of checksum
    /// (docs/FORMAT.md, "Bare tables"). It does not depend on the number of items.
    ///
    /// # Example
    /// ```
    /// let params = koel::CuckooFilter::builder().capacity(100).false_positive_rate(1.0 / 256.0).params()?;
    /// assert_eq!(params.bare_table_bytes(), 164);
    /// assert_eq!(params.bare_table_bytes(), params.table_bytes() + 4);
    /// # Ok::<(), koel::ParamError>(())
    /// ```
    #[must_use]
    pub fn bare_table_bytes(&self) -> usize {
        self.table_bytes() + CHECKSUM_BYTES
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// Returns the table and 4 bytes of checksum, without the header of a snapshot: [`Params::bare_table_bytes`] bytes. They are
    /// meant for programs that keep many small filters with the same parameters (see the [guide](crate::guide::small_filters)).
    /// Takes time proportional to the table.
    ///
    /// [`FilterView::over_table`] opens them. It also needs the contents of the header, which are not in these bytes: the
    /// [parameters](Self::params), the [number of items in the table](Self::table_len), and the hasher. Extra copies, which are
    /// counted beside the table, are left out; a [snapshot](Self::to_bytes) has them.
    ///
    /// # Panics
    /// If the bytes would not fit into the address space (on 32-bit targets). If the allocator has no memory for them, the program
    /// aborts, as with any vector. [`write_table`](Self::write_table) needs no memory.
    #[must_use]
    pub fn to_table(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.core.params().bare_table_bytes());
        bytes.extend_from_slice(self.core.table());
        bytes.extend_from_slice(&self.table_checksum());
        bytes
    }

    /// Writes the bytes of [`to_table`](Self::to_table) without copying them.
    ///
    /// # Errors
    /// The writer's error.
    ///
    /// # Example
    /// Many tables in a row, all filled in the same filter:
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let mut filter = CuckooFilter::builder().capacity(102).false_positive_rate(0.01).build()?;
    /// let (params, mut file) = (filter.params(), Vec::new());
    /// for block in 0..50u64 {
    ///     filter.clear();
    ///     filter.insert_iter(block * 100..block * 100 + 100)?;
    ///     filter.write_table(&mut file)?;
    /// }
    /// file.extend([0; 4]); // lookups in the last table load up to four bytes behind its checksum
    /// let last = FilterView::over_table(&file[49 * params.bare_table_bytes()..], params, 100)?;
    /// assert!(last.contains(&4999u64));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_table<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        writer.write_all(self.core.table())?;
        writer.write_all(&self.table_checksum())
    }

    fn table_checksum(&self) -> [u8; CHECKSUM_BYTES] {
        let (_, seed) = header(&self.core, self.hasher.id());
        low_half(checksum(self.core.table(), seed)).to_le_bytes()
    }
}

impl<D: AsRef<[u8]>> FilterView<D> {
    /// Opens the bare table at the start of the data, which [`CuckooFilter::to_table`] or [`CuckooFilter::write_table`] wrote.
    /// Copies nothing and takes constant time.
    ///
    /// `params` are those of the filter that was written. `items` is its [`table_len`](CuckooFilter::table_len), which is the
    /// number of its items if each was inserted once. Any bytes may follow the checksum, and at least 4 must: lookups load them and
    /// ignore their values. In a buffer of many tables they belong to the next one; append zeros behind the last one.
    ///
    /// [`verify`](Self::verify) validates the table, as it does in a snapshot. The checksum depends on parameters, hasher and
    /// number of items, so it rejects any that differ from those of the written filter. Altered bytes pass its 32 bits by chance
    /// once in 4 billion. [`to_bytes`](Self::to_bytes) makes a snapshot.
    ///
    /// # Errors
    /// If there are fewer than [`Params::bare_table_bytes`] + 4 bytes, or more items than slots.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let items = ["alice", "bob"];
    /// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build_from_items(&items)?;
    /// let params = filter.params(); // kept once for all tables
    /// let buffer = [filter.to_table(), filter.to_table(), vec![0; 4]].concat();
    ///
    /// let second = FilterView::over_table(&buffer[params.bare_table_bytes()..], params, 2)?;
    /// second.verify()?;
    /// assert!(second.contains("alice"));
    /// assert!(second == filter);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn over_table(data: D, params: Params, items: usize) -> Result<Self, SnapshotError> {
        Self::over_table_with(data, params, items, Xxh3)
    }
}

impl<D: AsRef<[u8]>, H: Hasher> FilterView<D, H> {
    /// Opens a bare table of a filter with any hasher, as [`over_table`](Self::over_table) does.
    ///
    /// # Errors
    /// As `over_table`.
    pub fn over_table_with(data: D, params: Params, items: usize, hasher: H) -> Result<Self, SnapshotError> {
        let (given, end) = (data.as_ref().len(), params.table_bytes() + PADDING);
        if given < end {
            let remedy = "give the table, its checksum, and at least 4 bytes behind them";
            return Err(too_short(wide(given), wide(end)).with_remedy(remedy));
        }
        if items > params.slots() {
            let error = SnapshotError::new(Kind::Parameter, 0u64, "{} items in {} slots", [wide(items), wide(params.slots())]);
            return Err(
                error.with_remedy("give the number of items that the filter's table held (table_len) when it was written")
            );
        }
        Ok(Self { core: RawFilter::from_parts(params, Snapshot::bare(data, end), wide(items)), hasher })
    }
}

/// Returns the header that a snapshot would have, and its checksum.
fn header<S: Deref<Target = [u8]>>(filter: &RawFilter<S>, hasher: HasherId) -> (HeaderBytes, u64) {
    Header::<Fixed>::encode(&Fixed { items: wide(filter.table_len()), listed_bytes: 0, params: *filter.params() }, hasher)
}

/// Returns the checksum that is stored behind a bare table.
fn stored<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>) -> u32 {
    let behind = view.storage()[view.params().table_bytes()..].first_chunk();
    behind.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the context in which a bare table is validated.
pub(super) fn context<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> TableContext {
    let (_, seed) = header(view, hasher);
    let expected = ExpectedChecksum { seed, stored: stored(view).into(), mask: u32::MAX.into() };
    TableContext { start: 0, expected: Some(expected), items: (0, "the table holds {} items, but {} were given") }
}

/// Returns the header and the trailer of a bare table's snapshot. The lower half of the trailer is the stored checksum, so a
/// corrupt table makes a corrupt snapshot.
pub(super) fn frame<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> (HeaderBytes, [u8; TRAILER_BYTES]) {
    let (header, seed) = header(view, hasher);
    let computed = checksum(view.table(), seed);
    (header, (computed & !u64::from(u32::MAX) | u64::from(stored(view))).to_le_bytes())
}
