//! Runs the custom experiment of the documentation, and draws charts that are hard to lay out.

#[path = "../examples/demanding.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod demanding;
#[path = "../examples/hashers.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its `main` is not called")]
mod hashers;

use koel_lab::{Chart, Experiment as _, Outcome, Plan, Series, Settings, chart::draw, report};
use serde_json::Value;

#[test]
fn custom_experiments_write_the_same_kinds_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new(folder.path());
    let run = || {
        let plan = Plan::new(hashers::Hashers, &settings).unwrap();
        koel_lab::run("hashers", vec![plan], &settings).unwrap()
    };
    assert_eq!(run(), Outcome::Complete);
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["hashers-load.svg", "hashers.csv", "hashers.json", report::FILE]);
    let record: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("hashers.json")).unwrap()).unwrap();
    let loads = record["measured"].as_array().unwrap().iter().map(|measured| {
        let hash = measured["case"]["hash"].as_str().unwrap().to_owned();
        (hash, measured["rows"][0]["load"].as_f64().unwrap())
    });
    for (hash, load) in loads {
        assert!(if hash == "xxh3" { load > 0.95 } else { load < 0.3 }, "{hash}: {load}");
    }
}

/// Returns the numbers in all attributes of this name.
fn numbers(svg: &str, name: &str) -> Vec<f64> {
    let name = format!(" {name}=\"");
    let values = svg.split(&name).skip(1).filter_map(|rest| rest.split('"').next());
    values.flat_map(|value| value.split([',', ' '])).filter_map(|number| number.parse().ok()).collect()
}

/// The charts have long names, large numbers, all marks, many series or none, and points that cannot be drawn.
#[test]
fn demanding_charts_stay_within_their_pictures() {
    for mut chart in demanding::Demanding.findings(&[]).charts {
        let nowhere = vec![(f64::NAN, 1.0), (-1.0, 1.0), (10.0, f64::INFINITY)];
        chart.series.push(Series::new("nowhere", 9, nowhere));
        let svg = draw(&chart);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}", chart.file);
        let (width, height) = (numbers(&svg, "width")[0], numbers(&svg, "height")[0]);
        for (names, limit) in [(["x", "x1", "x2", "cx"], width), (["y", "y1", "y2", "cy"], height)] {
            let all: Vec<_> = names.iter().flat_map(|name| numbers(&svg, name)).collect();
            assert!(all.len() > 20 && all.iter().all(|n| (0.0..=limit).contains(n)), "{}: {all:?}", chart.file);
        }
        assert!(numbers(&svg, "points").iter().all(|n| (0.0..=width.max(height)).contains(n)), "{}", chart.file);
        assert!(numbers(&svg, "font-size").iter().all(|&size| size >= 13.0), "{}", chart.file);
        assert_eq!(svg, draw(&chart), "equal data give equal bytes");
    }
}

#[test]
fn drawings_contain_all_parts_of_a_chart() {
    let [chart, _, long, ..] = &demanding::Demanding.findings(&[]).charts[..] else { panic!("no charts") };
    let svg = draw(chart);
    let count = |text: &str| svg.matches(text).count();
    // There are five lines and their entries in the legend; eight points and a legend entry for each mark, where a cross
    // consists of two lines; and eight intervals for each of six series.
    assert_eq!((count("<polyline "), count("<circle "), count("<polygon ")), (2 * 5, 9, 2 * 9));
    assert_eq!(count("stroke-width=\"2\""), 2 * 5 + 2 * 9);
    assert!(count("<line ") > 2 * 9 + 6 * 8 && !svg.contains("<lower bound>") && svg.contains("&lt;lower bound&gt;"), "{svg}");
    assert!(svg.contains(" role=\"img\" aria-label=\"Both axes in powers of ten, with intervals\""), "{svg}");
    assert_eq!(draw(long).matches("font-weight=\"bold\"").count(), 2, "the title has two lines");
    // Without a finding, the topic is the title; without points, the axes are drawn.
    assert_eq!((chart.title(), chart.subtitle()), (chart.finding.as_deref().unwrap(), Some(&*chart.topic)));
    assert!(svg.contains(&format!("<desc>{}. {}</desc>", chart.topic, chart.caption)), "{svg}");
    let open = Chart { finding: None, series: Vec::new(), ..chart.clone() };
    assert_eq!((open.title(), open.subtitle()), (&*chart.topic, None));
    let svg = draw(&open);
    assert!(svg.contains(&format!("aria-label=\"{}\"", chart.topic)), "{svg}");
    assert!(svg.contains(&format!("<desc>{}</desc>", chart.caption)) && svg.matches("<text").count() > 6, "{svg}");
}
