//! `koel shard split`

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::AnyHasher;

use super::{parts, sorter};
use crate::{
    file,
    items::{Items, Separator},
    numbers, options, stdout,
    streams::Stream,
};

/// Divide a list of items into one for each part.
///
/// With lists of their own, the processes that build the parts need not read all items. Items stay in their order. Files that
/// are there are overwritten; if anything fails, the lists are incomplete.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    koel shard split all.txt --parts 3 -o 'part-{}.txt'
    koel shard build part-1.txt --split --part 1/3 --capacity 300000 -o 1.koel")]
pub(super) struct Split {
    /// The items, one per line; `-` for standard input
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// The number of parts
    #[arg(short = 'n', long, value_name = "N", value_parser = parts, allow_negative_numbers = true)]
    parts: usize,

    /// The files to write, with {} where the number of the part comes
    #[arg(short, long, value_name = "OUT")]
    output: String,

    #[command(flatten)]
    separator: Separator,

    /// The hash function, which must be that of `koel shard build`
    #[arg(long, value_name = "HASHER", default_value = "xxh3", value_parser = options::hasher())]
    hasher: AnyHasher,

    /// The seed of the hash function, which must be that of `koel shard build`
    #[arg(long, value_name = "S", default_value = "0", value_parser = numbers::seed, allow_negative_numbers = true)]
    seed: u64,
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
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if !self.output.contains("{}") {
            bail!("--output: '{}' given, but there are {} files; put {{}} where their number comes", self.output, self.parts);
        }
        Stream::Stdout.check()?;
        let sorter = sorter(self.parts, self.hasher, self.seed)?;
        let paths: Vec<_> =
            (1..=self.parts).map(|number| PathBuf::from(self.output.replace("{}", &number.to_string()))).collect();
        if let Some(path) = paths.iter().find(|path| file::same(&self.input, path)) {
            bail!("{}: cannot be both the list and a part of it; give another name for one of them", path.display());
        }
        let mut lists = paths.iter().map(|path| List::create(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut items = Items::open(&self.input, self.separator, true)?;
        while let Some(item) = items.advance()? {
            lists[sorter.part_of(item)].push(item, self.separator.byte())?;
        }
        let report = lists.into_iter().map(List::finish).collect::<anyhow::Result<String>>()?;
        stdout::report(&report, &self.output)?;
        Ok(ExitCode::SUCCESS)
    }
}
