//! Code of the caller's that uses the filter which called it: no lock is held then.

use std::{
    io::{self, Read as _, Write},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use koel::{
    ElasticFilter, Prehashed, SharedFilter, Xxh3,
    hash::{Hasher, HasherId, Uniform},
};

fn filled() -> SharedFilter {
    let filter = ElasticFilter::builder().false_positive_rate(0.001).partitions(4).build_shared().expect("right");
    filter.insert_batch(&(0..20_000u64).collect::<Vec<_>>()).expect("it grows");
    filter
}

/// A writer that uses every operation of the filter that is being written.
struct Meddling<'a> {
    filter: &'a SharedFilter,
    bytes: Vec<u8>,
    next: u64,
}

impl Write for Meddling<'_> {
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
fn a_writer_may_use_the_filter() {
    let filter = filled();
    let mut writer = Meddling { filter: &filter, bytes: Vec::new(), next: 1 << 40 };
    filter.write_to(&mut writer).expect("it takes everything");
    let read = ElasticFilter::from_bytes(&writer.bytes).expect("a snapshot");
    assert!((0..20_000u64).all(|n| read.contains(&n)));
}

/// The reader at the other end of a pipe inserts what it reads before it reads on.
#[test]
#[cfg(unix)]
fn the_reader_of_a_pipe_may_use_the_filter() {
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
                    // All partitions, so one that is being written, too.
                    (0..64u64).for_each(|n| filter.insert(&(n + bytes.len() as u64 * 1000)).expect("it grows"));
                    bytes.extend_from_slice(&piece[..len]);
                }
            }
        }
    });
    let read = ElasticFilter::from_bytes(&read).expect("a snapshot");
    assert!((0..20_000u64).all(|n| read.contains(&n)));
}

/// A hasher that asks the filter, here one of the same thread's, about another item each time it hashes.
#[derive(Clone)]
struct Asking(&'static SharedFilter, &'static AtomicUsize);

impl Hasher for Asking {
    fn hash(&self, seed: u64, bytes: &[u8]) -> Uniform {
        let key = Prehashed(self.1.fetch_add(1, Relaxed) as u64);
        let _ = self.0.insert(&key);
        assert!(self.0.contains(&key));
        Xxh3.hash(seed, bytes)
    }

    fn id(&self) -> HasherId {
        assert!(!self.0.is_empty());
        HasherId::custom(0x8001)
    }
}

#[test]
fn hashers_and_iterators_may_use_filters() {
    static HASHED: AtomicUsize = AtomicUsize::new(0);
    let asked: &SharedFilter = Box::leak(Box::new(filled()));
    let builder = ElasticFilter::builder().false_positive_rate(0.001).hasher(Asking(asked, &HASHED)).partitions(4);
    let filter = builder.build_shared().expect("right");
    let items: Vec<u64> = (0..500).collect();
    filter.insert_batch(&items).expect("it grows");
    let mut found = vec![false; items.len()];
    filter.contains_batch(&items, &mut found);
    assert!(found.iter().all(|&found| found));
    // An iterator that inserts into the filter which asks for its next item.
    let lazily = (500..900u64).inspect(|n| filter.insert(n).expect("it grows"));
    assert!(filter.contains_iter(lazily).all(|(_, found)| found));
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("a vector takes all");
    filter.remove_batch(&items, &mut found);
    assert!(HASHED.load(Relaxed) > 1000 && filter.len() == 400);
}
