//! Computes the ticks of an axis and the positions of numbers on it.

use super::{Axis, Scale};

/// An axis with its ends and ticks.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    scale: Scale,
    from: f64,
    to: f64,
    ticks: Vec<f64>,
    names: Vec<String>,
}

impl Ruler {
    /// Chooses ends that include all of these values, unless the axis has a range.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        if !axis.names.is_empty() {
            return Self::named(&axis.names);
        }
        let usable = |value: &f64| value.is_finite() && (axis.scale == Scale::Linear || *value > 0.0);
        let (low, high) =
            values.filter(usable).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let low = if axis.zero { low.min(0.0) } else { low };
        let (low, high) = axis.range.unwrap_or(if low <= high { (low, high) } else { (1.0, 10.0) });
        match axis.scale {
            Scale::Linear => Self::linear(low, high, axis.range.is_some()),
            Scale::Log => Self::log(low, high, axis.range.is_some()),
        }
    }

    /// Returns a ruler with a tick for each name. There is twice as much room above a tick, for the name, as below it.
    fn named(names: &[String]) -> Self {
        let ticks: Vec<_> = (0..).map(f64::from).take(names.len()).collect();
        let to = names.len() as f64 - 1.0 / 3.0;
        Self { scale: Scale::Linear, from: -1.0 / 3.0, to, ticks, names: names.to_vec() }
    }

    /// Returns a ruler with ticks at multiples of 1, 2 or 5 times a power of ten. The range of values has at most seven steps.
    fn linear(low: f64, high: f64, exact: bool) -> Self {
        let span = if high > low { high - low } else { low.abs().max(1.0) };
        let power = 10f64.powf((span / 7.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * power).into_iter().find(|step| span / step <= 7.0).unwrap_or(span);
        let (from, to) = if exact { (low, high) } else { ((low / step).floor() * step, (high / step).ceil() * step) };
        let to = if to > from { to } else { from + step };
        let first = (from / step - 1e-9).ceil();
        let ticks = (0..20).map(|n| (first + f64::from(n)) * step).take_while(|tick| *tick <= to + step * 1e-9).collect();
        Self { scale: Scale::Linear, from, to, ticks, names: Vec::new() }
    }

    /// Returns a ruler with ticks at all powers of ten, or at every second, third, … one. If these are fewer than three, there are
    /// also ticks at 2 and 5 times each power.
    fn log(low: f64, high: f64, exact: bool) -> Self {
        let (from, to) = if exact { (low, high) } else { (power(low.log10().floor()), power(high.log10().ceil())) };
        let to = if to > from { to } else { from * 10.0 };
        let (first, last) = ((from.log10() - 1e-9).ceil(), (to.log10() + 1e-9).floor());
        let every = ((last - first) / 7.0).ceil().max(1.0);
        let mut ticks: Vec<_> =
            (0..20).map(|n| first + f64::from(n) * every).take_while(|tick| *tick <= last).map(power).collect();
        if ticks.len() < 3 {
            let finer = (0..4).flat_map(|n| [1.0, 2.0, 5.0].map(|digit| digit * power(first - 1.0 + f64::from(n))));
            ticks = finer.filter(|tick| (from * 0.999..=to * 1.001).contains(tick)).collect();
        }
        Self { scale: Scale::Log, from, to, ticks, names: Vec::new() }
    }

    /// Returns the position along the axis, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value / self.from).log10() / (self.to / self.from).log10(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns true if the value is between the ends, up to rounding errors.
    pub(super) fn contains(&self, value: f64) -> bool {
        let margin = match self.scale {
            Scale::Linear => (self.to - self.from) * 1e-9,
            Scale::Log => self.from * 1e-9,
        };
        (self.from - margin..=self.to + margin).contains(&value)
    }

    pub(super) fn ends(&self) -> (f64, f64) {
        (self.from, self.to)
    }

    fn label(&self, value: f64) -> String {
        match self.scale {
            Scale::Log if (value.log10() - value.log10().round()).abs() < 1e-6 && !(0.01..1000.0).contains(&value) => {
                format!("10{}", superscript(value.log10().round()))
            }
            Scale::Log if value < 0.01 => format!("{value:.0e}"),
            Scale::Log => plain(value),
            Scale::Linear => match self.from.abs().max(self.to.abs()) {
                _ if value == 0.0 => plain(value),
                1e9.. => format!("{} G", plain(value / 1e9)),
                1e6.. => format!("{} M", plain(value / 1e6)),
                1e4.. => format!("{} k", plain(value / 1e3)),
                _ => plain(value),
            },
        }
    }

    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        let name = |index: usize, tick| self.names.get(index).cloned().unwrap_or_else(|| self.label(tick));
        self.ticks.iter().enumerate().map(move |(index, &tick)| (tick, name(index, tick)))
    }

    /// Returns the pixel of a value, given the pixels of the two ends.
    pub(super) fn map(&self, value: f64, from: i32, to: i32) -> i32 {
        #[allow(clippy::cast_possible_truncation, reason = "at most the width of a picture")]
        let distance = (f64::from(to - from) * self.share(value)).round() as i32;
        from + distance
    }
}

