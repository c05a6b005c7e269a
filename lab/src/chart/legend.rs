//! The legend below the plot: the names of the series, in as many columns as fit.

use plotters::{prelude::*, style::FontStyle};

use super::{
    Chart, Mark, Series,
    draw::{Area, Drawn, MARGIN, NEXT, TEXT_SIZE, WIDTH, dashes, has_marks, mark, paint, text},
    letters, palette,
};

/// Height of a line.
const LINE: i32 = 22;
/// Width of the piece of line before a name.
const SAMPLE: i32 = 30;
/// Width of the gap between that and the name.
const GAP: i32 = 6;
/// Width of the gap between two columns.
const APART: i32 = 14;

/// The entries with their positions.
pub(super) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    height: i32,
}

struct Entry<'a> {
    at: (i32, i32),
    name: Vec<String>,
    series: &'a Series,
}

impl<'a> Legend<'a> {
    pub(super) fn of(chart: &'a Chart) -> Self {
        let room = i32::try_from(WIDTH - 2 * MARGIN).unwrap_or(i32::MAX);
        let named: Vec<_> = chart.series.iter().filter(|series| !series.name.is_empty()).collect();
        let wide: Vec<_> = named.iter().map(|series| SAMPLE + GAP + letters::width(&series.name, TEXT_SIZE)).collect();
        let columns = columns(&wide, room);
        let mut entries: Vec<Entry<'a>> = Vec::new();
        let (mut y, mut height) = (0, 0);
        for (place, series) in named.into_iter().enumerate() {
            let column = place % columns.len();
            if column == 0 {
                y = height;
            }
            let name = letters::lines(&series.name, TEXT_SIZE, room - SAMPLE - GAP);
            let more = i32::try_from(name.len().saturating_sub(1)).unwrap_or(0);
            height = height.max(y + LINE + more * NEXT);
            entries.push(Entry { at: (columns[column], y), name, series });
        }
        Self { entries, height }
    }

    pub(super) fn height(&self) -> u32 {
        self.height.unsigned_abs() + 10
    }

    pub(super) fn draw(&self, area: &Area<'_>) -> Drawn {
        for Entry { at: (x, y), name, series } in &self.entries {
            let (x, mut middle) = (*x, y + LINE / 2);
            let colour = paint(palette::COLOURS[series.colour % palette::COLOURS.len()]);
            let (dash, gap) = dashes(series.colour);
            let (dash, step) = match series.mark {
                Mark::Points | Mark::Line => (SAMPLE, SAMPLE),
                Mark::Dashes | Mark::DashedPoints => (dash.cast_signed(), (dash + gap).cast_signed()),
                Mark::Dots | Mark::Rings => (0, SAMPLE),
            };
            for from in (0..SAMPLE).step_by(step.unsigned_abs() as usize) {
                let to = (from + dash).min(SAMPLE);
                area.draw(&PathElement::new(vec![(x + from, middle), (x + to, middle)], colour.stroke_width(2)))?;
            }
            if has_marks(series.mark) {
                area.draw(&mark(series, (x + SAMPLE / 2, middle), colour))?;
            }
            for line in name {
                area.draw(&Text::new(line.clone(), (x + SAMPLE + GAP, middle), text(TEXT_SIZE, FontStyle::Normal)))?;
                middle += NEXT;
            }
        }
        Ok(())
    }
}

/// Where the columns begin: as many columns as fit, each as wide as its widest entry. Entries are placed row by row.
fn columns(wide: &[i32], room: i32) -> Vec<i32> {
    for count in (2..=wide.len()).rev() {
        let widest = |column: usize| wide.iter().skip(column).step_by(count).copied().max().unwrap_or(0);
        let mut next = i32::try_from(MARGIN).unwrap_or(0);
        let mut starts = Vec::new();
        for column in 0..count {
            starts.push(next);
            next += widest(column) + APART;
        }
        if next - APART <= room + starts[0] {
            return starts;
        }
    }
    vec![i32::try_from(MARGIN).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_many_as_fit_and_never_overlap() {
        let margin = i32::try_from(MARGIN).expect("small");
        assert_eq!(columns(&[], 100), [margin]);
        assert_eq!(columns(&[900, 900], 100), [margin]);
        assert_eq!(columns(&[43, 43], 100), [margin, margin + 57]);
        assert_eq!(columns(&[44, 43], 100), [margin]);
        // The third entry is below the first one, and makes their column wider.
        assert_eq!(columns(&[10, 40, 30, 20], 84), [margin, margin + 44]);
        assert_eq!(columns(&[10, 40, 30, 20], 83), [margin]);
    }
}
