//! Inserts items several times into filters that are sized for the number of distinct items: koel, other cuckoo filters, and a
//! quotient filter. Prints tables in Markdown.
//!
//! ```sh
//! cargo run --release -p koel-peers --example copies
//! cargo run --release -p koel-peers --example copies -- 1000 # the number of distinct items
//! cargo run --release -p koel-peers --example copies -- copies.svg # also draws the chart
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small numbers")]

#[path = "../../../tests/common/heap.rs"]
mod heap;

use std::{
    env,
    ffi::OsString,
    hash::Hasher,
    hint::black_box,
    io::{self, Write},
    path::PathBuf,
};

use anyhow::{bail, ensure};
use koel::{
    Addressing, CuckooFilter, ElasticFilter, Insert,
    go::{GoFilter, MetroHash64},
};
use koel_lab::{Axis, Chart, Series, Table, chart};
use koel_peers::mix;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};

use self::heap::{Counting, held};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RATE: f64 = 0.001;
const COPIES: [usize; 8] = [1, 2, 3, 4, 6, 8, 16, 50];

/// A fast hasher, for filters that hash in each step of an eviction walk.
#[derive(Clone, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let number = chunk.iter().fold(1, |number, &byte| number << 8 | u64::from(byte));
            self.0 = mix(self.0.rotate_left(32) ^ number);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(32) ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A filter under test. `remove` and `count` return `None` if the filter does not support them.
trait Multiset {
    /// Returns false if the filter reports that it has no room.
    fn insert(&mut self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&mut self, key: u64) -> Option<bool>;
    fn count(&self, _key: u64) -> Option<u64> {
        None
    }
}

/// One of koel's filters.
struct Koel<F>(F);

impl<F: Insert<u64>> Multiset for Koel<F> {
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key).is_ok()
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.0.remove(&key))
    }

    fn count(&self, key: u64) -> Option<u64> {
        Some(self.0.count(&key).into())
    }
}

impl Multiset for cuckoofilter::CuckooFilter<Mixer> {
    /// Inserts an item. If it is refused, it is in the filter nevertheless, and another item was dropped for it.
    fn insert(&mut self, key: u64) -> bool {
        self.add(&key).is_ok()
    }

    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.delete(&key))
    }
}

/// A list of tables. A table has room for at most eight copies of an item; for more, the list adds a table of twice the size.
/// The size is limited, so that the copies of one item do not take all memory.
struct List(ScalableCuckooFilter<u64, Mixer>);

impl List {
    const MAX_BYTES: u64 = 1 << 26;
}

impl Multiset for List {
    fn insert(&mut self, key: u64) -> bool {
        let has_room = self.0.bits() < 8 * Self::MAX_BYTES;
        if has_room {
            self.0.insert(&key);
        }
        has_room
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    /// Does nothing in debug builds, where the crate's assertions may panic after growth.
    fn remove(&mut self, key: u64) -> Option<bool> {
        (!cfg!(debug_assertions)).then(|| self.0.remove(&key))
    }
}

impl Multiset for qfilter::Filter {
    fn insert(&mut self, key: u64) -> bool {
        self.insert_duplicated(key).is_ok()
    }

    fn contains(&self, key: u64) -> bool {
        self.contains(key)
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.remove(key))
    }

    fn count(&self, key: u64) -> Option<u64> {
        Some(self.count(key))
    }
}

/// A filter with the rule of Go's linvon/cuckoo-filter, in its table format: once an item has found no room, all further
/// insertions are refused. Go's library keeps that item beside the table, and searches for room in at most 500 random steps.
/// Here, koel searches.
struct Go {
    filter: GoFilter,
    is_full: bool,
}

impl Multiset for Go {
    fn insert(&mut self, key: u64) -> bool {
        self.is_full = self.is_full || self.filter.insert(&key).is_err();
        !self.is_full
    }

    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.filter.remove(&key))
    }
}

