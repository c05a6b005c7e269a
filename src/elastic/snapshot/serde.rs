//! Serde support: binary formats get the bytes of a snapshot, human-readable ones the same in base64.

use alloc::{string::String, vec::Vec};
use core::{fmt, marker::PhantomData};

use base64::{Engine, display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    de::{Deserialize, Deserializer, Error, SeqAccess, Visitor},
    ser::{Serialize, Serializer},
};

use super::{super::ElasticFilter, SnapshotShards, read::read, write::write};
use crate::{
    bits::wide,
    hash::{FromHasherId, Hasher},
    snapshot::{
        SnapshotError, SnapshotErrorKind as Kind, Source,
        serde::{Shown, read_list, refused, unwritten},
        too_long,
    },
    storage::{OutOfMemory, reserved},
};

/// Serialises to the bytes of [`to_bytes`](ElasticFilter::to_bytes) in binary formats, and to a text, these bytes in base64, in
/// human-readable formats. Both need a temporary copy of the snapshot.
impl<H: Hasher> Serialize for ElasticFilter<H> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let snapshot = snapshot(self).map_err(|error| unwritten(&error))?;
        serialize(&snapshot, serializer)
    }
}

/// The bytes of [`to_bytes`](ElasticFilter::to_bytes), or an error if memory cannot be allocated.
fn snapshot<H: Hasher>(filter: &ElasticFilter<H>) -> Result<Vec<u8>, OutOfMemory> {
    let mut bytes = reserved(usize::try_from(filter.snapshot_bytes()).unwrap_or(usize::MAX))?;
    write(&filter.params, filter.hasher.id(), filter.storage.lanes.iter().map(|lane| Ok(Some(lane))), |piece| {
        bytes.extend_from_slice(piece);
        Ok::<(), OutOfMemory>(())
    })?;
    Ok(bytes)
}

/// Serialises to what the filter in the snapshot serialises to.
impl<H: Hasher, D: AsRef<[u8]>> Serialize for ElasticFilter<H, SnapshotShards<D>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.storage.bytes(), serializer)
    }
}

fn serialize<S: Serializer>(snapshot: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() {
        serializer.collect_str(&Base64Display::new(snapshot, &STANDARD))
    } else {
        serializer.serialize_bytes(snapshot)
    }
}

/// Safe for untrusted input: validates everything, as [`from_bytes`](ElasticFilter::from_bytes) does, and allocates no more.
///
/// Custom hashers must implement [`FromHasherId`].
impl<'de, H: FromHasherId> Deserialize<'de> for ElasticFilter<H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Snapshot(PhantomData);
        // Why not `deserialize_str`: see `CuckooFilter`.
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(visitor)
        } else {
            deserializer.deserialize_bytes(visitor)
        }
    }
}

/// Accepts a filter as bytes, as a sequence of bytes, or as a text.
struct Snapshot<H>(PhantomData<H>);

impl<'de, H: FromHasherId> Visitor<'de> for Snapshot<H> {
    type Value = ElasticFilter<H>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a growing koel filter: the bytes of its snapshot, or a text with these in base64")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        ElasticFilter::from_bytes_with(bytes, H::from_hasher_id).map_err(|error| refused(&error))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        read_list(seq, |list| read(list, H::from_hasher_id))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let mut source = Base64 { text: text.as_bytes(), read: 0, decoded: [0; DECODED], from: 0, to: 0, failed: None };
        let filter = from_text(&mut source);
        match source.failed {
            Some(error) => Err(E::custom(format_args!("koel filter: {} given, expected padded base64: {error}", Shown(text)))),
            None => filter.map_err(|error| refused(&error)),
        }
    }
}

fn from_text<H: FromHasherId>(source: &mut Base64<'_>) -> Result<ElasticFilter<H>, SnapshotError> {
    let (filter, end) = read(&mut *source, H::from_hasher_id)?;
    let (mut piece, mut more) = ([0; 64], 0);
    loop {
        let read = source.fill(&mut piece, end + more)?;
        more += wide(read);
        if read < piece.len() {
            return if more > 0 { Err(too_long(end + more, end)) } else { Ok(filter) };
        }
    }
}

/// Bytes that are decoded together: a multiple of three, so that the text of each piece ends where its bytes do.
const DECODED: usize = 3 << 10;
const DIGITS: usize = DECODED / 3 * 4;

/// A text in base64 as a [`Source`].
struct Base64<'a> {
    /// What has not been decoded yet, and how many digits were before it.
    text: &'a [u8],
    read: usize,
    decoded: [u8; DECODED],
    /// The decoded bytes that have not been read yet begin and end here.
    from: usize,
    to: usize,
    /// Why the text cannot be decoded.
    failed: Option<String>,
}

impl Source for Base64<'_> {
    fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
        let mut read = 0;
        while read < bytes.len() {
            if self.from == self.to {
                let (piece, rest) = self.text.split_at(self.text.len().min(DIGITS));
                let decoded = STANDARD.decode_slice(piece, &mut self.decoded).map_err(|error| {
                    self.failed = Some(text!("from digit {} on: {error}", self.read));
                    SnapshotError::new(Kind::Io, offset + wide(read), text!("the text has failed"))
                })?;
                self.read += piece.len();
                (self.text, self.from, self.to) = (rest, 0, decoded);
                if decoded == 0 {
                    break;
                }
            }
            let some = (self.to - self.from).min(bytes.len() - read);
            bytes[read..read + some].copy_from_slice(&self.decoded[self.from..self.from + some]);
            self.from += some;
            read += some;
        }
        Ok(read)
    }
}
