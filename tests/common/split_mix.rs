//! Random numbers with fixed seeds, for tests and for the tables' generator.

/// The generator of Steele, Lea and Flood (2014).
#[derive(Clone)]
pub(crate) struct SplitMix64(pub(crate) u64);

impl Iterator for SplitMix64 {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(word ^ word >> 31)
    }
}

/// What gives a filter the hash that its tables had from this number before it folded what it is given: loads and predictions were
/// measured with these.
#[allow(dead_code, reason = "not every program has such measurements")]
pub(crate) fn unfolded(addressing: koel::Addressing, hash: u64) -> u64 {
    if addressing == koel::Addressing::AnySize { hash ^ hash >> 31 ^ hash >> 62 } else { hash }
}