/// A filter with RedisBloom's rule, hash and constants. An item goes into the newest sub-filter that has a free slot in one of
/// the item's two buckets. If there is none, the newest sub-filter evicts items in at most 20 steps. If that fails, the steps
/// are undone, and a sub-filter of the same size is added, unless EXPANSION is 0.
pub(crate) struct RedisBloom {
    pub(crate) bucket_size: usize,
    pub(crate) grows: bool,
    /// The slots of each sub-filter, which has a power of two of buckets. Empty slots are 0.
    pub(crate) filters: Vec<Vec<u8>>,
}

impl RedisBloom {
    const STEPS: usize = 20;

    pub(crate) fn new(capacity: usize, bucket_size: usize, grows: bool) -> Self {
        let slots = (capacity / bucket_size).next_power_of_two() * bucket_size;
        Self { bucket_size, grows, filters: vec![vec![0; slots]] }
    }

    fn hash(key: u64) -> u64 {
        murmur2::murmur64a(&key.to_le_bytes(), 0)
    }

    fn fingerprint(hash: u64) -> u8 {
        (hash % 255) as u8 + 1
    }

    /// Returns the other bucket of a fingerprint, which must still be reduced modulo the number of buckets.
    fn other(fingerprint: u8, bucket: u64) -> u64 {
        bucket ^ (u64::from(fingerprint) * 0x5bd1_e995)
    }

    /// Returns the indices of a bucket's slots.
    fn bucket(&self, bucket: u64) -> std::ops::Range<usize> {
        let buckets = self.filters[0].len() / self.bucket_size;
        let start = bucket as usize % buckets * self.bucket_size;
        start..start + self.bucket_size
    }

    /// Iterates over the slots that may have the item, from the newest sub-filter on, as sub-filter and slot index.
    fn slots(&self, hash: u64) -> impl Iterator<Item = (usize, usize)> {
        let (first, second) = (self.bucket(hash), self.bucket(Self::other(Self::fingerprint(hash), hash)));
        (0..self.filters.len()).rev().flat_map(move |filter| first.clone().chain(second.clone()).map(move |slot| (filter, slot)))
    }

    fn find(&self, hash: u64, value: u8) -> Option<(usize, usize)> {
        self.slots(hash).find(|&(filter, slot)| self.filters[filter][slot] == value)
    }

    pub(crate) fn insert_hash(&mut self, hash: u64) -> bool {
        let fingerprint = Self::fingerprint(hash);
        loop {
            if let Some((filter, slot)) = self.find(hash, 0) {
                self.filters[filter][slot] = fingerprint;
                return true;
            }
            if self.make_room(hash, fingerprint) {
                return true;
            }
            if !self.grows {
                return false;
            }
            self.filters.push(vec![0; self.filters[0].len()]);
        }
    }

    /// Puts the fingerprint in place of another one, moves that one to its other bucket, and so on until there is a free slot.
    /// Undoes all steps and returns false if there is none.
    fn make_room(&mut self, hash: u64, mut fingerprint: u8) -> bool {
        let newest = self.filters.len() - 1;
        let (mut bucket, mut moved) = (hash, Vec::new());
        for step in 0..Self::STEPS {
            let slot = self.bucket(bucket).start + step % self.bucket_size;
            std::mem::swap(&mut self.filters[newest][slot], &mut fingerprint);
            moved.push(slot);
            bucket = Self::other(fingerprint, (slot / self.bucket_size) as u64);
            if let Some(free) = self.bucket(bucket).find(|&slot| self.filters[newest][slot] == 0) {
                self.filters[newest][free] = fingerprint;
                return true;
            }
        }
        for slot in moved.into_iter().rev() {
            std::mem::swap(&mut self.filters[newest][slot], &mut fingerprint);
        }
        false
    }
}

impl Multiset for RedisBloom {
    fn insert(&mut self, key: u64) -> bool {
        self.insert_hash(Self::hash(key))
    }

    fn contains(&self, key: u64) -> bool {
        let hash = Self::hash(key);
        self.find(hash, Self::fingerprint(hash)).is_some()
    }

    fn remove(&mut self, key: u64) -> Option<bool> {
        let hash = Self::hash(key);
        let found = self.find(hash, Self::fingerprint(hash));
        if let Some((filter, slot)) = found {
            self.filters[filter][slot] = 0;
        }
        Some(found.is_some())
    }

