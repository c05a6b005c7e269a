//! Draws a chart as SVG. All positions are whole pixels, so the file is the same on every machine.

use maud::{Markup, PreEscaped, html};

use super::{Axis, Chart, Mark, Series, palette, scale::Ruler};

/// The width of the picture in pixels. A phone, which is about 360 pixels wide, shows it at three quarters of its size.
const WIDTH: i32 = 480;
const MARGIN: i32 = 14;
/// The height of a line of the title.
const TITLE_LINE: i32 = 20;
/// The height of a line of any other text.
const TEXT_LINE: i32 = 18;
/// The height of a plot without named rows.
const PLOT: i32 = 244;
/// The height of a named row.
const ROW: i32 = 32;
/// The height of the numbers below the plot.
const NUMBERS: i32 = 30;
const TICK: i32 = 5;
/// The height of an entry of the legend.
const ENTRY: i32 = 22;
/// The width of the sample of a line in the legend.
const SAMPLE: i32 = 30;
/// The gap between the sample and its name, and before the name of a row.
const GAP: i32 = 6;
/// The gap between columns of the legend.
const COLUMN_GAP: i32 = 14;
/// Half the width of a mark.
const HALF_MARK: i32 = 4;

const TITLE_SIZE: i32 = 16;
const TEXT_SIZE: i32 = 14;
const NAME_SIZE: i32 = 13;

type Pixel = (i32, i32);

#[derive(Clone, Copy)]
struct Frame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

/// Returns the chart as SVG, with colors for light and dark pages.
#[must_use]
pub fn draw(chart: &Chart) -> String {
    let room = WIDTH - 2 * MARGIN;
    // The title's bold letters are wider.
    let title = lines(chart.title(), TITLE_SIZE + 2, room);
    let subtitle = lines(chart.subtitle().unwrap_or(""), TEXT_SIZE, room);
    let head = MARGIN + TITLE_LINE * number(title.len() + subtitle.len());
    let plot = Plot::new(chart, head);
    let (legend, bottom) = legend(chart, plot.frame.bottom + NUMBERS + TEXT_LINE * number(plot.x_label.len()));
    let (names, bottom) = names(chart, bottom);
    let height = bottom + 10;
    let description = chart.subtitle().map_or_else(|| chart.caption.clone(), |topic| format!("{topic}. {}", chart.caption));
    let head = title.iter().map(|line| (line, TITLE_SIZE)).chain(subtitle.iter().map(|line| (line, TEXT_SIZE)));
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) viewBox={ "0 0 " (WIDTH) " " (height) }
            font-family="sans-serif" role="img" aria-label=(chart.title()) {
            title { (chart.title()) }
            desc { (description) }
            style { (PreEscaped(palette::dark())) }
            @for ((line, size), y) in head.zip((24..).step_by(TITLE_LINE.unsigned_abs() as usize)) {
                (text((MARGIN, y), "start", size, line))
            }
            (plot.draw(chart))
            (legend)
            (names)
        }
    }
    .into_string()
        + "\n"
}

struct Plot {
    x: Ruler,
    y: Ruler,
    /// True if the vertical axis has names.
    in_rows: bool,
    frame: Frame,
    /// The lines of the vertical axis' label.
    y_label: Vec<String>,
    /// The lines of the horizontal axis' label.
    x_label: Vec<String>,
}

