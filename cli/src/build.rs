//! `koel build`

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use koel::{
    Addressing, BuildError, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, ParamError, Prehashed, TableKind,
    hash::AnyHasher,
};
use serde_json::json;

use crate::{
    errors::{self, Inserting},
    facts::Facts,
    file::{Filter, OutputArgs, Snapshot},
    format::Format,
    items::{self, Items},
    numbers,
    options::{self, RATE},
    terminal::Progress,
    text::{counted, rounded_up},
};

/// The number of slots per bucket if --bucket-size is not given.
const BUCKET_SIZE: u32 = 4;

/// Build a filter from a list of items.
///
/// Reads the list once. With --capacity or --grow, items go straight into the filter, and only the filter takes memory. Without
/// them, the command keeps 8 bytes per item until it has read them all, and then builds a filter for the distinct items; the report
/// has their number. With --grow, the filter grows as items arrive, to at least a thousand times its --max-capacity.
///
/// An item that occurs twice is stored twice, and must be removed twice; --unique stores it once. Copies take hardly any
/// room: only distinct items fill a filter or make it grow.
///
/// OUT is replaced atomically once all items are added; if anything fails, it stays unchanged. Other koel commands that change OUT
/// wait in the meantime. If another program moves, removes or replaces OUT, that is an error, and nothing is written. If OUT does
/// not exist at the start, a file that appears in the meantime is replaced. (A command that is killed while it writes may leave a
/// file named .koel-….tmp, which the next command that writes OUT removes.)
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\ncherry\\n' > fruit.txt
    koel build fruit.txt -o fruit.koel
    sort -u fruit.txt | koel build - -o fruit.koel --capacity 1000
    koel build fruit.txt -o fruit.koel --fpr 0.0001 --table single
    find /usr/bin -print0 | koel build - -o files.koel --nul
    seq 100000 | koel build - -o numbers.koel --grow")]
pub(crate) struct Build {
    #[command(flatten)]
    output: OutputArgs,

    /// The items, one per line; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    #[command(flatten)]
    format: Format,

    /// The false-positive rate: the fraction of absent items that may be reported as present, between 0 and 1, such as 0.001 or
    /// 0.1% [default: 0.001]
    #[arg(long, value_name = "E", value_parser = numbers::rate, allow_hyphen_values = true)]
    fpr: Option<f64>,

    /// The kind of table; by default, the smaller one
    #[arg(long, value_name = "TABLE", value_parser = options::table())]
    table: Option<TableKind>,

    /// Slots per bucket: 1 to 16 in the single table, 4 in the packed one [default: 4]
    #[arg(long, value_name = "B", value_parser = numbers::slots, allow_hyphen_values = true)]
    bucket_size: Option<u32>,

    /// The hash function
    #[arg(long, value_name = "HASHER", default_value = "xxh3", value_parser = options::hasher())]
    hasher: AnyHasher,

    /// The seed of the hash function: a whole number, or 0x and hexadecimal digits
    #[arg(long, value_name = "S", default_value = "0", value_parser = numbers::seed, allow_hyphen_values = true)]
    seed: u64,

    /// The length of the fingerprints in bits, instead of --fpr
    #[arg(long, value_name = "F", value_parser = numbers::bits, conflicts_with = "fpr", allow_hyphen_values = true)]
    bits: Option<u32>,

    /// The number of distinct items that the filter must hold, such as 1000000 or 1M; by default, the number of distinct items in
    /// the list, with hardly any room for more
    #[arg(long, value_name = "N", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
    capacity: Option<usize>,

    /// Build a filter that grows: the number of items need not be known and may increase later, but each item takes more space
    #[arg(long, conflicts_with_all = ["bits", "addressing", "table", "bucket_size"])]
    grow: bool,

    /// With --grow, the number of items up to which a lookup reads two buckets; beyond it, it reads four or more [default: 1000
    /// times the capacity, at least 16 million]
    #[arg(long, value_name = "N", requires = "grow", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
    max_capacity: Option<usize>,

    /// The addressing, which determines the possible numbers of buckets
    #[arg(long, value_name = "HOW", default_value = "any-size", value_parser = options::addressing())]
    addressing: Addressing,

    /// Store an item once: skip it if the filter has it, or mistakes it for one that it has, which happens to new items at most at
    /// the filter's false-positive rate. A filter that grows compares more bits here than `koel query` does, and so skips fewer new
    /// items than `koel query` would print, unless most items are in the same list: they are compared with each other, too
    #[arg(short, long)]
    unique: bool,