    fn count(&self, key: u64) -> Option<u64> {
        let hash = Self::hash(key);
        Some(self.slots(hash).filter(|&(filter, slot)| self.filters[filter][slot] == Self::fingerprint(hash)).count() as u64)
    }
}

/// A function that builds an empty filter, given the numbers of distinct items and of copies of each.
type Build = fn(usize, usize) -> anyhow::Result<Box<dyn Multiset>>;

#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    build: Build,
    /// True if the filter must hold all copies.
    is_exact: bool,
    /// True if the size is fixed. The chart shows only these filters.
    pub(crate) is_fixed: bool,
}

pub(crate) fn kinds() -> Vec<Kind> {
    let fixed = |name, build| Kind { name, build, is_exact: false, is_fixed: true };
    let growing = |name, build| Kind { name, build, is_exact: false, is_fixed: false };
    let koel: Build = |items, _| Ok(Box::new(Koel(CuckooFilter::builder().capacity(items).false_positive_rate(RATE).build()?)));
    let koel_growing: Build = |_, _| Ok(Box::new(Koel(ElasticFilter::builder().false_positive_rate(RATE).build()?)));
    let cuckoo: Build = |items, _| Ok(Box::new(cuckoofilter::CuckooFilter::<Mixer>::with_capacity(items)));
    let go: Build = |items, _| {
        let builder = CuckooFilter::builder().capacity(items).false_positive_rate(RATE).addressing(Addressing::PowerOfTwo);
        let filter = GoFilter::try_from(builder.hasher(MetroHash64).seed(1337).build()?)?;
        Ok(Box::new(Go { filter, is_full: false }))
    };
    let quotient: Build = |items, _| Ok(Box::new(qfilter::Filter::new(items as u64, RATE)?));
    let growing_quotient: Build =
        |items, copies| Ok(Box::new(qfilter::Filter::new_resizeable(items as u64, (items * copies) as u64, RATE)?));
    let list: Build = |items, _| {
        let builder = ScalableCuckooFilterBuilder::new().initial_capacity(items).false_positive_probability(RATE);
        Ok(Box::new(List(builder.hasher(Mixer::default()).finish())))
    };
    vec![
        Kind { is_exact: true, ..fixed("koel", koel) },
        fixed("cuckoofilter 0.5", cuckoo),
        fixed("Go's linvon/cuckoo-filter", go),
        fixed("RedisBloom, EXPANSION 0", |items, _| Ok(Box::new(RedisBloom::new(items, 2, false)))),
        fixed("qfilter 0.3", quotient),
        Kind { is_exact: true, ..growing("koel, growing", koel_growing) },
        growing("RedisBloom, EXPANSION 1", |items, _| Ok(Box::new(RedisBloom::new(items, 2, true)))),
        growing("scalable_cuckoo_filter 0.5, at most 64 MiB", list),
        growing("qfilter 0.3, told all copies", growing_quotient),
    ]
}

/// The result of all insertions. Shares and the rate are in percent.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) refused: f64,
    /// The number of distinct items that are absent afterwards.
    pub(crate) absent: usize,
    /// The share of distinct items whose count is wrong.
    pub(crate) miscounted: Option<f64>,
    /// The share of copies that could not be removed.
    pub(crate) stuck: Option<f64>,
    pub(crate) rate: f64,
    /// The bits per distinct item.
    pub(crate) bits: f64,
}

