//! Numbers as people write them: `1000000`, `1_000_000`, `1e6`, `1M`; `0.1%`, `1/1000`; `64KiB`; `100us`. Whole numbers are exact,
//! to 28 digits; rates, shares and times are rounded once, to the nearest `f64`.

use std::fmt;

use koel::TableKind;
use rust_decimal::{Decimal, prelude::ToPrimitive as _};

/// As many as two of the largest buckets have slots.
pub(crate) const MAX_COPIES: u32 = 2 * *TableKind::Single.bucket_sizes().end();

/// More threads than any machine has cores.
const MOST_THREADS: usize = 4096;

/// A million seconds.
const MOST_NANOSECONDS: f64 = 1e15;

/// Whole numbers up to this one are exact as `f64`.
const MOST_EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// Letters and the powers of ten that they stand for, in either case: there is nothing that `m` could be confused with.
const LETTERS: [(&str, i32); 5] = [("", 0), ("k", 3), ("m", 6), ("g", 9), ("t", 12)];

/// The decimal number that a text is, times a power of ten, as both `Decimal` and `f64` read it. None if there is no digit on one
/// side of a point, or of an underscore.
fn scientific(text: &str, shift: i32) -> Option<String> {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let power = power.parse::<i32>().ok()?.checked_add(shift)?;
    let mut groups = digits.splitn(2, '.').flat_map(|part| part.split('_'));
    let is_right = groups.all(|group| !group.is_empty() && group.bytes().all(|digit| digit.is_ascii_digit()));
    is_right.then(|| format!("{}e{power}", digits.replace('_', "")))
}

fn decimal(text: &str, shift: i32) -> Option<Decimal> {
    Decimal::from_scientific(&scientific(text, shift)?).ok()
}

fn float(text: &str, shift: i32) -> Option<f64> {
    scientific(text, shift)?.parse().ok()
}

/// A number and the letters after it.
fn with_unit(text: &str) -> (&str, String) {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    (number, unit.to_lowercase())
}

/// The power of ten that a unit stands for.
fn power(unit: &str, units: &[(&str, i32)]) -> Option<i32> {
    units.iter().find(|(name, _)| *name == unit).map(|&(_, power)| power)
}

/// A number and perhaps a letter.
fn with_letter(text: &str) -> Option<Decimal> {
    let (number, letter) = with_unit(text);
    decimal(number, power(&letter, &LETTERS)?)
}

/// A whole number of a type; `takes` says what the option takes.
pub(crate) fn whole<T: TryFrom<u128>>(text: &str, takes: impl FnOnce() -> String) -> Result<T, String> {
    let Some(number) = with_letter(text) else { return Err(takes()) };
    let below = number.floor();
    if below != number {
        return Err(format!("it is not a whole number; the nearest are {below} and {}", below + Decimal::ONE));
    }
    number.to_u128().and_then(|number| T::try_from(number).ok()).ok_or_else(takes)
}

/// A number of anything.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    whole(text, || format!("it takes a whole number from 0 to {}, such as 1000000, 1e6 or 1M", u64::MAX))
}

/// A number of items.
pub(crate) fn capacity(text: &str) -> Result<usize, String> {
    whole(text, || format!("it takes a whole number from 0 to {}, such as 1000000, 1e6 or 1M", usize::MAX))
}

/// A number of bits; the library knows the limits of each table.
pub(crate) fn bits(text: &str) -> Result<u32, String> {
    whole(text, || String::from("it takes a whole number from 2 to 32, such as 13"))
}

/// A number of slots; the library knows the limits of each table.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    whole(text, || String::from("it takes a whole number from 1 to 16, such as 4"))
}

/// A whole number from 1 to some other.
pub(crate) fn within(text: &str, most: usize, such_as: &str) -> Result<usize, String> {
    let takes = || format!("it takes a whole number from 1 to {most}, {such_as}");
    whole(text, takes).and_then(|number| if (1..=most).contains(&number) { Ok(number) } else { Err(takes()) })
}

/// A number of copies of one item.
pub(crate) fn copies(text: &str) -> Result<u32, String> {
    let copies = within(text, MAX_COPIES as usize, "the room in two buckets of 16 slots")?;
    Ok(u32::try_from(copies).unwrap_or(MAX_COPIES))
}

/// A number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    within(text, MOST_THREADS, "such as 2")
}

