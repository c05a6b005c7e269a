//! Labels beside points: each as near to its point as it can be without covering a mark or another label. If it is not right
//! beside the point, a leader line connects the two.

use koel::{Hasher as _, Xxh3};

/// Height of a label.
const HEIGHT: i32 = 16;
/// Half of the place that a mark takes.
const MARK: i32 = 6;
/// From the middle of a mark to a label beside it.
const BESIDE: i32 = 8;
/// By how much the distances that are tried differ, and how many there are.
const STEP: i32 = 9;
const STEPS: i32 = 28;
/// The directions that are tried, in sixteenths of a turn clockwise from the right, the best first; and how much of the
/// label, in halves, is to the left of the place to which they lead.
const DIRECTIONS: [(u8, i32); 20] = [
    (0, 0),
    (8, 2),
    (12, 1),
    (4, 1),
    (14, 0),
    (2, 0),
    (10, 2),
    (6, 2),
    (15, 0),
    (1, 0),
    (9, 2),
    (7, 2),
    (12, 0),
    (4, 0),
    (12, 2),
    (4, 2),
    (13, 0),
    (3, 0),
    (11, 2),
    (5, 2),
];
/// A move of one label may make room for another: how often all of them are placed anew.
const ROUNDS: usize = 40;
/// A label costs the square of its distance, divided by this: one that is far away looks as if it belonged to another point.
const NEAR: i32 = 12;
/// How many orders are tried, and how many if the first ones are good enough.
const ORDERS: u64 = 150;
const FEWEST_ORDERS: u64 = 6;
/// What it costs if a label covers something, and if a leader line crosses something.
const COVERS: i32 = 50_000;
const CROSSES: i32 = 20_000;

pub(super) type Pixel = (i32, i32);

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

/// Where a label is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) frame: Frame,
    /// From the mark to the label, unless they touch.
    pub(super) leader: Option<(Pixel, Pixel)>,
}

impl Frame {
    fn around((x, y): Pixel, half: i32) -> Self {
        Self { left: x - half, top: y - half, right: x + half, bottom: y + half }
    }

    fn overlaps(self, other: Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn is_in(self, other: Self) -> bool {
        self.left >= other.left && self.right <= other.right && self.top >= other.top && self.bottom <= other.bottom
    }

    /// Whether the line passes through it: whether it has one of the line's points, which are two pixels apart.
    fn is_crossed(self, (from, to): (Pixel, Pixel)) -> bool {
        // Most lines are far away.
        let beyond = |from: i32, to: i32, low: i32, high: i32| from.max(to) < low || from.min(to) > high;
        if beyond(from.0, to.0, self.left, self.right) || beyond(from.1, to.1, self.top, self.bottom) {
            return false;
        }
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = (dx.abs().max(dy.abs()) / 2).max(1);
        let (first_x, last_x) = steps_within(self.left - from.0, self.right - from.0, dx, steps);
        let (first_y, last_y) = steps_within(self.top - from.1, self.bottom - from.1, dy, steps);
        first_x.max(first_y) <= last_x.min(last_y)
    }
}

/// The first and the last of the numbers from 0 to `steps` for which `delta` · number ÷ `steps`, rounded towards zero, is in the
/// range from `low` to `high`. If there is none, the first is greater than the last.
fn steps_within(low: i32, high: i32, delta: i32, steps: i32) -> (i32, i32) {
    let (low, high) = if delta < 0 { (-high, -low) } else { (low, high) };
    match delta.abs() {
        _ if high < 0 => (1, 0),
        0 if low > 0 => (1, 0),
        0 => (0, steps),
        delta => ((low.max(0) * steps + delta - 1) / delta, (((high + 1) * steps - 1) / delta).min(steps)),
    }
}

/// Places a label of each of these widths at its point, within the frame. `bars` are other things that no label may cover.
///
/// Which label chooses first matters: the best of several orders is taken, all of them the same in every run. More of them are
/// tried while something crosses or covers something else.
pub(super) fn place(within: Frame, labels: &[(Pixel, i32)], bars: &[Frame]) -> Vec<Place> {
    let labels: Vec<_> = labels.iter().map(|&(at, width)| Label::new(at, width, within)).collect();
    let mut order: Vec<_> = (0..labels.len()).collect();
    let mut best = arrange(&labels, bars, &order);
    for number in 1..ORDERS {
        if best.0 < CROSSES && number >= FEWEST_ORDERS {
            break;
        }
        order.sort_by_key(|&label| Xxh3.hash(number, &label.to_le_bytes()));
        let other = arrange(&labels, bars, &order);
        if other.0 < best.0 {
            best = other;
        }
    }
    without_crossed(best.1)
}

/// Leaves out leader lines that pass through labels: text can be read without its line, but not through another one.
fn without_crossed(mut places: Vec<Place>) -> Vec<Place> {
    let frames: Vec<_> = places.iter().map(|place| place.frame).collect();
    for (number, place) in places.iter_mut().enumerate() {
        let others = frames.iter().enumerate().filter(|(other, _)| *other != number);
        place.leader = place.leader.filter(|&leader| others.into_iter().all(|(_, frame)| !frame.is_crossed(leader)));
    }
    places
}

/// Takes a label through all of its possible places, and then the next in this order, until no label finds a better place.
/// Returns the sum of their costs, too.
fn arrange(labels: &[Label], bars: &[Frame], order: &[usize]) -> (i32, Vec<Place>) {
    let marks: Vec<_> = labels.iter().map(|label| label.mark).collect();
    let mut placed: Vec<Option<(i32, Place)>> = vec![None; labels.len()];
    for _ in 0..ROUNDS {
        let before = placed.clone();
        for &number in order {
            let around = Surroundings::of(number, &placed, &marks, bars);
            placed[number] = None;
            let mut least = i32::MAX;
            for &(distance, place) in &labels[number].places {
                // Of equal ones, the first. What is around a label need not be known where the distance alone costs as much,
                // and no lines where what it covers does.
                if distance >= least {
                    continue;
                }
                let so_far = distance + around.covered(&place);
                if so_far >= least {
                    continue;
                }
                let cost = so_far + around.crossed(&place);
                if cost < least {
                    least = cost;
                    placed[number] = Some((distance, place));
                }
            }
        }
        if placed == before {
            break;
        }
    }
    // Not those when each was placed: others have moved since, if the rounds were not enough.
    let costs = placed.iter().enumerate().filter_map(|(number, place)| {
        let (distance, place) = (*place)?;
        let around = Surroundings::of(number, &placed, &marks, bars);
        Some(distance + around.covered(&place) + around.crossed(&place))
    });
    let cost = costs.sum();
    let places = placed.into_iter().zip(labels);
    (cost, places.map(|(place, label)| place.map_or(label.otherwise, |(_, place)| place)).collect())
}

/// A label, and where it can be.
struct Label {
    mark: Frame,
    /// All places within the frame, each with the cost of its distance.
    places: Vec<(i32, Place)>,
    /// If there is none.
    otherwise: Place,
}

impl Label {
    fn new(at: Pixel, width: i32, within: Frame) -> Self {
        let inside = candidates(at, width).filter(|(_, place)| place.frame.is_in(within));
        let (top, bottom) = (at.1 - HEIGHT / 2, at.1 + HEIGHT / 2);
        // A label wider than the frame begins at its left.
        let wide = Frame { left: within.left, top, right: within.left + width, bottom };
        Self {
            mark: Frame::around(at, MARK),
            places: inside.map(|(far, place)| (far * far / NEAR, place)).collect(),
            otherwise: Place { frame: wide, leader: None },
        }
    }
}

/// What is around a label.
struct Surroundings<'a> {
    marks: &'a [Frame],
    /// The mark that the label is of.
    own: Frame,
    bars: &'a [Frame],
    labels: Vec<Place>,
}

