//! Tests of splitting and merging shards, without the filter around them.

use alloc::{format, vec, vec::Vec};

use super::{
    super::{
        directory::DepthLayout,
        plan::ElasticParams,
        shard::{Shard, ShardMut, ShardParams},
    },
    *,
};
use crate::{
    bits::PADDING,
    filter::{InsertError, InsertErrorKind, Located, Lookup},
    hash::split_mix,
    kernel::{Dispatch, Kernel},
    table::{CopyPolicy, DeepGeometry, Fingerprint, Insertion, Uniform},
};

const HASHES: u64 = if cfg!(miri) { 60 } else { 600 };

/// Returns an empty first generation of one table that can grow by several doublings.
fn empty_generation() -> (ElasticParams, Generation) {
    let params = ElasticParams::planned(0.001, HASHES / 2, 64 * HASHES);
    let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
    let is_table = generation.list_to_table(generation.place(0), None, usize::MAX).expect("memory is available");
    assert!(is_table && generation.has_all_tables());
    (params, generation)
}

fn keys(params: &ElasticParams) -> impl Iterator<Item = Key> {
    let plan = params.generation(0);
    (0..).map(move |n| plan.first_key(Uniform(split_mix(n))))
}

/// Returns a generation of 16 or more tables that has as many items as it is planned for, and their keys. Its halves have too many
/// items for lists.
fn filled() -> (ElasticParams, Generation, Vec<Key>) {
    const PLANNED: u64 = 16_000;
    let params = ElasticParams::planned(0.001, PLANNED, 64 * PLANNED);
    let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
    let keys: Vec<Key> = keys(&params).filter(|&key| generation.insert(key)).take(index(PLANNED)).collect();
    (params, generation, keys)
}

/// A bucket and the fingerprint in one of its slots.
type Stored = (u64, u64);

/// Copies are recognized by the bits that tables store of an item, of which there may be as many as a word has.
#[test]
fn generations_that_store_64_bits_recognize_copies() {
    let params = ElasticParams::planned(2e-9, 1, 1);
    let plan = (0..20).map(|number| params.generation(number)).find(|plan| plan.shard(plan.min_depth).stored_bits() == u64::BITS);
    let plan = plan.expect("later generations know more bits");
    let mut generation = Generation::new(plan, Dispatch::best()).expect("memory is available");
    let key = plan.key(Uniform(split_mix(1)));
    assert!(matches!(generation.add(key, 1, false, usize::MAX), Ok(true)) && !generation.has_frequent_copies());
    generation.list_to_table(generation.place(key.stream), None, usize::MAX).expect("memory is available");
    generation.add_copies(key, 0, 9, usize::MAX).expect("memory is available");
    assert!(generation.has_frequent_copies() && generation.has_copies_to_move(generation.place(key.stream), key));
    assert_eq!(generation.copies_around(generation.place(key.stream), key, true).repeated, 0);
}

/// Returns the state of a generation: its shards with their items, bucket by bucket, the size of its directory, and its length.
fn state(generation: &Generation) -> (Vec<(u64, Vec<Stored>)>, u8, usize, u64) {
    let places = generation.directory.places();
    let shards = places.filter_map(|place| generation.pool.shard(generation.dispatch, place)).map(|(shard, prefix)| {
        let mut items = Vec::new();
        shard.each_fingerprint(|bucket, fingerprint| {
            items.push((bucket, fingerprint.wide()));
            true
        });
        (prefix.into(), items)
    });
    (shards.collect(), generation.global_depth(), generation.directory.entries().len(), generation.item_count())
}

fn tables(generation: &Generation) -> Vec<Vec<u8>> {
    let table = |bytes| match bytes {
        ShardBytes::Table(layout, table) => table[..layout.params.table_bytes()].to_vec(),
        ShardBytes::List(_) => panic!("a list"),
    };
    generation.shards_in_order().map(|(_, bytes)| table(bytes)).collect()
}

/// Splits a shard in two. Returns false if no upper bits are left.
fn split(generation: &mut Generation, place: Place, budget: usize) -> Result<bool, InsertError> {
    let depth = generation.pool.depth(place);
    if depth == generation.plan.max_depth {
        return Ok(false);
    }
    let stream = u64::from(generation.pool.record(place).prefix()) << 1 << (63 - depth);
    generation.split(place, depth + 1, stream, budget, |_, _| true)
}

