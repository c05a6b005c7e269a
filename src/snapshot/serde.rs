//! Serde support. A filter is serialized as its snapshot: bytes in binary formats, base64 in human-readable ones. The readers of
//! snapshots read it back. [`Params`] are a struct.
//!
//! Single values have their own visitor, [`Single`]. Serde's errors would repeat an invalid text of any length, and so could take
//! more memory than the input.

use alloc::vec::Vec;
use core::{
    fmt::{self, Display},
    ops::Range,
};

use base64::{DecodeError, DecodeSliceError, Engine, display::Base64Display, engine::general_purpose::STANDARD};
use serde::{
    de::{Deserialize, DeserializeSeed, Deserializer, Error, Expected, IgnoredAny, MapAccess, SeqAccess, Visitor},
    ser::{Error as _, Serialize, SerializeStruct, Serializer},
};

use super::{Input, SnapshotError, SnapshotErrorKind as Kind, Source, read::Fill};
use crate::{
    bits::{index, low_half, wide},
    params::{Addressing, Params, TableKind},
    storage::OutOfMemory,
};

/// Implements `Serialize` for a filter.
macro_rules! serializes {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ident) => {
        /// Serializes to the bytes of [`to_bytes`](Self::to_bytes) in binary formats, and to these bytes as base64 text in
        /// human-readable formats. Both need a temporary copy of the snapshot. A view serializes like the filter in it.
        impl<$($generics)*> serde::Serialize for $filter
        where
            $hasher: $crate::hash::Hasher,
        {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let snapshot = $crate::storage::reserved($crate::bits::in_memory(self.core.snapshot_bytes())).and_then(|mut snapshot| {
                    self.core.append_to(self.hasher.id(), &mut snapshot)?;
                    Ok(snapshot)
                });
                $crate::snapshot::serde::serialize(snapshot, serializer)
            }
        }
    };
}
pub(crate) use serializes;

/// Implements `Deserialize` for a filter.
macro_rules! deserializes {
    ($filter:ident) => {
        /// Safe for untrusted input: validates everything, as [`from_bytes`](Self::from_bytes) does. Allocates memory only for
        /// bytes that exist, not for the length that the input claims; the format itself may allocate more.
        ///
        /// Custom hashers must implement [`FromHasherId`](crate::hash::FromHasherId).
        impl<'de, H: $crate::hash::FromHasherId> serde::Deserialize<'de> for $filter<H> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::snapshot::serde::deserialize(
                    deserializer,
                    |bytes| Self::from_slice(bytes, H::from_hasher_id),
                    |input| Self::read(input, H::from_hasher_id),
                )
            }
        }
    };
}
pub(crate) use deserializes;

/// Serializes a snapshot, or reports that there was no memory for it.
pub(crate) fn serialize<S: Serializer>(snapshot: Result<Vec<u8>, OutOfMemory>, serializer: S) -> Result<S::Ok, S::Error> {
    let snapshot = snapshot.map_err(|error| S::Error::custom(format_args!("koel filter: {error}")))?;
    if serializer.is_human_readable() {
        serializer.collect_str(&Base64Display::new(&snapshot, &STANDARD))
    } else {
        serializer.serialize_bytes(&snapshot)
    }
}

/// Deserializes a filter, with `from_slice` if the format has a byte slice, otherwise with `read`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, F>(
    deserializer: D,
    from_slice: fn(&[u8]) -> Result<F, SnapshotError>,
    read: ReadFrom<F>,
) -> Result<F, D::Error> {
    let visitor = Snapshot { from_slice, read };
    if deserializer.is_human_readable() {
        // Not `deserialize_str`: the buffers that serde uses for flattened fields and untagged enums claim to be human-readable
        // even if they come from a binary format.
        deserializer.deserialize_any(visitor)
    } else {
        deserializer.deserialize_bytes(visitor)
    }
}

