//! A lane: the part of a growing filter that has the items whose stream begins with certain bits. Lanes grow independently.

use alloc::vec::Vec;
use core::iter;

use super::{ElasticParams, error::Refused, layer::Layer, level::Place, plan::LayerPlan, shard::Key, stream::Shares};
use crate::{
    kernel::{Dispatch, Site},
    storage::{OutOfMemory, reserve, reserved},
    table::{AnySize, Uniform},
};

/// Two siblings are joined by a removal if together they fill less than this share of one shard's slots, so that the joined one
/// is far from full.
const MOST_TO_JOIN: (usize, usize) = (2, 5);

/// Two siblings are joined on request if together they fill at most this share.
const MOST_TO_SHRINK: (usize, usize) = (9, 10);

/// See the module.
#[derive(Clone)]
pub(super) struct Lane {
    params: ElasticParams,
    /// Where the low fingerprints go, in all its shards.
    address: AnySize,
    shares: Shares,
    first: Layer,
    /// Added when the bits of the layer before were used up.
    later: Vec<Layer>,
    dispatch: Dispatch,
}

impl Lane {
    pub(super) fn new(params: &ElasticParams, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        Layer::new(params.layer(0), dispatch).map(|first| Self::with_first(params, first))
    }

    /// A lane with this first layer alone.
    pub(super) fn with_first(params: &ElasticParams, first: Layer) -> Self {
        let (address, shares, dispatch) = (params.address(), params.shares(), first.dispatch());
        Self { params: *params, address, shares, first, later: Vec::new(), dispatch }
    }

    /// Adds a later layer that was read.
    pub(super) fn push_layer(&mut self, layer: Layer) -> Result<(), OutOfMemory> {
        reserve(&mut self.later, 1)?;
        self.later.push(layer);
        Ok(())
    }

    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> {
        iter::once(&self.first).chain(&self.later)
    }

    fn layers_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Layer> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// The layer that takes new items.
    #[inline]
    fn last(&self) -> &Layer {
        self.later.last().unwrap_or(&self.first)
    }

    #[inline]
    fn last_mut(&mut self) -> &mut Layer {
        self.later.last_mut().unwrap_or(&mut self.first)
    }

    pub(super) fn params(&self) -> &ElasticParams {
        &self.params
    }

    /// The number of shards.
    pub(super) fn shards(&self) -> usize {
        self.layers().map(Layer::shards).sum()
    }

    #[inline]
    pub(super) fn contains(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.first.contains(key) || self.has_later() && self.later_contain(hash)
    }

    /// What the lane needs of a hash.
    #[inline]
    pub(super) fn key(&self, hash: Uniform) -> Key {
        Key::new(&self.address, self.shares.stream(hash), hash)
    }