impl<'a> Surroundings<'a> {
    /// Of the label with this number, where the others are placed.
    fn of(number: usize, placed: &[Option<(i32, Place)>], marks: &'a [Frame], bars: &'a [Frame]) -> Self {
        let others = placed.iter().enumerate().filter(|(other, _)| *other != number);
        Self { marks, own: marks[number], bars, labels: others.filter_map(|(_, place)| Some((*place)?.1)).collect() }
    }

    /// What it costs that something crosses something.
    fn crossed(&self, place: &Place) -> i32 {
        CROSSES * count(self.crossings(place))
    }

    /// What it costs that something is covered.
    fn covered(&self, place: &Place) -> i32 {
        let labels = self.labels.iter().map(|other| &other.frame);
        COVERS * count(self.marks.iter().chain(self.bars).chain(labels).filter(|frame| frame.overlaps(place.frame)).count())
    }

    /// How many labels, leader lines and marks are in the way of a label's leader line, and how many leader lines cross the
    /// label.
    fn crossings(&self, place: &Place) -> usize {
        let lines = || self.labels.iter().filter_map(|other| other.leader);
        let through = lines().filter(|&line| place.frame.is_crossed(line)).count();
        let Some(leader) = place.leader else { return through };
        let labels = self.labels.iter().filter(|other| other.frame.is_crossed(leader)).count();
        let marks = self.marks.iter().filter(|&&mark| mark != self.own && mark.is_crossed(leader)).count();
        through + labels + marks + lines().filter(|&other| cross(leader, other)).count()
    }
}

fn count(things: usize) -> i32 {
    i32::try_from(things).unwrap_or(i32::MAX / COVERS)
}

