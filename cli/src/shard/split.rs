//! `koel shard split`

use std::{
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::AnyHasher;
use tempfile::NamedTempFile;

use super::{parts, sorter};
use crate::{
    items::{Items, Separator},
    options, stdout,
    streams::Stream,
};

/// Divide a list of items into one for each part.
///
/// With lists of their own, the processes that build the parts need not read all items. Items stay in their order.
#[derive(Args)]
#[command(after_help = "\
Examples:
    seq 300000 > all.txt
    koel shard split all.txt --parts 3 -o 'part-{}.txt'
    koel shard build part-1.txt --part 1/3 --capacity 300000 -o 1.koel")]
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
    #[arg(long, value_name = "S", default_value = "0", value_parser = options::seed, allow_negative_numbers = true)]
    seed: u64,
}

/// The list of one part, which takes its name when it is complete.
struct List {
    path: PathBuf,
    writer: BufWriter<NamedTempFile>,
    items: u64,
}

impl List {
    fn new(path: PathBuf) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut options = tempfile::Builder::new();
        // As of any new file: by default, nobody else may read it.
        #[cfg(unix)]
        options.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = options
            .prefix(".koel-")
            .suffix(".tmp")
            .tempfile_in(folder)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Self { path, writer: BufWriter::new(file), items: 0 })
    }

    fn push(&mut self, item: &[u8], separator: u8) -> anyhow::Result<()> {
        self.items += 1;
        let written = self.writer.write_all(item).and_then(|()| self.writer.write_all(&[separator]));
        written.with_context(|| format!("{}: cannot be written", self.path.display()))
    }

    /// Returns a line that says what was written.
    fn finish(self) -> anyhow::Result<String> {
        let name = self.path.display();
        let file = self.writer.into_inner().map_err(io::IntoInnerError::into_error);
        let file = file.with_context(|| format!("{name}: cannot be written"))?;
        file.persist(&self.path).with_context(|| format!("{name}: cannot be written"))?;
        Ok(format!("{name}: {} items\n", self.items))
    }
}

impl Split {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        if !self.output.contains("{}") {
            bail!("--output: '{}' given, but there are {} files; put {{}} where their number comes", self.output, self.parts);
        }
        Stream::Stdout.check()?;
        let sorter = sorter(self.parts, self.hasher, self.seed)?;
        let mut lists = Vec::new();
        for number in 1..=self.parts {
            let path = PathBuf::from(self.output.replace("{}", &number.to_string()));
            if path.canonicalize().is_ok_and(|path| self.input.canonicalize().is_ok_and(|input| input == path)) {
                bail!("{}: cannot be both the list and a part of it; give another name for one of them", path.display());
            }
            lists.push(List::new(path)?);
        }
        let mut items = Items::open(&self.input, self.separator, true)?;
        while let Some(item) = items.advance()? {
            lists[sorter.part_of(item)].push(item, self.separator.byte())?;
        }
        let report = lists.into_iter().map(List::finish).collect::<anyhow::Result<String>>()?;
        stdout::report(&report, &self.output)?;
        Ok(ExitCode::SUCCESS)
    }
}
