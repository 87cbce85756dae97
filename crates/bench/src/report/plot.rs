//! The three kinds of picture: lines against catalog size, a heat map, and dots with intervals.
//!
//! Pictures are SVG with real text in the reader's sans-serif font, on white, in the colours of Okabe and Ito, which
//! are told apart by colour-blind readers; lines are labelled at their ends, so that colour is never the only key.
//! The width of a text is unknown without fonts, so margins are generous. Coordinates are whole pixels and
//! logarithms come from `libm`: the bytes are the same on every machine.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::number::{count, fixed, quantity, short_share};

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Blue, black, orange, bluish green, vermillion, reddish purple, sky blue (Okabe and Ito, without the yellow that
/// is too faint on white).
const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];
const GRID: RGBColor = RGBColor(222, 222, 222);
const AXIS: RGBColor = RGBColor(90, 90, 90);
const TEXT: RGBColor = RGBColor(25, 25, 25);

const WIDTH: u32 = 900;
const LINE_CHART_HEIGHT: u32 = 540;
const TITLE_PX: f64 = 21.0;
const TEXT_PX: f64 = 17.0;

/// The colour at this place of the palette; places beyond the palette start again.
fn color(position: usize) -> RGBColor {
    PALETTE[position % PALETTE.len()]
}

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

/// How values are placed on the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Shares in [0, 1], linear; the axis begins at the tenth below the least value.
    Share,
    /// Positive quantities, logarithmic.
    Log,
}

/// One line of a chart.
#[derive(Debug, Clone)]
pub struct Line {
    /// What stands at its right end.
    pub name: String,
    /// Its place in the palette, so that a series has one colour in all pictures.
    pub color: usize,
    /// By ascending number of tools.
    pub points: Vec<Point>,
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

/// A labelled place on an axis, in axis coordinates.
#[derive(Debug, Clone)]
struct Tick {
    at: f64,
    label: String,
}

impl LineChart {
    /// The picture; `None` when no point can be drawn.
    pub fn svg(mut self) -> Option<String> {
        for line in &mut self.lines {
            line.points.retain(|point| point.tools > 0 && self.y_scale.can_show(point));
        }
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            return None;
        }
        Some(render(LINE_CHART_HEIGHT, &self.title, |area| self.draw(area)))
    }

    fn draw(&self, area: &Drawing<'_>) -> Drawn {
        const LABEL_WIDTH: u32 = 188;
        let mut chart = ChartBuilder::on(area)
            .margin_top(56)
            .margin_left(10)
            .margin_right(LABEL_WIDTH)
            .margin_bottom(6)
            .x_label_area_size(58)
            .y_label_area_size(88)
            .build_cartesian_2d(Axis::new(self.x_ticks(), 0.03), Axis::new(self.y_ticks(), 0.0))?;
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(AXIS)
            .label_style(text_style(TEXT_PX, Anchor::Start))
            .axis_desc_style(text_style(TEXT_PX, Anchor::Start))
            .x_desc(&self.x_title)
            .y_desc(&self.y_title)
            .draw()?;
        for line in &self.lines {
            let band = self.band(line);
            if band.len() > 2 {
                chart.draw_series([Polygon::new(band, color(line.color).mix(0.11))])?;
            }
        }
        let mut ends = Vec::new();
        // The first series is the one that readers look for: it is drawn on top.
        for line in self.lines.iter().rev() {
            let points = self.places(line);
            let paint = color(line.color);
            chart.draw_series([PathElement::new(points.clone(), paint.stroke_width(3))])?;
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 4, paint.filled())))?;
            if let Some(end) = points.last() {
                ends.push((line, chart.backend_coord(end)));
            }
        }
        let (x_range, y_range) = chart.plotting_area().get_pixel_range();
        label_ends(area, ends, x_range.end, (y_range.start, y_range.end))
    }

    fn places(&self, line: &Line) -> Vec<(f64, f64)> {
        line.points.iter().map(|point| (log(point.tools as f64), self.y_scale.place(point.value))).collect()
    }

    /// The outline of the band: its lower ends from left to right, then its upper ends back.
    fn band(&self, line: &Line) -> Vec<(f64, f64)> {
        let banded = line.points.iter().filter_map(|point| Some((log(point.tools as f64), point.band?)));
        let low = banded.clone().map(|(x, (low, _))| (x, self.y_scale.place(low)));
        let high = banded.rev().map(|(x, (_, high))| (x, self.y_scale.place(high)));
        low.chain(high).collect()
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
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
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Share => value,
            Self::Log => log(value),
        }
    }

    /// Whether the point and its band have a place on this scale.
    fn can_show(self, point: &Point) -> bool {
        let (low, high) = point.band.unwrap_or((point.value, point.value));
        [point.value, low, high].into_iter().all(|value| match self {
            Self::Share => (0.0..=1.0).contains(&value),
            Self::Log => value.is_finite() && value > 0.0,
        })
    }
}

