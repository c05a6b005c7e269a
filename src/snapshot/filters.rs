//! The snapshot methods of the public filters: writing, reading, and opening in place. Macros define the methods and their rustdoc
//! once. A core passes on its bytes in pieces, reads itself from a source, or opens itself in the caller's bytes.

use alloc::vec::Vec;
use core::mem;
#[cfg(feature = "std")]
use std::{io::Read, path::Path};

use super::{
    Input, SnapshotError,
    error::{too_long, too_short},
    format::{CHECKSUM_AT, Checksum, Fixed, HEADER_BYTES, Header, TRAILER_BYTES, checksum, header_too_short, u64_at},
    pieces::{around_bare, bare_frame},
    read::MAX_PIECE,
    verify::{self, Frame},
};
#[cfg(feature = "std")]
use super::{Source, file::open, stream};
use crate::{
    bits::{IS_SMALLEST, PADDING, in_memory, index, wide},
    filter::{CuckooFilter, FilterView, RawFilter},
    hash::{Hasher, HasherId, Xxh3},
    storage::{OutOfMemory, Owned, Snapshot, copied, reserve},
    table::copies::SnapshotCopies,
};

/// Defines the methods that write a filter.
macro_rules! writes {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ident) => {
        impl<$($generics)*> $filter {
            /// Returns the filter as a snapshot (docs/FORMAT.md): a header of 64 bytes, the table, and a checksum of 8 bytes. The
            /// snapshot of a growing filter has, for each partition, a list of its shards and their tables. Takes time proportional
            /// to the tables.
            ///
            /// Filters that were changed by the same operations give the same bytes on every machine. A view of a snapshot returns the
            /// bytes that it was made from, so a corrupt snapshot stays one that `verify` rejects. A `SharedFilter` is copied partition
            /// by partition, as by [`write_to`](Self::write_to).
            ///
            /// # Panics
            /// If the bytes would not fit into the address space (on 32-bit targets). If the allocator has no memory for them, the
            /// program aborts, as with any vector. [`write_to`](Self::write_to) needs no memory.
            ///
            /// # Example
            /// ```
            /// use koel::{CuckooFilter, ElasticFilter};
            /// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
            /// filter.insert("alice")?;
            /// let read = CuckooFilter::from_bytes(&filter.to_bytes())?;
            /// assert!(read.contains("alice"));
            ///
            /// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
            /// filter.insert("alice")?;
            /// let mut read = ElasticFilter::from_bytes(&filter.to_bytes())?;
            /// read.insert_iter(0..100_000u64)?; // it continues to grow
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8>
            where
                $hasher: $crate::hash::Hasher,
            {
                // On 32-bit targets the length may exceed `usize` by a few bytes. Then the vector is too short, grows, and panics.
                let mut bytes = alloc::vec::Vec::with_capacity($crate::bits::index(self.core.snapshot_bytes()));
                self.core.append_to(self.hasher.id(), &mut bytes).unwrap_or_else(|error| error.abort());
                bytes
            }

            /// Writes the bytes of [`to_bytes`](Self::to_bytes) without a copy of all of them. Writes in large pieces, so the
            /// writer needs no buffer. If it has one, pass `&mut writer`, and flush it afterwards: this does not. Allocates nothing,
            /// except for a `SharedFilter`.
            ///
            /// Other threads, and the writer itself, can use a `SharedFilter` during the call. One partition at a time is copied
            /// under its lock and then written, which takes the memory of one partition. An item that was inserted before
            /// the call and is not removed is in the snapshot; an item that is inserted during the call may be.
            ///
            /// # Errors
            /// The writer's error; [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if a partition cannot be copied. What the
            /// writer has received by then is not a valid snapshot.
            #[cfg(feature = "std")]
            pub fn write_to<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()>
            where
                $hasher: $crate::hash::Hasher,
            {
                self.core.write(self.hasher.id(), |piece| writer.write_all(piece))
            }

            /// Writes the bytes of [`write_to`](Self::write_to) to a file, which it creates or replaces.
            ///
            /// The write is atomic and durable. The bytes go to a temporary file in the same folder (`.koel-….tmp`), which is
            /// renamed over the old file once it is complete, on the disk, and has been read back as far as opening a view reads.
            /// If anything fails before that (an error, a full disk, a power cut), the old file is still there. When `save`
            /// returns, the new file survives a power cut, as far as the operating system can guarantee it: a folder that the
            /// process may write to but not read cannot be synced. A killed process leaves at most one temporary file behind, and
            /// the next `save` to the same path removes it, where the file system has locks and the user may open the file.
            /// Concurrent savers do not wait for each other and never share a temporary file; the last one to finish wins. (On
            /// Unix, a file that exceeds a size limit raises `SIGXFSZ`, which kills a process that does not ignore it.)
            ///
            /// Because the file is replaced, and not overwritten:
            /// - Processes that have the old file open or mapped keep its content.
            /// - Hard links are broken: the other names of the old file keep the old content.
            /// - The file's permissions are kept. Its owner and group are kept if the process may set them. Access-control lists,
            ///   extended attributes, and the set-user-ID, set-group-ID and sticky bits are not. A new file gets the permissions
            ///   that the umask allows.
            /// - A read-only file is replaced, too, because only write access to the folder matters.
            /// - A symbolic link is kept, and the file that it points to is replaced. This includes `/dev/stdout`, `/dev/fd/3` and
            ///   the like on Linux; to write to an open descriptor, use [`write_to`](Self::write_to).
            ///
            /// Processes that load, update and save the same file concurrently need a lock; otherwise updates are lost.
            ///
            /// # Errors
            /// The error of the operating system, with the path. The old file is unchanged, unless the message says that it was
            /// replaced but might come back after a power cut.
            ///
            /// # Example
            /// ```
            /// # let folder = std::env::temp_dir();
            /// # let path = folder.join(format!("koel-doc-{}.koel", std::process::id()));
            /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
            /// filter.insert("alice")?;
            /// filter.save(&path)?;
            /// let read = koel::CuckooFilter::load(&path)?;
            /// assert!(read.contains("alice"));
            /// # std::fs::remove_file(&path)?;
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()>
            where
                $hasher: $crate::hash::Hasher,
            {
                $crate::snapshot::replace(path.as_ref(), |file| self.write_to(file))
            }

            /// Returns the length of [`to_bytes`](Self::to_bytes) in bytes, without making them. Takes time proportional to the
            /// number of shards.
            ///
            /// # Example
            /// ```
            /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
            /// filter.insert_iter(0..100_000u64)?;
            /// assert_eq!(filter.snapshot_bytes(), filter.to_bytes().len() as u64);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[must_use]
            pub fn snapshot_bytes(&self) -> u64 {
                self.core.snapshot_bytes()
            }
        }

        #[cfg(feature = "serde")]
        $crate::snapshot::serializes! { impl [$($generics)*] $filter, $hasher }
    };
}
pub(crate) use writes;

