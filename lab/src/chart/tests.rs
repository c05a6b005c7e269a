use super::*;

/// A title and names longer than a line, six colours, all marks, intervals, and points that cannot be drawn.
fn demanding() -> Chart {
    let marks = [Mark::Points, Mark::Line, Mark::Dashes, Mark::DashedPoints, Mark::Dots, Mark::Points];
    let series = marks.into_iter().enumerate().map(|(colour, mark)| {
        let points: Vec<_> = (1..=9).map(|n| (10f64.powi(n), 10f64.powi(-n) * (colour + 1) as f64)).collect();
        let intervals = points.iter().map(|&(_, y)| (y / 3.0, y * 3.0)).collect();
        let name = match colour {
            0 => String::from("a"),
            1 => "a name that goes on and on ".repeat(4),
            _ => format!("of {colour} & <others>"),
        };
        Series::new(name, colour, points).marked(mark).within(intervals)
    });
    let nowhere = Series::new("nowhere", 9, vec![(f64::NAN, 1.0), (0.0, 1.0), (10.0, f64::INFINITY)]);
    Chart {
        file: String::from("demanding"),
        topic: String::from("The topic"),
        finding: Some("A title of many words & <brackets> ".repeat(3)),
        caption: String::from("a caption"),
        x: Axis::log("items"),
        y: Axis::log("rate of false positives"),
        series: series.chain([nowhere]).collect(),
    }
}

/// The numbers in all attributes of this name.
fn numbers(svg: &str, name: &str) -> Vec<f64> {
    let name = format!(" {name}=\"");
    let values = svg.split(&name).skip(1).filter_map(|rest| rest.split('"').next());
    values.flat_map(|value| value.split([',', ' '])).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn a_demanding_chart_stays_within_its_picture() {
    let svg = draw(&demanding());
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    let (width, height) = (numbers(&svg, "width")[0], numbers(&svg, "height")[0]);
    for (names, limit) in [(["x", "x1", "x2", "cx"], width), (["y", "y1", "y2", "cy"], height)] {
        let all: Vec<_> = names.iter().flat_map(|name| numbers(&svg, name)).collect();
        assert!(all.len() > 20 && all.iter().all(|n| (0.0..=limit).contains(n)), "{all:?}");
    }
    assert!(numbers(&svg, "points").iter().all(|n| (0.0..=width.max(height)).contains(n)));
    assert!(numbers(&svg, "font-size").iter().all(|&size| size >= 14.0));
    // Three lines of title and of the long name.
    assert_eq!(svg.matches("font-weight=\"bold\"").count(), 3);
    assert!(svg.contains("role=\"img\" aria-label=\"A title of many words &amp; &lt;brackets&gt;"));
    assert!(!svg.contains("<others>") && svg.contains("&lt;others&gt;"));
}

#[test]
fn every_line_is_there_with_its_intervals() {
    let chart = demanding();
    let svg = draw(&chart);
    let drawn = |colour: usize| svg.matches(&format!("\"{}\"", palette::of(colour))).count();
    // A line, nine intervals, nine marks if there are any, and the entry in the legend.
    for (colour, least) in
        [(0, 1 + 9 + 9 + 2), (1, 1 + 9 + 1), (2, 1 + 9 + 1), (3, 1 + 9 + 9 + 2), (4, 9 + 9 + 1), (5, 1 + 9 + 18)]
    {
        // The style rules name each colour twice, for fill and for stroke.
        assert!(drawn(colour) >= least + 2, "{colour}: {}", drawn(colour));
    }
    assert_eq!(svg, draw(&chart), "the same data, the same bytes");
}

#[test]
fn an_empty_chart_has_axes() {
    let chart = Chart { series: Vec::new(), ..demanding() };
    let svg = draw(&chart);
    assert!(svg.contains("rate of false positives") && svg.matches("<text").count() > 6);
}

#[test]
fn the_topic_is_the_title_until_there_is_a_finding() {
    let found = demanding();
    assert_eq!((found.title(), found.subtitle()), (found.finding.as_deref().unwrap_or(""), Some("The topic")));
    assert!(draw(&found).contains("<desc>The topic. a caption</desc>"));
    let open = Chart { finding: None, ..demanding() };
    assert_eq!((open.title(), open.subtitle()), ("The topic", None));
    let svg = draw(&open);
    assert!(svg.contains("aria-label=\"The topic\"") && svg.contains("<desc>a caption</desc>"));
    assert_eq!(svg.matches("font-weight=\"bold\"").count(), 1);
}
