//! What `koel tune` recommends: for programs and for people, with calls that build it, and what works where nothing does.

#![allow(clippy::cast_precision_loss, reason = "numbers of items are small")]

use koel::{
    Addressing, Builder, CuckooFilter, TableKind,
    tuning::{Candidate, Constraints, Recommendation, best_rate, recommend},
};
use koel_lab::structures::Structure;
use serde_json::Value;

use super::{object, tune, with};
use crate::common::Koel;

/// What calls give, and their text without blanks.
macro_rules! pasted {
    ($calls:expr) => {
        ($calls, String::from(stringify!($calls)).replace(char::is_whitespace, ""))
    };
}

/// What the text says to a builder, done.
fn built(rust: &str) -> Builder {
    let (imports, calls) = rust.split_once(";\nlet mut filter = CuckooFilter::builder()\n").unwrap_or_else(|| panic!("{rust}"));
    let calls = calls.strip_suffix("\n    .build()?;").unwrap_or_else(|| panic!("{rust}"));
    for name in ["Addressing", "CuckooFilter", "TableKind"] {
        let used = name == "CuckooFilter" || calls.contains(&format!("{name}::"));
        assert_eq!(imports.contains(name), used, "{rust}");
    }
    calls.lines().fold(CuckooFilter::builder(), |builder, line| {
        let call = line.strip_prefix("    .").and_then(|line| line.strip_suffix(')')).unwrap_or_else(|| panic!("{rust}"));
        match call.split_once('(').unwrap_or_else(|| panic!("{rust}")) {
            ("capacity", items) => builder.capacity(items.replace('_', "").parse().expect("items")),
            ("false_positive_rate", rate) => builder.false_positive_rate(rate.parse().expect("a rate")),
            ("fingerprint_bits", bits) => builder.fingerprint_bits(bits.parse().expect("bits")),
            ("bucket_size", slots) => builder.bucket_size(slots.parse().expect("slots")),
            ("table", "TableKind::Single") => builder.table(TableKind::Single),
            ("table", "TableKind::Packed") => builder.table(TableKind::Packed),
            ("addressing", "Addressing::PowerOfTwo") => builder.addressing(Addressing::PowerOfTwo),
            other => panic!("{other:?} in {rust}"),
        }
    })
}

#[test]
fn the_call_builds_the_best() {
    for items in [0, 7, 1000, 1_000_000, 1_000_000_000] {
        for wanted in ["--fpr 0.3", "--fpr 0.001", "--fpr 1e-7", "--bytes 2kB", "--bytes 1.2MB", "--fpr 0.01 --bytes 2GB"] {
            for further in ["", "--table single", "--table packed", "--bucket-size 3", "--copies 20", "--addressing power-of-two"]
            {
                let found = object(&format!("--items {items} {wanted} {further}"));
                let Some(rust) = found["builder"].as_str() else {
                    assert_eq!(found["candidates"], Value::Array(Vec::new()));
                    continue;
                };
                let (params, best) = (built(rust).params().expect("right"), &found["candidates"][0]);
                assert_eq!(best["table"], params.table().to_string(), "{rust}");
                assert_eq!(best["fingerprint_bits"], params.fingerprint_bits(), "{rust}");
                assert_eq!(best["bucket_size"], params.bucket_size(), "{rust}");
                assert_eq!(best["buckets"], params.buckets(), "{rust}");
                let any_size = best["addressing"] == "any-size";
                assert_eq!(any_size, params.addressing() == Addressing::AnySize, "{rust}");
            }
        }
    }
}

/// Pasted into this program, it compiles.
#[test]
fn the_call_is_rust() {
    let (params, calls) = pasted!(
        CuckooFilter::builder()
            .capacity(1_000)
            .fingerprint_bits(7)
            .table(TableKind::Single)
            .addressing(Addressing::PowerOfTwo)
            .params()
    );
    let options = "--items 1000 --bytes 2000 --table single --bucket-size 4 --addressing power-of-two";
    let text = tune(options).text();
    let (_, rust) = text.split_once("\n\nuse koel::{Addressing, CuckooFilter, TableKind};\n").unwrap_or_else(|| panic!("{text}"));
    let rust = rust.replace(char::is_whitespace, "").replace("build()?;", "params()");
    assert_eq!(rust.strip_prefix("letmutfilter="), Some(&*calls));
    let constraints = Constraints::default().table(TableKind::Single).bucket_size(4).addressing(Addressing::PowerOfTwo);
    let advice = best_rate(1000, 2000, &constraints);
    assert_eq!(advice.best().map(Candidate::params), params.ok().as_ref());
}

