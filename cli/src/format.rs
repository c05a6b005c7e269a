//! Which part of a line is its item: all of it or some of its fields, with or without regard to case.

use std::ops::Range;

use anyhow::bail;
use clap::{
    Arg, Args, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use crate::numbers;

// The options for splitting a list into items. No doc comment here: clap would use it as the help of every command that has these
// options.
#[derive(Args, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "options that are independent of each other")]
pub(crate) struct Format {
    /// Items end with a NUL byte instead of a newline, and are used as they are. Without this option, each line is an item, without
    /// its newline and without a carriage return just before it, which is not printed either; an empty line is the empty item
    #[arg(short = '0', long)]
    pub(crate) nul: bool,

    /// Take field N of each line as the item, counted from 1. Several, such as 2,5, are one item in this order, joined by the
    /// delimiter. Fields are separated by spaces and tabs, by --delimiter, or as in --csv
    #[arg(id = "key", long, value_name = "N", value_delimiter = ',', value_parser = numbers::field, allow_hyphen_values = true)]
    pub(crate) keys: Vec<usize>,

    /// The character between fields, such as `,` or `\t` (a tab); between two in a row, there is an empty field
    #[arg(long, value_name = "C", value_parser = delimiter, requires = "key", allow_hyphen_values = true)]
    pub(crate) delimiter: Option<Delimiter>,

    /// Fields are those of CSV, separated by commas or by --delimiter. A field in double quotes may contain them, and newlines; ""
    /// in it is a double quote
    #[arg(long, requires = "key", conflicts_with = "nul")]
    pub(crate) csv: bool,

    /// What to do with a line that has no field N, such as an empty one [default: error]
    #[arg(long, value_name = "HOW", value_parser = short_of_items(), requires = "key")]
    pub(crate) short: Option<Short>,

    /// Convert items to lowercase, including letters outside ASCII. Give it to each command that uses the filter: the filter does
    /// not know about it
    #[arg(short, long)]
    pub(crate) ignore_case: bool,

    /// Take the bytes of the list as they are, even if it begins like a filter, a compressed file or UTF-16, or with a byte-order
    /// mark
    #[arg(long)]
    pub(crate) binary: bool,
}

/// The treatment of short lines, which lack a field of --key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Short {
    /// It is a line without an item.
    Pass,
    /// It is left out.
    Skip,
    /// It is an error.
    Error,
}

/// Returns the parser of --short for commands that only need items.
fn short_of_items() -> impl TypedValueParser<Value = Short> {
    short([(Short::Skip, "Leave it out"), (Short::Error, "End with an error, without a change")])
}

