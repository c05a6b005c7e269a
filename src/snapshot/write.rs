//! Writing snapshots of growing filters.

use core::{borrow::Borrow, ops::Deref};

use super::format::{
    ALIGNMENT, Body, Checksum, HEADER_BYTES, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES, checksum,
};
use crate::{
    bits::{index, wide},
    elastic::{ElasticParams, GenerationPlan, Partition, ShardBytes, Shards as _},
    hash::HasherId,
    table::{TableParams as _, copies::Copies},
};

/// Passes all bytes of a growing filter's snapshot to `write`, piece by piece. Takes each partition from the iterator only when its
/// turn comes. Allocates nothing, so a filter can be saved even if no memory is left.
pub(crate) fn write<L: Borrow<Partition>, E>(
    params: &ElasticParams,
    hasher: HasherId,
    partitions: impl Iterator<Item = Result<L, E>>,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut writing = Writing::start(params, hasher, write)?;
    for partition in partitions {
        let partition = partition?;
        writing.section(partition.borrow())?;
        for (record, bytes, plan) in bodies(partition.borrow()) {
            bytes.each_piece(&mut writing.write)?;
            let padding = index(record.padded_bytes(plan) - record.body_bytes(plan));
            (writing.write)(&[0; ALIGNMENT][..padding])?;
        }
    }
    writing.finish()
}

/// The body of a record.
#[derive(Clone, Copy)]
pub(super) enum BodyBytes<'a> {
    Whole(&'a [u8]),
    /// The entries of a list in parts.
    Copies(&'a Copies),
}

impl BodyBytes<'_> {
    /// Passes all bytes to `act`, piece by piece.
    fn each_piece<E>(self, act: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Whole(bytes) => act(bytes),
            Self::Copies(copies) => copies.write_entries(act),
        }
    }

    /// Copies the bytes from `offset` on. Returns their number.
    pub fn read(self, offset: usize, bytes: &mut [u8]) -> usize {
        let copies = match self {
            Self::Whole(whole) => return copy(whole.get(offset..).unwrap_or_default(), bytes),
            Self::Copies(copies) => copies,
        };
        let (mut from, mut done) = (offset, 0);
        for (width, is_key) in [(copies.keys.key_bytes(), true), (copies.count_bytes(), false)] {
            let width = usize::from(width);
            if from >= copies.len() * width {
                from -= copies.len() * width;
                continue;
            }
            let mut within = from % width;
            for (key, count) in copies.iter_from(from / width) {
                let number = if is_key { key } else { count.into() };
                done += copy(&number.to_le_bytes()[within..width], &mut bytes[done..]);
                within = 0;
                if done == bytes.len() {
                    return done;
                }
            }
            from = 0;
        }
        done
    }

    fn checksum(self) -> u64 {
        if let Self::Whole(bytes) = self {
            return checksum(bytes, 0);
        }
        let mut checksum = Checksum::new(0);
        let all = self.each_piece(&mut |piece: &[u8]| {
            checksum.update(piece);
            Ok::<(), core::convert::Infallible>(())
        });
        all.map_or_else(|never| match never {}, |()| checksum.finish())
    }
}

/// Returns the records of a partition, with checksums of 0, the bodies, and the plans of their generations.
pub(super) fn bodies(partition: &Partition) -> impl Iterator<Item = (Record, BodyBytes<'_>, &GenerationPlan)> + Clone {
    partition.generations().flat_map(|generation| {
        let plan = generation.plan();
        let shards = generation.shards_in_order().map(move |(shard, bytes)| {
            let (body, bytes) = match bytes {
                ShardBytes::Table(layout, table) => (Body::Table, &table[..layout.params.table_bytes()]),
                ShardBytes::List(list) => (Body::List { count_bytes: list.count_bytes() }, list.bytes()),
            };
            let (depth, prefix, entries) = (shard.depth(), shard.prefix(), wide(shard.items()));
            let record = Record { generation: plan.number, body, depth, prefix, entries, checksum: 0 };
            (record, BodyBytes::Whole(bytes), plan)
        });
        let copies = generation.extra_copy_list().map(move |copies| {
            let body = Body::Copies { count_bytes: copies.count_bytes() };
            let record = Record { generation: plan.number, body, depth: 0, prefix: 0, entries: wide(copies.len()), checksum: 0 };
            (record, BodyBytes::Copies(copies), plan)
        });
        shards.chain(copies)
    })
}

/// A snapshot of a growing filter whose header has been written.
pub(super) struct Writing<F> {
    write: F,
    /// The header's checksum, which seeds the others.
    seed: u64,
    /// The checksum of the sections' checksums.
    checksum: Checksum,
    /// The number of the next section.
    partition: u64,
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Writing<F> {
    /// Writes the header.
    pub fn start(params: &ElasticParams, hasher: HasherId, mut write: F) -> Result<Self, E> {
        let (header, seed) = params.header(hasher);
        write(&header)?;
        Ok(Self { write, seed, checksum: Checksum::new(seed), partition: 0 })
    }

    /// Writes the section header of a partition, and its records. Visits all bodies and computes their checksums twice, instead of
    /// keeping them in memory.
    pub fn section(&mut self, partition: &Partition) -> Result<(), E> {
        let list = bodies(partition).map(|(record, body, _)| Record { checksum: body.checksum(), ..record }.encode());
        let (section, checksum) = section(partition).encode(list.clone(), self.partition, self.seed);
        self.checksum.update(&checksum.to_le_bytes());
        self.partition += 1;
        (self.write)(&section)?;
        let (mut piece, mut len) = ([0; 128 * RECORD_BYTES], 0);
        for record in list {
            if len == piece.len() {
                (self.write)(&piece)?;
                len = 0;
            }
            piece[len..len + RECORD_BYTES].copy_from_slice(&record);
            len += RECORD_BYTES;
        }
        (self.write)(&piece[..len])
    }

    /// Writes the trailer.
    pub fn finish(mut self) -> Result<(), E> {
        (self.write)(&self.checksum.finish().to_le_bytes())
    }
}

/// Returns the length of a snapshot with these partitions.
pub(crate) fn snapshot_bytes<L: Deref<Target = Partition>>(partitions: impl Iterator<Item = L>) -> u64 {
    let sections = partitions.map(|partition| wide(SECTION_BYTES) + section(&partition).length);
    wide(HEADER_BYTES) + sections.sum::<u64>() + wide(TRAILER_BYTES)
}

/// Returns the section header of a partition.
pub(super) fn section(partition: &Partition) -> Section {
    let (records, length) = bodies(partition).fold((0, 0), |(records, length), (record, _, plan)| {
        (records + 1, length + wide(RECORD_BYTES) + record.padded_bytes(plan))
    });
    Section { items: partition.item_count(), records, length }
}

/// Copies as many bytes as both slices have. Returns their number.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    to[..len].copy_from_slice(&from[..len]);
    len
}
