//! Colours for dark pages, and text for screen readers.

use std::fmt::Write as _;

use super::{Chart, palette};

/// Adds a role, a title, a description and style rules to a picture, which plotters cannot write.
pub(super) fn finish(svg: &str, chart: &Chart) -> String {
    let (title, description) = (escaped(chart.title()), escaped(&description(chart)));
    let Some((head, body)) = svg.split_once('>') else { return svg.to_owned() };
    format!(
        "{head} role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<desc>{description}</desc>\n<style>{}</style>{body}",
        dark()
    )
}

/// The topic, unless it is the title, and the caption.
fn description(chart: &Chart) -> String {
    chart.subtitle().map_or_else(|| chart.caption.clone(), |topic| format!("{topic}. {}", chart.caption))
}

/// The rule that replaces each colour on dark pages.
fn dark() -> String {
    let mut rules = String::from("@media(prefers-color-scheme:dark){");
    for colour in palette::all() {
        let [light, dark] = [colour.light, colour.dark].map(|[r, g, b]| format!("#{r:02X}{g:02X}{b:02X}"));
        write!(rules, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}").ok();
    }
    rules + "}"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
