//! Shares as people read them.

/// Below this, in per cent, zeros would take more space than an exponent.
const LEAST: f64 = 1e-4;

/// A share in per cent, with so many decimals; a share below 1 % with as many digits as 1 % has.
///
/// Only all is shown as 100 %, and only nothing as 0 %: what would be rounded to 100 is cut, 99.97 % to 99.9 %.
///
/// # Example
/// ```
/// use koel_lab::percent;
/// assert_eq!([percent(0.975, 1), percent(0.9997, 1), percent(1.0, 1)], ["97.5 %", "99.9 %", "100 %"]);
/// assert_eq!([percent(0.000_946, 2), percent(0.000_04, 0), percent(0.0, 2)], ["0.0946 %", "0.004 %", "0 %"]);
/// assert_eq!([percent(0.012_345, 2), percent(1.234e-9, 2), percent(1.5, 2)], ["1.23 %", "1.23e-7 %", "150.00 %"]);
/// ```
#[must_use]
pub fn percent(share: f64, decimals: usize) -> String {
    let percent = 100.0 * share;
    if matches!(share, 0.0 | 1.0) {
        return format!("{percent} %");
    }
    if percent.abs() < LEAST {
        return format!("{percent:.decimals$e} %");
    }
    let (mut places, mut limit) = (decimals, 1.0);
    while percent.abs() < limit {
        (places, limit) = (places + 1, limit / 10.0);
    }
    let text = format!("{percent:.places$}");
    if share < 1.0 && text.starts_with("100") {
        let point = if places > 0 { "." } else { "" };
        return format!("99{point}{} %", "9".repeat(places));
    }
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However near a share is to one of the ends, it is not shown as that, and it is shown as no more digits.
    #[test]
    fn only_all_is_all_and_only_nothing_is_nothing() {
        for decimals in 0..4 {
            assert_eq!([percent(0.0, decimals), percent(1.0, decimals)], ["0 %", "100 %"]);
            for digits in 1..=15 {
                for part in 1..=9 {
                    let little = f64::from(part) * 0.1_f64.powi(digits);
                    let (low, high) = (percent(little, decimals), percent(1.0 - little, decimals));
                    let number =
                        |text: &str| text.strip_suffix(" %").and_then(|text| text.parse::<f64>().ok()).expect("a number");
                    assert!(number(&low) > 0.0 && number(&high) < 100.0, "{low} {high}");
                    // A cut takes less than a unit of the last digit.
                    let unit = 0.1_f64.powi(i32::try_from(decimals).expect("few"));
                    assert!((number(&high) - 100.0 * (1.0 - little)).abs() <= unit, "{high}");
                }
            }
        }
    }
}
