//! Plans for a number of items that grows, and headroom.

#![allow(clippy::cast_precision_loss, reason = "numbers of bytes are small")]

use std::thread;

use koel::{
    ElasticFilter,
    tuning::{Candidate, Constraints, recommend},
};
use serde_json::Value;

use super::{assert_answers, list, number, object, tune};
use crate::{
    common::{Koel, facts, numbers, value_after},
    heap::peak,
};

/// The plan with this name.
fn plan<'a>(found: &'a Value, name: &str) -> &'a Value {
    list(found, "plans").iter().find(|plan| plan["name"] == name).unwrap_or_else(|| panic!("no plan {name}: {found}"))
}

/// The numbers are nearly equal.
#[track_caller]
fn near(plan: &Value, name: &str, real: f64, tolerance: f64) {
    let found = number(plan, &format!("/{name}"));
    assert!((found / real - 1.0).abs() < tolerance, "{name}: {found} for {real}");
}

/// The bytes of the smallest filter.
fn smallest(items: usize) -> usize {
    recommend(items, 0.001, &Constraints::default()).best().map(Candidate::bytes).expect("a filter")
}

#[test]
fn fixed_filters_are_those_that_are_recommended() {
    let found = object("--items 20k..150k --fpr 0.1%");
    assert_eq!([&found["asked"]["items"], &found["asked"]["most_items"]], [20_000, 150_000]);
    let (large, rebuilding) = (plan(&found, "large"), plan(&found, "rebuilding"));
    for name in ["table_bytes_now", "table_bytes_at_end", "most_bytes"] {
        assert_eq!(large[name], smallest(150_000), "{name}");
    }
    // The rate is proportional to the load, nearly.
    near(large, "false_positive_rate_now", number(large, "/false_positive_rate_at_end") * 20.0 / 150.0, 0.001);
    let bytes = [20_000, 40_000, 80_000, 150_000].map(smallest);
    assert_eq!([&rebuilding["table_bytes_now"], &rebuilding["table_bytes_at_end"]], [bytes[0], bytes[3]]);
    assert_eq!([&rebuilding["most_bytes"], &rebuilding["rebuilds"]], [bytes[2] + bytes[3], 3]);
    near(rebuilding, "insertions_per_item", f64::from(150 + 20 + 40 + 80) / 150.0, 1e-9);
    assert_eq!(large["command"], object("--items 150k --fpr 0.1%")["command"]);
    assert_eq!(rebuilding["command"], object("--items 20k --fpr 0.1%")["command"]);
}