/// Defines the methods that read a filter. They use its `read`, which reads one snapshot and not one byte more, and `from_slice`.
macro_rules! reads {
    ($filter:ident) => {
        impl $filter {
            /// Reads a filter from the bytes of one snapshot, with nothing after it.
            ///
            /// Safe for untrusted input: validates everything. A fixed filter allocates no more memory than the input is long, and
            /// meanwhile 5/4 of the bytes of its extra copies again; a growing filter takes a few times as much as the input plus
            /// 32 MiB, and if it is forged, up to 2 MiB more for each of its partitions. Takes time proportional to the input. A snapshot has no memory limit:
            /// [`set_max_bytes`](crate::ElasticFilter::set_max_bytes) sets it again.
            ///
            /// # Errors
            /// If the bytes are not a valid snapshot of this type of filter; the error says what is wrong and at which offset. If
            /// the filter's hasher is not [`Xxh3`](crate::Xxh3); for other hashers, use [`from_bytes_with`](Self::from_bytes_with).
            ///
            /// # Example
            /// ```
            /// use koel::CuckooFilter;
            /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
            /// let filter = CuckooFilter::from_bytes(&bytes)?;
            /// assert!(CuckooFilter::from_bytes(&bytes[1..]).is_err());
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, $crate::SnapshotError> {
                Self::from_bytes_with(bytes, $crate::snapshot::xxh3)
            }

            /// Reads one snapshot from a reader, and not one byte more, so that other data may follow.
            ///
            /// Safe for untrusted input: validates everything, as [`from_bytes`](Self::from_bytes) does. Memory grows with the
            /// bytes that arrive, not with what the header claims: it exceeds them by at most a quarter plus 32 KiB, and for a fixed
            /// filter by 5/4 of the bytes of its extra copies. If the allocator can grow memory in place or by remapping pages, as
            /// on Linux, reading a filter of any size without extra copies takes at most 1 MiB besides the filter itself.
            ///
            /// Reads in large pieces, so the reader needs no buffer. At the end of a stream of snapshots, the error has the kind
            /// [`Length`](crate::SnapshotErrorKind::Length) and the offset 0.
            ///
            /// # Errors
            /// As for `from_bytes`. If the reader fails, with the kind [`Io`](crate::SnapshotErrorKind::Io).
            ///
            /// # Example
            /// ```
            /// use koel::CuckooFilter;
            /// let filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
            /// let mut stream = Vec::new(); // or a file, or a socket
            /// filter.write_to(&mut stream)?;
            /// assert_eq!(CuckooFilter::read_from(&stream[..])?, filter);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn read_from<R: std::io::Read>(reader: R) -> Result<Self, $crate::SnapshotError> {
                Self::read_from_with(reader, $crate::snapshot::xxh3)
            }

            /// Reads a filter from a file, as [`read_from`](Self::read_from) does, and checks that nothing follows it.
            ///
            /// # Errors
            /// If the file is not a valid snapshot. If it cannot be opened or read, with the kind
            /// [`Io`](crate::SnapshotErrorKind::Io): the message has the path and the system's reason, and
            /// [`io_kind`](crate::SnapshotError::io_kind) distinguishes a missing file from other failures. [`save`](Self::save)
            /// has an example.
            #[cfg(feature = "std")]
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, $crate::SnapshotError> {
                Self::load_with(path, $crate::snapshot::xxh3)
            }
        }

        impl<H: $crate::hash::Hasher> $filter<H> {
            /// Reads a filter with any hasher from the bytes of one snapshot, as [`from_bytes`](Self::from_bytes) does. `hasher`
            /// maps the hasher id in the snapshot to a hasher, or to `None` to reject the snapshot. A hasher with a different id is
            /// rejected, too. [`AnyHasher::from_id`](crate::hash::AnyHasher::from_id) accepts all hashers of this crate.
            ///
            /// # Errors
            /// As for `from_bytes`.
            ///
            /// # Example
            /// ```
            /// use koel::{CuckooFilter, hash::AnyHasher};
            /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
            /// let filter = CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id)?;
            /// assert!(filter.is_empty());
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn from_bytes_with(
                bytes: &[u8],
                hasher: impl FnOnce($crate::hash::HasherId) -> Option<H>,
            ) -> Result<Self, $crate::SnapshotError> {
                Self::from_slice(bytes, hasher)
            }

            /// Reads a filter with any hasher from a reader, as [`read_from`](Self::read_from) does. `hasher` is as for
            /// [`from_bytes_with`](Self::from_bytes_with).
            ///
            /// # Errors
            /// As for `read_from`.
            #[cfg(feature = "std")]
            pub fn read_from_with<R: std::io::Read>(
                reader: R,
                hasher: impl FnOnce($crate::hash::HasherId) -> Option<H>,
            ) -> Result<Self, $crate::SnapshotError> {
                $crate::snapshot::read_stream(reader, |input| Self::read(input, hasher))
            }

            /// Reads a filter with any hasher from a file, as [`load`](Self::load) does. `hasher` is as for
            /// [`from_bytes_with`](Self::from_bytes_with).
            ///
            /// # Errors
            /// As for `load`.
            #[cfg(feature = "std")]
            pub fn load_with(
                path: impl AsRef<std::path::Path>,
                hasher: impl FnOnce($crate::hash::HasherId) -> Option<H>,
            ) -> Result<Self, $crate::SnapshotError> {
                $crate::snapshot::read_file(path.as_ref(), |input| Self::read(input, hasher))
            }
        }

        /// Reads a snapshot with [`from_bytes`](Self::from_bytes).
        impl TryFrom<&[u8]> for $filter {
            type Error = $crate::SnapshotError;

            fn try_from(bytes: &[u8]) -> Result<Self, $crate::SnapshotError> {
                Self::from_bytes(bytes)
            }
        }

        #[cfg(feature = "serde")]
        $crate::snapshot::deserializes!($filter);
    };
}
pub(crate) use reads;

