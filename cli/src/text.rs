//! Numbers, tables and paragraphs as text for people. `koel_lab` formats counts and shares.

use koel::Params;
pub(crate) use koel_lab::counted;
use textwrap::{Options, WordSplitter, fill};

/// Columns of the text: those of a narrow terminal.
const WIDTH: usize = 80;

/// Formats a number with three significant digits, or with all digits before the point. Below 1, it has two decimal places.
fn three_digits(number: f64) -> String {
    match number {
        0.0 => String::from("0"),
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Formats a number in the largest unit that leaves it at least 1. Each unit is a thousand times the one before.
fn scaled(number: f64, units: &[&str]) -> String {
    let (mut number, mut units) = (number, units.iter());
    let mut unit = units.next().copied().unwrap_or_default();
    while number >= 999.5
        && let Some(larger) = units.next()
    {
        (number, unit) = (number / 1000.0, larger);
    }
    format!("{} {unit}", three_digits(number))
}

/// Formats a number of bytes: exact below 10 kB, otherwise with three significant digits.
pub(crate) fn size(bytes: f64) -> String {
    if bytes < 9999.5 { format!("{bytes:.0} B") } else { scaled(bytes / 1000.0, &["kB", "MB", "GB", "TB", "PB", "EB"]) }
}

/// Formats a time, given in nanoseconds, with three significant digits.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, &["ns", "us", "ms"])
}

/// Formats a rate with three significant digits, or two if it would be wider than seven characters.
pub(crate) fn short_rate(rate: f64) -> String {
    match rate {
        0.0 => String::from("0"),
        0.1.. => format!("{rate:.3}"),
        0.01.. => format!("{rate:.4}"),
        0.001.. => format!("{rate:.5}"),
        9.995e-10.. => format!("{rate:.2e}"),
        _ => format!("{rate:.1e}"),
    }
}

/// Returns the least number with three digits that is not below `rate`.
pub(crate) fn rounded_up(rate: f64) -> f64 {
    let near = format!("{rate:.2e}");
    let (digits, power) = near.split_once('e').unwrap_or((&near, "0"));
    let number = |digits: f64| format!("{digits:.2}e{power}").parse().unwrap_or(rate);
    let digits = digits.parse().unwrap_or(rate);
    if number(digits) < rate { number(digits + 0.01) } else { number(digits) }
}

/// Returns the text of a cell, or a dash if there is none.
pub(crate) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| String::from("-"))
}

/// Returns the name of a filter in tables.
pub(crate) fn label(params: &Params) -> String {
    format!("{} f={} b={}", params.table(), params.fingerprint_bits(), params.bucket_size())
}

/// Columns of a table that fit the width of the text, without the first one. That has the same names in all parts of the table.
pub(crate) struct Part {
    pub(crate) header: Vec<&'static str>,
    /// The cells of the first rows of the table.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Part {
    pub(crate) fn new(header: &[&'static str], rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self { header: header.to_vec(), rows: rows.into_iter().collect() }
    }
}

/// Formats rows of cells as columns. The columns in `left` are aligned to the left, all others to the right.
/// A line of dashes stands above each of the rows in `lines`.
pub(crate) fn table(rows: &[Vec<String>], left: &[usize], lines: &[usize]) -> String {
    let width = |cell: &String| cell.chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<_> =
        (0..columns).map(|column| rows.iter().filter_map(|row| row.get(column)).map(width).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        if lines.contains(&number) {
            text += &"-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1));
            text += "\n";
        }
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if left.contains(&column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    text
}

/// Wraps paragraphs at the width of the text.
pub(crate) fn paragraphs(texts: &[impl AsRef<str>]) -> String {
    texts.iter().map(|text| wrapped(text.as_ref())).collect()
}

/// Wraps a paragraph at the width of the text, and indents all lines but the first.
pub(crate) fn wrapped(text: &str) -> String {
    // Paths, options and hyphenated words stay whole, so that they can be pasted.
    let options = Options::new(WIDTH).subsequent_indent("  ").break_words(false).word_splitter(WordSplitter::NoHyphenation);
    fill(text, options) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_three_digits() {
        for (bytes, text) in [
            (0.0, "0 B"),
            (9999.4, "9999 B"),
            (9999.5, "10.0 kB"),
            (99_949.0, "99.9 kB"),
            (999_499.0, "999 kB"),
            (999_500.0, "1.00 MB"),
            (9.995e9, "10.0 GB"),
            (1.25e15, "1.25 PB"),
            (18.4e18, "18.4 EB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (ns, text) in
            [(0.0, "0 ns"), (9.994, "9.99 ns"), (12.34, "12.3 ns"), (999.4, "999 ns"), (999.6, "1.00 us"), (2e12, "2000000 ms")]
        {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn rates_have_three_digits_and_take_seven_columns() {
        for (rate, text) in [(0.0, "0"), (0.5, "0.500"), (0.098_76, "0.0988"), (0.001, "0.00100"), (0.000_946, "9.46e-4")] {
            assert_eq!(short_rate(rate), text);
        }
        assert_eq!([short_rate(9.994e-10), short_rate(9.996e-10), short_rate(1.26e-10)], ["1.0e-9", "1.00e-9", "1.3e-10"]);
    }

    #[test]
    fn rates_are_rounded_up_to_three_digits() {
        for (rate, rounded) in [(0.5, 0.5), (0.001_230_1, 0.001_24), (0.001_239_9, 0.001_24), (9.991e-7, 1e-6), (1e-300, 1e-300)]
        {
            assert_eq!(rounded_up(rate).to_bits(), f64::to_bits(rounded), "{rate}");
        }
    }
}
