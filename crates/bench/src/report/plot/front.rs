//! Named points between what they cost and what they give, and the line that nothing is better than.

use super::canvas::{Anchor, At, Canvas, Ink, WIDTH, room};
use super::ticks::{Axis, log, log_ticks, share_ticks, spread};
use super::{Scale, value_name};

/// Named points: a quantity on the horizontal axis (logarithmic, less is better), a share on the vertical one (more is
/// better).
#[derive(Debug, Clone)]
pub struct Front {
    /// Says what is shown.
    pub title: String,
    /// Title and unit of the horizontal axis.
    pub x_title: String,
    /// Title of the vertical axis.
    pub y_title: String,
    /// The points.
    pub points: Vec<Named>,
}

/// One point of a [`Front`].
#[derive(Debug, Clone)]
pub struct Named {
    /// Its name, with what neither axis shows.
    pub name: String,
    /// Its place among colours and markers.
    pub color: usize,
    /// The place on the horizontal axis, positive.
    pub cost: f64,
    /// The place on the vertical axis, in [0, 1].
    pub gain: f64,
    /// Whether its marker is hollow; the title says what that means.
    pub is_hollow: bool,
}

const HEIGHT: i32 = 280;
const LEFT: i32 = 58;

impl Front {
    /// The picture; `None` when no point can be drawn.
    #[must_use]
    pub fn svg(mut self) -> Option<String> {
        self.points.retain(|point| Scale::Log.has(point.cost) && Scale::Share.has(point.gain));
        if self.points.is_empty() {
            return None;
        }
        self.points.sort_by(|left, right| left.cost.total_cmp(&right.cost).then(right.gain.total_cmp(&left.gain)));
        let said = self.points.iter().map(|point| {
            format!(
                "{}: {} at {}",
                point.name,
                value_name(Scale::Share, point.gain),
                value_name(Scale::Log, point.cost)
            )
        });
        let said = said.collect::<Vec<_>>().join("; ");
        let mut canvas = Canvas::new(&self.title, format!("{} by {}. {said}.", self.y_title, self.x_title));
        let top = canvas.top() + 34;
        self.draw(&mut canvas, (top, top + HEIGHT));
        Some(canvas.svg(top + HEIGHT + 56))
    }

    fn draw(&self, canvas: &mut Canvas, (top, bottom): (i32, i32)) {
        let labels = room(self.points.iter().map(|point| point.name.as_str()), 90, 230);
        let right = WIDTH - labels - 20;
        let ends = |of: fn(&Named) -> f64| {
            let values = self.points.iter().map(of);
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
        };
        let ((least, most), (low, high)) = (ends(|point| point.cost), ends(|point| point.gain));
        let (x_ticks, y_ticks) = (log_ticks(least, most), share_ticks(low, high));
        let x = Axis::new(&x_ticks, 0.03, (LEFT, right));
        let y = Axis::new(&y_ticks, 0.0, (bottom, top));
        canvas.text((14, top - 22), Anchor::Start, Ink::Quiet, &self.y_title);
        for tick in &y_ticks {
            let at = y.pixel(tick.at);
            canvas.grid((LEFT, at), (right, at));
            canvas.text((LEFT - 8, at), Anchor::End, Ink::Quiet, &tick.label);
        }
        for tick in &x_ticks {
            let at = x.pixel(tick.at);
            canvas.grid((at, top), (at, bottom));
            canvas.text((at, bottom + 18), Anchor::Middle, Ink::Quiet, &tick.label);
        }
        canvas.text(((LEFT + right) / 2, bottom + 42), Anchor::Middle, Ink::Quiet, &self.x_title);
        let place = |point: &Named| (x.pixel(log(point.cost)), y.pixel(point.gain));
        // Steps: up where more is paid for, right where nothing is gained.
        let mut steps: Vec<At> = Vec::new();
        for at in self.best().into_iter().map(place) {
            if let Some(&(_, height)) = steps.last() {
                steps.push((at.0, height));
            }
            steps.push(at);
        }
        canvas.stroke(0, true, &steps);
        let mut places: Vec<(&Named, At)> = self.points.iter().map(|point| (point, place(point))).collect();
        places.sort_by_key(|(point, (_, y))| (*y, point.color));
        let heights: Vec<i32> = places.iter().map(|(_, (_, y))| *y).collect();
        for ((point, at), height) in places.iter().zip(spread(&heights, 20, (top, bottom))) {
            canvas.stroke(point.color, true, &[*at, (right + 2, at.1), (right + 14, height)]);
            canvas.marker(point.color, *at, point.is_hollow);
            canvas.text((right + 18, height), Anchor::Start, Ink::Text, &point.name);
        }
    }

    /// The points that no other beats on both axes; the points are in ascending order of cost.
    fn best(&self) -> Vec<&Named> {
        let mut best: Vec<&Named> = Vec::new();
        for point in &self.points {
            if best.last().is_none_or(|last| point.gain > last.gain) {
                best.push(point);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_holds_what_nothing_beats() {
        let named = |name: &str, cost: f64, gain: f64| {
            let is_hollow = name == "beaten";
            Named { name: name.to_owned(), color: 0, cost, gain, is_hollow }
        };
        let mut front = Front {
            title: "t".to_owned(),
            x_title: "µs".to_owned(),
            y_title: "recall".to_owned(),
            points: vec![named("slow", 90.0, 0.8), named("fast", 3.0, 0.7), named("beaten", 50.0, 0.6)],
        };
        let svg = front.clone().svg().unwrap();
        assert!(svg.contains("recall by µs. fast: .700 at 3.00; beaten: .600 at 50.0; slow: .800 at 90.0."), "{svg}");
        assert_eq!((svg.matches("class=\"o s0\"").count(), svg.matches("class=\"f0\"").count()), (1, 2), "{svg}");
        front.points.sort_by(|left, right| left.cost.total_cmp(&right.cost));
        assert_eq!(front.best().iter().map(|point| point.name.as_str()).collect::<Vec<_>>(), ["fast", "slow"]);
        assert!(Front { points: vec![named("none", 0.0, 0.5)], ..front }.svg().is_none());
    }
}
