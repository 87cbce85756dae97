//! Lines against a number, on a logarithmic axis, labelled at their right ends.

use super::canvas::{Anchor, At, Canvas, Ink, SERIES, WIDTH, fitted, room};
use super::ticks::{Axis, Tick, log, log_ticks, share_ticks, spread};
use super::{Scale, value_name};
use crate::report::number::count;

/// Lines against the number of tools (logarithmic), labelled at their right ends.
#[derive(Debug, Clone)]
pub struct LineChart {
    /// Says what is shown, not what follows from it.
    pub title: String,
    /// Title and unit of the horizontal axis, which is logarithmic.
    pub x_title: String,
    /// Title and unit of the vertical axis.
    pub y_title: String,
    /// The scale of the vertical axis.
    pub y_scale: Scale,
    /// Drawn in this order.
    pub lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Debug, Clone)]
pub struct Line {
    /// What stands at its right end.
    pub name: String,
    /// Its place among colours, markers and dashes, so that a series looks alike in all pictures.
    pub color: usize,
    /// By ascending number of tools.
    pub points: Vec<Point>,
    /// What the line is compared with, thin and with hollow markers, without a name; empty where there is nothing.
    pub control: Vec<Point>,
}

/// One measured point of a line.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// The place on the horizontal axis: tools in the catalog, or tokens.
    pub tools: usize,
    /// The place on the vertical axis, in its unit.
    pub value: f64,
    /// Lower and upper end of the band around the value, where there is one.
    pub band: Option<(f64, f64)>,
}

const HEIGHT: i32 = 320;
const LEFT: i32 = 58;
const GAP: i32 = 20;

impl LineChart {
    /// The picture; `None` when no point can be drawn.
    #[must_use]
    pub fn svg(mut self) -> Option<String> {
        for line in &mut self.lines {
            for points in [&mut line.points, &mut line.control] {
                points.retain(|point| point.tools > 0 && self.y_scale.can_show(point));
            }
        }
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            return None;
        }
        let mut canvas = Canvas::new(&self.title, self.description());
        let top = canvas.top() + 34;
        self.draw(&mut canvas, (top, top + HEIGHT));
        Some(canvas.svg(top + HEIGHT + 56))
    }

    /// Every line with its ends in words.
    fn description(&self) -> String {
        let of = |line: &Line| {
            let said = |point: &Point| format!("{} at {}", value_name(self.y_scale, point.value), count(point.tools));
            let ends = |points: &[Point]| match points {
                [first, .., last] => format!("{}, {}", said(first), said(last)),
                points => points.iter().map(said).collect::<Vec<_>>().join(", "),
            };
            match line.control.as_slice() {
                [] => format!("{}: {}", line.name, ends(&line.points)),
                control => format!("{}: {} (control: {})", line.name, ends(&line.points), ends(control)),
            }
        };
        let lines: Vec<String> = self.lines.iter().map(of).collect();
        format!("{} by {}. {}.", self.y_title, self.x_title, lines.join("; "))
    }

    fn draw(&self, canvas: &mut Canvas, (top, bottom): (i32, i32)) {
        let labels = room(self.lines.iter().map(|line| line.name.as_str()), 70, 170);
        let right = WIDTH - labels - 30;
        let (x_ticks, y_ticks) = (self.x_ticks(), self.y_ticks());
        let x = Axis::new(&x_ticks, 0.03, (LEFT, right));
        let y = Axis::new(&y_ticks, 0.0, (bottom, top));
        canvas.text((14, top - 22), Anchor::Start, Ink::Quiet, &self.y_title);
        for tick in &y_ticks {
            let at = y.pixel(tick.at);
            canvas.grid((LEFT, at), (right, at));
            canvas.text((LEFT - 8, at), Anchor::End, Ink::Quiet, &tick.label);
        }
        canvas.axis((LEFT, bottom), (right, bottom));
        let mut free = i32::MIN;
        for tick in &x_ticks {
            let (at, half) = (x.pixel(tick.at), room([tick.label.as_str()], 0, 100) / 2);
            canvas.axis((at, bottom), (at, bottom + 5));
            if at - half >= free {
                canvas.text((at, bottom + 18), Anchor::Middle, Ink::Quiet, &tick.label);
                free = at + half;
            }
        }
        canvas.text(((LEFT + right) / 2, bottom + 42), Anchor::Middle, Ink::Quiet, &self.x_title);
        let place = |point: &Point, value: f64| (x.pixel(log(point.tools as f64)), y.pixel(self.y_scale.place(value)));
        for line in &self.lines {
            let banded = || line.points.iter().filter_map(|point| Some((point, point.band?)));
            let low = banded().map(|(point, (low, _))| place(point, low));
            let high = banded().rev().map(|(point, (_, high))| place(point, high));
            let outline: Vec<At> = low.chain(high).collect();
            if outline.len() > 2 {
                canvas.band(line.color, &outline);
            }
        }
        let mut ends: Vec<(&Line, At)> = Vec::new();
        // The first line is the one that readers look for: it is drawn on top.
        for line in self.lines.iter().rev() {
            let control: Vec<At> = line.control.iter().map(|point| place(point, point.value)).collect();
            if !control.is_empty() {
                canvas.stroke(line.color, true, &control);
                control.iter().for_each(|at| canvas.marker(line.color, *at, true));
            }
            let points: Vec<At> = line.points.iter().map(|point| place(point, point.value)).collect();
            canvas.series(line.color, &points);
            points.iter().for_each(|at| canvas.marker(line.color, *at, false));
            ends.extend(points.last().map(|end| (line, *end)));
        }
        label_ends(canvas, ends, (right, labels), (top, bottom));
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| line.points.iter().chain(&line.control))
    }

    /// The sizes that were measured, or round numbers when these are too many to read.
    fn x_ticks(&self) -> Vec<Tick> {
        const MOST: usize = 9;
        let mut sizes: Vec<usize> = self.points().map(|point| point.tools).collect();
        sizes.sort_unstable();
        sizes.dedup();
        match sizes.as_slice() {
            [first, .., last] if sizes.len() > MOST => log_ticks(*first as f64, *last as f64),
            _ => sizes.iter().map(|size| Tick { at: log(*size as f64), label: count(*size) }).collect(),
        }
    }

    fn y_ticks(&self) -> Vec<Tick> {
        let ends = self.points().flat_map(|point| match point.band {
            Some((low, high)) => [low, high],
            None => [point.value, point.value],
        });
        let (least, most) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), end| (least.min(end), most.max(end)));
        match self.y_scale {
            Scale::Share => share_ticks(least, most),
            Scale::Log => log_ticks(least, most),
        }
    }
}

