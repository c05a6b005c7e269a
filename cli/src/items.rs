//! Items from a file, from standard input, or from the command line.

use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader, IsTerminal as _, Read},
    path::{Path, PathBuf},
    vec,
};

use anyhow::{Context as _, bail};
use clap::Args;

use crate::{
    file::{self, Output},
    terminal::{self, Progress},
};

/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// The length of the longest item. Anything longer is not a list of items, but a file of another kind, and reading on could
/// use up the memory.
const LONGEST: u64 = 256 << 20;

// No doc comment here: clap would take it for the help of every command that has these options.
#[derive(Args)]
pub(crate) struct ItemArgs {
    /// The items, one per line; `-` or no FILE for standard input
    #[arg(conflicts_with = "items")]
    file: Option<PathBuf>,

    /// An item, instead of a file of items; may be repeated
    #[arg(long = "item", value_name = "ITEM", allow_hyphen_values = true)]
    items: Vec<OsString>,

    #[command(flatten)]
    separator: Separator,
}

// No doc comment here, either.
#[derive(Args)]
pub(crate) struct ListArgs {
    /// The items, one per line; `-` for standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) separator: Separator,
}

impl ListArgs {
    /// Opens the list, unless it is to be replaced by the filter.
    pub(crate) fn open_for(&self, output: &Output) -> anyhow::Result<Items> {
        if output.is(&self.input) {
            bail!("{}: cannot be both the list and the filter; give another name for one of them", output.name());
        }
        Items::open(&self.input, self.separator, true)
    }
}

#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Separator {
    /// Items end with a NUL byte instead of a newline, and are used as they are. Without this option, a line without its newline
    /// is the item, and without a carriage return just before that newline; an empty line is the empty item
    #[arg(long)]
    nul: bool,
}

impl Separator {
    pub(crate) fn byte(self) -> u8 {
        if self.nul { 0 } else { b'\n' }
    }
}

impl ItemArgs {
    pub(crate) fn separator(&self) -> u8 {
        self.separator.byte()
    }

    /// Where the items are read from: `-` is standard input, `None` the command line.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.items.is_empty().then(|| self.file.as_deref().unwrap_or(Path::new("-")))
    }

    /// Opens the items that the options name. With `progress`, a bar is shown if there is a terminal.
    pub(crate) fn open(self, progress: bool) -> anyhow::Result<Items> {
        if let Some(path) = self.path() {
            if !file::is_dash(path) && !path.exists() {
                bail!("{}: cannot be read: no such file; to pass an item itself, use --item", path.display());
            }
            return Items::open(path, self.separator, progress);
        }
        let name = String::from("the command line");
        Ok(Items::new(Source::List(self.items.into_iter()), self.separator, name, Progress::none()))
    }
}

enum Source {
    Reader(Box<BufReader<dyn Read>>),
    List(vec::IntoIter<OsString>),
}

/// Items, one after the other, in one buffer that is reused.
pub(crate) struct Items {
    source: Source,
    separator: Separator,
    buffer: Vec<u8>,
    bytes: u64,
    count: u64,
    name: String,
    progress: Progress,
}

