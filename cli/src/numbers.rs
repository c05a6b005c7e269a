//! Parsers of numbers as people write them: `1000000`, `1_000_000`, `1e6`, `1M`; `0.1%`, `1/1000`; `64KiB`; `100us`. Whole numbers
//! are exact up to 28 digits; rates, shares and times are rounded once, to the nearest `f64`.

use rust_decimal::{Decimal, prelude::ToPrimitive as _};

/// A limit on threads above the number of cores of any machine.
const MAX_THREADS: usize = 4096;

/// The longest time: a million seconds.
const MAX_NANOSECONDS: f64 = 1e15;

/// The longest time to remember something: 100,000 days.
const MAX_SECONDS: u64 = 100_000 * 24 * 60 * 60;

/// The limit up to which all whole numbers are exact as `f64`.
const MAX_EXACT: u128 = 1 << f64::MANTISSA_DIGITS;

/// A unit's name in lowercase, and its factor. Case is ignored: no unit stands for milli, so `m` is not ambiguous.
type Unit = (&'static str, u64);

const ONE: Unit = ("", 1);
const LETTERS: [Unit; 4] = [("k", 1000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];
const BYTES: [Unit; 4] = [("kb", 1000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("tb", 1_000_000_000_000)];
const BINARY: [Unit; 4] = [("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40)];
const TIMES: [Unit; 6] =
    [("ns", 1), ("us", 1000), ("\u{b5}s", 1000), ("\u{3bc}s", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Returns the number in `text`, times 10 to the power of `shift`, in a notation that both `Decimal` and `f64` parse. Returns
/// `None` unless every point and underscore has digits on both sides.
fn scientific(text: &str, shift: i32) -> Option<String> {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let power = power.parse::<i32>().ok()?.checked_add(shift)?;
    let mut groups = digits.splitn(2, '.').flat_map(|part| part.split('_'));
    let is_valid = groups.all(|group| !group.is_empty() && group.bytes().all(|digit| digit.is_ascii_digit()));
    is_valid.then(|| format!("{}e{power}", digits.replace('_', "")))
}

fn float(text: &str, shift: i32) -> Option<f64> {
    scientific(text, shift)?.parse().ok()
}

/// Parses a number followed by one of `units`, with or without blanks between them.
fn quantity<'a>(text: &str, units: impl IntoIterator<Item = &'a Unit>) -> Option<Decimal> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let unit = unit.to_lowercase();
    let (_, factor) = units.into_iter().find(|(name, _)| *name == unit)?;
    Decimal::from_scientific(&scientific(number.trim_end(), 0)?).ok()?.checked_mul(Decimal::from(*factor))
}

/// Parses a number with an optional letter, such as `1.5k`.
fn number_with_letter(text: &str) -> Option<Decimal> {
    quantity(text, LETTERS.iter().chain([&ONE]))
}

/// Parses a whole number of type `T`, at least `least`. `expected` returns the message about what the option takes.
fn whole<T: TryFrom<u128>>(text: &str, least: u32, expected: impl FnOnce() -> String) -> Result<T, String> {
    let Some(number) = number_with_letter(text) else { return Err(expected()) };
    let (least, below) = (Decimal::from(least), number.floor());
    if below != number {
        let nearest = if below < least { format!("is {least}") } else { format!("are {below} and {}", below + Decimal::ONE) };
        return Err(format!("it is not a whole number; the nearest {nearest}"));
    }
    let number = if number < least { None } else { number.to_u128() };
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(expected)
}

/// Parses a count of anything.
pub(crate) fn count<T: TryFrom<u128>>(text: &str) -> Result<T, String> {
    count_from(0, text)
}

/// Parses a count that is at least `least`.
pub(crate) fn count_from<T: TryFrom<u128>>(least: u32, text: &str) -> Result<T, String> {
    whole(text, least, || format!("it takes a whole number from {least} to {}, such as 1000000, 1e6 or 1M", usize::MAX))
}

/// Parses a number of bits. The library checks the limits of each table.
pub(crate) fn bits(text: &str) -> Result<u32, String> {
    whole(text, 0, || String::from("it takes a whole number from 2 to 32, such as 13"))
}

/// Parses a number of slots. The library checks the limits of each table.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    whole(text, 0, || String::from("it takes a whole number from 1 to 16, such as 4"))
}

/// Parses the number of a field, counted from 1.
pub(crate) fn field(text: &str) -> Result<usize, String> {
    whole(text, 1, || String::from("it takes the number of a field, 1 for the first one"))
}

/// Parses a number of threads.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    let expected = || format!("it takes a whole number from 1 to {MAX_THREADS}, such as 2");
    whole(text, 1, expected).and_then(|number| if number <= MAX_THREADS { Ok(number) } else { Err(expected()) })
}

/// Parses a seed: a whole number, or `0x` and hexadecimal digits.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let expected = || format!("it takes a whole number from 0 to {}, or 0x and up to 16 hexadecimal digits", u64::MAX);
    let Some(digits) = text.strip_prefix("0x") else { return whole(text, 0, expected) };
    u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+')).ok_or_else(expected)
}

/// Parses a number of items. A range is an error.
pub(crate) fn items(text: &str) -> Result<usize, String> {
    if text.contains("..") {
        return Err(String::from("it takes one number; if the number will grow, no plan is needed: `koel build --grow`"));
    }
    count(text)
}

/// Returns `number` plus this share of it, rounded up. Returns `None` if the sum does not fit a `usize`.
pub(crate) fn with_share(number: usize, share: f64) -> Option<usize> {
    // Rounding may put a product just above the whole number that it should be.
    let more = share * number as f64;
    (more - (4.0 * f64::EPSILON * more).min(0.5)).ceil().to_usize()?.checked_add(number)
}

/// Parses a number in any of these notations.
pub(crate) fn number(text: &str) -> Option<f64> {
    number_with_letter(text).and_then(|number| number.to_f64()).or_else(|| fraction(text))
}

/// Parses a percentage, a ratio or a decimal, to the nearest `f64`.
fn fraction(text: &str) -> Option<f64> {
    match (text.strip_suffix('%'), text.split_once('/')) {
        (Some(percent), _) => float(percent.trim_end(), -2),
        (None, Some((one, of))) => {
            // Both numbers must be exact as `f64`, so that only the division rounds.
            let exact =
                |text| number_with_letter(text).filter(Decimal::is_integer)?.to_u128().filter(|number| *number <= MAX_EXACT);
            exact(one).zip(exact(of).filter(|&of| of > 0)).map(|(one, of)| one as f64 / of as f64)
        }
        (None, None) => float(text, 0),
    }
}

fn share(text: &str, most: f64, too_much: &str) -> Result<f64, String> {
    match fraction(text) {
        None => Err(String::from("it takes a share, such as 50%, 0.5 or 1/2")),
        Some(share) if share > most => Err(String::from(too_much)),
        Some(share) => Ok(share),
    }
}

/// Parses a share to add to a number of items. More than ten times is taken as a mistake, such as 50 instead of 50%.
pub(crate) fn headroom(text: &str) -> Result<f64, String> {
    share(text, 10.0, "it is more than 10 times the items; give 50% or 0.5 for half of them")
}

/// Parses a share of a whole: at most 1.
pub(crate) fn part(text: &str) -> Result<f64, String> {
    share(text, 1.0, "it is more than all; give at most 100%")
}

/// Parses a false-positive rate. The library checks its limits.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    // Values such as "-0.5" and "NaN" are parsed, too: the library refuses them with a better message.
    let rate = fraction(text).or_else(|| text.parse().ok());
    rate.ok_or_else(|| String::from("it takes a number between 0 and 1, such as 0.001, 1e-3, 0.1% or 1/1000"))
}

/// Parses a time with its unit, and returns nanoseconds. 0 needs no unit.
pub(crate) fn nanoseconds(text: &str) -> Result<f64, String> {
    let time = quantity(text, &TIMES).or_else(|| quantity(text, [&ONE]).filter(Decimal::is_zero));
    time.and_then(|time| time.to_string().parse().ok())
        .filter(|time| *time <= MAX_NANOSECONDS)
        .ok_or_else(|| String::from("it takes a time with its unit, from 0ns to 1000000s, such as 80ns, 100us, 5ms or 0.1s"))
}

/// Parses a time such as `1h 30m`, and returns whole seconds.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let time = humantime::parse_duration(text).ok().map(|time| time.as_secs());
    time.filter(|seconds| (1..=MAX_SECONDS).contains(seconds))
        .ok_or_else(|| String::from("it takes a time with its unit, from 1s to 100000d, such as 90s, 10m, 1h, 1h30m or 7d"))
}

