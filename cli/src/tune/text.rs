//! The recommendation as text, 80 columns wide.

use std::fmt;

use koel::tuning::Candidate;
use koel_lab::structures::Structure;
use tabled::{
    builder::Builder,
    settings::{Alignment, Padding, Style, object::Columns, style::HorizontalLine},
};

use super::{Advice, Tune, others::is_real};

/// Columns of a terminal.
const WIDTH: usize = 80;

const HEADER: [&str; 8] = ["filter", "size", "bits/item", "\u{3b5}", "load", "delete", "grow", "static"];

impl Advice<'_> {
    pub(super) fn text(&self) -> String {
        let (question, left_out) = (self.question(), self.left_out());
        match (&self.call, self.filters.best()) {
            (Some(call), Some(best)) => {
                format!("{question}\n\n{}\n{}{left_out}\n{}\n\n{}\n", self.table(), self.notes(best), call.command(), call.rust())
            }
            _ => format!("{question}\nNo filter meets these requirements.\n{}{left_out}", self.nearest()),
        }
    }

    fn question(&self) -> String {
        let Tune { items, fpr, bytes, .. } = *self.asked;
        let items = counted(items, "item");
        match (fpr, bytes) {
            (Some(rate), None) => format!("{items}, a false-positive rate \u{3b5} of at most {rate:?}."),
            (Some(rate), Some(bytes)) => {
                format!("{items}, a false-positive rate \u{3b5} of at most {rate:?}, at most {}.", counted(bytes, "byte"))
            }
            (None, bytes) => format!("{items}, at most {}.", counted(bytes.unwrap_or(usize::MAX), "byte")),
        }
    }

    fn table(&self) -> String {
        let mut table = Builder::new();
        table.push_record(HEADER);
        let filters = self.filters.candidates();
        for (number, filter) in filters.iter().enumerate() {
            table.push_record(row(filter, number == 0));
        }
        for &(structure, bits) in &self.others.rows {
            table.push_record(other(structure, bits, self.others.rate, self.asked.items));
        }
        let line = HorizontalLine::new('-');
        let mut table = table.build();
        table
            .with(Style::empty().horizontals([(1, line), (filters.len() + 1, line)]))
            .modify(Columns::new(..), Padding::new(0, 2, 0, 0))
            .modify(Columns::last(), Padding::zero())
            .modify(Columns::new(1..), Alignment::right());
        trimmed(&table.to_string())
    }

    /// The notes below the table.
    fn notes(&self, best: &Candidate) -> String {
        let params = best.params();
        let what = if self.asked.fpr.is_some() { "smallest" } else { "lowest rate" };
        let mut notes = vec![
            format!(
                "* The {what}: {}, {} buckets of {}. Room for {}, or for {} copies of one item if its two buckets have no \
                 others.",
                counted(best.bytes(), "byte"),
                params.buckets(),
                counted(params.bucket_size(), "slot"),
                counted(params.capacity(), "distinct item"),
                best.copies()
            ),
            String::from("f: bits per fingerprint, b: slots per bucket."),
        ];
        if let Some(rate) = self.others.rate {
            let rate = three_digits(rate);
            notes.push(format!("Below the line: formulas of their authors, for large sets, at \u{3b5} = {rate}."));
        }
        notes.iter().map(|note| wrapped(note)).collect()
    }

    fn nearest(&self) -> String {
        let Some(nearest) = &self.nearest else { return String::new() };
        let mut ways = Vec::new();
        if let Some(bytes) = nearest.bytes {
            ways.push(format!("--bytes {bytes}"));
        }
        if let Some(rate) = nearest.rate {
            ways.push(format!("--fpr {}", rounded_up(rate)));
        }
        if let Some(items) = nearest.items {
            ways.push(format!("--items {items}"));
        }
        if ways.is_empty() {
            return wrapped("No single option is enough: change more than one.");
        }
        format!("Nearest values, any one of which is enough:\n  {}\n", ways.join("\n  "))
    }

    /// What was left out, and why.
    fn left_out(&self) -> String {
        let mut groups: Vec<(String, String)> = Vec::new();
        let mut add = |name: String, further: String, reason: &str| match groups.last_mut() {
            Some((names, known)) if known == reason => *names += &further,
            _ => groups.push((name, reason.to_owned())),
        };
        let mut table = None;
        for rejection in self.filters.rejections() {
            let (kind, b) = (rejection.table(), rejection.bucket_size());
            let name = format!("{kind} b={b}");
            let further = if table == Some(kind) { format!(", {b}") } else { format!(", {name}") };
            table = Some(kind);
            add(name, further, rejection.reason());
        }
        for (structure, reason) in &self.others.rejected {
            add(structure.name().to_owned(), format!(", {}", structure.name()), reason);
        }
        if groups.is_empty() {
            return String::new();
        }
        let lines = groups.iter().map(|(names, reason)| wrapped(&format!("- {names}: {reason}.")));
        format!("\nLeft out:\n{}", lines.collect::<String>())
    }
}

fn row(filter: &Candidate, is_best: bool) -> [String; 8] {
    let params = filter.params();
    let mark = if is_best { " *" } else { "" };
    let bits = filter.bits_per_item();
    [
        format!("{} f={} b={}{mark}", params.table(), params.fingerprint_bits(), params.bucket_size()),
        size(filter.bytes() as f64),
        if bits.is_finite() { format!("{bits:.2}") } else { String::from("-") },
        narrow(filter.false_positive_rate()),
        load(filter.load()),
        yes(true),
        yes(false),
        yes(false),
    ]
}

