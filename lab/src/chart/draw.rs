//! Draws a chart as SVG. All positions are whole pixels, the same on every machine.

use maud::{Markup, PreEscaped, html};

use super::{Axis, Chart, Mark, Series, palette, scale::Ruler};

/// Pixels. A phone, which is about 360 pixels wide, shows the picture at three quarters of its size.
const WIDTH: i32 = 480;
const MARGIN: i32 = 14;
/// Height of a line of the title.
const LINE: i32 = 20;
/// Height of a line of any other text.
const NEXT: i32 = 18;
/// Height of the plot, and of one with labels, which need room.
const PLOT: i32 = 244;
const LABELLED_PLOT: i32 = 484;
/// Height of the numbers below the plot.
const NUMBERS: i32 = 30;
const TICK: i32 = 5;
/// Height of an entry of the legend, the width of the piece of line in it, and of the gaps after that and between columns.
const ENTRY: i32 = 22;
const SAMPLE: i32 = 30;
const GAP: i32 = 6;
const APART: i32 = 14;
/// Half of a mark's width, and of the place that it takes among labels.
const HALF: i32 = 4;
const PLACE: i32 = 6;

const TITLE_SIZE: i32 = 16;
const TEXT_SIZE: i32 = 14;
const LABEL_SIZE: i32 = 13;

type Pixel = (i32, i32);

/// A rectangle of pixels.
#[derive(Clone, Copy)]
struct Frame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Frame {
    fn overlaps(self, other: Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn is_in(self, other: Self) -> bool {
        self.left >= other.left && self.right <= other.right && self.top >= other.top && self.bottom <= other.bottom
    }
}

/// Returns the chart as SVG, with colours for light and dark pages.
#[must_use]
pub fn draw(chart: &Chart) -> String {
    let room = WIDTH - 2 * MARGIN;
    // Bold letters are wider.
    let title = lines(chart.title(), TITLE_SIZE + 2, room);
    let subtitle = lines(chart.subtitle().unwrap_or(""), TEXT_SIZE, room);
    let head = MARGIN + LINE * number(title.len() + subtitle.len());
    let plot = Plot::new(chart, head);
    let (legend, height) = legend(chart, plot.frame.bottom + NUMBERS + NEXT * number(plot.below.len()));
    let description = chart.subtitle().map_or_else(|| chart.caption.clone(), |topic| format!("{topic}. {}", chart.caption));
    let head = title.iter().map(|line| (line, TITLE_SIZE)).chain(subtitle.iter().map(|line| (line, TEXT_SIZE)));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) }
            font-family="sans-serif" role="img" aria-label=(chart.title()) {
            title { (chart.title()) }
            desc { (description) }
            style { (PreEscaped(palette::dark())) }
            @for ((line, size), y) in head.zip((24..).step_by(LINE.unsigned_abs() as usize)) {
                (text((MARGIN, y), "start", size, line))
            }
            (plot.draw(chart))
            (legend)
        }
    }
    .into_string()
        + "\n"
}

/// The plot with its axes.
struct Plot {
    x: Ruler,
    y: Ruler,
    frame: Frame,
    /// The lines of the axes' labels.
    beside: Vec<String>,
    below: Vec<String>,
}

