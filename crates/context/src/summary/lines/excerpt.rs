//! Counts in words, verbatim lines cut at a word, and sample lines: what all kinds of text share.

use memchr::memrchr;

use crate::brief::{Piece, spread};
use crate::split::lines;

use super::rank;

/// The number of characters of a verbatim line in its three wordings.
const LINE_LENGTHS: [usize; 3] = [72, 160, 360];
/// The number of sample lines considered, and the number of characters of each.
const SAMPLES: usize = 48;
const SAMPLE_LENGTH: usize = 120;
/// Lengths of names that count as equal.
const SIMILAR_LENGTHS: usize = 12;
/// The number of lines without letters at the end of a text that are shown with the line before them.
const CLOSING: usize = 8;

/// The first `most` characters of `line`, cut at a blank or at least between words, with `…` if anything is left out.
pub(super) fn cut(line: &str, most: usize) -> String {
    let line = line.trim_end();
    let Some((limit, _)) = line.char_indices().nth(most) else { return line.to_owned() };
    let kept = line.get(..boundary(line, limit)).unwrap_or_default().trim_end();
    if kept.is_empty() {
        return format!("… ({} characters without a break)", line.trim_start().chars().count());
    }
    format!("{kept}…")
}

/// The last `most` characters of `line`, from the start of a word.
pub(super) fn tail(line: &str, most: usize) -> String {
    let line = line.trim_end();
    let Some((start, _)) = line.char_indices().rev().nth(most.saturating_sub(1)) else { return line.to_owned() };
    let rest = line.get(start..).unwrap_or_default();
    let begin = rest.find(char::is_whitespace).filter(|&at| at < rest.len() / 2).map_or_else(
        || {
            rest.char_indices()
                .zip(rest.chars().skip(1))
                .find(|&((_, a), b)| is_break(a, b))
                .map(|((at, a), _)| at + a.len_utf8())
        },
        Some,
    );
    begin.and_then(|at| rest.get(at..)).map(|rest| format!("…{}", rest.trim_start())).unwrap_or_default()
}

/// The position at or before `limit` (a character boundary inside `line`) where a cut divides no word: after a blank in
/// the second half, if there is one.
fn boundary(line: &str, limit: usize) -> usize {
    let kept = line.get(..limit).unwrap_or_default();
    let next = line.get(limit..).and_then(|rest| rest.chars().next());
    if next.is_some_and(char::is_whitespace) {
        return limit;
    }
    if let Some(at) = kept.rfind(char::is_whitespace).filter(|&at| at >= limit / 2) {
        return at;
    }
    let mut after = next;
    for (at, character) in kept.char_indices().rev() {
        if after.is_some_and(|after| is_break(character, after)) {
            return at + character.len_utf8();
        }
        after = Some(character);
    }
    0
}

/// Whether a text may be cut between the two characters: not inside a word or a number, except in scripts that are
/// written without blanks.
fn is_break(before: char, after: char) -> bool {
    let within = |character: char| {
        let unspaced =
            matches!(u32::from(character), 0x0E00..=0x0EFF | 0x2E80..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF);
        (character.is_alphanumeric() || matches!(character, '_' | '\u{300}'..='\u{36F}' | '\u{200D}' | '\u{FE0F}'))
            && !unspaced
    };
    let joined = matches!(after, '\u{300}'..='\u{36F}' | '\u{200D}' | '\u{FE0F}');
    let inside = within(before) && within(after);
    !joined && !inside
}

/// The order in which names of these lengths (in bytes) are shown: shorter names first, since more of them fit, and
/// among names of about equal length those that are spread over the whole.
pub(super) fn shorter_first(lengths: &[usize]) -> Vec<usize> {
    let mut order = spread(lengths.len());
    order.sort_by_key(|&at| lengths.get(at).map(|length| length / SIMILAR_LENGTHS));
    order
}

/// A verbatim line under a label, longer as there is more room.
pub(super) fn verbatim(place: u32, rank: u32, label: &str, line: &str) -> Piece {
    let mut piece = Piece { place, wordings: Vec::new() };
    let later = [rank, rank::LONGER, rank::LONGEST];
    for (length, rank) in LINE_LENGTHS.into_iter().zip(later) {
        let text = cut(line, length);
        let whole = !text.ends_with('…') && !text.starts_with('…');
        piece = piece.or(rank, format!("{label}: {text}"));
        if whole {
            break;
        }
    }
    piece
}

