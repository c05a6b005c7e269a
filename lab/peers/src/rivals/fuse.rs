//! Binary fuse filters: the smallest of all, for sets that never change.

use std::marker::PhantomData;

use anyhow::{anyhow, bail};

use super::digest;
use crate::peer::{Family, Peer, count};

/// A static filter, built from all keys at once. It accepts hashes.
pub(super) struct Fuse<F> {
    name: &'static str,
    bits: i32,
    filter: PhantomData<F>,
}

impl<F> Fuse<F> {
    pub(super) fn new(name: &'static str, bits: i32) -> Self {
        Self { name, bits, filter: PhantomData }
    }
}

impl<F> Peer for Fuse<F>
where
    F: xorf::Filter<u64> + for<'a> TryFrom<&'a [u64], Error = &'static str>,
{
    type Filter = F;

    const FAMILY: Family = Family::Fuse;

    fn title(&self, _: usize) -> String {
        format!("xorf 0.13, {}", self.name)
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<F> {
        // It counts its slots, of which there are more than items, in 32 bits.
        const MOST: usize = 3_800_000_000;
        if keys.len() > MOST {
            bail!("{} items given, but this filter holds at most {MOST}; give fewer --items to measure it", keys.len());
        }
        let digests: Vec<_> = keys.iter().map(|&key| digest(key)).collect();
        F::try_from(&digests).map_err(|error| anyhow!(error))
    }

    fn expected_rate(&self, _: &F, _: usize) -> f64 {
        2_f64.powi(-self.bits)
    }

    fn find(&self, filter: &F, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&digest(key)))
    }
}