impl Plot {
    fn new(chart: &Chart, head: i32) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let ends = || chart.series.iter().flat_map(|series| &series.intervals).flat_map(|&(low, high)| [low, high]);
        let in_rows = !chart.y.names.is_empty();
        let x = Ruler::new(&chart.x, points().map(|point| point.0).chain(ends().filter(|_| in_rows)));
        let y = Ruler::new(&chart.y, points().map(|point| point.1).chain(ends().filter(|_| !in_rows)));
        let height = if in_rows { ROW * number(chart.y.names.len()) } else { PLOT };
        let label = |axis: &Axis, room| lines(&axis.label, TEXT_SIZE, room);
        let (y_label, x_label) = (label(&chart.y, height - 10), label(&chart.x, WIDTH * 3 / 4));
        let numbers = y.ticks().map(|(_, label)| width(&label, TEXT_SIZE)).max().unwrap_or(0) + TICK;
        let left = MARGIN + if in_rows { 0 } else { TEXT_LINE * number(y_label.len()) + numbers };
        let top = head + 8;
        Self { x, y, in_rows, frame: Frame { left, top, right: WIDTH - MARGIN - 8, bottom: top + height }, y_label, x_label }
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
        let (middle, center) = (i32::midpoint(left, right), i32::midpoint(top, bottom));
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
                @if self.in_rows {
                    (text((left + GAP, y - ROW / 2), "start", NAME_SIZE, &label))
                } @else {
                    (line((left - TICK, y), (left, y), ink, 1))
                    (text((left - TICK - 3, y), "end", TEXT_SIZE, &label))
                }
            }
            (line((left, top), (left, bottom), ink, 1))
            (line((left, bottom), (right, bottom), ink, 1))
            @for (words, y) in self.x_label.iter().zip((bottom + NUMBERS + TEXT_LINE / 2..).step_by(TEXT_LINE.unsigned_abs() as usize)) {
                (text((middle, y), "middle", TEXT_SIZE, words))
            }
            @for (words, x) in self.y_label.iter().zip((4 + TEXT_LINE / 2..).step_by(TEXT_LINE.unsigned_abs() as usize)) {
                g transform={ "translate(" (x) " " (center) ") rotate(-90)" } { (text((0, 0), "middle", TEXT_SIZE, words)) }
            }
            @for series in &chart.series { (self.series(series)) }
            @for Number { words, center, leader } in self.numbers(chart) {
                @if let Some((from, to)) = leader { (line(from, to, ink, 1)) }
                (text(center, "middle", NAME_SIZE, &words))
            }
        }
    }

    /// Returns the numbers of points, each at the nearest place that is free of marks, other numbers and their lines, if there is one.
    fn numbers(&self, chart: &Chart) -> Vec<Number> {
        let Frame { left, top, right, bottom } = self.frame;
        let points = chart.series.iter().flat_map(|series| &series.points);
        let mark = |center| Area::around(center, HALF_MARK + 1, HALF_MARK + 1);
        let mut taken: Vec<_> = points.filter(|&&point| self.shows(point)).map(|&point| mark(self.pixel(point))).collect();
        let numbered = chart.series.iter().flat_map(|series| series.points.iter().zip(&series.numbers));
        let (mut numbers, mut written) = (Vec::new(), Vec::new());
        for (&point, number) in numbered.filter(|&(&point, _)| self.shows(point)) {
            let (words, (x, y)) = (number.to_string(), self.pixel(point));
            let (half_width, half_height) = (width(&words, NAME_SIZE) / 2, NAME_SIZE / 2);
            let place = |(ring, (dx, dy)): (i32, Pixel)| {
                let gap = HALF_MARK + 3 + ring * LEADER;
                let center = (x + dx * (gap + half_width) / 2, y + dy * (gap + half_height) / 2);
                let at = |distance| (x + dx * distance / 2, y + dy * distance / 2);
                let (start, end) = (HALF_MARK + 2, gap - 4);
                let leader = (ring > 0).then(|| (at(start), at(end)));
                // The letters' box is larger than their size in most fonts.
                let area = Area::around(center, half_width + 1, half_height + 1);
                let along: Vec<_> = (start..end).step_by(2).map(|distance| Area::around(at(distance), 1, 1)).collect();
                (Number { words: words.clone(), center, leader }, area, along)
            };
            let collisions = |(_, area, along): &(Number, Area, Vec<Area>)| {
                let is_inside = area.from.0 >= left && area.to.0 <= right && area.from.1 >= top && area.to.1 <= bottom;
                // A line may cross marks, which are often close to each other.
                let crossed = written.iter().filter(|other: &&Area| along.iter().any(|dot| dot.overlaps(other))).count();
                taken.iter().filter(|other| area.overlaps(other)).count() + crossed + usize::from(!is_inside)
            };
            let places = (0..=RINGS).flat_map(|ring| AROUND.map(|direction| (ring, direction)));
            if let Some((number, area, along)) = places.map(place).min_by_key(collisions) {
                written.push(area);
                taken.push(area);
                taken.extend(along);
                numbers.push(number);
            }
        }
        numbers
    }

    fn series(&self, series: &Series) -> Markup {
        let visible: Vec<_> = series.points.iter().filter(|&&point| self.shows(point)).map(|&point| self.pixel(point)).collect();
        let color = palette::of(series.color);
        html! {
            @if has_line(series.mark) {
                polyline points=(points(&visible)) fill="none" stroke=(color) stroke-width="2" stroke-dasharray=[dashes(series)] {} "\n"
            }
            @for (from, to) in self.bars(series) { (line(from, to, color, 1)) }
            @if has_marks(series.mark) { @for &at in &visible { (mark(series, at)) } }
        }
    }

    /// Returns the visible parts of the intervals, from their lower to their upper ends.
    fn bars(&self, series: &Series) -> Vec<(Pixel, Pixel)> {
        let value_axis = if self.in_rows { &self.x } else { &self.y };
        let (least, most) = value_axis.ends();
        let is_in_range = |(x, y): (f64, f64)| if self.in_rows { self.y.contains(y) } else { self.x.contains(x) };
        let all = series.points.iter().zip(&series.intervals);
        let visible = all.filter(|&(&point, &(low, high))| is_in_range(point) && low <= most && high >= least);
        let end = |(x, y): (f64, f64), end| self.pixel(if self.in_rows { (end, y) } else { (x, end) });
        visible.map(|(&point, &(low, high))| (end(point, low), end(point, high))).collect()
    }
}

