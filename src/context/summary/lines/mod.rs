//! Texts that are read line by line.

use crate::context::brief::Piece;

/// What kind of text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Plain,
}

pub(super) fn kind_of(_text: &str) -> LineKind {
    LineKind::Plain
}

pub(super) fn pieces(_kind: LineKind, text: &str) -> Vec<Piece> {
    let first: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
    let last: String = text.lines().last().unwrap_or_default().chars().take(200).collect();
    vec![
        Piece::line(0, 0, format!("{} lines", text.lines().count())),
        Piece::line(1, 10, format!("first line: {first}")),
        Piece::line(2, 10, format!("last line: {last}")),
    ]
}
