use proptest::{prelude::*, test_runner::RngSeed};

use super::*;

#[test]
fn whole_numbers_in_every_notation() {
    let cases = [
        ("0", 0),
        ("0e9", 0),
        ("007", 7),
        ("1000000", 1_000_000),
        ("1_000_000", 1_000_000),
        ("1e6", 1_000_000),
        ("1E+6", 1_000_000),
        ("1M", 1_000_000),
        ("1m", 1_000_000),
        ("64k", 64_000),
        ("64K", 64_000),
        ("2.5M", 2_500_000),
        ("1_000.5k", 1_000_500),
        ("0.001k", 1),
        ("1500e-2", 15),
        ("1e3k", 1_000_000),
        ("4G", 4_000_000_000),
        ("1.25T", 1_250_000_000_000),
        ("18446744073709551615", u64::MAX),
        ("18.446744073709551615e18", u64::MAX),
    ];
    for (text, number) in cases {
        assert_eq!(count(text), Ok(number), "{text}");
    }
    // A float would make 9007199254740992 of it.
    assert_eq!(count("9007199.254740993G"), Ok(9_007_199_254_740_993));
}

#[test]
fn what_is_no_number_is_told_what_is() {
    let digits = "9".repeat(60);
    let wrong = [
        "",
        "-1",
        "+1",
        "few",
        "1,5",
        "1,000",
        "1 000",
        "1.",
        ".5",
        "_1",
        "1_",
        "1__0",
        "1_.5",
        "1e",
        "1e-",
        "1e_6",
        "e6",
        "1kk",
        "1kB",
        "1 M",
        "1Mi",
        "1P",
        "0x10",
        "1%",
        "1e99",
        "1e99999999999",
        "18446744073709551616",
        "18.5e18",
        &digits,
    ];
    for text in wrong {
        let takes = "it takes a whole number from 0 to 18446744073709551615, such as 1000000, 1e6 or 1M";
        assert_eq!(count(text).as_ref().map_err(String::as_str), Err(takes), "{text}");
    }
}

#[test]
fn a_fraction_has_two_neighbours_that_work() {
    for (text, below, above) in
        [("1.5", 1, 2), ("0.1", 0, 1), ("1.2345k", 1234, 1235), ("1e-40", 0, 1), ("2.0000001M", 2_000_000, 2_000_001)]
    {
        assert_eq!(count(text), Err(format!("it is not a whole number; the nearest are {below} and {above}")), "{text}");
        assert_eq!([below, above].map(|near| count(&near.to_string())), [Ok(below), Ok(above)]);
    }
}

#[test]
fn small_numbers_have_limits() {
    assert_eq!([copies("1"), copies("32"), bits("13"), slots("1_6")], [Ok(1), Ok(32), Ok(13), Ok(16)]);
    assert_eq!(threads("4k").map(NonZeroUsize::get), Ok(4000));
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
    for wrong in ["", "%", "few", "1,5", "0,1%", "1/0", "1/", "/2", "1.5/3k/2", "1/1.5", "1/9007199254740993", "1%%", "-5%", "1k"]
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
        ("0", 7, 7),
        ("200%", 7, 21),
        ("2", 7, 21),
        ("0.1%", 1, 2),
        ("33.3%", 1_000_000_000_000_000, 1_333_000_000_000_000),
        ("1/3", 10, 14),
    ] {
        assert_eq!(share(text).map(|share| share.added_to(number)), Ok(Some(sum)), "{text} of {number}");
    }
    assert_eq!(share("200%").map(|share| share.added_to(usize::MAX / 2)), Ok(None));
    assert!(headroom("1000%").is_ok() && headroom("1001%").is_err_and(|message| message.contains("10 times the items")));
    for wrong in ["", "-5%", "half", "1/0", "1e-30", "50%%", "1,5%"] {
        assert!(share(wrong).is_err_and(|message| message.contains("50%")), "{wrong}");
    }
}

