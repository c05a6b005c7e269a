//! Draws a chart as SVG.

use anyhow::anyhow;
use plotters::{
    coord::Shift,
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::{
    Axis, Chart, Mark, Series,
    labels::{self, Frame, Pixel},
    legend::Legend,
    letters, palette,
    scale::Ruler,
    stamp::Stamp,
    theme,
};

/// Pixels. A phone, which is about 360 pixels wide, shows the picture at three quarters of its size.
pub(super) const WIDTH: u32 = 480;
/// Height of a line of the title.
const LINE: i32 = 20;
/// Height of a line of any other text.
pub(super) const NEXT: i32 = 18;
/// Height of the plot, with the numbers below it and one line of the axis label.
const PLOT: u32 = 300;
/// The same of a plot with labels, which need room.
const LABELLED_PLOT: u32 = 540;
/// Height of the numbers below the plot.
const NUMBERS: u32 = 30;
pub(super) const MARGIN: u32 = 14;
const TITLE_SIZE: f64 = 16.0;
/// How much wider bold letters are.
const BOLD: f64 = 1.12;
pub(super) const TEXT_SIZE: f64 = 14.0;
/// The size of labels beside points.
const LABEL_SIZE: f64 = 13.0;

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Returns the chart as SVG, with colours for light and dark pages.
///
/// # Errors
/// If plotters cannot draw it. No file is involved.
pub fn draw(chart: &Chart) -> anyhow::Result<String> {
    let legend = Legend::of(chart);
    let margin = i32::try_from(MARGIN)?;
    let room = i32::try_from(WIDTH)? - 2 * margin;
    let title = letters::lines(chart.title(), TITLE_SIZE * BOLD, room);
    let subtitle = letters::lines(chart.subtitle().unwrap_or(""), TEXT_SIZE, room);
    let top = margin + LINE * i32::try_from(title.len() + subtitle.len())?;
    let plot_height = if chart.series.iter().any(|series| !series.labels.is_empty()) { LABELLED_PLOT } else { PLOT };
    let (beside, below) = (beside(&chart.y, plot_height), below(&chart.x));
    let plot_height = plot_height + NEXT.unsigned_abs() * u32::try_from(below.len().saturating_sub(1))?;
    let height = top.unsigned_abs() + plot_height + legend.height();
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    // The errors of plotters are not `Send`.
    let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
    let (head, rest) = root.split_vertically(top);
    let (plot, foot) = rest.split_vertically(plot_height);
    let title = title.into_iter().map(|line| (line, text(TITLE_SIZE, FontStyle::Bold)));
    let subtitle = subtitle.into_iter().map(|line| (line, text(TEXT_SIZE, FontStyle::Normal)));
    for ((line, style), y) in title.chain(subtitle).zip((24..).step_by(LINE as usize)) {
        head.draw(&Text::new(line, (margin, y), style)).map_err(|error| failed(&error))?;
    }
    draw_plot(chart, &plot, &beside, &below).map_err(|error| failed(&*error))?;
    legend.draw(&foot).map_err(|error| failed(&*error))?;
    root.present().map_err(|error| failed(&error))?;
    drop((head, plot, foot, rest, root));
    Ok(theme::finish(&svg, chart))
}

pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;

/// The vertical axis' label, in lines that fit beside a plot of this height.
fn beside(axis: &Axis, height: u32) -> Vec<String> {
    letters::lines(&axis.label, TEXT_SIZE, i32::try_from(height - NUMBERS).unwrap_or(0) - NEXT - 10)
}

/// The horizontal axis' label, in lines that fit below it.
fn below(axis: &Axis) -> Vec<String> {
    letters::lines(&axis.label, TEXT_SIZE, i32::try_from(WIDTH * 3 / 4).unwrap_or(0))
}

fn draw_plot(chart: &Chart, area: &Area<'_>, beside: &[String], below: &[String]) -> Drawn {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let ends = || chart.series.iter().flat_map(|series| &series.intervals).flat_map(|&(low, high)| [low, high]);
    let x = Ruler::new(&chart.x, points().map(|point| point.0));
    let y = Ruler::new(&chart.y, points().map(|point| point.1).chain(ends()));
    let lines = |lines: &[String]| NEXT.unsigned_abs() * u32::try_from(lines.len()).unwrap_or(0);
    let numbers = u32::try_from(y.labels().map(|label| letters::width(&label, TEXT_SIZE)).max().unwrap_or(0))?;
    let mut plot = ChartBuilder::on(area)
        .margin_left(6)
        .margin_right(MARGIN + 8)
        .margin_top(8)
        .x_label_area_size(NUMBERS + lines(below))
        .y_label_area_size(lines(beside) + numbers + 16)
        .build_cartesian_2d(x.clone(), y.clone())?;
    plot.configure_mesh()
        .axis_style(paint(palette::INK))
        .bold_line_style(paint(palette::GRID))
        .light_line_style(TRANSPARENT)
        .label_style(text(TEXT_SIZE, FontStyle::Normal))
        .draw()?;
    // In pixels, counted from the corner of the picture.
    let ((left, right), (top, bottom)) = {
        let (across, down) = plot.plotting_area().get_pixel_range();
        ((across.start, across.end), (down.start, down.end))
    };
    let (dx, dy) = area.get_base_pixel();
    let middle = Pos::new(HPos::Center, VPos::Center);
    let level = text(TEXT_SIZE, FontStyle::Normal).pos(middle);
    let upright = level.transform(FontTransform::Rotate270);
    for (line, y) in below.iter().zip((bottom - dy + 36..).step_by(NEXT as usize)) {
        area.draw(&Text::new(line.as_str(), (i32::midpoint(left, right) - dx, y), level.clone()))?;
    }
    for (line, x) in beside.iter().zip((6 + NEXT / 2..).step_by(NEXT as usize)) {
        area.draw(&Text::new(line.as_str(), (x, i32::midpoint(top, bottom) - dy), upright.clone()))?;
    }
    for series in &chart.series {
        let colour = paint(palette::COLOURS[series.colour % palette::COLOURS.len()]);
        let visible: Vec<_> = series.points.iter().copied().filter(|&(a, b)| x.contains(a) && y.contains(b)).collect();
        match series.mark {
            Mark::Points | Mark::Line => {
                plot.draw_series(LineSeries::new(visible.iter().copied(), colour.stroke_width(2)))?;
            }
            Mark::Dashes | Mark::DashedPoints => {
                let (dash, gap) = dashes(series.colour);
                let dashes = DashedLineSeries::new(visible.iter().copied(), dash, gap, colour.stroke_width(2));
                plot.draw_series(dashes)?;
            }
            Mark::Dots | Mark::Rings => {}
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
    let pixel = |point: (f64, f64)| {
        let (x, y) = plot.backend_coord(&point);
        (x - dx, y - dy)
    };
    let frame = Frame { left: left - dx, top: top - dy, right: right - dx + MARGIN.cast_signed(), bottom: bottom - dy - 2 };
    draw_labels(chart, area, frame, (&x, &y), pixel)
}

/// Draws the labels of all points that are visible.
fn draw_labels(
    chart: &Chart,
    area: &Area<'_>,
    frame: Frame,
    (x, y): (&Ruler, &Ruler),
    pixel: impl Fn((f64, f64)) -> Pixel,
) -> Drawn {
    let all = chart
        .series
        .iter()
        .flat_map(|series| series.points.iter().zip(&series.labels).map(move |(point, label)| (series, *point, label)));
    let visible: Vec<_> = all.filter(|&(_, (a, b), _)| x.contains(a) && y.contains(b)).collect();
    let labels: Vec<_> = visible.iter().map(|&(_, point, label)| (pixel(point), letters::width(label, LABEL_SIZE))).collect();
    let intervals = chart.series.iter().flat_map(|series| series.points.iter().zip(&series.intervals));
    let bars: Vec<_> = intervals
        .map(|(&(at, _), &(low, high))| {
            let ((middle, bottom), (_, top)) = (pixel((at, low)), pixel((at, high)));
            Frame { left: middle - 1, top, right: middle + 1, bottom }
        })
        .collect();
    for ((series, _, label), place) in visible.into_iter().zip(labels::place(frame, &labels, &bars)) {
        if let Some((from, to)) = place.leader {
            let colour = paint(palette::COLOURS[series.colour % palette::COLOURS.len()]);
            area.draw(&PathElement::new(vec![from, to], colour.stroke_width(1)))?;
        }
        let at = (place.frame.left, i32::midpoint(place.frame.top, place.frame.bottom));
        area.draw(&Text::new(label.as_str(), at, text(LABEL_SIZE, FontStyle::Normal)))?;
    }
    Ok(())
}

/// The lengths of a dash and of the gap after it, in pixels: each colour has its own pattern.
pub(super) fn dashes(colour: usize) -> (u32, u32) {
    [(6, 4), (12, 4), (2, 3), (10, 9), (4, 8), (16, 3)][colour % 6]
}

pub(super) fn has_marks(mark: Mark) -> bool {
    matches!(mark, Mark::Points | Mark::DashedPoints | Mark::Dots | Mark::Rings)
}

/// A mark of the series: hollow on dashed lines, and as a ring.
pub(super) fn mark<P>(series: &Series, at: P, colour: RGBColor) -> Stamp<P> {
    Stamp { at, form: series.colour, colour, hollow: matches!(series.mark, Mark::DashedPoints | Mark::Rings) }
}

pub(super) fn paint(colour: palette::Colour) -> RGBColor {
    let [r, g, b] = colour.light;
    RGBColor(r, g, b)
}

/// The style of text `pixels` high. (Plotters divides the size it is given by 1.24, the height of a line.)
pub(super) fn text(pixels: f64, style: FontStyle) -> TextStyle<'static> {
    let font = ("sans-serif", pixels * 1.24, style).into_font();
    font.color(&paint(palette::INK)).pos(Pos::new(HPos::Left, VPos::Center))
}
