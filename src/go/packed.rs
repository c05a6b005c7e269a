//! Packed tables, from Go's order to this library's and back. The nibbles ascend in both, so that codewords stay what they are
//! and only high parts change places.

use super::order::{Order, Permutation, sorted};
use crate::{
    bits,
    filter::RawFilter,
    params::Params,
    storage::{OutOfMemory, Storage},
    table::{CODEWORD_BITS, Corrupt},
};

/// Why a table from outside is none of Go's.
pub(super) enum Refusal {
    /// The codeword of a bucket is not in the codebook.
    Codeword { bucket: u64, codeword: u32 },
    /// There is no memory to remember the order in.
    OutOfMemory(OutOfMemory),
}

/// Sorts every bucket, and remembers how it was.
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

/// Gives the buckets in `bytes`, a copy of the table and its padding, the order that is remembered, where Go can have it.
pub(super) fn restore<S: Storage>(order: &Order, filter: &RawFilter<S>, bytes: &mut [u8]) {
    for (bucket, permutation) in order.iter() {
        if let Some(values) = permutation.restore(filter.packed_values(bucket)) {
            HighParts::of(filter.params(), bucket).put(bytes, values);
        }
    }
}

/// Where the high parts of a bucket are.
struct HighParts {
    bit: u64,
    width: u32,
}

impl HighParts {
    fn of(params: &Params, bucket: u64) -> Self {
        Self { bit: bucket * u64::from(params.bucket_bits()) + u64::from(CODEWORD_BITS), width: params.fingerprint_bits() - 4 }
    }

    /// Puts the high parts of four fingerprints there.
    fn put(&self, bytes: &mut [u8], values: [u32; 4]) {
        for (value, slot) in values.into_iter().zip(0..) {
            bits::set(bytes, self.bit + slot * u64::from(self.width), self.width, u64::from(value >> 4));
        }
    }
}
