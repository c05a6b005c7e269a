//! A lane: the part of a growing filter that has the items whose stream begins with certain bits. Lanes grow independently.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::iter;

use super::{ElasticParams, layer::Layer, pool::Place, shard::Key, stream::Shares};
use crate::{
    filter::{Combine, InsertError, InsertErrorKind, Located, Sought},
    kernel::{Dispatch, Task},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::{AnySize, Form as _, Geometry, Instructions, Narrow, Uniform},
};

/// What a lane is charged against a limit beside its layers: its struct, and the lock of one that is shared.
pub(super) const LANE_BYTES: usize = 1 << 10;
const _: () = assert!(size_of::<Lane>() <= LANE_BYTES);

/// See the module.
#[derive(Clone)]
pub(crate) struct Lane {
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
        let plan = params.layer(0);
        let first = if plan.begins_unused() { Layer::unused(plan, dispatch) } else { Layer::new(plan, dispatch)? };
        Ok(Self::with_first(params, first))
    }

    /// A lane with this first layer alone.
    pub(super) fn with_first(params: &ElasticParams, first: Layer) -> Self {
        let (address, shares, dispatch) = (params.address(), params.shares(), first.dispatch());
        Self { params: *params, address, shares, first, later: Vec::new(), dispatch }
    }

    /// Adds a later layer that was read.
    pub(super) fn push_layer(&mut self, layer: Layer) -> Result<(), OutOfMemory> {
        reserve_exact(&mut self.later, 1)?;
        self.later.push(layer);
        Ok(())
    }

    pub(super) fn layers(&self) -> impl Iterator<Item = &Layer> + Clone {
        iter::once(&self.first).chain(&self.later)
    }

    fn layers_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Layer> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// The layer with this index, the first one included.
    fn layer_mut(&mut self, at: usize) -> &mut Layer {
        if at == 0 { &mut self.first } else { &mut self.later[at - 1] }
    }

    /// The layer that takes new items.
    #[inline]
    pub(super) fn last(&self) -> &Layer {
        self.later.last().unwrap_or(&self.first)
    }

    #[inline]
    pub(super) fn last_mut(&mut self) -> &mut Layer {
        self.later.last_mut().unwrap_or(&mut self.first)
    }

    pub(super) fn params(&self) -> &ElasticParams {
        &self.params
    }

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.layers().map(Layer::shards).sum()
    }

    #[inline]
    pub(super) fn contains(&self, hash: Uniform) -> bool {
        self.dispatch.run(Find { lane: self, hash })
    }

    /// True if a hash has been inserted, as far as all stored bits tell, and not only those that lookups compare.
    #[inline]
    pub(super) fn holds(&self, hash: Uniform) -> bool {
        self.contains(hash) && self.count(hash) > 0
    }

    /// What the lane needs of a hash.
    #[inline]
    pub(super) fn key(&self, hash: Uniform) -> Key {
        Key::new(&self.address, self.shares.stream(hash), hash)
    }

    /// The layout of the first layer's tables.
    #[inline]
    pub(super) fn geometry(&self) -> &Geometry {
        self.first.geometry()
    }

    /// The table of the first layer to which a stream leads; none if the lane has had no items yet.
    #[inline(always)]
    pub(super) fn table(&self, stream: u64) -> Option<&[u8]> {
        self.first.table(stream)
    }

    /// What leads to the tables of the first layer.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub(super) fn directory(&self) -> super::layer::Directory<'_> {
        self.first.directory()
    }

    /// True if the lane has had no items yet, and has no tables.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.first.is_unused()
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

    /// True if a hash is in any layer.
    #[cold]
    #[inline(never)]
    fn is_in_any_layer(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.layers().any(|layer| layer.contains(key))
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

    /// Inserts a hash for which [`insert`](Self::insert) has found this shard full. What the lane is charged may rise by `allowed`
    /// bytes. If it fails, nothing has changed.
    #[cold]
    pub(super) fn insert_growing(&mut self, hash: Uniform, full: Place, allowed: usize) -> Result<(), InsertError> {
        let key = self.key(hash);
        let last = self.last_mut();
        let refused = match last.insert_growing(full, key, allowed) {
            Ok(true) => return Ok(()),
            Ok(false) => match self.insert_into_new_layer(self.later.len(), key, allowed) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            },
            Err(refused) => refused,
        };
        // Whether there is memory must not decide on where an item goes: other copies of this filter may have more. And copies of the
        // item are bounded.
        let may_go_elsewhere =
            matches!(refused.kind(), InsertErrorKind::CopiesOfOthers | InsertErrorKind::Crowded | InsertErrorKind::Layers);
        let has_room = may_go_elsewhere && self.layers_mut().rev().any(|layer| layer.insert_as_it_is(key));
        if has_room { Ok(()) } else { Err(refused) }
    }

    /// Adds a layer with an item, before the later layer with this index. If that is not possible, nothing has changed.
    fn insert_into_new_layer(&mut self, at: usize, key: Key, allowed: usize) -> Result<(), InsertError> {
        let before = if at == 0 { &self.first } else { &self.later[at - 1] };
        let number = before.number().checked_add(1).filter(|&number| usize::from(number) < self.params.most_layers());
        let number = number.ok_or(InsertError::of(InsertErrorKind::Layers))?;
        let plan = self.params.layer(number);
        let needed = Layer::charged_when_empty(&plan).saturating_add(size_of::<Layer>());
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        let mut layer = Layer::new(plan, self.dispatch)?;
        reserve_exact(&mut self.later, 1)?;
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

    /// A lane with the items of this one and of another one with the same number, of each as many copies as `how` says. It may be
    /// charged `most` bytes.
    ///
    /// Inserting an item takes longer than copying it. So a sum begins with a copy of the larger lane.
    pub(super) fn merged(&self, other: &Self, how: Combine, most: usize) -> Result<Self, InsertError> {
        let (copied, inserted) = if how == Combine::Sum && self.len() < other.len() { (other, self) } else { (self, other) };
        if copied.charged() > most {
            return Err(InsertError::limit(copied.charged() - self.charged()));
        }
        let mut lane = copied.try_clone()?;
        lane.set_dispatch(self.dispatch);
        lane.merge(inserted, how, most)?;
        Ok(lane)
    }

    /// Inserts all items of another lane with the same number; or for a union, of each item as many copies as this lane lacks. The
    /// lane may be charged `most` bytes. If it fails, some have been inserted.
    fn merge(&mut self, other: &Self, how: Combine, most: usize) -> Result<(), InsertError> {
        for layer in other.layers() {
            for (shard, prefix) in layer.evenly() {
                let mut result = Ok(());
                shard.each_class(|(bucket, _), fingerprint, copies| {
                    let key = Key::of_stored(shard.params(), prefix, bucket, fingerprint);
                    let missing = if how == Combine::Union { self.missing(other, layer, key, copies) } else { copies };
                    result = (0..missing).try_for_each(|_| self.insert_stored(key, layer.number(), most));
                    if how == Combine::Union {
                        self.remove_finer(key, layer, missing);
                    }
                    result.is_ok()
                });
                result?;
            }
        }
        self.drop_empty_layers();
        Ok(())
    }

    /// How many copies another lane has of an item in a layer and in those before it, more than this lane has in layers of the same
    /// numbers.
    fn missing(&self, other: &Self, layer: &Layer, key: Key, copies: u32) -> u32 {
        let before = other.layers().take_while(|theirs| theirs.number() < layer.number());
        let ours = self.layers().take_while(|ours| ours.number() <= layer.number());
        let count = |layer: &Layer| layer.count(key);
        (copies + before.map(count).sum::<u32>()).saturating_sub(ours.map(count).sum())
    }

    /// Removes up to `copies` items from layers of higher numbers, for which copies of an item were inserted that cannot be told
    /// from them: of the item, what a layer knows is known.
    fn remove_finer(&mut self, key: Key, layer: &Layer, copies: u32) {
        let (number, known) = (layer.number(), layer.known_bits());
        let mut left = copies;
        for layer in self.later.iter_mut().filter(|ours| ours.number() > number) {
            while left > 0 && layer.remove_known(key, known) {
                left -= 1;
            }
        }
    }

    /// Inserts an item of which a layer with this number, and no later one, knows enough bits.
    fn insert_stored(&mut self, key: Key, number: u8, most: usize) -> Result<(), InsertError> {
        let after = self.later.partition_point(|layer| layer.number() <= number);
        let mut reason = InsertError::of(InsertErrorKind::Layers);
        for at in (0..=after).rev() {
            let Err(full) = self.layer_mut(at).insert(key) else { return Ok(()) };
            let allowed = most.saturating_sub(self.charged());
            let layer = self.layer_mut(at);
            match layer.insert_growing(full, key, allowed) {
                Ok(true) => return Ok(()),
                Ok(false) if at == after && layer.number() < number => return self.insert_into_new_layer(after, key, allowed),
                Ok(false) if layer.insert_as_it_is(key) => return Ok(()),
                Ok(false) => {}
                Err(refused) if matches!(refused.kind(), InsertErrorKind::Copies { .. } | InsertErrorKind::CopiesOfOthers) => {
                    reason = refused;
                }
                Err(refused) => return Err(refused),
            }
        }
        Err(reason)
    }

    /// Removes one copy of the hash's fingerprint, of the longest that there is: an item in a later layer, where more of its bits
    /// are known, is never taken for another one in an earlier layer. Frees memory if two shards have become underfull.
    #[inline]
    pub(super) fn remove(&mut self, hash: Uniform) -> bool {
        let key = self.key(hash);
        if self.has_later() && self.remove_later(key) {
            return true;
        }
        let is_removed = self.first.remove_and_join(key);
        if self.first.len() == 0 {
            self.drop_empty_layers();
        }
        is_removed
    }

    /// The same, from later layers.
    #[cold]
    fn remove_later(&mut self, key: Key) -> bool {
        let is_removed = self.later.iter_mut().rev().any(|layer| layer.remove_and_join(key));
        if is_removed {
            self.drop_empty_layers();
        }
        is_removed
    }

    /// A later layer that has become empty is not needed, and neither are the shards of an empty lane.
    fn drop_empty_layers(&mut self) {
        let layers = self.later.len();
        while self.later.pop_if(|layer| layer.len() == 0).is_some() {}
        if self.later.len() < layers {
            shrink_to(&mut self.later, 0);
        }
        if self.later.is_empty() {
            self.first.release();
        }
    }

    /// Joins all shards that are underfull, as far as there is memory for it.
    pub(super) fn shrink(&mut self) {
        self.drop_empty_layers();
        for layer in self.layers_mut() {
            layer.join_all();
        }
    }

    /// Removes all items, and frees the memory that the lane has grown by; without memory for the tables that it begins with, it
    /// keeps those of the first layer.
    pub(super) fn clear(&mut self) {
        if let Ok(empty) = Self::new(&self.params, self.dispatch) {
            *self = empty;
        } else {
            self.later = Vec::new();
            self.first.empty();
        }
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

    pub fn len(&self) -> usize {
        self.layers().map(Layer::len).sum()
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.layers().map(Layer::table_bytes).sum()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.later.capacity() * size_of::<Layer>() + self.layers().map(Layer::size_in_bytes).sum::<usize>()
    }

    /// What the lane is charged against a limit: see [`Layer::charged`].
    pub(super) fn charged(&self) -> usize {
        let later = self.later.len() * size_of::<Layer>();
        self.layers().map(Layer::charged).fold(LANE_BYTES + later, usize::saturating_add)
    }

    /// What an empty lane is charged.
    pub(super) fn charged_when_empty(params: &ElasticParams) -> usize {
        Layer::charged_when_empty(&params.layer(0)).saturating_add(LANE_BYTES)
    }
}

/// Equal shards, with equal tables.
impl PartialEq for Lane {
    fn eq(&self, other: &Self) -> bool {
        self.records().eq(other.records())
    }
}

impl Eq for Lane {}

/// A lookup in the first layer, as one function from the hash to the bits of the table; later layers are looked up behind it.
struct Find<'a> {
    lane: &'a Lane,
    hash: Uniform,
}

