//! Charts and tables of the times.

use super::{
    Case,
    times::{Form, Operation, Row},
};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    experiment::{Findings, Measured, Table},
    experiments::{count, probe::Kind},
};

type Cases = [Measured<Case, Row>];

/// The names of all kernels, the fastest last: results may have kernels that the machine which draws them does not have.
const KERNELS: [&str; 4] = ["portable", "bmi2", "avx2", "avx512"];

/// The name of the marks of times that stayed disturbed.
const DISTURBED: &str = "disturbed";

/// The load at which filters are compared.
const FULL: u32 = 95;

pub(super) fn findings(measured: &Cases) -> Findings {
    let mut sizes: Vec<_> = measured.iter().map(|m| m.case.slots).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |slots| Size { slots, rows: measured.iter().filter(|m| m.case.slots == slots).collect() };
    let all: Vec<_> = sizes.iter().copied().map(of).collect();
    let mut charts: Vec<_> = all.iter().flat_map(|size| [size.finds(Kind::Packed), size.insertions()]).collect();
    // Of the middle size: memory matters there, but does not dominate.
    if let Some(middle) = all.get(all.len() / 2) {
        charts.extend([
            middle.finds(Kind::Single),
            middle.removals(),
            middle.by_kernel(Form::Each),
            middle.by_kernel(Form::Batch),
            middle.shares(),
        ]);
    }
    // What was not measured is not shown.
    charts.retain(|chart| !chart.series.is_empty());
    Findings { charts, tables: all.iter().map(Size::table).collect(), warnings: warning(measured).into_iter().collect() }
}

/// How many times stayed disturbed, if any.
fn warning(measured: &Cases) -> Option<String> {
    let rows = || measured.iter().flat_map(|m| &m.rows);
    let disturbed = rows().filter(|row| row.disturbed).count();
    (disturbed > 0).then(|| {
        format!(
            "Other work on the processor disturbed {disturbed} of {} times in more than half of their rounds, also when they were \
             measured again. They are marked in the charts and tables. Measure again on a machine that does nothing else.",
            rows().count()
        )
    })
}

/// The results of tables of one size.
struct Size<'a> {
    slots: u64,
    rows: Vec<&'a Measured<Case, Row>>,
}

/// Selects rows.
#[derive(Clone, Copy)]
struct Of<'a> {
    table: Kind,
    operation: Operation,
    form: Form,
    kernel: &'a str,
}

