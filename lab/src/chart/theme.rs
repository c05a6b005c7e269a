//! What makes of a picture one for light and dark pages, that scales, and that is read aloud.

use std::fmt::Write as _;

use super::{Chart, palette};

/// Adds to a drawn picture what plotters has no words for.
pub(super) fn finish(svg: &str, chart: &Chart) -> String {
    let (title, caption) = (escaped(&chart.title), escaped(&chart.caption));
    let Some((head, body)) = svg.split_once('>') else { return svg.to_owned() };
    format!(
        "{head} role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<desc>{caption}</desc>\n<style>{}</style>{body}",
        dark()
    )
}

/// On dark pages each colour has its other one.
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