fn assert_all_found(params: &ElasticParams, generation: &Generation, keys: &[Key]) {
    generation.assert_consistent(&params.generation(0), Dispatch::best());
    assert_eq!(generation.item_count(), keys.len() as u64);
    assert!(keys.iter().all(|&key| generation.contains_exactly(key) && generation.count(key, 0) > 0));
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn splitting_and_merging_restores_a_shard() {
    let (params, mut generation, keys) = filled();
    let (before, bytes) = (state(&generation), tables(&generation));
    for prefix in 0..1 << generation.global_depth() {
        let place = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).min_depth)];
        assert!(matches!(split(&mut generation, place, usize::MAX), Ok(true)));
        assert_all_found(&params, &generation, &keys);
        let half = generation.directory.entries()[prefix << (generation.global_depth() - params.generation(0).min_depth)];
        assert!(generation.merge_with_sibling(half, usize::MAX).expect("memory is available"));
        assert_all_found(&params, &generation, &keys);
        assert!(state(&generation) == before, "shard {prefix}");
        assert!(tables(&generation) == bytes, "shard {prefix}");
    }
}

/// Splits all shards, and merges them again.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn directories_double_and_halve() {
    let (params, mut generation, keys) = filled();
    let (plan, before) = (params.generation(0), state(&generation));
    let deepest = plan.min_depth + 1;
    for depth in plan.min_depth..deepest {
        // The last shard of the level takes the place of the one that has split.
        while generation.pool.level(depth).len() > 0 {
            let first = generation.pool.place_of_table(depth, 0);
            assert!(matches!(split(&mut generation, first, usize::MAX), Ok(true)));
        }
        assert_eq!((generation.global_depth(), generation.directory.entries().len()), (depth + 1, 2 << depth));
        assert_all_found(&params, &generation, &keys);
    }
    generation.merge_all_siblings();
    assert_all_found(&params, &generation, &keys);
    assert!(state(&generation) == before);
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_split_beyond_the_budget_changes_nothing() {
    let (params, mut generation, keys) = filled();
    let (before, bytes) = (state(&generation), (tables(&generation), generation.size_in_bytes()));
    for budget in [0, 100] {
        let place = generation.directory.entries()[0];
        assert!(matches!(split(&mut generation, place, budget).unwrap_err().kind(), InsertErrorKind::Limit { .. }));
        assert!(state(&generation) == before && (tables(&generation), generation.size_in_bytes()) == bytes);
    }
    assert_all_found(&params, &generation, &keys);
}

/// No item is lost.
#[test]
fn full_shards_split_as_often_as_necessary() {
    let (params, mut generation) = empty_generation();
    let (least, mut inserted) = (generation.shards(), Vec::new());
    for key in keys(&params).take(index(8 * HASHES)) {
        if !generation.insert(key) {
            let is_added = generation.add(key, 1, false, usize::MAX).expect("memory is available, and hashes are uniform");
            assert!(is_added, "the generation is planned for more items");
        }
        inserted.push(key);
    }
    assert!(generation.shards() > 2 * least || cfg!(miri));
    assert_all_found(&params, &generation, &inserted);
    for key in inserted.drain(HASHES as usize / 4..) {
        assert!(generation.remove(key, 0), "the item was inserted");
    }
    assert_all_found(&params, &generation, &inserted);
    generation.merge_all_siblings();
    assert_eq!(generation.shards(), least);
    assert_all_found(&params, &generation, &inserted);
}

/// A shard of the greatest depth does not split when it is full: the item needs a further generation.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_shard_of_the_greatest_depth_does_not_split() {
    let (params, mut generation) = empty_generation();
    let plan = params.generation(0);
    let add = |generation: &mut Generation, key| {
        generation.insert(key) || generation.add(key, 1, false, usize::MAX).expect("memory is available, and hashes are uniform")
    };
    let key = keys(&params).find(|&key| !add(&mut generation, key)).expect("the generation becomes full");
    let shards = generation.shards();
    assert!(generation.pool.depth(generation.place(key.stream)) == plan.max_depth && shards > 1 << (plan.max_depth - 1));
    assert!(generation.item_count() >= 64 * HASHES && generation.shards() <= 1 << plan.max_depth);
    let before = state(&generation);
    assert!(!add(&mut generation, key) && state(&generation) == before);
    generation.assert_consistent(&plan, Dispatch::best());
}