impl Size<'_> {
    fn rows(&self, of: Of<'_>) -> impl Iterator<Item = &Row> {
        let key = move |row: &Row| (row.table, row.operation, row.form) == (of.table, of.operation, of.form);
        self.rows.iter().flat_map(|m| &m.rows).filter(move |row| key(row) && row.kernel == of.kernel)
    }

    fn row(&self, of: Of<'_>, load: u32, present: u32) -> Option<&Row> {
        self.rows(of).find(|row| (row.load, row.present) == (load, present))
    }

    /// Million operations per second.
    fn pace_of(&self, of: Of<'_>, load: u32, present: u32) -> Option<f64> {
        self.row(of, load, present).map(|row| pace(row.ns))
    }

    /// The kernels that were measured.
    fn kernels(&self) -> impl Iterator<Item = &'static str> {
        KERNELS.into_iter().filter(|kernel| self.rows.iter().any(|m| m.rows.iter().any(|row| row.kernel == *kernel)))
    }

    /// The fastest of them.
    fn kernel(&self) -> &'static str {
        self.kernels().last().unwrap_or("")
    }

    /// A line of million operations per second, by load, with quartiles.
    fn line(&self, name: &str, colour: usize, mark: Mark, of: Of<'_>, present: u32) -> [Series; 2] {
        let rows: Vec<_> = self.rows(of).filter(|row| row.present == present).collect();
        line(name, colour, mark, &rows, |row| row.load)
    }

    /// The floors as horizontal lines: they do not depend on the load.
    fn floors(&self, table: Kind) -> impl Iterator<Item = Series> {
        let reads = move |form| Of { table, operation: Operation::Read, form, kernel: "" };
        let floors = [("two reads", Form::Each, Mark::Dashes), ("dense", Form::Batch, Mark::Line)];
        floors.into_iter().filter_map(move |(name, form, mark)| {
            let pace = pace(self.row(reads(form), 0, 0)?.ns);
            Some(Series::new(name, 5, vec![(5.0, pace), (95.0, pace)]).marked(mark))
        })
    }

    fn chart(&self, file: &str, title: &str, caption: String, mut series: Vec<Series>) -> Chart {
        let slots = count(self.slots);
        series.retain(|series| !series.points.is_empty());
        let disturbed = series.iter_mut().filter(|series| series.name == DISTURBED);
        // One entry in the legend is enough.
        disturbed.skip(1).for_each(|series| series.name.clear());
        Chart {
            file: format!("{file}-{}", slots.replace(' ', "")),
            topic: format!("{title}, {slots} slots"),
            finding: None,
            caption,
            x: Axis::linear("load, %").from_to(0.0, 100.0),
            y: Axis::linear("million per second").from_zero(),
            series,
        }
    }

    fn finds(&self, kind: Kind) -> Chart {
        let kernel = self.kernel();
        let of = |form| Of { table: kind, operation: Operation::Find, form, kernel };
        let lines = [
            self.line("absent", 0, Mark::Points, of(Form::Each), 0),
            self.line("present", 1, Mark::Points, of(Form::Each), 100),
            self.line("batch, absent", 2, Mark::Points, of(Form::Batch), 0),
            self.line("batch, present", 3, Mark::Points, of(Form::Batch), 100),
        ];
        let mut series: Vec<_> = lines.into_iter().flatten().collect();
        series.extend(self.floors(kind));
        let table = kind.name();
        let caption = format!(
            "Look-ups of present and of absent keys in the {table} table, with the kernel {kernel} (the paper's figure 6), and two random \
             reads of as much memory."
        );
        let paces = [Form::Each, Form::Batch].map(|form| self.pace_of(of(form), FULL, 0));
        let finding = match paces {
            [Some(each), Some(batch)] => Some(format!(
                "At a load of {FULL} %: {each:.0} million look-ups of absent keys per second, {batch:.0} in batches"
            )),
            _ => None,
        };
        Chart { finding, ..self.chart(&format!("find-{table}"), &format!("Look-ups by load, {table}"), caption, series) }
    }

    fn insertions(&self) -> Chart {
        let kernel = self.kernel();
        let of = |table, form| Of { table, operation: Operation::Insert, form, kernel };
        let lines = [
            self.line("packed", 0, Mark::Points, of(Kind::Packed, Form::Each), 0),
            self.line("packed, batch", 0, Mark::DashedPoints, of(Kind::Packed, Form::Batch), 0),
            self.line("single", 1, Mark::Points, of(Kind::Single, Form::Each), 0),
            self.line("single, batch", 1, Mark::DashedPoints, of(Kind::Single, Form::Batch), 0),
        ];
        let mut series: Vec<_> = lines.into_iter().flatten().collect();
        series.extend(self.floors(Kind::Packed));
        let caption = format!(
            "Insertions with the kernel {kernel}, over the last five per cent up to that load (the paper's figure 7). If both buckets of an \
             item are full, others are evicted."
        );
        let paces = self.pace_of(of(Kind::Packed, Form::Each), FULL, 0).zip(self.pace_of(of(Kind::Single, Form::Each), FULL, 0));
        let finding = paces.map(|(packed, single)| {
            format!("Up to a load of {FULL} %: {packed:.0} million insertions per second, packed, and {single:.0} single")
        });
        Chart { finding, ..self.chart("insert", "Insertions by load", caption, series) }
    }

    fn removals(&self) -> Chart {
        let kernel = self.kernel();
        let of = |table, form| Of { table, operation: Operation::Remove, form, kernel };
        let lines = [
            self.line("packed", 0, Mark::Points, of(Kind::Packed, Form::Each), 0),
            self.line("packed, batch", 0, Mark::DashedPoints, of(Kind::Packed, Form::Batch), 0),
            self.line("single", 1, Mark::Points, of(Kind::Single, Form::Each), 0),
            self.line("single, batch", 1, Mark::DashedPoints, of(Kind::Single, Form::Batch), 0),
        ];
        let series: Vec<_> = lines.into_iter().flatten().collect();
        let caption =
            format!("Removals with the kernel {kernel}, over the five per cent below that load (the paper's figure 8).");
        let paces = self.pace_of(of(Kind::Packed, Form::Each), FULL, 0).zip(self.pace_of(of(Kind::Single, Form::Each), FULL, 0));
        let finding = paces.map(|(packed, single)| {
            format!("At a load of {FULL} %: {packed:.0} million removals per second, packed, and {single:.0} single")
        });
        Chart { finding, ..self.chart("remove", "Removals by load", caption, series) }
    }

    /// Of one form: with both, the lines of half of the kernels would lie on each other.
    fn by_kernel(&self, form: Form) -> Chart {
        let of = |kernel| Of { table: Kind::Packed, operation: Operation::Find, form, kernel };
        let lines = self.kernels().enumerate().map(|(colour, kernel)| self.line(kernel, colour, Mark::Points, of(kernel), 0));
        let series = lines.flatten().collect();
        let (file, how) = match form {
            Form::Each => ("kernels", "one at a time"),
            Form::Batch => ("kernels-batch", "in batches"),
        };
        let ends = self.kernels().next().zip(self.kernels().last()).filter(|(slowest, fastest)| slowest != fastest);
        let finding = ends.and_then(|(slowest, fastest)| {
            let ratio = self.pace_of(of(fastest), FULL, 0)? / self.pace_of(of(slowest), FULL, 0)?;
            Some(format!(
                "At a load of {FULL} %, {fastest} looks up {ratio:.1} times as many keys per second as {slowest}, {how}"
            ))
        });
        let caption = format!("Look-ups of absent keys in the packed table, {how}.");
        Chart { finding, ..self.chart(file, &format!("Look-ups by kernel, {how}"), caption, series) }
    }

    fn shares(&self) -> Chart {
        let kernel = self.kernel();
        let mut series = Vec::new();
        for (colour, table) in Kind::ALL.into_iter().enumerate() {
            for (form, mark) in [(Form::Each, Mark::Points), (Form::Batch, Mark::DashedPoints)] {
                let of = Of { table, operation: Operation::Find, form, kernel };
                let mut rows: Vec<_> = self.rows(of).filter(|row| row.load == FULL).collect();
                rows.sort_by_key(|row| row.present);
                let name = format!("{}{}", table.name(), if form == Form::Batch { ", batch" } else { "" });
                series.extend(line(&name, colour, mark, &rows, |row| row.present));
            }
        }
        let caption = format!(
            "Look-ups at a load of {FULL} %, by share of keys present (the paper's figure 5). If half of them are present, the processor \
             cannot predict the answers."
        );
        let of = Of { table: Kind::Packed, operation: Operation::Find, form: Form::Each, kernel };
        let paces = self.pace_of(of, FULL, 50).zip(self.pace_of(of, FULL, 0));
        let finding = paces.map(|(half, none)| {
            format!("Packed: {half:.0} million look-ups per second if half of the keys are present, {none:.0} if none are")
        });
        let chart = self.chart("present", "Look-ups by share of keys present", caption, series);
        Chart { finding, x: Axis::linear("keys that are present, %").from_to(0.0, 100.0), ..chart }
    }

    fn table(&self) -> Table {
        let has_quartiles = self.rows.iter().flat_map(|m| &m.rows).any(|row| row.low_ns.is_some());
        let spread = if has_quartiles { ": medians (quartiles). A star: disturbed by other work on the processor" } else { "" };
        let caption = format!("Nanoseconds per key at a load of {FULL} %, tables of {} slots{spread}", count(self.slots));
        let header = ["table, kernel", "form", "insert", "find absent", "find present", "find, half present", "remove"];
        let mut lines = Table::new(&caption, &header);
        for table in Kind::ALL {
            for kernel in self.kernels() {
                for (form, called) in [(Form::Each, "each"), (Form::Batch, "batch")] {
                    let row = |operation, present| self.row(Of { table, operation, form, kernel }, FULL, present);
                    let find = [0, 100, 50].map(|present| cell(row(Operation::Find, present)));
                    let mut cells =
                        vec![format!("{} {kernel}", table.name()), called.to_owned(), cell(row(Operation::Insert, 0))];
                    cells.extend(find);
                    cells.push(cell(row(Operation::Remove, 0)));
                    lines.rows.push(cells);
                }
            }
            for (form, called) in [(Form::Each, "two reads"), (Form::Batch, "two reads, dense")] {
                let row = self.row(Of { table, operation: Operation::Read, form, kernel: "" }, 0, 0);
                let mut cells = vec![format!("{} floor", table.name()), called.to_owned(), String::from("-"), cell(row)];
                cells.extend(["-", "-", "-"].map(String::from));
                lines.rows.push(cells);
            }
        }
        lines
    }
}

