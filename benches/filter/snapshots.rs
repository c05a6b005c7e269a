//! Writing and reading snapshots, compared with a copy of the same bytes; and the time to map a file, open it and look up one item.

use crate::{
    keys::key,
    sizes::sizes,
    tables::{PACKED_13, SINGLE_13, Table},
};
use criterion::{BatchSize, BenchmarkGroup, Criterion, measurement::WallTime};
use koel::{CuckooFilter, ElasticFilter, FilterView};
use koel_benches::Scratch;
use std::hint::black_box;

const TABLES: [Table; 3] = [PACKED_13, SINGLE_13, Table::packed(25)];

pub(crate) fn benches(criterion: &mut Criterion) {
    for size in sizes() {
        let mut group = criterion.benchmark_group(format!("snapshot/{}", size.name));
        group.sample_size(10);
        for table in TABLES.into_iter().filter(|table| size.is_small || table.is_main()) {
            let mut made = None;
            let mut bench = |name: &str, run: &dyn Fn(&CuckooFilter, &[u8])| {
                group.bench_function(format!("{table} {name}"), |bencher| {
                    let (filter, bytes) = made.get_or_insert_with(|| {
                        let filter = table.full(size.items);
                        let bytes = filter.to_bytes();
                        (filter, bytes)
                    });
                    bencher.iter_batched(|| (), |()| run(filter, bytes), BatchSize::PerIteration);
                });
            };
            // A copy that includes the allocation, as the other operations do.
            bench("memcpy", &|_, bytes| _ = black_box(bytes.to_vec()));
            bench("to_bytes", &|filter, bytes| assert_eq!(black_box(filter.to_bytes()).len(), bytes.len()));
            bench("from_bytes", &|filter, bytes| assert_eq!(read(CuckooFilter::from_bytes(bytes)).len(), filter.len()));
            bench("verify", &|_, bytes| read(FilterView::over(bytes).and_then(|view| view.verify())));
            bench("write_to", &|filter, _| filter.write_to(black_box(std::io::sink())).expect("writing to a sink succeeds"));
            bench("read_from", &|filter, bytes| assert_eq!(read(CuckooFilter::read_from(bytes)).len(), filter.len()));
        }
        group.bench_function("growing from_bytes", |bencher| {
            let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
            filter.insert_iter((0..size.items).map(key)).expect("the filter grows");
            let bytes = filter.to_bytes();
            bencher.iter(|| assert_eq!(read(ElasticFilter::from_bytes(black_box(&bytes))).len(), filter.len()));
        });
        open(&mut group, size.items);
        group.finish();
    }
}

fn read<T>(result: Result<T, koel::SnapshotError>) -> T {
    result.expect("a valid snapshot")
}

fn open(group: &mut BenchmarkGroup<'_, WallTime>, items: u64) {
    let file = Scratch::new("snapshot");
    let mut is_saved = false;
    group.bench_function(format!("{PACKED_13} open and one query"), |bencher| {
        if !is_saved {
            PACKED_13.full(items).save(file.path()).expect("there is disk space");
            is_saved = true;
        }
        let mut n = 0;
        bencher.iter(|| {
            n = (n + 1) % items;
            assert!(black_box(read(FilterView::over(file.map())).contains(&key(n))));
        });
    });
}
