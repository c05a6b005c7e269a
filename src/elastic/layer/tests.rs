//! Shards that are split and joined, without the filter around them.

use alloc::vec::Vec;

use super::{
    super::plan::{ElasticParams, Request},
    *,
};
use crate::{filter::InsertErrorKind, hash::split_mix, kernel::Dispatch, table::Uniform};

const HASHES: u64 = if cfg!(miri) { 60 } else { 600 };

/// A first layer that can grow from some items to many.
fn empty(bucket_size: u32) -> (ElasticParams, Layer) {
    let request = Request {
        false_positive_rate: Some(0.001),
        bucket_size: Some(bucket_size),
        capacity: Some(HASHES / 2),
        max_capacity: Some(64 * HASHES),
        ..Request::default()
    };
    let params = request.params().expect("there are such filters");
    let layer = Layer::new(params.layer(0), Dispatch::best()).expect("there is memory");
    (params, layer)
}

fn keys(params: &ElasticParams) -> impl Iterator<Item = Key> {
    (0..).map(|n| Uniform(split_mix(n))).map(|hash| Key::new(&params.address(), params.shares().stream(hash), hash))
}

/// Inserts this many items, none of which needs a split.
fn filled(bucket_size: u32) -> (ElasticParams, Layer, Vec<Key>) {
    let (params, mut layer) = empty(bucket_size);
    let keys: Vec<Key> = keys(&params).filter(|&key| layer.insert(key).is_ok()).take(index(HASHES / 3)).collect();
    (params, layer, keys)
}

/// A bucket and what is in one of its slots.
type Stored = (u64, u32);

/// All that there is to see of a layer: its shards with their items, bucket by bucket, and its directory. In a bucket of a single
/// table, items are in the order in which they came, which a split and a join change.
fn state(layer: &Layer) -> (Vec<(u64, Vec<Stored>)>, u8, usize, usize) {
    let shards = layer.evenly().map(|(shard, prefix)| {
        let mut items = Vec::new();
        shard.each_fingerprint(|bucket, fingerprint| {
            items.push((bucket, fingerprint.get()));
            true
        });
        items.sort_unstable();
        (prefix, items)
    });
    (shards.collect(), layer.depth, layer.directory.len(), layer.len())
}

fn tables(layer: &Layer) -> Vec<Vec<u8>> {
    layer.tables_in_order().map(|(_, table)| table.to_vec()).collect()
}

/// Splits a shard in two, unless no upper bits are left.
fn split(layer: &mut Layer, place: Place, allowed: usize) -> Result<bool, InsertError> {
    let depth = layer.depth_of(place);
    if depth == layer.plan.most_depth {
        return Ok(false);
    }
    let stream = u64::from(layer.pool.record(place).prefix()) << 1 << (63 - depth);
    layer.split(place, depth + 1, stream, allowed, |_, _| true)
}

fn assert_found(params: &ElasticParams, layer: &Layer, keys: &[Key]) {
    layer.assert_consistent(&params.layer(0), Dispatch::best());
    assert_eq!(layer.len(), keys.len());
    assert!(keys.iter().all(|&key| layer.contains(key) && layer.count(key) > 0));
}

#[test]
fn what_is_split_and_joined_is_as_it_was() {
    for bucket_size in [1, 2, 4, 8] {
        let (params, mut layer, keys) = filled(bucket_size);
        let (before, bytes) = (state(&layer), tables(&layer));
        for prefix in 0..1 << layer.depth {
            let place = layer.directory[prefix << (layer.depth - params.layer(0).least_depth)];
            assert!(matches!(split(&mut layer, place, usize::MAX), Ok(true)));
            assert_found(&params, &layer, &keys);
            let half = layer.directory[prefix << (layer.depth - params.layer(0).least_depth)];
            assert!(layer.join(half, usize::MAX).expect("there is memory"), "buckets of {bucket_size}");
            assert_found(&params, &layer, &keys);
            assert!(state(&layer) == before, "shard {prefix}, buckets of {bucket_size}");
            // Buckets of the packed table are sorted, and those of one slot have no order.
            assert!(![1, 4].contains(&bucket_size) || tables(&layer) == bytes, "shard {prefix}, buckets of {bucket_size}");
        }
    }
}