/// A function that reads one snapshot.
type ReadFrom<F> = fn(&mut Input<'_>) -> Result<F, SnapshotError>;

/// A visitor that accepts a filter as bytes, as a sequence of numbers, or as a text.
struct Snapshot<F> {
    from_slice: fn(&[u8]) -> Result<F, SnapshotError>,
    read: ReadFrom<F>,
}

impl<'de, F> Visitor<'de> for Snapshot<F> {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a koel filter: the bytes of its snapshot, or a text with these in base64")
    }

    /// Reads the slice as a whole, which is twice as fast for large tables as in pieces (docs/PERFORMANCE.md).
    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<F, E> {
        (self.from_slice)(bytes).map_err(|error| format_error(&error))
    }

    /// Reads a sequence of numbers as a stream, for formats that have no byte strings.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<F, A::Error> {
        // The format's own error.
        let mut failure = None;
        let filter = self.read_all(&mut |bytes, offset| {
            for (read, byte) in bytes.iter_mut().enumerate() {
                match seq.next_element_seed(Single::Byte) {
                    Ok(Some(next)) => *byte = next.to_le_bytes()[0],
                    Ok(None) => return Ok(read),
                    Err(error) => {
                        failure = Some(error);
                        return Err(SnapshotError::new(Kind::Io, offset + wide(read), "the format has failed", []));
                    }
                }
            }
            Ok(bytes.len())
        });
        failure.map_or_else(|| filter.map_err(|error| format_error(&error)), Err)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<F, E> {
        let mut digits = Base64 { text, read: 0, piece: [0; PIECE], pending: 0..0 };
        self.read_all(&mut |bytes, _| digits.fill(bytes)).map_err(|error| match error.kind() {
            Kind::Io => E::custom(format_args!("koel filter: {} given, {error}", Excerpt(text))),
            _ => format_error(&error),
        })
    }
}

/// Converts the error to one of the format.
fn format_error<E: Error>(error: &SnapshotError) -> E {
    E::custom(format_args!("koel filter: {error}"))
}

impl<F> Snapshot<F> {
    /// Reads one snapshot, with nothing after it. Ignores the length that the format claims: the header determines the true one.
    fn read_all(&self, fill: &mut Fill<'_>) -> Result<F, SnapshotError> {
        let mut input = Input::new(Source::Stream(fill));
        let filter = (self.read)(&mut input)?;
        input.expect_end().map(|()| filter)
    }
}

/// The number of bytes that are decoded together: a multiple of three, so that each piece of text decodes to whole bytes.
const PIECE: usize = 3 << 10;

/// A base64 text as a stream.
struct Base64<'a> {
    text: &'a str,
    /// The number of digits that have been decoded.
    read: usize,
    piece: [u8; PIECE],
    /// The range of bytes in `piece` that have not been taken yet.
    pending: Range<usize>,
}

impl Base64<'_> {
    /// Decodes the next piece. Returns false at the end.
    fn decode(&mut self) -> Result<bool, SnapshotError> {
        let rest = &self.text.as_bytes()[self.read..];
        let digits = &rest[..rest.len().min(PIECE / 3 * 4)];
        let invalid_at = |at| {
            let message = "expected padded base64, but it is invalid from digit {} on";
            SnapshotError::new(Kind::Io, wide(self.read), message, [wide(self.read + at)])
        };
        let decoded = STANDARD.decode_slice(digits, &mut self.piece).map_err(|error| match error {
            DecodeSliceError::DecodeError(DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _)) => {
                invalid_at(at)
            }
            // The text or its padding ends too early.
            _ => invalid_at(digits.len()),
        })?;
        // Padding before the end would allow several texts for the same bytes.
        if decoded < PIECE && digits.len() < rest.len() {
            return Err(invalid_at(digits.len()));
        }
        self.read += digits.len();
        self.pending = 0..decoded;
        Ok(decoded > 0)
    }

    /// Fills a buffer, as [`Fill`] does.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, SnapshotError> {
        let mut filled = 0;
        while filled < bytes.len() && (!self.pending.is_empty() || self.decode()?) {
            let len = self.pending.len().min(bytes.len() - filled);
            let end = self.pending.start + len;
            bytes[filled..filled + len].copy_from_slice(&self.piece[self.pending.start..end]);
            self.pending.start = end;
            filled += len;
        }
        Ok(filled)
    }
}

const FIELDS: [&str; 6] = ["table", "fingerprint_bits", "bucket_size", "addressing", "seed", "buckets"];

/// Serializes to a struct of six fields. Human-readable formats get names, and the seed as a hexadecimal text, since many readers
/// of JSON store numbers as doubles. Binary formats get the numbers of a snapshot's header (docs/FORMAT.md), since some of them
/// allocate the claimed length of a text.
impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_human_readable = serializer.is_human_readable();
        let (table, addressing) = (self.table(), self.addressing());
        let sizes = [self.fingerprint_bits(), self.bucket_size()].map(u64::from);
        let numbers = [table as u64, sizes[0], sizes[1], addressing as u64, self.seed(), self.buckets()];
        let mut fields = serializer.serialize_struct("Params", FIELDS.len())?;
        for (field, number) in FIELDS.into_iter().zip(numbers) {
            match field {
                "table" if is_human_readable => fields.serialize_field(field, table.name())?,
                "addressing" if is_human_readable => fields.serialize_field(field, addressing.name())?,
                "seed" if is_human_readable => fields.serialize_field(field, &format_args!("{number:#018x}"))?,
                _ => fields.serialize_field(field, &number)?,
            }
        }
        fields.end()
    }
}

