//! The nearest values that work, where those given do not.

use super::{object, tune, with};

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
