//! Tests of splitting and merging shards, without the filter around them.

use alloc::vec::Vec;

use super::{
    super::plan::{ElasticParams, ElasticRequest},
    *,
};
use crate::{filter::InsertErrorKind, hash::split_mix, kernel::Dispatch, table::Uniform};

const HASHES: u64 = if cfg!(miri) { 60 } else { 600 };

/// Returns an empty first generation that can grow by several doublings.
fn empty_generation(bucket_size: u32) -> (ElasticParams, Generation) {
    let request = ElasticRequest {
        false_positive_rate: Some(0.001),
        bucket_size: Some(bucket_size),
        capacity: Some(HASHES / 2),
        max_capacity: Some(64 * HASHES),
        ..ElasticRequest::default()
    };
    let params = request.params().expect("the request is valid");
    let generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
    (params, generation)
}

fn keys(params: &ElasticParams) -> impl Iterator<Item = Key> {
    (0..).map(|n| Uniform(split_mix(n))).map(|hash| Key::new(&params.address(), params.shares().stream(hash), hash))
}

/// Returns a generation with a third of [`HASHES`] items, none of which needed a split, and their keys.
fn filled(bucket_size: u32) -> (ElasticParams, Generation, Vec<Key>) {
    let (params, mut generation) = empty_generation(bucket_size);
    let keys: Vec<Key> = keys(&params).filter(|&key| generation.insert(key).is_ok()).take(index(HASHES / 3)).collect();
    (params, generation, keys)
}

/// A bucket and the fingerprint in one of its slots.
type Stored = (u64, u32);

/// Returns the state of a generation: its shards with their items, bucket by bucket, the size of its directory, and its length.
/// Items are sorted, because splits and merges change their order in the buckets of a single table.
fn state(generation: &Generation) -> (Vec<(u64, Vec<Stored>)>, u8, usize, usize) {
    let shards = generation.shards_bit_reversed().map(|(shard, prefix)| {
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

/// Splits a shard in two. Returns false if no upper bits are left.
fn split(generation: &mut Generation, place: Place, budget: usize) -> Result<bool, InsertError> {
    let depth = generation.depth_of(place);
    if depth == generation.plan.max_depth {
        return Ok(false);
    }
    let stream = u64::from(generation.pool.record(place).prefix()) << 1 << (63 - depth);
    generation.split(place, depth + 1, stream, budget, |_, _| true)
}

fn assert_all_found(params: &ElasticParams, generation: &Generation, keys: &[Key]) {
    generation.assert_consistent(&params.generation(0), Dispatch::best());
    assert_eq!(generation.len(), keys.len());
    assert!(keys.iter().all(|&key| generation.contains(key) && generation.count(key) > 0));
}

#[test]
fn splitting_and_merging_restores_a_shard() {
    for &bucket_size in if cfg!(miri) { &[4][..] } else { &[1, 2, 4, 8] } {
        let (params, mut generation, keys) = filled(bucket_size);
        let (before, bytes) = (state(&generation), tables(&generation));
        // Under Miri, two shards, or the only one.
        let prefixes = if cfg!(miri) { 1 << generation.global_depth().min(1) } else { 1 << generation.global_depth() };
        for prefix in 0..prefixes {
            let place = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).min_depth)];
            assert!(matches!(split(&mut generation, place, usize::MAX), Ok(true)));
            assert_all_found(&params, &generation, &keys);
            let half = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).min_depth)];
            assert!(generation.merge_with_sibling(half, usize::MAX).expect("memory is available"), "buckets of {bucket_size}");
            assert_all_found(&params, &generation, &keys);
            assert!(state(&generation) == before, "shard {prefix}, buckets of {bucket_size}");
            // Slots are sorted in packed buckets, and have no order in buckets of one slot.
            assert!(![1, 4].contains(&bucket_size) || tables(&generation) == bytes, "shard {prefix}, buckets of {bucket_size}");
        }
    }
}