impl Task for Find<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) -> bool {
        let Self { lane, hash } = self;
        if lane.has_later() {
            return lane.is_in_any_layer(hash);
        }
        // The first layer has no spare bits, so that nothing but the low fingerprint is compared.
        let (buckets, fingerprint) = lane.address.buckets(hash);
        let Some(table) = lane.table(lane.shares.stream(hash)) else { return lane.first.has_no_table() };
        match lane.geometry() {
            Geometry::Narrow(geometry) => Narrow::read(geometry, table, instructions, Sought { buckets, fingerprint }),
            // A function of its own, so that this one needs none of its registers.
            geometry => lane.dispatch.read(geometry, table, Located::new(buckets, fingerprint)),
        }
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Lane {
    pub(super) fn assert_consistent(&self) {
        for (position, layer) in self.layers().enumerate() {
            let number = layer.number();
            assert_eq!(number == 0, position == 0, "layer {number} is at position {position}");
            layer.assert_consistent(&self.params.layer(number), self.dispatch);
        }
        let numbers: Vec<u8> = self.layers().map(Layer::number).collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "the numbers of layers do not increase: {numbers:?}");
        assert!(self.later.last().is_none_or(|layer| layer.len() > 0), "the last layer is empty");
        let is_needed = self.len() > 0 || self.is_unused() || !self.params.layer(0).begins_unused();
        assert!(is_needed, "the lane has shards without items");
    }
}