/// Checks that a list becomes a table when that takes less memory, and that removals make it a list again.
#[test]
fn lists_become_tables_and_tables_lists() {
    let (params, _) = empty_generation();
    let plan = params.generation(0);
    let mut generation = Generation::new(plan, Dispatch::best()).expect("memory is available");
    let mut inserted: Vec<Key> = Vec::new();
    for key in keys(&params).take(plan.list_capacity() + 1) {
        assert!(!generation.has_all_tables() && !generation.insert(key));
        let bytes = generation.size_in_bytes();
        for copies in 1..=3 {
            assert!(generation.add(key, 1, false, usize::MAX).expect("memory is available"));
            assert!(
                generation.count(key, 0) == copies && generation.item_count() == 3 * inserted.len() as u64 + u64::from(copies)
            );
        }
        inserted.push(key);
        if generation.has_all_tables() {
            assert!(
                generation.size_in_bytes() < bytes + 16 * inserted.len(),
                "{} instead of {bytes}",
                generation.size_in_bytes()
            );
        }
    }
    assert!(generation.has_all_tables() && generation.entries() == inserted.len() - 1);
    for (removed, &key) in inserted.iter().enumerate() {
        assert!((0..3).all(|_| generation.remove(key, 0)) && !generation.remove(key, 0));
        // The last item has two more copies in the table.
        let left = inserted.len() - removed - 1;
        assert!(if left > plan.list_again_at(u8::MAX) {
            generation.has_all_tables()
        } else {
            left + 2 > plan.list_again_at(u8::MAX) || !generation.has_all_tables()
        });
        // Under Miri, checking everything after each removal takes an hour.
        if !cfg!(miri) || removed.is_multiple_of(64) {
            generation.assert_consistent(&plan, Dispatch::best());
            assert!(inserted[removed + 1..].iter().all(|&key| generation.count(key, 0) == 3));
        }
    }
    assert_eq!(generation.item_count(), 0);
}

/// Items whose streams are equal, and more of them than a table of any depth holds, stay in a list, and others are separated from
/// them.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn only_the_shard_of_chosen_items_stays_a_list() {
    let (params, _) = empty_generation();
    let plan = params.generation(0);
    let mut generation = Generation::new(plan, Dispatch::best()).expect("memory is available");
    let fingerprints = (1..1 << plan.whole.low_bits).filter_map(Fingerprint::new);
    let keys_of_bucket = fingerprints.map(|low| Key { buckets: (2, plan.whole.alternate(2, low)), low, stream: u64::MAX });
    let chosen: Vec<Key> = keys_of_bucket.filter(|key| key.buckets.1 == 5).take(10).collect();
    assert_eq!(chosen.len(), 10);
    let mut inserted = Vec::new();
    for key in chosen.into_iter().chain(keys(&params).take(16 * plan.list_capacity())) {
        if !generation.insert(key) {
            assert!(generation.add(key, 1, true, usize::MAX).expect("memory is available"));
        }
        inserted.push(key);
    }
    generation.assert_consistent(&plan, Dispatch::best());
    assert!(inserted.iter().all(|&key| generation.contains_exactly(key)));
    let (tables, lists) = (generation.pool.tables(), generation.pool.lists_len());
    assert!(tables >= 10 && lists <= 2, "{tables} tables, {lists} lists, depth {}", generation.global_depth());
}

/// Many copies make all counts of lists long, so that a list may take more than the table of a deep shard.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn removals_beside_many_copies_never_raise_the_charge() {
    let params = ElasticParams::planned(0.1, 1000, 100_000);
    let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
    let keys: Vec<Key> = keys(&params).take(100_000).collect();
    for &key in &keys {
        assert!(generation.insert(key) || generation.add(key, 1, false, usize::MAX).expect("memory is available"));
    }
    generation.add_copies(keys[0], 0, 70_000, usize::MAX).expect("memory is available");
    let neighbors: Vec<Key> =
        keys[1..].iter().copied().filter(|key| generation.place(key.stream) == generation.place(keys[0].stream)).collect();
    let mut charge = generation.charged_bytes();
    for key in neighbors {
        assert!(generation.remove(key, 0));
        let after = generation.charged_bytes();
        assert!(
            after <= charge,
            "{after} bytes after {charge}, {} items in the shard",
            generation.items(generation.place(key.stream))
        );
        charge = after;
    }
    generation.assert_consistent(&params.generation(0), Dispatch::best());
}

