//! Text of no other kind: prose, and the output of commands.

use crate::brief::{Piece, spread};

use super::excerpt::{Tally, counted, cut, samples};
use super::log::{Errors, tells_of_error};
use super::markdown::{self, Heading};
use super::rank;
use super::template::Templates;

/// The number of characters of the opening in its two wordings.
const OPENING_LENGTHS: [usize; 2] = [240, 600];
/// The number of lines with a time or a level from which templates are counted.
const LEAST_REPEATED: usize = 20;

#[derive(Debug, Default)]
struct Content<'a> {
    words: usize,
    sentences: usize,
    paragraphs: usize,
    titles: Vec<Heading<'a>>,
    /// The words and numbers at the start of paragraphs: `Day 3`.
    numbered: Vec<&'a str>,
}

impl<'a> Content<'a> {
    fn read(text: &'a str) -> Self {
        let mut content = Self::default();
        let mut before_blank = true;
        let mut before = "";
        for (number, line) in (1..).zip(text.lines()) {
            let trimmed = line.trim();
            let blank = trimmed.is_empty();
            if !blank {
                if before_blank && content.numbered.len() < 2000 {
                    content.numbered.extend(numbered(trimmed));
                }
                content.paragraphs += usize::from(before_blank);
                for word in trimmed.split_ascii_whitespace() {
                    content.words += 1;
                    let end = word.trim_end_matches(['"', '\'', ')', '”', '’']);
                    content.sentences += usize::from(end.ends_with(['.', '!', '?', '。', '！', '？']) && end.len() > 2);
                }
                if is_title(line, before_blank) {
                    content.titles.push(Heading { level: 1, title: trimmed, line: Some(number) });
                } else if is_underline(trimmed) && !before.trim().is_empty() && before.len() < 100 {
                    let title = before.trim();
                    content.titles.push(Heading { level: 1, title, line: Some(number - 1) });
                }
            }
            before_blank = blank;
            before = line;
        }
        content.titles.truncate(2000);
        content
    }
}

/// The word and the number at the start of a paragraph: `Day 3.`
fn numbered(line: &str) -> Option<&str> {
    let (word, rest) = line.split_once(' ')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let named = word.starts_with(char::is_uppercase) && word.chars().all(char::is_alphabetic);
    let ends = rest.get(digits..)?.starts_with(['.', ':', ' ', ')', ',']) || rest.len() == digits;
    (named && digits > 0 && ends).then(|| line.get(..word.len() + 1 + digits)).flatten()
}

/// Whether a line underlines a title: `=====`.
fn is_underline(line: &str) -> bool {
    line.len() >= 4 && line.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'~'))
}

/// Whether a line is a title: short, after a blank line, at the margin, in capitals or numbered, without a full stop.
fn is_title(line: &str, after_blank: bool) -> bool {
    if !after_blank
        || line.len() > 80
        || line.len() < 3
        || line.starts_with([' ', '\t'])
        || line.trim_end().ends_with(['.', ',', ';'])
    {
        return false;
    }
    let letters = line.chars().filter(|c| c.is_alphabetic()).count();
    let capitals = letters > 2 && line.chars().all(|c| !c.is_lowercase());
    let number = line.split(' ').next().unwrap_or_default();
    let numbered = number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && number.contains('.')
        && letters > 2;
    let chapter = ["Chapter ", "CHAPTER ", "Section ", "Part ", "Appendix "].iter().any(|word| line.starts_with(word));
    capitals || numbered || chapter
}

/// Describes a plain text.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let content = Content::read(text);
    let mut errors = Errors::default();
    let mut templates = Templates::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().is_empty() {
            continue;
        }
        templates.add(line, number);
        if tells_of_error(line) {
            errors.add(number, line);
        }
    }
    let prose = content.words > tally.filled * 7 && content.sentences * 5 > tally.filled;
    let mut pieces = vec![shape(text, &tally, &content, prose)];
    pieces.extend(tally.ends());
    if !prose {
        pieces.extend(errors.pieces("error line"));
        pieces.extend(repeated(&templates, &tally));
    } else {
        pieces.extend(opening(text));
    }
    pieces.extend(markdown::headings_piece(&content.titles, "headings:\n"));
    let word = |start: &str| start.split(' ').next().unwrap_or_default().to_owned();
    let first = content.numbered.first().map(|start| word(start));
    if content.numbered.len() > 3 && content.numbered.iter().all(|&start| Some(word(start)) == first) {
        let entries: Vec<String> = content.numbered.iter().map(|&start| start.to_owned()).collect();
        let head = format!("{} numbered paragraphs: ", entries.len());
        let order = spread(entries.len());
        pieces.push(Piece::grown(
            rank::OUTLINE_PLACE,
            &head,
            entries,
            order,
            ", ",
            (rank::OUTLINE, 4),
            rank::WHOLE_OUTLINE,
        ));
    }
    pieces.extend(samples(text, &tally));
    pieces
}