fn log(value: f64) -> f64 {
    libm::log10(value)
}

/// Tenths from the one below `least` to the one above `most`, both in [0, 1].
fn share_ticks(least: f64, most: f64) -> Vec<Tick> {
    let first = ((least * 10.0).floor() as u32).min(9);
    let last = ((most * 10.0).ceil() as u32).clamp(first + 1, 10);
    (first..=last).map(|tenth| f64::from(tenth) / 10.0).map(|at| Tick { at, label: format!("{at:.1}") }).collect()
}

/// Powers of ten around `least` and `most`, with their double and fivefold while these are few.
fn log_ticks(least: f64, most: f64) -> Vec<Tick> {
    const FEW_DECADES: i32 = 3;
    let (low, high) = (log(least).floor() as i32, log(most).ceil() as i32);
    let steps: &[f64] = if high - low <= FEW_DECADES { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let values = (low..=high).flat_map(|power| steps.iter().map(move |step| step * libm::pow(10.0, f64::from(power))));
    let values: Vec<f64> = values.collect();
    let first = values.iter().rposition(|value| *value <= least * (1.0 + 1e-9)).unwrap_or(0);
    let last = values.iter().position(|value| *value >= most * (1.0 - 1e-9)).unwrap_or(values.len() - 1);
    values[first..=last.max(first)]
        .iter()
        .map(|value| Tick { at: log(*value), label: short_quantity(*value) })
        .collect()
}

/// A round number as a tick label: `0.20`, `50`, `10k`, `2M`.
fn short_quantity(value: f64) -> String {
    match value {
        small if small < 0.999 => quantity(small),
        thousands if (999.0..999_000.0).contains(&thousands) => format!("{}k", fixed(thousands / 1e3, 0)),
        millions if millions >= 999_000.0 => format!("{}M", fixed(millions / 1e6, 0)),
        units => fixed(units, 0),
    }
}

/// An axis with ticks where they are wanted; the library would choose its own.
#[derive(Debug, Clone)]
struct Axis {
    ticks: Vec<Tick>,
    first: f64,
    last: f64,
}

impl Axis {
    /// From the first tick to the last, wider by the share `padding` of their distance at both ends; never empty.
    fn new(ticks: Vec<Tick>, padding: f64) -> Self {
        let ends = ticks.first().zip(ticks.last()).map_or((0.0, 1.0), |(first, last)| (first.at, last.at));
        let distance = ends.1 - ends.0;
        let pad = if distance > 0.0 { distance * padding } else { 0.5 };
        Self { ticks, first: ends.0 - pad, last: ends.1 + pad }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (f64::from(end - start) * (value - self.first) / (self.last - self.first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.iter().map(|tick| tick.at).collect() }
    }

    fn range(&self) -> Range<f64> {
        self.first..self.last
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks.iter().find(|tick| tick.at == *value).map(|tick| tick.label.clone()).unwrap_or_default()
    }
}

/// Names at the right of the plot, moved apart where lines end close together and tied to them by a thin line.
fn label_ends(area: &Drawing<'_>, mut ends: Vec<(&Line, (i32, i32))>, right: i32, bounds: (i32, i32)) -> Drawn {
    ends.sort_by_key(|(line, (_, y))| (*y, line.color));
    let heights: Vec<i32> = ends.iter().map(|(_, (_, y))| *y).collect();
    for ((line, end), label_y) in ends.iter().zip(spread(&heights, 22, bounds)) {
        let at = (right + 22, label_y);
        area.draw(&PathElement::new(vec![*end, (right + 4, end.1), at], color(line.color).stroke_width(1)))?;
        write(area, &line.name, (at.0 + 5, at.1), TEXT_PX, Anchor::Start)?;
    }
    Ok(())
}

/// Heights (ascending) moved as little as a simple pass can, so that neighbours are `gap` apart and within `bounds`
/// while there is room.
fn spread(heights: &[i32], gap: i32, bounds: (i32, i32)) -> Vec<i32> {
    let mut placed = heights.to_vec();
    for at in 1..placed.len() {
        placed[at] = placed[at].max(placed[at - 1] + gap);
    }
    let mut ceiling = bounds.1;
    for height in placed.iter_mut().rev() {
        *height = (*height).min(ceiling);
        ceiling = *height - gap;
    }
    placed
}

/// Shares by row and column, with the value printed in every cell.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Says what is shown.
    pub title: String,
    /// One line above the columns that says how to read a cell.
    pub note: String,
    /// The titles of the columns.
    pub columns: Vec<String>,
    /// A label and one value per column; `None` leaves the cell empty.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl HeatMap {
    /// The picture; `None` without rows or columns.
    pub fn svg(&self) -> Option<String> {
        if self.rows.is_empty() || self.columns.is_empty() {
            return None;
        }
        let height = Self::TOP + Self::ROW * self.rows.len() as i32 + 16;
        Some(render(height as u32, &self.title, |area| self.draw(area)))
    }

    const TOP: i32 = 112;
    const ROW: i32 = 30;
    const RIGHT: i32 = 20;

    fn draw(&self, area: &Drawing<'_>) -> Drawn {
        write(area, &self.note, (20, 62), TEXT_PX, Anchor::Start)?;
        let start = label_width(self.rows.iter().map(|(label, _)| label));
        let width = (WIDTH as i32 - start - Self::RIGHT) / self.columns.len() as i32;
        for (at, column) in self.columns.iter().enumerate() {
            let x = start + width * at as i32 + width / 2;
            write(area, column, (x, Self::TOP - 16), TEXT_PX, Anchor::Middle)?;
        }
        for (at, (label, values)) in self.rows.iter().enumerate() {
            let top = Self::TOP + Self::ROW * at as i32;
            let middle = top + Self::ROW / 2;
            write(area, label, (start - 12, middle), TEXT_PX, Anchor::End)?;
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let left = start + width * column as i32;
                let fill = shade(value);
                area.draw(&Rectangle::new(
                    [(left + 1, top + 1), (left + width - 1, top + Self::ROW - 1)],
                    fill.filled(),
                ))?;
                write_in(area, &short_share(value), (left + width / 2, middle), TEXT_PX, Anchor::Middle, ink_on(fill))?;
            }
        }
        Ok(())
    }
}

