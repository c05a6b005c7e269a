//! `koel experiment compare`

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use clap::Args;
use koel_lab::compare::{Compared, Comparison, Difference, Verdict};

use crate::{
    numbers, terminal,
    text::{counted, table as columns},
};

/// The exit status if any figure differs, as with diff.
const DIFFERENT: u8 = 1;

/// The maximum number of lines per experiment. More would hide the other experiments.
const MAX_LINES: usize = 20;

/// Compare the results of two folders: two versions of koel, or two machines.
///
/// Cases are matched by their parameters. Figures that follow from parameters and seed must be equal. Figures that depend on
/// chance, such as measured rates and times, count as different only if chance does not explain the difference: all intervals of a
/// comparison together hold with a probability of about 99 %, if both folders have a similar number and spread of rounds. If a
/// figure was measured only once, or was disturbed by other work, a difference is unknown.
///
/// --json prints every figure of both folders, with its interval and verdict.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 no figure differs, 1 some do, 2 error.

Examples:
    koel experiment sweep --load 0.5..0.95:0.15 --items 10000 --quick --out one
    koel experiment sweep --load 0.5..0.95:0.15 --items 10000 --quick --out two --seed 2
    koel experiment compare one two")]
pub(crate) struct Options {
    /// The folder of the first results
    a: PathBuf,

    /// The folder of the second results
    b: PathBuf,

    /// Treat times as equal if they differ by at most this share of the lower one
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = numbers::part, allow_hyphen_values = true)]
    time_tolerance: f64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let comparison = Comparison::new(&self.a, &self.b, self.time_tolerance)?;
        let text = if self.json { serde_json::to_string_pretty(&comparison)? + "\n" } else { text(&comparison)? };
        terminal::print(&text)?;
        let is_different = comparison.with(Verdict::Different).next().is_some();
        Ok(if is_different { ExitCode::from(DIFFERENT) } else { ExitCode::SUCCESS })
    }
}

fn text(comparison: &Comparison) -> anyhow::Result<String> {
    let mut text = String::new();
    for (run, folder) in ["A", "B"].iter().zip(&comparison.folders) {
        writeln!(text, "{run}: {}", folder.display())?;
    }
    for (run, names) in ["A", "B"].iter().zip(&comparison.alone).filter(|(_, names)| !names.is_empty()) {
        writeln!(text, "only in {run}: {}", names.join(", "))?;
    }
    for compared in &comparison.experiments {
        text += "\n";
        text += &experiment(compared)?;
    }
    let figures: usize = comparison.experiments.iter().map(|compared| compared.figures.len()).sum();
    let [different, unknown] = [Verdict::Different, Verdict::Unknown].map(|verdict| comparison.with(verdict).count());
    writeln!(text, "\n{figures} figures: {different} different, {unknown} unknown, {} equal", figures - different - unknown)?;
    Ok(text)
}

fn experiment(compared: &Compared) -> anyhow::Result<String> {
    let mut text = String::new();
    let Compared { name, cases, alone, .. } = compared;
    let cases = counted(*cases as u64, "case");
    let [different, unknown] = [Verdict::Different, Verdict::Unknown].map(|verdict| compared.with(verdict).count());
    writeln!(text, "{name}: {cases} in both; {} figures, {different} different, {unknown} unknown", compared.figures.len())?;
    for (property, [a, b]) in &compared.runs {
        writeln!(text, "  {property}: {a} / {b}")?;
    }
    for (run, cases) in ["A", "B"].iter().zip(alone).filter(|(_, cases)| !cases.is_empty()) {
        let more = if cases.len() > 1 { format!(" and {} more", cases.len() - 1) } else { String::new() };
        writeln!(text, "  only in {run}: {}{more}", cases[0])?;
    }
    // The largest relative difference comes first.
    let mut rows: Vec<_> = compared.with(Verdict::Different).collect();
    rows.sort_by(|one, other| other.relative().abs().total_cmp(&one.relative().abs()));
    if !rows.is_empty() {
        text += &table(&rows[..rows.len().min(MAX_LINES)]);
    }
    if rows.len() > MAX_LINES {
        writeln!(text, "  {} more; --json has them all", rows.len() - MAX_LINES)?;
    }
    Ok(text)
}

fn table(rows: &[&Difference]) -> String {
    let mut cells = vec![["  figure", "A", "B", "B - A", "of A", "case"].map(String::from).to_vec()];
    cells.extend(rows.iter().map(|row| {
        let half = row.half_interval.filter(|&half| half > 0.0).map_or_else(String::new, |half| format!(" ± {}", short(half)));
        let share = if row.a.abs() <= 0.0 { String::new() } else { format!("{:+.2} %", 100.0 * row.relative()) };
        let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
        let case = [row.case.as_str(), row.row.as_str()].join(" ").trim_end().to_owned();
        vec![format!("  {}{unit}", row.column), short(row.a), short(row.b), short(row.b - row.a) + &half, share, case]
    }));
    columns(&cells, &[0, 5], &[])
}

/// Formats a number with five significant digits, or with all digits before the point.
fn short(value: f64) -> String {
    let rounded = format!("{value:.4e}");
    match value.abs() {
        1e5..1e6 => format!("{value:.0}"),
        0.001..1e5 | 0.0 => rounded.parse::<f64>().map_or(rounded, |number| number.to_string()),
        _ => rounded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_five_digits() {
        let cases =
            [(0.0, "0"), (12.0, "12"), (0.123_456_78, "0.12346"), (123_456.0, "123456"), (-1.5, "-1.5"), (1e-9, "1.0000e-9")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