/// The number of a point: where its center is, and the line that leads to it from the point if the two are apart.
struct Number {
    words: String,
    center: Pixel,
    leader: Option<(Pixel, Pixel)>,
}

/// Directions from a point to its number, in halves of the distance.
#[rustfmt::skip]
const AROUND: [Pixel; 16] = [
    (2, 0), (-2, 0), (0, -2), (0, 2), (2, -2), (2, 2), (-2, -2), (-2, 2),
    (2, -1), (2, 1), (-2, -1), (-2, 1), (1, -2), (1, 2), (-1, -2), (-1, 2),
];

/// How much farther a number is from its point in each ring of places around it, and the number of rings after the nearest one.
const LEADER: i32 = 14;
const RINGS: i32 = 3;

/// A rectangle in the picture.
#[derive(Clone, Copy)]
struct Area {
    from: Pixel,
    to: Pixel,
}

impl Area {
    fn around((x, y): Pixel, half_width: i32, half_height: i32) -> Self {
        Self { from: (x - half_width, y - half_height), to: (x + half_width, y + half_height) }
    }

    fn overlaps(&self, other: &Self) -> bool {
        let is_apart = |from: i32, to: i32, other_from: i32, other_to: i32| to < other_from || from > other_to;
        !is_apart(self.from.0, self.to.0, other.from.0, other.to.0) && !is_apart(self.from.1, self.to.1, other.from.1, other.to.1)
    }
}

/// Draws the legend below the plot: the names of the series. Also returns its lower end.
fn legend(chart: &Chart, top: i32) -> (Markup, i32) {
    let named: Vec<_> = chart.series.iter().filter(|series| !series.name.is_empty()).collect();
    let names: Vec<_> = named.iter().map(|series| &*series.name).collect();
    list(&names, top, |index, (x, y)| {
        let series = named[index];
        html! {
            @if has_line(series.mark) {
                polyline points=(points(&[(x, y), (x + SAMPLE, y)])) fill="none" stroke=(palette::of(series.color)) stroke-width="2"
                    stroke-dasharray=[dashes(series)] {} "\n"
            }
            @if has_marks(series.mark) { (mark(series, (x + SAMPLE / 2, y))) }
        }
    })
}

/// Draws the names of the numbers beside points. Also returns the lower end of the list.
fn names(chart: &Chart, top: i32) -> (Markup, i32) {
    let names: Vec<_> = chart.names.iter().map(String::as_str).collect();
    list(&names, top, |index, (x, y)| text((x + SAMPLE, y), "end", TEXT_SIZE, &(index + 1).to_string()))
}

/// Draws names row by row, in as many columns as fit, each behind the sample that `sample` draws. Also returns the lower end.
fn list(names: &[&str], top: i32, sample: impl Fn(usize, Pixel) -> Markup) -> (Markup, i32) {
    let room = WIDTH - 2 * MARGIN;
    let wide: Vec<_> = names.iter().map(|name| SAMPLE + GAP + width(name, TEXT_SIZE)).collect();
    let columns = columns(&wide, room);
    let (mut row, mut bottom) = (top, top);
    let mut entries = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let column = index % columns.len();
        if column == 0 {
            row = bottom;
        }
        let name = lines(name, TEXT_SIZE, room - SAMPLE - GAP);
        bottom = bottom.max(row + ENTRY + TEXT_LINE * number(name.len().saturating_sub(1)));
        entries.push(((columns[column], row + ENTRY / 2), name, index));
    }
    let entries = html! {
        @for ((x, y), name, index) in entries {
            (sample(index, (x, y)))
            @for (words, y) in name.iter().zip((y..).step_by(TEXT_LINE.unsigned_abs() as usize)) {
                (text((x + SAMPLE + GAP, y), "start", TEXT_SIZE, words))
            }
        }
    };
    (entries, bottom)
}