/// Parses a number of bytes with an optional unit, and rounds down to whole bytes.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    // Without a unit, or in bytes, a fraction is an error.
    let bytes = quantity(text, &[ONE, ("b", 1)]).filter(Decimal::is_integer);
    let bytes = bytes.or_else(|| quantity(text, LETTERS.iter().chain(&BYTES).chain(&BINARY)));
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
    use std::fmt::Debug;

    use proptest::{prelude::*, test_runner::RngSeed};

    use super::*;

    type Parser<T> = fn(&str) -> Result<T, String>;

    /// Asserts that each number is the value of all of its texts, which are separated by `|`.
    #[track_caller]
    fn parses<T: PartialEq + Debug>(parser: Parser<T>, cases: &[(T, &str)]) {
        for (number, texts) in cases {
            for text in texts.split('|') {
                assert_eq!(parser(text).as_ref(), Ok(number), "{text}");
            }
        }
    }

    /// Asserts that each of the texts, separated by `|`, is an error whose message contains `part`.
    #[track_caller]
    fn refuses<T: Debug>(parser: Parser<T>, part: &str, texts: &str) {
        for text in texts.split('|') {
            assert!(parser(text).as_ref().is_err_and(|message| message.contains(part)), "{text}: {:?}", parser(text));
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        parses(
            count,
            &[
                (0, "0|0e9"),
                (1, "0.001k"),
                (7, "007"),
                (15, "1500e-2"),
                (64_000, "64k|64K|64 k"),
                (1_000_000, "1000000|1_000_000|1e6|1E+6|1M|1m|1e3k"),
                (1_000_500, "1_000.5k"),
                (2_500_000, "2.5M"),
                (4_000_000_000, "4G"),
                (1_250_000_000_000, "1.25T"),
                // As an `f64`, this would be 9007199254740992.
                (9_007_199_254_740_993, "9007199.254740993G"),
                (u64::MAX, "18446744073709551615|18.446744073709551615e18"),
            ],
        );
        let expected = "it takes a whole number from 0 to 18446744073709551615, such as 1000000, 1e6 or 1M";
        let long = "9".repeat(60);
        refuses(
            count::<u64>,
            expected,
            "|-1|+1|few|1,5|1,000|1 000|1.|.5|_1|1_|1__0|1_.5|1e|1e-|1e_6|e6|1kk|1kB|1Mi|1P|0x10|1%|1e99",
        );
        refuses(count::<u64>, expected, &format!("1e99999999999|18446744073709551616|18.5e18|{long}"));
        for (text, below, above) in
            [("1.5", 1, 2), ("0.1", 0, 1), ("1.2345k", 1234, 1235), ("1e-20", 0, 1), ("2.0000001M", 2_000_000, 2_000_001)]
        {
            refuses(count::<u64>, &format!("it is not a whole number; the nearest are {below} and {above}"), text);
        }
        refuses(|text| count_from::<u64>(1, text), "it is not a whole number; the nearest is 1", "0.5|1e-20");
        refuses(|text| count_from::<u64>(1, text), "the nearest are 1 and 2", "1.5");
        refuses(|text| count_from::<u64>(1, text), "it takes a whole number from 1 to", "0|-1");
    }

    #[test]
    fn small_numbers_and_seeds_have_limits() {
        parses(bits, &[(13, "13")]);
        parses(slots, &[(16, "1_6")]);
        parses(threads, &[(4000, "4k")]);
        refuses(threads, "from 1 to 4096", "0|4097|4.1k");
        refuses(field, "1 for the first one", "0|-1|1,2");
        refuses(bits, "from 2 to 32", "4294967296");
        parses(seed, &[(1337, "1337"), (1000, "1e3"), (u64::MAX, "0xFFFFFFFFFFFFFFFF"), (0xdead_beef, "0xdeadbeef")]);
        refuses(seed, "hexadecimal", "|0x|0x+1|0x_1|-1|18446744073709551616|0x10000000000000000|0x1k|one");
    }

    #[test]
    fn rates_are_the_nearest_f64() {
        let cases = [
            (0.001, "0.001|1e-3|0.1%|0.1 %|1e-1%|1/1000|1/1k"),
            (0.000_1, "0.000_1"),
            (1.0, "100%"),
            (0.0, "0%"),
            // Dividing by 100 would be wrong in the last bit.
            (0.0007, "0.07%"),
            (0.0055, "0.55%"),
            (1.0 / 3.0, "1/3"),
            (0.5, ".5"),
            (-0.5, "-0.5"),
            (2.0, "2"),
            (f64::INFINITY, "inf"),
        ];
        parses(|text| rate(text).map(f64::to_bits), &cases.map(|(number, texts)| (f64::to_bits(number), texts)));
        assert!(rate("NaN").is_ok_and(f64::is_nan));
        let expected = "it takes a number between 0 and 1, such as 0.001, 1e-3, 0.1% or 1/1000";
        refuses(rate, expected, "|%|few|1,5|0,1%|1/0|1/|/2|1.5/3k/2|1/1.5|1/9007199254740993|1%%|-5%|1k");
    }

    #[test]
    fn a_range_of_items_is_refused() {
        parses(items, &[(1_000_000, "1M"), (0, "0")]);
        refuses(items, "koel build --grow", "1M..10M|5..|..");
        refuses(items, "whole number from 0", "1-2|many");
    }

    #[test]
    fn shares_are_added_exactly() {
        for (text, number, sum) in [
            ("50%", 1000, Some(1500)),
            ("50 %", 1001, Some(1502)),
            ("0.5", 1000, Some(1500)),
            ("1/2", 1000, Some(1500)),
            ("0%", 7, Some(7)),
            ("200%", 7, Some(21)),
            ("0.1%", 1, Some(2)),
            ("7%", 100, Some(107)),
            ("33.3%", 1_000_000_000_000_000, Some(1_333_000_000_000_000)),
            ("1/3", 10, Some(14)),
            ("1000%", 0, Some(0)),
            ("50%", 4_000_000_000_000_000, Some(6_000_000_000_000_000)),
            ("50%", 10_000_000_000_000_000_000, Some(15_000_000_000_000_000_000)),
            ("200%", usize::MAX / 2, None),
        ] {
            assert_eq!(headroom(text).map(|share| with_share(number, share)), Ok(sum), "{text} of {number}");
        }
        refuses(headroom, "10 times the items", "1001%");
        parses(part, &[(1.0, "100%")]);
        refuses(part, "at most 100%", "1.01");
        refuses(part, "50%", "|-5%|half|1/0|50%%|1,5%");
    }

    #[test]
    fn bytes_and_times_have_units() {
        parses(
            bytes,
            &[
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
            ],
        );
        #[cfg(target_pointer_width = "64")]
        parses(bytes, &[(3_000_000_000, "3GB|3G"), (1_250_000_000_000, "1.25TB"), (8 << 40, "8TiB")]);
        let long = "9".repeat(60);
        refuses(
            bytes,
            "powers of 1000",
            &format!("|-1|+1|1.5|1.5B|1e-1|1.MB|.5MB|1.5.5MB|64Ki|KiB|1PB|20000000000TB|1e60|{long}"),
        );
        parses(
            nanoseconds,
            &[(0.0, "0|0e3|0s"), (80.0, "80ns|80 NS|0.08us|0.08 \u{b5}s|0.08\u{3bc}s|8e-5ms"), (1e15, "1000000s")],
        );
        parses(seconds, &[(1, "1s|1999ms"), (3600, "1h|60m|60min|1 hour"), (5400, "1h30m|1h 30m"), (604_800, "7d|1w")]);
        refuses(seconds, "with its unit", "|1|0s|999ms|-1s|1x|h|100001d|99999999999999y");
        refuses(nanoseconds, "with its unit", "|1|80|-1ns|ns|1e999s|1000001s|1m|1h|0k");
    }

    proptest! {
        // A fixed seed makes the cases the same in every run.
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn numbers_round_trip(number: u64, small in 0..1_000_000_000_u64, power in 0..9_usize, parts in 1..u64::from(u32::MAX)) {
            prop_assert_eq!(count(&number.to_string()), Ok(number));
            prop_assert_eq!(count(&format!("{}.{:03}k", number / 1000, number % 1000)), Ok(number));
            prop_assert_eq!(count(&format!("{small}e{power}")), Ok(small * 10_u64.pow(u32::try_from(power)?)));
            prop_assert_eq!(bytes(&format!("{small}KiB")), Ok(usize::try_from(small)? * 1024));
            prop_assert_eq!(seed(&format!("{number:#x}")), Ok(number));
            prop_assert_eq!(rate(&format!("1/{parts}")), Ok(1.0 / parts as f64));
        }

        #[test]
        fn rates_round_trip(number: u64, digits in 0..10_000_000_u64) {
            let any = f64::from_bits(number);
            prop_assume!(any.is_finite());
            prop_assert_eq!(rate(&format!("{any:?}")).map(f64::to_bits), Ok(any.to_bits()));
            // A percentage equals the share with the same digits.
            let share = format!("0.00{digits:07}").parse::<f64>();
            prop_assert_eq!(rate(&format!("0.{digits:07}%")).ok(), share.ok());
        }

        #[test]
        fn parsing_never_panics(text in "[0-9_.eE+%/kMGTiBb -]{0,20}") {
            let _ = (count::<u64>(&text), rate(&text), bytes(&text), seed(&text), headroom(&text), nanoseconds(&text));
        }
    }
}
