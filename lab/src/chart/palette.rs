//! Colors for light and dark pages.

/// A color for light pages, and its counterpart for dark pages, as in SVG.
pub(super) type Color = [&'static str; 2];

/// The colors of series. They are the result of a search for the greatest distance between any two of them, as the test below
/// measures it.
pub(super) const COLORS: [Color; 6] = [
    ["#0539BE", "#BFD1F1"],
    ["#632805", "#C43917"],
    ["#1CA173", "#08FDA5"],
    ["#D85EC1", "#D61AF7"],
    ["#9D8D18", "#FAC803"],
    ["#14141A", "#67676D"],
];

/// The color of text and axes.
pub(super) const INK: Color = ["#1D1D21", "#E8E8EE"];

/// The color of grid lines.
pub(super) const GRID: Color = ["#D9D9DE", "#3C3C44"];

/// Returns the color of a series for light pages.
pub(super) fn of(series: usize) -> &'static str {
    COLORS[series % COLORS.len()][0]
}

/// Returns the style rules that replace each color on dark pages.
pub(super) fn dark() -> String {
    let rule = |[light, dark]: Color| format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    let rules: String = COLORS.into_iter().chain([INK, GRID]).map(rule).collect();
    format!("@media(prefers-color-scheme:dark){{{rules}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: Color = ["#FFFFFF", "#16161A"];

    /// Matrices that simulate normal sight, protanopia, deuteranopia and tritanopia in linear RGB, at full severity (Machado,
    /// Oliveira and Fernandes, 2009).
    const BLINDNESS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    /// Converts a color to linear RGB.
    fn linear(color: &str) -> [f64; 3] {
        [1, 3, 5].map(|start| {
            let part = u8::from_str_radix(&color[start..start + 2], 16).expect("hexadecimal digits");
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// Converts linear RGB to CIE L*a*b* with D65 white.
    fn lab(light: [f64; 3]) -> [f64; 3] {
        let xyz = times(
            [[0.412_456, 0.357_576, 0.180_438], [0.212_673, 0.715_152, 0.072_175], [0.019_334, 0.119_192, 0.950_304]],
            light.map(|part| part.clamp(0.0, 1.0)),
        );
        let [x, y, z] = [xyz[0] / 0.950_47, xyz[1], xyz[2] / 1.088_83]
            .map(|t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// Returns the contrast ratio as WCAG defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let light = |color| {
            let [r, g, b] = linear(color);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn colors_differ_under_all_kinds_of_sight() {
        for (kind, page) in PAGES.into_iter().enumerate() {
            for (index, one) in COLORS.iter().enumerate() {
                assert!(contrast(one[kind], page) >= 3.0, "{one:?} on {page}: {:.2}", contrast(one[kind], page));
                for other in &COLORS[..index] {
                    for (sight, matrix) in BLINDNESS.into_iter().enumerate() {
                        let [a, b] = [one, other].map(|color| lab(times(matrix, linear(color[kind]))));
                        let distance = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        // A distance of 2.3 is just noticeable.
                        assert!(distance >= 30.0, "{one:?}, {other:?}: {distance:.1} apart for sight {sight} on {page}");
                    }
                }
            }
            assert!(contrast(INK[kind], page) >= 7.0);
            assert!((1.2..3.0).contains(&contrast(GRID[kind], page)), "{}", contrast(GRID[kind], page));
        }
    }
}
