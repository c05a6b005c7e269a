//! The calls that build a recommended filter: in Rust, and as a command.

use std::fmt;

use anyhow::ensure;
use koel::{Addressing, Builder, CuckooFilter, TableKind, tuning::Candidate};

use super::plans::Growing;
use crate::items::Separator;

/// The parameters that a builder must be given: none that it would choose by itself.
pub(super) struct Call {
    filter: &'static str,
    /// For the builder, and after `build`.
    calls: Vec<String>,
    after: &'static str,
    /// For the command.
    words: Vec<String>,
}

impl Call {
    fn new(filter: &'static str, words: &[&str]) -> Self {
        let words = words.iter().map(|word| String::from(*word)).collect();
        Self { filter, calls: Vec::new(), after: "", words }
    }

    /// The call that builds this candidate for a number of items: by the rate, if one was given, else by the fingerprint bits.
    ///
    /// # Errors
    /// If the call would build another filter, which is a bug of this program.
    pub(super) fn of(candidate: &Candidate, items: usize, rate: Option<f64>) -> anyhow::Result<Self> {
        let (params, bits) = (candidate.params(), candidate.params().fingerprint_bits());
        let builder = CuckooFilter::builder().capacity(items);
        // What a builder chooses by itself.
        let plain = builder.clone().fingerprint_bits(bits).params().ok();
        let bucket_size = Some(params.bucket_size()).filter(|&b| plain.as_ref().is_none_or(|plain| plain.bucket_size() != b));
        let addressing = Some(params.addressing()).filter(|&addressing| addressing != Addressing::default());
        let builder = match rate {
            Some(rate) => builder.false_positive_rate(rate),
            None => builder.fingerprint_bits(bits),
        };
        let builder = bucket_size.into_iter().fold(builder, Builder::bucket_size);
        let builder = addressing.into_iter().fold(builder, Builder::addressing);
        let is_right = |builder: &Builder| builder.clone().params().as_ref() == Ok(params);
        let table = Some(params.table()).filter(|_| !is_right(&builder));
        let call = Self::new("CuckooFilter", &[]).capacity("capacity", items);
        let call = match rate {
            Some(rate) => call.rate(rate),
            None => call.with(format!("--bits {bits}"), format!("fingerprint_bits({bits})")),
        };
        let call = addressing.into_iter().fold(call.table(table).bucket_size(bucket_size), |call, addressing| {
            call.with(format!("--addressing {addressing}"), format!("addressing(Addressing::{addressing:?})"))
        });
        ensure!(
            is_right(&table.into_iter().fold(builder, Builder::table)),
            "{} builds another filter; please report this",
            call.command()
        );
        Ok(call)
    }

    /// The call that builds a filter that grows.
    pub(super) fn growing(filter: &Growing) -> Self {
        let call = Self::new("ElasticFilter", &["--grow"]);
        let call = call.capacity("capacity", filter.capacity).capacity("max_capacity", filter.most);
        call.rate(filter.rate).table(filter.table).bucket_size(filter.bucket_size)
    }

    /// With the command's options for keys that occur several times, or end with NUL bytes.
    pub(super) fn reading(mut self, unique: bool, separator: Separator) -> Self {
        if unique {
            // As with `--unique`, each key is stored once, as planned.
            self.after = "\nfilter.insert_unique_iter(keys)?;";
            self.words.push(String::from("--unique"));
        }
        self.words.extend((separator.byte() == 0).then(|| String::from("--nul")));
        self
    }

    fn with(mut self, word: String, call: String) -> Self {
        self.words.push(word);
        self.calls.push(call);
        self
    }

    fn capacity(self, name: &str, items: usize) -> Self {
        self.with(format!("--{} {items}", name.replace('_', "-")), format!("{name}({})", grouped(items)))
    }

    /// `Debug` writes the shortest text that parses to exactly this number.
    fn rate(self, rate: f64) -> Self {
        self.with(format!("--fpr {rate:?}"), format!("false_positive_rate({rate:?})"))
    }

    fn table(self, table: Option<TableKind>) -> Self {
        table.into_iter().fold(self, |call, table| call.with(format!("--table {table}"), format!("table(TableKind::{table:?})")))
    }

    fn bucket_size(self, slots: Option<u32>) -> Self {
        slots.into_iter().fold(self, |call, slots| call.with(format!("--bucket-size {slots}"), format!("bucket_size({slots})")))
    }

    /// In Rust.
    pub(super) fn rust(&self) -> String {
        let Self { filter, calls, after, .. } = self;
        let calls = calls.join("\n    .");
        // In alphabetical order.
        let mut types = vec!["Addressing", filter, "TableKind"];
        types.retain(|name| name == filter || calls.contains(&format!("{name}::")));
        let types = if types.len() == 1 { types.concat() } else { format!("{{{}}}", types.join(", ")) };
        format!("use koel::{types};\nlet mut filter = {filter}::builder()\n    .{calls}\n    .build()?;{after}")
    }

    /// As a command.
    pub(super) fn command(&self) -> String {
        format!("koel build IN -o OUT {}", self.words.join(" "))
    }
}

/// Both, to be pasted.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}", self.command(), self.rust())
    }
}

/// A number as it is written in Rust: `1_000_000`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("_")
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
