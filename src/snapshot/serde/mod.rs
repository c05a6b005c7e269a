//! Serde support: binary formats get the bytes of a snapshot, human-readable formats a map of its fields. Deserialisation runs
//! the same validation as reading a snapshot.

mod map;
mod names;
mod params;
mod scalar;
mod sequence;

pub(crate) use {scalar::Shown, sequence::read_list};

use core::{fmt, marker::PhantomData};

use serde::{
    de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor},
    ser::{Serialize, Serializer},
};

use super::{SnapshotError, pieces};
use crate::{
    filter::CuckooFilter,
    hash::{FromHasherId, Hasher},
    storage::{OutOfMemory, Storage},
};

/// Serialises to the bytes of [`to_bytes`](CuckooFilter::to_bytes) in binary formats, and to a map of the snapshot's fields in
/// human-readable formats ([example](crate::guide::serde)).
///
/// Binary formats need a temporary copy of the snapshot, human-readable formats do not.
impl<H: Hasher, M: Storage> Serialize for CuckooFilter<H, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return map::write(self, serializer);
        }
        let bytes = self.try_to_bytes().map_err(|error| unwritten(&error))?;
        serializer.serialize_bytes(&bytes)
    }
}

/// Safe for untrusted input: validates everything, as [`from_bytes`](CuckooFilter::from_bytes) does. Apart from what the format
/// itself allocates, memory is allocated only for bytes that exist, whatever length the input claims.
///
/// Custom hashers must implement [`FromHasherId`].
impl<'de, H: FromHasherId> Deserialize<'de> for CuckooFilter<H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Snapshot(PhantomData);
        if deserializer.is_human_readable() {
            // Not `deserialize_map`: the buffers that serde uses for flattened fields and untagged enums claim to be
            // human-readable even if they come from a binary format.
            deserializer.deserialize_any(visitor)
        } else {
            deserializer.deserialize_bytes(visitor)
        }
    }
}

/// Accepts a filter as bytes, as a sequence of bytes, or as a map.
struct Snapshot<H>(PhantomData<H>);

impl<'de, H: FromHasherId> Visitor<'de> for Snapshot<H> {
    type Value = CuckooFilter<H>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a koel filter: a map of its fields, or the bytes of its snapshot")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        CuckooFilter::from_bytes_with(bytes, H::from_hasher_id).map_err(|error| refused(&error))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        read_list(seq, |list| {
            let filter = pieces::read(list, H::from_hasher_id)?;
            let length = filter.params().snapshot_bytes();
            Ok((filter, length))
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        map::read(map)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(scalar::unexpected(text, &self))
    }
}

/// Converts the error to one of the format.
pub(crate) fn refused<E: Error>(error: &SnapshotError) -> E {
    E::custom(format_args!("koel filter: {error}"))
}

/// The error of a filter that cannot be serialised for lack of memory.
pub(crate) fn unwritten<E: serde::ser::Error>(error: &OutOfMemory) -> E {
    E::custom(format_args!("koel filter: {error}"))
}
