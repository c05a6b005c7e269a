//! `koel merge`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use clap::Args;
use koel::{InsertErrorKind, MergeError, hash::AnyHasher};
use serde_json::json;

use crate::{
    facts::Facts,
    file::{self, OutputArgs, Snapshot},
};

/// Merge several filters into one.
///
/// The new filter holds all items of the others. The copies of an item add up, unless --union is given. With --intersect, it holds the
/// items that all of them have, and those of the first one that the others find by chance. Build all filters with the
/// same options and the same --capacity, enough for all distinct items together unless they are intersected; with --grow, the same
/// --max-capacity. Otherwise, or if not all items fit, nothing is written.
///
/// OUT may be one of the filters. It is replaced atomically or stays unchanged. Other koel commands that change it wait in the
/// meantime; if another program moves, removes or replaces it, that is an error. Merging any number of filters takes memory for
/// three tables: the result so far, the next filter, and a copy.
#[derive(Args)]
#[command(after_help = "\
Examples:
    printf 'apple\\nbanana\\n' | koel build - -o monday.koel --capacity 1000
    printf 'cherry\\nfig\\n' | koel build - -o tuesday.koel --capacity 1000
    koel merge monday.koel tuesday.koel -o week.koel
    koel merge monday.koel week.koel --union -o week.koel
    koel merge monday.koel week.koel --intersect -o both.koel
    koel query week.koel --item apple --item fig")]
pub(crate) struct Merge {
    /// The filters, two or more koel snapshots; `-` for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Keep as many copies of an item as the filter with the most copies of it, instead of adding them up
    #[arg(long)]
    union: bool,

    /// Keep only items that all filters have, and as many copies of each as the filter with the fewest of them
    #[arg(long, conflicts_with = "union")]
    intersect: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Print a JSON object with the fields of `koel info --json`, and OUT as `filter`
    #[arg(long)]
    json: bool,
}

impl Merge {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let [first, others @ ..] = &self.filters[..] else { bail!("no filter given; give two or more") };
        if self.filters.iter().filter(|path| file::is_dash(path)).count() > 1 {
            bail!("standard input: can be only one of the filters; give files for the others");
        }
        let output = self.output.open()?;
        let mut filter = file::load_snapshot(first)?;
        for (path, merged) in others.iter().zip(1..) {
            match (&mut filter, file::load_snapshot(path)?) {
                (Snapshot::Fixed(filter), Snapshot::Fixed(other)) => {
                    let done = match (self.union, self.intersect) {
                        (true, _) => filter.union(&other),
                        (_, true) => filter.intersect(&other),
                        _ => filter.merge(&other),
                    };
                    self.explain(done, [filter.hasher(), other.hasher()], merged)?;
                }
                (Snapshot::Growing(filter), Snapshot::Growing(other)) => {
                    let done = match (self.union, self.intersect) {
                        (true, _) => filter.union(&other),
                        (_, true) => filter.intersect(&other),
                        _ => filter.merge(&other),
                    };
                    self.explain(done, [filter.hasher(), other.hasher()], merged)?;
                }
                (Snapshot::Fixed(_), Snapshot::Growing(_)) => return Err(mixed_types(path, first)),
                (Snapshot::Growing(_), Snapshot::Fixed(_)) => return Err(mixed_types(first, path)),
            }
        }
        let bytes = output.save_snapshot(&filter)?;
        Facts::snapshot(&filter, bytes).report(&output, &[], self.json.then(|| json!({})))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Explains the error of adding one more filter to the first `merged` ones. `ours` is their hasher, `theirs` that of the added
    /// one.
    fn explain(&self, done: Result<(), MergeError>, [ours, theirs]: [&AnyHasher; 2], merged: usize) -> anyhow::Result<()> {
        let names = |paths: &[PathBuf]| paths.iter().map(|path| file::name(path)).collect::<Vec<_>>().join(", ");
        let (all, first) = (names(&self.filters[..merged]), file::name(&self.filters[0]));
        let (name, later) = (file::name(&self.filters[merged]), self.filters.len() - merged - 1);
        let differ = |parameter: &str, option: &str, ours: &str, theirs: &str| {
            anyhow::anyhow!(
                "{first} and {name}: only filters with the same {parameter} can be merged, but the first has {ours}, and the second \
                 {theirs}; build both with the same `koel build {option}` and other options"
            )
        };
        let more = if later > 0 { ", and with more for those that follow" } else { "" };
        done.map_err(|error| match error {
            MergeError::DifferentParams { ours, theirs, .. } => anyhow::anyhow!(
                "{first} and {name}: only filters with the same parameters can be merged, but the first has a {ours}, and the second a \
                 {theirs}; build both with the same `koel build --capacity` and other options"
            ),
            MergeError::DifferentRates { ours, theirs, .. } => differ("rate", "--fpr", &format!("{ours:?}"), &format!("{theirs:?}")),
            MergeError::DifferentPlans { parameter, ours, theirs, .. } => {
                let option = match parameter {
                    "capacity" => "--capacity",
                    "max_capacity" => "--max-capacity",
                    "seed" => "--seed",
                    _ => "--grow",
                };
                differ(&parameter.replace('_', " "), option, &ours.to_string(), &theirs.to_string())
            }
            MergeError::DifferentHasher => anyhow::anyhow!(
                "{first} and {name}: only filters with the same hasher can be merged, but the first has {ours}, and the second {theirs}; \
                 build both with the same `koel build --hasher`"
            ),
            MergeError::Full { items, slots, capacity, needed, .. } => {
                anyhow::anyhow!(
                    "{all} and {name}: {items} distinct items do not fit into one filter of {slots} slots, planned for {capacity}; \
                     build all of them with `koel build --capacity {needed}` or more{more}; nothing was written"
                )
            }
            MergeError::MaxCapacity { items, max_capacity, needed, .. } => {
                let build = match needed {
                    Some(needed) => format!("`koel build --grow --capacity {needed} --max-capacity {needed}` or more"),
                    None => String::from("a higher `koel build --fpr`"),
                };
                anyhow::anyhow!(
                    "{all} and {name}: {items} items do not fit into one filter, planned for at most {max_capacity}; build all of them \
                     with {build}{more}; nothing was written"
                )
            }
            MergeError::Insert(error) if error.kind() == InsertErrorKind::TooManyCopies => anyhow::anyhow!(
                "{all} and {name}: together, they have more than {} copies of an item, and no more are counted; with --union, copies \
                 are not added up; nothing was written",
                u32::MAX
            ),
            error => anyhow::Error::new(error).context(format!("{first} and {name}")),
        })
    }
}

/// Returns the error about merging a growing filter with one of fixed size.
fn mixed_types(growing: &Path, fixed: &Path) -> anyhow::Error {
    let (growing, fixed) = (file::name(growing), file::name(fixed));
    anyhow::anyhow!(
        "{growing}: is a filter that grows, which can be merged only with others that grow; build {fixed} with `koel build --grow`, too"
    )
}
