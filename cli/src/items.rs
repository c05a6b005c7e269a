//! Items from a file, from standard input, or from the command line.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Cursor, IsTerminal as _, Read},
    path::{Path, PathBuf},
    vec,
};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use koel::InsertError;

use crate::{
    errors::{self, Inserting},
    file::{self, Output, Snapshot},
    format::{Format, Short, Splitter},
    terminal::{self, Progress},
    text::counted,
};

/// The size of the read buffer, in bytes.
const BUFFER: usize = 256 << 10;

/// The length of the longest item, in bytes. A longer one shows that the file is not a list of items, and reading on could use up
/// the memory.
const LONGEST: u64 = 256 << 20;

/// The length of the longest end of a line, a carriage return and a newline.
const LONGEST_END: u64 = 2;

// No doc comment here: clap would use it as the help of every command that has these options.
#[derive(Args)]
pub(crate) struct ItemArgs {
    /// The items, one per line; `-` or no FILE for standard input
    #[arg(conflicts_with = "items")]
    pub(crate) file: Option<PathBuf>,

    /// An item, instead of a file of items; may be repeated
    #[arg(long = "item", value_name = "ITEM", allow_hyphen_values = true)]
    pub(crate) items: Vec<OsString>,

    #[command(flatten)]
    pub(crate) format: Format,
}

/// Fails if the list is the file that the filter will replace.
pub(crate) fn check_distinct(list: &Path, output: &Output) -> anyhow::Result<()> {
    if output.is_file_of(list) {
        bail!("{}: cannot be both the list and the filter; give another name for one of them", output.name());
    }
    Ok(())
}

impl ItemArgs {
    /// Returns the path that the items are read from: `-` for standard input, `None` for the command line.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.items.is_empty().then(|| self.file.as_deref().unwrap_or(Path::new("-")))
    }

    /// Opens the items that the options name. With `progress`, a progress bar is shown on a terminal.
    pub(crate) fn open(self, progress: bool) -> anyhow::Result<Items> {
        if let Some(path) = self.path() {
            if !file::is_dash(path) && !path.exists() {
                bail!("{}: cannot be read: no such file; to pass an item itself, use --item", path.display());
            }
            return Items::open(path, &self.format, progress);
        }
        if self.format.has_key() {
            bail!("--key: takes a field of each line of a list, and --item is an item itself; leave one of them out");
        }
        let name = String::from("the command line");
        Ok(Items::new(Source::List(self.items.into_iter()), Splitter::new(&self.format)?, name, Progress::hidden()))
    }
}

/// The result of an attempt to read a line.
pub(crate) enum Advance {
    Line,
    /// The next line has not arrived as a whole, so reading on may block. Print what must not wait, and try again.
    Wait,
    End,
}

enum Source {
    Reader(Box<BufReader<dyn Read>>),
    List(vec::IntoIter<OsString>),
}

/// A reader of items, which reuses one buffer for all of them.
pub(crate) struct Items {
    source: Source,
    splitter: Splitter,
    /// The line that was read last, or the last item from the command line.
    line: Vec<u8>,
    /// True if the line is short, and so has no item.
    is_short: bool,
    /// True if the line is not complete yet.
    is_partial: bool,
    /// True if the caller knows that the next read may block.
    has_waited: bool,
    bytes: u64,
    /// The number of lines read so far, short ones included.
    lines: u64,
    /// The number of short lines.
    short: u64,
    /// The number of the first short line, counted from 1.
    first_short: u64,
    name: String,
    progress: Progress,
}