/// Defines the methods of a view. They use its `open`, whose last parameter says whether other bytes may follow the snapshot, and
/// `verify`, `to_verified` and the field `storage` of its core.
macro_rules! views {
    ($view:ident, $owned:ident) => {
        impl<D: AsRef<[u8]>> $view<D> {
            /// Opens a snapshot for queries in place. Copies nothing. Opening a [`FilterView`](crate::FilterView) takes constant
            /// time. Opening an [`ElasticView`](crate::ElasticView) takes time proportional to the number of shards, and allocates
            /// a directory of them: usually less than a hundredth of the snapshot's length, and at most twice that length or 32
            /// MiB, whichever is more.
            ///
            /// Validates what leads to the tables: the header, the length of the data and, in a growing filter, the lists of
            /// shards. [`verify`](Self::verify) validates the rest. The bytes need no alignment.
            ///
            /// # Errors
            /// If the data is not a valid snapshot of this type of filter; the error says what is wrong and at which offset. If
            /// other bytes follow the snapshot; [`over_prefix`](Self::over_prefix) allows them. If the filter's hasher is not
            /// [`Xxh3`](crate::Xxh3); for other hashers, use [`over_with`](Self::over_with).
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
            /// [`save`](crate::CuckooFilter::save) and the command `koel` never do that: they replace the file, and existing maps
            /// keep the old one. [`load`](crate::CuckooFilter::load) is the safe alternative.
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
            pub fn over(data: D) -> Result<Self, $crate::SnapshotError> {
                Self::over_with(data, $crate::snapshot::xxh3)
            }

            /// Opens the snapshot at the start of the data, which other bytes may follow. Also returns its length, which is the
            /// offset of the first byte behind it. Meant for snapshots that are stored back to back in a buffer.
            ///
            /// # Errors
            /// As for [`over`](Self::over), except that other bytes may follow the snapshot.
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
            pub fn over_prefix(data: D) -> Result<(Self, usize), $crate::SnapshotError> {
                Self::over_prefix_with(data, $crate::snapshot::xxh3)
            }
        }

        impl<D: AsRef<[u8]>, H: $crate::hash::Hasher> $view<D, H> {
            /// Opens a snapshot of a filter with any hasher, as [`over`](Self::over) does. `hasher` maps the hasher id in the
            /// snapshot to a hasher, or to `None` to reject the snapshot.
            ///
            /// # Errors
            /// As for `over`.
            pub fn over_with(
                data: D,
                hasher: impl FnOnce($crate::hash::HasherId) -> Option<H>,
            ) -> Result<Self, $crate::SnapshotError> {
                Self::open(data, hasher, false)
            }

            /// Opens the snapshot of a filter with any hasher at the start of the data, as [`over_prefix`](Self::over_prefix) does.
            /// `hasher` is as for [`over_with`](Self::over_with).
            ///
            /// # Errors
            /// As for `over_prefix`.
            pub fn over_prefix_with(
                data: D,
                hasher: impl FnOnce($crate::hash::HasherId) -> Option<H>,
            ) -> Result<(Self, usize), $crate::SnapshotError> {
                let view = Self::open(data, hasher, true)?;
                let end = view.core.storage.end;
                Ok((view, end))
            }
        }

        impl<D: AsRef<[u8]>, H> $view<D, H> {
            /// Validates everything that opening did not: all checksums, every bucket, the lists of items and copies, and that the
            /// number of items is that of the header or the list of shards. Takes time proportional to the snapshot. A
            /// [`FilterView`](crate::FilterView) allocates nothing.
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
            pub fn verify(&self) -> Result<(), $crate::SnapshotError>
            where
                H: $crate::hash::Hasher,
            {
                self.core.verify(self.hasher.id())
            }

            /// Copies the view into a filter that owns its tables and can be updated. The copy is [verified](Self::verify).
            ///
            /// # Errors
            /// As for `verify`, and if memory cannot be allocated.
            ///
            /// # Example
            /// ```
            /// use koel::{CuckooFilter, FilterView};
            /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
            /// let mut filter = FilterView::over(&bytes)?.to_filter()?;
            /// filter.insert("alice")?;
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn to_filter(&self) -> Result<$owned<H>, $crate::SnapshotError>
            where
                H: $crate::hash::Hasher + Clone,
            {
                Ok($owned { core: self.core.to_verified(self.hasher.id())?, hasher: self.hasher.clone() })
            }

            /// Returns the data that the view was made from.
            #[must_use]
            pub fn data(&self) -> &D {
                &self.core.storage.data
            }

            /// Converts the view back into its data.
            #[must_use]
            pub fn into_data(self) -> D {
                self.core.storage.data
            }
        }
    };
}
pub(crate) use views;

