//! `koel experiment sweep`, and its lists and ranges of numbers: `2,4`, `6..20`, `1e3..1e6:x10`.
//!
//! A range includes both of its ends, even if its step does not reach the upper one. The option's parser of single numbers parses
//! each part.

use std::{fmt::Display, process::ExitCode};

use anyhow::bail;
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use koel::TableKind;
use koel_lab::{
    Plan,
    experiments::{
        Sweep,
        sweep::{Grid, LeftOut, Measure},
    },
};

use super::RunArgs;
use crate::{numbers, options, terminal, text::counted};

/// The maximum number of combinations. A request for more is probably a mistake.
const MAX_CASES: usize = 100_000;

/// Measure any parameters: every combination of the given values, one row for each.
///
/// Values are lists such as 2,4 and ranges such as 6..20. A range includes both of its ends. After a colon comes a step to add
/// (6..20:2) or to multiply by (1000..1000000:x10). By default, loads are 0.05 apart, numbers of items are multiplied by 10, and
/// all other values are 1 apart.
///
/// --measure selects space (bytes, bits per item), fpr (the false-positive rate), load (at the first refusal), and speed
/// (nanoseconds for lookups, insertions and removals). Times are measured one after another; other measurements use all cores.
/// The record, sweep.json, describes the columns. Combinations for which no filter exists are left out and listed.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 success, 2 error, 128 + N interrupted by signal N: 130 by Ctrl-C.

Examples:
    koel experiment sweep --f 8..16:4 --load 0.5..0.95:0.15 --items 10000 --quick
    koel experiment sweep --b 2,4 --load 0.8 --measure load --items 1000 --quick --out buckets")]
pub(crate) struct Options {
    /// Bits of a fingerprint
    #[arg(long, value_name = "BITS", default_value = "12", value_parser = |text: &str| BITS.list(text), allow_hyphen_values = true)]
    f: Box<[u32]>,

    /// Slots per bucket
    #[arg(long, value_name = "SLOTS", default_value = "4", value_parser = |text: &str| SLOTS.list(text), allow_hyphen_values = true)]
    b: Box<[u32]>,

    /// The kinds of tables
    #[arg(long, value_name = "TABLES", default_value = "packed,single", value_delimiter = ',', value_parser = options::table())]
    table: Vec<TableKind>,

    /// Loads: items divided by slots, above 0 and at most 1
    #[arg(long, value_name = "LOADS", default_value = "0.95", value_parser = |text: &str| LOADS.list(text), allow_hyphen_values = true)]
    load: Box<[f64]>,

    /// Numbers of items
    #[arg(long, value_name = "ITEMS", default_value = "100000", value_parser = |text: &str| ITEMS.list(text), allow_hyphen_values = true)]
    items: Box<[u64]>,

    /// What to measure
    #[arg(long, value_name = "WHAT", default_value = "space,fpr", value_delimiter = ',', value_parser = measure())]
    measure: Vec<Measure>,

    #[command(flatten)]
    args: RunArgs,
}

impl Options {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let grid = Grid {
            tables: self.table,
            bucket_sizes: self.b.into_vec(),
            fingerprint_bits: self.f.into_vec(),
            loads: self.load.into_vec(),
            items: self.items.into_vec(),
        };
        let lengths = [grid.bucket_sizes.len(), grid.fingerprint_bits.len(), grid.loads.len(), grid.items.len()];
        let combinations = lengths.into_iter().fold(grid.tables.len(), usize::saturating_mul);
        if combinations > MAX_CASES {
            bail!(
                "sweep: {combinations} combinations, but at most {MAX_CASES} are measured in one run; give fewer values, or larger steps"
            );
        }
        let sweep = Sweep::new(grid, &self.measure);
        let left_out = sweep.left_out();
        let all_left_out: usize = left_out.iter().map(|one| one.combinations).sum();
        if all_left_out == combinations {
            bail!("sweep: none of the combinations can be measured: {}", reasons(&left_out));
        }
        let settings = self.args.settings(None)?;
        let memory = sweep.most_memory(&settings.scope);
        let plan = Plan::new(sweep, &settings)?;
        if all_left_out > 0 {
            let combinations = counted(all_left_out as u64, "combination");
            terminal::say(format_args!("sweep: leaves out {combinations}: {}\n", reasons(&left_out)));
        }
        terminal::say(format_args!("sweep: at most {} MiB of memory for a case\n", memory.div_ceil(1 << 20)));
        super::run(vec![plan], &settings)
    }
}

