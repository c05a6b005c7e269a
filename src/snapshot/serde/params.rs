//! Serde support for [`Params`]: a struct with names in human-readable formats, with the numbers of a snapshot's header in binary
//! formats.

use core::fmt;

use serde::{
    de::{Deserialize, DeserializeSeed, Deserializer, Error, Expected, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::{Serialize, SerializeStruct, Serializer},
};

use super::{
    super::format::{addressing_number, table_number},
    map::{needed, once},
    names::{Hex, SIXTEEN_DIGITS, hex},
    scalar::{Number, Shown},
};
use crate::params::{Addressing, Params, TableKind};

const NAME: &str = "Params";

const TABLE: &str = "table";
const FINGERPRINT_BITS: &str = "fingerprint_bits";
const BUCKET_SIZE: &str = "bucket_size";
const ADDRESSING: &str = "addressing";
const SEED: &str = "seed";
const BUCKETS: &str = "buckets";
/// In the order of serialisation, which is that of a snapshot's header.
const FIELDS: [&str; 6] = [TABLE, FINGERPRINT_BITS, BUCKET_SIZE, ADDRESSING, SEED, BUCKETS];

/// Serialises to a struct of six fields. Human-readable formats get names, and the seed as a string, since many JSON readers
/// store numbers as doubles. Binary formats get the numbers of a snapshot's header (docs/FORMAT.md).
impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "neither exceeds 32")]
        let (fingerprint_bits, bucket_size) = (self.fingerprint_bits() as u8, self.bucket_size() as u8);
        let (table, addressing, seed) = (self.table(), self.addressing(), self.seed());
        let is_human_readable = serializer.is_human_readable();
        let mut fields = serializer.serialize_struct(NAME, FIELDS.len())?;
        if is_human_readable {
            fields.serialize_field(TABLE, table.name())?;
        } else {
            fields.serialize_field(TABLE, &table_number(table))?;
        }
        fields.serialize_field(FINGERPRINT_BITS, &fingerprint_bits)?;
        fields.serialize_field(BUCKET_SIZE, &bucket_size)?;
        if is_human_readable {
            fields.serialize_field(ADDRESSING, addressing.name())?;
            fields.serialize_field(SEED, &format_args!("{}", Hex(seed)))?;
        } else {
            fields.serialize_field(ADDRESSING, &addressing_number(addressing))?;
            fields.serialize_field(SEED, &seed)?;
        }
        fields.serialize_field(BUCKETS, &self.buckets())?;
        fields.end()
    }
}

/// Validates all limits, as a builder does. Accepts a map of the fields, in any order, or a sequence of their values.
impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct(NAME, &FIELDS, Struct)
    }
}

struct Struct;

impl<'de> Visitor<'de> for Struct {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "koel parameters, a struct of {} fields", FIELDS.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut read = Read::default();
        while let Some(field) = map.next_key_seed(Field)? {
            match field {
                TABLE => once(&mut read.table, field, &mut map, table())?,
                FINGERPRINT_BITS => once(&mut read.fingerprint_bits, field, &mut map, fingerprint_bits())?,
                BUCKET_SIZE => once(&mut read.bucket_size, field, &mut map, bucket_size())?,
                ADDRESSING => once(&mut read.addressing, field, &mut map, addressing())?,
                SEED => once(&mut read.seed, field, &mut map, seed())?,
                _ => once(&mut read.buckets, field, &mut map, buckets())?,
            }
        }
        read.params()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Params, A::Error> {
        let read = Read {
            table: seq.next_element_seed(table())?,
            fingerprint_bits: seq.next_element_seed(fingerprint_bits())?,
            bucket_size: seq.next_element_seed(bucket_size())?,
            addressing: seq.next_element_seed(addressing())?,
            seed: seq.next_element_seed(seed())?,
            buckets: seq.next_element_seed(buckets())?,
        };
        if seq.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom(format_args!("more than {} values, expected {}", FIELDS.len(), &self as &dyn Expected)));
        }
        read.params()
    }
}

/// The fields read so far.
#[derive(Default)]
struct Read {
    table: Option<TableKind>,
    fingerprint_bits: Option<u8>,
    bucket_size: Option<u8>,
    addressing: Option<Addressing>,
    seed: Option<u64>,
    buckets: Option<u64>,
}

impl Read {
    fn params<E: Error>(self) -> Result<Params, E> {
        let table = needed(self.table, TABLE)?;
        let fingerprint_bits = needed(self.fingerprint_bits, FINGERPRINT_BITS)?;
        let bucket_size = needed(self.bucket_size, BUCKET_SIZE)?;
        let addressing = needed(self.addressing, ADDRESSING)?;
        let (seed, buckets) = (needed(self.seed, SEED)?, needed(self.buckets, BUCKETS)?);
        let params = Params::new(table, fingerprint_bits.into(), bucket_size.into(), buckets, addressing, seed);
        params.map_err(|error| E::custom(format_args!("koel parameters: {error}")))
    }
}

fn fingerprint_bits() -> Number<u8> {
    Number::new("the bits of a fingerprint")
}

fn bucket_size() -> Number<u8> {
    Number::new("the slots of a bucket")
}

fn buckets() -> Number<u64> {
    Number::new("the number of buckets")
}

fn table() -> Named<TableKind> {
    Named {
        what: "single or packed",
        bytes: 1,
        by_name: |name| name.parse().ok(),
        by_number: |number| TableKind::ALL.into_iter().find(|&table| u64::from(table_number(table)) == number),
    }
}

fn addressing() -> Named<Addressing> {
    Named {
        what: "any-size or power-of-two",
        bytes: 1,
        by_name: |name| name.parse().ok(),
        by_number: |number| Addressing::ALL.into_iter().find(|&one| u64::from(addressing_number(one)) == number),
    }
}

fn seed() -> Named<u64> {
    Named { what: SIXTEEN_DIGITS, bytes: 8, by_name: hex, by_number: Some }
}

/// Deserialises a name in human-readable formats and a number in binary formats. Human-readable formats may also contain the
/// number: the buffers that serde uses for flattened fields and untagged enums claim to be human-readable even if they come from
/// a binary format.
struct Named<T> {
    /// What is expected, for error messages.
    what: &'static str,
    /// The length of the number in bytes.
    bytes: usize,
    by_name: fn(&str) -> Option<T>,
    by_number: fn(u64) -> Option<T>,
}

impl<'de, T> DeserializeSeed<'de> for Named<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        match self.bytes {
            _ if deserializer.is_human_readable() => deserializer.deserialize_any(self),
            1 => deserializer.deserialize_u8(self),
            _ => deserializer.deserialize_u64(self),
        }
    }
}

impl<T> Visitor<'_> for Named<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let what = self.what;
        (self.by_name)(text).ok_or_else(|| E::custom(format_args!("{} given, expected {what}", Shown(text))))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        let what = self.what;
        (self.by_number)(number).ok_or_else(|| E::custom(format_args!("{number} given, expected {what}")))
    }
}

/// One of [`FIELDS`].
struct Field;

impl<'de> DeserializeSeed<'de> for Field {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Field {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field of koel parameters")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let known = FIELDS.into_iter().find(|&field| field == text);
        known.ok_or_else(|| E::custom(format_args!("unknown field {}, koel parameters have {FIELDS:?}", Shown(text))))
    }
}