impl Scale {
    /// Whether the point and its band have a place on this scale.
    fn can_show(self, point: &Point) -> bool {
        let (low, high) = point.band.unwrap_or((point.value, point.value));
        [point.value, low, high].into_iter().all(|value| self.has(value))
    }
}

/// Names at the right of the plot, moved apart where lines end close together and tied to them by a thin line.
fn label_ends(canvas: &mut Canvas, mut ends: Vec<(&Line, At)>, (right, labels): (i32, i32), bounds: (i32, i32)) {
    ends.sort_by_key(|(line, (_, y))| (*y, line.color % SERIES));
    let heights: Vec<i32> = ends.iter().map(|(_, (_, y))| *y).collect();
    for ((line, end), y) in ends.iter().zip(spread(&heights, GAP, bounds)) {
        canvas.stroke(line.color, true, &[*end, (right + 4, end.1), (right + 16, y)]);
        canvas.text((right + 20, y), Anchor::Start, Ink::Text, &fitted(&line.name, labels));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(y_scale: Scale, points: Vec<Point>) -> Option<String> {
        let line = Line { name: "a<b".to_owned(), color: 9, points, control: Vec::new() };
        let [title, x_title, y_title] = ["title", "x", "y"].map(str::to_owned);
        LineChart { title, x_title, y_title, y_scale, lines: vec![line] }.svg()
    }

    #[test]
    fn a_single_point_is_drawn_said_and_escaped() {
        let svg = chart(Scale::Log, vec![Point { tools: 100, value: 3.0, band: None }]).unwrap();
        assert!(svg.contains("<desc id=\"desc\">y by x. a&lt;b: 3.00 at 100.</desc>"), "{svg}");
    }

    #[test]
    fn a_control_is_drawn_hollow_and_said_beside_its_line() {
        let points = |values: [f64; 2]| {
            let point = |(tools, value)| Point { tools, value, band: None };
            [50, 100].into_iter().zip(values).map(point).collect::<Vec<_>>()
        };
        let lines = |control| vec![Line { name: "a".to_owned(), color: 0, points: points([0.9, 0.8]), control }];
        let drawn = |control| {
            let [title, x_title, y_title] = ["title", "x", "y"].map(str::to_owned);
            LineChart { title, x_title, y_title, y_scale: Scale::Share, lines: lines(control) }.svg().unwrap()
        };
        let (alone, beside) = (drawn(Vec::new()), drawn(points([0.3, 0.2])));
        assert!(beside.contains("a: .900 at 50, .800 at 100 (control: .300 at 50, .200 at 100)."), "{beside}");
        let hollow = |svg: &str| svg.matches("<circle class=\"o s0\"").count();
        assert_eq!((hollow(&alone), hollow(&beside)), (0, 2));
        // The axis has room for the control.
        assert!(!alone.contains(">.2<") && beside.contains(">.2<"), "{beside}");
    }

    #[test]
    fn points_without_a_place_are_left_out() {
        let point = |tools, value| vec![Point { tools, value, band: None }];
        assert!(chart(Scale::Log, point(100, 0.0)).is_none());
        assert!(chart(Scale::Log, point(0, 1.0)).is_none());
        assert!(chart(Scale::Log, point(100, f64::INFINITY)).is_none());
        assert!(chart(Scale::Share, point(100, f64::NAN)).is_none());
        assert!(chart(Scale::Share, vec![Point { tools: 9, value: 0.5, band: Some((0.1, f64::NAN)) }]).is_none());
    }
}
