//! `koel merge`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use koel::{ElasticMergeError, MergeError};

use crate::{
    facts::{self, Facts},
    file::{self, Changing, Filter, Growing, Opened, Output},
};

/// Merge several filters into one.
///
/// The new filter holds all items of the others; an item that two of them hold, it holds twice. All filters must have been built
/// with the same parameters: the same options and the same --capacity, which must be enough for all items together. (Those that
/// grow, built with --grow, take any number.) Otherwise, or if not all items fit, nothing is written.
///
/// OUT may be one of the filters. It is replaced atomically or stays unchanged, and other commands that want to change it wait;
/// if another program moves, removes or replaces it meanwhile, that is an error. Takes memory for two tables, regardless of the
/// number of filters.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o monday.koel --capacity 1000
    printf 'cherry\\nfig\\n' | koel build - -o tuesday.koel --capacity 1000
    koel merge monday.koel tuesday.koel -o week.koel
    koel query week.koel --item apple --item fig")]
pub(crate) struct Merge {
    /// The filters, two or more koel snapshots; `-` for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

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
                Changing::Fixed(filter) => add(filter, path, &self.filters[..merged])?,
                Changing::Growing(filter) => add_growing(filter, path, first)?,
            }
        }
        let bytes = output.save_changed(&filter)?;
        facts::report(&output, &Facts::changed(&filter, bytes), &[])?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds the items of a filter that grows, as the first one does.
fn add_growing(filter: &mut Growing, path: &Path, first: &Path) -> anyhow::Result<()> {
    let (first, name) = (file::name(first), file::name(path));
    let Changing::Growing(other) = file::load_changing(path)? else {
        bail!("{first} and {name}: the first is a filter that grows, and the second has a fixed size; build both with --grow")
    };
    filter.merge(&other).map_err(|error| match error {
        ElasticMergeError::DifferentParams => anyhow::anyhow!(
            "{first} and {name}: only filters with the same parameters can be merged; build both with the same --fpr, --capacity, \
             --max-capacity and other options"
        ),
        ElasticMergeError::DifferentHasher => anyhow::anyhow!(
            "{first} and {name}: only filters with the same hasher can be merged, but the first has {}, and the second {}; build \
             both with the same --hasher",
            filter.hasher(),
            other.hasher()
        ),
        error => anyhow::Error::new(error).context(format!("{first} and {name}")),
    })
}

/// Adds the items of the filter in a file. `merged` are the files before it.
fn add(filter: &mut Filter, path: &Path, merged: &[PathBuf]) -> anyhow::Result<()> {
    let name = file::name(path);
    let (done, hasher) = match file::open(path)? {
        Opened::Mapped(other) => (filter.merge(&other), *other.hasher()),
        Opened::MappedGrowing(_) => return Err(file::only_with_growing(&name)),
        Opened::Read(other) => {
            let other = other.koel(&name)?;
            (filter.merge(&other), *other.hasher())
        }
    };
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
        MergeError::Full { items, slots, capacity, .. } => {
            let all: Vec<_> = merged.iter().map(|path| file::name(path)).collect();
            anyhow::anyhow!(
                "{} and {name}: {items} items do not fit into one filter of {slots} slots, planned for {capacity}; build all of them \
                 with a --capacity of at least {items}; nothing was written",
                all.join(", ")
            )
        }
        MergeError::Snapshot(error) => file::refused(&name, error),
        error => anyhow::Error::new(error).context(format!("{} and {name}", first())),
    })
}
