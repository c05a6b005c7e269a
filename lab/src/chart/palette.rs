//! Colours for light and dark pages.

/// A colour for light pages, and its counterpart for dark pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Colour {
    light: [u8; 3],
    dark: [u8; 3],
}

impl Colour {
    /// The one for light pages, as in SVG.
    pub(super) fn light(self) -> String {
        hexadecimal(self.light)
    }
}

fn hexadecimal([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

const fn colour(light: u32, dark: u32) -> Colour {
    let [_, a, b, c] = light.to_be_bytes();
    let [_, d, e, f] = dark.to_be_bytes();
    Colour { light: [a, b, c], dark: [d, e, f] }
}

/// The colours of series, found by a search that maximized the least distance between two of them, as the test below
/// measures it.
pub(super) const COLOURS: [Colour; 6] = [
    colour(0x05_39_be, 0xbf_d1_f1),
    colour(0x63_28_05, 0xc4_39_17),
    colour(0x1c_a1_73, 0x08_fd_a5),
    colour(0xd8_5e_c1, 0xd6_1a_f7),
    colour(0x9d_8d_18, 0xfa_c8_03),
    colour(0x14_14_1a, 0x67_67_6d),
];

/// The colour of text and axes.
pub(super) const INK: Colour = colour(0x1d_1d_21, 0xe8_e8_ee);

/// The colour of grid lines.
pub(super) const GRID: Colour = colour(0xd9_d9_de, 0x3c_3c_44);

/// The colour of a series for light pages, as in SVG.
pub(super) fn of(series: usize) -> String {
    COLOURS[series % COLOURS.len()].light()
}

/// The style rules that replace each colour on dark pages.
pub(super) fn dark() -> String {
    let rule = |colour: Colour| {
        let [light, dark] = [colour.light, colour.dark].map(hexadecimal);
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    };
    let rules: String = COLOURS.into_iter().chain([INK, GRID]).map(rule).collect();
    format!("@media(prefers-color-scheme:dark){{{rules}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of pages.
    const WHITE: [u8; 3] = [0xff; 3];
    const BLACK: [u8; 3] = [0x16, 0x16, 0x1a];

    /// Normal sight, protanopia, deuteranopia and tritanopia: the matrices of Machado, Oliveira and Fernandes (2009) for full
    /// severity, for linear RGB.
    const BLINDNESS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152_286, 1.052_583, -0.204_868], [0.114_503, 0.786_281, 0.099_216], [-0.003_882, -0.048_116, 1.051_998]],
        [[0.367_322, 0.860_646, -0.227_968], [0.280_085, 0.672_501, 0.047_413], [-0.011_820, 0.042_940, 0.968_881]],
        [[1.255_528, -0.076_749, -0.178_779], [-0.078_411, 0.930_809, 0.147_602], [0.004_733, 0.691_367, 0.303_900]],
    ];

    fn linear(colour: [u8; 3]) -> [f64; 3] {
        colour.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
    }

    /// CIE L*a*b* with D65 white.
    fn lab(light: [f64; 3]) -> [f64; 3] {
        let xyz = times(
            [[0.412_456, 0.357_576, 0.180_438], [0.212_673, 0.715_152, 0.072_175], [0.019_334, 0.119_192, 0.950_304]],
            light.map(|part| part.clamp(0.0, 1.0)),
        );
        let [x, y, z] = [xyz[0] / 0.950_47, xyz[1], xyz[2] / 1.088_83]
            .map(|t: f64| if t > 0.008_856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// WCAG's contrast ratio.
    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let light = |colour| {
            let [r, g, b] = linear(colour);
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_two_colours_differ_for_every_eye() {
        for (page, of) in [(WHITE, (|c: Colour| c.light) as fn(Colour) -> [u8; 3]), (BLACK, |c| c.dark)] {
            for (place, one) in COLOURS.iter().enumerate() {
                assert!(contrast(of(*one), page) >= 3.0, "{one:x?} on {page:x?}: {:.2}", contrast(of(*one), page));
                for other in &COLOURS[..place] {
                    for (kind, matrix) in BLINDNESS.into_iter().enumerate() {
                        let [one, other] = [*one, *other].map(|colour| lab(times(matrix, linear(of(colour)))));
                        let distance = one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                        // 2.3 is just noticeable.
                        assert!(distance >= 30.0, "{place}, {other:?}: {distance:.1} apart for sight {kind} on {page:x?}");
                    }
                }
            }
            assert!(contrast(of(INK), page) >= 7.0);
            assert!((1.2..3.0).contains(&contrast(of(GRID), page)), "{}", contrast(of(GRID), page));
        }
    }
}