/// The command does what the builder does.
#[test]
fn the_command_builds_the_best() {
    let koel = Koel::new();
    for options in [
        "--items 1000 --fpr 0.001",
        "--items 1000 --fpr 0.001 --table single",
        "--items 100 --bytes 2000 --bucket-size 2 --addressing power-of-two",
    ] {
        let found = object(options);
        let command = found["command"].as_str().expect("a command").replace("IN", "-").replace("OUT", "f.koel");
        koel.feed("a\n", command.split(' ').skip(1)).ok();
        let facts = crate::common::facts(&koel, "f.koel");
        for name in ["table", "fingerprint_bits", "bucket_size", "buckets", "addressing", "capacity", "table_bytes"] {
            assert_eq!(facts[name], found["candidates"][0][name], "{name}: {command}");
        }
        assert!(tune(options).text().contains(&format!("\n{}\n", found["command"].as_str().expect("a command"))));
    }
}

/// A number as it comes back from JSON: this reader of it is wrong in the last bit now and then.
fn read(number: f64) -> Value {
    serde_json::from_str(&Value::from(number).to_string()).expect("JSON")
}

/// The library's numbers, all of them, and nobody else's.
fn same(object: &Value, advice: &Recommendation, items: usize) {
    let candidates = object["candidates"].as_array().expect("candidates");
    assert_eq!(candidates.len(), advice.candidates().len());
    for (found, candidate) in candidates.iter().zip(advice.candidates()) {
        let params = candidate.params();
        assert_eq!(found["table"], params.table().to_string());
        assert_eq!(found["fingerprint_bits"], params.fingerprint_bits());
        assert_eq!(found["bucket_size"], params.bucket_size());
        assert_eq!(found["buckets"], params.buckets());
        assert_eq!(found["slots"], params.slots());
        assert_eq!(found["capacity"], params.capacity());
        assert_eq!(found["copies"], candidate.copies());
        assert_eq!(found["table_bytes"], candidate.bytes());
        assert_eq!(found["bits_per_item"], read(candidate.bits_per_item()));
        assert_eq!(found["load_factor"], read(candidate.load()));
        assert_eq!(found["false_positive_rate"], read(candidate.false_positive_rate()));
        assert_eq!(found["false_positive_rate_at_capacity"], read(params.false_positive_rate_at_capacity()));
        assert_eq!([&found["deletes"], &found["grows"], &found["static"]], [true, false, false]);
    }
    let rejections = object["rejections"].as_array().expect("rejections");
    assert_eq!(rejections.len(), advice.rejections().len());
    for (found, rejection) in rejections.iter().zip(advice.rejections()) {
        assert_eq!(found["table"], rejection.table().to_string());
        assert_eq!(found["bucket_size"], rejection.bucket_size());
        assert_eq!(found["reason"], rejection.reason());
    }
    let others = object["others"].as_array().expect("others");
    let mut least = 0.0;
    for found in others {
        let structure = Structure::ALL.into_iter().find(|other| found["name"] == other.name()).expect("a structure");
        let rate = found["false_positive_rate"].as_f64().expect("a rate");
        let bits = structure.bits_per_item(rate).expect("there is one");
        assert_eq!(found["bits_per_item"], read(bits));
        assert_eq!(found["table_bytes"], read(bits * items as f64 / 8.0));
        assert!(least <= bits, "the smallest first");
        least = bits;
        if structure == Structure::LowerBound {
            assert!(["deletes", "grows", "static"].iter().all(|what| found[what].is_null()));
        } else {
            assert_eq!(found["deletes"], structure.deletes());
            assert_eq!(found["grows"], structure.grows());
            assert_eq!(found["static"], structure.is_static());
        }
    }
    let rejected = object["others_rejected"].as_array().expect("others_rejected");
    assert_eq!(others.len() + rejected.len(), Structure::ALL.len());
}

