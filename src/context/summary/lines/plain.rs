//! Text of no other kind: prose, and the output of commands.

use crate::context::brief::Piece;

use super::excerpt::{Tally, counted, cut, samples};
use super::log::{Errors, tells_of_error};
use super::markdown;
use super::rank;
use super::template::Templates;

/// Characters of the opening in its two wordings.
const OPENING_LENGTHS: [usize; 2] = [240, 600];
/// Lines with a time or a level from which on templates are counted.
const LEAST_REPEATED: usize = 20;

#[derive(Debug, Default)]
struct Content<'a> {
    words: usize,
    sentences: usize,
    paragraphs: usize,
    titles: Vec<(usize, &'a str)>,
}

impl<'a> Content<'a> {
    fn read(text: &'a str) -> Self {
        let mut content = Self::default();
        let mut before_blank = true;
        let mut before = "";
        for line in text.lines() {
            let trimmed = line.trim();
            let blank = trimmed.is_empty();
            if !blank {
                content.paragraphs += usize::from(before_blank);
                for word in trimmed.split_ascii_whitespace() {
                    content.words += 1;
                    let end = word.trim_end_matches(['"', '\'', ')', '”', '’']);
                    content.sentences += usize::from(end.ends_with(['.', '!', '?', '。', '！', '？']) && end.len() > 2);
                }
                if is_title(line, before_blank) {
                    content.titles.push((1, trimmed));
                } else if is_underline(trimmed) && !before.trim().is_empty() && before.len() < 100 {
                    content.titles.push((1, before.trim()));
                }
            }
            before_blank = blank;
            before = line;
        }
        content.titles.truncate(2000);
        content
    }
}

/// A line under a title: `=====`.
fn is_underline(line: &str) -> bool {
    line.len() >= 4 && line.bytes().all(|byte| matches!(byte, b'=' | b'-' | b'~'))
}

/// A title: a short line after a blank one, at the margin, in capitals or numbered, without a full stop.
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

/// What a plain text says.
pub fn pieces(text: &str) -> Vec<Piece> {
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

/// Lines that recur but for their numbers, if they are many.
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
