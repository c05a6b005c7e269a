//! Compares many small filters, each with one block of keys: koel's as structs, snapshots and bare tables, and those of xorf and
//! fastbloom. Prints a table in Markdown.
//!
//! ```sh
//! cargo run --release -p koel-peers --example small
//! cargo run --release -p koel-peers --example small -- 10000 1 # the numbers of keys in all and of rounds
//! ```

#![warn(clippy::print_stderr)]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small numbers")]

use std::{
    env,
    hash::BuildHasherDefault,
    hint::black_box,
    io::{self, Write as _},
    time::Instant,
};

use anyhow::{anyhow, bail, ensure};
use fastbloom::BloomFilter;
use koel::{CuckooFilter, FilterView, Xxh3};
use koel_lab::Quartiles;
use koel_peers::{digest, mix};
use xorf::{BinaryFuse8, BinaryFuse8Ref, DmaSerializable, Filter as _, FilterRef as _};

const RATE: f64 = 1.0 / 256.0;

/// All filters hash alike.
type Bloom = BloomFilter<BuildHasherDefault<koel_peers::Xxh3>>;

/// The keys of one run.
struct Work {
    /// The keys of each filter.
    blocks: Vec<Vec<u64>>,
    /// The lookups of present keys, as the index of a filter and a key, with filters in random order.
    present: Vec<(usize, u64)>,
    /// The lookups of absent keys.
    absent: Vec<(usize, u64)>,
}

impl Work {
    fn new(block: usize, keys: usize) -> Self {
        let count = (keys / block).max(1);
        let blocks: Vec<Vec<u64>> = (0..count).map(|n| (0..block).map(|k| mix((n * block + k) as u64)).collect()).collect();
        let lookups = (0..count * block).map(|n| (mix(!(n as u64)) as usize % count, n));
        let present = lookups.clone().map(|(filter, n)| (filter, blocks[filter][n % block])).collect();
        let absent = lookups.map(|(filter, n)| (filter, mix((1 << 40) + n as u64))).collect();
        Self { blocks, present, absent }
    }

    fn keys(&self) -> usize {
        self.present.len()
    }
}

/// The measurements of one kind of filter: bytes per filter, and nanoseconds.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    bytes: f64,
    /// The time per key.
    build: f64,
    /// The time to open a filter; `None` for structs, which are never opened.
    open: Option<f64>,
    present: f64,
    absent: f64,
    rate: f64,
}

/// Returns the result of `run`, and its time in nanoseconds, divided by `times`.
fn timed<T>(times: usize, run: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = run();
    (result, start.elapsed().as_secs_f64() * 1e9 / times as f64)
}

