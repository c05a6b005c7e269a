//! `koel merge`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use koel::{AnyHasher, CuckooFilter, MergeError, backing::Storage};

use crate::{
    facts::Facts,
    file::{self, Changing, Filter, Growing, Opened, Output},
};

/// Merge several filters into one.
///
/// The new filter holds all items of the others. An item in two of them is stored twice, unless --union is given. Build all filters
/// with the same options and the same --capacity, enough for all items together; with --grow, the same --max-capacity. Otherwise,
/// or if not all items fit, nothing is written.
///
/// OUT may be one of the filters. It is replaced atomically or stays unchanged. Other koel commands that change it wait meanwhile;
/// if another program moves, removes or replaces it, that is an error. Takes memory for two tables, however many filters there
/// are.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o monday.koel --capacity 1000
    printf 'cherry\\nfig\\n' | koel build - -o tuesday.koel --capacity 1000
    koel merge monday.koel tuesday.koel -o week.koel
    koel merge monday.koel week.koel --union -o week.koel
    koel query week.koel --item apple --item fig")]
pub(crate) struct Merge {
    /// The filters, two or more koel snapshots; `-` for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Store an item as often as the filter with the most copies of it, instead of adding up its copies. Takes less room if filters
    /// have many items in common
    #[arg(long)]
    union: bool,

    /// The file to write the filter to; `-` for standard output. For a file that is open as descriptor 3, use `-o - >&3`
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
}

impl Merge {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let [first, others @ ..] = &self.filters[..] else { bail!("no filter given; give two or more") };
        if self.filters.iter().filter(|path| file::is_dash(path)).count() > 1 {
            bail!("standard input: can be only one of the filters; give files for the others");
        }
        let output = Output::new(&self.output)?;
        let mut filter = file::load_changing(first)?;
        for (path, merged) in others.iter().zip(1..) {
            match &mut filter {
                Changing::Fixed(filter) => self.add(filter, path, merged)?,
                Changing::Growing(filter) => self.add_growing(filter, path, first)?,
            }
        }
        let bytes = output.save_changed(&filter)?;
        Facts::changed(&filter, bytes).report(&output, &[])?;
        Ok(ExitCode::SUCCESS)
    }

    /// Adds the items of a filter that grows, as the first one does.
    fn add_growing(&self, filter: &mut Growing, path: &Path, first: &Path) -> anyhow::Result<()> {
        let (first, name) = (file::name(first), file::name(path));
        let Changing::Growing(other) = file::load_changing(path)? else {
            bail!("{first} and {name}: the first is a filter that grows, and the second has a fixed size; build both with --grow")
        };
        let merged = if self.union { filter.union(&other) } else { filter.merge(&other) };
        merged.map_err(|error| match error {
            MergeError::DifferentPlans => anyhow::anyhow!(
                "{first} and {name}: only filters with the same parameters can be merged; build both with the same --fpr, --capacity, \
                 --max-capacity and other options"
            ),
            MergeError::DifferentHasher => anyhow::anyhow!(
                "{first} and {name}: only filters with the same hasher can be merged, but the first has {}, and the second {}; build \
                 both with the same --hasher",
                filter.hasher(),
                other.hasher()
            ),
            error => anyhow::Error::new(error).context(format!("{first} and {name}")),
        })
    }

    /// Adds the items of the filter in a file, before which so many were.
    fn add(&self, filter: &mut Filter, path: &Path, merged: usize) -> anyhow::Result<()> {
        let name = file::name(path);
        let (done, hasher) = match file::open(path)? {
            Opened::Mapped(other) => (self.combine(filter, &other), *other.hasher()),
            Opened::MappedGrowing(_) => return Err(file::only_with_growing(&name)),
            Opened::Read(other) => {
                let other = other.koel(&name)?;
                (self.combine(filter, &other), *other.hasher())
            }
        };
        let (merged, later) = (&self.filters[..merged], self.filters.len() - merged - 1);
        let first = || file::name(&merged[0]);
        done.map_err(|error| match error {
            MergeError::DifferentParams { ours, theirs, .. } => anyhow::anyhow!(
                "{} and {name}: only filters with the same parameters can be merged, but the first has a {ours}, and the second a \
                 {theirs}; build both with the same --capacity and other options",
                first()
            ),
            MergeError::DifferentHasher => anyhow::anyhow!(
                "{} and {name}: only filters with the same hasher can be merged, but the first has {}, and the second {hasher}; build \
                 both with the same --hasher",
                first(),
                filter.hasher()
            ),
            MergeError::Full { items, slots, capacity, in_both, needed, union, .. } => {
                let all: Vec<_> = merged.iter().map(|path| file::name(path)).collect();
                let all = all.join(", ");
                let or_union = union.map_or_else(String::new, |union| {
                    format!("; {in_both} of them are in both: --union, which does not add up copies, needs a --capacity of {union}")
                });
                let remedy = needed.map_or_else(
                    || String::from("copies of single items fill their buckets, so build all of them with --unique"),
                    |needed| format!("build all of them with a --capacity of at least {needed}"),
                );
                let more = if later > 0 { ", and more for those that follow" } else { "" };
                anyhow::anyhow!(
                    "{all} and {name}: {items} items do not fit into one filter of {slots} slots, planned for {capacity}{or_union}; \
                     {remedy}{more}; nothing was written"
                )
            }
            MergeError::Snapshot(error) => file::refused(&name, error),
            error => anyhow::Error::new(error).context(format!("{} and {name}", first())),
        })
    }

    fn combine<S: Storage>(&self, filter: &mut Filter, other: &CuckooFilter<AnyHasher, S>) -> Result<(), MergeError> {
        if self.union { filter.union(other) } else { filter.merge(other) }
    }
}
