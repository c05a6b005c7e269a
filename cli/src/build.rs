//! `koel build`

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use koel::{Addressing, Builder, CuckooFilter, ParamError, Prehashed, hash::AnyHasher};

use crate::{
    errors,
    facts::Facts,
    file::{Changing, Filter, To},
    items::{Items, ListArgs},
    numbers,
    options::{self, Kind, RATE},
    terminal::Progress,
};

/// Build a filter from a list of items.
///
/// Reads the list once. With --capacity or --grow, items go straight into the filter, which is all that takes memory. Without them,
/// the command keeps 8 bytes per item until it has read all of them, and then builds a filter for as many as are different; the
/// report says how many. With --grow, the filter grows as items come, up to a thousand times its --max-capacity.
///
/// An item that occurs twice is stored twice, and must be removed twice; --unique stores it once. Copies take hardly any
/// room: only different items fill a filter or make it grow.
///
/// OUT is replaced atomically once all items are added; if anything fails, it stays unchanged. Other koel commands that change OUT
/// wait meanwhile. If another program moves, removes or replaces OUT, that is an error, and nothing is written. If there is no OUT
/// at the start, a file that appears meanwhile is replaced. (A command killed while it writes may leave a file named .koel-….tmp,
/// which the next one that writes OUT removes.)
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
    output: To,

    #[command(flatten)]
    list: ListArgs,

    #[command(flatten)]
    kind: Kind,

    /// The length of the fingerprints in bits, instead of --fpr
    #[arg(long, value_name = "F", value_parser = numbers::bits, conflicts_with = "fpr", allow_hyphen_values = true)]
    bits: Option<u32>,

    /// The number of items that the filter must hold, such as 1000000 or 1M; by default, the number of items in the list, with
    /// hardly any room for more
    #[arg(long, value_name = "N", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
    capacity: Option<usize>,

    /// Build a filter that grows: larger for the same number of items, but the number need not be known and may increase later
    #[arg(long, conflicts_with_all = ["bits", "addressing"])]
    grow: bool,

    /// With --grow, the number of items up to which a lookup reads two buckets; beyond it, four or more [default: 1000 times the
    /// capacity, at least 16 million]
    #[arg(long, value_name = "N", requires = "grow", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
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
        let growing = self.kind.growing(self.capacity, self.max_capacity)?;
        let fixed = self.builder()?;
        if self.grow {
            growing.clone().params().map_err(|error| errors::parameter(&error))?;
        } else {
            fixed.clone().capacity(self.capacity.unwrap_or(0)).params().map_err(|error| self.refused(&error))?;
        }
        let output = self.output.open()?;
        let mut items = self.list.open_for(&output)?;
        let empty = match self.capacity {
            _ if self.grow => Some(Changing::Growing(Box::new(growing.build().map_err(errors::not_built)?))),
            Some(capacity) => Some(Changing::Fixed(empty(&fixed, capacity)?)),
            None => None,
        };
        let (filter, stored, different) = if let Some(mut filter) = empty {
            let stored = filter.add(&mut items, self.unique, "leave --capacity out, or give", "nothing was written")?;
            (filter, stored, None)
        } else {
            let (filter, stored, different) = collect(&fixed, &mut items, self.unique)?;
            (filter, stored, Some(different))
        };
        let bytes = output.save_changed(&filter)?;
        let all = items.count();
        let skipped = self.unique.then(|| ("  skipped", format!("{}, as already present", all - stored)));
        let different = different.map(|different| ("  different", format!("{different} of {all}")));
        let others: Vec<_> = skipped.into_iter().chain(different).collect();
        Facts::changed(&filter, bytes).report(&output, &others)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The error about a parameter. The rate may be the default.
    fn refused(&self, error: &ParamError) -> anyhow::Error {
        let message = errors::parameter(error);
        match error {
            ParamError::FalsePositiveRate { .. } if self.kind.fpr.is_none() => {
                anyhow::anyhow!("{message}, or a smaller --capacity; {RATE} is the default")
            }
            _ => message,
        }
    }

    /// The builder, with everything but the capacity.
    fn builder(&self) -> anyhow::Result<Builder<AnyHasher>> {
        let Kind { hasher, seed, .. } = self.kind;
        let builder = CuckooFilter::builder().hasher(hasher).seed(seed).addressing(self.addressing);
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

/// Hashes all items first, and then builds a filter of the size they need. Also says how many it stored, and how many are different.
fn collect(builder: &Builder<AnyHasher>, items: &mut Items, unique: bool) -> anyhow::Result<(Changing, u64, usize)> {
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
    let different = distinct(&hashes)?;
    let mut filter = empty(builder, different)?;
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
    Ok((Changing::Fixed(filter), stored, different))
}

/// The number of distinct hashes. Sorts a sixteenth of them at a time, which takes little memory, and fits into the cache sooner.
fn distinct(hashes: &[u64]) -> anyhow::Result<usize> {
    let (mut part, mut different) = (Vec::new(), 0);
    for bits in 0..16 {
        let of_part = || hashes.iter().copied().filter(|hash| hash >> 60 == bits);
        part.clear();
        if part.try_reserve(of_part().count()).is_err() {
            bail!("not enough memory to count {} items; give --capacity, which needs none", hashes.len());
        }
        part.extend(of_part());
        part.sort_unstable();
        part.dedup();
        different += part.len();
    }
    Ok(different)
}
