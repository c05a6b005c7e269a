//! A lane: the part of a growing filter that has the items whose stream begins with certain bits. Lanes grow independently.

use alloc::vec::Vec;

use super::{
    error::Refused,
    layer::{Layer, LayerPlan, copies, reserve, reserved},
    plan::LanePlan,
    shard::{Arrival, Shard, Stored, stream},
};
use crate::{
    filter::Located,
    kernel::Dispatch,
    storage::OutOfMemory,
    table::{TableParams as _, Uniform},
};

/// Two siblings are joined by a removal if together they fill less than this share of one shard's slots, so that the joined one
/// is far from full.
const MOST_TO_JOIN: (usize, usize) = (2, 5);

/// Two siblings are joined on request if together they fill at most this share.
const MOST_TO_SHRINK: (usize, usize) = (9, 10);

/// See the module.
#[derive(Clone)]
pub(super) struct Lane {
    plan: LanePlan,
    /// The first has most items; later ones were added when the bits of the one before were used up.
    layers: Vec<Layer>,
    dispatch: Dispatch,
}

impl Lane {
    pub(super) fn new(plan: LanePlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let mut layers = reserved(1)?;
        layers.push(Layer::new(plan.layer(0), dispatch)?);
        Ok(Self { plan, layers, dispatch })
    }

