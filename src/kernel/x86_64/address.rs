//! [`AnySize`] in vectors, tested against it in `vector.rs`.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::lanes::Lanes;
use crate::table::{AnySize, MULTIPLIER};

/// The addressing of tables with fewer than 2³² buckets: 32-bit products suffice for them.
#[derive(Clone, Copy)]
pub(super) struct AddressLanes {
    buckets: u64,
    /// The number of different fingerprints.
    fingerprints: u64,
}

impl AddressLanes {
    /// `None` if there are too many buckets.
    pub(super) fn new(address: AnySize) -> Option<Self> {
        let AnySize { buckets, fingerprint_bits } = address;
        (buckets < 1 << 32).then_some(Self { buckets, fingerprints: (1 << fingerprint_bits) - 1 })
    }

    /// [`AnySize::buckets`].
    #[inline(always)]
    pub(super) fn buckets<L: Lanes>(self, proof: L::Proof, hash: L) -> ([L; 2], L) {
        let splat = |value| L::splat(proof, value);
        let (m, one, multiplier) = (splat(self.buckets), splat(1), splat(MULTIPLIER));
        let both = product(hash, m);
        let first = both.shift_right::<32>();
        let fingerprint = both.product(splat(self.fingerprints)).shift_right::<32>().add(one);
        let spread = fingerprint.product_low(multiplier);
        let spread = spread.product_low(spread.shift_right::<32>());
        let sum = product(spread, m).shift_right::<32>().or(one);
        ([first, sum.sub(first).add_if_negative(m)], fingerprint)
    }
}

/// The product of a 64-bit and a 32-bit number, shifted right by 32 bits.
#[inline(always)]
fn product<L: Lanes>(a: L, m: L) -> L {
    a.shift_right::<32>().product(m).add(a.product(m).shift_right::<32>())
}