/// Lists the reasons, with the number of combinations for each.
fn reasons(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|one| format!("{} × {}", one.combinations, one.reason)).collect::<Vec<_>>().join("; ")
}

fn measure() -> impl TypedValueParser<Value = Measure> {
    PossibleValuesParser::new(Measure::ALL.map(Measure::name))
        .try_map(|name| Measure::ALL.into_iter().find(|measure| measure.name() == name).ok_or("unknown"))
}

/// The maximum number of values of an option. No experiment has time for more.
const MAX_VALUES: f64 = 1000.0;

/// The step from one value of a range to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Adds this.
    Plus(f64),
    /// Multiplies by this.
    Times(f64),
}

/// A parser of the lists of an option.
struct ListParser<T> {
    /// Parses a number.
    number: fn(&str) -> Result<T, String>,
    /// The step of a range without one.
    step: Step,
    /// The decimal places that numbers within a range are rounded to, so that 0.5 + 4 · 0.05 is 0.7.
    places: usize,
}

const BITS: ListParser<u32> = ListParser { number: numbers::bits, step: Step::Plus(1.0), places: 0 };
const SLOTS: ListParser<u32> = ListParser { number: numbers::slots, step: Step::Plus(1.0), places: 0 };
const LOADS: ListParser<f64> = ListParser { number: load, step: Step::Plus(0.05), places: 9 };
const ITEMS: ListParser<u64> = ListParser { number: |text| numbers::count_from(1, text), step: Step::Times(10.0), places: 0 };

fn load(text: &str) -> Result<f64, String> {
    let expected = || String::from("it takes a load above 0 and at most 1, such as 0.95");
    numbers::rate(text).ok().filter(|load| *load > 0.0 && *load <= 1.0).ok_or_else(expected)
}