#[test]
fn programs_get_the_librarys_numbers() {
    let found = object("--items 123456 --fpr 0.003");
    same(&found, &recommend(123_456, 0.003, &Constraints::default()), 123_456);
    assert!(found["others"].as_array().is_some_and(|others| others.iter().all(|other| other["false_positive_rate"] == 0.003)));
    assert_eq!(found["others_rejected"], Value::Array(Vec::new()));
    assert!(found["nearest"].is_null());

    let found = object("--items 5000 --fpr 0.02 --bytes 7.5KiB --copies 3 --addressing power-of-two");
    let constraints = Constraints::default().max_bytes(7680).copies(3).addressing(Addressing::PowerOfTwo);
    same(&found, &recommend(5000, 0.02, &constraints), 5000);
    assert_eq!(found["asked"]["bytes"], 7680);
    assert_eq!(found["asked"]["copies"], 3);
    assert_eq!(found["asked"]["addressing"], "power-of-two");

    let found = object("--items 5000 --fpr 0.02 --table single --bucket-size 3");
    same(&found, &recommend(5000, 0.02, &Constraints::default().table(TableKind::Single).bucket_size(3)), 5000);

    // Without items there are no bits for each.
    let found = object("--items 0 --fpr 0.02");
    assert!(found["candidates"][0]["bits_per_item"].is_null() && found["candidates"][0]["false_positive_rate"] == 0.0);
}

#[test]
fn what_cannot_delete_is_left_out_where_that_matters() {
    let found = object("--items 1000 --fpr 0.01 --deletes");
    let others = found["others"].as_array().expect("others");
    assert!(others.iter().all(|other| other["deletes"] == true || other["name"] == "lower bound"), "{others:?}");
    assert_eq!(others.len(), 4);
    let rejected = found["others_rejected"].as_array().expect("others_rejected");
    assert!(rejected.len() == 5 && rejected.iter().all(|other| other["reason"] == "cannot delete"), "{rejected:?}");
    // Ours can, all of them.
    assert_eq!(found["candidates"], object("--items 1000 --fpr 0.01")["candidates"]);
}

#[test]
fn the_reverse_finds_the_lowest_rate() {
    let found = object("--items 1000000 --bytes 1MiB");
    let advice = best_rate(1_000_000, 1 << 20, &Constraints::default());
    same(&found, &advice, 1_000_000);
    let rate = advice.best().expect("that is enough").false_positive_rate();
    assert!(
        found["others"].as_array().is_some_and(|others| others.iter().all(|other| other["false_positive_rate"] == read(rate)))
    );
    // Both ways lead to the same filter.
    let back =
        object(&format!("--items 1000000 --fpr {} --bytes 1MiB", found["candidates"][0]["false_positive_rate_at_capacity"]));
    assert_eq!(back["candidates"][0], found["candidates"][0]);
    let text = tune("--items 1000000 --bytes 1MiB").text();
    assert!(text.starts_with("1000000 items, at most 1048576 bytes.\n") && text.contains("\n* The lowest rate: "), "{text}");
    assert!(text.contains("at ε = 0.0151.\n"), "{text}");
}

#[test]
fn others_have_their_limits_too() {
    let found = object("--items 1000 --fpr 1e-30");
    let rejected = found["others_rejected"].as_array().expect("others_rejected");
    let none: Vec<_> = Structure::ALL.into_iter().filter(|other| other.bits_per_item(1e-30).is_none()).collect();
    assert!(!none.is_empty());
    assert_eq!(rejected.len(), none.len());
    for (found, structure) in rejected.iter().zip(none) {
        assert_eq!(found["name"], structure.name());
        assert_eq!(found["reason"], "cannot have that rate");
    }
}

#[test]
fn the_answer_for_people() {
    let run = tune("--items 1000000 --fpr 0.001 --deletes --copies 5");
    let golden = "\
1000000 items, a false-positive rate ε of at most 0.001.

filter                    size  bits/item        ε    load  delete  grow  static
--------------------------------------------------------------------------------
packed f=13 b=4 *      1.54 MB      12.31  9.52e-4  97.5 %     yes    no      no
single f=13 b=4        1.67 MB      13.33  9.52e-4  97.5 %     yes    no      no
single f=13 b=3        1.71 MB      13.68  6.96e-4  95.0 %     yes    no      no
single f=14 b=8        1.76 MB      14.06  9.72e-4  99.6 %     yes    no      no
--------------------------------------------------------------------------------
lower bound            1.25 MB       9.97  0.00100       -       -     -       -
quotient               1.60 MB      12.76  0.00100       -     yes   yes      no
d-left counting Bloom  2.83 MB      22.67  0.00100       -     yes    no      no
counting Bloom         7.19 MB      57.51  0.00100       -     yes    no      no

* The smallest: 1538472 bytes, 256412 buckets of 4 slots. Room for 1000006
  distinct items, or for 8 copies of one item if its two buckets have no others.
f: bits per fingerprint, b: slots per bucket.
11 other filters are no smaller: --all shows them.
Below the line: formulas of their authors, for large sets, at ε = 0.00100.

Left out:
- single b=1, 2: room for 5 copies of an item takes buckets of 3 slots or more.
- Bloom, blocked Bloom, Golomb-coded sequence, xor, binary fuse: cannot delete.

koel build IN -o OUT --capacity 1000000 --fpr 0.001

use koel::CuckooFilter;
let mut filter = CuckooFilter::builder()
    .capacity(1_000_000)
    .false_positive_rate(0.001)
    .build()?;
";
    assert_eq!(String::from_utf8_lossy(run.ok()), golden);
}