/// A seed: a whole number, or hexadecimal digits.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let takes = || format!("it takes a whole number from 0 to {}, or 0x and up to 16 hexadecimal digits", u64::MAX);
    let Some(digits) = text.strip_prefix("0x") else { return whole(text, takes) };
    let is_right = digits.split('_').all(|group| !group.is_empty() && !group.starts_with('+'));
    let seed = u64::from_str_radix(&digits.replace('_', ""), 16);
    seed.ok().filter(|_| is_right).ok_or_else(takes)
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

/// A share of a number of items or of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

impl Share {
    /// A number and this share of it, rounded up. `None` if that is too large a number.
    pub(crate) fn added_to(self, number: usize) -> Option<usize> {
        // A product that should be a whole number may be a rounding error above it.
        let more = self.0 * number as f64 * (1.0 - 4.0 * f64::EPSILON);
        more.ceil().to_usize()?.checked_add(number)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&koel_lab::percent(self.0, 1))
    }
}

/// A percentage, a ratio or a decimal, to the nearest `f64`.
fn fraction(text: &str) -> Option<f64> {
    match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => float(percent.trim_end(), -2),
        (None, Some((one, of))) => {
            // The quotient of two whole numbers that are exact as `f64`.
            let exact = |text| with_letter(text).filter(Decimal::is_integer)?.to_u128().filter(|number| *number <= MOST_EXACT);
            exact(one).zip(exact(of).filter(|&of| of > 0)).map(|(one, of)| one as f64 / of as f64)
        }
        (None, None) => float(text, 0),
    }
}

fn share(text: &str, most: f64, too_much: &str) -> Result<Share, String> {
    match fraction(text) {
        None => Err(String::from("it takes a share, such as 50%, 0.5 or 1/2")),
        Some(share) if share > most => Err(String::from(too_much)),
        Some(share) => Ok(Share(share)),
    }
}

/// A share to add to a number of items. A larger one than ten times is a mistake: 50 instead of 50%.
pub(crate) fn headroom(text: &str) -> Result<Share, String> {
    share(text, 10.0, "it is more than 10 times the items; give 50% or 0.5 for half of them")
}

/// A share of the whole: at most 1.
pub(crate) fn part(text: &str) -> Result<Share, String> {
    share(text, 1.0, "it is more than all; give at most 100%")
}

/// A false-positive rate; the library knows its limits.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    // Also what only the library can refuse: "-0.5", "NaN".
    let rate = fraction(text).or_else(|| text.parse().ok());
    rate.ok_or_else(|| String::from("it takes a number between 0 and 1, such as 0.001, 1e-3, 0.1% or 1/1000"))
}

/// A time with its unit, in nanoseconds; 0 needs none.
pub(crate) fn nanoseconds(text: &str) -> Result<f64, String> {
    let (number, unit) = with_unit(text);
    let units = [("ns", 0), ("us", 3), ("\u{b5}s", 3), ("\u{3bc}s", 3), ("ms", 6), ("s", 9)];
    let time = match power(&unit, &units) {
        Some(power) => float(number.trim_end(), power),
        None => float(text, 0).filter(|time| *time <= 0.0),
    };
    time.filter(|time| *time <= MOST_NANOSECONDS)
        .ok_or_else(|| String::from("it takes a time with its unit, from 0ns to 1000000s, such as 80ns, 100us, 5ms or 0.1s"))
}

