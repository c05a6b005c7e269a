//! The calls that build a recommended filter.

use anyhow::ensure;
use koel::{Addressing, Builder, CuckooFilter, TableKind, tuning::Candidate};

use crate::items::Separator;

/// The parameters that a builder must be given: none that it would choose by itself.
pub(super) struct Call {
    items: usize,
    precision: Precision,
    table: Option<TableKind>,
    bucket_size: Option<u32>,
    addressing: Option<Addressing>,
    /// For the command: how it reads the items.
    unique: bool,
    nul: bool,
}

/// What determines the length of the fingerprints.
enum Precision {
    Rate(f64),
    Bits(u32),
}

impl Call {
    /// The call that builds this candidate for a number of items: by the rate, if one was given, else by the fingerprint bits.
    ///
    /// # Errors
    /// If the call would build another filter, which is a bug of this program.
    pub(super) fn of(candidate: &Candidate, items: usize, rate: Option<f64>) -> anyhow::Result<Self> {
        let params = candidate.params();
        // What a builder chooses by itself.
        let plain = CuckooFilter::builder().capacity(items).fingerprint_bits(params.fingerprint_bits()).params().ok();
        let mut call = Self {
            items,
            precision: rate.map_or_else(|| Precision::Bits(params.fingerprint_bits()), Precision::Rate),
            table: None,
            bucket_size: Some(params.bucket_size()).filter(|&b| plain.as_ref().is_none_or(|plain| plain.bucket_size() != b)),
            addressing: Some(params.addressing()).filter(|&addressing| addressing != Addressing::default()),
            unique: false,
            nul: false,
        };
        if call.builder().params().ok().as_ref() != Some(params) {
            call.table = Some(params.table());
        }
        ensure!(call.builder().params().as_ref() == Ok(params), "{} builds another filter; please report this", call.command());
        Ok(call)
    }

    /// With the command's options for keys that occur several times, or end with NUL bytes.
    pub(super) fn reading(self, unique: bool, separator: Separator) -> Self {
        Self { unique, nul: separator.byte() == 0, ..self }
    }

    fn builder(&self) -> Builder {
        let builder = CuckooFilter::builder().capacity(self.items);
        let builder = match self.precision {
            Precision::Rate(rate) => builder.false_positive_rate(rate),
            Precision::Bits(bits) => builder.fingerprint_bits(bits),
        };
        let builder = self.table.into_iter().fold(builder, Builder::table);
        let builder = self.bucket_size.into_iter().fold(builder, Builder::bucket_size);
        self.addressing.into_iter().fold(builder, Builder::addressing)
    }

    /// The same in Rust.
    pub(super) fn rust(&self) -> String {
        let mut types = vec!["CuckooFilter"];
        let mut calls = vec![format!("capacity({})", grouped(self.items))];
        calls.push(match self.precision {
            // `Debug` writes the shortest text that parses to exactly this number.
            Precision::Rate(rate) => format!("false_positive_rate({rate:?})"),
            Precision::Bits(bits) => format!("fingerprint_bits({bits})"),
        });
        if let Some(table) = self.table {
            types.push("TableKind");
            calls.push(format!("table(TableKind::{table:?})"));
        }
        if let Some(slots) = self.bucket_size {
            calls.push(format!("bucket_size({slots})"));
        }
        if let Some(addressing) = self.addressing {
            types.insert(0, "Addressing");
            calls.push(format!("addressing(Addressing::{addressing:?})"));
        }
        calls.push(String::from("build()?;"));
        // What `--unique` does: a filter has room for few copies of an item.
        let unique = if self.unique { "\nfilter.insert_unique_iter(keys)?;" } else { "" };
        let types = if types.len() == 1 { types.concat() } else { format!("{{{}}}", types.join(", ")) };
        format!("use koel::{types};\nlet mut filter = CuckooFilter::builder()\n    .{}{unique}", calls.join("\n    ."))
    }

    /// The same as a command.
    pub(super) fn command(&self) -> String {
        let mut words = vec![format!("koel build IN -o OUT --capacity {}", self.items)];
        words.push(match self.precision {
            Precision::Rate(rate) => format!("--fpr {rate:?}"),
            Precision::Bits(bits) => format!("--bits {bits}"),
        });
        words.extend(self.table.map(|table| format!("--table {table}")));
        words.extend(self.bucket_size.map(|slots| format!("--bucket-size {slots}")));
        words.extend(self.addressing.map(|addressing| format!("--addressing {addressing}")));
        words.extend(self.unique.then(|| String::from("--unique")));
        words.extend(self.nul.then(|| String::from("--nul")));
        words.join(" ")
    }
}

/// A number as it is written in Rust: `1_000_000`.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_groups_of_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1_000"), (12_345, "12_345"), (1_000_000, "1_000_000")] {
            assert_eq!(grouped(number), text);
        }
    }
}