/// Returns the left edges of the columns: as many columns as fit, each as wide as its widest entry.
fn columns(wide: &[i32], room: i32) -> Vec<i32> {
    for count in (2..=wide.len()).rev() {
        let widest = |column: usize| wide.iter().skip(column).step_by(count).copied().max().unwrap_or(0);
        let mut next = MARGIN;
        let mut starts = Vec::new();
        for column in 0..count {
            starts.push(next);
            next += widest(column) + COLUMN_GAP;
        }
        if next - COLUMN_GAP <= room + MARGIN {
            return starts;
        }
    }
    vec![MARGIN]
}

fn has_line(mark: Mark) -> bool {
    !matches!(mark, Mark::Dots | Mark::Rings)
}

fn has_marks(mark: Mark) -> bool {
    !matches!(mark, Mark::Line | Mark::Dashes)
}

/// Returns the lengths of a dash and of the gap after it. Each color has its own pattern.
fn dashes(series: &Series) -> Option<&'static str> {
    let patterns = ["6 4", "12 4", "2 3", "10 9", "4 8", "16 3"];
    matches!(series.mark, Mark::Dashes | Mark::DashedPoints).then(|| patterns[series.color % patterns.len()])
}

/// Draws the mark of a point. Each color has its own shape. Marks on dashed lines and rings are hollow.
fn mark(series: &Series, (x, y): Pixel) -> Markup {
    let color = palette::of(series.color);
    let fill = if matches!(series.mark, Mark::DashedPoints | Mark::Rings) { "none" } else { color };
    let by = |corners: &[Pixel]| points(&corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>());
    let corners = match series.color % palette::COLORS.len() {
        0 => return html! { circle cx=(x) cy=(y) r=(HALF_MARK) fill=(fill) stroke=(color) {} "\n" },
        1 => by(&[(-HALF_MARK, -HALF_MARK), (HALF_MARK, -HALF_MARK), (HALF_MARK, HALF_MARK), (-HALF_MARK, HALF_MARK)]),
        2 => by(&[(0, -HALF_MARK - 1), (HALF_MARK + 1, HALF_MARK), (-HALF_MARK - 1, HALF_MARK)]),
        3 => by(&[(0, -HALF_MARK - 1), (HALF_MARK + 1, 0), (0, HALF_MARK + 1), (-HALF_MARK - 1, 0)]),
        4 => by(&[(0, HALF_MARK + 1), (HALF_MARK + 1, -HALF_MARK), (-HALF_MARK - 1, -HALF_MARK)]),
        _ => {
            let cross = [(-HALF_MARK, HALF_MARK), (HALF_MARK, -HALF_MARK)];
            return html! { @for (rise, fall) in cross { (line((x - HALF_MARK, y + rise), (x + HALF_MARK, y + fall), color, 2)) } };
        }
    };
    html! { polygon points=(corners) fill=(fill) stroke=(color) {} "\n" }
}

fn line(from: Pixel, to: Pixel, color: &str, wide: i32) -> Markup {
    html! { line x1=(from.0) y1=(from.1) x2=(to.0) y2=(to.1) stroke=(color) stroke-width=(wide) {} "\n" }
}

/// Draws a line of text whose middle is at the height of this pixel. The title is bold.
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

/// Returns the width of a letter, in thousandths of its height. The reader's font is unknown, so these are the widths of the widest
/// common fonts (Verdana, `DejaVu` Sans). Others leave some room free.
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

/// Returns the width of text in letters of this height.
fn width(text: &str, height: i32) -> i32 {
    (text.chars().map(share).sum::<i32>() * height + 999) / 1000
}