/// Inserts `copies` copies of each item, in this order. Then counts every item, and removes every copy.
fn run(kind: Kind, items: &[u64], copies: usize, order: impl Iterator<Item = u64>) -> anyhow::Result<Figures> {
    let per_cent = |part: usize, all: usize| 100.0 * part as f64 / all as f64;
    let all = items.len() * copies;
    let (filled, bytes) = held(|| {
        let mut filter = (kind.build)(items.len(), copies)?;
        let refused = order.filter(|&key| !black_box(filter.insert(key))).count();
        anyhow::Ok((filter, refused))
    });
    let (mut filter, refused) = filled?;
    let bits = 8.0 * bytes as f64 / items.len() as f64;
    let absent = items.iter().filter(|&&key| !black_box(filter.contains(key))).count();
    let absent_keys = (0..10 * items.len()).map(|n| mix((1 << 40) + n as u64));
    let rate = per_cent(absent_keys.filter(|&key| black_box(filter.contains(key))).count(), 10 * items.len());
    let counts: Option<Vec<u64>> = items.iter().map(|&key| black_box(filter.count(key))).collect();
    let miscounted = counts.as_ref().map(|counts| counts.iter().filter(|&&count| count != copies as u64).count());
    let mut removed = Some(0);
    for _ in 0..copies {
        for &key in items {
            removed = removed.zip(black_box(filter.remove(key))).map(|(sum, one)| sum + usize::from(one));
        }
    }
    let stuck = removed.map(|removed| all - removed);
    if kind.is_exact {
        let counts = counts.unwrap_or_default();
        let (least, sum) = (counts.iter().min(), counts.iter().sum::<u64>());
        let left = items.iter().filter(|&&key| black_box(filter.contains(key))).count();
        ensure!(refused + absent + left == 0, "{copies}: {refused} refused, {absent} absent, {left} left");
        ensure!(stuck == Some(0), "{copies}: copies could not be removed: {stuck:?}");
        // Distinct items with the same fingerprint and buckets count as one. About one item in a thousand collides with another.
        let most = all + copies * (items.len() / 500 + 10);
        ensure!(
            least >= Some(&(copies as u64)) && sum <= most as u64,
            "{copies}: the least count is {least:?}, and the sum {sum}"
        );
    }
    let [miscounted, stuck] = [miscounted.map(|n| per_cent(n, items.len())), stuck.map(|n| per_cent(n, all))];
    Ok(Figures { refused: per_cent(refused, all), absent, miscounted, stuck, rate, bits })
}

/// Returns all copies in a random order, which is always the same.
fn shuffled(items: &[u64], copies: usize) -> Vec<u64> {
    let mut order = items.repeat(copies);
    for n in (1..order.len()).rev() {
        order.swap(n, mix(!(n as u64)) as usize % (n + 1));
    }
    order
}

/// A filter's figures for each number of copies, inserted in passes over all items and in random order.
pub(crate) type Row = (Kind, Vec<[Figures; 2]>);