/// Returns the table of a shard of this depth with these items.
fn table_of(plan: &GenerationPlan, depth: u8, keys: &[Key]) -> Vec<u8> {
    let layout = DepthLayout::new(plan, depth);
    let mut bytes = vec![0; layout.params.padded_bytes()];
    for key in keys {
        let insertion = key.insertion(&layout.params, layout.upper, CopyPolicy::Continue);
        assert!(Dispatch::best().change_deep(&layout.geometry, &mut bytes, insertion), "there is room");
    }
    bytes
}

/// Two tables whose items were chosen so that no table holds all of them stay two. What merging them would have freed is not spent for
/// lists.
#[test]
fn shrinking_beside_tables_that_cannot_be_merged_does_not_raise_the_charge() {
    let params = ElasticParams::planned(0.001, 1000, 1_000_000);
    let plan = params.generation(0);
    let at = |prefix: u64, key: Key| Key { stream: prefix << 62 | key.stream >> 2, ..key };
    let lows = (1..1 << plan.whole.low_bits).filter_map(Fingerprint::new);
    let keys_of_buckets = lows.map(|low| Key { buckets: (2, plan.whole.alternate(2, low)), low, stream: 0 });
    let chosen: Vec<Key> = keys_of_buckets.filter(|key| key.buckets.1 == 5).take(10).collect();
    let others: Vec<Key> = keys(&params).take(405).collect();
    let mut generation = Generation::with_levels(plan, &[2, 2, 2].into_iter(), Dispatch::best()).expect("memory is available");
    let mut push = |prefix: u32, keys: &[Key]| {
        let keys: Vec<Key> = keys.iter().map(|&key| at(prefix.into(), key)).collect();
        let items = u32::try_from(keys.len()).expect("a table");
        generation.push_table(2, prefix, items, &table_of(&plan, 2, &keys)).expect("memory is available");
    };
    push(0, &chosen[..5]);
    push(1, &chosen[5..]);
    push(3, &others[5..]);
    let mut list = List::new(plan.key_bytes());
    for &key in &others[..5] {
        assert!(list.add(plan.class_key(at(2, key)), 1, u32::MAX).expect("memory is available"));
    }
    generation.push_list(2, 2, list).expect("memory is available");
    generation.make_directory(2).expect("memory is available");
    generation.assert_consistent(&plan, Dispatch::best());
    let (charge, shards) = (generation.charged_bytes(), generation.shards());
    generation.merge_all_siblings();
    generation.assert_consistent(&plan, Dispatch::best());
    assert!(generation.charged_bytes() <= charge, "{} bytes after {charge}", generation.charged_bytes());
    assert_eq!((generation.shards(), generation.item_count()), (shards, 415));
}

/// Copies with unknown extra bits may be those of an item with known ones.
#[test]
fn an_item_has_at_most_as_many_copies_as_a_count_holds() {
    let too_many =
        |result: Result<(), InsertError>| matches!(result.expect_err("too many copies").kind(), InsertErrorKind::TooManyCopies);
    let (params, mut generation) = empty_generation();
    let key = keys(&params).next().expect("a key");
    assert!(generation.insert(key) && generation.plan.extra_bits > 2);
    generation.add_copies(key, 5, 1 << 31, usize::MAX).expect("there is room");
    assert!(too_many(generation.add_copies(key, 0, 1 << 31, usize::MAX)));
    generation.add_copies(key, 0, (1 << 31) - 2, usize::MAX).expect("there is room");
    assert!(too_many(generation.add_copies(key, 5, 1, usize::MAX)) && too_many(generation.add_copies(key, 0, 1, usize::MAX)));
    generation.add_copies(key, 6, 1 << 31, usize::MAX).expect("another item");
    generation.assert_consistent(&params.generation(0), Dispatch::best());
}