/// From near white at 0 to dark blue at 1, squared because most shares worth comparing are in the upper half.
fn shade(value: f64) -> RGBColor {
    let depth = value.clamp(0.0, 1.0) * value.clamp(0.0, 1.0);
    let mix = |light: f64, dark: f64| (light + (dark - light) * depth).round() as u8;
    RGBColor(mix(246.0, 0.0), mix(249.0, 72.0), mix(252.0, 128.0))
}

/// White or black, whichever is easier to read on `fill` (by its brightness as in ITU-R BT.601).
fn ink_on(RGBColor(red, green, blue): RGBColor) -> RGBColor {
    let brightness = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    if brightness > 120.0 { BLACK } else { WHITE }
}

/// Dots with intervals: one row per name, one dot per series, all on one linear axis from 0 to 1.
#[derive(Debug, Clone)]
pub struct IntervalPlot {
    /// Says what is shown.
    pub title: String,
    /// Title and unit of the horizontal axis.
    pub x_title: String,
    /// The scale of the horizontal axis; shares always span it from zero to one.
    pub scale: Scale,
    /// The names of the series, in the order of their dots within a row.
    pub series: Vec<String>,
    /// A label and, per series, the mean and the ends of its interval.
    pub rows: Vec<(String, Vec<Option<Interval>>)>,
}

/// A mean and its interval.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// The place of the dot.
    pub mean: f64,
    /// The left end.
    pub low: f64,
    /// The right end.
    pub high: f64,
}