impl Plot {
    fn new(chart: &Chart, head: i32) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let ends = || chart.series.iter().flat_map(|series| &series.intervals).flat_map(|&(low, high)| [low, high]);
        let x = Ruler::new(&chart.x, points().map(|point| point.0));
        let y = Ruler::new(&chart.y, points().map(|point| point.1).chain(ends()));
        let height = if chart.series.iter().any(|series| !series.labels.is_empty()) { LABELLED_PLOT } else { PLOT };
        let label = |axis: &Axis, room| lines(&axis.label, TEXT_SIZE, room);
        let (beside, below) = (label(&chart.y, height - 10), label(&chart.x, WIDTH * 3 / 4));
        let numbers = y.ticks().map(|(_, label)| width(&label, TEXT_SIZE)).max().unwrap_or(0);
        let (left, top) = (MARGIN + NEXT * number(beside.len()) + numbers + TICK, head + 8);
        Self { x, y, frame: Frame { left, top, right: WIDTH - MARGIN - 8, bottom: top + height }, beside, below }
    }

    fn pixel(&self, (x, y): (f64, f64)) -> Pixel {
        let Frame { left, top, right, bottom } = self.frame;
        (self.x.map(x, left, right), self.y.map(y, bottom, top))
    }

    fn shows(&self, (x, y): (f64, f64)) -> bool {
        self.x.contains(x) && self.y.contains(y)
    }

    fn draw(&self, chart: &Chart) -> Markup {
        let Frame { left, top, right, bottom } = self.frame;
        let ([grid, _], [ink, _]) = (palette::GRID, palette::INK);
        let (middle, centre) = (i32::midpoint(left, right), i32::midpoint(top, bottom));
        html! {
            @for (at, label) in self.x.ticks() {
                @let x = self.x.map(at, left, right);
                (line((x, top), (x, bottom), grid, 1))
                (line((x, bottom), (x, bottom + TICK), ink, 1))
                (text((x, bottom + TICK + 14), "middle", TEXT_SIZE, &label))
            }
            @for (at, label) in self.y.ticks() {
                @let y = self.y.map(at, bottom, top);
                (line((left, y), (right, y), grid, 1))
                (line((left - TICK, y), (left, y), ink, 1))
                (text((left - TICK - 3, y), "end", TEXT_SIZE, &label))
            }
            (line((left, top), (left, bottom), ink, 1))
            (line((left, bottom), (right, bottom), ink, 1))
            @for (words, y) in self.below.iter().zip((bottom + NUMBERS + NEXT / 2..).step_by(NEXT.unsigned_abs() as usize)) {
                (text((middle, y), "middle", TEXT_SIZE, words))
            }
            @for (words, x) in self.beside.iter().zip((4 + NEXT / 2..).step_by(NEXT.unsigned_abs() as usize)) {
                g transform={ "translate(" (x) " " (centre) ") rotate(-90)" } { (text((0, 0), "middle", TEXT_SIZE, words)) }
            }
            @for series in &chart.series { (self.series(series)) }
            (self.labels(chart))
        }
    }

    fn series(&self, series: &Series) -> Markup {
        let visible: Vec<_> = series.points.iter().filter(|&&point| self.shows(point)).map(|&point| self.pixel(point)).collect();
        let colour = palette::of(series.colour);
        html! {
            @if is_joined(series.mark) {
                polyline points=(points(&visible)) fill="none" stroke=(colour) stroke-width="2" stroke-dasharray=[dashes(series)] {} "\n"
            }
            @for (from, to) in self.bars(series) { (line(from, to, colour, 1)) }
            @if has_marks(series.mark) { @for &at in &visible { (mark(series, at)) } }
        }
    }

    /// The intervals that are visible, or their visible parts, from their lower ends to their upper ones.
    fn bars(&self, series: &Series) -> Vec<(Pixel, Pixel)> {
        let (bottom, top) = self.y.ends();
        let all = series.points.iter().zip(&series.intervals);
        let visible = all.filter(|&(&(at, _), &(low, high))| self.x.contains(at) && low <= top && high >= bottom);
        visible.map(|(&(at, _), &(low, high))| (self.pixel((at, low)), self.pixel((at, high)))).collect()
    }

    /// The labels, each at the first place beside its mark where it covers no mark, no interval and no other label. One that has
    /// no such place is left out.
    fn labels(&self, chart: &Chart) -> Markup {
        let around = |(x, y): Pixel| Frame { left: x - PLACE, top: y - PLACE, right: x + PLACE, bottom: y + PLACE };
        let points = chart.series.iter().flat_map(|series| &series.points).filter(|&&point| self.shows(point));
        let mut taken: Vec<_> = points.map(|&point| around(self.pixel(point))).collect();
        let bars = chart.series.iter().flat_map(|series| self.bars(series));
        taken.extend(bars.map(|((x, bottom), (_, top))| Frame { left: x - 1, top, right: x + 1, bottom }));
        let within = Frame { right: self.frame.right + MARGIN, ..self.frame };
        let mut placed = Vec::new();
        let all = chart.series.iter().flat_map(|series| series.points.iter().zip(&series.labels));
        for (&point, label) in all.filter(|&(&point, _)| self.shows(point)) {
            let ((x, y), wide) = (self.pixel(point), width(label, LABEL_SIZE));
            let (right, left, middle) = (x + PLACE + 2, x - PLACE - 2 - wide, x - wide / 2);
            let places = [
                (right, y),
                (left, y),
                (middle, y - 15),
                (middle, y + 15),
                (x, y - 15),
                (x, y + 15),
                (x - wide, y - 15),
                (x - wide, y + 15),
            ];
            let frames = places.map(|(left, y)| Frame { left, top: y - 8, right: left + wide, bottom: y + 8 });
            let free = frames.into_iter().find(|frame| frame.is_in(within) && !taken.iter().any(|&other| frame.overlaps(other)));
            if let Some(frame) = free {
                taken.push(frame);
                placed.push((frame, label));
            }
        }
        html! { @for (frame, label) in placed { (text((frame.left, frame.top + 8), "start", LABEL_SIZE, label)) } }
    }
}

