//! Shards that are split and joined, without the filter around them.

use alloc::vec::Vec;

use super::{
    super::plan::{ElasticParams, ElasticRequest},
    *,
};
use crate::{filter::InsertErrorKind, hash::split_mix, kernel::Dispatch, table::Uniform};

const HASHES: u64 = if cfg!(miri) { 60 } else { 600 };

/// A first generation that can grow from some items to many.
fn empty(bucket_size: u32) -> (ElasticParams, Generation) {
    let request = ElasticRequest {
        false_positive_rate: Some(0.001),
        bucket_size: Some(bucket_size),
        capacity: Some(HASHES / 2),
        max_capacity: Some(64 * HASHES),
        ..ElasticRequest::default()
    };
    let params = request.params().expect("there are such filters");
    let generation = Generation::new(params.generation(0), Dispatch::best()).expect("there is memory");
    (params, generation)
}

fn keys(params: &ElasticParams) -> impl Iterator<Item = Key> {
    (0..).map(|n| Uniform(split_mix(n))).map(|hash| Key::new(&params.address(), params.shares().stream(hash), hash))
}

/// Inserts this many items, none of which needs a split.
fn filled(bucket_size: u32) -> (ElasticParams, Generation, Vec<Key>) {
    let (params, mut generation) = empty(bucket_size);
    let keys: Vec<Key> = keys(&params).filter(|&key| generation.insert(key).is_ok()).take(index(HASHES / 3)).collect();
    (params, generation, keys)
}

/// A bucket and what is in one of its slots.
type Stored = (u64, u32);

/// All that there is to see of a generation: its shards with their items, bucket by bucket, and its directory. In a bucket of a
/// single table, items are in the order in which they came, which a split and a join change.
fn state(generation: &Generation) -> (Vec<(u64, Vec<Stored>)>, u8, usize, usize) {
    let shards = generation.evenly().map(|(shard, prefix)| {
        let mut items = Vec::new();
        shard.each_fingerprint(|bucket, fingerprint| {
            items.push((bucket, fingerprint.get()));
            true
        });
        items.sort_unstable();
        (prefix, items)
    });
    (shards.collect(), generation.global_depth(), generation.directory.entries().len(), generation.len())
}

fn tables(generation: &Generation) -> Vec<Vec<u8>> {
    generation.tables_in_order().map(|(_, table)| table.to_vec()).collect()
}

/// Splits a shard in two, unless no upper bits are left.
fn split(generation: &mut Generation, place: Place, allowed: usize) -> Result<bool, InsertError> {
    let depth = generation.depth_of(place);
    if depth == generation.plan.most_depth {
        return Ok(false);
    }
    let stream = u64::from(generation.pool.record(place).prefix()) << 1 << (63 - depth);
    generation.split(place, depth + 1, stream, allowed, |_, _| true)
}

fn assert_found(params: &ElasticParams, generation: &Generation, keys: &[Key]) {
    generation.assert_consistent(&params.generation(0), Dispatch::best());
    assert_eq!(generation.len(), keys.len());
    assert!(keys.iter().all(|&key| generation.contains(key) && generation.count(key) > 0));
}

#[test]
fn what_is_split_and_joined_is_as_it_was() {
    for bucket_size in [1, 2, 4, 8] {
        let (params, mut generation, keys) = filled(bucket_size);
        let (before, bytes) = (state(&generation), tables(&generation));
        for prefix in 0..1 << generation.global_depth() {
            let place = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).least_depth)];
            assert!(matches!(split(&mut generation, place, usize::MAX), Ok(true)));
            assert_found(&params, &generation, &keys);
            let half = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).least_depth)];
            assert!(generation.join(half, usize::MAX).expect("there is memory"), "buckets of {bucket_size}");
            assert_found(&params, &generation, &keys);
            assert!(state(&generation) == before, "shard {prefix}, buckets of {bucket_size}");
            // Buckets of the packed table are sorted, and those of one slot have no order.
            assert!(![1, 4].contains(&bucket_size) || tables(&generation) == bytes, "shard {prefix}, buckets of {bucket_size}");
        }
    }
}