/// Returns a function that appends pieces to a vector.
pub(super) fn append(bytes: &mut Vec<u8>) -> impl FnMut(&[u8]) -> Result<(), OutOfMemory> {
    |piece| append_piece(bytes, piece)
}

/// Appends a piece for which there is usually room. If another thread made the filter larger meanwhile, there is none.
#[inline(never)]
fn append_piece(bytes: &mut Vec<u8>, piece: &[u8]) -> Result<(), OutOfMemory> {
    reserve(bytes, piece.len())?;
    bytes.extend_from_slice(piece);
    Ok(())
}

/// Returns the default hasher if this is its id.
pub(crate) fn xxh3(id: HasherId) -> Option<Xxh3> {
    (id == HasherId::XXH3).then_some(Xxh3)
}

/// Reads one snapshot from a reader, and nothing behind it.
#[cfg(feature = "std")]
pub(crate) fn read_stream<F>(
    reader: impl Read,
    read: impl FnOnce(&mut Input<'_>) -> Result<F, SnapshotError>,
) -> Result<F, SnapshotError> {
    read(&mut Input::new(Source::Stream(&mut stream(reader))))
}

/// Reads a file that has exactly one snapshot.
#[cfg(feature = "std")]
pub(crate) fn read_file<F>(
    path: &Path,
    read: impl FnOnce(&mut Input<'_>) -> Result<F, SnapshotError>,
) -> Result<F, SnapshotError> {
    let filter = read_stream(open(path)?, |input| {
        let filter = read(input)?;
        input.expect_end_of_file().map(|()| filter)
    });
    filter.map_err(|error| error.in_file(path))
}

// Fixed filters. The corresponding code of growing filters is in `growing.rs`.

writes!(impl [H] CuckooFilter<H>, H);
writes!(impl [D: AsRef<[u8]>, H] FilterView<D, H>, H);
reads!(CuckooFilter);
views!(FilterView, CuckooFilter);

impl RawFilter {
    fn snapshot_bytes(&self) -> u64 {
        Fixed::of(self).snapshot_bytes()
    }

    /// Reads the table, the extra copies and the trailer. The table stays in the memory that it was read into.
    fn read_behind(header: &Header<Fixed>, input: &mut Input<'_>) -> Result<Self, SnapshotError> {
        let Fixed { params, items, listed_bytes } = header.fields;
        let (whole, listed) = (params.table_bytes(), in_memory(listed_bytes));
        input.length = header.fields.snapshot_bytes();
        input.read(whole)?;
        let mut table = mem::take(&mut input.part);
        input.read(listed.saturating_add(TRAILER_BYTES))?;
        table.resize(whole + PADDING, 0);
        let storage = Owned::from_vec(table).ok_or_else(|| OutOfMemory::of(whole + PADDING))?;
        let mut raw = Self::from_parts(params, storage, items);
        let (listed, trailer) = input.part.split_at(listed);
        let listed = SnapshotCopies::new(listed, raw.keys());
        verify::fixed(&raw, listed, &Frame::in_snapshot(header.checksum, u64_at(trailer, 0)))?;
        raw.set_listed(listed)?;
        Ok(raw)
    }

    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "without std, there are no writers"))]
    fn write<E>(&self, hasher: HasherId, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (header, seed) = Fixed::of(self).header(hasher);
        write(&header)?;
        let mut checksum = Checksum::new(seed);
        for piece in self.table().chunks(MAX_PIECE) {
            // The checksum brings the piece into the cache for the writer.
            checksum.update(piece);
            write(piece)?;
        }
        self.write_extra_copies(|piece| {
            checksum.update(piece);
            write(piece)
        })?;
        write(&checksum.finish().to_le_bytes())
    }

    fn append_to(&self, hasher: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        let (header, seed) = Fixed::of(self).header(hasher);
        bytes.extend_from_slice(&header);
        let start = bytes.len();
        bytes.extend_from_slice(self.table());
        let all = self.write_extra_copies(append(bytes));
        // Computed at once: programs have this code anyway, to hash items, but not that of an incremental checksum.
        let checksum = checksum(&bytes[start..], seed);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        all
    }
}

