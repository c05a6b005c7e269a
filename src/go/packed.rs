//! Converts packed tables between Go's order of slots and this library's. Nibbles are sorted in both, so codewords stay the same
//! and only high parts are exchanged.

use super::order::{Order, Permutation, sorted};
use crate::{
    bits,
    filter::RawFilter,
    params::Params,
    storage::{OutOfMemory, Storage},
    table::{CODEWORD_BITS, Corrupt},
};

/// Why a packed table cannot be read.
pub(super) enum Refusal {
    /// The codeword of a bucket is not in the codebook.
    Codeword { bucket: u64, codeword: u32 },
    /// The memory for the order could not be allocated.
    OutOfMemory(OutOfMemory),
}

/// Sorts every bucket, and returns the order that it had.
pub(super) fn sort(filter: &mut RawFilter) -> Result<Order, Refusal> {
    let buckets = filter.params().buckets();
    let corrupt = |bucket| filter.first_corrupt(bucket..bucket + 1).map(|(_, corrupt)| corrupt);
    for bucket in 0..buckets {
        if let Some(Corrupt::Codeword(codeword)) = corrupt(bucket) {
            return Err(Refusal::Codeword { bucket, codeword });
        }
    }
    let in_other_order = (0..buckets).filter(|&bucket| corrupt(bucket).is_some());
    let order = Order::remember(in_other_order.map(|bucket| (bucket, Permutation::of(filter.packed_values(bucket)))));
    let order = order.map_err(Refusal::OutOfMemory)?;
    for (bucket, _) in order.iter() {
        let (values, highs) = (sorted(filter.packed_values(bucket)), HighParts::of(filter.params(), bucket));
        highs.put(filter.bytes_mut(), values);
    }
    Ok(order)
}

/// Restores the remembered order of buckets in `bytes`, a copy of the table and its padding, where that order is still valid.
pub(super) fn restore<S: Storage>(order: &Order, filter: &RawFilter<S>, bytes: &mut [u8]) {
    for (bucket, permutation) in order.iter() {
        if let Some(values) = permutation.restore(filter.packed_values(bucket)) {
            HighParts::of(filter.params(), bucket).put(bytes, values);
        }
    }
}

/// The position of the high parts of a bucket.
struct HighParts {
    bit: u64,
    width: u32,
}

impl HighParts {
    fn of(params: &Params, bucket: u64) -> Self {
        Self { bit: bucket * u64::from(params.bucket_bits()) + u64::from(CODEWORD_BITS), width: params.fingerprint_bits() - 4 }
    }

    /// Writes the high parts of four fingerprints.
    fn put(&self, bytes: &mut [u8], values: [u32; 4]) {
        for (value, slot) in values.into_iter().zip(0..) {
            bits::set(bytes, self.bit + slot * u64::from(self.width), self.width, u64::from(value >> 4));
        }
    }
}
