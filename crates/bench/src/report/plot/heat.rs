//! Shares by row and column, with the value printed in every cell and a key to the depth of colour.

use super::canvas::{Anchor, Canvas, Ink, WIDTH, fitted, room};
use crate::report::number::short_share;

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

const ROW: i32 = 24;
const RIGHT: i32 = 14;
/// Steps of the key.
const STEPS: i32 = 10;
const STEP: i32 = 22;

impl HeatMap {
    /// The picture; `None` without rows or columns.
    #[must_use]
    pub fn svg(&self) -> Option<String> {
        if self.rows.is_empty() || self.columns.is_empty() {
            return None;
        }
        let mut canvas = Canvas::new(&self.title, self.description());
        let top = canvas.top() + 82;
        self.key(&mut canvas, top - 66);
        self.draw(&mut canvas, top);
        Some(canvas.svg(top + ROW * self.rows.len() as i32 + 14))
    }

    /// The rows in words.
    fn description(&self) -> String {
        let row = |(label, values): &(String, Vec<Option<f64>>)| {
            let cells = self.columns.iter().zip(values).filter_map(|(column, value)| {
                Some(format!("{column} {}", short_share(value.filter(|value| value.is_finite())?)))
            });
            format!("{label}: {}", cells.collect::<Vec<_>>().join(", "))
        };
        format!("{} {}.", self.note, self.rows.iter().map(row).collect::<Vec<_>>().join("; "))
    }

    /// The scale of colours and how a cell is read.
    fn key(&self, canvas: &mut Canvas, y: i32) {
        canvas.text((14, y), Anchor::Start, Ink::Quiet, &self.note);
        let start = WIDTH - RIGHT - STEP * (STEPS + 1) - 18;
        let y = y + 24;
        canvas.text((start - 8, y), Anchor::End, Ink::Quiet, "0");
        for step in 0..=STEPS {
            canvas.cell((start + STEP * step, y - 7), (STEP, 14), depth(f64::from(step) / f64::from(STEPS)));
        }
        canvas.text((start + STEP * (STEPS + 1) + 8, y), Anchor::Start, Ink::Quiet, "1");
    }

    fn draw(&self, canvas: &mut Canvas, top: i32) {
        let labels = room(self.rows.iter().map(|(label, _)| label.as_str()), 90, 230);
        let start = labels + 20;
        let width = (WIDTH - start - RIGHT) / self.columns.len() as i32;
        for (at, column) in self.columns.iter().enumerate() {
            let x = start + width * at as i32 + width / 2;
            canvas.text((x, top - 12), Anchor::Middle, Ink::Text, &fitted(column, width + 14));
        }
        for (at, (label, values)) in self.rows.iter().enumerate() {
            let y = top + ROW * at as i32;
            canvas.text((start - 8, y + ROW / 2), Anchor::End, Ink::Text, &fitted(label, labels));
            for (column, value) in values.iter().enumerate() {
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let (x, depth) = (start + width * column as i32, depth(value));
                canvas.cell((x + 1, y + 1), (width - 2, ROW - 2), depth);
                let ink = if depth > 72 { Ink::OnDeep } else { Ink::OnPale };
                canvas.text((x + width / 2, y + ROW / 2), Anchor::Middle, ink, &short_share(value));
            }
        }
    }
}

/// How deep the colour of a share is, in percent: squared, because most shares worth comparing are in the upper half.
fn depth(value: f64) -> i32 {
    let value = value.clamp(0.0, 1.0);
    (4.0 + 96.0 * value * value).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_deeper_the_higher_their_share_and_empty_without_one() {
        assert_eq!([0.0, 0.5, 0.9, 1.0].map(depth), [4, 28, 82, 100]);
        let map = HeatMap {
            title: "t".to_owned(),
            note: "Mean.".to_owned(),
            columns: vec!["a".to_owned(), "b".to_owned()],
            rows: vec![
                ("row".to_owned(), vec![Some(0.5), None]),
                ("other".to_owned(), vec![Some(f64::NAN), Some(1.0)]),
            ],
        };
        let svg = map.svg().unwrap();
        assert!(svg.contains("Mean. row: a .50; other: b 1.00."), "{svg}");
        assert_eq!(svg.matches("<rect class=\"c\"").count(), 2 + 11);
        assert!(HeatMap { rows: Vec::new(), ..map }.svg().is_none());
    }
}
