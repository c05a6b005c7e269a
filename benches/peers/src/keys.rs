//! The keys, the same for all, and made before anything is timed.

use anyhow::bail;

/// Keys that go in, and as many that do not.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    pub(crate) absent: Vec<u64>,
}

impl Keys {
    pub(crate) fn new(items: usize) -> anyhow::Result<Self> {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        if present.try_reserve_exact(items).is_err() || absent.try_reserve_exact(items).is_err() {
            bail!("--items: {items} given, but there is no memory for the keys, at 16 bytes an item; give fewer");
        }
        let items = items as u64;
        present.extend((0..items).map(mix));
        absent.extend((items..2 * items).map(mix));
        Ok(Self { present, absent })
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
