//! Figures as people read them. `koel_lab::percent` has shares.

use std::fmt;

/// A number of things: "1 item", "2 items".
pub(crate) fn counted<T: Copy + fmt::Display + PartialEq + From<u8>>(number: T, thing: &str) -> String {
    format!("{number} {thing}{}", if number == T::from(1) { "" } else { "s" })
}

/// A number of bytes: exact if below 10 kB, otherwise with three significant digits.
pub(crate) fn size(bytes: f64) -> String {
    if bytes < 9999.5 {
        return format!("{bytes:.0} B");
    }
    let mut size = bytes;
    for unit in ["kB", "MB", "GB", "TB", "PB"] {
        size /= 1000.0;
        match size {
            ..9.995 => return format!("{size:.2} {unit}"),
            ..99.95 => return format!("{size:.1} {unit}"),
            ..999.5 => return format!("{size:.0} {unit}"),
            _ => {}
        }
    }
    format!("{:.1} EB", size / 1000.0)
}

/// A time in nanoseconds with three significant digits, in the largest unit of which it is at least one.
pub(crate) fn time(ns: f64) -> String {
    let (mut time, mut units) = (ns, ["us", "ms"].into_iter());
    let mut unit = "ns";
    while time >= 999.5
        && let Some(larger) = units.next()
    {
        (time, unit) = (time / 1000.0, larger);
    }
    match time {
        0.0 => String::from("0 ns"),
        ..9.995 => format!("{time:.2} {unit}"),
        ..99.95 => format!("{time:.1} {unit}"),
        _ => format!("{time:.0} {unit}"),
    }
}

/// A rate with three significant digits.
pub(crate) fn three_digits(rate: f64) -> String {
    match rate {
        0.0 => String::from("0"),
        0.1.. => format!("{rate:.3}"),
        0.01.. => format!("{rate:.4}"),
        0.001.. => format!("{rate:.5}"),
        _ => format!("{rate:.2e}"),
    }
}

/// The same, at most seven characters wide.
pub(crate) fn narrow(rate: f64) -> String {
    if rate > 0.0 && rate < 9.995e-10 { format!("{rate:.1e}") } else { three_digits(rate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        let cases: [(f64, &str); 9] = [
            (0.0, "0 B"),
            (9999.4, "9999 B"),
            (9999.5, "10.0 kB"),
            (99_949.0, "99.9 kB"),
            (999_499.0, "999 kB"),
            (999_500.0, "1.00 MB"),
            (9.995e9, "10.0 GB"),
            (1.25e15, "1.25 PB"),
            (18.4e18, "18.4 EB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn times_have_three_digits() {
        let cases =
            [(0.0, "0 ns"), (9.994, "9.99 ns"), (12.34, "12.3 ns"), (999.4, "999 ns"), (999.6, "1.00 us"), (5e6, "5.00 ms")];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
        assert_eq!(time(2e12), "2000000 ms");
    }

    #[test]
    fn rates_have_three_digits_and_take_seven_columns() {
        let cases = [(0.0, "0"), (0.5, "0.500"), (0.098_76, "0.0988"), (0.001, "0.00100"), (0.000_946, "9.46e-4")];
        for (rate, text) in cases {
            assert_eq!((three_digits(rate).as_str(), narrow(rate).as_str()), (text, text));
        }
        assert_eq!([narrow(9.994e-10), narrow(9.996e-10), narrow(1.26e-10)], ["1.0e-9", "1.00e-9", "1.3e-10"]);
    }
}