    /// Print a JSON object with the fields of `koel info --json`, OUT as `filter`, and the numbers of items that were `stored`, of those
    /// that --unique `skipped`, and of lines that were `left_out` for lack of the field of --key
    #[arg(long)]
    json: bool,
}

impl Build {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // Invalid parameters must be reported before the list is read.
        let growing = self.growing()?;
        let fixed = self.builder()?;
        if self.grow {
            growing.clone().params().map_err(|error| errors::growing(&error, &self.default_rate_remedy()))?;
        } else {
            let builder = fixed.clone().capacity(self.capacity.unwrap_or(0));
            builder.params().map_err(|error| self.fixed_error(&error))?;
        }
        let output = self.output.open()?;
        items::check_distinct(&self.input, &output)?;
        let mut items = Items::open(&self.input, &self.format, true)?;
        let empty = match self.capacity {
            _ if self.grow => Some(Snapshot::Growing(Box::new(growing.build().map_err(out_of_memory)?))),
            Some(capacity) => Some(Snapshot::Fixed(empty(&fixed, capacity)?)),
            None => None,
        };
        let (filter, stored, distinct) = if let Some(mut filter) = empty {
            let command = Inserting::Build { has_capacity: true };
            let stored = items.add_to(&mut filter, self.unique, command, "nothing was written")?;
            (filter, stored, None)
        } else {
            let (filter, stored, distinct) = collect(&fixed, &mut items, self.unique)?;
            (filter, stored, Some(distinct))
        };
        let bytes = output.save_snapshot(&filter)?;
        let all = items.count();
        let fields = json!({ "stored": stored, "skipped": all - stored, "left_out": items.short() });
        let skipped = self.unique.then(|| ("  skipped", format!("{}, as already present", all - stored)));
        let distinct = distinct.map(|distinct| ("  distinct", format!("{distinct} of {all}")));
        let short = items.short_lines().map(|lines| ("  left out", lines));
        let others: Vec<_> = skipped.into_iter().chain(distinct).chain(short).collect();
        Facts::snapshot(&filter, bytes).report(&output, &others, self.json.then_some(fields))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the remedy that names the default rate, if that is the one in use.
    fn default_rate_remedy(&self) -> String {
        if self.fpr.is_none() { format!("; {RATE} is the default") } else { String::new() }
    }

    /// Returns the error about a parameter of a fixed filter.
    fn fixed_error(&self, error: &ParamError) -> anyhow::Error {
        let &ParamError::FalsePositiveRate { given, min } = error else { return errors::parameter(error) };
        // Fails unless a filter with the same other options can have this kind of table, bucket size and capacity.
        let accepts = |table: Option<TableKind>, size, capacity: Option<usize>| {
            let builder = self.builder_of_any_table().capacity(capacity.unwrap_or(0)).bucket_size(size);
            table.into_iter().fold(builder, Builder::table).params()
        };
        let (table, slots) = (self.table, self.bucket_size.unwrap_or(BUCKET_SIZE));
        let mut remedies = Vec::new();
        if given > 0.0 && given < min {
            // Smaller buckets keep lower rates. Only the single table has them.
            let smaller = |table| (1..slots).rev().find(|&size| accepts(table, size, self.capacity).is_ok());
            let lowest = || match accepts(None, 1, self.capacity) {
                Err(ParamError::FalsePositiveRate { min: lowest, .. }) if lowest < min => Some(rounded_up(lowest)),
                _ => None,
            };
            remedies.push(match (smaller(table), smaller(None), lowest()) {
                (Some(size), ..) => format!(", or --bucket-size {size}"),
                (None, Some(size), _) => format!(", or --bucket-size {size} and no --table"),
                (None, None, Some(lowest)) => {
                    let table = if table.is_some() { " and no --table" } else { "" };
                    format!(", or one from {lowest:?} with --bucket-size 1{table}")
                }
                (None, None, None) => String::new(),
            });
            if self.capacity.is_some() && accepts(table, slots, Some(0)).is_ok() {
                remedies.push(String::from(", or a smaller --capacity"));
            }
            // Tables with buckets of one slot are planned for a low load, except the smallest, and so keep a lower rate.
            let is_enough =
                |&capacity: &usize| capacity > self.capacity.unwrap_or(0) && accepts(table, slots, Some(capacity)).is_ok();
            let capacities = (3..9).map(|power| 10_usize.pow(power)).filter(|_| slots == 1);
            let enough = capacities.into_iter().find(is_enough);
            remedies.extend(enough.map(|capacity| format!(", or --capacity {capacity} if no more items are distinct")));
        }
        remedies.push(self.default_rate_remedy());
        errors::rate(given, min, &format!("a filter with {} per bucket", counted(slots, "slot")), &remedies.concat())
    }

