//! `koel build`

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use clap::Args;
use koel::{Addressing, AnyHasher, Builder, CuckooFilter, ParamError, Parameter, Prehashed};

use crate::{
    errors,
    facts::Facts,
    file::{Changing, Filter, Output},
    items::{Items, Separator},
    numbers,
    options::{self, Kind, RATE},
    terminal::Progress,
};

/// Build a filter from a list of items.
///
/// Reads the list once. With --capacity or --grow, items go straight into the filter, which is all that takes memory. Without
/// them, the command keeps 8 bytes per item (16 with --unique) until it has counted all items, and then builds a filter of that
/// size. With --grow, the filter grows as items come, up to a thousand times its --max-capacity.
///
/// An item that occurs twice is stored twice, and must be removed twice; --unique stores it once.
///
/// OUT is replaced atomically once all items are added; if anything fails, it stays unchanged. Other koel commands that change OUT
/// wait meanwhile. If another program moves, removes or replaces OUT, that is an error, and nothing is written. If there is no OUT
/// at the start, a file that appears meanwhile is replaced. (A command killed while it writes may leave a file named .koel-….tmp,
/// which can be deleted.)
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
    /// The items, one per line; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The file to write the filter to; `-` for standard output. For a file that is open as descriptor 3, use `-o - >&3`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    #[command(flatten)]
    separator: Separator,

    #[command(flatten)]
    kind: Kind,

    /// The length of the fingerprints in bits, instead of --fpr
    #[arg(long, value_name = "F", value_parser = numbers::bits, conflicts_with = "fpr", allow_negative_numbers = true)]
    bits: Option<u32>,

    /// The number of items that the filter must hold, such as 1000000 or 1M; by default, the number of items in the list, with
    /// hardly any room for more
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_negative_numbers = true)]
    capacity: Option<usize>,

    /// Build a filter that grows: larger for the same number of items, but the number need not be known and may increase later
    #[arg(long, conflicts_with_all = ["bits", "addressing"])]
    grow: bool,

    /// With --grow, the number of items up to which a lookup reads two buckets; beyond it, four or more [default: 1000 times the
    /// capacity, at least 16 million]
    #[arg(long, value_name = "N", requires = "grow", value_parser = numbers::capacity, allow_negative_numbers = true)]
    max_capacity: Option<usize>,

    /// The addressing: which numbers of buckets are possible
    #[arg(long, value_name = "HOW", default_value = "any-size", value_parser = options::addressing())]
    addressing: Addressing,

    /// Skip items that the filter already reports as present
    #[arg(long)]
    unique: bool,
}

impl Build {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // Invalid parameters are reported before the list is read, not after.
        let (filter, output, skipped) = if self.grow {
            let builder = self.kind.growing(self.capacity, self.max_capacity)?;
            builder.clone().params().map_err(|error| errors::parameter(&error))?;
            let (output, items) = self.open()?;
            let (filter, skipped) =
                stream(Changing::Growing(Box::new(builder.build().map_err(errors::not_built)?)), items, self.unique)?;
            (filter, output, skipped)
        } else {
            let builder = self.builder()?;
            builder.clone().capacity(self.capacity.unwrap_or(0)).params().map_err(|error| self.refused(&builder, &error))?;
            let (output, items) = self.open()?;
            let (filter, skipped) = match self.capacity {
                Some(capacity) => stream(Changing::Fixed(empty(&builder, capacity)?), items, self.unique)?,
                None => collect(&builder, items, self.unique)?,
            };
            (filter, output, skipped)
        };
        let bytes = output.save_changed(&filter)?;
        let skipped = self.unique.then(|| ("  skipped", format!("{skipped}, as already present")));
        Facts::changed(&filter, bytes).report(&output, skipped.as_slice())?;
        Ok(ExitCode::SUCCESS)
    }

    /// The place to write to, and the items.
    fn open(&self) -> anyhow::Result<(Output, Items)> {
        let output = Output::new(&self.output)?;
        if output.is(&self.input) {
            bail!("{}: cannot be both the list and the filter; give another name for one of them", output.name());
        }
        Ok((output, Items::open(&self.input, self.separator, true)?))
    }

    /// The error about a parameter. If the rate cannot be had at this capacity, and is only the default, the capacity is too large.
    fn refused(&self, builder: &Builder<AnyHasher>, error: &ParamError) -> anyhow::Error {
        let message = errors::with_nearest(error);
        match (self.capacity, self.kind.fpr, message.rsplit_once("; the nearest that works is ")) {
            (Some(given), None, Some((_, rate))) if error.parameter() == Parameter::FalsePositiveRate => {
                let works = |capacity| builder.clone().capacity(capacity).params().is_ok();
                let most = errors::most(given, works).unwrap_or(0);
                anyhow::anyhow!(
                    "--capacity: {given} given, but with the false-positive rate {RATE}, the default, {most} is the most; give \
                     no more than that, or --fpr {rate}"
                )
            }
            _ => errors::parameter(error),
        }
    }

    /// The builder, with everything but the capacity.
    fn builder(&self) -> anyhow::Result<Builder<AnyHasher>> {
        let builder = CuckooFilter::builder().hasher(self.kind.hasher).seed(self.kind.seed).addressing(self.addressing);
        let builder = match self.bits {
            Some(bits) => builder.fingerprint_bits(bits),
            None => builder.false_positive_rate(self.kind.fpr.unwrap_or(RATE)),
        };
        let builder = self.kind.table.into_iter().fold(builder, Builder::table);
        let builder = self.kind.bucket_size.into_iter().fold(builder, Builder::bucket_size);
        Ok(options::kernel()?.into_iter().fold(builder, Builder::kernel))
    }
}