/// The legend below the plot: the names of the series, row by row, in as many columns as fit. Returns the height of the picture.
fn legend(chart: &Chart, top: i32) -> (Markup, i32) {
    let room = WIDTH - 2 * MARGIN;
    let named: Vec<_> = chart.series.iter().filter(|series| !series.name.is_empty()).collect();
    let wide: Vec<_> = named.iter().map(|series| SAMPLE + GAP + width(&series.name, TEXT_SIZE)).collect();
    let columns = columns(&wide, room);
    let (mut row, mut bottom) = (top, top);
    let mut entries = Vec::new();
    for (place, series) in named.into_iter().enumerate() {
        let column = place % columns.len();
        if column == 0 {
            row = bottom;
        }
        let name = lines(&series.name, TEXT_SIZE, room - SAMPLE - GAP);
        bottom = bottom.max(row + ENTRY + NEXT * number(name.len().saturating_sub(1)));
        entries.push(((columns[column], row + ENTRY / 2), name, series));
    }
    let entries = html! {
        @for ((x, y), name, series) in entries {
            @if is_joined(series.mark) {
                polyline points=(points(&[(x, y), (x + SAMPLE, y)])) fill="none" stroke=(palette::of(series.colour)) stroke-width="2"
                    stroke-dasharray=[dashes(series)] {} "\n"
            }
            @if has_marks(series.mark) { (mark(series, (x + SAMPLE / 2, y))) }
            @for (words, y) in name.iter().zip((y..).step_by(NEXT.unsigned_abs() as usize)) {
                (text((x + SAMPLE + GAP, y), "start", TEXT_SIZE, words))
            }
        }
    };
    (entries, bottom + 10)
}

/// Where the columns begin: as many columns as fit, each as wide as its widest entry.
fn columns(wide: &[i32], room: i32) -> Vec<i32> {
    for count in (2..=wide.len()).rev() {
        let widest = |column: usize| wide.iter().skip(column).step_by(count).copied().max().unwrap_or(0);
        let mut next = MARGIN;
        let mut starts = Vec::new();
        for column in 0..count {
            starts.push(next);
            next += widest(column) + APART;
        }
        if next - APART <= room + MARGIN {
            return starts;
        }
    }
    vec![MARGIN]
}

fn is_joined(mark: Mark) -> bool {
    mark != Mark::Dots
}

fn has_marks(mark: Mark) -> bool {
    matches!(mark, Mark::Points | Mark::DashedPoints | Mark::Dots)
}

/// The lengths of a dash and of the gap after it: each colour has its own pattern.
fn dashes(series: &Series) -> Option<&'static str> {
    let patterns = ["6 4", "12 4", "2 3", "10 9", "4 8", "16 3"];
    matches!(series.mark, Mark::Dashes | Mark::DashedPoints).then(|| patterns[series.colour % patterns.len()])
}

/// The mark of a point. Each colour has a shape of its own, which is hollow on dashed lines.
fn mark(series: &Series, (x, y): Pixel) -> Markup {
    let colour = palette::of(series.colour);
    let fill = if series.mark == Mark::DashedPoints { "none" } else { colour };
    let by = |corners: &[Pixel]| points(&corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>());
    let corners = match series.colour % palette::COLOURS.len() {
        0 => return html! { circle cx=(x) cy=(y) r=(HALF) fill=(fill) stroke=(colour) {} "\n" },
        1 => by(&[(-HALF, -HALF), (HALF, -HALF), (HALF, HALF), (-HALF, HALF)]),
        2 => by(&[(0, -HALF - 1), (HALF + 1, HALF), (-HALF - 1, HALF)]),
        3 => by(&[(0, -HALF - 1), (HALF + 1, 0), (0, HALF + 1), (-HALF - 1, 0)]),
        4 => by(&[(0, HALF + 1), (HALF + 1, -HALF), (-HALF - 1, -HALF)]),
        _ => {
            let cross = [(-HALF, HALF), (HALF, -HALF)];
            return html! { @for (rise, fall) in cross { (line((x - HALF, y + rise), (x + HALF, y + fall), colour, 2)) } };
        }
    };
    html! { polygon points=(corners) fill=(fill) stroke=(colour) {} "\n" }
}