/// At the end, and at most: at every number of items, and at the moment of a split, whatever the hashes are. Of the shards, some
/// hundred, a few are split early or late by chance.
#[test]
fn a_growing_filter_takes_what_its_plan_says() {
    let shares_of = |(now, most, seeds)| {
        let found = object(&format!("--items {now}..{most} --fpr 0.1%"));
        let growing = plan(&found, "growing");
        let bound = number(growing, "/most_bytes");
        let [mean, worst] = ["/mean_bits_per_item", "/most_bits_per_item"].map(|path| number(growing, path));
        assert!(mean < worst && growing["insertions_per_item"] == 1.0, "{growing}");
        let mut shares = Vec::new();
        for seed in 0..seeds {
            let builder = ElasticFilter::builder().capacity(now).max_capacity(most).false_positive_rate(0.001).seed(seed);
            let begins_with = builder.clone().params().expect("a plan").table_bytes();
            assert!(begins_with == 0 && now <= 1000 || growing["table_bytes_now"] == begins_with, "{growing}");
            let (filter, heap) = peak(|| {
                let mut filter = builder.build().expect("a filter");
                filter.insert_iter(0..most as u64).expect("room");
                filter
            });
            let peak = (heap + size_of_val(&filter)) as f64;
            assert!(peak <= bound, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
            if most >= 300_000 {
                assert!(worst < 2.0 * mean && growing["buckets_per_lookup"] == 2, "{growing}");
                assert!(bound < 1.2 * peak, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
                near(growing, "table_bytes_at_end", filter.table_bytes() as f64, 0.08);
                near(growing, "false_positive_rate_at_end", filter.false_positive_rate(), 0.08);
                shares.push(number(growing, "/table_bytes_at_end") / filter.table_bytes() as f64);
            }
        }
        shares
    };
    // The last takes as long as all others.
    let (mut shares, last) = thread::scope(|scope| {
        let last = scope.spawn(|| shares_of((1_000_000, 10_000_000, 1)));
        let others = [(0, 900, 40), (1000, 9000, 40), (20_000, 300_000, 8), (20_000, 500_000, 3), (50_000, 1_000_000, 3)];
        (others.into_iter().flat_map(shares_of).collect::<Vec<_>>(), last.join().expect("no panic"))
    });
    shares.extend(last);
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean} of the bytes on average");
}

/// The best plan takes the least memory on average, and never needs the items again.
#[test]
fn the_best_plan_is_named() {
    for (items, best) in [("1M..1.1M", "large"), ("1k..1M", "growing"), ("20k..40k", "large"), ("50k..500k", "growing")] {
        let options = format!("--items {items} --fpr 0.1%");
        let found = object(&options);
        assert_eq!(found["best"], best, "{items}: {found}");
        let mean = |name: &str| number(plan(&found, name), "/mean_bytes");
        assert_eq!(mean("growing") < 0.95 * mean("large"), best == "growing", "{items}");
        assert!(mean("rebuilding") <= mean("large"));
        let run = tune(&options);
        assert!(run.text().contains(&format!("\n{best} *  ")), "{}", run.text());
        assert_eq!(run.unbroken().contains("If you can read all items"), mean("rebuilding") < mean(best), "{}", run.text());
    }
}

/// Each command builds the filter that the plan begins with.
#[test]
fn the_commands_build_what_is_planned() {
    let koel = Koel::new();
    for (now, options) in [
        (1000, "--items 1000..9000 --fpr 1%"),
        (1000, "--items 1000..9000 --fpr 1% --bucket-size 5"),
        (700, "--items 700..1000 --fpr 1e-4"),
    ] {
        let found = object(options);
        for name in ["large", "growing", "rebuilding"] {
            let plan = plan(&found, name);
            let command = plan["command"].as_str().expect("a command").replace("IN", "-").replace("OUT", "f.koel");
            koel.feed(numbers(0..now), command.trim_start_matches("koel ")).ok();
            assert_eq!(facts(&koel, "f.koel")["table_bytes"], plan["table_bytes_now"], "{command}");
            let rust = plan["builder"].as_str().expect("a builder");
            let kind = if name == "growing" { "ElasticFilter::builder()" } else { "CuckooFilter::builder()" };
            assert!(rust.contains(kind) && rust.starts_with("use koel::"), "{rust}");
        }
        assert!(tune(options).text().contains(plan(&found, "growing")["command"].as_str().expect("a command")));
    }
}

#[test]
fn plans_that_are_not_possible_say_why() {
    let found = object("--items 1000..9000 --fpr 1% --addressing power-of-two");
    assert_eq!(found["rejections"][0]["name"], "growing");
    assert!(found["rejections"][0]["reason"].as_str().is_some_and(|reason| reason.contains("any-size")), "{found}");
    // Of the three, only one fixed filter takes so little.
    let limit = smallest(9000);
    let found = object(&format!("--items 1000..9000 --fpr 0.1% --bytes {limit}"));
    assert!(list(&found, "plans").len() == 1 && found["best"] == "large" && found["nearest"].is_null(), "{found}");
    let options = format!("--items 1000..9000 --fpr 0.1% --bytes {}", limit - 1);
    let run = tune(&options);
    run.status(1);
    let text = run.text();
    assert!(text.contains("No plan meets these requirements.") && text.contains(&format!("\n  --bytes {limit}\n")), "{text}");
    let found = object(&options);
    assert!(found["best"].is_null() && found["nearest"]["bytes"] == limit, "{found}");
    tune(&options.replace("0.1%", &found["nearest"]["false_positive_rate"].to_string())).ok();
}

/// What is said of 1000 items with headroom is what is said of so many more.
#[test]
fn headroom_is_for_more_items() {
    for (share, items) in [("50%", 1500), ("1/2", 1500), ("0%", 1000), ("0.01%", 1001)] {
        let (found, plain) =
            (object(&format!("--items 1000 --fpr 1% --headroom {share}")), object(&format!("--items {items} --fpr 1%")));
        for name in ["candidates", "others", "command", "builder"] {
            assert_eq!(found[name], plain[name], "{name} with {share}");
        }
        assert_eq!([&found["asked"]["items"], &found["asked"]["planned_items"]], [1000, items]);
    }
    assert!(tune("--items 1000 --fpr 1% --headroom 50%").text().starts_with("1000 items, with headroom 1500, a false-positive"));
    // The number that works is one to give, headroom and all.
    let nearest = object("--items 1000 --fpr 1% --bytes 500 --headroom 50%")["nearest"]["items"].as_u64().expect("items");
    for (items, status) in [(nearest, 0), (nearest + 1, 1)] {
        tune(&format!("--items {items} --fpr 1% --bytes 500 --headroom 50%")).status(status);
    }
    let (wide, plain) = (object("--items 1000..6000 --fpr 1% --headroom 50%"), object("--items 1000..9000 --fpr 1%"));
    assert_eq!(wide["plans"], plain["plans"]);
    assert_eq!([&wide["asked"]["most_items"], &wide["asked"]["planned_items"]], [6000, 9000]);
}

/// The range that works instead is one that can be built.
#[test]
fn a_range_that_is_too_wide_to_grow_is_told_what_works() {
    let run = tune("--items 0..1000T --fpr 1%");
    run.ok();
    let reason = run.unbroken();
    let (_, reason) =
        reason.split_once("- growing: --items: 1000000000000000 given, but with the other parameters ").expect("the reason");
    let most: usize = value_after(reason, "at most ").parse().expect("a number");
    let params = |most| ElasticFilter::builder().capacity(0).max_capacity(most).false_positive_rate(0.01).params();
    assert!(params(most).is_ok() && params(1_000_000_000_000_000).is_err(), "{most}");
}

#[test]
fn plans_are_legible_at_every_size() {
    // Each of the large ones takes a second.
    for items in ["0..0", "0..1", "5..5", "1..1000", "1k..300k", "1T..2T"] {
        let all = ["--fpr 0.00123456789", "--fpr 0.5", "--fpr 1e-7 --bytes 100"];
        for wanted in if items.ends_with('T') { &all[..1] } else { &all[..] } {
            assert_answers(&format!("--items {items} {wanted}"));
        }
    }
}
