//! A snapshot as a map, for human-readable formats. The magic number, the header's checksum and the table's length are left out,
//! since they follow from the other fields.

use core::fmt::{self, Display};

use base64::{Engine, display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor},
    ser::{SerializeMap, Serializer},
};

use super::{
    super::{
        SnapshotError, SnapshotErrorKind as Kind,
        format::{ADDRESSING_AT, BUCKET_SIZE_AT, BUCKETS_AT, FINGERPRINT_BITS_AT, Fields, ITEMS_AT, TABLE_AT, VERSION},
        read::from_fields,
    },
    names::{Hex, SIXTEEN_DIGITS, addressing, hex, table},
    scalar::{Number, Shown, Text},
};
use crate::{
    bits::wide,
    filter::CuckooFilter,
    hash::{FromHasherId, Hasher, HasherId},
    storage::{Owned, Storage, StorageMut as _},
};

// The keys, in the order of the header, which is also the order of serialization.
const VERSION_KEY: &str = "version";
const TABLE_KEY: &str = "table";
const FINGERPRINT_BITS_KEY: &str = "fingerprint_bits";
const BUCKET_SIZE_KEY: &str = "bucket_size";
const ADDRESSING_KEY: &str = "addressing";
const HASHER_KEY: &str = "hasher";
const SEED_KEY: &str = "seed";
const BUCKETS_KEY: &str = "buckets";
const ITEMS_KEY: &str = "items";
const BASE64_KEY: &str = "table_base64";
const CHECKSUM_KEY: &str = "checksum";
const KEYS: [&str; 11] = [
    VERSION_KEY,
    TABLE_KEY,
    FINGERPRINT_BITS_KEY,
    BUCKET_SIZE_KEY,
    ADDRESSING_KEY,
    HASHER_KEY,
    SEED_KEY,
    BUCKETS_KEY,
    ITEMS_KEY,
    BASE64_KEY,
    CHECKSUM_KEY,
];

/// Seed and checksum are strings, since many JSON readers store numbers as doubles, which are exact only up to 2⁵³. The other
/// numbers stay below that: a table of 2⁵³ buckets would take petabytes.
pub(super) fn write<H: Hasher, M: Storage, S: Serializer>(filter: &CuckooFilter<H, M>, serializer: S) -> Result<S::Ok, S::Error> {
    let params = filter.params();
    let (table, checksum) = filter.table_and_checksum();
    let mut map = serializer.serialize_map(Some(KEYS.len()))?;
    map.serialize_entry(VERSION_KEY, &VERSION)?;
    map.serialize_entry(TABLE_KEY, params.table().name())?;
    map.serialize_entry(FINGERPRINT_BITS_KEY, &params.fingerprint_bits())?;
    map.serialize_entry(BUCKET_SIZE_KEY, &params.bucket_size())?;
    map.serialize_entry(ADDRESSING_KEY, params.addressing().name())?;
    map.serialize_entry(HASHER_KEY, &Shows(filter.hasher().id()))?;
    map.serialize_entry(SEED_KEY, &Shows(Hex(params.seed())))?;
    map.serialize_entry(BUCKETS_KEY, &params.buckets())?;
    map.serialize_entry(ITEMS_KEY, &wide(filter.len()))?;
    map.serialize_entry(BASE64_KEY, &Shows(Base64Display::new(table, &STANDARD)))?;
    map.serialize_entry(CHECKSUM_KEY, &Shows(Hex(checksum)))?;
    map.end()
}

/// Accepts the entries in any order.
pub(super) fn read<'de, A: MapAccess<'de>, H: FromHasherId>(mut map: A) -> Result<CuckooFilter<H>, A::Error> {
    let mut entries = Entries::default();
    while let Some(key) = map.next_key_seed(Key)? {
        entries.read(key, &mut map)?;
    }
    entries.filter()
}

/// The entries read so far.
#[derive(Default)]
struct Entries {
    version: Option<u16>,
    table: Option<u8>,
    fingerprint_bits: Option<u8>,
    bucket_size: Option<u8>,
    addressing: Option<u8>,
    hasher: Option<HasherId>,
    seed: Option<u64>,
    buckets: Option<u64>,
    items: Option<u64>,
    storage: Option<Owned>,
    checksum: Option<u64>,
}

impl Entries {
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error> {
        match key {
            VERSION_KEY => once(&mut self.version, key, map, Number::new("the version of koel's snapshots")),
            TABLE_KEY => once(&mut self.table, key, map, Text { what: "single or packed", parse: table }),
            FINGERPRINT_BITS_KEY => once(&mut self.fingerprint_bits, key, map, Number::new("the bits of a fingerprint")),
            BUCKET_SIZE_KEY => once(&mut self.bucket_size, key, map, Number::new("the slots of a bucket")),
            ADDRESSING_KEY => once(&mut self.addressing, key, map, Text { what: "any-size or power-of-two", parse: addressing }),
            HASHER_KEY => {
                let what = "the hasher, xxh3, metrohash64, redisbloom, or 0x and the four hexadecimal digits of another id";
                once(&mut self.hasher, key, map, Text { what, parse: |text: &str| text.parse().ok() })
            }
            SEED_KEY => once(&mut self.seed, key, map, Text { what: SIXTEEN_DIGITS, parse: hex }),
            BUCKETS_KEY => once(&mut self.buckets, key, map, Number::new("the number of buckets")),
            ITEMS_KEY => once(&mut self.items, key, map, Number::new("the number of items")),
            BASE64_KEY => once(&mut self.storage, key, map, Table),
            _ => once(&mut self.checksum, key, map, Text { what: SIXTEEN_DIGITS, parse: hex }),
        }
    }

