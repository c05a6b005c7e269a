//! Numbers as people write them: `1000000`, `1_000_000`, `1e6`, `1M`; `0.1%`, `1/1000`; `64KiB`. All of it is exact: only the
//! rate that comes out is rounded, once, to the nearest `f64`.

use std::{fmt, num::NonZeroUsize};

use koel::TableKind;

/// As many as two of the largest buckets have slots.
const MAX_COPIES: u32 = 2 * *TableKind::Single.bucket_sizes().end();

/// More threads than any machine has cores.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// A larger share of the items is a mistake: 50 instead of 50%.
const MOST_HEADROOM: u64 = 10;

/// A million seconds.
const MOST_NANOSECONDS: f64 = 1e15;

/// Whole numbers up to this one are exact as `f64`.
const MOST_EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// A number of items.
pub(crate) fn capacity(text: &str) -> Result<usize, String> {
    whole(text, || format!("it takes a whole number from 0 to {}, such as 1000000, 1e6 or 1M", usize::MAX))
}

/// A number of items, or a range of them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Items {
    pub(crate) now: usize,
    /// The upper end of a range: the most that there will ever be.
    pub(crate) most: Option<usize>,
}

/// A number of items, or two with `..` between them.
pub(crate) fn items(text: &str) -> Result<Items, String> {
    let takes = || {
        let one = format!("it takes a whole number from 0 to {}, such as 1000000, 1e6 or 1M", usize::MAX);
        format!("{one}; or two of them as a range, such as 1M..10M")
    };
    let Some((now, most)) = text.split_once("..") else {
        return whole(text, takes).map(|now| Items { now, most: None });
    };
    let (now, most) = (whole(now, takes)?, whole(most, takes)?);
    if now > most {
        return Err(format!("it goes from {now} down to {most}; give {most}..{now}"));
    }
    Ok(Items { now, most: Some(most) })
}

/// A share of a number, exactly.
#[derive(Clone, Copy)]
pub(crate) struct Share {
    part: u64,
    of: u64,
}

impl Share {
    /// A number and this share of it, rounded up. `None` if that is too large a number.
    pub(crate) fn added_to(self, number: usize) -> Option<usize> {
        let number = number as u128;
        let more = (number * u128::from(self.part)).div_ceil(self.of.into());
        usize::try_from(number.checked_add(more)?).ok()
    }
}

/// A share to add to a number of items: a percentage, a decimal or a ratio.
pub(crate) fn headroom(text: &str) -> Result<Share, String> {
    let headroom = share(text)?;
    if u128::from(headroom.part) > u128::from(MOST_HEADROOM) * u128::from(headroom.of) {
        return Err(format!("it is more than {MOST_HEADROOM} times the items; give 50% or 0.5 for half of them"));
    }
    Ok(headroom)
}

/// A share of a number of items: a percentage, a decimal or a ratio.
pub(crate) fn share(text: &str) -> Result<Share, String> {
    let share = match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => Decimal::only(percent.trim_end()).and_then(|number| number.shifted(-2).share()),
        (None, Some((one, of))) => {
            let number = |text| u64::try_from(Decimal::with_letter(text)?.integer()?).ok();
            number(one).zip(number(of).filter(|&of| of > 0)).map(|(part, of)| Share { part, of })
        }
        (None, None) => Decimal::only(text).and_then(|number| number.share()),
    };
    share.ok_or_else(|| String::from("it takes a share of up to 15 digits, such as 50%, 0.5 or 1/2"))
}

/// A share of the whole: at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part(f64);

impl Part {
    pub(crate) const HALF: Self = Self(0.5);

    pub(crate) fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&koel_lab::percent(self.0, 1))
    }
}

/// A share of at most 1.
pub(crate) fn part(text: &str) -> Result<Part, String> {
    let Share { part, of } = share(text)?;
    if part > of {
        return Err(String::from("it is more than all; give at most 100%"));
    }
    Ok(Part(part as f64 / of as f64))
}

/// A time with its unit, in nanoseconds; 0 needs none.
pub(crate) fn nanoseconds(text: &str) -> Result<f64, String> {
    let time = Decimal::first(text).and_then(|(number, unit)| {
        let power = match unit.trim_start() {
            "ns" => 0,
            "" if number.digits.is_empty() => 0,
            "us" | "\u{b5}s" | "\u{3bc}s" => 3,
            "ms" => 6,
            "s" => 9,
            _ => return None,
        };
        Some(number.shifted(power).float())
    });
    time.filter(|time| *time <= MOST_NANOSECONDS)
        .ok_or_else(|| String::from("it takes a time with its unit, from 0ns to 1000000s, such as 80ns, 100us, 5ms or 0.1s"))
}

