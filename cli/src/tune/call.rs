//! The call that builds a recommended filter, in Rust and as a command.

use std::fmt;

use anyhow::ensure;
use indicatif::HumanCount;
use koel::{Addressing, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, TableKind, tuning::Candidate};

use super::Tune;
use crate::format::Format;

/// The parameters of the growing filter that the others are compared with.
#[derive(Clone, Copy)]
pub(super) struct GrowingPlan {
    pub(super) max_capacity: usize,
    pub(super) rate: f64,
}

impl GrowingPlan {
    /// Plans a growing filter with the given options. Returns `None` if it cannot have the given table, bucket size or addressing.
    pub(super) fn new(request: &Tune, max_capacity: usize, rate: f64) -> Option<Self> {
        let Tune { table, bucket_size, addressing, .. } = *request;
        let is_possible = addressing == Addressing::AnySize
            && table.is_none_or(|table| table == TableKind::Packed)
            && bucket_size.is_none_or(|size| TableKind::Packed.bucket_sizes().contains(&size));
        is_possible.then_some(Self { max_capacity, rate })
    }

    pub(super) fn builder(self) -> ElasticBuilder {
        ElasticFilter::builder().max_capacity(self.max_capacity).false_positive_rate(self.rate)
    }
}

/// The call that builds a filter. It omits parameters that a builder would choose itself.
pub(super) struct Call {
    filter: &'static str,
    /// The builder's method calls.
    calls: Vec<String>,
    /// The code after `build`.
    after: &'static str,
    /// The command's options.
    options: Vec<String>,
}

impl Call {
    fn new(filter: &'static str, options: &[&str]) -> Self {
        let options = options.iter().map(|option| String::from(*option)).collect();
        Self { filter, calls: Vec::new(), after: "", options }
    }

    /// Returns the call that builds `candidate` for a number of items: by the rate, if one is given, otherwise by the fingerprint
    /// bits.
    ///
    /// # Errors
    /// Returns an error if the call would build another filter, which is a bug in this program.
    pub(super) fn fixed(candidate: &Candidate, items: usize, rate: Option<f64>) -> anyhow::Result<Self> {
        let (params, bits) = (candidate.params(), candidate.params().fingerprint_bits());
        let builder = CuckooFilter::builder().capacity(items);
        // The parameters that a builder chooses itself.
        let plain = builder.clone().fingerprint_bits(bits).params().ok();
        let bucket_size = Some(params.bucket_size()).filter(|&b| plain.as_ref().is_none_or(|plain| plain.bucket_size() != b));
        let addressing = Some(params.addressing()).filter(|&addressing| addressing != Addressing::default());
        let builder = match rate {
            Some(rate) => builder.false_positive_rate(rate),
            None => builder.fingerprint_bits(bits),
        };
        let builder = bucket_size.into_iter().fold(builder, Builder::bucket_size);
        let builder = addressing.into_iter().fold(builder, Builder::addressing);
        let is_same = |builder: &Builder| builder.clone().params().as_ref() == Ok(params);
        let table = Some(params.table()).filter(|_| !is_same(&builder));
        let call = Self::new("CuckooFilter", &[]).capacity("capacity", items);
        let call = match rate {
            Some(rate) => call.rate(rate),
            None => call.with(format!("--bits {bits}"), format!("fingerprint_bits({bits})")),
        };
        let others = [
            table.map(|table| (format!("--table {table}"), format!("table(TableKind::{table:?})"))),
            bucket_size.map(|slots| (format!("--bucket-size {slots}"), format!("bucket_size({slots})"))),
            addressing.map(|how| (format!("--addressing {how}"), format!("addressing(Addressing::{how:?})"))),
        ];
        let call = others.into_iter().flatten().fold(call, |call, (option, method)| call.with(option, method));
        ensure!(
            is_same(&table.into_iter().fold(builder, Builder::table)),
            "{} builds another filter; please report this",
            call.command()
        );
        Ok(call)
    }

    /// Returns the call that builds a growing filter.
    pub(super) fn growing(filter: &GrowingPlan) -> Self {
        let call = Self::new("ElasticFilter", &["--grow"]);
        let call = call.capacity("max_capacity", filter.max_capacity);
        call.rate(filter.rate)
    }

    /// Adds the options for duplicate keys, and for the format of the keys.
    pub(super) fn with_format(mut self, unique: bool, format: &Format) -> Self {
        if unique {
            // Like `--unique`, this stores each key once, as planned.
            self.after = "\nfilter.insert_unique_iter(keys)?;";
            self.options.push(String::from("--unique"));
        }
        self.options.extend(format.options());
        self
    }

    fn with(mut self, option: String, call: String) -> Self {
        self.options.push(option);
        self.calls.push(call);
        self
    }

    fn capacity(self, name: &str, items: usize) -> Self {
        self.with(format!("--{} {items}", name.replace('_', "-")), format!("{name}({})", grouped(items)))
    }

    /// Adds a rate. `Debug` writes the shortest text that parses to exactly this number.
    fn rate(self, rate: f64) -> Self {
        self.with(format!("--fpr {rate:?}"), format!("false_positive_rate({rate:?})"))
    }

    /// Returns the call in Rust.
    pub(super) fn rust(&self) -> String {
        let Self { filter, calls, after, .. } = self;
        let calls = calls.join("\n    .");
        // The types are in alphabetical order, as rustfmt sorts them.
        let mut types = vec!["Addressing", filter, "TableKind"];
        types.retain(|name| name == filter || calls.contains(&format!("{name}::")));
        let types = if types.len() == 1 { types.concat() } else { format!("{{{}}}", types.join(", ")) };
        format!("use koel::{types};\nlet mut filter = {filter}::builder()\n    .{calls}\n    .build()?;{after}")
    }

    /// Returns the call as a command.
    pub(super) fn command(&self) -> String {
        format!("koel build IN -o OUT {}", self.options.join(" "))
    }
}

/// Writes the command and the Rust code, ready to paste.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{}", self.command(), self.rust())
    }
}

/// Formats a number as in Rust code: `1_000_000`.
fn grouped(number: usize) -> String {
    HumanCount(number as u64).to_string().replace(',', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_in_threes() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1_000"), (12_345, "12_345"), (1_000_000, "1_000_000")] {
            assert_eq!(grouped(number), text);
        }
    }
}