/// What is left out of the table is counted, and --all has it.
#[test]
fn all_filters_are_shown_on_request() {
    for options in ["--items 1M --fpr 0.1%", "--items 17 --fpr 0.1%", "--items 1000 --bytes 2k"] {
        let (short, long) = (tune(options).text(), tune(&format!("{options} --all")).text());
        let rows = |text: &str| text.lines().filter(|line| line.contains(" b=") && !line.starts_with(['-', 'f', '*'])).count();
        let (_, hidden) = short.split_once("slots per bucket.\n").expect("the notes");
        let (hidden, _) = hidden.split_once(" other filters are no ").unwrap_or_else(|| panic!("{short}"));
        assert_eq!(rows(&short) + hidden.parse::<usize>().expect("a number"), rows(&long), "{short}{long}");
        assert!((15..=17).contains(&rows(&long)) && !long.contains("--all"), "{long}");
        // What a builder chooses by itself is there.
        assert!(short.contains("packed f=") && short.lines().any(|line| line.starts_with("single f=") && line.contains(" b=4 ")));
    }
    // Each of the 17 tables has a reason of its own.
    let (short, long) = (tune("--items 1M --bytes 1k").text(), tune("--items 1M --bytes 1k --all").text());
    assert!(short.contains("\n- 13 further reasons: --all shows them.\n"), "{short}");
    assert!(!long.contains("--all") && long.matches("\n- ").count() == 17, "{long}");
}

/// Whatever the size: 80 columns. Only what is to be pasted may be longer.
#[test]
fn it_is_legible_at_every_size() {
    let wanted = ["--fpr 0.5", "--fpr 0.00123456789", "--fpr 1e-9", "--fpr 1e-12", "--bytes 100", "--bytes 2.5TiB"];
    for items in ["0", "1", "10", "1000", "1000000", "1000000000", "1000000000000", "1000000000000000"] {
        for wanted in wanted.into_iter().chain(["--fpr 0.1 --addressing power-of-two"]) {
            let run = tune(&format!("--items {items} {wanted}"));
            assert!(run.stderr.is_empty() && run.status <= 1, "{items} {wanted}: {}", run.stderr);
            let text = run.text();
            let (table, _) = text.split_once("\nkoel build ").unwrap_or((&text, ""));
            for line in table.lines() {
                assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line}");
                assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");
            }
            assert_eq!(text.contains("No filter meets these requirements."), run.status == 1);
        }
    }
}

/// The options and values that are said to be enough.
fn suggestions(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("  --")?.split_once(' ')).collect()
}

/// What is said to be nearest works, and what is a little less does not.
#[test]
fn what_is_nearest_works() {
    let cases = [
        ("--items 1000000 --fpr 0.001 --bytes 1MB", &["bytes", "fpr", "items"][..]),
        ("--items 1000 --fpr 0.01 --bytes 1200 --copies 10 --table single", &["bytes", "fpr", "items"]),
        ("--items 1000 --bytes 10", &["bytes", "items"]),
        ("--items 1000 --fpr 1e-12", &["fpr"]),
        ("--items 1000000000000 --fpr 1e-6 --addressing power-of-two", &["items"]),
        ("--items 1000000000000 --fpr 1e-12 --addressing power-of-two", &[]),
    ];
    for (options, ways) in cases {
        let run = tune(options);
        assert!(run.status == 1 && run.stderr.is_empty(), "{options}: {}", run.stderr);
        let text = run.text();
        assert!(
            text.contains("No filter meets these requirements.") && text.contains("\nLeft out:\n- ") && !text.contains("koel::"),
            "{text}"
        );
        let lines = suggestions(&text);
        assert_eq!(lines.iter().map(|(way, _)| *way).collect::<Vec<_>>(), ways, "{text}");
        assert_eq!(text.contains("No single option is enough"), ways.is_empty(), "{text}");
        for (way, value) in lines {
            assert_eq!(with(options, way, value).status, 0, "{options}: --{way} {value}");
            let worse = match way {
                "bytes" => (value.parse::<usize>().expect("bytes") - 1).to_string(),
                "items" => (value.parse::<usize>().expect("items") + 1).to_string(),
                _ => (value.parse::<f64>().expect("a rate") * 0.98).to_string(),
            };
            assert_eq!(with(options, way, &worse).status, 1, "{options}: --{way} {worse}");
        }
        let found = object(options);
        assert!(found["builder"].is_null() && found["command"].is_null());
        for (way, name) in [("bytes", "bytes"), ("fpr", "false_positive_rate"), ("items", "items")] {
            assert_eq!(found["nearest"][name].is_number(), ways.contains(&way), "{options}: {found}");
        }
    }
}

