//! Comparison by content: two filters are equal if they know the same items, each as often, wherever their tables have them.
//!
//! Where a fingerprint is depends on the order of insertions, and so does the shape of a growing filter. What a filter knows of an
//! item does not: the smaller of its two buckets, its fingerprint, and in a growing filter the bits of its stream that the first
//! generation knows. Together, these are its class, and the content of a filter is a number of copies for each class.
//!
//! Comparing classes one by one would look up each in both filters, with two reads that wait for memory, and later generations
//! cannot look up a class of the first. So the copies are added up instead, each as a number of 128 bits that its class determines.
//! Equal contents have equal sums. Different contents have equal sums with a probability of 2⁻¹²⁸. But with known numbers, items with
//! a given sum can be chosen quickly (Wagner, "A Generalized Birthday Problem", CRYPTO 2002). So contents with equal sums are added up
//! again, with a salt that depends on the order of all fingerprints in both filters, and thus on all items.

use crate::hash::split_mix;

/// The sum over all copies that a filter has.
pub(crate) struct Content {
    salt: u64,
    sum: u128,
    /// A number that depends on the order in which copies were added.
    order: u64,
}

impl Content {
    pub fn new(salt: u64) -> Self {
        Self { salt, sum: 0, order: 0 }
    }

    /// Adds copies of the item that is known by its smaller bucket and these bits.
    #[inline]
    pub fn add(&mut self, bucket: u64, known: u64, copies: u32) {
        // Both words together determine `known` and `bucket`, so different classes have different numbers.
        let mixed = split_mix(known.wrapping_add(self.salt));
        let low = split_mix(mixed ^ bucket);
        let high = split_mix(low ^ mixed.rotate_left(32));
        let number = u128::from(high) << 64 | u128::from(low);
        self.sum = self.sum.wrapping_add(number.wrapping_mul(copies.into()));
        self.order = (self.order ^ low).wrapping_mul(ODD).rotate_left(29);
    }
}

/// Makes [`Content::order`] depend on the order. The value is 2⁶⁴ divided by the golden ratio, made odd.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns true if both contents, which are added up for a given salt, are the same.
pub(crate) fn same_content(of_both: impl Fn(u64) -> [Content; 2]) -> bool {
    let [ours, theirs] = of_both(0);
    ours.sum == theirs.sum && {
        // The salt does not depend on which filter comes first.
        let [ours, theirs] = of_both(split_mix(ours.order).wrapping_add(split_mix(theirs.order)));
        ours.sum == theirs.sum
    }
}