/// Opens filters in random order, one at a time. Then opens all filters, and looks up all keys in them.
fn measure<V>(
    (name, bytes, build): (&'static str, usize, f64),
    work: &Work,
    is_opened: bool,
    open: impl Fn(usize) -> anyhow::Result<V>,
    contains: impl Fn(&V, u64) -> bool,
) -> anyhow::Result<Row> {
    let count = work.blocks.len();
    let (all_opened, time) = timed(work.keys(), || work.present.iter().all(|&(n, _)| black_box(open(n)).is_ok()));
    ensure!(all_opened, "{name}: a filter could not be opened");
    let open_time = is_opened.then_some(time);
    let views = (0..count).map(open).collect::<anyhow::Result<Vec<_>>>()?;
    let found = |keys: &[(usize, u64)]| {
        timed(keys.len(), || keys.iter().filter(|&&(n, key)| black_box(contains(&views[n], key))).count())
    };
    let ((hits, present), (false_positives, absent)) = (found(&work.present), found(&work.absent));
    ensure!(hits == work.keys(), "{name}: {} keys were lost", work.keys() - hits);
    let (bytes, rate) = (bytes as f64 / count as f64, false_positives as f64 / work.keys() as f64);
    Ok(Row { name, bytes, build, open: open_time, present, absent, rate })
}

/// Returns an empty filter, planned for one percent more keys than a block has, so that no filter refuses a key.
fn empty_filter(block: usize) -> anyhow::Result<CuckooFilter> {
    let capacity = block + block / 100;
    Ok(CuckooFilter::builder().capacity(capacity).false_positive_rate(RATE).build()?)
}

/// Fills and writes a filter for each block, one after the other in the same memory. Returns the bytes and the time per key.
fn write_filters(
    work: &Work,
    mut filter: CuckooFilter,
    write: impl Fn(&CuckooFilter, &mut Vec<u8>) -> io::Result<()>,
) -> anyhow::Result<(Vec<u8>, f64)> {
    let (bytes, time) = timed(work.keys(), || {
        let mut bytes = Vec::new();
        for keys in &work.blocks {
            filter.clear();
            filter.insert_batch(keys)?;
            write(&filter, &mut bytes)?;
        }
        anyhow::Ok(bytes)
    });
    Ok((bytes?, time))
}

fn structs(work: &Work, block: usize) -> anyhow::Result<Row> {
    let params = empty_filter(block)?.params();
    let filled = |keys: &Vec<u64>| {
        let mut filter = CuckooFilter::new(params, Xxh3)?;
        filter.insert_batch(keys)?;
        anyhow::Ok(filter)
    };
    let (filters, time) = timed(work.keys(), || work.blocks.iter().map(filled).collect::<anyhow::Result<Vec<_>>>());
    let filters = filters?;
    let bytes = filters.iter().map(CuckooFilter::size_in_bytes).sum();
    measure(("koel, structs", bytes, time), work, false, |n| Ok(&filters[n]), |filter, key| filter.contains(&key))
}

fn snapshots(work: &Work, block: usize) -> anyhow::Result<Row> {
    let filter = empty_filter(block)?;
    let stride = filter.to_bytes().len();
    let (bytes, time) = write_filters(work, filter, |filter, bytes| filter.write_to(bytes))?;
    let open = |n: usize| Ok(FilterView::over(&bytes[n * stride..][..stride])?);
    measure(("koel, snapshots", bytes.len(), time), work, true, open, |view, key| view.contains(&key))
}

fn bare_tables(work: &Work, block: usize) -> anyhow::Result<Row> {
    let filter = empty_filter(block)?;
    let params = filter.params();
    let (mut bytes, time) = write_filters(work, filter, |filter, bytes| filter.write_table(bytes))?;
    bytes.extend([0; 4]);
    let open = |n: usize| Ok(FilterView::over_table(&bytes[n * params.bare_table_bytes()..], params, block)?);
    measure(("koel, bare tables", bytes.len(), time), work, true, open, |view, key| view.contains(&key))
}

/// Measures xorf's filters, each stored as a descriptor and fingerprints. The caller keeps the start of each, because xorf does not
/// store the length.
fn fuse(work: &Work) -> anyhow::Result<Row> {
    const DESCRIPTOR: usize = BinaryFuse8::DESCRIPTOR_LEN;
    let (built, time) = timed(work.keys(), || {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for keys in &work.blocks {
            let digests: Vec<u64> = keys.iter().copied().map(digest).collect();
            let filter = BinaryFuse8::try_from(digests).map_err(|error| anyhow!(error))?;
            let mut descriptor = [0; DESCRIPTOR];
            filter.dma_copy_descriptor_to(&mut descriptor);
            bytes.extend_from_slice(&descriptor);
            bytes.extend_from_slice(filter.dma_fingerprints());
            starts.push(bytes.len());
        }
        anyhow::Ok((bytes, starts))
    });
    let (bytes, starts) = built?;
    let open = |n: usize| {
        let (descriptor, fingerprints) = bytes[starts[n]..starts[n + 1]].split_at(DESCRIPTOR);
        Ok(BinaryFuse8Ref::from_dma(descriptor, fingerprints))
    };
    let kind = ("xorf 0.13, BinaryFuse8", bytes.len(), time);
    measure(kind, work, true, open, |view, key| view.contains(&digest(key)))
}

/// Measures fastbloom's filters. The crate has no view, so the bytes are those of the bits and the struct.
fn bloom(work: &Work, block: usize) -> anyhow::Result<Row> {
    let filled = |keys: &Vec<u64>| {
        let mut filter: Bloom = BloomFilter::with_false_pos(RATE).hasher(BuildHasherDefault::default()).expected_items(block);
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter
    };
    let (filters, time) = timed(work.keys(), || work.blocks.iter().map(filled).collect::<Vec<_>>());
    let bytes = filters.iter().map(|filter| size_of_val(filter) + size_of_val(filter.as_slice())).sum();
    let kind = ("fastbloom 0.17, structs", bytes, time);
    measure(kind, work, false, |n| Ok(&filters[n]), |filter, key| filter.contains(&key))
}

/// Returns the medians of the rounds for one kind of filter.
fn median(rounds: &[Vec<Row>], kind: usize) -> Row {
    let of = |figure: fn(&Row) -> f64| {
        Quartiles::of(rounds.iter().map(|rows| figure(&rows[kind]))).map_or(f64::NAN, |quartiles| quartiles.median)
    };
    let first = rounds[0][kind];
    Row {
        build: of(|row| row.build),
        open: first.open.map(|_| of(|row| row.open.unwrap_or_default())),
        present: of(|row| row.present),
        absent: of(|row| row.absent),
        ..first
    }
}

fn main() -> anyhow::Result<()> {
    let mut numbers = [1_000_000, 5];
    for (at, argument) in env::args_os().skip(1).enumerate() {
        let number = argument.to_str().and_then(|text| text.parse().ok()).filter(|&number: &usize| number > 0);
        let (Some(number), Some(place)) = (number, numbers.get_mut(at)) else {
            bail!("{}: give at most two numbers, from 1: of keys in all, and of rounds", argument.display());
        };
        *place = number;
    }
    let [keys, rounds] = numbers;
    let mut out = io::stdout().lock();
    writeln!(out, "ε = 1/256; about {keys} keys in filters of so many each; medians of {rounds} rounds, in one thread.\n")?;
    writeln!(
        out,
        "| keys | filter | bytes each | bits per key | build ns | open ns | find present ns | find absent ns | measured ε |"
    )?;
    writeln!(out, "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")?;
    for block in [100, 1000, 10_000] {
        let work = Work::new(block, keys);
        let round = |_| {
            [structs(&work, block), snapshots(&work, block), bare_tables(&work, block), fuse(&work), bloom(&work, block)]
                .into_iter()
                .collect::<anyhow::Result<Vec<Row>>>()
        };
        let rows = (0..rounds).map(round).collect::<anyhow::Result<Vec<_>>>()?;
        for kind in 0..rows[0].len() {
            let Row { name, bytes, build, open, present, absent, rate } = median(&rows, kind);
            let open = open.map_or_else(|| String::from("–"), |open| format!("{open:.1}"));
            let (bits, rate) = (8.0 * bytes / block as f64, 100.0 * rate);
            writeln!(
                out,
                "| {block} | {name} | {bytes:.0} | {bits:.2} | {build:.1} | {open} | {present:.1} | {absent:.1} | {rate:.2} % |"
            )?;
        }
    }
    Ok(())
}