/// Splits all shards until no upper bits are left, and merges them again.
#[test]
fn directories_double_and_halve() {
    for &bucket_size in if cfg!(miri) { &[4][..] } else { &[1, 4] } {
        let (params, mut generation, keys) = filled(bucket_size);
        let (plan, before) = (params.generation(0), state(&generation));
        let deepest = if cfg!(miri) { plan.min_depth + 1 } else { plan.max_depth };
        for depth in plan.min_depth..deepest {
            // The last shard of the level takes the place of the one that has split.
            while generation.pool.levels()[usize::from(depth - plan.min_depth)].len() > 0 {
                let first = generation.pool.place(depth, 0);
                assert!(matches!(split(&mut generation, first, usize::MAX), Ok(true)));
            }
            assert_eq!((generation.global_depth(), generation.directory.entries().len()), (depth + 1, 2 << depth));
            assert_all_found(&params, &generation, &keys);
        }
        let last = generation.pool.place(deepest, 0);
        assert!(
            cfg!(miri) || matches!(split(&mut generation, last, usize::MAX), Ok(false)),
            "a shard without upper bits has split"
        );
        generation.merge_all_siblings();
        assert_all_found(&params, &generation, &keys);
        assert!(state(&generation) == before, "buckets of {bucket_size}");
    }
}

#[test]
fn a_split_beyond_the_budget_changes_nothing() {
    let (params, mut generation, keys) = filled(4);
    let (before, bytes) = (state(&generation), (tables(&generation), generation.size_in_bytes()));
    for budget in [0, 100] {
        let place = generation.directory.entries()[0];
        assert!(matches!(split(&mut generation, place, budget).unwrap_err().kind(), InsertErrorKind::Limit { .. }));
        assert!(state(&generation) == before && (tables(&generation), generation.size_in_bytes()) == bytes);
    }
    assert_all_found(&params, &generation, &keys);
}

/// Checks that full shards split as often as necessary, and that no item is lost.
#[test]
fn a_generation_grows_until_its_upper_bits_are_used_up() {
    let (params, mut generation) = empty_generation(4);
    let (least, mut inserted) = (generation.shards(), Vec::new());
    for key in keys(&params).take(index(8 * HASHES)) {
        if let Err(full) = generation.insert(key) {
            assert!(
                generation.insert_growing(full, key, usize::MAX).expect("memory is available, and hashes are uniform"),
                "the generation is planned for more items"
            );
        }
        inserted.push(key);
    }
    assert!(generation.shards() > 2 * least || cfg!(miri));
    assert_all_found(&params, &generation, &inserted);
    for key in inserted.drain(HASHES as usize / 4..) {
        let (place, _) = generation.remove(key).expect("the item was inserted");
        _ = generation.merge_with_sibling(place, generation.shard_slots() / 2);
    }
    assert_all_found(&params, &generation, &inserted);
    generation.merge_all_siblings();
    assert_eq!(generation.shards(), least);
    assert_all_found(&params, &generation, &inserted);
}

/// Shards with fewer than 16 slots, which only snapshots of other programs have, are full from 0 items on while they can be split.
/// That must not be read as "look up first", or a merge would count copies for which their tables have room.
#[test]
fn generations_of_small_shards_do_not_look_up_first() {
    let (params, _) = empty_generation(4);
    let mut plan = params.generation(0);
    plan.whole.buckets = 2;
    assert_eq!(FullAt::of(&plan).splittable, 0);
    let mut generation = Generation::new(plan, Dispatch::best()).expect("memory is available");
    assert!(!generation.looks_up_first());
    generation.set_looks_up_first(true);
    assert!(generation.looks_up_first());
    generation.set_looks_up_first(false);
    assert!(!generation.looks_up_first());
}

/// Checks that a large shard that cannot be split is full before eviction walks become long: at the item count that it is planned
/// for, or slightly above.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn large_shards_are_full_before_walks_become_long() {
    for (b, least, most) in [(4, 0.965, 0.977), (8, 0.965, 0.997)] {
        let request = ElasticRequest {
            false_positive_rate: Some(0.01),
            bucket_size: Some(b),
            capacity: Some(20_000),
            max_capacity: Some(20_000),
            ..ElasticRequest::default()
        };
        let params = request.params().expect("the request is valid");
        let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
        let (key, place) =
            keys(&params).find_map(|key| Some((key, generation.insert(key).err()?))).expect("the shard becomes full");
        let load = generation.len() as f64 / generation.shard_slots() as f64;
        assert!((least..most).contains(&load) && generation.len() >= 20_000, "{load} in buckets of {b}");
        assert!(matches!(generation.insert_growing(place, key, usize::MAX), Ok(false)), "the item needs a further generation");
        // The shard still has free slots beyond that count.
        assert!(generation.insert_without_splitting(key));
    }
}
