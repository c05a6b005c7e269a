//! Filters in other people's formats: to binary ones the bytes of a snapshot, to those for people a map of its parts. What
//! comes back goes through the snapshots' own reader.

mod map;
mod names;
mod params;
mod scalar;
mod sequence;

use core::{fmt, marker::PhantomData};

use serde::{
    de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor},
    ser::{Serialize, Serializer},
};

use crate::{
    error::SnapshotError,
    filter::CuckooFilter,
    hash::{FromHasherId, Hasher},
    storage::Storage,
};

/// To a binary format the bytes of [`to_bytes`](CuckooFilter::to_bytes), to a human-readable one a map of the snapshot's
/// parts: docs/SNAPSHOTS.md has an example.
///
/// A binary format takes a copy of the whole snapshot, a human-readable one takes none.
impl<H: Hasher, M: Storage> Serialize for CuckooFilter<H, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() { map::write(self, serializer) } else { serializer.serialize_bytes(&self.to_bytes()) }
    }
}

/// Checks everything, as [`from_bytes`](CuckooFilter::from_bytes) does, and takes no more memory than what is there
/// warrants, whatever it says of its own length: beside what the format itself takes, the filter's own.
///
/// A hasher of one's own is to implement [`FromHasherId`].
impl<'de, H: FromHasherId> Deserialize<'de> for CuckooFilter<H> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = Snapshot(PhantomData);
        if deserializer.is_human_readable() {
            // Not `deserialize_map`: what serde buffers, for flattened fields and untagged enums, calls itself
            // human-readable even if it came from a binary format.
            deserializer.deserialize_any(visitor)
        } else {
            deserializer.deserialize_bytes(visitor)
        }
    }
}

/// Takes a snapshot in each of its forms.
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
        sequence::read(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        map::read(map)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(scalar::unexpected(text, &self))
    }
}

/// The reader's error, as the format's.
fn refused<E: Error>(error: &SnapshotError) -> E {
    E::custom(format_args!("koel filter: {error}"))
}