/// A line of million operations per second with quartiles, by a property of the rows; and marks where it was disturbed.
fn line(name: &str, colour: usize, mark: Mark, rows: &[&Row], x: fn(&Row) -> u32) -> [Series; 2] {
    let point = |row: &&Row| (f64::from(x(row)), pace(row.ns));
    let series = Series::new(name, colour, rows.iter().map(point).collect()).marked(mark);
    // A long time is a low pace.
    let quartiles: Vec<_> = rows.iter().filter_map(|row| Some((pace(row.high_ns?), pace(row.low_ns?)))).collect();
    let series = if quartiles.len() == rows.len() { series.within(quartiles) } else { series };
    let disturbed = rows.iter().filter(|row| row.disturbed).map(point).collect();
    [series, Series::new(DISTURBED, 4, disturbed).marked(Mark::Dots)]
}

/// The time in a row, with its quartiles.
fn cell(row: Option<&Row>) -> String {
    let Some(row) = row else { return String::from("-") };
    let star = if row.disturbed { " *" } else { "" };
    match (row.low_ns, row.high_ns) {
        (Some(low), Some(high)) => format!("{:.1} ({low:.1}–{high:.1}){star}", row.ns),
        _ => format!("{:.1}{star}", row.ns),
    }
}

/// Million operations per second.
fn pace(ns: f64) -> f64 {
    1000.0 / ns
}