#[test]
fn bytes_have_units() {
    let cases = [
        ("0", 0),
        ("65536", 65_536),
        ("65_536", 65_536),
        ("1e6", 1_000_000),
        ("1.5e3", 1500),
        ("100B", 100),
        ("64KiB", 65_536),
        ("64 kib", 65_536),
        ("64K", 64_000),
        ("64k", 64_000),
        ("1M", 1_000_000),
        ("1.5MB", 1_500_000),
        ("1.15mb", 1_150_000),
        ("0.0015kB", 1),
        ("1e-60MB", 0),
        ("0e60MB", 0),
        ("2GiB", 2 << 30),
    ];
    for (text, number) in cases {
        assert_eq!(bytes(text), Ok(number), "{text}");
    }
    #[cfg(target_pointer_width = "64")]
    for (text, number) in [("3GB", 3_000_000_000), ("3G", 3_000_000_000), ("1.25TB", 1_250_000_000_000), ("8TiB", 8 << 40)] {
        assert_eq!(bytes(text), Ok(number), "{text}");
    }
    let digits = "9".repeat(60);
    let wrong = [
        "",
        "-1",
        "+1",
        "1.5",
        "1.5B",
        "1e-1",
        "1.MB",
        ".5MB",
        "1.5.5MB",
        "64Ki",
        "KiB",
        "1PB",
        "20000000000TB",
        "1e60",
        &digits,
    ];
    for wrong in wrong {
        assert!(bytes(wrong).is_err_and(|message| message.contains("powers of 1000")), "{wrong}");
    }
}

/// Always the same cases.
fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

/// A number in groups of three digits.
fn in_groups(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join("_")
}

/// A number of thousandths, with three decimals.
fn thousandths(number: u64) -> String {
    format!("{}.{:03}", number / 1000, number % 1000)
}

proptest! {
    #![proptest_config(config())]

    /// Whatever is printed is read back as the same number, whichever way it is written.
    #[test]
    fn whole_numbers_survive(number: u64, small in 0..1_000_000_000_u64, power in 0..9_usize) {
        prop_assert_eq!(count(&number.to_string()), Ok(number));
        prop_assert_eq!(count(&in_groups(number)), Ok(number));
        prop_assert_eq!(count(&format!("{}k", thousandths(number))), Ok(number));
        prop_assert_eq!(count(&format!("{number}000e-3")), Ok(number));
        prop_assert_eq!(count(&format!("{small}e{power}")), Ok(small * 10_u64.pow(u32::try_from(power)?)));
        prop_assert_eq!(count(&format!("{}M", thousandths(small))), Ok(small * 1000));
        prop_assert_eq!(bytes(&format!("{}kB", thousandths(small))), Ok(usize::try_from(small)?));
        prop_assert_eq!(bytes(&format!("{small}KiB")), Ok(usize::try_from(small)? * 1024));
        prop_assert_eq!(seed(&format!("{number:#x}")), Ok(number));
    }

    #[test]
    fn rates_survive(number: u64, parts in 1..u64::from(u32::MAX), digits in 0..10_000_000_u64) {
        let any = f64::from_bits(number);
        prop_assume!(any.is_finite());
        prop_assert_eq!(rate(&format!("{any:?}")).map(f64::to_bits), Ok(any.to_bits()));
        prop_assert_eq!(rate(&format!("1/{parts}")), Ok(1.0 / parts as f64));
        // The same digits as a percentage and as a share.
        let share = format!("0.00{digits:07}").parse::<f64>();
        prop_assert_eq!(rate(&format!("0.{digits:07}%")).ok(), share.ok());
    }

    #[test]
    fn nothing_that_is_written_panics(text in "[0-9_.eE+%/kMGTiBb -]{0,20}") {
        let _ = (count(&text), rate(&text), bytes(&text), seed(&text));
    }
}