/// Lets --short of a command that prints lines pass them, too, which is the default. Takes the help of the values.
pub(crate) fn short_of_lines(arg: Arg, [pass, skip, error]: [&'static str; 3]) -> Arg {
    let help = "What to do with a line that has no field N, such as an empty one [default: pass, and tell their number on \
                standard error]";
    arg.help(help).value_parser(short([(Short::Pass, pass), (Short::Skip, skip), (Short::Error, error)]))
}

/// Returns the parser of --short, with the help of each value.
fn short(values: impl IntoIterator<Item = (Short, &'static str)>) -> impl TypedValueParser<Value = Short> {
    let values = values.into_iter().filter_map(|(value, help)| Some(value.to_possible_value()?.help(help)));
    PossibleValuesParser::new(values).try_map(|name| Short::from_str(&name, false))
}

/// The character that separates fields, in UTF-8.
#[derive(Clone)]
pub(crate) struct Delimiter(Box<[u8]>);

fn delimiter(text: &str) -> Result<Delimiter, String> {
    let text = if text == "\\t" { "\t" } else { text };
    if text.chars().count() == 1 {
        return Ok(Delimiter(text.as_bytes().into()));
    }
    Err(String::from("it takes one character, such as , or ; or \\t for a tab; without it, fields are separated by blanks"))
}

impl Format {
    pub(crate) fn separator(&self) -> u8 {
        if self.nul { 0 } else { b'\n' }
    }

    pub(crate) fn has_key(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Returns the values of --key, for messages.
    pub(crate) fn keys(&self) -> String {
        self.keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// Returns the last field of --key, which every short line lacks.
    pub(crate) fn last_key(&self) -> Option<usize> {
        self.keys.iter().copied().max()
    }

    /// Returns what ends with [`separator`](Self::separator), for messages.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Self { nul: true, .. } => "item",
            Self { csv: true, .. } => "record",
            _ => "line",
        }
    }

    /// Returns the options as they are given to a command.
    pub(crate) fn options(&self) -> Vec<String> {
        let delimiter = self.delimiter.as_ref().map(|Delimiter(bytes)| match &**bytes {
            b"\t" => String::from("--delimiter '\\t'"),
            b"'" => String::from("--delimiter \"'\""),
            bytes => format!("--delimiter '{}'", String::from_utf8_lossy(bytes)),
        });
        let key = self.has_key().then(|| format!("--key {}", self.keys()));
        let flag = |is_set: bool, option: &str| is_set.then(|| option.to_owned());
        let short = flag(self.short == Some(Short::Skip), "--short skip");
        let (nul, csv) = (flag(self.nul, "--nul"), flag(self.csv, "--csv"));
        let (case, binary) = (flag(self.ignore_case, "--ignore-case"), flag(self.binary, "--binary"));
        [nul, key, delimiter, csv, short, case, binary].into_iter().flatten().collect()
    }

    /// Returns the format with this default of --short.
    pub(crate) fn or_short(self, default: Short) -> Self {
        Self { short: self.short.or(Some(default)), ..self }
    }

    /// Returns the bytes between fields: those that join the fields of an item.
    fn delimiter(&self) -> &[u8] {
        match &self.delimiter {
            Some(Delimiter(bytes)) => bytes,
            None if self.csv => b",",
            None => b" ",
        }
    }

    /// Sets `fields` to the ranges of a line's fields, except those after the last one of --key.
    fn find_fields(&self, line: &[u8], fields: &mut Vec<Range<usize>>) {
        let most = self.last_key().unwrap_or(0);
        fields.clear();
        if let Some(Delimiter(delimiter)) = &self.delimiter {
            let mut start = 0;
            let ends = (0..line.len()).filter(|&at| line[at..].starts_with(delimiter));
            let all = ends.chain([line.len()]).map(|end| {
                let field = start..end;
                start = end + delimiter.len();
                field
            });
            fields.extend(all.take(most));
        } else {
            let is_blank = |byte: u8| matches!(byte, b' ' | b'\t');
            let starts = (0..line.len()).filter(|&at| !is_blank(line[at]) && (at == 0 || is_blank(line[at - 1])));
            let end = |start: usize| line[start..].iter().position(|&byte| is_blank(byte)).map_or(line.len(), |len| start + len);
            fields.extend(starts.map(|start| start..end(start)).take(most));
        }
    }
}

/// Takes the items from lines. Reuses its buffers.
pub(crate) struct Splitter {
    format: Format,
    csv: Option<Csv>,
    fields: Vec<Range<usize>>,
    /// The fields of --key as they are in the line, joined.
    key: Vec<u8>,
    item: Vec<u8>,
}

impl Splitter {
    pub(crate) fn new(format: &Format) -> anyhow::Result<Self> {
        let csv = match format.delimiter() {
            _ if !format.csv => None,
            &[delimiter] if delimiter != b'"' => Some(Csv::new(delimiter)),
            other => bail!("--delimiter: '{}' cannot separate the fields of --csv; give an ASCII character other than \"", {
                String::from_utf8_lossy(other)
            }),
        };
        Ok(Self { format: format.clone(), csv, fields: Vec::new(), key: Vec::new(), item: Vec::new() })
    }

    pub(crate) fn format(&self) -> &Format {
        &self.format
    }

    /// Takes the next line of a record, and returns whether the record ends with it: whether its last quote is closed.
    pub(crate) fn ends_record(&mut self, line: &[u8]) -> bool {
        self.csv.as_mut().is_none_or(|csv| csv.decode(line))
    }

    /// Finds the item of a line or, in CSV, of the record that has ended. If it is short, the error is the number of its fields.
    pub(crate) fn split(&mut self, line: &[u8]) -> Result<(), usize> {
        let Self { format, csv, fields, key, item } = self;
        if !format.has_key() {
            if format.ignore_case {
                item.clear();
                fold_case(line, item);
            }
            return Ok(());
        }
        let source = if let Some(csv) = &*csv {
            csv.fields(fields)
        } else {
            format.find_fields(line, fields);
            line
        };
        if fields.len() < format.last_key().unwrap_or(0) {
            return Err(fields.len());
        }
        key.clear();
        for (place, &number) in format.keys.iter().enumerate() {
            if place > 0 {
                key.extend_from_slice(format.delimiter());
            }
            let field = &source[fields[number - 1].clone()];
            if csv.is_some() { quote(field, format.delimiter(), key) } else { key.extend_from_slice(field) }
        }
        item.clear();
        // A single field is the item itself, as other lists have it, so it has no quotes.
        let unquoted = match *format.keys {
            [number] => &source[fields[number - 1].clone()],
            _ => &**key,
        };
        if format.ignore_case {
            fold_case(unquoted, item);
        } else {
            item.extend_from_slice(unquoted);
        }
        Ok(())
    }

    /// Returns the item of a line that [`split`](Self::split) was called with.
    pub(crate) fn item<'a>(&'a self, line: &'a [u8]) -> &'a [u8] {
        if self.format.has_key() || self.format.ignore_case { &self.item } else { line }
    }

    /// Returns the fields of --key in such a line, as they can be printed.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }
}

/// Appends a field, in quotes if it needs them in CSV.
fn quote(field: &[u8], delimiter: &[u8], record: &mut Vec<u8>) {
    if !field.iter().any(|byte| b"\"\r\n".contains(byte) || delimiter.contains(byte)) {
        return record.extend_from_slice(field);
    }
    record.push(b'"');
    for &byte in field {
        record.extend_from_slice(if byte == b'"' { b"\"\"" } else { std::slice::from_ref(&byte) });
    }
    record.push(b'"');
}

/// Appends the bytes with all letters in lowercase, as far as they are UTF-8. Letters that differ only in case become equal, also those
/// whose lowercase has several forms, such as the Greek sigma: each is converted to uppercase in between.
fn fold_case(bytes: &[u8], folded: &mut Vec<u8>) {
    if bytes.is_ascii() {
        return folded.extend(bytes.iter().map(u8::to_ascii_lowercase));
    }
    for chunk in bytes.utf8_chunks() {
        let upper = chunk.valid().chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase);
        for letter in upper.flat_map(char::to_lowercase) {
            folded.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        folded.extend_from_slice(chunk.invalid());
    }
}

/// A decoder of CSV records.
struct Csv {
    reader: Reader,
    /// The fields without quotes, one after another, and their ends. Both have room for more.
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The lengths of what was decoded.
    text_len: usize,
    fields: usize,
    is_open: bool,
}

impl Csv {
    fn new(delimiter: u8) -> Self {
        let mut reader = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        // The decoder skips a byte-order mark at its beginning, but one that is here is a part of the first field.
        _ = reader.read_record(b"\n", &mut [], &mut []);
        Self { reader, text: vec![0; 1 << 10], ends: vec![0; 1 << 5], text_len: 0, fields: 0, is_open: false }
    }

    /// Decodes the next line. Returns whether the record is complete.
    fn decode(&mut self, line: &[u8]) -> bool {
        if !self.is_open {
            (self.text_len, self.fields) = (0, 0);
        }
        // The decoder skips an empty line, and reads no bytes as the end of the input.
        let has_begun = if line.is_empty() { self.is_open } else { !self.push(line) };
        self.is_open = has_begun && !self.push(b"\n");
        !self.is_open
    }

    fn push(&mut self, mut input: &[u8]) -> bool {
        loop {
            let (result, read, written, ended) =
                self.reader.read_record(input, &mut self.text[self.text_len..], &mut self.ends[self.fields..]);
            input = &input[read..];
            self.text_len += written;
            self.fields += ended;
            match result {
                ReadRecordResult::InputEmpty => return false,
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
    }

    /// Sets `fields` to the ranges of the record's fields in the returned bytes.
    fn fields(&self, fields: &mut Vec<Range<usize>>) -> &[u8] {
        let ends = &self.ends[..self.fields];
        fields.clear();
        fields.extend(std::iter::once(&0).chain(ends).zip(ends).map(|(&start, &end)| start..end));
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(keys: &[usize], delimited: Option<&str>) -> Format {
        let delimiter = delimited.map(|text| delimiter(text).expect("a character"));
        Format { keys: keys.to_vec(), delimiter, ..Format::default() }
    }

    /// Returns the item and the key of a record, or the number of its fields if it is short.
    fn split(format: &Format, record: &str) -> Result<(String, String), usize> {
        let mut splitter = Splitter::new(format).expect("a format");
        let ends: Vec<_> = record.split('\n').map(|line| splitter.ends_record(line.as_bytes())).collect();
        assert!(ends.iter().rev().skip(1).all(|&is_end| !is_end), "{record}: {ends:?}");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        splitter.split(record.as_bytes()).map(|()| (text(splitter.item(record.as_bytes())), text(splitter.key())))
    }

    #[test]
    fn fields_are_separated_by_blanks_or_by_a_delimiter() {
        let field = |line, key, delimited| split(&format(&[key], delimited), line).map(|(item, _)| item);
        let found = |text: &str| Ok(String::from(text));
        assert_eq!(field("  GET\t/index  200 ", 2, None), found("/index"));
        assert_eq!(field("  GET\t/index  200 ", 4, None), Err(3));
        assert_eq!((field("", 1, None), field(" \t", 1, None)), (Err(0), Err(0)));
        assert_eq!([1, 2, 3].map(|key| field("a,,b", key, Some(","))), [found("a"), found(""), found("b")]);
        assert_eq!((field("", 1, Some(",")), field("a,b", 3, Some(","))), (found(""), Err(2)));
        assert_eq!(field("a b\tc", 2, Some("\\t")), found("c"));
        assert_eq!(field("un\u{2192}deux\u{2192}", 2, Some("\u{2192}")), found("deux"));
        assert!(["", "ab", "\\n"].iter().all(|text| delimiter(text).is_err()));
    }

    #[test]
    fn several_fields_are_joined_in_the_given_order() {
        let both = |item: &str| Ok((String::from(item), String::from(item)));
        assert_eq!(split(&format(&[3, 1], None), "a  b\tc d"), both("c a"));
        assert_eq!(split(&format(&[2, 2], Some(";")), "a;b"), both("b;b"));
        assert_eq!(split(&format(&[1, 3], Some(";")), "a;b"), Err(2));
    }

    #[test]
    fn csv_has_quotes_and_newlines_in_fields() {
        let csv = |keys: &[usize], delimited| Format { csv: true, ..format(keys, delimited) };
        let found = |item: &str, key: &str| Ok((String::from(item), String::from(key)));
        assert_eq!(split(&csv(&[2], None), "1,\"Smith, \"\"Jo\"\"\",x"), found("Smith, \"Jo\"", "\"Smith, \"\"Jo\"\"\""));
        assert_eq!(split(&csv(&[2, 1], None), "1,\"a,b\""), found("\"a,b\",1", "\"a,b\",1"));
        assert_eq!(split(&csv(&[1], None), "\"two\n\nlines\",2"), found("two\n\nlines", "\"two\n\nlines\""));
        assert_eq!(split(&csv(&[2], Some(";")), "1;5\" pipe,x"), found("5\" pipe,x", "\"5\"\" pipe,x\""));
        assert_eq!(split(&csv(&[1], None), "\"\""), found("", ""));
        assert_eq!((split(&csv(&[1], None), ""), split(&csv(&[3], None), "a,b")), (Err(0), Err(2)));
        // The buffers grow.
        let long = format!("{},{}", "x".repeat(5000), ",".repeat(5000));
        assert_eq!(split(&csv(&[5002], None), &long), found("", ""));
        assert_eq!(split(&csv(&[1], None), &long).map(|(item, _)| item.len()), Ok(5000));
        assert!(Splitter::new(&csv(&[1], Some("\u{2192}"))).is_err());
    }

    #[test]
    fn case_is_ignored_in_every_alphabet() {
        let folded = |text: &str| {
            let mut folded = Vec::new();
            fold_case(text.as_bytes(), &mut folded);
            String::from_utf8(folded).expect("UTF-8")
        };
        assert_eq!(folded("Content-TYPE"), "content-type");
        for [one, other] in [
            ["\u{c4}RGER", "\u{e4}rger"],
            ["STRASSE", "Stra\u{df}e"],
            ["\u{39f}\u{3a3}", "\u{3bf}\u{3c2}"],
            ["\u{212a}", "k"],
            ["\u{416}\u{423}\u{41a}", "\u{436}\u{443}\u{43a}"],
        ] {
            assert_eq!(folded(one), folded(other));
        }
        let mut folded = Vec::new();
        fold_case(b"A\xff\xc3\x84", &mut folded);
        assert_eq!(folded, b"a\xff\xc3\xa4");
    }
}
