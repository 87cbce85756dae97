//! Several texts in one result, each under its path: the output of tools that read many files.

use crate::brief::Piece;
use crate::split::{line_count, lines};

use super::excerpt::{Tally, cut};
use super::{LineKind, rank};
use contextweaver_core::text::counted;

/// The number of parts that are described; the others are listed.
const TOLD: usize = 24;

/// One of the texts.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    path: &'a str,
    text: &'a str,
    /// The number of its first line in the whole.
    line: usize,
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
pub(super) fn is_several(text: &str) -> bool {
    split(text).len() > 1
}

/// The parts; empty if `text` does not begin with a header.
fn split(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part> = Vec::new();
    let first = text.trim_start();
    let Some(path) = lines(first).next().and_then(header) else { return parts };
    let colon = !first.starts_with('=');
    let mut path = path;
    let mut begun = text.get(..text.len() - first.len()).unwrap_or_default().matches('\n').count();
    let mut at = text.len() - first.len();
    let mut start = at;
    let mut separated = true;
    for (number, line) in (begun..).zip(first.split_inclusive('\n')) {
        let end = at + line.len();
        let plain = line.trim_end();
        if plain == "---" {
            separated = true;
        } else if !plain.is_empty() {
            // A path with a colon is a header only after a separator; the other forms are always headers.
            if let Some(next) = header(plain).filter(|_| separated || (!colon && plain.starts_with('='))) {
                if at > start {
                    parts.push(Part { path, text: text.get(start..at).unwrap_or_default(), line: begun });
                }
                path = next;
                start = end;
                begun = number + 1;
            }
            separated = false;
        }
        at = end;
    }
    parts.push(Part { path, text: text.get(start..).unwrap_or_default(), line: begun });
    for part in &mut parts {
        let inner = part.text.trim_end();
        part.text = inner.strip_suffix("---").map_or(inner, str::trim_end);
    }
    parts
}

/// Describes several texts, one after the other.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let parts = split(text);
    let tally = Tally::of(text);
    let shared = shared_directory(&parts);
    let entries = parts.iter().map(|part| {
        let path = part.path.get(shared.len()..).unwrap_or(part.path);
        format!("{path} ({})", counted(line_count(part.text), "line"))
    });
    let list = if shared.is_empty() { "files: ".to_owned() } else { format!("files in {shared}: ") };
    let head = format!("{} in one result, {} in all: ", counted(parts.len(), "file"), counted(tally.lines, "line"));
    let mut pieces = vec![
        Piece::line(rank::SHAPE_PLACE, rank::SHAPE, head.trim_end_matches(": ")),
        Piece::list(rank::SHAPE_PLACE + 1, &list, entries.collect(), ", ", (rank::ENDS, 3), rank::STAT),
    ];
    pieces.extend(tally.ends());
    for (number, part) in (1..).zip(parts.iter().take(TOLD)) {
        pieces.extend(told(part, number, part.path.get(shared.len()..).unwrap_or(part.path)));
    }
    pieces
}

/// The directory that all parts are in, with its slash.
fn shared_directory<'a>(parts: &[Part<'a>]) -> &'a str {
    let mut shared = parts.first().map_or("", |part| part.path);
    for part in parts {
        let same = shared.bytes().zip(part.path.bytes()).take_while(|(a, b)| a == b).count();
        let slash = part.path.as_bytes().get(..same).and_then(|front| front.iter().rposition(|&byte| byte == b'/'));
        shared = shared.get(..slash.map_or(0, |at| at + 1)).unwrap_or_default();
    }
    shared
}

/// The description of one part, at its own places and ranked after that of the whole.
fn told(part: &Part, number: u32, name: &str) -> Vec<Piece> {
    let kind = match super::kind_of(part.text) {
        LineKind::Parts => LineKind::Plain,
        kind => kind,
    };
    // Lists of one part must not take the room of another.
    let grow = |piece: Piece| piece.by_steps(rank::WHOLE_OUTLINE);
    let mut pieces: Vec<Piece> = super::pieces(kind, part.text).into_iter().map(grow).collect();
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
            if let crate::brief::Text::Whole(text) = &mut wording.text
                && first
            {
                // Lines of a part are counted from its first.
                *text = format!("[{}, from line {}] {text}", cut(name, 120), part.line);
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn each_part_has_its_account() {
        let text = "docs/a.md:\n# Title\n\nSome text.\n\n## Section\n\n- item\n\n---\nsrc/b.py:\ndef run(x):\n    return x\n\ndef stop():\n    pass\n";
        insta::assert_snapshot!(told(text, 300), @r"
        [Parts]
        2 files in one result, 16 lines in all
        files: docs/a.md (7 lines), src/b.py (5 lines)
        first line: docs/a.md:
        [docs/a.md, from line 1] Markdown: 7 lines, 2 headings, 0 code blocks
        first line: # Title
        8 words, 1 list item
        headings: 1 of level 1, 1 of level 2
        headings:
        0: # Title
        4: ## Section
        some lines:
        0: # Title
        2: Some text.
        4: ## Section
        6: - item
        last line: - item
        [src/b.py, from line 11] Python code: 5 lines, 2 functions, 0 types, 0 imports, 4 not blank, 0 comment lines
        first line: def run(x):
        functions (line):
        run 0, stop 3
        some lines:
        0: def run(x):
        1: return x
        3: def stop():
        4: pass
        last line:     pass
        last line:     pass
        ");
    }

    #[test]
    fn headers_of_several_tools() {
        for text in ["==> a.txt <==\none\n\n==> b.txt <==\ntwo\n", "a/b.txt:\none\n---\nc.txt:\ntwo\n"] {
            assert_eq!(split(text).len(), 2, "{text}");
        }
        for text in ["Note:\nhere\n---\nb\n", "def f(x):\n  pass\n", "a/b.txt:\nonly one\n"] {
            assert!(!is_several(text), "{text}");
        }
    }
}
