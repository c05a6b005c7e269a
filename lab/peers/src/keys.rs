//! The keys: the same for all filters, generated before anything is timed.

use anyhow::bail;

/// Keys that are inserted, as many that are not, and as many of which about half are.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    pub(crate) absent: Vec<u64>,
    /// Present and absent keys in random order, so that neither a filter nor a branch predictor can guess the answer.
    pub(crate) mixed: Vec<u64>,
    /// How many of the mixed keys are present.
    pub(crate) mixed_present: usize,
}

impl Keys {
    pub(crate) fn new(items: usize) -> anyhow::Result<Self> {
        let [mut present, mut absent, mut mixed] = [const { Vec::new() }; 3];
        if [&mut present, &mut absent, &mut mixed].into_iter().any(|keys| keys.try_reserve_exact(items).is_err()) {
            bail!("--items: {items} given, but the keys, of 24 bytes per item, could not be allocated; give fewer");
        }
        let items = items as u64;
        let goes_in = |n: u64| mix(!n) & 1 == 0;
        present.extend((0..items).map(mix));
        absent.extend((items..2 * items).map(mix));
        mixed.extend((0..items).map(|n| mix(if goes_in(n) { n } else { items + n })));
        Ok(Self { present, absent, mixed, mixed_present: (0..items).filter(|&n| goes_in(n)).count() })
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }
}

/// The last step of `SplitMix64` (Steele, Lea and Flood, 2014): a bijection, so that different numbers give different keys,
/// which look random.
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