/// Validates all limits, as a builder does. Accepts a map of the fields, in any order, or a sequence of their values.
impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Params", &FIELDS, ParamsVisitor)
    }
}

struct ParamsVisitor;

impl<'de> Visitor<'de> for ParamsVisitor {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "koel parameters, a struct of {} fields", FIELDS.len())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut values = [None; FIELDS.len()];
        while let Some(field) = map.next_key_seed(Single::Field)?.map(index) {
            if values[field].is_some() {
                return Err(A::Error::duplicate_field(FIELDS[field]));
            }
            values[field] = Some(map.next_value_seed(Single::Value(FIELDS[field]))?);
        }
        params(values)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Params, A::Error> {
        let mut values = [None; FIELDS.len()];
        for (value, field) in values.iter_mut().zip(FIELDS) {
            *value = seq.next_element_seed(Single::Value(field))?;
        }
        if seq.next_element::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom(format_args!("more than {} values, expected {}", FIELDS.len(), &self as &dyn Expected)));
        }
        params(values)
    }
}

fn params<E: Error>(values: [Option<u64>; FIELDS.len()]) -> Result<Params, E> {
    if let Some(field) = values.iter().position(Option::is_none) {
        return Err(E::missing_field(FIELDS[field]));
    }
    let [table, fingerprint_bits, bucket_size, addressing, seed, buckets] = values.map(Option::unwrap_or_default);
    let (table, addressing) = (TableKind::ALL[index(table)], Addressing::ALL[index(addressing)]);
    let params = Params::new(table, low_half(fingerprint_bits), low_half(bucket_size), buckets, addressing, seed);
    params.map_err(|error| E::custom(format_args!("koel parameters: {error}")))
}

/// A single value, which is deserialized as a number.
#[derive(Clone, Copy)]
enum Single {
    /// A byte of a list.
    Byte,
    /// A name in [`FIELDS`]; its number is its index.
    Field,
    /// The value of this field. A name becomes its number.
    Value(&'static str),
}

impl<'de> DeserializeSeed<'de> for Single {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        match self {
            Self::Field => deserializer.deserialize_identifier(self),
            // Human-readable formats are self-describing. Asked for a number, they would repeat a given string in their own error.
            _ if deserializer.is_human_readable() => deserializer.deserialize_any(self),
            Self::Byte => deserializer.deserialize_u8(self),
            Self::Value(_) => deserializer.deserialize_u64(self),
        }
    }
}

impl Visitor<'_> for Single {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Byte => f.write_str("a byte of the snapshot"),
            Self::Field => write!(f, "one of {FIELDS:?}, the fields of koel parameters"),
            Self::Value("table") => f.write_str("single or packed"),
            Self::Value("addressing") => f.write_str("any-size or power-of-two"),
            Self::Value("seed") => f.write_str("0x and sixteen digits from 0 to f"),
            Self::Value(field) => write!(f, "a whole number for {field}"),
        }
    }

    /// Accepts the numbers of binary formats from human-readable ones, too, since serde's buffers claim to be human-readable (see
    /// [`deserialize`]).
    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        let numbers = match self {
            Self::Byte => 0..=u8::MAX.into(),
            Self::Field => 0..=wide(FIELDS.len() - 1),
            Self::Value("table" | "addressing") => 0..=1,
            Self::Value("fingerprint_bits" | "bucket_size") => 0..=u32::MAX.into(),
            Self::Value(_) => 0..=u64::MAX,
        };
        if numbers.contains(&number) { Ok(number) } else { Err(unexpected(&number, self)) }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_or_else(|_| Err(unexpected(&number, self)), |number| self.visit_u64(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        let number = match self {
            Self::Field => FIELDS.iter().position(|&field| field == text).map(wide),
            Self::Value("table") => TableKind::ALL.iter().position(|table| table.name() == text).map(wide),
            Self::Value("addressing") => Addressing::ALL.iter().position(|one| one.name() == text).map(wide),
            Self::Value("seed") => hexadecimal(text),
            Self::Byte | Self::Value(_) => None,
        };
        number.ok_or_else(|| unexpected(&Excerpt(text), self))
    }
}

/// Parses a seed as it is written: `0x` and sixteen digits in lower case.
fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16)?;
    let are_valid = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    u64::from_str_radix(digits, 16).ok().filter(|_| are_valid)
}

fn unexpected<E: Error>(given: &dyn Display, expected: Single) -> E {
    E::custom(format_args!("{given} given, expected {}", &expected as &dyn Expected))
}

/// A text in an error message: the whole text if it is short, otherwise its length.
struct Excerpt<'a>(&'a str);

impl Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            ..=40 => write!(f, "{:?}", self.0),
            bytes => write!(f, "a text of {bytes} bytes"),
        }
    }
}
