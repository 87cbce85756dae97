//! Several texts in one result, each under its path: what tools that read many files print.

use crate::context::brief::Piece;

use super::excerpt::{Tally, counted, cut};
use super::{LineKind, rank};

/// Parts that get an account of their own; the others are listed.
const TOLD: usize = 24;

/// One of the texts.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    path: &'a str,
    text: &'a str,
}

/// The path in a header line: `src/a.rs:`, `==> src/a.rs <==`, `File: src/a.rs`.
fn header(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let path = line
        .strip_prefix("==> ")
        .and_then(|rest| rest.strip_suffix(" <=="))
        .or_else(|| line.strip_prefix("=== ").and_then(|rest| rest.strip_suffix(" ===")))
        .or_else(|| line.strip_prefix("File: "))
        .or_else(|| line.strip_suffix(':'))?
        .trim();
    let like_path = path.contains('/') || path.contains('\\') || (path.contains('.') && !path.contains(' '));
    (like_path && path.len() < 300 && !path.contains(['(', '{', '"', '=', '<', '>', ';'])).then_some(path)
}

/// Whether `text` is several texts under their paths.
pub fn is_several(text: &str) -> bool {
    split(text).len() > 1
}

/// The parts, or nothing if `text` does not begin with a header.
fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part> = Vec::new();
    let first = text.trim_start();
    let Some(path) = first.lines().next().and_then(header) else { return parts };
    let colon = !first.starts_with('=');
    let mut path = path;
    let mut at = text.len() - first.len();
    let mut start = at;
    let mut separated = true;
    for line in first.split_inclusive('\n') {
        let end = at + line.len();
        let plain = line.trim_end();
        if plain == "---" {
            separated = true;
        } else if !plain.is_empty() {
            // A path with a colon is a header only after a separator; the other forms stand alone.
            if let Some(next) = header(plain).filter(|_| separated || (!colon && plain.starts_with('='))) {
                if at > start {
                    parts.push(Part { path, text: text.get(start..at).unwrap_or_default() });
                }
                path = next;
                start = end;
            }
            separated = false;
        }
        at = end;
    }
    parts.push(Part { path, text: text.get(start..).unwrap_or_default() });
    for part in &mut parts {
        let inner = part.text.trim_end();
        part.text = inner.strip_suffix("---").map_or(inner, str::trim_end);
    }
    parts
}

/// What several texts say, one after the other.
pub fn pieces(text: &str) -> Vec<Piece> {
    let parts = split(text);
    let tally = Tally::of(text);
    let entries = parts.iter().map(|part| format!("{} ({})", part.path, counted(part.text.lines().count(), "line")));
    let head = format!("{} in one result, {} in all: ", counted(parts.len(), "file"), counted(tally.lines, "line"));
    let mut pieces = vec![
        Piece::line(rank::SHAPE_PLACE, rank::SHAPE, head.trim_end_matches(": ")),
        Piece::list(rank::SHAPE_PLACE + 1, "files: ", entries.collect(), ", ", (rank::ENDS, 3), rank::STAT),
    ];
    pieces.extend(tally.ends());
    for (number, part) in (1..).zip(parts.iter().take(TOLD)) {
        pieces.extend(told(part, number));
    }
    pieces
}

/// The account of one part, at its own places and behind what is said of the whole.
fn told(part: &Part, number: u32) -> Vec<Piece> {
    let kind = match super::kind_of(part.text) {
        LineKind::Parts => LineKind::Plain,
        kind => kind,
    };
    let mut pieces = super::pieces(kind, part.text);
    for piece in &mut pieces {
        // The ends of a part are worth less than those of the whole.
        let end = matches!(piece.place, rank::FIRST_LINE_PLACE | rank::LAST_LINE_PLACE);
        if piece.place == rank::LAST_LINE_PLACE {
            piece.place = rank::PART_PLACES - 1;
        }
        if end {
            piece.wordings.truncate(1);
        }
        let first = piece.place == rank::SHAPE_PLACE;
        piece.place += number * rank::PART_PLACES;
        for wording in &mut piece.wordings {
            wording.rank = if end { rank::LONGEST } else { wording.rank + rank::PART_RANKS };
            if let crate::context::brief::Text::Whole(text) = &mut wording.text {
                if first {
                    *text = format!("[{}] {text}", cut(part.path, 120));
                }
            }
        }
    }
    pieces
}