impl IntervalPlot {
    /// The picture; `None` without rows.
    pub fn svg(&self) -> Option<String> {
        if self.rows.is_empty() {
            return None;
        }
        let height = Self::TOP + self.row_height() * self.rows.len() as i32 + Self::BOTTOM;
        Some(render(height as u32, &self.title, |area| self.draw(area)))
    }

    const TOP: i32 = 92;
    const BOTTOM: i32 = 74;
    const RIGHT: i32 = 40;
    const LANE: i32 = 15;

    fn row_height(&self) -> i32 {
        Self::LANE * self.series.len().max(1) as i32 + 12
    }

    /// The left end of the axis.
    fn start(&self) -> i32 {
        label_width(self.rows.iter().map(|(label, _)| label))
    }

    /// The place of a value on the axis.
    fn x(&self, value: f64) -> i32 {
        let (from, to) = self.range();
        self.at(((self.scale.place(value) - from) / (to - from)).clamp(0.0, 1.0))
    }

    /// The place of a share of the axis.
    fn at(&self, share: f64) -> i32 {
        let width = f64::from(WIDTH as i32 - self.start() - Self::RIGHT);
        self.start() + (share * width).round() as i32
    }

    /// The ends of the axis in its own coordinates.
    fn range(&self) -> (f64, f64) {
        if self.scale == Scale::Share {
            return (0.0, 1.0);
        }
        let values = self.rows.iter().flat_map(|(_, values)| values.iter().flatten()).map(|value| value.mean);
        let shown: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let least = shown.iter().copied().fold(1e9, f64::min);
        let most = shown.iter().copied().fold(10.0, f64::max);
        (log(least.min(most) / 1.5), log(most * 1.5))
    }

    /// Values on the axis that are labelled.
    fn ticks(&self) -> Vec<(f64, String)> {
        if self.scale == Scale::Share {
            return share_ticks(0.0, 1.0).into_iter().step_by(2).map(|tick| (tick.at, tick.label)).collect();
        }
        let (from, to) = self.range();
        let powers = (0..9).map(|power| 10usize.pow(power)).filter(|value| (from..=to).contains(&log(*value as f64)));
        powers.map(|value| (value as f64, short_quantity(value as f64))).collect()
    }

    fn draw(&self, area: &Drawing<'_>) -> Drawn {
        let bottom = Self::TOP + self.row_height() * self.rows.len() as i32;
        for (value, label) in self.ticks() {
            let x = self.x(value);
            area.draw(&PathElement::new(vec![(x, Self::TOP), (x, bottom)], GRID))?;
            write(area, &label, (x, bottom + 18), TEXT_PX, Anchor::Middle)?;
        }
        write(area, &self.x_title, (self.at(0.5), bottom + 48), TEXT_PX, Anchor::Middle)?;
        self.draw_key(area)?;
        for (at, (label, values)) in self.rows.iter().enumerate() {
            let top = Self::TOP + self.row_height() * at as i32;
            write(area, label, (self.start() - 16, top + self.row_height() / 2), TEXT_PX, Anchor::End)?;
            area.draw(&PathElement::new(vec![(self.start(), top), (self.at(1.0), top)], GRID))?;
            for (series, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.mean.is_finite()) else { continue };
                let y = top + 6 + Self::LANE * series as i32 + Self::LANE / 2;
                area.draw(&PathElement::new(
                    vec![(self.x(value.low), y), (self.x(value.high), y)],
                    color(series).stroke_width(3),
                ))?;
                mark(area, series, (self.x(value.mean), y))?;
            }
        }
        area.draw(&PathElement::new(vec![(self.start(), bottom), (self.at(1.0), bottom)], AXIS))
    }

    /// The names of the series in one line above the plot.
    fn draw_key(&self, area: &Drawing<'_>) -> Drawn {
        const STEP: i32 = 250;
        for (series, name) in self.series.iter().enumerate() {
            let x = self.start() + STEP * series as i32;
            area.draw(&PathElement::new(vec![(x, 66), (x + 32, 66)], color(series).stroke_width(3)))?;
            mark(area, series, (x + 16, 66))?;
            write(area, name, (x + 42, 66), TEXT_PX, Anchor::Start)?;
        }
        Ok(())
    }
}