impl<H: Hasher> CuckooFilter<H> {
    #[cfg_attr(not(any(feature = "std", feature = "serde")), expect(dead_code, reason = "a slice is read as a view"))]
    pub(crate) fn read(input: &mut Input<'_>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let header = Header::<Fixed>::decode(&input.header()?)?;
        let hasher = header.hasher(hasher)?;
        Ok(Self { core: RawFilter::read_behind(&header, input)?, hasher })
    }

    /// Reads a filter from a slice, for large tables twice as fast as [`read`](Self::read), which reads in pieces
    /// (docs/PERFORMANCE.md).
    pub(crate) fn from_slice(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let FilterView { core, hasher } = FilterView::over_with(bytes, hasher)?;
        Ok(Self { core: core.to_verified(hasher.id())?, hasher })
    }
}

impl<D: AsRef<[u8]>, H: Hasher> FilterView<D, H> {
    /// Opens the snapshot at the start of the data. The trailer serves as the table's padding.
    fn open(data: D, hasher: impl FnOnce(HasherId) -> Option<H>, allow_trailing: bool) -> Result<Self, SnapshotError> {
        let bytes = data.as_ref();
        let header = Header::<Fixed>::decode(bytes.first_chunk().ok_or_else(|| header_too_short(bytes))?)?;
        let hasher = header.hasher(hasher)?;
        let Fixed { params, items, .. } = header.fields;
        let (given, end) = (wide(bytes.len()), header.fields.snapshot_bytes());
        if given < end {
            return Err(too_short(given, end));
        }
        if given > end && !allow_trailing {
            return Err(too_long(given, end));
        }
        let listed = index(end - params.snapshot_bytes());
        let storage = Snapshot { data, start: HEADER_BYTES, end: index(end) };
        Ok(Self { core: RawFilter::with_listed(params, storage, items, listed), hasher })
    }
}

