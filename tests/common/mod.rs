//! Helpers that several tests share: the kinds of filters, forged snapshots, and a random generator with fixed seeds.

#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

pub(crate) mod chosen;
mod folder;
mod go_file;
pub(crate) mod same_bits;
pub(crate) mod sequences;
pub(crate) mod split_mix;

pub(crate) use folder::Folder;
pub(crate) use go_file::GoFile;
pub(crate) use same_bits::same_bits;
pub(crate) use split_mix::SplitMix64;

use koel::{Addressing, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, TableKind, Xxh3, hash::Hasher};
use same_bits::Bits;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a fixed filter's snapshot before its table.
pub(crate) const HEADER: usize = 64;

pub(crate) const ADDRESSINGS: [Addressing; 2] = [Addressing::AnySize, Addressing::PowerOfTwo];
pub(crate) const BUCKET_SIZES: [u32; 7] = [1, 2, 3, 4, 5, 8, 16];

/// Returns item n of the tests of growing filters.
pub(crate) fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// Returns a growing filter with the first `items` keys.
pub(crate) fn filled(builder: ElasticBuilder, items: u64) -> ElasticFilter {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert_iter((0..items).map(key)).expect("the filter grows");
    filter
}

/// Parameters of a filter, except its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) table: TableKind,
    pub(crate) f: u32,
    pub(crate) b: u32,
    pub(crate) addressing: Addressing,
}

impl Kind {
    pub(crate) fn builder(self) -> Builder {
        CuckooFilter::builder().table(self.table).fingerprint_bits(self.f).bucket_size(self.b).addressing(self.addressing)
    }

    pub(crate) fn filter(self, buckets: u64) -> CuckooFilter {
        self.builder().buckets(buckets).build().unwrap_or_else(|error| panic!("{self:?}: {error}"))
    }
}

/// Returns both tables with every f from 4 to 32, every bucket size above and both addressings.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    (4..=32).flat_map(|f| ADDRESSINGS.into_iter().flat_map(move |addressing| kinds_of(f, addressing)))
}

fn kinds_of(f: u32, addressing: Addressing) -> impl Iterator<Item = Kind> {
    let single = BUCKET_SIZES.into_iter().map(move |b| Kind { table: TableKind::Single, f, b, addressing });
    single.chain([Kind { table: TableKind::Packed, f, b: 4, addressing }])
}

/// Returns the table's bytes in a snapshot.
pub(crate) fn table_bytes(filter: &CuckooFilter) -> Vec<u8> {
    let bytes = filter.to_bytes();
    bytes[64..bytes.len() - 8].to_vec()
}

/// Changes a snapshot and recomputes both checksums, so that only the change itself can be detected.
pub(crate) fn forged(snapshot: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = snapshot.to_vec();
    change(&mut bytes);
    let header = xxh3_64_with_seed(&bytes[..HEADER - 8], 0);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let body = xxh3_64_with_seed(&bytes[HEADER..end], header);
    bytes[end..].copy_from_slice(&body.to_le_bytes());
    bytes
}

#[cfg(feature = "std")]
impl<H: Hasher> Bits for koel::SharedFilter<H> {
    fn bits(&self) -> Vec<u8> {
        self.to_bytes()
    }
}

#[cfg(all(feature = "metrohash", target_endian = "little"))]
impl Bits for koel::go::GoFilter {
    /// The file has the victim, too.
    fn bits(&self) -> Vec<u8> {
        self.encode().expect("there are fewer than 2³² items")
    }
}

#[cfg(feature = "redisbloom")]
impl Bits for koel::redisbloom::RedisBloomFilter {
    fn bits(&self) -> Vec<u8> {
        self.to_dump()
    }
}