impl Items {
    fn new(source: Source, separator: Separator, name: String, progress: Progress) -> Self {
        Self { source, separator, buffer: Vec::new(), bytes: 0, count: 0, name, progress }
    }

    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, separator: Separator, progress: bool) -> anyhow::Result<Self> {
        let (reader, metadata, typed): (Box<BufReader<dyn Read>>, _, _) = if file::is_dash(path) {
            let (stdin, metadata) = (terminal::stdin()?, file::stdin_metadata());
            let typed = stdin.is_terminal();
            (Box::new(BufReader::with_capacity(PIECE, stdin)), metadata, typed)
        } else {
            let file = file::open_file(path, "a file with one item per line, or - for standard input")?;
            let (metadata, typed) = (file.metadata().ok(), file.is_terminal());
            (Box::new(BufReader::with_capacity(PIECE, file)), metadata, typed)
        };
        let length = metadata.and_then(|metadata| file::length(&metadata));
        // A bar would get in the way of what is being typed.
        let progress = if progress && !typed { Progress::reading(length) } else { Progress::none() };
        Ok(Self::new(Source::Reader(reader), separator, file::name(path), progress))
    }

    /// The next item.
    pub(crate) fn advance(&mut self) -> anyhow::Result<Option<&[u8]>> {
        let reader = match &mut self.source {
            Source::Reader(reader) => reader,
            Source::List(list) => {
                let Some(item) = list.next() else { return Ok(None) };
                self.buffer = item.into_encoded_bytes();
                self.count += 1;
                return Ok(Some(&self.buffer));
            }
        };
        if reader.buffer().is_empty() {
            self.progress.at(self.bytes, self.count);
        }
        let end = self.separator.byte();
        self.buffer.clear();
        let read = reader.take(LONGEST + 1).read_until(end, &mut self.buffer);
        let read = read.with_context(|| format!("{}: cannot be read after item {}", self.name, self.count))?;
        if read == 0 {
            // Removed from the screen before anything else is printed.
            self.progress = Progress::none();
            return Ok(None);
        }
        self.bytes += read as u64;
        self.count += 1;
        if self.buffer.pop_if(|&mut last| last == end).is_some() {
            if end == b'\n' {
                self.buffer.pop_if(|&mut last| last == b'\r');
            }
        } else if self.buffer.len() as u64 > LONGEST {
            bail!(
                "{}: longer than {LONGEST} bytes, the limit for an item; give a list of items, with --nul if they end with NUL bytes",
                self.place()
            );
        }
        Ok(Some(&self.buffer))
    }

    /// May reading the next item block?
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.source, Source::Reader(reader) if reader.buffer().is_empty())
    }

    /// The number of items read so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The position of the last item, for messages.
    pub(crate) fn place(&self) -> String {
        self.place_of(self.count)
    }

    /// The position of item `number`, counted from 1, for messages.
    pub(crate) fn place_of(&self, number: u64) -> String {
        let lines = matches!(self.source, Source::Reader(_)) && !self.separator.nul;
        format!("{} {number} of {}", if lines { "line" } else { "item" }, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(input: &'static [u8], nul: bool, piece: usize) -> Vec<Vec<u8>> {
        let reader = Source::Reader(Box::new(BufReader::with_capacity(piece, input)));
        let mut items = Items::new(reader, Separator { nul }, String::new(), Progress::none());
        let mut all = Vec::new();
        while let Some(item) = items.advance().unwrap() {
            all.push(item.to_vec());
        }
        assert_eq!(items.count(), all.len() as u64);
        all
    }

    #[test]
    fn lines_may_end_in_either_way_wherever_the_pieces_end() {
        for piece in 1..12 {
            let lines = |input| items(input, false, piece);
            assert_eq!(lines(b""), [b""; 0]);
            assert_eq!(lines(b"\n"), [b""]);
            assert_eq!(lines(b"\r\n\n"), [b"", b""]);
            assert_eq!(lines(b"a\nb\r\nc"), [b"a", b"b", b"c"]);
            assert_eq!(lines(b"a\rb\r\r\n\r"), [&b"a\rb\r"[..], b"\r"]);
            assert_eq!(lines(b"\0\xff\n"), [b"\0\xff"]);
        }
    }

    #[test]
    fn nul_leaves_line_ends_alone() {
        for piece in 1..12 {
            let items = |input| items(input, true, piece);
            assert_eq!(items(b""), [b""; 0]);
            assert_eq!(items(b"\0\0"), [b"", b""]);
            assert_eq!(items(b"a\nb\r\n\0\r\0c"), [&b"a\nb\r\n"[..], b"\r", b"c"]);
        }
    }
}