fn line(from: Pixel, to: Pixel, colour: &str, wide: i32) -> Markup {
    html! { line x1=(from.0) y1=(from.1) x2=(to.0) y2=(to.1) stroke=(colour) stroke-width=(wide) {} "\n" }
}

/// A line of text, whose middle is at the height of this pixel. The title's is bold.
fn text((x, y): Pixel, anchor: &str, size: i32, words: &str) -> Markup {
    let weight = (size == TITLE_SIZE).then_some("bold");
    html! {
        text x=(x) y=(y) dy="0.5ex" text-anchor=(anchor) font-size=(size) font-weight=[weight] fill=(palette::INK[0]) { (words) } "\n"
    }
}

fn points(pixels: &[Pixel]) -> String {
    pixels.iter().map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
}

fn number(things: usize) -> i32 {
    i32::try_from(things).unwrap_or(i32::MAX)
}

/// The width of a letter, in thousandths of its height. Nobody knows which font the reader has, so these are the widths of the
/// widest common ones (Verdana, `DejaVu` Sans); others leave some room free.
fn share(letter: char) -> i32 {
    match letter {
        'i' | 'j' | 'l' | 'I' => 300,
        ' ' | '.' | ',' | ':' | ';' | '\'' | '/' | '|' | '!' | 'f' | 't' | '-' => 400,
        'r' | '(' | ')' | '⁰'..='⁹' | '⁻' | '²' | '³' | '¹' => 470,
        'm' | 'w' | 'M' | 'W' | '%' | '…' | '—' | '@' => 1080,
        '=' | '<' | '>' | '+' | '×' | '≈' | '≤' | '≥' | '→' => 840,
        'A'..='Z' => 790,
        _ => 650,
    }
}

/// The width of text in letters of this height.
fn width(text: &str, height: i32) -> i32 {
    (text.chars().map(share).sum::<i32>() * height + 999) / 1000
}

/// Breaks text between words into lines no wider than `most` pixels. A word that is wider has a line of its own.
fn lines(text: &str, height: i32, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, height) + width(" ", height) + width(word, height) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_many_as_fit_and_never_overlap() {
        assert_eq!(columns(&[], 100), [MARGIN]);
        assert_eq!(columns(&[900, 900], 100), [MARGIN]);
        assert_eq!(columns(&[43, 43], 100), [MARGIN, MARGIN + 57]);
        assert_eq!(columns(&[44, 43], 100), [MARGIN]);
        // The third entry is below the first one, and makes their column wider.
        assert_eq!(columns(&[10, 40, 30, 20], 84), [MARGIN, MARGIN + 44]);
        assert_eq!(columns(&[10, 40, 30, 20], 83), [MARGIN]);
    }

    #[test]
    fn lines_are_as_long_as_there_is_room() {
        assert_eq!(lines("", 10, 100), [""; 0]);
        assert_eq!(lines("one  two three", 10, width("one two", 10) + 1), ["one two", "three"]);
        assert_eq!(lines("one two", 10, width("one two", 10) - 2), ["one", "two"]);
        // A word is not broken.
        assert_eq!(lines("immeasurable a", 10, 5), ["immeasurable", "a"]);
    }

    #[test]
    fn labels_keep_clear_of_marks_and_of_each_other() {
        let points = vec![(10.0, 1.0), (10.0, 1.01), (50.0, 1.0), (0.0, 1.0)];
        let labels = ["<one>", "another", "far", "that cannot be drawn"].map(String::from).to_vec();
        // A crowd: some of its labels have no place.
        let crowd: Vec<_> = (0..20).map(|n| (30.0 + 0.01 * f64::from(n), 1.5)).collect();
        let names = (0..20).map(|n| format!("crowd {n}")).collect();
        let series = [Series::new("some", 0, points).labelled(labels), Series::new("", 1, crowd).labelled(names)];
        let series = series.map(|series| series.marked(Mark::Dots)).to_vec();
        let chart = Chart {
            file: String::new(),
            topic: String::new(),
            finding: None,
            caption: String::new(),
            x: Axis::log("x"),
            y: Axis::linear("y").from_to(0.5, 2.0),
            series,
        };
        let svg = draw(&chart);
        assert!(
            svg.contains("&lt;one&gt;") && svg.contains(">another<") && svg.contains(">far<") && !svg.contains("cannot be drawn")
        );
        assert!((2..10).contains(&svg.matches(">crowd ").count()), "{svg}");
    }
}