impl Items {
    fn new(source: Source, splitter: Splitter, name: String, progress: Progress) -> Self {
        let (line, is_short, is_partial, has_waited) = (Vec::new(), false, false, false);
        let (bytes, lines, short, first_short) = (0, 0, 0, 0);
        Self { source, splitter, line, is_short, is_partial, has_waited, bytes, lines, short, first_short, name, progress }
    }

    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &Path, format: &Format, progress: bool) -> anyhow::Result<Self> {
        let (reader, metadata, typed): (Box<dyn Read>, _, _) = if file::is_dash(path) {
            let (stdin, metadata) = (terminal::stdin()?, file::stdin_metadata());
            let typed = stdin.is_terminal();
            (Box::new(stdin), metadata, typed)
        } else {
            let file = file::open_file(path, "a file with one item per line, or - for standard input")?;
            let (metadata, typed) = (file.metadata().ok(), file.is_terminal());
            (Box::new(file), metadata, typed)
        };
        let length = metadata.and_then(|metadata| file::length(&metadata));
        // A progress bar would disturb what is being typed.
        let progress = if progress && !typed { Progress::reading(length) } else { Progress::hidden() };
        Self::from_reader(reader, format, file::name(path), progress)
    }

    /// Reads items from a reader. Fails if its first bytes are not those of a list.
    pub(crate) fn from_reader(
        mut reader: Box<dyn Read>,
        format: &Format,
        name: String,
        progress: Progress,
    ) -> anyhow::Result<Self> {
        let (splitter, mut head) = (Splitter::new(format)?, Vec::new());
        if !format.binary {
            head = first_bytes(&mut reader, format.separator()).with_context(|| format!("{name}: cannot be read"))?;
            check_list(&head, &name)?;
            if head.starts_with(BYTE_ORDER_MARK) {
                head.drain(..BYTE_ORDER_MARK.len());
                terminal::say(format_args!(
                    "koel: {name}: begins with a byte-order mark, which is skipped; --binary makes it a part of the first item\n"
                ));
            }
        }
        let reader = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(reader));
        Ok(Self::new(Source::Reader(Box::new(reader)), splitter, name, progress))
    }

    /// Reads the next item, and returns it. Short lines are left out or are errors; [`advance_line`](Self::advance_line) passes
    /// them.
    pub(crate) fn advance(&mut self) -> anyhow::Result<Option<&[u8]>> {
        loop {
            match self.advance_line()? {
                Advance::Line if !self.is_short => return Ok(self.item()),
                Advance::Line | Advance::Wait => {}
                Advance::End => return Ok(None),
            }
        }
    }

    /// Reads the next line, but first returns [`Advance::Wait`] if that may block, also after lines that are left out. The line's
    /// [`item`](Self::item) is `None` if it is short, and short lines are to be passed.
    pub(crate) fn advance_line(&mut self) -> anyhow::Result<Advance> {
        loop {
            match self.read_line()? {
                Advance::Line => {}
                other => return Ok(other),
            }
            let Err(fields) = self.splitter.split(&self.line) else {
                self.is_short = false;
                return Ok(Advance::Line);
            };
            self.is_short = true;
            self.short += 1;
            if self.short == 1 {
                self.first_short = self.lines;
            }
            match self.format().short {
                Some(Short::Pass) => return Ok(Advance::Line),
                Some(Short::Skip) => {}
                Some(Short::Error) | None => bail!(
                    "{}: has {}, but --key is {}; give another --key or --delimiter, or --short skip to leave out such lines",
                    self.place(),
                    counted(fields, "field"),
                    self.format().keys()
                ),
            }
        }
    }

    fn format(&self) -> &Format {
        self.splitter.format()
    }

    /// Reads a line, or takes an item from the command line.
    fn read_line(&mut self) -> anyhow::Result<Advance> {
        let reader = match &mut self.source {
            Source::Reader(reader) => reader,
            Source::List(list) => {
                let Some(item) = list.next() else { return Ok(Advance::End) };
                self.line = item.into_encoded_bytes();
                self.lines += 1;
                return Ok(Advance::Line);
            }
        };
        if reader.buffer().is_empty() {
            self.progress.update(self.bytes, self.lines);
        }
        let end = self.splitter.format().separator();
        if !std::mem::replace(&mut self.is_partial, true) {
            self.line.clear();
        }
        loop {
            // Writers often end a block within a line.
            if !self.has_waited && !reader.buffer().contains(&end) {
                self.has_waited = true;
                return Ok(Advance::Wait);
            }
            self.has_waited = false;
            let start = self.line.len();
            let read = reader.take(LONGEST + LONGEST_END).read_until(end, &mut self.line);
            let read = read.with_context(|| format!("{}: cannot be read after item {}", self.name, self.lines))?;
            self.bytes += read as u64;
            let len = len_without_end(&self.line, end);
            if len as u64 > LONGEST {
                self.lines += 1;
                let remedy = if self.format().csv {
                    "close a quote in it, or leave --csv out"
                } else {
                    "give a list of items, with --nul if they end with NUL bytes"
                };
                bail!("{}: longer than {LONGEST} bytes, the limit for an item; {remedy}", self.place());
            }
            if read == 0 && start == 0 {
                self.hide_progress();
                return Ok(Advance::End);
            }
            // In CSV, a line may end within quotes. Its end is then a part of the record. All lines that follow would be, too, if a
            // quote is never closed.
            if read == 0 {
                self.lines += 1;
                bail!("{}: a quote in it is not closed; close it, or leave --csv out", self.place());
            }
            if self.splitter.ends_record(&self.line[start..len]) {
                self.line.truncate(len);
                self.lines += 1;
                self.is_partial = false;
                return Ok(Advance::Line);
            }
        }
    }

    /// Returns the item of the line that was read last, unless the line is short.
    pub(crate) fn item(&self) -> Option<&[u8]> {
        (!self.is_short).then(|| self.splitter.item(&self.line))
    }

    /// Returns the line of the item that was read last.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns the fields of --key in that line, or the line itself if it is short.
    pub(crate) fn key(&self) -> &[u8] {
        if self.is_short { &self.line } else { self.splitter.key() }
    }

    /// Returns the byte that ends an item.
    pub(crate) fn separator(&self) -> u8 {
        self.format().separator()
    }

    /// Returns the number of items read so far. Short lines have none.
    pub(crate) fn count(&self) -> u64 {
        self.lines - self.short
    }

    /// Returns the number of lines read so far, short ones included.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the number of short lines read so far.
    pub(crate) fn short(&self) -> u64 {
        self.short
    }

    /// Removes the progress bar from the screen.
    pub(crate) fn hide_progress(&mut self) {
        self.progress = Progress::hidden();
    }

    /// Says how many lines were short, and where the first one is: "2 lines of list have no field 3, line 7 first". `None` if there
    /// were none.
    pub(crate) fn short_lines(&self) -> Option<String> {
        let key = self.format().last_key().filter(|_| self.short > 0)?;
        let (unit, have) = (self.format().unit(), if self.short == 1 { "has" } else { "have" });
        let (number, name, first) = (counted(self.short, unit), &self.name, self.first_short);
        Some(format!("{number} of {name} {have} no field {key}, {unit} {first} first"))
    }

    /// Returns the position of the line that was read last, for messages.
    pub(crate) fn place(&self) -> String {
        let unit = if matches!(self.source, Source::Reader(_)) { self.format().unit() } else { "item" };
        format!("{unit} {} of {}", self.lines, self.name)
    }

    /// Returns the position of item `number`, counted from 1, for messages. Where lines were left out, the line is not known.
    pub(crate) fn place_of(&self, number: u64) -> String {
        let has_lines = matches!(self.source, Source::Reader(_)) && self.short == 0;
        format!("{} {number} of {}", if has_lines { self.format().unit() } else { "item" }, self.name)
    }

    /// Inserts the items into a filter as they are read; with `unique`, skips those reported as present. Returns the number of
    /// inserted items.
    ///
    /// An error has a remedy for users of `command`, and ends with `end`, which says what becomes of the file.
    pub(crate) fn add_to(&mut self, filter: &mut Snapshot, unique: bool, command: Inserting, end: &str) -> anyhow::Result<u64> {
        let mut inserted = 0;
        while let Some(item) = self.advance()? {
            let result = if unique { filter.insert_unique(item) } else { filter.insert(item).map(|()| true) };
            let result = result.map_err(|error| anyhow!("{}; {end}", self.refused_by(filter, &error, command)));
            inserted += u64::from(result?);
        }
        Ok(inserted)
    }

    /// Returns the message about the item that was read last, which a filter refused.
    pub(crate) fn refused_by(&self, filter: &Snapshot, error: &InsertError, command: Inserting) -> String {
        let capacity = match filter {
            Snapshot::Fixed(filter) => filter.capacity(),
            // It is never full.
            Snapshot::Growing(_) => 0,
        };
        errors::refused(&self.place(), error, capacity, command)
    }
}