/// A number of anything.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    whole(text, || format!("it takes a whole number from 0 to {}, such as 1000000, 1e6 or 1M", u64::MAX))
}

/// A number of bits; the library knows the limits of each table.
pub(crate) fn bits(text: &str) -> Result<u32, String> {
    whole(text, || String::from("it takes a whole number from 2 to 32, such as 13"))
}

/// A number of slots; the library knows the limits of each table.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    whole(text, || String::from("it takes a whole number from 1 to 16, such as 4"))
}

/// A number of copies of one item.
pub(crate) fn copies(text: &str) -> Result<u32, String> {
    let takes = || format!("it takes a whole number from 1 to {MAX_COPIES}, the room in two buckets of 16 slots");
    whole(text, takes).and_then(|copies| if (1..=MAX_COPIES).contains(&copies) { Ok(copies) } else { Err(takes()) })
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let takes = || format!("it takes a whole number from 1 to {MOST_THREADS}, such as 2");
    let threads = NonZeroUsize::new(whole(text, takes)?);
    threads.filter(|&threads| threads <= MOST_THREADS).ok_or_else(takes)
}

/// A whole number of a type; `takes` says what the option takes.
pub(crate) fn whole<T: TryFrom<u128>>(text: &str, takes: impl FnOnce() -> String) -> Result<T, String> {
    let Some(number) = Decimal::with_letter(text) else { return Err(takes()) };
    if let Some((below, above)) = number.neighbours() {
        return Err(format!("it is not a whole number; the nearest are {below} and {above}"));
    }
    number.integer().and_then(|number| T::try_from(number).ok()).ok_or_else(takes)
}

/// A seed: a whole number, or hexadecimal digits.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let takes = || format!("it takes a whole number from 0 to {}, or 0x and up to 16 hexadecimal digits", u64::MAX);
    let Some(digits) = text.strip_prefix("0x") else { return whole(text, takes) };
    let digits = grouped(digits, char::is_ascii_hexdigit).filter(|(_, rest)| rest.is_empty());
    digits.and_then(|(digits, _)| u64::from_str_radix(&digits, 16).ok()).ok_or_else(takes)
}

/// A false-positive rate; the library knows its limits.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => Decimal::only(percent.trim_end()).map(|number| number.shifted(-2).float()),
        (None, Some((one, of))) => ratio(one, of),
        // Also what only the library can refuse: "-0.5", "NaN".
        (None, None) => text.parse().ok().or_else(|| Decimal::only(text).map(|number| number.float())),
    };
    rate.ok_or_else(|| String::from("it takes a number between 0 and 1, such as 0.001, 1e-3, 0.1% or 1/1000"))
}

/// The quotient of two whole numbers that are exact as `f64`.
fn ratio(one: &str, of: &str) -> Option<f64> {
    let exact = |text| Decimal::with_letter(text)?.integer().filter(|number| *number <= MOST_EXACT);
    let (one, of) = (exact(one)?, exact(of)?);
    (of > 0).then(|| one as f64 / of as f64)
}

/// A number of bytes, with an optional unit, rounded down to whole bytes.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    in_bytes(text).ok_or_else(|| {
        format!(
            "it takes a number of bytes up to {}, such as 65536, 64KiB, 1.5MB or 1e6; k to T and kB to TB are powers of 1000, \
             KiB to TiB of 1024",
            usize::MAX
        )
    })
}

fn in_bytes(text: &str) -> Option<usize> {
    let (number, unit) = Decimal::first(text)?;
    let unit: u128 = match unit.trim_start().to_ascii_lowercase().as_str() {
        // There are no fractions of a byte.
        "" | "b" if number.neighbours().is_some() => return None,
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        unit => 10_u128.pow(power(unit.strip_suffix('b').unwrap_or(unit))?),
    };
    let bytes = number.digits().checked_mul(unit)?;
    let scale = 10_u128.checked_pow(number.exponent.unsigned_abs());
    let bytes = match scale {
        _ if bytes == 0 => 0,
        Some(scale) if number.exponent >= 0 => bytes.checked_mul(scale)?,
        None if number.exponent >= 0 => return None,
        Some(scale) => bytes / scale,
        None => 0,
    };
    usize::try_from(bytes).ok()
}