/// The copies of an item count, too, if its list becomes a table meanwhile.
#[test]
fn copies_from_lists_count_toward_the_limit() {
    let params = empty_generation().0;
    let plan = params.generation(0);
    let mut keys: Vec<Key> = keys(&params).take(2).collect();
    keys.sort_unstable_by_key(|&key| plan.class_key(key));
    let new = || {
        let mut generation = Generation::new(plan, Dispatch::best()).expect("memory is available");
        for (key, copies) in keys.iter().zip([1, u32::MAX - 1]) {
            assert!(generation.add(*key, copies, false, usize::MAX).expect("memory is available"));
        }
        generation
    };
    let entry = |key: usize, extra| plan.entry_key(plan.class_key(keys[key]), extra);
    for copies in 1..=3 {
        let mut generation = new();
        let added = generation.add_entries(vec![(entry(0, 5), 10), (entry(1, 0), copies)]);
        assert!(if copies == 1 { added.is_ok() } else { matches!(added.unwrap_err().kind(), InsertErrorKind::TooManyCopies) });
        generation.assert_consistent(&plan, Dispatch::best());
        let mut generation = new();
        assert_eq!(generation.add_copies(keys[1], 5, copies, usize::MAX).is_ok(), copies == 1);
        generation.assert_consistent(&plan, Dispatch::best());
    }
}

/// Checks that a large shard that cannot be split is full before eviction walks become long: at the item count that it is planned
/// for, or slightly above.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn large_shards_are_full_before_walks_become_long() {
    let params = ElasticParams::planned(0.01, 20_000, 20_000);
    let mut generation = Generation::new(params.generation(0), Dispatch::best()).expect("memory is available");
    let key = keys(&params).find(|&key| !generation.insert(key)).expect("the shard becomes full");
    let load = generation.item_count() as f64 / generation.plan.whole.slots() as f64;
    assert!((0.965..0.977).contains(&load) && generation.item_count() >= 20_000, "{load}");
    assert!(matches!(generation.add(key, 1, false, usize::MAX), Ok(false)), "the item needs a further generation");
    // The shard still has free slots beyond that count.
    assert!(generation.insert_even_if_full(key));
}

/// Returns the smaller bucket, the fingerprint and the number of copies of each different item, in order.
fn classes(shard: &Shard<'_>) -> Vec<(u64, u64, u32)> {
    let mut classes = Vec::new();
    shard.each_class(&mut |buckets, fingerprint, copies| {
        classes.push((buckets.0.min(buckets.1), fingerprint.wide(), copies));
        true
    });
    classes.sort_unstable();
    classes
}

/// The bytes behind a table, which belong to the next one: splits and merges neither read nor change them.
const FOLLOWING: [u8; PADDING] = [0xff; PADDING];

/// Splits a shard of depth 0, calls `check` with each half, and returns the bytes of a shard that is merged from them.
fn split_and_merged(shard: &Shard<'_>, check: &mut dyn FnMut(&ShardMut<'_>)) -> Vec<u8> {
    let (whole, dispatch) = (*shard.params(), shard.dispatch());
    let half = ShardParams { upper_bits: whole.upper_bits - 1, depth: 1, ..whole };
    let mut merged = [vec![0; whole.table_bytes()], FOLLOWING.to_vec()].concat();
    for bit in 0..2 {
        let mut part = vec![0; half.padded_bytes()];
        let mut part = ShardMut::from_parts(half, &mut part[..], 0).with_dispatch(dispatch);
        assert!(part.fill_part(shard, bit), "{half:?}: there is room in a half");
        check(&part);
        let bytes = [part.table(), &FOLLOWING].concat();
        let part = Shard::from_parts(half, &bytes[..], part.items()).with_dispatch(dispatch);
        let mut whole = ShardMut::from_parts(whole, &mut merged[..], 0).with_dispatch(dispatch);
        assert!(whole.add_half(&part, bit), "{half:?}: there is room in the whole");
    }
    assert!(merged.ends_with(&FOLLOWING), "{whole:?}: the bytes behind the table have changed");
    merged.truncate(whole.table_bytes());
    merged
}