    /// Where a hash with this stream is in the first layer.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a look-up's instructions")]
    #[inline(always)]
    pub(super) fn site(&self, stream: u64) -> Site<'_> {
        self.first.site(stream)
    }

    /// True if there are later layers.
    #[inline]
    pub(super) fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Prefetches the buckets of a hash in the layer that takes new items.
    pub(super) fn prefetch(&self, hash: Uniform) {
        self.last().prefetch(self.key(hash));
    }

    /// True if a hash is in a later layer.
    #[cold]
    pub(super) fn later_contain(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.later.iter().any(|layer| layer.contains(key))
    }

    pub(super) fn count(&self, hash: Uniform) -> u32 {
        let key = self.key(hash);
        self.layers().map(|layer| layer.count(key)).sum()
    }

    /// Inserts a hash, if it fits into the last layer as that is; otherwise nothing has changed, and the place of the full shard is
    /// returned.
    #[inline]
    pub(super) fn insert(&mut self, hash: Uniform) -> Result<(), Place> {
        let key = self.key(hash);
        self.last_mut().insert(key)
    }

    /// Inserts a hash for which [`insert`](Self::insert) has found this shard full. The tables may take `allowed`
    /// more bytes.
    ///
    /// The items are the same as before, unless the hash was inserted.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: Uniform, full: Place, allowed: usize) -> Result<(), Refused> {
        let key = self.key(hash);
        if self.last_mut().insert_growing(full, key, allowed)? {
            return Ok(());
        }
        let number = self.last().number().checked_add(1).ok_or(Refused::Layers)?;
        let plan = self.params.layer(number);
        self.insert_into_new_layer(plan, self.later.len(), key, allowed)
    }

    /// Adds a layer with an item, before the later layer with this index. If that is not possible, nothing has changed.
    fn insert_into_new_layer(&mut self, plan: LayerPlan, at: usize, key: Key, allowed: usize) -> Result<(), Refused> {
        if plan.table_bytes() > allowed {
            return Err(Refused::Limit { needed: plan.table_bytes() });
        }
        reserve(&mut self.later, 1)?;
        let mut layer = Layer::new(plan, self.dispatch)?;
        // An empty shard has room.
        let is_inserted = layer.insert(key).is_ok();
        debug_assert!(is_inserted);
        self.later.insert(at, layer);
        Ok(())
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut later = reserved(self.later.len())?;
        for layer in &self.later {
            later.push(layer.try_clone()?);
        }
        Ok(Self { first: self.first.try_clone()?, later, ..*self })
    }

    /// Inserts all items of another lane with the same number. The tables may take `allowed` more bytes. If it fails, some have
    /// been inserted.
    pub(super) fn merge(&mut self, other: &Self, allowed: usize) -> Result<(), Refused> {
        let most_bytes = self.table_bytes().saturating_add(allowed);
        for layer in other.layers() {
            for (shard, prefix) in layer.in_order() {
                let mut result = Ok(());
                shard.each_fingerprint(|bucket, fingerprint| {
                    let key = Key::of_stored(shard.params(), prefix, bucket, fingerprint);
                    result = self.insert_stored(key, layer.number(), most_bytes);
                    result.is_ok()
                });
                result?;
            }
        }
        Ok(())
    }

    /// Inserts an item of which a layer with this number, and no later one, knows enough bits.
    fn insert_stored(&mut self, key: Key, number: u8, most_bytes: usize) -> Result<(), Refused> {
        let after = self.later.partition_point(|layer| layer.number() <= number);
        let allowed = most_bytes.saturating_sub(self.table_bytes());
        let layer = self.later[..after].last_mut().unwrap_or(&mut self.first);
        let Err(full) = layer.insert(key) else { return Ok(()) };
        if layer.insert_growing(full, key, allowed)? {
            return Ok(());
        }
        let next = layer.number().checked_add(1).ok_or(Refused::Layers)?;
        let plan = self.params.layer(next.min(number));
        self.insert_into_new_layer(plan, after, key, allowed)
    }

    /// Removes one copy of the hash's fingerprint, of the longest that there is: an item in a later layer, where more of its bits
    /// are known, is never taken for another one in an earlier layer. Gives back memory if two shards have become thin.
    #[inline]
    pub(super) fn remove(&mut self, hash: Uniform) -> bool {
        let key = self.key(hash);
        let is_removed = self.layers_mut().rev().any(|layer| {
            let Some(place) = layer.remove(key) else { return false };
            let most = share(layer, MOST_TO_JOIN);
            if layer.items(place) <= most / 2 {
                // Without memory for the joined shard, they stay two.
                let _ = layer.join(place, most);
            }
            true
        });
        if is_removed {
            self.drop_empty_layers();
        }
        is_removed
    }

    /// A later layer that has become empty is not needed.
    fn drop_empty_layers(&mut self) {
        while self.later.pop_if(|layer| layer.len() == 0).is_some() {}
    }

    /// Joins all shards that are thin enough.
    pub(super) fn shrink(&mut self) -> Result<(), OutOfMemory> {
        self.drop_empty_layers();
        for layer in self.layers_mut() {
            let most = share(layer, MOST_TO_SHRINK);
            layer.join_all(most)?;
        }
        Ok(())
    }

    /// The probability that a hash of this lane is found that was never inserted.
    pub(super) fn false_positive_rate(&self) -> f64 {
        self.layers().map(Layer::false_positive_rate).sum::<f64>().min(1.0)
    }

    pub(super) fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub(super) fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
        self.layers_mut().for_each(|layer| layer.set_dispatch(dispatch));
    }

    pub(super) fn len(&self) -> usize {
        self.layers().map(Layer::len).sum()
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.layers().map(Layer::table_bytes).sum()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.later.capacity() * size_of::<Layer>() + self.layers().map(Layer::size_in_bytes).sum::<usize>()
    }
}

/// A share of the slots of a layer's shards.
fn share(layer: &Layer, (numerator, denominator): (usize, usize)) -> usize {
    layer.slots_of_a_shard() / denominator * numerator
}
