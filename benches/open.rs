//! The time to open a view of a growing filter in a mapped file, compared with reading a record before each table, as in memory.
//!
//! ```sh
//! cargo bench --bench open                # 100 M items, a minute, 250 MB of memory and of disk
//! cargo bench --bench open -- 10000000    # this many items
//! ```
//!
//! Prints Markdown. The file is in the folder for temporary files, and is deleted. `dd` drops it from the page cache.

#![allow(clippy::cast_precision_loss, reason = "figures are rounded for display")]

use std::{
    hint::black_box,
    process::{Command, Stdio},
    time::Instant,
};

use koel::{ElasticFilter, ElasticView};
use koel_benches::{Extent, Scratch, count, key, median, row};

const ITEMS: u64 = 100_000_000;
const ROUNDS: usize = 7;
/// The number of keys that are in memory at a time.
const PIECE: usize = 1 << 22;
/// Bytes of a shard's record in the list.
const LISTED: usize = 24;
/// Bytes of a record before a table.
const BEFORE: usize = 8;

/// The name of an action on the bytes of the mapped file, and the action.
type Action<'a> = (&'a str, &'a dyn Fn(&[u8]));

/// Reads all of these bytes.
fn read(bytes: &[u8]) {
    black_box(bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>());
}

/// Drops a file from the page cache. Returns whether this succeeded.
fn drop_cached(file: &Scratch) -> bool {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", file.path().display())).args(["iflag=nocache", "count=0"]).stderr(Stdio::null());
    dd.status().is_ok_and(|status| status.success())
}

fn main() {
    let Extent { items, rounds } = Extent::of_arguments(&[], ITEMS, ROUNDS);
    let most = usize::try_from(items).expect("the items fit into memory");
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).max_capacity(most);
    let mut filter = builder.build().expect("valid parameters");
    let mut keys = Vec::new();
    for start in (0..items).step_by(PIECE) {
        keys.clear();
        keys.extend((start..items.min(start + PIECE as u64)).map(key));
        filter.insert_unordered(&keys).expect("the filter grows");
    }
    let (file, shards) = (Scratch::new("open"), filter.shards());
    filter.save(file.path()).expect("there is disk space");
    drop((filter, keys));
    let stride = file.map().len() / shards;
    let open = |bytes: &[u8]| assert_eq!(ElasticView::over(bytes).expect("a valid snapshot").len(), most);
    let lists = |bytes: &[u8]| read(&bytes[..LISTED * shards]);
    let before_tables = |bytes: &[u8]| (0..shards).for_each(|shard| read(&bytes[shard * stride..][..BEFORE]));
    let actions: [Action<'_>; 3] = [
        ("`ElasticView::over`", &open),
        ("reading the list of shards alone", &lists),
        ("reading eight bytes before each table", &before_tables),
    ];
    println!("{} items in {} shards: ms, medians of {rounds} rounds (least to most).\n", count(items), count(shards));
    println!("| | in the page cache | from the disk |\n|---|---:|---:|");
    for (name, action) in actions {
        let cells = [false, true].map(|is_cold| {
            let round = |_| {
                let is_dropped = !is_cold || drop_cached(&file);
                let (start, map) = (Instant::now(), file.map());
                action(&map);
                is_dropped.then(|| start.elapsed().as_secs_f64() * 1e3)
            };
            let times: Option<Vec<f64>> = (0..rounds).map(round).collect();
            times.map_or_else(
                || String::from("–"),
                |times| {
                    let (least, most) =
                        times.iter().fold((f64::INFINITY, 0_f64), |(least, most), &time| (least.min(time), most.max(time)));
                    format!("{:.1} ({least:.1} to {most:.1})", median(&times))
                },
            )
        });
        row(name, cells);
    }
}