/// Each shard of each depth, until no upper bits are left, and back.
#[test]
fn directories_double_and_halve() {
    for bucket_size in [1, 4] {
        let (params, mut layer, keys) = filled(bucket_size);
        let (plan, before) = (params.layer(0), state(&layer));
        let deepest = if cfg!(miri) { plan.least_depth + 1 } else { plan.most_depth };
        for depth in plan.least_depth..deepest {
            // The last shard of the level takes the place of each that is split.
            while layer.pool.levels()[usize::from(depth - plan.least_depth)].len() > 0 {
                let first = layer.pool.place(depth, 0);
                assert!(matches!(split(&mut layer, first, usize::MAX), Ok(true)));
            }
            assert_eq!((layer.depth, layer.directory.len()), (depth + 1, 2 << depth));
            assert_found(&params, &layer, &keys);
        }
        let last = layer.pool.place(deepest, 0);
        assert!(cfg!(miri) || matches!(split(&mut layer, last, usize::MAX), Ok(false)), "there are no upper bits left");
        layer.join_all();
        assert_found(&params, &layer, &keys);
        assert!(state(&layer) == before, "buckets of {bucket_size}");
    }
}

#[test]
fn a_split_without_room_changes_nothing() {
    let (params, mut layer, keys) = filled(4);
    let (before, bytes) = (state(&layer), (tables(&layer), layer.size_in_bytes()));
    for allowed in [0, 100] {
        let place = layer.directory[0];
        assert!(matches!(split(&mut layer, place, allowed).unwrap_err().kind(), InsertErrorKind::Limit { .. }));
        assert!(state(&layer) == before && (tables(&layer), layer.size_in_bytes()) == bytes);
    }
    assert_found(&params, &layer, &keys);
}

/// Shards are split when they are full, as often as they must be, and no item is lost.
#[test]
fn a_layer_grows_until_its_upper_bits_are_used_up() {
    let (params, mut layer) = empty(4);
    let (least, mut inserted) = (layer.shards(), Vec::new());
    for key in keys(&params).take(index(8 * HASHES)) {
        if let Err(full) = layer.insert(key) {
            assert!(layer.insert_growing(full, key, usize::MAX).expect("no limit, no copies"), "the layer is planned for more");
        }
        inserted.push(key);
    }
    assert!(layer.shards() > 2 * least || cfg!(miri));
    assert_found(&params, &layer, &inserted);
    for key in inserted.drain(HASHES as usize / 4..) {
        let (place, _) = layer.remove(key).expect("it was inserted");
        _ = layer.join(place, layer.slots_of_a_shard() / 2);
    }
    assert_found(&params, &layer, &inserted);
    layer.join_all();
    assert_eq!(layer.shards(), least);
    assert_found(&params, &layer, &inserted);
}

/// A large shard that cannot be split is full before walks for room get long: at the items that it is planned for, or a little above.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_large_shard_is_full_before_walks_are_long() {
    for (b, least, most) in [(4, 0.965, 0.977), (8, 0.965, 0.997)] {
        let request = Request {
            false_positive_rate: Some(0.01),
            bucket_size: Some(b),
            capacity: Some(20_000),
            max_capacity: Some(20_000),
            ..Request::default()
        };
        let params = request.params().expect("there are such filters");
        let mut layer = Layer::new(params.layer(0), Dispatch::best()).expect("there is memory");
        let (key, place) = keys(&params).find_map(|key| Some((key, layer.insert(key).err()?))).expect("it gets full");
        let load = layer.len() as f64 / layer.slots_of_a_shard() as f64;
        assert!((least..most).contains(&load) && layer.len() >= 20_000, "{load} in buckets of {b}");
        assert!(matches!(layer.insert_growing(place, key, usize::MAX), Ok(false)), "a further layer is begun");
        // Where that must not be, there is room.
        assert!(layer.insert_as_it_is(key));
    }
}