/// Whatever was asked for.
#[test]
fn whatever_is_nearest_works() {
    let mut all = 0;
    for items in [1, 40, 1000_usize] {
        for rate in ["", "--fpr 0.5", "--fpr 1e-12"] {
            // About so many bits for each of them.
            for bits in [1, 3, 4] {
                let bytes = (items * bits).div_ceil(8);
                for further in ["", "--bucket-size 16", "--bucket-size 1", "--table packed", "--addressing power-of-two"] {
                    let options = format!("--items {items} --bytes {bytes} {rate} {further}");
                    let options = options.split_whitespace().collect::<Vec<_>>().join(" ");
                    let run = tune(&options);
                    assert!(run.stderr.is_empty(), "{options}: {}", run.stderr);
                    let text = run.text();
                    for (way, value) in if run.status == 1 { suggestions(&text) } else { Vec::new() } {
                        let run = with(&options, way, value);
                        assert_eq!(run.status, 0, "{options}: --{way} {value}: {}", run.stderr);
                        all += 1;
                    }
                }
            }
        }
    }
    assert!(all > 100, "{all} in all");
}

/// The value after some words of a message.
fn value_after<'a>(message: &'a str, words: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(words)?;
    rest.split([',', ';', ' ', '\n']).next()
}

/// One question has one nearest value, whichever wrong value it is asked with, and with that value it has an answer.
#[test]
fn whichever_wrong_value_is_given_the_nearest_is_the_same() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("--fpr W --items 1000", "fpr", &["0", "-0.5", "NaN", "1e-300", "1e-12", "1e-11"]),
        ("--fpr W --items 1000", "fpr", &["0.51", "0.9", "99%", "1", "2", "inf"]),
        ("--fpr W --items 1000 --bytes 600", "fpr", &["0", "1e-9", "0.001", "0.02"]),
        ("--fpr W --items 40 --bytes 60 --bucket-size 16", "fpr", &["0", "1e-9", "0.1"]),
        ("--fpr 1e-9 --items W --bytes 600", "items", &["1000", "1M", "1e15", "18446744073709551615"]),
        ("--fpr 0.1 --items W --bytes 90 --bucket-size 5", "items", &["100", "1000", "1M", "1e15"]),
        ("--items W --bytes 600", "items", &["10000", "1M", "1e15"]),
        ("--items 1000 --bytes W", "bytes", &["0", "1", "100", "300"]),
        ("--items 1000 --fpr 0.1% --bytes W", "bytes", &["0", "1", "1000", "1.5k"]),
    ];
    for (question, way, wrong) in cases {
        let mut answers = Vec::new();
        for value in wrong {
            let options = question.replace('W', value);
            let run = tune(&options);
            let text = run.text();
            let found = match run.status {
                1 => suggestions(&text).into_iter().find_map(|(option, value)| (option == way).then_some(value)),
                _ => value_after(&run.stderr, "the nearest that works is "),
            };
            let nearest = found.unwrap_or_else(|| panic!("{options}: {text}{}", run.stderr)).to_owned();
            with(&options, way, &nearest).ok();
            answers.push(nearest);
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{question}: {answers:?}");
    }
}

