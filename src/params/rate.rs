//! The display of rates. The standard library's exact conversion would take 14 KB of code.

use core::fmt;

/// A rate that is displayed with the fewest digits that identify the number: 0.001, 1e-12. Beyond 10^±22, it is rounded to nine
/// digits.
pub(crate) struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0.abs();
        if self.0.is_nan() {
            return f.write_str("NaN");
        }
        if self.0 < 0.0 {
            f.write_str("-")?;
        }
        if rate == 0.0 || rate == f64::INFINITY {
            return f.write_str(if rate == 0.0 { "0" } else { "inf" });
        }
        let (digits, exponent) = shortest_digits(rate);
        let places = digits.ilog10();
        let power = exponent + places.cast_signed();
        // Numbers from 10⁻⁴ to 10⁷ are written without an exponent, others with the point after the first digit.
        let is_short = (-4..7).contains(&power);
        let after = if is_short { exponent.min(0).unsigned_abs() } else { places };
        let one = 10_u64.pow(after);
        let whole = if is_short && exponent > 0 { digits * 10_u64.pow(exponent.unsigned_abs()) } else { digits / one };
        write!(f, "{whole}")?;
        if after > 0 {
            write!(f, ".{:0width$}", digits % one, width = after as usize)?;
        }
        if is_short { Ok(()) } else { write!(f, "e{power}") }
    }
}

/// Numbers below this are multiplied by [`SCALE`] before their digits are found.
const TINY: f64 = 1e-280;
const SCALE: f64 = 1e60;
const SCALE_POWER: i32 = 60;

/// Returns the digits of a positive number, without trailing zeros, and the exponent of the power of ten to multiply them by.
fn shortest_digits(rate: f64) -> (u64, i32) {
    // Powers of ten up to 10²² are exact, and so is the comparison below.
    const EXACT: u32 = 22;
    // Still smaller numbers have too few bits for the steps below, and no power of ten that a `f64` can hold.
    if rate < TINY {
        let (digits, exponent) = shortest_digits(rate * SCALE);
        return (digits, exponent - SCALE_POWER);
    }
    let ten_to = |power: u32| (0..power).fold(1.0, |product, _| product * 10.0);
    let mut power = 0_i32;
    while power < 308 && ten_to(power.unsigned_abs() + 1) <= rate {
        power += 1;
    }
    while ten_to(power.unsigned_abs()) * rate < 1.0 {
        power -= 1;
    }
    let mut places = 0;
    loop {
        let exponent = power - places;
        let scale = ten_to(exponent.unsigned_abs());
        let scaled = if exponent > 0 { rate / scale } else { rate * scale };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and of 16 digits")]
        let mut digits = (scaled + 0.5) as u64;
        let displayed = if exponent > 0 { digits as f64 * scale } else { digits as f64 / scale };
        let error = (displayed - rate).abs();
        if error == 0.0 || places == 15 || exponent.unsigned_abs() > EXACT && error < rate * 1e-8 {
            let mut exponent = exponent;
            while digits >= 10 && digits.is_multiple_of(10) {
                (digits, exponent) = (digits / 10, exponent + 1);
            }
            return (digits.max(1), exponent);
        }
        places += 1;
    }
}

/// Rounds a rate between 10⁻²⁰ and 1 up to three digits.
pub(super) fn round_up_rate(rate: f64) -> f64 {
    let mut scale = 1.0;
    while rate * scale < 100.0 {
        scale *= 10.0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "three digits")]
    let digits = (rate * scale) as u32;
    let below = f64::from(digits) / scale;
    if below < rate { f64::from(digits + 1) / scale } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::ToString as _};

    #[test]
    fn rates_are_short() {
        let rates = [0.001, 1e-5, 2.0, -0.5, 1e300, f64::NAN, f64::NEG_INFINITY, 0.0].map(|rate| Rate(rate).to_string());
        assert_eq!(rates, ["0.001", "1e-5", "2", "-0.5", "1e300", "NaN", "-inf", "0"]);
        let rates = [f64::MIN_POSITIVE, -2e-301, 1.5e-290, f64::MAX].map(|rate| Rate(rate).to_string());
        assert_eq!(rates, ["2.22507386e-308", "-2e-301", "1.5e-290", "1.79769313e308"]);
        let rates = [0.999, 0.999_999_999_999_999, 1.5e-12, 1.000_01, 123.25, 1e7, 1.25e9, 0.000_25, 1200.0].map(Rate);
        let texts = ["0.999", "0.999999999999999", "1.5e-12", "1.00001", "123.25", "1e7", "1.25e9", "0.00025", "1200"];
        assert_eq!(rates.map(|rate| rate.to_string()), texts);
    }

    /// Rates with few digits are parsed back exactly; others differ by less than 10⁻⁸ of their value.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn displayed_rates_are_parsed_back() {
        for exponent in -22..15 {
            for digits in [1, 2, 9, 12, 99, 101, 12_345, 999_999] {
                let rate: f64 = format!("{digits}e{exponent}").parse().expect("a number");
                assert_eq!(Rate(rate).to_string().parse(), Ok(rate), "{rate:e}");
                assert!(Rate(rate).to_string().len() <= format!("{rate}").len().min(format!("{rate:e}").len()) + 5, "{rate:e}");
            }
        }
        for rate in (0..7150).map(|n| 1e-300 * 1.22_f64.powi(n)).chain((0..53).map(|n| f64::MIN_POSITIVE * 0.5_f64.powi(n))) {
            let parsed: f64 = Rate(rate).to_string().parse().expect("a number");
            let is_near = (parsed / rate - 1.0).abs() < 1e-8 || rate.is_infinite() && parsed.is_infinite();
            assert!(is_near, "{rate:e}: {parsed:e}");
        }
    }

    #[test]
    fn a_lowest_rate_is_rounded_up_to_three_digits() {
        for (rate, rounded) in
            [(1.776e-9, 1.78e-9), (1.774e-9, 1.78e-9), (1.78e-9, 1.78e-9), (9.991e-10, 1e-9), (0.9982, 0.999), (0.5, 0.5)]
        {
            assert_eq!(Rate(round_up_rate(rate)).to_string(), Rate(rounded).to_string(), "{rate:e}");
        }
        for n in 1..3000 {
            let rate = 1e-12 * 1.009_f64.powi(n);
            let rounded = round_up_rate(rate);
            assert!(rounded >= rate && rounded <= rate * 1.01, "{rate:e}: {rounded:e}");
            assert!(Rate(rounded).to_string().len() <= 8, "{rate:e}: {rounded:e}");
        }
    }
}
