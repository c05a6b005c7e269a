//! A shared filter holds no lock while it calls the user's writer, hasher or iterator, so these may use the filter themselves.

use std::{
    io::{self, Read as _, Write},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use crate::common::key;
use koel::{
    ElasticFilter, Prehashed, SharedFilter, Xxh3,
    hash::{Hasher, HasherId, Uniform},
};

fn filled() -> SharedFilter {
    let filter = ElasticFilter::builder().false_positive_rate(0.001).partitions(4).build_shared().expect("valid parameters");
    filter.insert_batch(&(0..20_000u64).collect::<Vec<_>>()).expect("the filter grows");
    filter
}

/// A writer that, while a filter is written to it, runs many operations on the same filter.
struct ReentrantWriter<'a> {
    filter: &'a SharedFilter,
    bytes: Vec<u8>,
    next: u64,
}

impl Write for ReentrantWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let items: Vec<u64> = (self.next..self.next + 40).collect();
        self.next += 40;
        let mut found = [false; 40];
        self.filter.insert_batch(&items).map_err(io::Error::other)?;
        self.filter.contains_batch(&items, &mut found);
        assert!(found.iter().all(|&found| found) && self.filter.contains(&items[7]) && !self.filter.is_empty());
        self.filter.remove_batch(&items[..20], &mut found[..20]);
        let _ = self.filter.insert_unique(&items[30]).map_err(io::Error::other)?;
        self.filter.shrink();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_may_use_the_filter_it_receives() {
    let filter = filled();
    let mut writer = ReentrantWriter { filter: &filter, bytes: Vec::new(), next: 1 << 40 };
    filter.write_to(&mut writer).expect("the writer accepts everything");
    let read = ElasticFilter::from_bytes(&writer.bytes).expect("a valid snapshot");
    assert!((0..20_000u64).all(|n| read.contains(&n)));
}

/// The reader at the other end of a pipe inserts into the filter before it reads on.
#[test]
#[cfg(unix)]
fn a_reader_of_the_pipe_may_insert_while_the_filter_is_written() {
    let filter = filled();
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let read = thread::scope(|scope| {
        let filter = &filter;
        scope.spawn(move || filter.write_to(writer).expect("the other end reads"));
        let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
        loop {
            match reader.read(&mut piece).expect("a pipe") {
                0 => return bytes,
                len => {
                    // These items reach all partitions, including the one that is being written.
                    (0..64u64).for_each(|n| filter.insert(&(n + bytes.len() as u64 * 1000)).expect("the filter grows"));
                    bytes.extend_from_slice(&piece[..len]);
                }
            }
        }
    });
    let read = ElasticFilter::from_bytes(&read).expect("a valid snapshot");
    assert!((0..20_000u64).all(|n| read.contains(&n)));
}

/// The filter that [`ReentrantHasher`] uses, which has this hasher itself.
static REENTRANT: OnceLock<SharedFilter<ReentrantHasher>> = OnceLock::new();

static HASHED: AtomicUsize = AtomicUsize::new(0);

/// A hasher that inserts an item into its own filter and looks it up, on the same thread, each time it hashes. These items have
/// hashes already.
#[derive(Clone)]
struct ReentrantHasher;

impl Hasher for ReentrantHasher {
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        let filter = REENTRANT.get().expect("the filter is built");
        let key = Prehashed(key(1 << 40 | HASHED.fetch_add(1, Relaxed) as u64));
        filter.insert(&key).expect("the filter grows");
        assert!(filter.contains(&key));
        Xxh3.hash(seed, bytes)
    }

    fn id(&self) -> HasherId {
        assert!(REENTRANT.get().is_none_or(|filter| !filter.is_empty()));
        HasherId::custom(0x8001)
    }
}

#[test]
fn hashers_and_iterators_may_use_the_filter_itself() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).hasher(ReentrantHasher).partitions(4);
    let filter = REENTRANT.get_or_init(|| builder.build_shared().expect("valid parameters"));
    let items: Vec<u64> = (0..500).collect();
    filter.insert_batch(&items).expect("the filter grows");
    let mut found = vec![false; items.len()];
    filter.contains_batch(&items, &mut found);
    assert!(found.iter().all(|&found| found));
    // The iterator inserts into the same filter that pulls its items.
    let lazily = (500..900u64).inspect(|n| filter.insert(n).expect("the filter grows"));
    assert!(filter.contains_iter(lazily).all(|(_, found)| found));
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("writing to a vector succeeds");
    filter.remove_batch(&items, &mut found);
    let hashed = HASHED.load(Relaxed);
    assert!(hashed > 1000 && filter.len() == 400 + hashed, "{hashed} hashed, {filter}");
}