/// Few bytes only allow a useless filter: the error has the bytes of one that is of use. A useless rate has the bytes, too.
#[test]
fn a_useless_filter_is_not_recommended() {
    let run = tune("--items 1000 --bytes 200");
    run.status(1);
    let text = run.text();
    let (_, bytes) = suggestions(&text).into_iter().find(|(way, _)| *way == "bytes").expect("the bytes that are enough");
    assert!(
        text.contains("at most 0.5 and") && text.contains(&format!("it takes {bytes} bytes, and there may be 200")),
        "{text}"
    );
    let error = tune("--items 1000 --fpr 0.9").stderr;
    assert!(error.contains(&format!("which takes {bytes} bytes")), "{error}");
    let error = tune("--items 1000 --fpr 0.9 --bytes 200").stderr;
    assert!(error.contains(&format!("give --fpr 0.5 and --bytes {bytes}")), "{error}");
    let error = tune("--items 1000 --fpr 0 --bytes 200").stderr;
    assert!(error.contains(&format!("give --fpr 0.5 and --bytes {bytes}")), "{error}");
    tune(&format!("--items 1000 --fpr 0.5 --bytes {bytes}")).ok();
    let found = object(&format!("--items 1000 --bytes {bytes}"));
    assert!(found["candidates"][0]["false_positive_rate_at_capacity"].as_f64().is_some_and(|rate| rate <= 0.5), "{found}");
}

#[test]
fn mistakes_are_named() {
    let koel = Koel::new();
    let cases: [(&str, &[&str]); 29] = [
        ("", &["--items <N[..M]>", "--fpr <E>|--bytes <BYTES>"]),
        ("--items 5", &["--fpr <E>|--bytes <BYTES>", "not provided"]),
        ("--fpr 0.1", &["--items <N[..M]>", "not provided"]),
        ("--items -1 --fpr 0.1", &["--items", "'-1'", "whole number from 0"]),
        ("--items 1.5 --fpr 0.1", &["--items", "'1.5'", "not a whole number", "1 and 2"]),
        ("--items 10..5 --fpr 0.1", &["--items", "'10..5'", "from 10 down to 5", "give 5..10"]),
        ("--items 5.. --fpr 0.1", &["--items", "'5..'", "whole number from 0"]),
        ("--items 5..10 --bytes 100", &["--items: 5..10 given without a rate", "give --fpr"]),
        ("--items 5..10 --fpr 0", &["--fpr", "0 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr 0.1 --headroom -5", &["--headroom", "'-5'", "such as 50%"]),
        ("--items 5 --fpr 0.1 --headroom half", &["--headroom", "'half'", "such as 50%"]),
        ("--items 5 --fpr 0.1 --headroom 1/0", &["--headroom", "'1/0'", "such as 50%"]),
        ("--items 5 --fpr 2", &["--fpr", "2 given", "more than 0.5", "most absent items", "nearest that works is 0.5", "bytes"]),
        ("--items 5 --fpr 0", &["--fpr", "0 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr -0.5 --table packed", &["--fpr", "-0.5 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr NaN", &["--fpr", "NaN given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr few", &["--fpr", "'few'", "between 0 and 1", "0.001"]),
        ("--items 5 --bytes 1.5", &["--bytes", "'1.5'", "64KiB", "1.5MB"]),
        ("--items 5 --bytes -5", &["--bytes", "'-5'", "64KiB", "1.5MB"]),
        ("--items 5 --bytes 3XB", &["--bytes", "'3XB'", "kB to TB", "KiB to TiB"]),
        ("--items 5 --bytes 99999999TB", &["--bytes", "'99999999TB'", &usize::MAX.to_string()]),
        ("--items 5 --fpr 0.1 --bucket-size 0", &["--bucket-size", "0 given", "1 to 16", "nearest that works is 1"]),
        ("--items 5 --bytes 90 --bucket-size 17", &["--bucket-size", "17 given", "1 to 16", "nearest that works is 16"]),
        ("--items 5 --fpr 0.1 --bucket-size 8 --table packed", &["--bucket-size", "8 given", "takes 4"]),
        ("--items 5 --fpr 0.1 --copies 0", &["--copies", "'0'", "from 1 to 32"]),
        ("--items 5 --fpr 0.1 --copies 33", &["--copies", "'33'", "from 1 to 32", "16 slots"]),
        (
            "--items 5 --fpr 0.1 --copies 7 --bucket-size 3",
            &["--copies: 7 given", "room for 6", "works is 6", "--bucket-size out"],
        ),
        ("--items 5 --fpr 0.1 --copies 9 --table packed", &["--copies: 9 given", "room for 8", "works is 8", "--table out"]),
        ("--items 5 --fpr 0.1 --table cuckoo", &["--table", "'cuckoo'", "single, packed"]),
    ];
    for (options, parts) in cases {
        koel.run(["tune"].into_iter().chain(options.split_whitespace())).error(parts);
    }
    assert!(koel.names().is_empty());
}