/// An empty filter.
fn empty(builder: &Builder<AnyHasher>, capacity: usize) -> anyhow::Result<Filter> {
    builder.clone().capacity(capacity).build().map_err(errors::not_built)
}

/// Inserts items as they are read. Returns the filter, and how many items were skipped.
fn stream(mut filter: Changing, mut items: Items, unique: bool) -> anyhow::Result<(Changing, u64)> {
    let mut stored = 0;
    while let Some(item) = items.advance()? {
        match filter.add(item, unique) {
            Ok(fresh) => stored += u64::from(fresh),
            Err(error) => {
                let why = errors::refusal(&items.place(), &error, &filter, "leave --capacity out, or give");
                bail!("{why}; nothing was written");
            }
        }
    }
    Ok((filter, items.count() - stored))
}

/// Hashes and counts all items first, and then builds a filter of the size they need. Returns the same.
fn collect(builder: &Builder<AnyHasher>, mut items: Items, unique: bool) -> anyhow::Result<(Changing, u64)> {
    // An empty filter hashes as the final one will.
    let hasher = empty(builder, 0)?;
    let mut hashes = Vec::new();
    while let Some(item) = items.advance()? {
        let hash = hasher.hash(item);
        if hashes.len() == hashes.capacity() && hashes.try_reserve(1).is_err() {
            bail!("{}: not enough memory to count the items, at 8 bytes each; give --capacity, which needs none", items.place());
        }
        hashes.push(hash);
    }
    let capacity = if unique { distinct(&hashes)? } else { hashes.len() };
    let mut filter = empty(builder, capacity)?;
    let mut stored = 0;
    let progress = Progress::counting(hashes.len(), "items inserted");
    let mut number = 0;
    for piece in hashes.chunks(1 << 16) {
        progress.at(0, number);
        let fresh = if unique {
            filter.insert_unique_iter(piece.iter().map(|&hash| Prehashed(hash)))
        } else {
            filter.insert_batch(&Prehashed(piece)).map(|()| piece.len())
        };
        match fresh {
            Ok(fresh) => stored += fresh as u64,
            Err(full) => {
                let place = items.place_of(number + full.position() as u64 + 1);
                bail!("{}; nothing was written", errors::full(&place, &full, &filter, "give"));
            }
        }
        number += piece.len() as u64;
    }
    Ok((Changing::Fixed(filter), number - stored))
}

/// The number of distinct hashes.
fn distinct(hashes: &[u64]) -> anyhow::Result<usize> {
    let mut sorted = Vec::new();
    if sorted.try_reserve_exact(hashes.len()).is_err() {
        bail!(
            "not enough memory to count {} items, at 16 bytes each with --unique; give --capacity, which needs none",
            hashes.len()
        );
    }
    sorted.extend_from_slice(hashes);
    sorted.sort_unstable();
    sorted.dedup();
    Ok(sorted.len())
}
