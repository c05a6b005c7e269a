//! Charts: what is to be seen, as data; how it is drawn is this module's business alone.
//!
//! They are read by people who cannot tell all colours apart, on paper, on dark screens and on phones: series differ by
//! colour, by mark and by dashes; colours are told apart under the common kinds of colour blindness and stand out from a white
//! page and from a black one (there is a test); letters are large for the picture's size, and the legend has a place of its own.

mod draw;
mod legend;
mod letters;
mod palette;
mod scale;
mod stamp;
#[cfg(test)]
mod tests;
mod theme;

pub use draw::draw;

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What its file is called, after the experiment's name.
    pub file: String,
    /// Above it.
    pub title: String,
    /// Below it, in the report: what to look for.
    pub caption: String,
    /// From left to right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn; at most [`Chart::MOST_COLOURS`] colours.
    pub series: Vec<Series>,
}

/// How numbers become distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Powers of ten in equal steps.
    Log,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How.
    pub scale: Scale,
    /// The range, if it is not that of the points.
    pub range: Option<(f64, f64)>,
    /// Does it begin at zero, whatever the points are?
    pub zero: bool,
}

/// What its points are joined by and marked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Marked points on a line.
    Points,
    /// A line without marks.
    Line,
    /// A dashed line without marks.
    Dashes,
    /// Marked points on a dashed line.
    DashedPoints,
    /// Points alone.
    Dots,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says; no entry if it is empty.
    pub name: String,
    /// Which colour, and which form of mark; series with the same one belong together.
    pub colour: usize,
    /// How it is drawn.
    pub mark: Mark,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// For each point, from where to where it may be; or nothing.
    pub intervals: Vec<(f64, f64)>,
}

impl Chart {
    /// As many colours as can be told apart.
    pub const MOST_COLOURS: usize = palette::COLOURS.len();
}

impl Axis {
    /// In equal steps.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, range: None, zero: false }
    }

    /// In powers of ten.
    #[must_use]
    pub fn log(label: &str) -> Self {
        Self { scale: Scale::Log, ..Self::linear(label) }
    }

    /// From zero, so that heights can be compared.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// From here to there.
    #[must_use]
    pub fn from_to(self, from: f64, to: f64) -> Self {
        Self { range: Some((from, to)), ..self }
    }
}

impl Series {
    /// Marked points on a line.
    #[must_use]
    pub fn new(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), colour, mark: Mark::Points, points, intervals: Vec::new() }
    }

    /// Drawn in this way.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    /// With an interval for each point.
    #[must_use]
    pub fn within(self, intervals: Vec<(f64, f64)>) -> Self {
        Self { intervals, ..self }
    }
}