fn other(structure: Structure, bits: f64, rate: Option<f64>, items: usize) -> [String; 8] {
    let can = |it| if is_real(structure) { yes(it) } else { String::from("-") };
    [
        structure.name().to_owned(),
        size(bits * items as f64 / 8.0),
        format!("{bits:.2}"),
        rate.map_or_else(|| String::from("-"), narrow),
        String::from("-"),
        can(structure.deletes()),
        can(structure.grows()),
        can(structure.is_static()),
    ]
}

fn yes(it: bool) -> String {
    String::from(if it { "yes" } else { "no" })
}

fn load(load: f64) -> String {
    if load >= 0.9995 { String::from("100 %") } else { format!("{:.1} %", 100.0 * load) }
}

/// A number of things: "1 item", "2 items".
pub(super) fn counted<T: Copy + fmt::Display + PartialEq + From<u8>>(number: T, thing: &str) -> String {
    format!("{number} {thing}{}", if number == T::from(1) { "" } else { "s" })
}

/// A number of bytes: exact if below 10 kB, otherwise with three significant digits.
fn size(bytes: f64) -> String {
    if bytes < 9999.5 {
        return format!("{bytes:.0} B");
    }
    let mut size = bytes;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        size /= 1000.0;
        match size {
            ..9.995 => return format!("{size:.2} {unit}"),
            ..99.95 => return format!("{size:.1} {unit}"),
            ..999.5 => return format!("{size:.0} {unit}"),
            _ => {}
        }
    }
    format!("{:.1} EB", size / 1000.0)
}

/// A rate with three significant digits.
fn three_digits(rate: f64) -> String {
    match rate {
        0.0 => String::from("0"),
        0.1.. => format!("{rate:.3}"),
        0.01.. => format!("{rate:.4}"),
        0.001.. => format!("{rate:.5}"),
        _ => format!("{rate:.2e}"),
    }
}

/// The same, at most seven characters wide.
fn narrow(rate: f64) -> String {
    if rate > 0.0 && rate < 9.995e-10 { format!("{rate:.1e}") } else { three_digits(rate) }
}

/// A rate below 1, rounded up to three digits, or to more where three would give 1.
fn rounded_up(rate: f64) -> String {
    let will_do = |text: &String| text.parse::<f64>().is_ok_and(|shown| shown >= rate && shown < 1.0);
    let short = [three_digits(rate), three_digits(rate * 1.01)];
    let longer = (3..16).zip(3..).map(|(digits, power)| format!("{:.digits$}", rate + 0.5 * 0.1f64.powi(power)));
    // `Debug` writes all digits.
    short.into_iter().chain(longer).find(will_do).unwrap_or_else(|| format!("{rate:?}"))
}

/// Lines without trailing spaces.
fn trimmed(text: &str) -> String {
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A paragraph in lines that fit, indented from the second on.
fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        let gap = match column {
            0 => "",
            _ if column + 1 + width <= WIDTH => " ",
            _ => "\n  ",
        };
        column = if gap.starts_with('\n') { 2 + width } else { column + gap.len() + width };
        lines.extend([gap, word]);
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let cases: [(f64, &str); 9] = [
            (0.0, "0 B"),
            (9999.4, "9999 B"),
            (9999.5, "10.0 kB"),
            (99_949.0, "99.9 kB"),
            (999_499.0, "999 kB"),
            (999_500.0, "1.00 MB"),
            (9.995e9, "10.0 GB"),
            (1.25e15, "1.25 PB"),
            (18.4e18, "18.4 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn rates_have_three_digits_and_take_seven_columns() {
        let cases = [(0.0, "0"), (0.5, "0.500"), (0.098_76, "0.0988"), (0.001, "0.00100"), (0.000_946, "9.46e-4")];
        for (rate, text) in cases {
            assert_eq!((three_digits(rate).as_str(), narrow(rate).as_str()), (text, text));
        }
        assert_eq!([narrow(9.994e-10), narrow(9.996e-10), narrow(1.26e-10)], ["1.0e-9", "1.00e-9", "1.3e-10"]);
        for (rate, text) in [(0.03, "0.0300"), (0.030_01, "0.0303"), (1.2501e-10, "1.26e-10"), (9.999e-5, "1.00e-4")] {
            assert_eq!(rounded_up(rate), text);
        }
    }

    #[test]
    fn a_rate_rounded_up_stays_below_1() {
        for (rate, text) in [(0.998_31, "0.999"), (0.999, "0.999"), (0.999_01, "0.9991"), (0.999_999_4, "0.9999995")] {
            assert_eq!(rounded_up(rate), text);
        }
        for digits in 1..=16 {
            for part in 1..=9 {
                let rate = 1.0 - f64::from(part) * 0.1f64.powi(digits);
                let text = rounded_up(rate);
                assert!(text.parse().is_ok_and(|shown| (rate..1.0).contains(&shown)), "{rate:?}: {text}");
            }
        }
    }

    #[test]
    fn a_full_load_is_no_more_than_that() {
        assert_eq!([load(0.9994), load(0.9996), load(1.0)], ["99.9 %", "100 %", "100 %"]);
    }
}