impl<T: PartialEq + Display> ListParser<T> {
    /// Parses a list of numbers and ranges, separated by commas. Returns the values without duplicates, in the order given. (For clap,
    /// a `Vec` would be the values of several options.)
    fn list(&self, text: &str) -> Result<Box<[T]>, String> {
        let mut values: Vec<T> = Vec::new();
        for part in text.split(',').map(str::trim) {
            let parsed = match part.split_once("..") {
                None => vec![self.parse_number(part)?],
                Some((from, rest)) => self.range(part, from, rest)?,
            };
            for value in parsed {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        if values.len() as f64 > MAX_VALUES { Err(too_many(text)) } else { Ok(values.into()) }
    }

    fn parse_number(&self, text: &str) -> Result<T, String> {
        let text = text.trim();
        let mistake = if text.is_empty() { String::from("a number is missing") } else { format!("'{text}' is not valid") };
        (self.number)(text).map_err(|error| format!("{mistake}: {error}"))
    }

    fn range(&self, part: &str, from: &str, rest: &str) -> Result<Vec<T>, String> {
        let (to, step) = match rest.split_once(':') {
            None => (rest, self.step),
            Some((to, text)) => (to, parse_step(part, text)?),
        };
        let (from, to) = (self.parse_number(from)?, self.parse_number(to)?);
        let [first, last] = [&from, &to].map(|end| end.to_string().parse::<f64>().unwrap_or(f64::NAN));
        if first > last {
            return Err(format!("the range {part} begins above its end; give {to}..{from}"));
        }
        let steps = match step {
            Step::Plus(step) => (last - first) / step,
            // If `first` is 0, every multiple is 0, so this is infinite unless `last` is 0, too. Then it is NaN, and there is no
            // step.
            Step::Times(factor) => (last / first).ln() / factor.ln(),
        };
        if steps > MAX_VALUES {
            return Err(too_many(part));
        }
        let mut values = vec![from];
        for n in (1..).take_while(|&n| f64::from(n) < steps) {
            let value = match step {
                Step::Plus(step) => first + f64::from(n) * step,
                Step::Times(factor) => first * factor.powi(n),
            };
            values.push((self.number)(&format!("{value:.places$}", places = self.places))?);
        }
        values.push(to);
        Ok(values)
    }
}

/// Parses the step of a range: a number to add, or `x` and a number to multiply by.
fn parse_step(part: &str, text: &str) -> Result<Step, String> {
    let (factor, digits) = text.trim().strip_prefix('x').map_or((false, text.trim()), |digits| (true, digits));
    match numbers::number(digits) {
        Some(number) if factor && number > 1.0 => Ok(Step::Times(number)),
        Some(number) if !factor && number > 0.0 => Ok(Step::Plus(number)),
        _ => Err(format!(
            "the step '{text}' of the range {part} is not valid; give a number above 0 to add, as in 6..20:2, or x and a number above 1 \
             to multiply by, as in 1000..1000000:x10"
        )),
    }
}

fn too_many(text: &str) -> String {
    format!("{text} has more than {MAX_VALUES} values; give a larger step, as in 1..1000000:100000 or 1..1000000:x10")
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::*;

    #[track_caller]
    fn parses<T: Debug + Display + PartialEq>(parser: &ListParser<T>, text: &str, values: &[T]) {
        assert_eq!(parser.list(text).as_deref(), Ok(values), "{text}");
    }

    #[test]
    fn ranges_include_both_ends_and_lists_keep_their_order() {
        parses(&BITS, "6..9", &[6, 7, 8, 9]);
        parses(&BITS, "6..12:2", &[6, 8, 10, 12]);
        parses(&BITS, "6..13:4", &[6, 10, 13]);
        parses(&BITS, "1..16:x2", &[1, 2, 4, 8, 16]);
        parses(&BITS, "7..7", &[7]);
        parses(&BITS, "0..0:x2", &[0]);
        parses(&BITS, "4,2, 6..8 ,7", &[4, 2, 6, 7, 8]);
        parses(&LOADS, "0.95", &[0.95]);
        parses(&LOADS, "0.5..0.7", &[0.5, 0.55, 0.6, 0.65, 0.7]);
        parses(&LOADS, "0.5..0.97:0.2", &[0.5, 0.7, 0.9, 0.97]);
        parses(&LOADS, "0.1..0.3:0.1", &[0.1, 0.2, 0.3]);
        parses(&ITEMS, "1000..1000000", &[1000, 10_000, 100_000, 1_000_000]);
        parses(&ITEMS, "1000..5000:x2", &[1000, 2000, 4000, 5000]);
        parses(&ITEMS, "1..4:x1.1", &[1, 2, 3, 4]);
        parses(&ITEMS, "1M..2M:500k", &[1_000_000, 1_500_000, 2_000_000]);
        parses(&ITEMS, "10..1000:x1e1", &[10, 100, 1000]);
        parses(&LOADS, "5%..35%:15%", &[0.05, 0.2, 0.35]);
    }

    #[test]
    fn error_messages_name_the_mistake_and_the_remedy() {
        for (text, part) in [
            ("", "a number is missing"),
            ("4,", "a number is missing"),
            ("4,five", "'five' is not valid: it takes a whole number"),
            ("..9", "a number is missing"),
            ("6..", "a number is missing"),
            ("20..6", "20..6 begins above its end; give 6..20"),
            ("6..20:0", "the step '0' of the range 6..20:0"),
            ("6..20:-1", "above 0"),
            ("6..20:x1", "above 1"),
            ("6..20:NaN", "the step 'NaN'"),
            ("6..20:two", "as in 6..20:2"),
            ("6...20", "'.20' is not valid"),
            ("0..10:x10", "more than 1000 values"),
            ("0..4000000000", "more than 1000 values; give a larger step"),
            ("0..1:0.000000000001", "more than 1000 values"),
        ] {
            let error = BITS.list(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        // The remedies work.
        assert!(BITS.list("6..20").is_ok() && ITEMS.list("1..1000000:100000").is_ok() && ITEMS.list("1..1000000:x10").is_ok());
    }
}
