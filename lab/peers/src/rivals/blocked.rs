//! A blocked Bloom filter: a lookup reads one cache line.

use sbbf_rs_safe::Filter;

use super::digest;
use crate::peer::{Family, Peer, count};

/// The filter of Parquet files: blocks of eight words of 32 bits, in each of which an item sets one bit. It accepts hashes.
pub(super) struct SplitBlock {
    rate: f64,
    items_per_block: f64,
}

const WORDS: i32 = 8;
const WORD_BITS: u32 = 32;
const BLOCK_BITS: usize = 256;

impl SplitBlock {
    /// Its constructor takes a whole number of bits per item; by the number of blocks, the rate can be chosen freely.
    pub(super) fn new(rate: f64) -> Self {
        // By bisection. A block with as many items as bits has a rate of nearly 1.
        let (mut low, mut high) = (0.0, f64::from(WORD_BITS) * f64::from(WORDS));
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if rate_of_blocks(middle) > rate { high = middle } else { low = middle }
        }
        Self { rate, items_per_block: low }
    }

    fn blocks(&self, items: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "few more than items, of which there are at most 2³²"
        )]
        let blocks = (items as f64 / self.items_per_block).ceil() as usize;
        blocks
    }
}

/// The rate, given the mean number of items per block: it is Poisson distributed, and a block errs if all of its words do.
fn rate_of_blocks(mean: f64) -> f64 {
    let (mut chance, mut unset, mut rate) = ((-mean).exp(), 1.0, 0.0);
    for items in 1..1000 {
        chance *= mean / f64::from(items);
        unset *= 1.0 - 1.0 / f64::from(WORD_BITS);
        rate += chance * (1.0_f64 - unset).powi(WORDS);
    }
    rate
}

impl Peer for SplitBlock {
    type Filter = Filter;

    const FAMILY: Family = Family::Blocked;

    fn title(&self, _: usize) -> String {
        String::from("sbbf-rs-safe 0.3, blocked Bloom, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Filter> {
        let mut filter = Filter::new(BLOCK_BITS, self.blocks(keys.len()));
        // The answer, whether the item was found before, is not needed.
        count(keys, |key| filter.insert_hash(digest(key)));
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Filter, items: usize) -> f64 {
        rate_of_blocks(BLOCK_BITS as f64 * items as f64 / (8.0 * filter.as_bytes().len() as f64))
    }

    fn find(&self, filter: &Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains_hash(digest(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of the table of sizes in Parquet's specification.
    #[test]
    fn as_many_bits_as_parquet_says() {
        for (rate, bits) in [(0.1, 6.0), (0.01, 10.5), (0.001, 16.9), (0.0001, 26.4), (0.00001, 41.0)] {
            let found = BLOCK_BITS as f64 / SplitBlock::new(rate).items_per_block;
            assert!((found - bits).abs() < 0.06, "{rate}: {found}, not {bits}");
        }
    }
}
