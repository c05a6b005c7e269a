//! The marks of points.

use std::iter::{Once, once};

use plotters::{
    element::{Drawable, PointCollection},
    prelude::{Color as _, DrawingBackend, RGBColor, ShapeStyle},
};
use plotters_backend::DrawingErrorKind;

/// Half of a mark's width, in pixels.
const HALF: i32 = 4;

/// A mark at a point, in the coordinates of a plot or in pixels. Each colour has a shape of its own.
pub(super) struct Stamp<P> {
    pub(super) at: P,
    pub(super) form: usize,
    pub(super) colour: RGBColor,
    /// Only its outline.
    pub(super) hollow: bool,
}

impl<'a, P> PointCollection<'a, P> for &'a Stamp<P> {
    type Point = &'a P;
    type IntoIter = Once<&'a P>;

    fn point_iter(self) -> Self::IntoIter {
        once(&self.at)
    }
}

impl<P, B: DrawingBackend> Drawable<B> for Stamp<P> {
    fn draw<I: Iterator<Item = (i32, i32)>>(
        &self,
        points: I,
        backend: &mut B,
        _: (u32, u32),
    ) -> Result<(), DrawingErrorKind<B::ErrorType>> {
        let line = self.colour.stroke_width(2);
        for (x, y) in points {
            let by = |corners: &[(i32, i32)]| corners.iter().map(|&(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
            let corners = match self.form % 6 {
                0 => {
                    let style = ShapeStyle { filled: !self.hollow, ..self.colour.stroke_width(1) };
                    backend.draw_circle((x, y), HALF.unsigned_abs(), &style, !self.hollow)?;
                    continue;
                }
                1 => by(&[(-HALF, -HALF), (HALF, -HALF), (HALF, HALF), (-HALF, HALF)]),
                2 => by(&[(0, -HALF - 1), (HALF + 1, HALF), (-HALF - 1, HALF)]),
                3 => by(&[(0, -HALF - 1), (HALF + 1, 0), (0, HALF + 1), (-HALF - 1, 0)]),
                4 => by(&[(0, HALF + 1), (HALF + 1, -HALF), (-HALF - 1, -HALF)]),
                _ => {
                    backend.draw_path(by(&[(-HALF, -HALF), (HALF, HALF)]), &line)?;
                    backend.draw_path(by(&[(-HALF, HALF), (HALF, -HALF)]), &line)?;
                    continue;
                }
            };
            if self.hollow {
                let closed = corners.iter().chain(&corners[..1]).copied();
                backend.draw_path(closed, &self.colour.stroke_width(1))?;
            } else {
                backend.fill_polygon(corners, &self.colour)?;
            }
        }
        Ok(())
    }
}
