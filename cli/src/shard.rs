//! `koel shard`: a filter in parts, on any number of machines.

use std::{
    cell::{Cell, RefCell},
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use koel::{AnyHasher, BuildError, ElasticFilter, ElasticPart, MergeError, Parameter, SnapshotErrorKind};

use crate::{
    errors,
    file::{self, To},
    items::ListArgs,
    numbers,
    options::{Hashing, Kind},
    terminal::{self, Stream},
};

/// The most parts: as many as a filter has lanes.
const MOST_PARTS: usize = 256;

/// Build a filter in parts, on any number of machines, and join them.
///
/// The hash of an item says which part it belongs to. Parts are built by independent processes, each with memory for its own part.
/// Joining copies them side by side, with the memory of one small table, so the whole may be larger than any machine's memory.
/// The result is a filter that grows.
///
/// Give each process the same --capacity and other options. It may read all items, since it skips those of other parts; or divide
/// the list first with `koel shard split`.
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
    Split(Split),
    Build(Build),
    Join(Join),
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
fn not_built(error: BuildError) -> anyhow::Error {
    match &error {
        BuildError::Param(refused) if refused.parameter() == Parameter::Parts => anyhow::anyhow!("--part: {refused}"),
        _ => errors::not_built(error),
    }
}

/// A part without items, of so many, which knows what belongs to which part.
fn sorter(parts: usize, Hashing { hasher, seed }: Hashing) -> anyhow::Result<ElasticPart<AnyHasher>> {
    let builder = ElasticFilter::builder().false_positive_rate(0.1).capacity(0).max_capacity(0).hasher(hasher).seed(seed);
    builder.build_part(0, parts).map_err(not_built)
}

/// A number of parts.
fn parts(text: &str) -> Result<usize, String> {
    numbers::within(text, MOST_PARTS, "such as 3")
}

/// Divide a list of items into one for each part.
///
/// With lists of their own, the processes that build the parts need not read all items. Give them the same --hasher and --seed. Items
/// keep their order. Existing files are overwritten; if anything fails, the lists are incomplete.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    koel shard split all.txt --parts 3 -o 'part-{}.txt'
    koel shard build part-1.txt --split --part 1/3 --capacity 300000 -o 1.koel")]
struct Split {
    #[command(flatten)]
    list: ListArgs,

    /// The number of parts
    #[arg(short = 'n', long, value_name = "N", value_parser = parts, allow_negative_numbers = true)]
    parts: usize,

    /// The files to write, with {} where the number of the part comes
    #[arg(short, long, value_name = "OUT")]
    output: String,

    #[command(flatten)]
    hashing: Hashing,
}

/// The list of one part.
struct List {
    name: String,
    writer: BufWriter<File>,
    items: u64,
}

impl List {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        // To open a pipe without a reader is to wait for one.
        if let Some(metadata) = fs::metadata(path).ok().filter(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            bail!("{name}: is {}, not a regular file; give another name, or remove it", file::kind_of(&metadata));
        }
        let file = File::create(path).with_context(|| format!("{name}: cannot be written"))?;
        Ok(Self { name, writer: BufWriter::new(file), items: 0 })
    }

    fn push(&mut self, item: &[u8], separator: u8) -> anyhow::Result<()> {
        self.items += 1;
        // Readers take a carriage return before a newline for a part of the newline.
        let kept: &[u8] = if separator == b'\n' && item.ends_with(b"\r") { b"\r" } else { b"" };
        let written = [item, kept, &[separator]].iter().try_for_each(|bytes| self.writer.write_all(bytes));
        written.with_context(|| self.incomplete())
    }

    /// Returns a line that says what was written.
    fn finish(mut self) -> anyhow::Result<String> {
        self.writer.flush().with_context(|| self.incomplete())?;
        Ok(format!("{}: {} items\n", self.name, self.items))
    }

    fn incomplete(&self) -> String {
        format!("{}: cannot be written further; the lists are incomplete", self.name)
    }
}

impl Split {
    fn run(self) -> anyhow::Result<ExitCode> {
        if !self.output.contains("{}") {
            bail!("--output: '{}' given, but there are {} files; put {{}} where their number comes", self.output, self.parts);
        }
        Stream::Stdout.check()?;
        let sorter = sorter(self.parts, self.hashing)?;
        let paths: Vec<_> =
            (1..=self.parts).map(|number| PathBuf::from(self.output.replace("{}", &number.to_string()))).collect();
        if let Some(path) = paths.iter().find(|path| file::same(&self.list.input, path)) {
            bail!("{}: cannot be both the list and a part of it; give another name for one of them", path.display());
        }
        let mut lists = paths.iter().map(|path| List::create(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut items = self.list.open()?;
        while let Some(item) = items.advance()? {
            lists[sorter.part_of(item)].push(item, self.list.separator.byte())?;
        }
        let report = lists.into_iter().map(List::finish).collect::<anyhow::Result<String>>()?;
        terminal::report(&report, &self.output)?;
        Ok(ExitCode::SUCCESS)
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

    /// IN is the list that `koel shard split` wrote for this part: an item of another part is an error, and is not left out
    #[arg(long)]
    split: bool,

    /// The number of items in all parts together
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_negative_numbers = true)]
    capacity: usize,

    /// The number of items, in all parts together, up to which a lookup reads two buckets; beyond it, four or more
    /// [default: the capacity, which takes the least space]
    #[arg(long, value_name = "N", value_parser = numbers::capacity, allow_negative_numbers = true)]
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
            if self.split && part.part_of(item) != part.part() {
                let belongs = part.part_of(item) + 1;
                bail!(
                    "{}: this item belongs to part {belongs}/{parts}; give the list that `koel shard split` wrote for this part, with \
                     the same --parts, --hasher and --seed; nothing was written",
                    items.place()
                );
            }
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
    let pair = text.split_once('/').and_then(|(part, of)| Some((parts(part).ok()?, parts(of).ok()?)));
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