impl<D: AsRef<[u8]>> RawFilter<Snapshot<D>> {
    /// Returns the frame of the view's table.
    fn frame(&self, hasher: HasherId) -> Frame {
        let snapshot = &self.storage;
        if snapshot.is_bare() {
            return bare_frame(self, hasher);
        }
        let [seed, stored] = [CHECKSUM_AT, snapshot.end - TRAILER_BYTES].map(|at| u64_at(snapshot.all(), at));
        Frame::in_snapshot(seed, stored)
    }

    fn verify(&self, hasher: HasherId) -> Result<(), SnapshotError> {
        let (listed, frame) = (self.listed(), self.frame(hasher));
        if IS_SMALLEST {
            // The same code for all types of data.
            let view = RawFilter::with_listed(*self.params(), &self.storage[..], self.items(), listed.bytes().len());
            return verify::contiguous(&view, &frame);
        }
        verify::fixed(self, listed, &frame)
    }

    /// Returns a validated copy. Validates the copy, not the view, because mapped bytes may change at any time.
    fn to_verified(&self, hasher: HasherId) -> Result<RawFilter, SnapshotError> {
        let (mut copy, bytes) = (self.copied_table()?, self.listed().bytes());
        let listed = copied(bytes)?;
        let listed = SnapshotCopies::new(&listed, self.keys());
        verify::fixed(&copy, listed, &self.frame(hasher))?;
        copy.set_listed(listed)?;
        Ok(copy)
    }

    fn snapshot_bytes(&self) -> u64 {
        if self.storage.is_bare() { self.params().snapshot_bytes() } else { Fixed::of(self).snapshot_bytes() }
    }

    fn write<E>(&self, hasher: HasherId, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let snapshot = &self.storage;
        if !snapshot.is_bare() {
            return write(snapshot.all());
        }
        let (header, trailer) = around_bare(self, hasher);
        write(&header)?;
        write(self.table())?;
        write(&trailer)
    }

    fn append_to(&self, hasher: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        self.write(hasher, append(bytes))
    }
}
