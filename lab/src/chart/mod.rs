//! Charts: described as data, drawn as SVG. How they are drawn is private to this module.
//!
//! They have to be legible for colour-blind readers, on paper, on dark screens and on phones. Series therefore differ by
//! colour, mark and dashes; a test checks that the colours can be told apart under the common kinds of colour blindness, and
//! their contrast with white and dark pages. Text is large for the size of the picture, and the legend stands below the plot.

mod draw;
mod palette;
mod scale;

pub use draw::draw;

use std::path::Path;

/// Draws a chart into an SVG file, which it replaces atomically.
///
/// # Errors
/// If the file cannot be written.
pub fn save(chart: &Chart, path: &Path) -> anyhow::Result<()> {
    crate::record::replace(path, draw(chart).as_bytes())
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The end of the file's name: the file is `EXPERIMENT-FILE.svg`.
    pub file: String,
    /// What is drawn: the subtitle, or the title if there is no finding.
    pub topic: String,
    /// What it shows, in a sentence with figures of the data: the title. `None` if the data do not suffice.
    pub finding: Option<String>,
    /// The caption below it in the report: what to look for.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, in at most [`Chart::MOST_COLOURS`] colours.
    pub series: Vec<Series>,
}

/// How an axis maps numbers to distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its label, with the unit.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Its range, if it should not be that of the points.
    pub range: Option<(f64, f64)>,
    /// Whether it begins at zero, whatever the points are.
    pub zero: bool,
    /// Names that stand instead of the numbers 0, 1, 2, …, from below.
    pub names: Vec<String>,
}

/// How the points of a series are joined and marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Marks on a line.
    Points,
    /// A line without marks.
    Line,
    /// A dashed line without marks.
    Dashes,
    /// Marks on a dashed line.
    DashedPoints,
    /// Marks only.
    Dots,
    /// Hollow marks only.
    Rings,
}

/// A series of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend. If it is empty, there is no entry.
    pub name: String,
    /// The index of its colour and of the shape of its marks. Series that belong together have the same one.
    pub colour: usize,
    /// How its points are drawn.
    pub mark: Mark,
    /// The points, as (x, y).
    pub points: Vec<(f64, f64)>,
    /// A confidence interval for each point, of y, or of x beside an axis of names; or nothing.
    pub intervals: Vec<(f64, f64)>,
}

impl Chart {
    /// How many colours there are.
    pub const MOST_COLOURS: usize = palette::COLOURS.len();

    /// A chart of those series that have points, with its horizontal and its vertical axis: what was not measured is not in the
    /// legend. It has no finding and no caption.
    #[must_use]
    pub fn new(
        file: impl Into<String>,
        topic: impl Into<String>,
        [x, y]: [Axis; 2],
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().filter(|series| !series.points.is_empty()).collect();
        Self { file: file.into(), topic: topic.into(), finding: None, caption: String::new(), x, y, series }
    }

    /// The same chart, with what it shows.
    #[must_use]
    pub fn showing(self, finding: Option<String>) -> Self {
        Self { finding, ..self }
    }

    /// The same chart, with this caption.
    #[must_use]
    pub fn captioned(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// The title: the finding, or the topic.
    #[must_use]
    pub fn title(&self) -> &str {
        self.finding.as_deref().unwrap_or(&self.topic)
    }

    /// The subtitle. `None` if the topic is the title.
    #[must_use]
    pub fn subtitle(&self) -> Option<&str> {
        self.finding.as_ref().map(|_| &*self.topic)
    }
}

impl Axis {
    /// A linear axis with the range of the points.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, range: None, zero: false, names: Vec::new() }
    }

    /// A vertical axis of named rows, each as high as its name and a mark below it, so that no mark hides another. The points of
    /// the row with the first name, which is the lowest, have y = 0, and so on.
    #[must_use]
    pub fn rows(names: Vec<String>) -> Self {
        Self { names, ..Self::linear("") }
    }

    /// A logarithmic axis with the range of the points.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// The same axis, but beginning at zero, so that heights can be compared.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// The same axis with this range.
    #[must_use]
    pub fn from_to(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }
}

impl Series {
    /// A series drawn as marks on a line.
    #[must_use]
    pub fn new(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, mark: Mark::Points, points, intervals: Vec::new() }
    }

    /// The same series, drawn like this.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    /// The same series, with an interval for each point.
    #[must_use]
    pub fn within(self, intervals: Vec<(f64, f64)>) -> Self {
        Self { intervals, ..self }
    }
}