/// Returns the length of a line without the byte that ends it, and without a carriage return before a newline.
fn len_without_end(line: &[u8], end: u8) -> usize {
    let Some(text) = line.strip_suffix(&[end]) else { return line.len() };
    text.strip_suffix(b"\r").filter(|_| end == b'\n').unwrap_or(text).len()
}

/// The byte-order mark that UTF-8 text may begin with. Editors on Windows write it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of compressed files, the description for messages, and the command that decompresses them.
const COMPRESSED: [(&[u8], &str, &str); 4] = [
    (b"\x1f\x8b", "compressed by gzip", "gzip -dc"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "zstd -dc"),
    (b"\xfd7zXZ\0", "compressed by xz", "xz -dc"),
    (b"BZh91AY&SY", "compressed by bzip2", "bzip2 -dc"),
];

/// The number of bytes that are enough to recognize a file's format.
const HEAD: usize = 16;

/// Reads the first bytes: at most [`HEAD`], and fewer once there is a line end, unless it may be one in the first bytes of a
/// snapshot. Waiting for the next line could block.
fn first_bytes(reader: &mut dyn Read, end: u8) -> io::Result<Vec<u8>> {
    let (mut head, mut piece) = (Vec::new(), [0; HEAD]);
    while head.len() < HEAD && (!head.contains(&end) || file::MAGIC.starts_with(&head)) {
        match reader.read(&mut piece[head.len()..]) {
            Ok(0) => break,
            Ok(read) => head.extend_from_slice(&piece[head.len()..][..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// Fails if the first bytes of a file show that it is not a list of items.
fn check_list(head: &[u8], name: &str) -> anyhow::Result<()> {
    const BYTES: &str = "with --binary, its bytes are the items";
    if file::is_snapshot(head) {
        bail!("{name}: is a koel snapshot, not a list of items; `koel merge` adds the items of a filter to another one; {BYTES}");
    }
    // Standard input needs no file name in the command.
    let from = if name == file::STDIN { String::new() } else { format!(" {name}") };
    let converted = if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        Some(("text in UTF-16", "iconv -f UTF-16 -t UTF-8"))
    } else {
        COMPRESSED.iter().find(|(start, ..)| head.starts_with(start)).map(|&(_, kind, command)| (kind, command))
    };
    match converted {
        Some((kind, command)) => {
            bail!("{name}: is {kind}; convert it first: `{command}{from} | koel \u{2026}`, with - for the list; {BYTES}")
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(input: &'static [u8], nul: bool, buffer: usize) -> Vec<Vec<u8>> {
        let reader = Source::Reader(Box::new(BufReader::with_capacity(buffer, input)));
        let splitter = Splitter::new(&Format { nul, ..Format::default() }).unwrap();
        let mut items = Items::new(reader, splitter, String::new(), Progress::hidden());
        let mut all = Vec::new();
        while let Some(item) = items.advance().unwrap() {
            all.push(item.to_vec());
        }
        assert_eq!(items.count(), all.len() as u64);
        all
    }

    #[test]
    fn lines_may_end_in_either_way_at_any_buffer_boundary() {
        for buffer in 1..12 {
            let lines = |input| items(input, false, buffer);
            assert_eq!(lines(b""), [b""; 0]);
            assert_eq!(lines(b"\n"), [b""]);
            assert_eq!(lines(b"\r\n\n"), [b"", b""]);
            assert_eq!(lines(b"a\nb\r\nc"), [b"a", b"b", b"c"]);
            assert_eq!(lines(b"a\rb\r\r\n\r"), [&b"a\rb\r"[..], b"\r"]);
            assert_eq!(lines(b"\0\xff\n"), [b"\0\xff"]);
        }
    }

    #[test]
    fn nul_keeps_line_ends() {
        for buffer in 1..12 {
            let items = |input| items(input, true, buffer);
            assert_eq!(items(b""), [b""; 0]);
            assert_eq!(items(b"\0\0"), [b"", b""]);
            assert_eq!(items(b"a\nb\r\n\0\r\0c"), [&b"a\nb\r\n"[..], b"\r", b"c"]);
        }
    }

    /// A reader that returns one byte at a time.
    struct Slow(&'static [u8]);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    #[test]
    fn lists_are_recognized_from_a_slow_reader() {
        let open = |bytes: &'static [u8], binary| {
            let format = Format { binary, ..Format::default() };
            Items::from_reader(Box::new(Slow(bytes)), &format, String::from("list"), Progress::hidden())
        };
        let others: [(&[u8], &str); 6] = [
            (b"KOEL\r\n\x1a\n0123456789", "koel merge"),
            (b"\x1f\x8b\x08\0\0", "gzip -dc list |"),
            (b"\x28\xb5\x2f\xfd\x04", "zstd -dc list |"),
            (b"\xfd7zXZ\0\0", "xz -dc list |"),
            (b"\xff\xfea\0\n\0", "iconv -f UTF-16 -t UTF-8 list |"),
            (b"\xfe\xff\0a\0\n", "iconv -f UTF-16 -t UTF-8 list |"),
        ];
        for (bytes, remedy) in others {
            let error = open(bytes, false).err().expect("not a list").to_string();
            assert!(error.contains(remedy) && error.contains("--binary"), "{error}");
            let mut items = open(bytes, true).expect("anything is a list");
            let first = items.advance().unwrap().unwrap().to_vec();
            assert!(bytes.starts_with(&first) && items.bytes > 0);
        }
        let items_of = |bytes: &'static [u8]| items(bytes, false, 1);
        for bytes in [&b""[..], b"\n", b"K\nOEL", b"KOEL", b"\x1f", b"BZh", b"\xef\xbb", b"a\nKOEL\r\n\x1a\n"] {
            let mut items = open(bytes, false).expect("a list");
            let mut all = Vec::new();
            while items.advance().unwrap().is_some() {
                all.push(items.item().expect("an item").to_vec());
            }
            assert_eq!(all, items_of(bytes));
        }
        let mut marked = open(b"\xef\xbb\xbfalice\nbob", false).expect("a list");
        assert_eq!(marked.advance().unwrap(), Some(&b"alice"[..]));
        assert_eq!(open(b"\xef\xbb\xbfa", true).unwrap().advance().unwrap(), Some(&b"\xef\xbb\xbfa"[..]));
    }
}
