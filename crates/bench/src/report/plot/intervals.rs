//! Dots with intervals, and beside them their numbers: one row per name, one dot per series.

use super::canvas::{Anchor, Canvas, Ink, WIDTH, fitted, room};
use super::ticks::{Axis, Tick, log, log_ticks, share_ticks};
use super::{Scale, value_name};

/// Dots with intervals: one row per name, one dot per series, all on one axis.
#[derive(Debug, Clone)]
pub struct IntervalPlot {
    /// Says what is shown.
    pub title: String,
    /// Title and unit of the horizontal axis.
    pub x_title: String,
    /// The scale of the horizontal axis; of shares it has the tenths around the intervals.
    pub scale: Scale,
    /// The names of the series, in the order of their dots within a row.
    pub series: Vec<String>,
    /// A label and, per series, the mean and the ends of its interval.
    pub rows: Vec<(String, Vec<Option<Interval>>)>,
    /// Whether the dots of a row stand on one line: for rows that have one value each, where a series is a kind of row.
    pub one_lane: bool,
}

/// A mean and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The place of the dot.
    pub mean: f64,
    /// The left end.
    pub low: f64,
    /// The right end.
    pub high: f64,
}

const LANE: i32 = 18;
/// Room for a number of a row.
const NUMBER: i32 = 84;

impl IntervalPlot {
    /// The picture; `None` without rows.
    #[must_use]
    pub fn svg(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let mut canvas = Canvas::new(&self.title, self.description());
        let top = canvas.top() + 34;
        let bottom = top + self.row_height() * self.rows.len() as i32;
        self.draw(&mut canvas, (top, bottom));
        Some(canvas.svg(bottom + 56))
    }

    /// The rows in words.
    fn description(&self) -> String {
        let row = |(label, values): &(String, Vec<Option<Interval>>)| {
            let said = self.series.iter().zip(values).filter_map(|(series, value)| {
                let value = self.shown(*value)?;
                Some(format!("{series} {}", value_name(self.scale, value.mean)))
            });
            format!("{label}: {}", said.collect::<Vec<_>>().join(", "))
        };
        format!("{}. {}.", self.x_title, self.rows.iter().map(row).collect::<Vec<_>>().join("; "))
    }

    fn shown(&self, value: Option<Interval>) -> Option<Interval> {
        value.filter(|value| [value.mean, value.low, value.high].into_iter().all(|one| self.scale.has(one)))
    }

    fn row_height(&self) -> i32 {
        LANE * self.lanes() + 8
    }

    fn lanes(&self) -> i32 {
        if self.one_lane { 1 } else { self.series.len().max(1) as i32 }
    }

    fn ticks(&self) -> Vec<Tick> {
        let values = self.rows.iter().flat_map(|(_, values)| values).filter_map(|value| self.shown(*value));
        if self.scale == Scale::Share {
            let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
                let (least, most) = ends.unwrap_or((value.low, value.high));
                Some((least.min(value.low), most.max(value.high)))
            });
            let (least, most) = ends.unwrap_or((0.0, 1.0));
            return share_ticks(least, most);
        }
        let (least, most) =
            values.fold((f64::INFINITY, 1.0f64), |(least, most), value| (least.min(value.low), most.max(value.high)));
        log_ticks(least.min(most), most)
    }

    fn draw(&self, canvas: &mut Canvas, (top, bottom): (i32, i32)) {
        let labels = room(self.rows.iter().map(|(label, _)| label.as_str()), 90, 250);
        let (start, end) = (labels + 26, WIDTH - NUMBER);
        let ticks = self.ticks();
        let axis = Axis::new(&ticks, 0.0, (start, end));
        let mut free = i32::MIN;
        for tick in &ticks {
            let x = axis.pixel(tick.at);
            canvas.grid((x, top), (x, bottom));
            if x - 20 >= free {
                canvas.text((x, bottom + 16), Anchor::Middle, Ink::Quiet, &tick.label);
                free = x + 20;
            }
        }
        canvas.text(((start + end) / 2, bottom + 40), Anchor::Middle, Ink::Quiet, &self.x_title);
        self.draw_key(canvas, top - 18);
        let place = |value: f64| axis.pixel(if self.scale == Scale::Share { value } else { log(value) });
        for (at, (label, values)) in self.rows.iter().enumerate() {
            let y = top + self.row_height() * at as i32;
            canvas.grid((14, y), (WIDTH - 10, y));
            canvas.text((start - 14, y + self.row_height() / 2), Anchor::End, Ink::Text, &fitted(label, labels));
            for (series, value) in values.iter().enumerate() {
                let Some(value) = self.shown(*value) else { continue };
                let lane = if self.one_lane { 0 } else { series as i32 };
                let y = y + 4 + LANE * lane + LANE / 2;
                if value.low < value.high {
                    canvas.stroke(series, false, &[(place(value.low), y), (place(value.high), y)]);
                }
                canvas.marker(series, (place(value.mean), y), false);
                let number = value_name(self.scale, value.mean);
                canvas.text((WIDTH - 10, y), Anchor::End, if lane == 0 { Ink::Text } else { Ink::Quiet }, &number);
            }
        }
        canvas.axis((start, bottom), (end, bottom));
    }

    /// The names of the series in one line above the plot.
    fn draw_key(&self, canvas: &mut Canvas, y: i32) {
        let mut x = 20;
        for (series, name) in self.series.iter().enumerate() {
            canvas.marker(series, (x, y), false);
            canvas.text((x + 12, y), Anchor::Start, Ink::Text, name);
            x += 40 + room([name.as_str()], 0, WIDTH);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_drawn_with_their_numbers_and_said() {
        let dot = |value: f64| Some(Interval { mean: value, low: value, high: value });
        let plot = IntervalPlot {
            title: "t".to_owned(),
            x_title: "tokens".to_owned(),
            scale: Scale::Log,
            series: vec!["after".to_owned(), "before".to_owned()],
            rows: vec![("a".to_owned(), vec![dot(120.0), dot(4_500.0)]), ("b".to_owned(), vec![None, dot(0.0)])],
            one_lane: false,
        };
        let svg = plot.svg().unwrap();
        assert!(svg.contains("tokens. a: after 120, before 4,500; b: ."), "{svg}");
        assert_eq!(svg.matches(">4,500</text>").count(), 1);
        assert!(IntervalPlot { rows: Vec::new(), ..plot }.svg().is_none());
    }

    #[test]
    fn kinds_of_rows_share_a_line_and_the_axis_of_shares_is_that_of_the_intervals() {
        let value = Interval { mean: 0.72, low: 0.7, high: 0.74 };
        let row = |label: &str, kind: usize| {
            (label.to_owned(), (0..2).map(|series| (series == kind).then_some(value)).collect())
        };
        let plot = IntervalPlot {
            title: "t".to_owned(),
            x_title: "nDCG@10".to_owned(),
            scale: Scale::Share,
            series: vec!["ours".to_owned(), "of others".to_owned()],
            rows: vec![row("a", 0), row("b", 1)],
            one_lane: true,
        };
        let (one, two) = (plot.svg().unwrap(), IntervalPlot { one_lane: false, ..plot }.svg().unwrap());
        assert!(one.contains("nDCG@10. a: ours .720; b: of others .720."), "{one}");
        assert!(one.contains(">.7</text>") && one.contains(">.8</text>") && !one.contains(">.6</text>"), "{one}");
        let height =
            |svg: &str| svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<i32>().ok());
        assert!(height(&one) < height(&two));
    }
}