/// All places for a label, each with its distance in pixels and a little more for a worse direction.
fn candidates(at: Pixel, width: i32) -> impl Iterator<Item = (i32, Place)> {
    let ways = |step| DIRECTIONS.into_iter().zip(0..).map(move |(way, rank)| (step * STEP, way, rank));
    (0..STEPS).flat_map(ways).map(move |(far, (direction, halves), rank)| {
        let angle = f64::from(direction) / 16.0 * std::f64::consts::TAU;
        let point = |distance: i32| {
            #[allow(clippy::cast_possible_truncation, reason = "at most the width of a picture")]
            let along = |share: f64| (share * f64::from(distance)).round() as i32;
            (at.0 + along(angle.cos()), at.1 + along(angle.sin()))
        };
        let (x, y) = point(BESIDE + far);
        let left = x - width * halves / 2;
        let middle = match direction {
            4 => y + HEIGHT / 2,
            12 => y - HEIGHT / 2,
            _ => y,
        };
        let frame = Frame { left, top: middle - HEIGHT / 2, right: left + width, bottom: middle + HEIGHT / 2 };
        let leader = (far > 0).then(|| (point(MARK), (x, y)));
        (far + rank, Place { frame, leader })
    })
}

/// Whether two lines cross.
fn cross((a, b): (Pixel, Pixel), (c, d): (Pixel, Pixel)) -> bool {
    let side = |p: Pixel, q: Pixel, r: Pixel| ((q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0)).signum();
    side(a, b, c) != side(a, b, d) && side(c, d, a) != side(c, d, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Frame = Frame { left: 0, top: 0, right: 400, bottom: 300 };

    #[test]
    fn a_label_is_beside_its_point_where_there_is_room() {
        let of = |at| place(PLOT, &[(at, 100)], &[])[0];
        assert_eq!(of((50, 50)), Place { frame: Frame { left: 58, top: 42, right: 158, bottom: 58 }, leader: None });
        // At the right end to the left; between the two ends above.
        assert_eq!(of((390, 50)).frame.right, 382);
        let narrow = place(Frame { right: 120, ..PLOT }, &[((60, 50), 100)], &[])[0];
        assert_eq!((narrow.frame.bottom, narrow.leader), (42, None));
        // Nowhere: it begins at the left.
        assert_eq!(place(PLOT, &[((50, 50), 500)], &[])[0].frame.left, 0);
    }

    #[test]
    fn nothing_is_covered_in_a_crowd() {
        let crowd: Vec<_> = (0..18).map(|n| ((180 + 9 * (n % 4), 120 + 7 * (n / 4)), 90 + 5 * n)).collect();
        let bars = [Frame { left: 193, top: 60, right: 195, bottom: 200 }];
        let placed = place(PLOT, &crowd, &bars);
        for (number, one) in placed.iter().enumerate() {
            assert!(one.frame.is_in(PLOT), "{one:?}");
            assert!(placed[..number].iter().all(|other| !other.frame.overlaps(one.frame)), "{number}: {placed:?}");
            assert!(crowd.iter().all(|&(at, _)| !Frame::around(at, MARK).overlaps(one.frame)), "{number}: {one:?}");
            assert!(bars.iter().all(|bar| !bar.overlaps(one.frame)), "{number}: {one:?}");
        }
        assert!(placed.iter().any(|one| one.leader.is_some()));
        for (number, one) in placed.iter().enumerate() {
            let others = placed.iter().enumerate().filter(|(other, _)| *other != number);
            let crossed = others.filter(|(_, other)| one.leader.is_some_and(|leader| other.frame.is_crossed(leader)));
            assert_eq!(crossed.count(), 0, "{number}: {placed:?}");
        }
        assert_eq!(placed, place(PLOT, &crowd, &bars), "the same points, the same places");
    }

    #[test]
    fn a_line_crosses_a_frame_that_has_one_of_its_points() {
        let mut random = 0..;
        let mut number = |low: i32, high: i32| low + (Xxh3.hash(random.next().unwrap_or(0), b"") % 97) as i32 * (high - low) / 97;
        let mut crossed = 0;
        for _ in 0..10_000 {
            let (left, top) = (number(0, 60), number(0, 60));
            let frame = Frame { left, top, right: left + number(0, 30), bottom: top + number(0, 30) };
            let (from, to) = ((number(-9, 80), number(-9, 80)), (number(-9, 80), number(-9, 80)));
            let (dx, dy) = (to.0 - from.0, to.1 - from.1);
            let steps = (dx.abs().max(dy.abs()) / 2).max(1);
            let has_one = (0..=steps).any(|step| {
                let (x, y) = (from.0 + dx * step / steps, from.1 + dy * step / steps);
                (frame.left..=frame.right).contains(&x) && (frame.top..=frame.bottom).contains(&y)
            });
            assert_eq!(frame.is_crossed((from, to)), has_one, "{frame:?}, from {from:?} to {to:?}");
            crossed += usize::from(has_one);
        }
        assert!((1000..9000).contains(&crossed), "{crossed}");
    }

    #[test]
    fn lines_cross_or_do_not() {
        assert!(cross(((0, 0), (10, 10)), ((0, 10), (10, 0))));
        assert!(!cross(((0, 0), (10, 10)), ((20, 0), (11, 9))));
        let frame = Frame::around((50, 50), 10);
        assert!(frame.is_crossed(((0, 0), (100, 100))) && !frame.is_crossed(((0, 0), (100, 30))));
    }
}
