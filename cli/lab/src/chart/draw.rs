//! From a chart to a picture.

use anyhow::anyhow;
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{Chart, Mark, Series, palette, scale::Ruler, stamp::Stamp, theme};

/// Pixels. A phone is some 360 of them wide, and shows a picture at three quarters of its size.
const WIDTH: u32 = 480;
const TITLE: u32 = 34;
const PLOT: u32 = 300;
const MARGIN: u32 = 14;
/// Of the legend's lines.
const LINE: i32 = 22;
/// What a letter takes, at most on average.
const LETTER: i32 = 8;
/// The piece of line before a legend's entry.
const SAMPLE: i32 = 30;
const TITLE_SIZE: f64 = 16.0;
const TEXT_SIZE: f64 = 14.0;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The chart as SVG, with colours for light and dark pages.
///
/// # Errors
/// If it cannot be drawn; there is no file that could fail.
pub fn draw(chart: &Chart) -> anyhow::Result<String> {
    let legend = Legend::of(chart);
    let height = TITLE + PLOT + legend.height();
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    // Errors of plotters are not `Send`.
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let (head, rest) = root.split_vertically(TITLE);
    let (plot, foot) = rest.split_vertically(PLOT);
    head.draw(&Text::new(chart.title.clone(), (i32::try_from(MARGIN)?, 24), text(TITLE_SIZE, FontStyle::Bold)))
        .map_err(|error| failed(&error))?;
    draw_plot(chart, &plot).map_err(|error| failed(&*error))?;
    legend.draw(&foot).map_err(|error| failed(&*error))?;
    root.present().map_err(|error| failed(&error))?;
    drop((head, plot, foot, rest, root));
    Ok(theme::finish(&svg, chart))
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw_plot(chart: &Chart, area: &Area<'_>) -> Drawn {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let ends = || chart.series.iter().flat_map(|series| &series.intervals).flat_map(|&(low, high)| [low, high]);
    let x = Ruler::new(&chart.x, points().map(|point| point.0));
    let y = Ruler::new(&chart.y, points().map(|point| point.1).chain(ends()));
    let beside = 34 + u32::try_from(y.widest())? * 8;
    let mut plot = ChartBuilder::on(area)
        .margin_left(6)
        .margin_right(MARGIN + 8)
        .margin_top(8)
        .x_label_area_size(50)
        .y_label_area_size(beside)
        .build_cartesian_2d(x.clone(), y.clone())?;
    plot.configure_mesh()
        .axis_style(paint(palette::INK))
        .bold_line_style(paint(palette::GRID))
        .light_line_style(TRANSPARENT)
        .label_style(text(TEXT_SIZE, FontStyle::Normal))
        .axis_desc_style(text(TEXT_SIZE, FontStyle::Normal))
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .draw()?;
    for series in &chart.series {
        let colour = paint(palette::COLOURS[series.colour % palette::COLOURS.len()]);
        let visible: Vec<_> = series.points.iter().copied().filter(|&(a, b)| x.contains(a) && y.contains(b)).collect();
        match series.mark {
            Mark::Points | Mark::Line => {
                plot.draw_series(LineSeries::new(visible.iter().copied(), colour.stroke_width(2)))?;
            }
            Mark::Dashes | Mark::DashedPoints => {
                let dashes = DashedLineSeries::new(visible.iter().copied(), 5, 4, colour.stroke_width(2));
                plot.draw_series(dashes)?;
            }
            Mark::Dots => {}
        }
        let (bottom, top) = y.ends();
        for (&(at, _), &(low, high)) in series.points.iter().zip(&series.intervals) {
            if x.contains(at) && low <= top && high >= bottom {
                let line = vec![(at, low.max(bottom)), (at, high.min(top))];
                plot.draw_series([PathElement::new(line, colour.stroke_width(1))])?;
            }
        }
        if has_marks(series.mark) {
            plot.draw_series(visible.into_iter().map(|point| mark(series, point, colour)))?;
        }
    }
    Ok(())
}

fn has_marks(mark: Mark) -> bool {
    matches!(mark, Mark::Points | Mark::DashedPoints | Mark::Dots)
}

/// A mark of the series' form: hollow on dashed lines.
fn mark<P>(series: &Series, at: P, colour: RGBColor) -> Stamp<P> {
    Stamp { at, form: series.colour, colour, hollow: series.mark == Mark::DashedPoints }
}

/// What the series are called, in lines as wide as the picture.
struct Legend<'a> {
    /// Where each entry begins, and what it is of.
    entries: Vec<((i32, i32), &'a Series)>,
    lines: i32,
}

impl<'a> Legend<'a> {
    fn of(chart: &'a Chart) -> Self {
        let width = i32::try_from(WIDTH - MARGIN).unwrap_or(i32::MAX);
        let (mut x, mut line) = (0, 0);
        let mut entries = Vec::new();
        for series in chart.series.iter().filter(|series| !series.name.is_empty()) {
            let letters = i32::try_from(series.name.chars().count()).unwrap_or(i32::MAX / LETTER / 2);
            let wide = SAMPLE + 8 + LETTER * letters + 10;
            if x > 0 && x + wide > width {
                (x, line) = (0, line + 1);
            }
            entries.push(((x + 14, line * LINE), series));
            x += wide;
        }
        let lines = if entries.is_empty() { 0 } else { line + 1 };
        Self { entries, lines }
    }

    fn height(&self) -> u32 {
        (self.lines * LINE).unsigned_abs() + 10
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        for &((x, y), series) in &self.entries {
            let colour = paint(palette::COLOURS[series.colour % palette::COLOURS.len()]);
            let middle = y + LINE / 2;
            let pieces: &[(i32, i32)] = match series.mark {
                Mark::Points | Mark::Line => &[(0, SAMPLE)],
                Mark::Dashes | Mark::DashedPoints => &[(0, 6), (12, 18), (24, 30)],
                Mark::Dots => &[],
            };
            for &(from, to) in pieces {
                area.draw(&PathElement::new(vec![(x + from, middle), (x + to, middle)], colour.stroke_width(2)))?;
            }
            if has_marks(series.mark) {
                area.draw(&mark(series, (x + SAMPLE / 2, middle), colour))?;
            }
            area.draw(&Text::new(series.name.clone(), (x + SAMPLE + 6, middle), text(TEXT_SIZE, FontStyle::Normal)))?;
        }
        Ok(())
    }
}

fn paint(colour: palette::Colour) -> RGBColor {
    let [r, g, b] = colour.light;
    RGBColor(r, g, b)
}

/// How text of so many pixels is written. (Plotters divides what it is given by 1.24, which it takes for a line's height.)
fn text(pixels: f64, style: FontStyle) -> TextStyle<'static> {
    let font = ("sans-serif", pixels * 1.24, style).into_font();
    font.color(&paint(palette::INK)).pos(Pos::new(HPos::Left, VPos::Center))
}
