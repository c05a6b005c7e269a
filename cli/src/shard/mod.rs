//! `koel shard`

mod build;
mod join;
mod split;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use koel::{AnyHasher, ElasticFilter, ElasticPart, Parameter};

use crate::{messages, numbers};

/// The most parts: as many as a filter has lanes.
const MOST_PARTS: usize = 256;

/// Build a filter in parts, on any number of machines, and join them.
///
/// An item belongs to one part, which follows from its hash. Parts are built by processes that know nothing of each other, each
/// with the memory for its part alone. Joining copies them side by side, with the memory of one small table, so the whole may be
/// larger than any machine's memory. The result is a filter that grows.
///
/// Each process is told the same --capacity and other options. It may read all items, since it leaves out those of other parts;
/// or `koel shard split` divides the list first.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    koel shard build all.txt --part 1/3 --capacity 300000 -o 1.koel
    koel shard build all.txt --part 2/3 --capacity 300000 -o 2.koel
    koel shard build all.txt --part 3/3 --capacity 300000 -o 3.koel
    koel shard join 1.koel 2.koel 3.koel -o all.koel")]
pub(crate) struct Shard {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    Split(split::Split),
    Build(build::Build),
    Join(join::Join),
}

impl Shard {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.step {
            Step::Split(split) => split.run(),
            Step::Build(build) => build.run(),
            Step::Join(join) => join.run(),
        }
    }
}

/// The library's error about a part that cannot be built, with the option that was wrong.
fn not_built(error: koel::BuildError) -> anyhow::Error {
    match &error {
        koel::BuildError::Param(refused) if refused.parameter() == Parameter::Parts => anyhow::anyhow!("--part: {refused}"),
        _ => messages::not_built(error),
    }
}

/// A part without items, of so many, which knows what belongs to which part.
fn sorter(parts: usize, hasher: AnyHasher, seed: u64) -> anyhow::Result<ElasticPart<AnyHasher>> {
    let builder = ElasticFilter::builder().false_positive_rate(0.1).capacity(0).max_capacity(0).hasher(hasher).seed(seed);
    builder.build_part(0, parts).map_err(not_built)
}

/// A number of parts.
fn parts(text: &str) -> Result<usize, String> {
    let takes = || format!("it takes a whole number from 1 to {MOST_PARTS}, such as 3");
    numbers::whole(text, takes).and_then(|parts| if (1..=MOST_PARTS).contains(&parts) { Ok(parts) } else { Err(takes()) })
}