pub(crate) fn measure(items: usize, copies: &[usize]) -> anyhow::Result<Vec<Row>> {
    #[cfg(target_arch = "x86_64")]
    ensure!(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt"), "qfilter needs BMI2 and POPCNT");
    let items: Vec<u64> = (0..items as u64).map(mix).collect();
    let mut rows: Vec<Row> = kinds().into_iter().map(|kind| (kind, Vec::new())).collect();
    for &copies in copies {
        let random = shuffled(&items, copies);
        for (kind, figures) in &mut rows {
            let passes = (0..copies).flat_map(|_| items.iter().copied());
            let passes = run(*kind, &items, copies, passes)?;
            figures.push([passes, run(*kind, &items, copies, random.iter().copied())?]);
        }
    }
    Ok(rows)
}

fn table(out: &mut impl Write, title: &str, rows: &[Row], copies: &[usize], cell: fn(&[Figures; 2]) -> String) -> io::Result<()> {
    let header = [String::from("filter")].into_iter().chain(copies.iter().map(|copies| format!("{copies} ×"))).collect();
    let cells = |(kind, figures): &Row| [kind.name.to_owned()].into_iter().chain(figures.iter().map(cell)).collect();
    let table = Table { caption: title.to_owned(), header, rows: rows.iter().map(cells).collect() };
    write!(out, "\n{title}:\n\n{}", table.markdown())
}

/// Formats a share, or a dash if there is none.
fn share(share: Option<f64>) -> String {
    match share {
        None => String::from("–"),
        Some(0.0) => String::from("0"),
        Some(share) if share < 9.95 => format!("{share:.2}"),
        Some(share) => format!("{share:.1}"),
    }
}

pub(crate) fn print(out: &mut impl Write, rows: &[Row], items: usize, copies: &[usize]) -> io::Result<()> {
    writeln!(
        out,
        "{items} distinct items, each inserted 1 to {} times, into filters for {items} items at ε = {RATE}; those of cuckoofilter \
         and RedisBloom have fingerprints of 8 bits, and an ε of their own.",
        copies.last().unwrap_or(&0)
    )?;
    table(out, "Insertions refused, %", rows, copies, |[passes, _]| share(Some(passes.refused)))?;
    let title = "Distinct items absent afterwards: inserted in passes over all items / in random order";
    table(out, title, rows, copies, |[passes, random]| format!("{} / {}", passes.absent, random.absent))?;
    let title = "Distinct items whose count is wrong, % / copies that could not be removed, %";
    table(out, title, rows, copies, |[passes, _]| format!("{} / {}", share(passes.miscounted), share(passes.stuck)))?;
    let title = "Bits for each distinct item / measured ε, %";
    table(out, title, rows, copies, |[passes, _]| format!("{:.1} / {}", passes.bits, share(Some(passes.rate))))
}

/// Draws the shares of items that are absent from filters of fixed size after insertions in random order.
pub(crate) fn draw(rows: &[Row], items: usize, copies: &[usize]) -> Chart {
    let share = |absent: usize| 100.0 * absent as f64 / items as f64;
    let fixed = rows.iter().filter(|(kind, _)| kind.is_fixed).enumerate().map(|(color, (kind, figures))| {
        let points = copies.iter().zip(figures).map(|(&copies, [_, random])| (copies as f64, share(random.absent)));
        Series::new(kind.name, color, points.collect())
    });
    let topic = "Items not found, by copies of each, inserted in random order";
    let axes = [
        Axis::log("copies of each item").from_to(1.0, copies.last().map_or(10.0, |&copies| copies as f64)),
        Axis::linear("distinct items absent, %").from_zero(),
    ];
    let chart = Chart::new("", topic, axes, fixed);
    let lost = |(_, figures): &Row| figures.last().map(|[_, random]| share(random.absent));
    let worst = rows.iter().filter(|(kind, _)| kind.is_fixed).skip(1).filter_map(lost);
    let [least, most] = [worst.clone().fold(f64::INFINITY, f64::min), worst.fold(0.0, f64::max)];
    let last = copies.last().unwrap_or(&0);
    let finding = format!(
        "With {last} copies of each, other filters of fixed size lose {least:.0} to {most:.0} % of the items; koel, none"
    );
    let caption = format!("{items} distinct items, and as many copies of each, in random order, in filters for {items} items.");
    chart.showing(Some(finding)).captioned(caption)
}

/// Returns the number of items and the file of the chart, if they are given. Any other argument is an error, since the measurement
/// takes long, and a chart replaces the file.
pub(crate) fn options(arguments: impl IntoIterator<Item = OsString>) -> anyhow::Result<(Option<usize>, Option<PathBuf>)> {
    let (mut items, mut picture) = (None, None);
    for argument in arguments {
        let path = PathBuf::from(&argument);
        let number = argument.to_str().and_then(|text| text.parse().ok()).filter(|&number: &usize| number > 0);
        let is_picture = path.extension().is_some_and(|extension| extension == "svg");
        if items.is_none() && number.is_some() {
            items = number;
        } else if picture.is_none() && is_picture {
            picture = Some(path);
        } else {
            bail!("{}: give at most one number of distinct items, from 1, and one file for the chart, NAME.svg", path.display());
        }
    }
    Ok((items, picture))
}

fn main() -> anyhow::Result<()> {
    let (items, picture) = options(env::args_os().skip(1))?;
    let items = items.unwrap_or(100_000);
    let rows = measure(items, &COPIES)?;
    if let Some(path) = &picture {
        chart::save(&draw(&rows, items, &COPIES), path)?;
    }
    Ok(print(&mut io::stdout().lock(), &rows, items, &COPIES)?)
}
