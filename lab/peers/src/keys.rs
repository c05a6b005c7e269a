//! The keys, the same for all, and made before anything is timed.

use anyhow::bail;

/// Keys that go in, as many that do not, and as many again of which about half went in.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    pub(crate) absent: Vec<u64>,
    /// In an order that nobody can foretell, for a filter that guesses the answer would guess right.
    pub(crate) mixed: Vec<u64>,
    /// How many of the mixed ones went in.
    pub(crate) mixed_present: usize,
}

impl Keys {
    pub(crate) fn new(items: usize) -> anyhow::Result<Self> {
        let [mut present, mut absent, mut mixed] = [const { Vec::new() }; 3];
        if [&mut present, &mut absent, &mut mixed].into_iter().any(|keys| keys.try_reserve_exact(items).is_err()) {
            bail!("--items: {items} given, but there is no memory for the keys, at 24 bytes an item; give fewer");
        }
        let items = items as u64;
        let goes_in = |n: u64| mix(!n) & 1 == 0;
        present.extend((0..items).map(mix));
        absent.extend((items..2 * items).map(mix));
        mixed.extend((0..items).map(|n| mix(if goes_in(n) { n } else { items + n })));
        Ok(Self { present, absent, mixed, mixed_present: (0..items).filter(|&n| goes_in(n)).count() })
    }

    /// How many go in.
    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }
}

/// The last step of `SplitMix64` (Steele, Lea and Flood, 2014): a bijection, so different numbers give different keys, in
/// no order.
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
