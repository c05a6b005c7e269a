//! Lists and ranges of numbers: `2,4`, `6..20`, `1e3..1e6:x10`.
//!
//! A range includes both of its ends, also where its step does not reach the upper one. The parser of a single number, which
//! the option has anyway, reads each part.

use std::fmt::Display;

/// More values than any experiment has time for.
const MOST_VALUES: usize = 1000;

/// Values of an option, sorted as they were given, each once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// From one value of a range to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Adds this.
    Plus(f64),
    /// Multiplies by this.
    Times(f64),
}

/// Reads a list of numbers and ranges, separated by commas. `one` reads a number, `step` is that of a range without one, and the
/// numbers within a range are rounded to so many decimal places, so that 0.5 + 4 · 0.05 is 0.7.
pub(crate) fn list<T: PartialEq + Display>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
    step: Step,
    places: i32,
) -> Result<List<T>, String> {
    let mut values: Vec<T> = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let of_part = match part.split_once("..") {
            None => vec![number(part, &one)?],
            Some((from, rest)) => range(part, from, rest, &one, step, places)?,
        };
        for value in of_part {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    if values.len() > MOST_VALUES {
        return Err(too_many(text));
    }
    Ok(List(values))
}

fn range<T: PartialEq + Display>(
    part: &str,
    from: &str,
    rest: &str,
    one: &impl Fn(&str) -> Result<T, String>,
    step: Step,
    places: i32,
) -> Result<Vec<T>, String> {
    let (to, step) = match rest.split_once(':') {
        None => (rest, step),
        Some((to, text)) => (to, read_step(part, text)?),
    };
    let (from, to) = (number(from, one)?, number(to, one)?);
    let float = |value: &T| value.to_string().parse::<f64>().unwrap_or(f64::NAN);
    let (first, last) = (float(&from), float(&to));
    if first > last {
        return Err(format!("the range {part} begins above its end; give {to}..{from}"));
    }
    let unit = 10_f64.powi(places);
    let mut values = vec![from];
    for n in 1_u32.. {
        let next = match step {
            Step::Plus(step) => first + f64::from(n) * step,
            Step::Times(factor) => first * factor.powi(n.cast_signed()),
        };
        // The last step may be a rounding error short of the end.
        if next >= last - step_size(step, first, n) * 1e-6 {
            break;
        }
        // Nothing times a factor is nothing, however often.
        if !next.is_finite() {
            return Err(too_many(part));
        }
        // Below 1, a factor may give the same whole number again.
        let value = one(&((next * unit).round() / unit).to_string())?;
        if values.last() != Some(&value) {
            values.push(value);
        }
        if values.len() > MOST_VALUES || n > 1_000_000 {
            return Err(too_many(part));
        }
    }
    if values.last() != Some(&to) {
        values.push(to);
    }
    Ok(values)
}

/// How far apart two values of a range are.
fn step_size(step: Step, first: f64, n: u32) -> f64 {
    match step {
        Step::Plus(step) => step,
        Step::Times(factor) => first * factor.powi(n.cast_signed()) * (1.0 - 1.0 / factor),
    }
}

/// The step of a range: a number to add, or `x` and a number to multiply by.
fn read_step(part: &str, text: &str) -> Result<Step, String> {
    let wrong = || {
        format!(
            "the step '{text}' of the range {part} is not one; give a number above 0 to add, as in 6..20:2, or x and a number above 1 \
             to multiply by, as in 1000..1000000:x10"
        )
    };
    let (factor, digits) = text.trim().strip_prefix('x').map_or((false, text.trim()), |digits| (true, digits));
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    match factor {
        true if number.is_finite() && number > 1.0 => Ok(Step::Times(number)),
        false if number.is_finite() && number > 0.0 => Ok(Step::Plus(number)),
        _ => Err(wrong()),
    }
}

fn number<T>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    one(text.trim()).map_err(|error| {
        if text.trim().is_empty() {
            format!("a number is missing: {error}")
        } else {
            format!("'{}' is not one: {error}", text.trim())
        }
    })
}

fn too_many(text: &str) -> String {
    format!("{text} has more than {MOST_VALUES} values; give a larger step, as in 0..1000000:100000 or 1..1000000:x10")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers;

    fn bits(text: &str) -> Result<Vec<u32>, String> {
        list(text, numbers::bits, Step::Plus(1.0), 0).map(|list| list.0)
    }

    fn loads(text: &str) -> Result<Vec<f64>, String> {
        list(text, numbers::rate, Step::Plus(0.05), 9).map(|list| list.0)
    }

    fn items(text: &str) -> Result<Vec<u64>, String> {
        list(text, numbers::count, Step::Times(10.0), 0).map(|list| list.0)
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(bits("6..9"), Ok(vec![6, 7, 8, 9]));
        assert_eq!(bits("6..12:2"), Ok(vec![6, 8, 10, 12]));
        assert_eq!(bits("6..13:4"), Ok(vec![6, 10, 13]));
        assert_eq!(bits("1..16:x2"), Ok(vec![1, 2, 4, 8, 16]));
        assert_eq!(bits("7..7"), Ok(vec![7]));
        assert_eq!(loads("0.5..0.7"), Ok(vec![0.5, 0.55, 0.6, 0.65, 0.7]));
        assert_eq!(loads("0.5..0.97:0.2"), Ok(vec![0.5, 0.7, 0.9, 0.97]));
        assert_eq!(loads("0.1..0.3:0.1"), Ok(vec![0.1, 0.2, 0.3]));
        assert_eq!(items("1000..1000000"), Ok(vec![1000, 10_000, 100_000, 1_000_000]));
        assert_eq!(items("1000..5000:x2"), Ok(vec![1000, 2000, 4000, 5000]));
        assert_eq!(items("1..4:x1.1"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(items("0..10"), Err(too_many("0..10")));
    }

    #[test]
    fn lists_keep_their_order_and_each_value_once() {
        assert_eq!(bits("4,2, 6..8 ,7"), Ok(vec![4, 2, 6, 7, 8]));
        assert_eq!(loads("0.95"), Ok(vec![0.95]));
    }

    #[test]
    fn mistakes_name_the_part_and_the_remedy() {
        let cases = [
            ("", "a number is missing"),
            ("4,", "a number is missing"),
            ("4,five", "'five' is not one: it takes a whole number"),
            ("..9", "a number is missing"),
            ("6..", "a number is missing"),
            ("20..6", "20..6 begins above its end; give 6..20"),
            ("6..20:0", "the step '0' of the range 6..20:0"),
            ("6..20:-1", "above 0"),
            ("6..20:x1", "above 1"),
            ("6..20:NaN", "the step 'NaN'"),
            ("6..20:two", "as in 6..20:2"),
            ("6...20", "'.20' is not one"),
            ("0..4000000000", "more than 1000 values; give a larger step"),
            ("0..1:0.000000000001", "more than 1000 values"),
        ];
        for (text, part) in cases {
            let error = bits(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        // The remedies work.
        assert!(bits("6..20").is_ok() && items("0..1000000:100000").is_ok() && items("1..1000000:x10").is_ok());
    }
}
