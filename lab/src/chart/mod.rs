//! Charts: data structures that describe them, and functions that draw them as SVG.
//!
//! Charts must be legible for color-blind readers, on paper, on dark screens and on phones. So series differ by color, mark and
//! dashes. A test checks that the colors can be distinguished under the common kinds of color blindness, and that they contrast
//! with white and dark pages. Text is large for the size of the picture, and the legend is below the plot.

mod draw;
mod palette;
mod scale;

pub use draw::draw;

use std::path::Path;

/// Draws a chart as an SVG file. It replaces an existing file atomically.
///
/// # Errors
/// If the file cannot be written.
pub fn save(chart: &Chart, path: &Path) -> anyhow::Result<()> {
    crate::files::replace(path, draw(chart).as_bytes())
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The end of the file's name: the file is `EXPERIMENT-FILE.svg`.
    pub file: String,
    /// The description of what is drawn: the subtitle, or the title if there is no finding.
    pub topic: String,
    /// The title: a sentence that states what the data show, with figures. `None` if there are not enough data.
    pub finding: Option<String>,
    /// The caption in the report, which explains what to look for.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, in at most [`Chart::MAX_COLORS`] colors.
    pub series: Vec<Series>,
    /// The names of numbered points ([`Series::numbers`]), from number 1. They are listed below the legend.
    pub names: Vec<String>,
}

/// The rule by which an axis maps numbers to distances.
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
    /// The label, with the unit.
    pub label: String,
    /// The scale: linear or logarithmic.
    pub scale: Scale,
    /// The range; `None` for the range of the points.
    pub range: Option<(f64, f64)>,
    /// True if the axis begins at zero or below, even if all points are above zero.
    pub zero: bool,
    /// Names to show instead of the numbers 0, 1, 2, …, from the lowest row.
    pub names: Vec<String>,
}

/// The style in which the points of a series are connected and marked.
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
    /// The name in the legend. If it is empty, the legend has no entry.
    pub name: String,
    /// The index of the color and of the shape of marks. Series that belong together have the same index.
    pub color: usize,
    /// The style of the points.
    pub mark: Mark,
    /// The points, as (x, y).
    pub points: Vec<(f64, f64)>,
    /// An interval of y for each point, or of x if the vertical axis has names. Empty if there are no intervals.
    pub intervals: Vec<(f64, f64)>,
    /// The number to show beside each point. Empty if there are no numbers.
    pub numbers: Vec<usize>,
}

impl Chart {
    /// The number of colors.
    pub const MAX_COLORS: usize = palette::COLORS.len();

    /// Returns a chart with a horizontal and a vertical axis, without finding and caption. Series without points are left out, so
    /// that they do not appear in the legend.
    #[must_use]
    pub fn new(
        file: impl Into<String>,
        topic: impl Into<String>,
        [x, y]: [Axis; 2],
        series: impl IntoIterator<Item = Series>,
    ) -> Self {
        let series = series.into_iter().filter(|series| !series.points.is_empty()).collect();
        Self { file: file.into(), topic: topic.into(), finding: None, caption: String::new(), x, y, series, names: Vec::new() }
    }

    /// Sets the finding.
    #[must_use]
    pub fn showing(self, finding: Option<String>) -> Self {
        Self { finding, ..self }
    }

    /// Sets the caption.
    #[must_use]
    pub fn captioned(self, caption: impl Into<String>) -> Self {
        Self { caption: caption.into(), ..self }
    }

    /// Sets the names of numbered points.
    #[must_use]
    pub fn naming(self, names: Vec<String>) -> Self {
        Self { names, ..self }
    }

    /// Returns the title: the finding, or else the topic.
    #[must_use]
    pub fn title(&self) -> &str {
        self.finding.as_deref().unwrap_or(&self.topic)
    }

    /// Returns the subtitle, or `None` if the topic is the title.
    #[must_use]
    pub fn subtitle(&self) -> Option<&str> {
        self.finding.as_ref().map(|_| &*self.topic)
    }
}

impl Axis {
    /// Returns a linear axis with the range of the points.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, range: None, zero: false, names: Vec::new() }
    }

    /// Returns a vertical axis of named rows. Each row is as high as its name and a mark below it, so that no mark hides another.
    /// Points with y = 0 are in the row with the first name, which is the lowest, those with y = 1 in the next, and so on.
    #[must_use]
    pub fn rows(names: Vec<String>) -> Self {
        Self { names, ..Self::linear("") }
    }

    /// Returns a logarithmic axis with the range of the points.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// Extends the axis to zero, so that heights can be compared.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// Sets the range.
    #[must_use]
    pub fn from_to(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }
}

impl Series {
    /// Returns a series that is drawn as marks on a line.
    #[must_use]
    pub fn new(name: impl Into<String>, color: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), color, mark: Mark::Points, points, intervals: Vec::new(), numbers: Vec::new() }
    }

    /// Sets the style of the points.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    /// Sets an interval for each point.
    #[must_use]
    pub fn within(self, intervals: Vec<(f64, f64)>) -> Self {
        Self { intervals, ..self }
    }

    /// Sets a number for each point.
    #[must_use]
    pub fn numbered(self, numbers: Vec<usize>) -> Self {
        Self { numbers, ..self }
    }
}