/// A number of bytes, with an optional unit, rounded down to whole bytes.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let (number, unit) = with_unit(text);
    let number = number.trim_end();
    let bytes = match unit.as_str() {
        // There are no fractions of a byte.
        "" | "b" => decimal(number, 0).filter(Decimal::is_integer),
        unit => match power(unit.strip_suffix("ib").unwrap_or_default(), &LETTERS) {
            Some(power @ 1..) => {
                decimal(number, 0).and_then(|number| number.checked_mul(Decimal::from(1_u64 << (power / 3 * 10))))
            }
            _ => power(unit.strip_suffix('b').unwrap_or(unit), &LETTERS).and_then(|power| decimal(number, power)),
        },
    };
    bytes.and_then(|bytes| bytes.floor().to_usize()).ok_or_else(|| {
        format!(
            "it takes a number of bytes up to {}, such as 65536, 64KiB, 1.5MB or 1e6; k to T and kB to TB are powers of 1000, \
             KiB to TiB of 1024",
            usize::MAX
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    #[test]
    fn whole_numbers_in_every_notation() {
        for (number, texts) in [
            (0, "0 0e9"),
            (1, "0.001k"),
            (7, "007"),
            (15, "1500e-2"),
            (64_000, "64k 64K"),
            (1_000_000, "1000000 1_000_000 1e6 1E+6 1M 1m 1e3k"),
            (1_000_500, "1_000.5k"),
            (2_500_000, "2.5M"),
            (4_000_000_000, "4G"),
            (1_250_000_000_000, "1.25T"),
            (u64::MAX, "18446744073709551615 18.446744073709551615e18"),
        ] {
            for text in texts.split(' ') {
                assert_eq!(count(text), Ok(number), "{text}");
            }
        }
        // A float would make 9007199254740992 of it.
        assert_eq!(count("9007199.254740993G"), Ok(9_007_199_254_740_993));
    }

    #[test]
    fn what_is_no_number_is_told_what_is() {
        let digits = "9".repeat(60);
        let wrong = "-1 +1 few 1,5 1,000 1. .5 _1 1_ 1__0 1_.5 1e 1e- 1e_6 e6 1kk 1kB 1Mi 1P 0x10 1% 1e99 1e99999999999 \
                     18446744073709551616 18.5e18";
        let wrong = wrong.split(' ').chain(["", "1 000", "1 M", &digits]);
        for text in wrong {
            let takes = "it takes a whole number from 0 to 18446744073709551615, such as 1000000, 1e6 or 1M";
            assert_eq!(count(text).as_ref().map_err(String::as_str), Err(takes), "{text}");
        }
    }

    #[test]
    fn a_fraction_has_two_neighbours_that_work() {
        for (text, below, above) in
            [("1.5", 1, 2), ("0.1", 0, 1), ("1.2345k", 1234, 1235), ("1e-20", 0, 1), ("2.0000001M", 2_000_000, 2_000_001)]
        {
            assert_eq!(count(text), Err(format!("it is not a whole number; the nearest are {below} and {above}")), "{text}");
            assert_eq!([below, above].map(|near| count(&near.to_string())), [Ok(below), Ok(above)]);
        }
    }

    #[test]
    fn small_numbers_have_limits() {
        assert_eq!([copies("1"), copies("32"), bits("13"), slots("1_6")], [Ok(1), Ok(32), Ok(13), Ok(16)]);
        assert_eq!(threads("4k"), Ok(4000));
        assert!(copies("0").is_err_and(|message| message.contains("from 1 to 32")));
        assert!(copies("33").is_err_and(|message| message.contains("from 1 to 32")));
        for wrong in ["0", "4097", "4.1k"] {
            assert!(threads(wrong).is_err_and(|message| message.contains("from 1 to 4096")), "{wrong}");
        }
        assert!(bits("4294967296").is_err_and(|message| message.contains("from 2 to 32")));
    }

    #[test]
    fn seeds_are_decimal_or_hexadecimal() {
        for (text, number) in [("1337", 1337), ("1e3", 1000), ("0xFFFFFFFFFFFFFFFF", u64::MAX), ("0xdead_beef", 0xdead_beef)] {
            assert_eq!(seed(text), Ok(number), "{text}");
        }
        for wrong in ["", "0x", "0x+1", "0x_1", "-1", "18446744073709551616", "0x10000000000000000", "0x1k", "one"] {
            assert!(seed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_numbers_percentages_or_ratios() {
        let cases = [
            ("0.001", 0.001),
            ("1e-3", 0.001),
            ("0.1%", 0.001),
            ("0.1 %", 0.001),
            ("1e-1%", 0.001),
            ("1/1000", 0.001),
            ("1/1k", 0.001),
            ("0.000_1", 0.000_1),
            ("100%", 1.0),
            ("0%", 0.0),
            // To the nearest f64: dividing by 100 would be wrong in the last bit.
            ("0.07%", 0.0007),
            ("0.55%", 0.0055),
            ("1/3", 1.0 / 3.0),
            (".5", 0.5),
            ("-0.5", -0.5),
            ("2", 2.0),
            ("inf", f64::INFINITY),
        ];
        for (text, number) in cases {
            assert_eq!(rate(text).map(f64::to_bits), Ok(f64::to_bits(number)), "{text}");
        }
        assert!(rate("NaN").is_ok_and(f64::is_nan));
        for wrong in
            ["", "%", "few", "1,5", "0,1%", "1/0", "1/", "/2", "1.5/3k/2", "1/1.5", "1/9007199254740993", "1%%", "-5%", "1k"]
        {
            let takes = "it takes a number between 0 and 1, such as 0.001, 1e-3, 0.1% or 1/1000";
            assert_eq!(rate(wrong), Err(String::from(takes)), "{wrong}");
        }
    }

    #[test]
    fn items_are_a_number_or_a_range() {
        let read = |text| items(text).map(|items| (items.now, items.most));
        assert_eq!(read("1M"), Ok((1_000_000, None)));
        assert_eq!(read("1M..10M"), Ok((1_000_000, Some(10_000_000))));
        assert_eq!(read("1.5k..2e3"), Ok((1500, Some(2000))));
        assert_eq!(read("5..5"), Ok((5, Some(5))));
        assert_eq!(read("10..5"), Err(String::from("it goes from 10 down to 5; give 5..10")));
        for wrong in ["..", "1..", "..1", "1...2", "1..2..3", "1-2", "-1..2"] {
            assert!(read(wrong).is_err_and(|message| message.contains("whole number from 0")), "{wrong}");
        }
    }

    #[test]
    fn shares_are_added_exactly() {
        for (text, number, sum) in [
            ("50%", 1000, 1500),
            ("50 %", 1001, 1502),
            ("0.5", 1000, 1500),
            ("1/2", 1000, 1500),
            ("0%", 7, 7),
            ("200%", 7, 21),
            ("0.1%", 1, 2),
            ("7%", 100, 107),
            ("33.3%", 1_000_000_000_000_000, 1_333_000_000_000_000),
            ("1/3", 10, 14),
        ] {
            assert_eq!(headroom(text).map(|share| share.added_to(number)), Ok(Some(sum)), "{text} of {number}");
        }
        assert_eq!(headroom("200%").map(|share| share.added_to(usize::MAX / 2)), Ok(None));
        assert!(headroom("1000%").is_ok() && headroom("1001%").is_err_and(|message| message.contains("10 times the items")));
        assert!(part("100%").is_ok() && part("1.01").is_err_and(|message| message.contains("at most 100%")));
        for wrong in ["", "-5%", "half", "1/0", "50%%", "1,5%"] {
            assert!(part(wrong).is_err_and(|message| message.contains("50%")), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_units() {
        for (number, texts) in [
            (0, "0|1e-20MB|0e6MB"),
            (1, "0.0015kB"),
            (100, "100B"),
            (1500, "1.5e3"),
            (64_000, "64K|64k"),
            (65_536, "65536|65_536|64KiB|64 kib"),
            (1_000_000, "1e6|1M"),
            (1_150_000, "1.15mb"),
            (1_500_000, "1.5MB"),
            (2 << 30, "2GiB"),
        ] {
            for text in texts.split('|') {
                assert_eq!(bytes(text), Ok(number), "{text}");
            }
        }
        #[cfg(target_pointer_width = "64")]
        for (text, number) in [("3GB", 3_000_000_000), ("3G", 3_000_000_000), ("1.25TB", 1_250_000_000_000), ("8TiB", 8 << 40)] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        let digits = "9".repeat(60);
        let wrong = "-1 +1 1.5 1.5B 1e-1 1.MB .5MB 1.5.5MB 64Ki KiB 1PB 20000000000TB 1e60";
        let wrong = wrong.split(' ').chain(["", &digits]);
        for wrong in wrong {
            assert!(bytes(wrong).is_err_and(|message| message.contains("powers of 1000")), "{wrong}");
        }
    }

    proptest! {
        // Always the same cases.
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever is printed is read back as the same number.
        #[test]
        fn numbers_survive(number: u64, small in 0..1_000_000_000_u64, power in 0..9_usize, parts in 1..u64::from(u32::MAX)) {
            prop_assert_eq!(count(&number.to_string()), Ok(number));
            prop_assert_eq!(count(&format!("{}.{:03}k", number / 1000, number % 1000)), Ok(number));
            prop_assert_eq!(count(&format!("{small}e{power}")), Ok(small * 10_u64.pow(u32::try_from(power)?)));
            prop_assert_eq!(bytes(&format!("{small}KiB")), Ok(usize::try_from(small)? * 1024));
            prop_assert_eq!(seed(&format!("{number:#x}")), Ok(number));
            prop_assert_eq!(rate(&format!("1/{parts}")), Ok(1.0 / parts as f64));
        }

        #[test]
        fn rates_survive(number: u64, digits in 0..10_000_000_u64) {
            let any = f64::from_bits(number);
            prop_assume!(any.is_finite());
            prop_assert_eq!(rate(&format!("{any:?}")).map(f64::to_bits), Ok(any.to_bits()));
            // The same digits as a percentage and as a share.
            let share = format!("0.00{digits:07}").parse::<f64>();
            prop_assert_eq!(rate(&format!("0.{digits:07}%")).ok(), share.ok());
        }

        #[test]
        fn nothing_that_is_written_panics(text in "[0-9_.eE+%/kMGTiBb -]{0,20}") {
            let _ = (count(&text), rate(&text), bytes(&text), seed(&text), headroom(&text));
        }
    }
}
