//! Writes made-up results to a folder, with charts, texts and tables that are hard to lay out. They are for the test of the
//! report in a browser (`just report`) and for the tests of charts in tests/examples.rs.

use std::{env, path::PathBuf};

use anyhow::Context as _;
use koel_lab::{
    About, Axis, Chart, Experiment, Findings, Interrupt, Mark, Measured, Plan, Scope, Series, Settings, Table, report,
};
use serde::{Deserialize, Serialize};

pub(crate) struct Demanding;

#[derive(Serialize, Deserialize)]
pub(crate) struct Case {
    number: u32,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    text: String,
    value: f64,
}

const MARKS: [Mark; 6] = [Mark::Points, Mark::Line, Mark::Dashes, Mark::DashedPoints, Mark::Dots, Mark::Points];

const NAMES: [&str; 6] = [
    "1 M",
    "a name that is longer than a line of the legend, which a precise name may well be",
    "MMMM WWWW 0123456789 MMMM WWWW",
    "standard Bloom",
    "log₂(1/ε) <lower bound> & more",
    "semi-sorted, f = 13, b = 4",
];

impl Experiment for Demanding {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "A word that a telephone is too narrow for: \
                    0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz";
        About::new("demanding", "Nothing was measured: <b>a test</b> & no more", text)
    }

    fn cases(&self, _: &Scope) -> Vec<Case> {
        (0..50).map(|number| Case { number }).collect()
    }

    fn measure(&self, case: &Case, _: u64, _: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let text = format!("\"{}\", in two lines\nand with ümläuts", case.number);
        Ok(vec![Row { text, value: f64::from(case.number) / 3.0 }; 2])
    }

    fn findings(&self, _: &[Measured<Case, Row>]) -> Findings {
        let logarithms = chart("log", "Both axes in powers of ten, with intervals", [Axis::log("items"), Axis::log("rate")]);
        let narrow = [Axis::log("slots").from_to(300.0, 2000.0), Axis::log("rate")];
        let narrow = chart("narrow", "Less than a power of ten", narrow);
        let large = Axis::linear("time for each of all the items, nanoseconds").from_to(0.0, 12_000_000.0);
        let linear =
            chart("linear", "Large numbers, and a title that takes more than a line of the picture", [large, Axis::log("rate")]);
        let x = Axis::linear("false-positive rate of a filter that was measured with as many items, %");
        let swapped = chart("swapped", "W", [x, linear.x.clone()]);
        let mut many = chart("many", "Many names in the legend", [Axis::log("items"), Axis::linear("rate")]);
        many.series = (0..24).map(|n| Series { name: format!("b = {}, {n}", n * n), ..many.series[n % 6].clone() }).collect();
        let names = NAMES.into_iter().filter(|name| name.len() < 40).map(String::from).collect();
        let mut rows = chart("rows", "A row for each name", [Axis::log("items"), Axis::rows(names)]);
        rows.series.truncate(3);
        for (y, (mark, series)) in
            (0..).map(f64::from).zip([Mark::Dots, Mark::Rings, Mark::Dots].into_iter().zip(&mut rows.series))
        {
            (series.mark, series.points) = (mark, vec![(200.0, y), (3000.0, y + 2.0)]);
            series.intervals = vec![(100.0, 300.0), (2999.0, 3001.0)];
        }
        let nothing = chart("empty", "Nothing", [Axis::linear("nothing"), Axis::linear("no more")]);
        let empty = Chart { series: Vec::new(), ..nothing };

        let header: Vec<_> = (0..14).map(|n| format!("column {n}")).collect();
        let header: Vec<_> = header.iter().map(String::as_str).collect();
        let cells: Vec<_> = (0..14).map(|n| format!("{n}.{n:06} items")).collect();
        let wide = Table::new("Wider than any page", &header, vec![cells; 3]);
        let warning = String::from("Something that a reader must know first: <all> of it is made up, & nothing was measured.");
        let charts = vec![logarithms, narrow, linear, swapped, many, rows, empty];
        Findings { charts, tables: vec![wide], warnings: vec![warning] }
    }
}

fn chart(file: &str, title: &str, axes: [Axis; 2]) -> Chart {
    let series = MARKS.into_iter().zip(NAMES).enumerate().map(|(color, (mark, name))| {
        let share = |n: i32| 10f64.powi(-n) * f64::from(n + i32::try_from(color).unwrap_or(0));
        let points: Vec<_> = (1..=8).map(|n| (10f64.powi(n), share(n))).collect();
        let intervals = points.iter().map(|&(_, y)| (y / 2.0, y * 2.0)).collect();
        Series::new(name, color, points).marked(mark).within(intervals)
    });
    let topic = "The topic of a chart of numbers that nobody measured, in words that take two lines";
    let chart = Chart::new(file, topic, axes, series).showing(Some(title.to_owned()));
    chart.captioned("This chart shows only how charts are drawn.")
}

fn main() -> anyhow::Result<()> {
    let folder: PathBuf = env::args_os().nth(1).context("the folder of the results is missing: demanding FOLDER")?.into();
    let scope = Scope { quick: false, seed: 7, max_slots: None };
    let settings = Settings { folder: folder.clone(), scope, threads: 1, again: true };
    Plan::new(Demanding, &settings)?.run(&Interrupt::new())?;
    report::write(&folder)
}