/// The counts and ends of a text, taken for every kind.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tally<'a> {
    /// The number of lines, a last one without a line break included.
    pub(super) lines: usize,
    /// The number of lines that are not blank.
    pub(super) filled: usize,
    /// The first line that is not blank.
    pub(super) first: &'a str,
    /// The last line that is not blank.
    pub(super) last: &'a str,
    /// The text from its last line with a letter or a digit on.
    pub(super) end: &'a str,
}

impl<'a> Tally<'a> {
    /// Counts the lines of `text`.
    pub(super) fn of(text: &'a str) -> Self {
        let mut tally = Self::default();
        for line in lines(text) {
            tally.lines += 1;
            if !is_blank(line) {
                tally.filled += 1;
                if tally.filled == 1 {
                    tally.first = line;
                }
                tally.last = line;
            }
        }
        let letter = text.rfind(char::is_alphanumeric).unwrap_or(0);
        let start = text.get(..letter).and_then(|front| memrchr(b'\n', front.as_bytes())).map_or(0, |at| at + 1);
        tally.end = text.get(start..).unwrap_or_default();
        tally
    }

    /// The first and the last line that say something.
    pub(super) fn ends(&self) -> Vec<Piece> {
        match self.filled {
            0 => Vec::new(),
            1 => {
                let mut pieces = vec![verbatim(rank::FIRST_LINE_PLACE, rank::ENDS, "first line", self.first)];
                if self.first.chars().nth(LINE_LENGTHS[0]).is_some() {
                    let end = tail(self.last, LINE_LENGTHS[0]);
                    if !end.is_empty() {
                        let text = format!("the line ends: {end}");
                        pieces.push(Piece::line(rank::LAST_LINE_PLACE, rank::ENDS, text));
                    }
                }
                pieces
            }
            _ => vec![verbatim(rank::FIRST_LINE_PLACE, rank::ENDS, "first line", self.first), self.last_said()],
        }
    }

    /// The last line, together with those before it if it is only a bracket.
    fn last_said(&self) -> Piece {
        let lines: Vec<&str> = self.end.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.len() < 2 || lines.len() > CLOSING {
            return verbatim(rank::LAST_LINE_PLACE, rank::ENDS, "last line", self.last);
        }
        verbatim(rank::LAST_LINE_PLACE, rank::ENDS, "last lines", &lines.join(" "))
    }
}

fn is_blank(line: &str) -> bool {
    line.trim_start().is_empty()
}

/// Lines spread evenly over the text, with their numbers.
pub(super) fn samples(text: &str, tally: &Tally) -> Option<Piece> {
    if tally.filled < 3 {
        return None;
    }
    let step = tally.lines.div_ceil(SAMPLES).max(1);
    let mut entries: Vec<String> = Vec::new();
    let mut wanted = step / 2;
    for (number, line) in lines(text).enumerate() {
        // A blank line is replaced by the next line that says something.
        if number >= wanted && !is_blank(line) {
            entries.push(format!("{number}: {}", cut(line.trim_start(), SAMPLE_LENGTH)));
            wanted = (number / step + 1) * step + step / 2;
        }
    }
    let mut order = spread(entries.len());
    // The ends are shown anyway.
    order.rotate_left(2.min(entries.len()));
    Some(Piece::chosen(rank::SAMPLE_PLACE, "some lines:\n", entries, order, "\n", (rank::SAMPLE, 1), rank::SAMPLE))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_cut_between_words() {
        let cases = [
            ("short", 9, "short"),
            ("several words here", 9, "several…"),
            ("several words here", 13, "several words…"),
            ("path/to/some_file.rs", 10, "path/to/…"),
            ("aaaaaaaaaaaaaaaaaaaa", 9, "… (20 characters without a break)"),
            ("日本語のテキスト", 3, "日本語…"),
        ];
        for (line, most, expected) in cases {
            assert_eq!(cut(line, most), expected, "{line:?}");
        }
        assert_eq!(tail("several words here", 9), "…here");
        assert_eq!(tail("aaaaaaaaaaaaaaaaaaaa", 9), "");
    }

    proptest! {
        #[test]
        fn a_cut_is_the_start_of_the_line_and_divides_no_word(line in "(\\PC|[ a-z]){0,60}", most in 0usize..50) {
            let text = cut(&line, most);
            if let Some(kept) = text.strip_suffix('…').filter(|kept| !kept.is_empty() && text != line.trim_end()) {
                prop_assert!(line.starts_with(kept));
                let next = line[kept.len()..].chars().next().unwrap();
                prop_assert!(is_break(kept.chars().next_back().unwrap(), next));
            }
        }
    }
}
