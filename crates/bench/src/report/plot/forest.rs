//! Differences with their intervals against zero, sorted by value, each with its number.

use super::canvas::{Anchor, Canvas, Ink, WIDTH, fitted, room};
use super::intervals::Interval;
use super::ticks::{Axis, difference_ticks};
use crate::eval::record::Estimate;
use crate::report::number::difference;

/// Differences with their intervals, the largest first.
#[derive(Debug, Clone)]
pub struct Forest {
    /// Says what is shown.
    pub title: String,
    /// Which side of zero is which, and the unit.
    pub x_title: String,
    /// A label and its difference, in any order.
    pub rows: Vec<(String, Interval)>,
    /// What all rows say together, below them.
    pub together: Option<(String, Interval)>,
}

const ROW: i32 = 26;
/// Room for a difference and its interval.
const NUMBER: i32 = 184;

impl Forest {
    /// The picture; `None` without a row that can be drawn.
    #[must_use]
    pub fn svg(mut self) -> Option<String> {
        let is_shown = |value: &Interval| [value.mean, value.low, value.high].into_iter().all(f64::is_finite);
        self.rows.retain(|(_, value)| is_shown(value));
        if self.rows.is_empty() {
            return None;
        }
        self.rows.sort_by(|left, right| right.1.mean.total_cmp(&left.1.mean).then_with(|| left.0.cmp(&right.0)));
        let rows: Vec<(&str, Interval, bool)> = {
            let together = self.together.iter().filter(|(_, value)| is_shown(value));
            let own = self.rows.iter().map(|(label, value)| (label.as_str(), *value, false));
            own.chain(together.map(|(label, value)| (label.as_str(), *value, true))).collect()
        };
        let said = rows.iter().map(|(label, value, _)| format!("{label}: {}", number(value)));
        let said = said.collect::<Vec<_>>().join("; ");
        let mut canvas = Canvas::new(&self.title, format!("{}. {said}.", self.x_title));
        let top = canvas.top() + 10;
        let bottom = top + ROW * rows.len() as i32;
        self.draw(&mut canvas, &rows, (top, bottom));
        Some(canvas.svg(bottom + 56))
    }

    fn draw(&self, canvas: &mut Canvas, rows: &[(&str, Interval, bool)], (top, bottom): (i32, i32)) {
        let labels = room(rows.iter().map(|(label, ..)| *label), 90, 170);
        let (start, end) = (labels + 26, WIDTH - NUMBER - 16);
        let (least, most) = rows
            .iter()
            .fold((0.0f64, 0.0f64), |(least, most), (_, value, _)| (least.min(value.low), most.max(value.high)));
        let ticks = difference_ticks(least, most);
        let axis = Axis::new(&ticks, 0.02, (start, end));
        let mut free = i32::MIN;
        for tick in &ticks {
            let x = axis.pixel(tick.at);
            canvas.grid((x, top), (x, bottom));
            let half = room([tick.label.as_str()], 0, 60) / 2;
            if x - half >= free {
                canvas.text((x, bottom + 16), Anchor::Middle, Ink::Quiet, &tick.label);
                free = x + half;
            }
        }
        canvas.axis((axis.pixel(0.0), top - 4), (axis.pixel(0.0), bottom));
        canvas.text(((start + end) / 2, bottom + 40), Anchor::Middle, Ink::Quiet, &self.x_title);
        for (at, (label, value, is_together)) in rows.iter().enumerate() {
            let y = top + ROW * at as i32 + ROW / 2;
            let series = if *is_together { 3 } else { 0 };
            if *is_together {
                canvas.axis((14, y - ROW / 2), (WIDTH - 10, y - ROW / 2));
            }
            canvas.text((start - 14, y), Anchor::End, Ink::Text, &fitted(label, labels));
            canvas.stroke(series, false, &[(axis.pixel(value.low), y), (axis.pixel(value.high), y)]);
            let holds_zero = value.low <= 0.0 && value.high >= 0.0;
            canvas.marker(series, (axis.pixel(value.mean), y), holds_zero);
            canvas.text((WIDTH - 10, y), Anchor::End, Ink::Text, &number(value));
        }
    }
}

fn number(&Interval { mean, low, high }: &Interval) -> String {
    difference(&Estimate { mean, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_stand_by_value_and_those_that_may_be_none_are_hollow() {
        let value = |mean: f64| Interval { mean, low: mean - 0.01, high: mean + 0.01 };
        let forest = Forest {
            title: "t".to_owned(),
            x_title: "less control".to_owned(),
            rows: [("a", 0.02), ("b", 0.005), ("c", 0.05), ("d", f64::NAN)]
                .map(|(label, mean)| (label.to_owned(), value(mean)))
                .into(),
            together: Some(("mean".to_owned(), value(0.025))),
        };
        let svg = forest.clone().svg().unwrap();
        let said = "less control. c: +.050 [+.040, +.060]; a: +.020 [+.010, +.030]; b: +.005 [−.005, +.015]; mean: +.025 \
                    [+.015, +.035].";
        assert!(svg.contains(said), "{svg}");
        assert_eq!(svg.matches("class=\"o s0\"").count(), 1);
        assert!(Forest { rows: Vec::new(), ..forest }.svg().is_none());
    }
}
