//! Where the labelled places of an axis are.

use super::super::number::{fixed, quantity, without_zero};

/// A labelled place on an axis, in axis coordinates.
#[derive(Debug, Clone)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

pub(super) fn log(value: f64) -> f64 {
    libm::log10(value)
}

/// A linear map from axis coordinates to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    from: f64,
    to: f64,
    start: i32,
    end: i32,
}

impl Axis {
    /// From the first tick to the last, wider by the share `padding` of their distance at both ends; never empty.
    pub(super) fn new(ticks: &[Tick], padding: f64, (start, end): (i32, i32)) -> Self {
        let (from, to) = ticks.first().zip(ticks.last()).map_or((0.0, 1.0), |(first, last)| (first.at, last.at));
        let distance = to - from;
        let pad = if distance > 0.0 { distance * padding } else { 0.5 };
        Self { from: from - pad, to: to + pad, start, end }
    }

    /// The pixel of a place; places outside are at the end.
    pub(super) fn pixel(&self, at: f64) -> i32 {
        let share = ((at - self.from) / (self.to - self.from)).clamp(0.0, 1.0);
        self.start + (f64::from(self.end - self.start) * share).round() as i32
    }
}

/// Tenths from the one below `least` to the one above `most`, both in [0, 1].
pub(super) fn share_ticks(least: f64, most: f64) -> Vec<Tick> {
    let first = ((least * 10.0).floor() as u32).min(9);
    let last = ((most * 10.0).ceil() as u32).clamp(first + 1, 10);
    (first..=last)
        .map(|tenth| f64::from(tenth) / 10.0)
        .map(|at| Tick { at, label: without_zero(&fixed(at, 1)) })
        .collect()
}

/// Powers of ten around `least` and `most`, with their double and fivefold while these are few.
pub(super) fn log_ticks(least: f64, most: f64) -> Vec<Tick> {
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

/// Round numbers around zero that enclose differences from `least` to `most`, five steps at most on either side.
pub(super) fn difference_ticks(least: f64, most: f64) -> Vec<Tick> {
    const STEPS: [f64; 6] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
    let reach = least.abs().max(most.abs());
    let step = STEPS.into_iter().find(|step| reach / step <= 5.0).unwrap_or(1.0);
    let (first, last) = ((least.min(0.0) / step).floor() as i32, (most.max(0.0) / step).ceil() as i32);
    let tick = |count: i32| {
        let at = f64::from(count) * step;
        let sign = if count > 0 { "+" } else { "" };
        Tick { at, label: format!("{sign}{}", without_zero(&fixed(at, 2))) }
    };
    (first..=last.max(first + 1)).map(tick).collect()
}

/// A round number as a tick label: `0.20`, `50`, `10k`, `2M`.
pub(super) fn short_quantity(value: f64) -> String {
    match value {
        small if small < 0.999 => quantity(small),
        thousands if (999.0..999_000.0).contains(&thousands) => format!("{}k", fixed(thousands / 1e3, 0)),
        millions if millions >= 999_000.0 => format!("{}M", fixed(millions / 1e6, 0)),
        units => fixed(units, 0),
    }
}

/// Places (ascending) moved as little as a simple pass can, so that neighbours are `gap` apart and within `bounds` while
/// there is room.
pub(super) fn spread(places: &[i32], gap: i32, bounds: (i32, i32)) -> Vec<i32> {
    let mut placed = places.to_vec();
    for at in 1..placed.len() {
        placed[at] = placed[at].max(placed[at - 1] + gap);
    }
    let mut ceiling = bounds.1;
    for place in placed.iter_mut().rev() {
        *place = (*place).min(ceiling);
        ceiling = *place - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_enclose_the_values() {
        assert_eq!(labels(&share_ticks(0.62, 0.88)), [".6", ".7", ".8", ".9"]);
        assert_eq!(labels(&share_ticks(1.0, 1.0)), [".9", "1.0"]);
        assert_eq!(labels(&share_ticks(0.0, 0.0)), [".0", ".1"]);
        assert_eq!(labels(&log_ticks(2.4, 120.0)), ["2", "5", "10", "20", "50", "100", "200"]);
        assert_eq!(labels(&log_ticks(430.0, 1.4e6)), ["100", "1k", "10k", "100k", "1M", "10M"]);
        assert_eq!(labels(&log_ticks(10.0, 10.0)), ["10"]);
        assert_eq!(labels(&log_ticks(0.25, 1.0)), ["0.20", "0.50", "1"]);
        assert_eq!(labels(&difference_ticks(-0.006, 0.044)), ["−.01", ".00", "+.01", "+.02", "+.03", "+.04", "+.05"]);
        assert_eq!(labels(&difference_ticks(0.0, 0.0)), [".00", "+.01"]);
    }

    #[test]
    fn places_are_moved_apart_within_their_bounds() {
        assert_eq!(spread(&[10, 12, 80], 20, (0, 100)), [10, 30, 80]);
        assert_eq!(spread(&[90, 95, 99], 20, (0, 100)), [60, 80, 100]);
        assert_eq!(spread(&[], 20, (0, 100)), [0; 0]);
    }

    #[test]
    fn an_axis_is_never_empty_and_keeps_what_is_outside() {
        let axis = Axis::new(&share_ticks(0.2, 0.4), 0.0, (100, 300));
        assert_eq!([0.2, 0.3, 0.4, 0.9].map(|at| axis.pixel(at)), [100, 200, 300, 300]);
        assert_eq!(Axis::new(&log_ticks(10.0, 10.0), 0.1, (0, 10)).pixel(1.0), 5);
    }
}