    /// Returns the builder, with all options but the capacity.
    fn builder(&self) -> anyhow::Result<Builder<AnyHasher>> {
        let builder = self.table.into_iter().fold(self.builder_of_any_table(), Builder::table);
        let builder = self.bucket_size.into_iter().fold(builder, Builder::bucket_size);
        Ok(options::kernel()?.into_iter().fold(builder, Builder::kernel))
    }

    /// Returns the builder without the options about the table, the capacity and the kernel.
    fn builder_of_any_table(&self) -> Builder<AnyHasher> {
        let builder = CuckooFilter::builder().hasher(self.hasher).seed(self.seed).addressing(self.addressing);
        match self.bits {
            Some(bits) => builder.fingerprint_bits(bits),
            None => builder.false_positive_rate(self.fpr.unwrap_or(RATE)),
        }
    }

    /// Returns the builder of a growing filter.
    fn growing(&self) -> anyhow::Result<ElasticBuilder<AnyHasher>> {
        let rate = self.fpr.unwrap_or(RATE);
        let builder = ElasticFilter::builder().hasher(self.hasher).seed(self.seed).false_positive_rate(rate);
        let builder = self.capacity.into_iter().fold(builder, ElasticBuilder::capacity);
        let builder = self.max_capacity.into_iter().fold(builder, ElasticBuilder::max_capacity);
        Ok(options::kernel()?.into_iter().fold(builder, ElasticBuilder::kernel))
    }
}

fn out_of_memory(error: BuildError) -> anyhow::Error {
    errors::build(error, "give a smaller --capacity")
}

/// Builds an empty filter.
fn empty(builder: &Builder<AnyHasher>, capacity: usize) -> anyhow::Result<Filter> {
    builder.clone().capacity(capacity).build().map_err(out_of_memory)
}

/// Hashes all items, and then builds a filter of the size that they need. Also returns the numbers of stored and of distinct items.
fn collect(builder: &Builder<AnyHasher>, items: &mut Items, unique: bool) -> anyhow::Result<(Snapshot, u64, usize)> {
    // An empty filter computes the same hashes as the final one.
    let hasher = empty(builder, 0)?;
    let mut hashes = Vec::new();
    while let Some(item) = items.advance()? {
        let hash = hasher.hash(item);
        if hashes.len() == hashes.capacity() && hashes.try_reserve(1).is_err() {
            bail!("{}: not enough memory to count the items, at 8 bytes each; give --capacity, which needs none", items.place());
        }
        hashes.push(hash);
    }
    let distinct = count_distinct(&hashes)?;
    let mut filter = empty(builder, distinct)?;
    let mut stored = 0;
    let progress = Progress::counting(hashes.len(), "items inserted");
    let mut number = 0;
    for piece in hashes.chunks(1 << 16) {
        progress.update(0, number);
        let inserted = if unique {
            filter.insert_unique_iter(piece.iter().map(|&hash| Prehashed(hash)))
        } else {
            filter.insert_batch(&Prehashed(piece)).map(|()| piece.len())
        };
        match inserted {
            Ok(inserted) => stored += inserted as u64,
            Err(full) => {
                let place = items.place_of(number + full.position() as u64 + 1);
                let command = Inserting::Build { has_capacity: false };
                bail!("{}; nothing was written", errors::refused(&place, &full, filter.capacity(), command));
            }
        }
        number += piece.len() as u64;
    }
    Ok((Snapshot::Fixed(filter), stored, distinct))
}

/// Returns the number of distinct hashes. Sorts a sixteenth of them at a time, which takes less memory and makes better use of
/// caches.
fn count_distinct(hashes: &[u64]) -> anyhow::Result<usize> {
    let (mut part, mut distinct) = (Vec::new(), 0);
    for bits in 0..16 {
        let matching = || hashes.iter().copied().filter(|hash| hash >> 60 == bits);
        part.clear();
        if part.try_reserve(matching().count()).is_err() {
            bail!("not enough memory to count {} items; give --capacity, which needs none", hashes.len());
        }
        part.extend(matching());
        part.sort_unstable();
        part.dedup();
        distinct += part.len();
    }
    Ok(distinct)
}
