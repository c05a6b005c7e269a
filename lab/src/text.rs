//! Shares and counts as text.

use std::fmt;

/// The least percentage that is formatted without an exponent. Below it, the leading zeros would take more space.
const MIN_WITHOUT_EXPONENT: f64 = 1e-4;

/// Formats a share as a percentage with this many decimals. A share below 1 % has as many significant digits as 1 % has.
///
/// Only 1.0 is shown as 100 %, and only 0.0 as 0 %. A lower share that would round to 100 % is truncated: 99.97 % becomes 99.9 %.
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
    if percent.abs() < MIN_WITHOUT_EXPONENT {
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

/// Formats a count with its noun.
///
/// # Example
/// ```
/// use koel_lab::counted;
/// assert_eq!([counted(1, "item"), counted(2, "query"), counted(0, "key")], ["1 item", "2 queries", "0 keys"]);
/// ```
#[must_use]
pub fn counted<T: Copy + fmt::Display + PartialEq + From<u8>>(number: T, noun: &str) -> String {
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])) {
        _ if number == T::from(1) => format!("{number} {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share close to 0 or 1 is not shown as 0 % or 100 %, and is off by at most one unit of the last decimal.
    #[test]
    fn shares_round_to_0_and_100_percent_only_at_the_ends() {
        for decimals in 0..4 {
            assert_eq!([percent(0.0, decimals), percent(1.0, decimals)], ["0 %", "100 %"]);
            for digits in 1..=15 {
                for part in 1..=9 {
                    let little = f64::from(part) * 0.1_f64.powi(digits);
                    let (low, high) = (percent(little, decimals), percent(1.0 - little, decimals));
                    let number =
                        |text: &str| text.strip_suffix(" %").and_then(|text| text.parse::<f64>().ok()).expect("a number");
                    assert!(number(&low) > 0.0 && number(&high) < 100.0, "{low} {high}");
                    // Truncation changes the number by less than one unit of the last decimal.
                    let unit = 0.1_f64.powi(i32::try_from(decimals).expect("a small number"));
                    assert!((number(&high) - 100.0 * (1.0 - little)).abs() <= unit, "{high}");
                }
            }
        }
    }
}