/// Breaks text between words into lines no wider than `most` pixels. A wider word has its own line.
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
    fn legends_have_as_many_columns_as_fit() {
        assert_eq!(columns(&[], 100), [MARGIN]);
        assert_eq!(columns(&[900, 900], 100), [MARGIN]);
        assert_eq!(columns(&[43, 43], 100), [MARGIN, MARGIN + 57]);
        assert_eq!(columns(&[44, 43], 100), [MARGIN]);
        // The third entry is in the same column as the first, and makes it wider.
        assert_eq!(columns(&[10, 40, 30, 20], 84), [MARGIN, MARGIN + 44]);
        assert_eq!(columns(&[10, 40, 30, 20], 83), [MARGIN]);
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(lines("", 10, 100), [""; 0]);
        assert_eq!(lines("one  two three", 10, width("one two", 10) + 1), ["one two", "three"]);
        assert_eq!(lines("one two", 10, width("one two", 10) - 2), ["one", "two"]);
        // A long word is not broken.
        assert_eq!(lines("immeasurable a", 10, 5), ["immeasurable", "a"]);
    }

    /// Numbers avoid marks, each other and the lines that lead to others, even where points are close, and stay within the plot.
    #[test]
    fn numbers_stand_apart() {
        let apart = [0.0, 0.8, 1.6, 10.0].iter().flat_map(|&x| [(x, 0.0), (x, 0.9), (x, 10.0)]);
        // Six points nearly in one place: numbers that find no room beside them are farther away.
        let points: Vec<_> = apart.chain((0..6).map(|n| (5.0 + 0.05 * f64::from(n), 5.0))).collect();
        let series = Series::new("some", 0, points).marked(Mark::Dots).numbered((1..=18).collect());
        let names = (1..=18).map(|number| format!("name of {number}")).collect();
        let chart = Chart::new("", "", [Axis::linear("x"), Axis::linear("y")], [series]).naming(names);
        let plot = Plot::new(&chart, 0);
        let numbers = plot.numbers(&chart);
        assert_eq!(
            numbers.iter().map(|number| number.words.parse().ok()).collect::<Vec<_>>(),
            (1..=18).map(Some).collect::<Vec<_>>()
        );
        let marks = chart.series[0].points.iter().map(|&point| Area::around(plot.pixel(point), HALF_MARK, HALF_MARK));
        let area = |number: &Number| Area::around(number.center, width(&number.words, NAME_SIZE) / 2 + 1, NAME_SIZE / 2 + 1);
        let areas = numbers.iter().map(area);
        let areas: Vec<_> = marks.chain(areas).collect();
        for (index, area) in areas.iter().enumerate().skip(18) {
            let words = &numbers[index - 18].words;
            assert!(areas[..index].iter().all(|other| !area.overlaps(other)), "{words}");
            assert!(area.from.0 >= plot.frame.left && area.to.1 <= plot.frame.bottom, "{words}");
        }
        let leaders: Vec<_> = numbers.iter().filter_map(|number| number.leader).collect();
        assert!(leaders.len() > 1);
        for (from, to) in leaders {
            let steps = (to.0 - from.0).abs().max((to.1 - from.1).abs());
            let on = |step| (from.0 + (to.0 - from.0) * step / steps, from.1 + (to.1 - from.1) * step / steps);
            for dot in (0..=steps).map(|step| Area::around(on(step), 0, 0)) {
                assert!(areas[18..].iter().all(|area| !area.overlaps(&dot)), "{from:?} {to:?}");
            }
        }
        let svg = draw(&chart);
        assert!(svg.contains(">name of 12\n") || svg.contains(">name of 12<"), "{svg}");
    }

    #[test]
    fn rows_have_names_and_bars_along_them() {
        let names = ["<lowest>", "highest"].map(String::from).to_vec();
        let points = vec![(20.0, 0.0), (20.0, 1.0), (50.0, 2.0)];
        let intervals = vec![(20.0, 20.0), (10.0, 100.0), (50.0, 50.0)];
        let series = Series::new("some", 0, points).marked(Mark::Rings).within(intervals);
        let chart = Chart::new("", "", [Axis::log("x"), Axis::rows(names)], [series]);
        let svg = draw(&chart);
        assert!(svg.contains(">&lt;lowest&gt;") && svg.contains(">highest"), "{svg}");
        let Frame { left, right, .. } = Plot::new(&chart, 0).frame;
        let bar = format!("x1=\"{left}\" y1=\"{{y}}\" x2=\"{right}\" y2=\"{{y}}\" stroke=\"{}\"", palette::of(0));
        let marks: Vec<_> =
            svg.split("<circle ").skip(1).filter_map(|mark| mark.split('"').nth(3)?.parse::<i32>().ok()).collect();
        // There is a mark for each row, from the lowest, and one in the legend. A point without a row has none.
        let [lowest, highest, _] = marks[..] else { panic!("{marks:?}") };
        assert_eq!(lowest - highest, ROW);
        assert!(svg.contains(&bar.replace("{y}", &highest.to_string())), "{bar}: {svg}");
        assert_eq!(svg.matches("fill=\"none\"").count(), 3, "{svg}");
    }
}