/// Fingerprints that differ only in the highest of their bits are those of two items, in every kind of table with a column. A split
/// sends them to different halves, and merging the halves restores the shard's bytes.
#[test]
fn shards_store_every_bit_of_64() {
    let bits = [(32, 32), (32, 31), (32, 30), (17, 29), (4, 32), (16, 16), (13, 15), (13, 1)];
    for (buckets_in_table, (low_bits, upper_bits)) in [2, 6, 8].into_iter().flat_map(|buckets| bits.map(|bits| (buckets, bits))) {
        for kernel in Kernel::available() {
            let dispatch = kernel.dispatch().expect("it is available");
            let whole =
                ShardParams { buckets: buckets_in_table, low_bits, upper_bits, ..empty_generation().0.generation(0).shard(0) };
            let context = format!("{buckets_in_table} buckets, {low_bits} and {upper_bits} bits, {kernel}");
            let highest = 1 << (whole.stored_bits() - 1);
            let items: Vec<(u64, Fingerprint)> = (0..u64::from(buckets_in_table))
                .map(|bucket| {
                    let fingerprint = split_mix(bucket) & (highest - 1) | 1;
                    (bucket, Fingerprint::new(fingerprint).expect("it is not 0"))
                })
                .collect();
            let twin = |(bucket, fingerprint): (u64, Fingerprint)| (bucket, fingerprint.with(highest));
            let buckets = |(bucket, fingerprint)| (bucket, whole.alternate(bucket, fingerprint));

            let (geometry, mut bytes) = (DeepGeometry::new(&whole), vec![0; whole.padded_bytes()]);
            let store = |bytes: &mut [u8], item: (u64, Fingerprint)| {
                let (buckets, fingerprint) = (buckets(item), item.1);
                let locate = |_: &ShardParams| (buckets, fingerprint);
                let insertion = Insertion { params: &whole, locate, copy_policy: CopyPolicy::Continue };
                assert!(dispatch.change_deep(&geometry, bytes, insertion), "{context}: there is room");
            };
            let contains =
                |bytes: &[u8], item: (u64, Fingerprint)| dispatch.read_deep(&geometry, bytes, Lookup(|| (buckets(item), item.1)));
            for &item in &items {
                store(&mut bytes, item);
                assert!(contains(&bytes, item) && !contains(&bytes, twin(item)), "{context}");
            }
            for &item in &items {
                store(&mut bytes, twin(item));
                assert!(contains(&bytes, item) && contains(&bytes, twin(item)), "{context}");
            }

            let shard = Shard::from_parts(whole, &bytes[..], 2 * u64::from(buckets_in_table)).with_dispatch(dispatch);
            assert_eq!(shard.taken(0..buckets_in_table.into()), Some(2 * u64::from(buckets_in_table)), "{context}");
            let of = |item: (u64, Fingerprint)| (item.0.min(buckets(item).1), item.1.wide(), 1);
            let mut expected: Vec<_> = items.iter().flat_map(|&item| [of(item), of(twin(item))]).collect();
            expected.sort_unstable();
            assert_eq!(classes(&shard), expected, "{context}");

            let merged = split_and_merged(&shard, &mut |part| {
                assert_eq!(part.items(), u64::from(buckets_in_table), "{context}");
                part.each_fingerprint(|_, fingerprint| {
                    assert!(items.iter().any(|item| item.1 == fingerprint), "{context}");
                    true
                });
            });
            assert!(merged == shard.table(), "{context}");

            for &item in &items {
                let located = Located::new(buckets(item), item.1);
                assert!(dispatch.change_deep(&geometry, &mut bytes, located.removal()), "{context}");
                assert!(!contains(&bytes, item) && contains(&bytes, twin(item)), "{context}");
            }
        }
    }
}

/// After splits, whatever the items, readers accept the directories: they take at most 16 MiB, or as much as the snapshot is long, even
/// if all shards are empty lists, of which it has records of 24 bytes.
#[test]
fn snapshots_have_directories_that_readers_allow() {
    const GENERATIONS: u64 = 5;
    for partition_bits in 0..=8 {
        for shards in (0..27).flat_map(|bits| [1 << bits, 3 << bits, (1 << bits) + 1]) {
            let all = GENERATIONS << partition_bits;
            let (directories, records) = (4 * all * super::insert::most_entries(shards, partition_bits), 24 * all * shards);
            assert!(directories <= records.max(16 << 20), "{shards} shards in each of 2^{partition_bits} partitions");
        }
    }
}
