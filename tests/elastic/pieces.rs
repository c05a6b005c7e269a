//! The pieces of a snapshot from `read_snapshot` add up to `to_bytes`.

use koel::{ElasticFilter, pieces::SnapshotIndex};

use super::snapshots::{all_kinds, small};
use crate::common::{filled, key};

fn index(filter: &ElasticFilter) -> SnapshotIndex {
    filter.snapshot_index().expect("there is memory")
}

/// Reads the whole snapshot in pieces of `piece` bytes.
fn read_in_pieces(filter: &ElasticFilter, index: &SnapshotIndex, piece: usize) -> Vec<u8> {
    let (mut all, mut bytes) = (Vec::new(), vec![0xa5; piece]);
    loop {
        let len = filter.read_snapshot(index, all.len() as u64, &mut bytes);
        all.extend_from_slice(&bytes[..len]);
        if len < piece {
            return all;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn pieces_of_any_length_add_up_to_the_snapshot() {
    let mut filters = all_kinds();
    filters.push(filled(small().partitions(64), 0));
    filters.push(filled(small().partitions(64).capacity(10).max_capacity(300), 200_000));
    for filter in filters {
        let (whole, index) = (filter.to_bytes(), index(&filter));
        assert_eq!((filter.snapshot_bytes(), index.snapshot_bytes()), (whole.len() as u64, whole.len() as u64));
        assert!((24 * filter.shards()..24 * filter.shards() + 10_000).contains(&index.size_in_bytes()), "{index:?}");
        for piece in [1, 7, 64, 4096, whole.len(), whole.len() + 1] {
            if piece > 1 || whole.len() < 50_000 {
                assert!(read_in_pieces(&filter, &index, piece) == whole, "{filter}, pieces of {piece} bytes");
            }
        }
        for n in 0..300 {
            let start = key(n) as usize % (whole.len() + 20);
            let mut bytes = vec![0xa5; key(1000 + n) as usize % 9000];
            let len = filter.read_snapshot(&index, start as u64, &mut bytes);
            let expected = whole.get(start..).unwrap_or_default();
            assert_eq!(len, expected.len().min(bytes.len()));
            assert!(bytes[..len] == expected[..len] && bytes[len..].iter().all(|&byte| byte == 0xa5), "{filter}, from {start}");
        }
        assert_eq!(filter.read_snapshot(&index, u64::MAX, &mut [0; 9]), 0);
    }
}

/// After any change to the filter, the pieces have the length that the index states, and every reader refuses them.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn pieces_of_a_changed_filter_are_refused() {
    for before in all_kinds() {
        let index = index(&before);
        let (mut grown, mut smaller) = (before.clone(), before.clone());
        grown.insert_iter((1 << 40..(1 << 40) + 30_000).map(key)).expect("the filter grows");
        let mut removed = 0;
        (0..20_000 * 20).for_each(|n| removed += usize::from(smaller.remove(&key(n % 20_000))));
        assert!(removed == before.len() || before.len() == 30_000);
        smaller.shrink();
        for changed in [grown, smaller, filled(small().partitions(2), 3000), filled(small(), 0)] {
            let bytes = read_in_pieces(&changed, &index, 1000);
            assert_eq!(bytes.len() as u64, index.snapshot_bytes());
            // The pieces are still valid only if the filter was empty, and had no tables or is empty again.
            let is_same = before.is_empty() && (changed.is_empty() || before.table_bytes() == 0);
            assert_eq!(ElasticFilter::from_bytes(&bytes).is_ok(), is_same, "{before}: {changed}");
        }
    }
}
