//! Comparison bit for bit. `==` of filters compares what they hold, however it is laid out.

#![allow(dead_code, reason = "each test uses a part of it")]

use koel::{CuckooFilter, ElasticFilter, ElasticView, FilterView, hash::Hasher};

/// A filter that can be written.
pub trait Bits {
    /// Returns the bytes that are written, which contain every bit of the filter.
    fn bits(&self) -> Vec<u8>;
}

/// Returns whether both filters are written as the same bytes. Such filters must also be equal.
#[track_caller]
pub fn same_bits<A: Bits + PartialEq<B>, B: Bits>(ours: &A, theirs: &B) -> bool {
    let is_same = ours.bits() == theirs.bits();
    assert!(!is_same || ours == theirs, "filters with the same bits are not equal");
    is_same
}

impl<H: Hasher> Bits for CuckooFilter<H> {
    fn bits(&self) -> Vec<u8> {
        self.to_bytes()
    }
}

impl<D: AsRef<[u8]>, H: Hasher> Bits for FilterView<D, H> {
    fn bits(&self) -> Vec<u8> {
        self.to_bytes()
    }
}

impl<H: Hasher> Bits for ElasticFilter<H> {
    fn bits(&self) -> Vec<u8> {
        self.to_bytes()
    }
}

impl<D: AsRef<[u8]>, H: Hasher> Bits for ElasticView<D, H> {
    fn bits(&self) -> Vec<u8> {
        self.to_bytes()
    }
}

impl<T: Bits> Bits for Option<T> {
    fn bits(&self) -> Vec<u8> {
        self.as_ref().map_or_else(Vec::new, Bits::bits)
    }
}