    pub(super) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub(super) fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.layers.iter().flat_map(Layer::shards)
    }

    #[inline]
    pub(super) fn contains(&self, hash: Uniform) -> bool {
        let stream = stream(hash);
        self.layers.iter().any(|layer| layer.shard(layer.find(stream)).contains(hash))
    }

    /// Prefetches the buckets of a hash.
    pub(super) fn prefetch(&self, hash: Uniform) {
        let _ = self.locate(hash);
    }

    /// Where the first layer keeps a hash. Prefetches its buckets there.
    #[inline]
    pub(super) fn locate(&self, hash: Uniform) -> Option<(usize, Located)> {
        let layer = self.layers.first()?;
        let at = layer.find(stream(hash));
        Some((at, layer.shard(at).locate(hash)))
    }

    /// [`contains`](Self::contains) for a hash that was located.
    #[inline]
    pub(super) fn contains_located(&self, hash: Uniform, located: Option<(usize, Located)>) -> bool {
        match (&*self.layers, located) {
            ([layer], Some((at, located))) => layer.shard(at).contains_located(located),
            _ => self.contains(hash),
        }
    }

    pub(super) fn count(&self, hash: Uniform) -> u32 {
        let stream = stream(hash);
        self.layers.iter().map(|layer| layer.shard(layer.find(stream)).count(hash)).sum()
    }

    /// Inserts a hash, if it fits into the last layer as that is; otherwise nothing has changed, and the index of the full shard is
    /// returned.
    #[inline]
    pub(super) fn insert(&mut self, hash: Uniform) -> Result<(), usize> {
        self.layers.last_mut().map_or(Err(0), |layer| layer.insert(stream(hash), hash))
    }

    /// Inserts a hash for which [`insert`](Self::insert) has found the shard at this index full. The tables may take `allowed`
    /// more bytes.
    ///
    /// Nothing has changed, unless the hash was inserted.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: Uniform, at: usize, allowed: usize) -> Result<(), Refused> {
        if let Some(layer) = self.layers.last_mut() {
            if let Some(refused) = copies(layer.shard(at), hash) {
                return Err(refused);
            }
            if layer.insert_splitting(at, stream(hash), hash, allowed)? {
                return Ok(());
            }
        }
        let plan = self.plan.layer(self.layers.last().map_or(0, |layer| layer.number() + 1));
        self.insert_into_new_layer(plan, self.layers.len(), stream(hash), hash, allowed)
    }

    /// Adds a layer with an item. If that is not possible, nothing has changed.
    fn insert_into_new_layer(
        &mut self,
        plan: LayerPlan,
        at: usize,
        stream: u64,
        item: impl Arrival,
        allowed: usize,
    ) -> Result<(), Refused> {
        if plan.table_bytes() > allowed {
            return Err(Refused::Limit { needed: plan.table_bytes() });
        }
        reserve(&mut self.layers, 1)?;
        let mut layer = Layer::new(plan, self.dispatch)?;
        // An empty shard has room.
        let is_inserted = layer.insert(stream, item).is_ok();
        debug_assert!(is_inserted);
        self.layers.insert(at, layer);
        Ok(())
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut layers = reserved(self.layers.len())?;
        for layer in &self.layers {
            layers.push(layer.try_clone()?);
        }
        Ok(Self { layers, ..*self })
    }

    /// Inserts all items of another lane with the same number. The tables may take `allowed` more bytes. If it fails, some have
    /// been inserted.
    pub(super) fn merge(&mut self, other: &Self, allowed: usize) -> Result<(), Refused> {
        let most_bytes = self.table_bytes().saturating_add(allowed);
        for layer in &other.layers {
            for (shard, prefix) in layer.in_order() {
                let mut result = Ok(());
                shard.each_fingerprint(|bucket, fingerprint| {
                    result = self.insert_stored(Stored::new(shard, prefix, bucket, fingerprint), layer.number(), most_bytes);
                    result.is_ok()
                });
                result?;
            }
        }
        Ok(())
    }

    /// Inserts an item of which a layer with this number, and no later one, knows enough bits.
    fn insert_stored(&mut self, item: Stored, number: usize, most_bytes: usize) -> Result<(), Refused> {
        let after = self.layers.partition_point(|layer| layer.number() <= number);
        let mut next = 0;
        if let Some(layer) = self.layers[..after].last_mut() {
            let Err(at) = layer.insert(item.stream, item) else { return Ok(()) };
            if let Some(refused) = copies(layer.shard(at), item) {
                return Err(refused);
            }
            next = (layer.number() + 1).min(number);
            let allowed = most_bytes.saturating_sub(self.table_bytes());
            if let Some(layer) = self.layers[..after].last_mut()
                && layer.insert_splitting(at, item.stream, item, allowed)?
            {
                return Ok(());
            }
        }
        self.insert_into_new_layer(self.plan.layer(next), after, item.stream, item, most_bytes.saturating_sub(self.table_bytes()))
    }

    /// Removes one copy of the hash's fingerprint, of the longest that there is: an item in a later layer, where more of its bits
    /// are known, is never taken for another one in an earlier layer. Gives back memory if two shards have become thin.
    #[inline]
    pub(super) fn remove(&mut self, hash: Uniform) -> bool {
        let stream = stream(hash);
        for layer in self.layers.iter_mut().rev() {
            if let Some(at) = layer.remove(stream, hash) {
                let shard = layer.shard(at);
                let most = share(shard, MOST_TO_JOIN);
                if shard.len() <= most / 2 {
                    // Without memory for the joined shard, they stay two.
                    let _ = layer.join(at, most);
                }
                self.drop_empty_layers();
                return true;
            }
        }
        false
    }

    /// A later layer that has become empty is not needed.
    fn drop_empty_layers(&mut self) {
        while self.layers.len() > 1 && self.layers.last().is_some_and(|layer| layer.len() == 0) {
            self.layers.pop();
        }
    }

    /// Joins all shards that are thin enough.
    pub(super) fn shrink(&mut self) -> Result<(), OutOfMemory> {
        self.drop_empty_layers();
        for layer in &mut self.layers {
            let most = layer.shards().next().map_or(0, |shard| share(shard, MOST_TO_SHRINK));
            layer.join_all(most)?;
        }
        Ok(())
    }

    /// The probability that a hash of this lane is found that was never inserted.
    pub(super) fn false_positive_rate(&self) -> f64 {
        self.layers.iter().map(Layer::false_positive_rate).sum::<f64>().min(1.0)
    }

    pub(super) fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub(super) fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
        for shard in self.layers.iter_mut().flat_map(Layer::shards_mut) {
            shard.set_dispatch(dispatch);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.layers.iter().map(Layer::len).sum()
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.layers.iter().map(Layer::table_bytes).sum()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.layers.capacity() * size_of::<Layer>() + self.layers.iter().map(Layer::size_in_bytes).sum::<usize>()
    }
}

/// A share of a shard's slots.
fn share(shard: &Shard, (numerator, denominator): (usize, usize)) -> usize {
    shard.params().slots() / denominator * numerator
}