    fn filter<E: Error, H: FromHasherId>(self) -> Result<CuckooFilter<H>, E> {
        let fields = Fields {
            version: needed(self.version, VERSION_KEY)?,
            table: needed(self.table, TABLE_KEY)?,
            fingerprint_bits: needed(self.fingerprint_bits, FINGERPRINT_BITS_KEY)?,
            bucket_size: needed(self.bucket_size, BUCKET_SIZE_KEY)?,
            addressing: needed(self.addressing, ADDRESSING_KEY)?,
            hasher: needed(self.hasher, HASHER_KEY)?,
            seed: needed(self.seed, SEED_KEY)?,
            buckets: needed(self.buckets, BUCKETS_KEY)?,
            items: needed(self.items, ITEMS_KEY)?,
            // Set by `from_fields`.
            table_bytes: 0,
        };
        let (table, checksum) = (needed(self.storage, BASE64_KEY)?, needed(self.checksum, CHECKSUM_KEY)?);
        from_fields(&fields, table, checksum, H::from_hasher_id).map_err(|error| refused(&error))
    }
}

pub(super) fn once<'de, A: MapAccess<'de>, S: DeserializeSeed<'de>>(
    entry: &mut Option<S::Value>,
    key: &'static str,
    map: &mut A,
    seed: S,
) -> Result<(), A::Error> {
    if entry.is_some() {
        return Err(A::Error::duplicate_field(key));
    }
    *entry = Some(map.next_value_seed(seed)?);
    Ok(())
}

pub(super) fn needed<T, E: Error>(entry: Option<T>, key: &'static str) -> Result<T, E> {
    entry.ok_or_else(|| E::missing_field(key))
}

/// Converts the error to one of the format, which names the entry that it is about.
fn refused<E: Error>(error: &SnapshotError) -> E {
    let at = |offset: usize| error.offset() == wide(offset);
    let key = match error.kind() {
        Kind::Version => VERSION_KEY,
        Kind::Hasher => HASHER_KEY,
        Kind::Count => ITEMS_KEY,
        Kind::BodyChecksum => CHECKSUM_KEY,
        Kind::Parameter if at(TABLE_AT) => TABLE_KEY,
        Kind::Parameter if at(FINGERPRINT_BITS_AT) => FINGERPRINT_BITS_KEY,
        Kind::Parameter if at(BUCKET_SIZE_AT) => BUCKET_SIZE_KEY,
        Kind::Parameter if at(ADDRESSING_AT) => ADDRESSING_KEY,
        Kind::Parameter if at(BUCKETS_AT) => BUCKETS_KEY,
        Kind::Parameter if at(ITEMS_AT) => ITEMS_KEY,
        _ => BASE64_KEY,
    };
    // The checksum covers all entries, not only the table.
    let any = if error.kind() == Kind::BodyChecksum { "this or another entry was altered: " } else { "" };
    E::custom(format_args!("koel filter, `{key}`: {any}in the snapshot of these entries, {error}"))
}

/// One of [`KEYS`].
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Key {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a koel filter's field")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        KEYS.into_iter().find(|&key| key == text).ok_or_else(|| {
            let shown = Shown(text);
            E::custom(format_args!("unknown field {shown}, a koel filter has {KEYS:?}"))
        })
    }
}

/// Decodes the table from base64, directly into the memory of the filter.
struct Table;

impl<'de> DeserializeSeed<'de> for Table {
    type Value = Owned;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Owned, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Table {
    type Value = Owned;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table's bytes in base64, with padding")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Owned, E> {
        if !text.len().is_multiple_of(4) {
            let digits = text.len();
            let what = format_args!("{digits} digits, but padded base64 has a multiple of four");
            return Err(E::custom(format_args!("koel filter, `{BASE64_KEY}`: {what}")));
        }
        let padding = text.bytes().rev().take(2).take_while(|&byte| byte == b'=').count();
        let len = (text.len() / 4 * 3).saturating_sub(padding);
        let table = Owned::zeroed(len);
        let mut table = table.ok_or_else(|| E::custom(format_args!("koel filter: cannot allocate the table of {len} bytes")))?;
        match STANDARD.decode_slice(text, &mut table.bytes_mut()[..len]) {
            Ok(decoded) if decoded == len => Ok(table),
            Ok(decoded) => Err(E::custom(format_args!("koel filter, `{BASE64_KEY}`: {decoded} bytes instead of {len}"))),
            Err(error) => Err(E::custom(format_args!("koel filter, `{BASE64_KEY}`: not padded base64: {error}"))),
        }
    }
}

/// Serialises a value as its `Display` text.
struct Shows<T>(T);

impl<T: Display> serde::Serialize for Shows<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
