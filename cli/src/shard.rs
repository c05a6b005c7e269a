//! `koel shard`: a filter in parts, on any number of machines.

use std::{
    cell::{Cell, RefCell},
    io,
    path::PathBuf,
    process::ExitCode,
};

use anyhow::bail;
use clap::{Args, Subcommand};
use koel::{BuildError, ElasticPart, MergeError, Parameter, SnapshotErrorKind};

use crate::{
    errors,
    file::{self, To},
    items::ListArgs,
    numbers,
    options::Kind,
};

/// The most parts: as many as a filter has lanes.
const MOST_PARTS: usize = 256;

/// Build a filter in parts, on any number of machines, and join them.
///
/// The hash of an item says which part it belongs to. Parts are built by independent processes, each with memory for its own part.
/// Joining copies them side by side, with the memory of one small table, so the whole may be larger than any machine's memory.
/// The result is a filter that grows.
///
/// Give each process the same --capacity and other options, and all items: it skips those of other parts.
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
    Build(Build),
    Join(Join),
}

impl Shard {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.step {
            Step::Build(build) => build.run(),
            Step::Join(join) => join.run(),
        }
    }
}

/// The library's error about a part that cannot be built, with the option that was wrong.
fn not_built(error: BuildError) -> anyhow::Error {
    match &error {
        BuildError::Param(refused) if refused.parameter() == Parameter::Parts => anyhow::anyhow!("--part: {refused}"),
        _ => errors::not_built(error),
    }
}

/// Build one part of a filter.
///
/// Reads a list once, stores the items of this part, and skips the others. OUT is replaced atomically, as by `koel build`. A part
/// cannot be queried before it is joined with the others.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 | koel shard build - --part 1/3 --capacity 300000 -o 1.koel")]
struct Build {
    #[command(flatten)]
    output: To,

    #[command(flatten)]
    list: ListArgs,

    /// Which part of how many, such as 1/3
    #[arg(long, value_name = "I/N", value_parser = part, allow_hyphen_values = true)]
    part: (usize, usize),

    /// The number of items in all parts together
    #[arg(long, value_name = "N", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
    capacity: usize,

    /// The number of items, in all parts together, up to which a lookup reads two buckets; beyond it, four or more
    /// [default: the capacity, which takes the least space]
    #[arg(long, value_name = "N", value_parser = numbers::count::<usize>, allow_hyphen_values = true)]
    max_capacity: Option<usize>,

    #[command(flatten)]
    kind: Kind,

    /// Skip items that the part already reports as present
    #[arg(long)]
    unique: bool,
}

impl Build {
    fn run(self) -> anyhow::Result<ExitCode> {
        let (number, parts) = self.part;
        let builder = self.kind.growing(Some(self.capacity), Some(self.max_capacity.unwrap_or(self.capacity)))?;
        let mut part = builder.build_part(number - 1, parts).map_err(not_built)?;
        let output = self.output.open()?;
        let mut items = self.list.open_for(&output)?;
        while let Some(item) = items.advance()? {
            let stored = if self.unique { part.insert_unique(item) } else { part.insert(item) };
            if let Err(error) = stored {
                bail!("{}; nothing was written", errors::grow(&items.place(), &error));
            }
        }
        let bytes = output.save(&part)?;
        let (of, name) = (items.count(), output.name());
        let report = format!("{name}: part {number} of {parts}, {} of {of} items, {bytes} bytes\n", part.len());
        output.report(&report)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The number of a part, from 1, and that of all parts.
fn part(text: &str) -> Result<(usize, usize), String> {
    let number = |text| numbers::within(text, MOST_PARTS, "such as 3").ok();
    let pair = text.split_once('/').and_then(|(part, of)| number(part).zip(number(of)));
    let part = pair.filter(|(part, parts)| part <= parts);
    part.ok_or_else(|| format!("it takes the number of a part and of all parts, which are {MOST_PARTS} at most, such as 1/3"))
}

/// Join the parts of a filter.
///
/// Checks everything while it copies. Takes the memory of one small table, however large the parts are.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    for i in 1 2 3; do koel shard build all.txt --part $i/3 --capacity 300000 -o $i.koel; done
    koel shard join 1.koel 2.koel 3.koel -o all.koel
    koel query all.koel --item 42")]
struct Join {
    /// The parts, all of them, in any order
    #[arg(value_name = "PART", required = true)]
    parts: Vec<PathBuf>,

    #[command(flatten)]
    output: To,
}

impl Join {
    fn run(self) -> anyhow::Result<ExitCode> {
        for path in &self.parts {
            if file::is_dash(path) {
                bail!("standard input: cannot be a part; give files, all of which are read at the same time");
            }
        }
        // These stay open, also where the library opens them again.
        let files = self.parts.iter().map(|path| file::open_file(path, file::FILTER)).collect::<anyhow::Result<Vec<_>>>()?;
        let output = self.output.open()?;
        let (items, refused) = (Cell::new(0), RefCell::new(None));
        let keep = |result: Result<u64, MergeError>| match result {
            Ok(joined) => {
                items.set(joined);
                Ok(())
            }
            Err(MergeError::Io(error)) => Err(error),
            Err(error) => {
                let failed = io::Error::other(error.to_string());
                *refused.borrow_mut() = Some(error);
                Err(failed)
            }
        };
        let written = output.put(
            |path| keep(ElasticPart::join_files(&self.parts, path)),
            |writer| keep(ElasticPart::join_snapshots(&files, writer)),
        );
        if let Some(error) = refused.into_inner() {
            return Err(self.explain(error));
        }
        let (bytes, name) = (written?, output.name());
        let report = format!("{name}: {} items in {} parts, {bytes} bytes\n", items.get(), self.parts.len());
        output.report(&report)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The error with the names of files.
    fn explain(&self, error: MergeError) -> anyhow::Error {
        let name = |part: usize| file::name(&self.parts[part]);
        match error {
            MergeError::Part { part, error } => match error.kind() {
                SnapshotErrorKind::OtherType => {
                    anyhow::anyhow!("{}: is a filter of fixed size; give parts, which `koel shard build` writes", name(part))
                }
                _ => file::refused(&name(part), error),
            },
            MergeError::DifferentPart { part } => anyhow::anyhow!(
                "{} and {}: these are parts of different filters; build all parts with the same --capacity and other options",
                name(0),
                name(part)
            ),
            MergeError::SamePart { parts: [first, second] } => anyhow::anyhow!(
                "{} and {}: these have the same items; give each part once, all of the same N of `--part I/N`, and no whole filter",
                name(first),
                name(second)
            ),
            MergeError::MissingPart { .. } => {
                anyhow::anyhow!("a part is missing; give all parts, from 1/N to N/N of the same N of `--part I/N`")
            }
            error => error.into(),
        }
    }
}