/// Each shard of each depth, until no upper bits are left, and back.
#[test]
fn directories_double_and_halve() {
    for bucket_size in [1, 4] {
        let (params, mut generation, keys) = filled(bucket_size);
        let (plan, before) = (params.generation(0), state(&generation));
        let deepest = if cfg!(miri) { plan.least_depth + 1 } else { plan.most_depth };
        for depth in plan.least_depth..deepest {
            // The last shard of the level takes the place of each that is split.
            while generation.pool.levels()[usize::from(depth - plan.least_depth)].len() > 0 {
                let first = generation.pool.place(depth, 0);
                assert!(matches!(split(&mut generation, first, usize::MAX), Ok(true)));
            }
            assert_eq!((generation.global_depth(), generation.directory.entries().len()), (depth + 1, 2 << depth));
            assert_found(&params, &generation, &keys);
        }
        let last = generation.pool.place(deepest, 0);
        assert!(cfg!(miri) || matches!(split(&mut generation, last, usize::MAX), Ok(false)), "there are no upper bits left");
        generation.join_all();
        assert_found(&params, &generation, &keys);
        assert!(state(&generation) == before, "buckets of {bucket_size}");
    }
}

#[test]
fn a_split_without_room_changes_nothing() {
    let (params, mut generation, keys) = filled(4);
    let (before, bytes) = (state(&generation), (tables(&generation), generation.size_in_bytes()));
    for allowed in [0, 100] {
        let place = generation.directory.entries()[0];
        assert!(matches!(split(&mut generation, place, allowed).unwrap_err().kind(), InsertErrorKind::Limit { .. }));
        assert!(state(&generation) == before && (tables(&generation), generation.size_in_bytes()) == bytes);
    }
    assert_found(&params, &generation, &keys);
}

/// Shards are split when they are full, as often as they must be, and no item is lost.
#[test]
fn a_generation_grows_until_its_upper_bits_are_used_up() {
    let (params, mut generation) = empty(4);
    let (least, mut inserted) = (generation.shards(), Vec::new());
    for key in keys(&params).take(index(8 * HASHES)) {
        if let Err(full) = generation.insert(key) {
            assert!(
                generation.insert_growing(full, key, usize::MAX).expect("no limit, no copies"),
                "the generation is planned for more"
            );
        }
        inserted.push(key);
    }
    assert!(generation.shards() > 2 * least || cfg!(miri));
    assert_found(&params, &generation, &inserted);
    for key in inserted.drain(HASHES as usize / 4..) {
        let (place, _) = generation.remove(key).expect("it was inserted");
        _ = generation.join(place, generation.slots_of_a_shard() / 2);
    }
    assert_found(&params, &generation, &inserted);
    generation.join_all();
    assert_eq!(generation.shards(), least);
    assert_found(&params, &generation, &inserted);
}

/// A large shard that cannot be split is full before walks for room get long: at the items that it is planned for, or a little
/// above.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_large_shard_is_full_before_walks_are_long() {
    for (b, least, most) in [(4, 0.965, 0.977), (8, 0.965, 0.997)] {
        let request = ElasticRequest {
            false_positive_rate: Some(0.01),
            bucket_size: Some(b),
            capacity: Some(20_000),
            max_capacity: Some(20_000),
            ..ElasticRequest::default()
        };
        let params = request.params().expect("there are such filters");
        let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("there is memory");
        let (key, place) = keys(&params).find_map(|key| Some((key, generation.insert(key).err()?))).expect("it gets full");
        let load = generation.len() as f64 / generation.slots_of_a_shard() as f64;
        assert!((least..most).contains(&load) && generation.len() >= 20_000, "{load} in buckets of {b}");
        assert!(matches!(generation.insert_growing(place, key, usize::MAX), Ok(false)), "a further generation is begun");
        // Where that must not be, there is room.
        assert!(generation.insert_as_it_is(key));
    }
}
