//! The memory of filters from half their plan to twenty times their plan, and at every rate.

use std::path::Path;

use koel::{ElasticBuilder, ElasticFilter};
use koel_benches::{Extent, count, key, row};
use koel_lab::{Axis, Chart, Mark, Series, chart};

/// Sizes, as multiples of the plan, that have a row.
const TIMES: [f64; 12] = [0.5, 0.8, 1.0, 1.02, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0];
/// The size of the next sample, as a multiple of the size of the last one.
const STEP: f64 = 1.01;
const RATES: [f64; 9] = [0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

fn builder(rate: f64) -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(rate)
}

/// The bytes of a filter at each size.
struct Curve {
    name: String,
    color: usize,
    /// Sizes and bytes.
    points: Vec<(f64, f64)>,
}

impl Curve {
    fn new(name: String, color: usize, builder: ElasticBuilder, planned: f64) -> Self {
        let mut filter = builder.build().expect("valid parameters");
        let (mut items, mut points) = (TIMES[0] * planned, Vec::new());
        loop {
            (filter.len() as u64..items as u64).for_each(|n| filter.insert(&key(n)).expect("the filter grows"));
            points.push((items, filter.size_in_bytes() as f64));
            // The sizes that have a row are samples, too.
            let Some(next) = TIMES.iter().map(|times| times * planned).find(|&next| next > items) else { break };
            items = next.min(items * STEP);
        }
        Self { name, color, points }
    }

    /// Returns the bytes at the sample next to this size.
    fn at(&self, items: f64) -> f64 {
        let distance = |point: &&(f64, f64)| (point.0 / items).ln().abs();
        let nearest = self.points.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)));
        nearest.expect("a curve has samples").1
    }

    /// Returns the greatest ratio of the bytes of two samples in a row.
    fn steepest(&self) -> f64 {
        self.points.windows(2).map(|pair| pair[1].1 / pair[0].1).fold(0.0, f64::max)
    }

    fn series(&self, planned: f64) -> Series {
        let points = self.points.iter().map(|&(items, bytes)| (items / planned, 8.0 * bytes / items));
        Series::new(self.name.clone(), self.color, points.collect()).marked(Mark::Line)
    }
}

/// Prints the bytes over the number of items, and returns the chart.
fn over_items(extent: &Extent) -> Chart {
    // The number is smaller in a test.
    let items = extent.length();
    let planned = items as f64;
    let fixed = |rate| builder(rate).capacity(items).max_capacity(items);
    let curves = [
        Curve::new("ε = 1 %".into(), 0, fixed(0.01), planned),
        Curve::new("ε = 0.1 %".into(), 1, fixed(0.001), planned),
        Curve::new("ε = 0.001 %".into(), 2, fixed(1e-5), planned),
        Curve::new("0.1 %, in 16 partitions".into(), 3, fixed(0.001).partitions(16), planned),
        Curve::new("0.1 %, from 1,000 items".into(), 4, builder(0.001).capacity(1000).max_capacity(items), planned),
    ];
    println!(
        "Bytes of filters planned for {} items, as multiples of those with as many items as planned. `capacity` is `max_capacity`, but 1,000 in the last column.\n",
        count(items)
    );
    row("items / plan", curves.iter().map(|curve| curve.name.clone()));
    println!("|---:|{}", "---:|".repeat(curves.len()));
    for times in TIMES {
        row(&format!("{times}"), curves.iter().map(|curve| format!("{:.2}", curve.at(times * planned) / curve.at(planned))));
    }
    row("bits per item as planned", curves.iter().map(|curve| format!("{:.1}", 8.0 * curve.at(planned) / planned)));
    let steepest = |curve: &Curve| format!("{:.2} ×", curve.steepest());
    row("most more bytes for 1 % more items", curves.iter().map(steepest));
    let axes = [
        Axis::log("items, as a multiple of the plan").from_to(TIMES[0], TIMES[TIMES.len() - 1]),
        Axis::linear("bits per item").from_zero(),
    ];
    let series = curves.iter().map(|curve| curve.series(planned).marked(Mark::Line));
    let topic = format!("Bits per item, below and beyond a plan for {} items", count(items));
    Chart::new("", topic, axes, series).captioned("Samples that are 1 % apart.")
}

/// Prints the bytes over the rate, and returns the chart.
fn over_rates(extent: &Extent) -> Chart {
    const SIZES: [u64; 3] = [1000, 30_000, 1_000_000];
    let most = extent.items;
    let bits = |rate: f64, items: u64| {
        let mut filter = builder(rate).build().expect("valid parameters");
        (0..items).for_each(|n| filter.insert(&key(n)).expect("the filter grows"));
        8.0 * filter.size_in_bytes() as f64 / items.max(1000) as f64
    };
    println!("\nBytes of an empty filter, and bits per item of a filter with default options, by rate:\n");
    let names = SIZES.map(|items| format!("{} items", count(items)));
    row("ε", ["empty", "empty, `max_capacity` 10⁹"].map(String::from).into_iter().chain(names));
    println!("|---:|{}", "---:|".repeat(2 + SIZES.len()));
    for rate in RATES {
        let plans = [builder(rate), builder(rate).max_capacity(1_000_000_000)];
        let empty = plans.map(|builder| count(builder.build().expect("valid parameters").size_in_bytes()));
        let bits = SIZES.map(|items| format!("{:.1}", bits(rate, items.min(most))));
        row(&format!("{rate:e}"), empty.into_iter().chain(bits));
    }
    let rates = || (2..=80).map(|step| 10_f64.powf(-f64::from(step) / 10.0));
    let series = SIZES[..2].iter().enumerate().map(|(color, &items)| {
        let points = rates().map(|rate| (rate, bits(rate, items))).collect();
        Series::new(format!("{} items", count(items)), color, points).marked(Mark::Line)
    });
    let empty = rates().map(|rate| (rate, bits(rate, 0)));
    let empty = Series::new("none, by 1,000 items", SIZES.len(), empty.collect()).marked(Mark::Dashes);
    let axes = [Axis::log("ε"), Axis::log("bits per item")];
    let topic = "Bits per item of a filter with default options, by rate";
    Chart::new("", topic, axes, series.chain([empty]).collect::<Vec<_>>()).captioned("Ten rates for each power of ten.")
}

/// Prints both tables, and draws both charts if there is a folder for them.
pub fn edges(extent: &Extent, folder: Option<&Path>) {
    for (file, chart) in [("edges-items.svg", over_items(extent)), ("edges-rates.svg", over_rates(extent))] {
        if let Some(folder) = folder {
            chart::save(&chart, &folder.join(file)).expect("the chart can be written");
        }
    }
}