fn power(exponent: f64) -> f64 {
    10f64.powf(exponent)
}

/// Formats a number without the digits of rounding errors.
fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { String::from("0") } else { text.to_owned() }
}

fn superscript(exponent: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raise = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    format!("{exponent:.0}").chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        Ruler::new(axis, values.iter().copied()).ticks().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers_that_cover_all_values() {
        assert_eq!(labels(&Axis::linear(""), &[0.0, 32.0]), ["0", "5", "10", "15", "20", "25", "30", "35"]);
        assert_eq!(labels(&Axis::linear(""), &[0.93, 0.976]), ["0.93", "0.94", "0.95", "0.96", "0.97", "0.98"]);
        assert_eq!(labels(&Axis::linear("").from_to(2.0, 32.0), &[]), ["5", "10", "15", "20", "25", "30"]);
        assert_eq!(labels(&Axis::log(""), &[100.0, 1e8]), ["100", "10³", "10⁴", "10⁵", "10⁶", "10⁷", "10⁸"]);
        assert_eq!(labels(&Axis::log(""), &[1e-9, 0.3]), ["10⁻⁹", "10⁻⁷", "10⁻⁵", "10⁻³", "0.1"]);
        assert_eq!(labels(&Axis::log(""), &[12.0, 80.0]), ["10", "20", "50", "100"]);
        assert_eq!(labels(&Axis::log(""), &[0.0, -1.0, f64::NAN]), ["1", "2", "5", "10"]);
        assert_eq!(labels(&Axis::linear(""), &[5.0]), ["5", "6"]);
        assert_eq!(labels(&Axis::linear(""), &[0.0, 8000.0]), ["0", "2000", "4000", "6000", "8000"]);
        assert_eq!(labels(&Axis::linear(""), &[0.0, 12e3]), ["0", "2 k", "4 k", "6 k", "8 k", "10 k", "12 k"]);
        assert_eq!(labels(&Axis::linear(""), &[-1.5e6, 0.0]), ["-1.5 M", "-1 M", "-0.5 M", "0"]);
        assert_eq!(labels(&Axis::linear(""), &[1e9, 3e9]), ["1 G", "1.5 G", "2 G", "2.5 G", "3 G"]);
    }

    #[test]
    fn shares_are_0_to_1_between_the_ends() {
        let ruler = Ruler::new(&Axis::log(""), [1.0, 100.0].into_iter());
        for (value, share) in [(1.0, 0.0), (10.0, 0.5), (100.0, 1.0), (1e9, 1.0), (1e-9, 0.0)] {
            assert!((ruler.share(value) - share).abs() < 1e-12);
        }
        assert!(ruler.contains(100.0) && ruler.contains(1.0) && !ruler.contains(100.1) && !ruler.contains(0.9));
    }
}