fn shape(text: &str, tally: &Tally, content: &Content, prose: bool) -> Piece {
    let lines = counted(tally.lines, "line");
    let short = format!("text: {lines}, {}", counted(content.words, "word"));
    let mut more = format!(
        "{short}, {}, {}, {} not blank",
        counted(text.chars().count(), "character"),
        counted(content.paragraphs, "paragraph"),
        tally.filled
    );
    if prose {
        more.push_str(&format!(", {}", counted(content.sentences, "sentence")));
    }
    if !content.titles.is_empty() {
        more.push_str(&format!(", {}", counted(content.titles.len(), "heading")));
    }
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, short).or(rank::STAT, more)
}

/// The first paragraph that is more than a title.
fn opening(text: &str) -> Option<Piece> {
    let mut paragraph = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            if paragraph.len() > 80 {
                break;
            }
            paragraph.clear();
        } else if paragraph.len() < 2000 {
            paragraph.push_str(&cut(line, OPENING_LENGTHS[1]));
            paragraph.push(' ');
        }
    }
    (paragraph.len() > 80).then(|| {
        let wording = |length| format!("opening: {}", cut(&paragraph, length));
        Piece::line(rank::LEAF_PLACE, rank::SECOND_OUTLINE, wording(OPENING_LENGTHS[0]))
            .or(rank::LONGEST, wording(OPENING_LENGTHS[1]))
    })
}

/// Lines that are equal but for their numbers, if there are many.
fn repeated(templates: &Templates, tally: &Tally) -> Option<Piece> {
    let frequent = templates.frequent();
    let recurring: usize = frequent.iter().filter(|group| group.count > 1).map(|group| group.count).sum();
    if recurring < LEAST_REPEATED || recurring * 4 < tally.filled {
        return None;
    }
    let entries = frequent
        .iter()
        .take_while(|group| group.count > 1)
        .take(200)
        .map(|group| format!("×{}: {}", group.count, cut(group.first.trim_start(), 140)))
        .collect();
    let head = "lines by frequency, numbers vary:\n";
    Some(Piece::list(rank::SECOND_OUTLINE_PLACE, head, entries, "\n", (rank::OUTLINE, 2), rank::WHOLE_OUTLINE))
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn prose() {
        let text: String = (0..12)
            .map(|n| {
                format!(
                    "Paragraph {n} says that the clocks were striking thirteen. It was a bright cold day in April.\n\n"
                )
            })
            .collect();
        insta::assert_snapshot!(told(&text, 200), @r"
        [Plain]
        text: 24 lines, 204 words, 1118 characters, 12 paragraphs, 12 not blank, 24 sentences
        first line: Paragraph 0 says that the clocks were striking thirteen. It was a bright cold day in April.
        opening: Paragraph 0 says that the clocks were striking thirteen. It was a bright cold day in April.
        12 numbered paragraphs: Paragraph 0, Paragraph 1, Paragraph 2, Paragraph 3, Paragraph 4, Paragraph 5, Paragraph 6, Paragraph 7, Paragraph 8, Paragraph 9, Paragraph 10, Paragraph 11
        some lines:
        5: Paragraph 2 says that the clocks were striking thirteen. It was a bright cold day in April.
        11: Paragraph 5 says that the clocks were striking thirteen. It was a bright cold day in April.
        … +10
        last line: Paragraph 11 says that the clocks were striking thirteen. It was a bright cold day in April.
        ");
    }

    #[test]
    fn the_output_of_a_command() {
        let text: String = (0..40)
            .map(|n| format!("tests/m{}.py::case_{n} {}\n", n % 3, if n == 33 { "FAILED" } else { "PASSED" }))
            .chain(["= 1 failed, 39 passed in 3.21s =\n".to_owned()])
            .collect();
        insta::assert_snapshot!(told(&text, 200), @r"
        [Plain]
        text: 41 lines, 88 words, 1143 characters, 1 paragraph, 41 not blank
        first line: tests/m0.py::case_0 PASSED
        2 error lines, first (line 34): tests/m0.py::case_33 FAILED
        last error line (line 41): = 1 failed, 39 passed in 3.21s =
        lines by frequency, numbers vary:
        ×39: tests/m0.py::case_0 PASSED
        some lines:
        6: tests/m2.py::case_5 PASSED
        11: tests/m1.py::case_10 PASSED
        16: tests/m0.py::case_15 PASSED
        21: tests/m2.py::case_20 PASSED
        31: tests/m0.py::case_30 PASSED
        … +36
        last line: = 1 failed, 39 passed in 3.21s =
        ");
    }

    #[test]
    fn one_long_line() {
        insta::assert_snapshot!(told(&"lorem ipsum dolor ".repeat(9000), 120), @r"
        [Plain]
        text: 1 line, 27000 words, 162000 characters, 1 paragraph, 1 not blank
        first line: lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor…
        the line ends: …lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor lorem ipsum dolor
        ");
        insta::assert_snapshot!(told(&"QUJD".repeat(5000), 120), @r"
        [Plain]
        text: 1 line, 1 word, 20000 characters, 1 paragraph, 1 not blank
        first line: … (20000 characters without a break)
        ");
    }
}