/// The power of ten that a letter stands for, in either case: there is nothing that `m` could be confused with.
fn power(letter: &str) -> Option<u32> {
    match letter.to_ascii_lowercase().as_str() {
        "k" => Some(3),
        "m" => Some(6),
        "g" => Some(9),
        "t" => Some(12),
        _ => None,
    }
}

/// The digits at the start of a text, without the underscores between them, and what follows. None if there is no digit, or an
/// underscore that is not between two of them.
fn grouped(text: &str, is_digit: fn(&char) -> bool) -> Option<(String, &str)> {
    let end = text.find(|c| c != '_' && !is_digit(&c)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let is_right = digits.split('_').all(|group| !group.is_empty());
    is_right.then(|| (digits.replace('_', ""), rest))
}

/// A power of ten at the start of a text, and what follows.
fn signed(text: &str) -> Option<(i32, &str)> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => (-1, text),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (power, rest) = grouped(text, char::is_ascii_digit)?;
    let power = power.parse::<i32>().ok().filter(|&power| power <= MOST_EXPONENT)?;
    Some((sign * power, rest))
}

/// `digits` · 10^`exponent`, where the last of at most 38 digits is not 0, or there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decimal {
    digits: String,
    exponent: i32,
}

/// Powers of ten beyond this one are of no use to anybody, and sums of them are no problem.
const MOST_EXPONENT: i32 = 10_000;

impl Decimal {
    /// The number at the start of a text, and what follows.
    fn first(text: &str) -> Option<(Self, &str)> {
        let decimal = |text| grouped(text, char::is_ascii_digit);
        let (whole, rest) = decimal(text)?;
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => decimal(rest)?,
            None => (String::new(), rest),
        };
        let (exponent, rest) = match rest.strip_prefix(['e', 'E']) {
            Some(rest) => signed(rest)?,
            None => (0, rest),
        };
        let all = whole + &fraction;
        let digits = all.trim_start_matches('0').trim_end_matches('0').to_owned();
        let zeros = all.len() - all.trim_end_matches('0').len();
        let places = i32::try_from(zeros).ok()? - i32::try_from(fraction.len()).ok()?;
        let is_short = digits.len() <= 38;
        is_short.then_some((Self { digits, exponent: exponent.checked_add(places)? }, rest))
    }

    /// A text that is a number and nothing else.
    fn only(text: &str) -> Option<Self> {
        Self::first(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
    }

    /// A text that is a number and perhaps a letter.
    fn with_letter(text: &str) -> Option<Self> {
        match Self::first(text)? {
            (number, "") => Some(number),
            (number, letter) => Some(number.shifted(i32::try_from(power(letter)?).ok()?)),
        }
    }

    /// The number times a power of ten.
    fn shifted(self, by: i32) -> Self {
        Self { exponent: self.exponent.saturating_add(by), ..self }
    }

    /// All digits as one number: 38 fit.
    fn digits(&self) -> u128 {
        self.digits.parse().unwrap_or_default()
    }

    /// The whole number, if it is one and is not too large.
    fn integer(&self) -> Option<u128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let power = u32::try_from(self.exponent).ok()?;
        self.digits().checked_mul(10_u128.checked_pow(power)?)
    }

    /// The whole numbers below and above; none if it is a whole number itself.
    fn neighbours(&self) -> Option<(u128, u128)> {
        if self.digits.is_empty() || self.exponent >= 0 {
            return None;
        }
        let below = 10_u128.checked_pow(self.exponent.unsigned_abs()).map_or(0, |scale| self.digits() / scale);
        Some((below, below + 1))
    }

    /// The number as a share of 1, if both are whole numbers of 64 bits.
    fn share(&self) -> Option<Share> {
        let power = self.exponent.min(0).unsigned_abs();
        let part = Self { digits: self.digits.clone(), exponent: self.exponent.max(0) }.integer()?;
        Some(Share { part: part.try_into().ok()?, of: 10_u64.checked_pow(power)? })
    }

    /// The nearest `f64`.
    fn float(&self) -> f64 {
        // It is a number, so this never fails.
        format!("0{}e{}", self.digits, self.exponent).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests;
