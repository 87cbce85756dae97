//! The kinds of picture: lines against catalog size, a heat map, dots with intervals, differences against zero, and named
//! points between cost and gain.
//!
//! Pictures are SVG with real text in the reader's font. Each has its colours for light and for dark pages, a title and a
//! description in words. The width of a text is unknown without fonts, so margins are generous. Coordinates are whole
//! pixels and logarithms come from `libm`: the bytes are the same on every machine.

mod canvas;
mod forest;
mod front;
mod heat;
mod intervals;
mod lines;
mod ticks;

pub use forest::Forest;
pub use front::{Front, Named};
pub use heat::HeatMap;
pub use intervals::{Interval, IntervalPlot};
pub use lines::{Line, LineChart, Point};

use super::number::{fixed, quantity, share};

/// How values are placed on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Shares in [0, 1], linear; a vertical axis begins at the tenth below the least value.
    Share,
    /// Positive quantities, logarithmic.
    Log,
}

impl Scale {
    /// Whether the value has a place on this scale.
    fn has(self, value: f64) -> bool {
        match self {
            Self::Share => (0.0..=1.0).contains(&value),
            Self::Log => value.is_finite() && value > 0.0,
        }
    }

    /// The place of a value in axis coordinates.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Share => value,
            Self::Log => ticks::log(value),
        }
    }
}

/// A value in words: a share, or a quantity whose whole numbers have no decimals.
fn value_name(scale: Scale, value: f64) -> String {
    match scale {
        Scale::Share => share(value),
        Scale::Log if value >= 100.0 => fixed(value, 0),
        Scale::Log => quantity(value),
    }
}
