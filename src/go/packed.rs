//! Packed tables, from Go's order to this library's and back. The nibbles ascend in both, so that codewords stay what they are
//! and only high parts change places.

use super::order::{Order, Permutation, sorted};
use crate::{
    bits,
    storage::Storage,
    table::codebook::CODEWORD_BITS,
    table::{Corrupt, Packed, Table as _, TableMut as _},
};

/// Why a table from outside is none of Go's.
pub(super) enum Refusal {
    /// The codeword of a bucket is not in the codebook.
    Codeword { bucket: u64, codeword: u32 },
    /// There is no memory to remember the order in.
    OutOfMemory,
}

/// Sorts every bucket, and remembers how it was.
pub(super) fn sort(buckets: u64, table: &mut Packed) -> Result<Order, Refusal> {
    for bucket in 0..buckets {
        if let Some(Corrupt::Codeword(codeword)) = table.corrupt(bucket) {
            return Err(Refusal::Codeword { bucket, codeword });
        }
    }
    let in_other_order = (0..buckets).filter(|&bucket| table.corrupt(bucket).is_some());
    let order = Order::remember(in_other_order.map(|bucket| (bucket, Permutation::of(table.values(bucket)))));
    let order = order.ok_or(Refusal::OutOfMemory)?;
    for (bucket, _) in order.iter() {
        let (values, place) = (sorted(table.values(bucket)), Place::new(table, bucket));
        place.put(table.memory_mut(), values);
    }
    Ok(order)
}

/// Gives the buckets in `bytes`, a copy of the table and [`bits::PADDING`], the order that is remembered, where Go can have it.
pub(super) fn restore(order: &Order, table: &Packed<impl Storage>, bytes: &mut [u8]) {
    for (bucket, permutation) in order.iter() {
        if let Some(values) = permutation.restore(table.values(bucket)) {
            Place::new(table, bucket).put(bytes, values);
        }
    }
}

/// Where the high parts of a bucket are.
struct Place {
    bit: u64,
    width: u32,
}

impl Place {
    fn new(table: &Packed<impl Storage>, bucket: u64) -> Self {
        Self { bit: bucket * u64::from(table.bucket_bits()) + u64::from(CODEWORD_BITS), width: table.high_bits() }
    }

    /// Puts the high parts of four fingerprints there.
    fn put(&self, bytes: &mut [u8], values: [u32; 4]) {
        for (value, slot) in values.into_iter().zip(0..) {
            bits::set(bytes, self.bit + slot * u64::from(self.width), self.width, u64::from(value >> 4));
        }
    }
}
