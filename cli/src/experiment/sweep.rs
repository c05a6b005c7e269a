//! `koel experiment sweep`

use std::process::ExitCode;

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

use super::{
    Where,
    lists::{self, List, Step},
};
use crate::{numbers, options, terminal};

/// More cases than that are a mistake rather than a plan.
const MOST_CASES: usize = 100_000;

/// Measure any parameters: every combination of the values given, one row for each.
///
/// Values are lists such as 2,4 and ranges such as 6..20. A range includes both of its ends; after a colon it has a step to add
/// (6..20:2), or one to multiply by (1000..1000000:x10). Without one, loads are 0.05 apart, numbers of items ten times, and all
/// others 1.
///
/// What is measured: space (bytes, bits per item), fpr (the false-positive rate), load (at the first refusal),
/// speed (nanoseconds for lookups, insertions and removals). Times are measured one after the other; otherwise,
/// all cores are used. The record, sweep.json, describes the columns. Combinations without such a filter are left out, and named.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 success, 2 error, 130 interrupted.

Examples:
    koel experiment sweep --f 8..16:4 --load 0.5..0.95:0.15 --items 10000 --quick
    koel experiment sweep --b 2,4 --load 0.8 --measure load --items 1000 --quick --out buckets")]
pub(crate) struct Options {
    /// Bits of a fingerprint
    #[arg(long, value_name = "BITS", default_value = "12", value_parser = bits, allow_negative_numbers = true)]
    f: List<u32>,

    /// Slots per bucket
    #[arg(long, value_name = "SLOTS", default_value = "4", value_parser = slots, allow_negative_numbers = true)]
    b: List<u32>,

    /// The kinds of tables
    #[arg(long, value_name = "TABLES", default_value = "packed,single", value_delimiter = ',', value_parser = options::table())]
    table: Vec<TableKind>,

    /// Loads: items divided by slots, above 0 and at most 1
    #[arg(long, value_name = "LOADS", default_value = "0.95", value_parser = loads, allow_negative_numbers = true)]
    load: List<f64>,

    /// Numbers of items
    #[arg(long, value_name = "ITEMS", default_value = "100000", value_parser = items, allow_negative_numbers = true)]
    items: List<u64>,

    /// What to measure
    #[arg(long, value_name = "WHAT", default_value = "space,fpr", value_delimiter = ',', value_parser = measure())]
    measure: Vec<Measure>,

    #[command(flatten)]
    place: Where,
}

impl Options {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let grid = Grid {
            tables: self.table,
            bucket_sizes: self.b.0,
            fingerprint_bits: self.f.0,
            loads: self.load.0,
            items: self.items.0,
        };
        let lengths = [grid.bucket_sizes.len(), grid.fingerprint_bits.len(), grid.loads.len(), grid.items.len()];
        let combinations = lengths.into_iter().fold(grid.tables.len(), usize::saturating_mul);
        if combinations > MOST_CASES {
            bail!(
                "sweep: {combinations} combinations, but at most {MOST_CASES} are measured in one run; give fewer values, or larger steps"
            );
        }
        let sweep = Sweep::new(grid, &self.measure);
        let left_out = sweep.left_out();
        let all_left_out: usize = left_out.iter().map(|one| one.combinations).sum();
        if all_left_out == combinations {
            bail!("sweep: none of the combinations can be measured: {}", reasons(&left_out));
        }
        let settings = self.place.settings(None);
        let memory = sweep.most_memory(&settings.scope);
        let plan = Plan::new(sweep, &settings)?;
        if all_left_out > 0 {
            let are = if all_left_out == 1 { "1 combination is" } else { &format!("{all_left_out} combinations are") };
            terminal::say(format_args!("sweep: {are} left out: {}\n", reasons(&left_out)));
        }
        terminal::say(format_args!("sweep: at most {} MiB of memory for a case\n", memory.div_ceil(1 << 20)));
        super::run(vec![plan], &settings)
    }
}

/// The reasons, with how many combinations each of them is for.
fn reasons(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|one| format!("{} × {}", one.combinations, one.reason)).collect::<Vec<_>>().join("; ")
}

fn bits(text: &str) -> Result<List<u32>, String> {
    lists::list(text, numbers::bits, Step::Plus(1.0), 0)
}

fn slots(text: &str) -> Result<List<u32>, String> {
    lists::list(text, numbers::slots, Step::Plus(1.0), 0)
}

fn items(text: &str) -> Result<List<u64>, String> {
    let at_least_one = |text: &str| match numbers::count(text)? {
        0 => Err(String::from("there must be an item; the nearest that works is 1")),
        items => Ok(items),
    };
    lists::list(text, at_least_one, Step::Times(10.0), 0)
}

fn loads(text: &str) -> Result<List<f64>, String> {
    let load = |text: &str| {
        let wrong = || String::from("it takes a load above 0 and at most 1, such as 0.95");
        numbers::rate(text).ok().filter(|load| *load > 0.0 && *load <= 1.0).ok_or_else(wrong)
    };
    lists::list(text, load, Step::Plus(0.05), 9)
}

fn measure() -> impl TypedValueParser<Value = Measure> {
    PossibleValuesParser::new(Measure::ALL.map(Measure::name)).try_map(|name| name.parse::<Measure>())
}