/// A filled dot for the first series and a square for the others, so that they differ without colour too.
fn mark(area: &Drawing<'_>, series: usize, (x, y): (i32, i32)) -> Drawn {
    let paint = color(series).filled();
    if series == 0 {
        area.draw(&Circle::new((x, y), 6, paint))
    } else {
        area.draw(&Rectangle::new([(x - 5, y - 5), (x + 5, y + 5)], paint))
    }
}

/// Room for labels at the left; a character takes about six tenths of the font size.
fn label_width<'a>(labels: impl Iterator<Item = &'a String>) -> i32 {
    const CHARACTER: i32 = 10;
    let longest = labels.map(|label| label.chars().count()).max().unwrap_or(0);
    (longest as i32).saturating_mul(CHARACTER).saturating_add(36).clamp(120, WIDTH as i32 / 2)
}

/// Where a text is attached horizontally; vertically it is always its middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

fn text_style<'a>(px: f64, anchor: Anchor) -> TextStyle<'a> {
    // The SVG backend divides sizes by this factor.
    const POINTS_PER_PX: f64 = 1.24;
    let position = match anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    TextStyle::from(("sans-serif", px * POINTS_PER_PX)).color(&TEXT).pos(Pos::new(position, VPos::Center))
}

fn write(area: &Drawing<'_>, text: &str, at: (i32, i32), px: f64, anchor: Anchor) -> Drawn {
    write_in(area, text, at, px, anchor, TEXT)
}

fn write_in(area: &Drawing<'_>, text: &str, at: (i32, i32), px: f64, anchor: Anchor, ink: RGBColor) -> Drawn {
    area.draw_text(text, &text_style(px, anchor).color(&ink), at)
}

/// A white picture of the common width with a title, and on it what `draw` draws.
fn render(height: u32, title: &str, draw: impl FnOnce(&Drawing<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        let drawn = area
            .fill(&WHITE)
            .and_then(|()| write(&area, title, (20, 26), TITLE_PX, Anchor::Start))
            .and_then(|()| draw(&area))
            .and_then(|()| area.present());
        drawn.expect("drawing into a string does no I/O and uses no font, and ranges are never empty");
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_enclose_the_values() {
        assert_eq!(labels(&share_ticks(0.62, 0.88)), ["0.6", "0.7", "0.8", "0.9"]);
        assert_eq!(labels(&share_ticks(1.0, 1.0)), ["0.9", "1.0"]);
        assert_eq!(labels(&share_ticks(0.0, 0.0)), ["0.0", "0.1"]);
        assert_eq!(labels(&log_ticks(2.4, 120.0)), ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(&log_ticks(430.0, 1.4e6)), ["100", "1k", "10k", "100k", "1M", "10M"]);
        assert_eq!(labels(&log_ticks(10.0, 10.0)), ["10"]);
        assert_eq!(labels(&log_ticks(0.25, 1.0)), ["0.20", "0.50", "1"]);
    }

    #[test]
    fn labels_are_moved_apart_within_the_plot() {
        assert_eq!(spread(&[10, 12, 80], 20, (0, 100)), [10, 30, 80]);
        assert_eq!(spread(&[90, 95, 99], 20, (0, 100)), [60, 80, 100]);
        assert_eq!(spread(&[], 20, (0, 100)), [0; 0]);
    }

    #[test]
    fn text_in_cells_is_dark_on_light_and_light_on_dark() {
        assert_eq!([0.0, 0.7, 0.9, 1.0].map(|value| ink_on(shade(value))), [BLACK, BLACK, WHITE, WHITE]);
    }

    fn chart(y_scale: Scale, points: Vec<Point>) -> Option<String> {
        let line = Line { name: "a<b".to_owned(), color: 9, points };
        LineChart {
            title: "title".to_owned(),
            x_title: "x".to_owned(),
            y_title: "y".to_owned(),
            y_scale,
            lines: vec![line],
        }
        .svg()
    }

    #[test]
    fn a_single_point_is_drawn_and_text_is_escaped() {
        let svg = chart(Scale::Log, vec![Point { tools: 100, value: 3.0, band: None }]).unwrap();
        assert!(svg.contains("<circle") && svg.contains("a&lt;b"));
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
