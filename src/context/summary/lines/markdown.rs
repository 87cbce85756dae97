//! Markdown: its headings are the outline; code blocks, lists, tables and links are counted.

use regex::Regex;
use std::sync::LazyLock;

use crate::context::brief::{Piece, spread};

use super::excerpt::{Tally, counted, cut, samples};
use super::rank;

/// Headings and links that are kept.
const KEPT: usize = 4000;
/// Characters of a heading.
const HEADING_LENGTH: usize = 80;

static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\]\((https?://[^\s)]+|[^\s)]+)|<(https?://[^\s>]+)>|\b(https?://[^\s<>()\]]+)")
        .expect("a fixed pattern")
});

#[derive(Debug, Default)]
struct Outline<'a> {
    headings: Vec<(usize, &'a str)>,
    heading_count: usize,
    levels: [usize; 6],
    code_blocks: usize,
    /// Languages of code blocks in the order of their first appearance.
    languages: Vec<&'a str>,
    list_items: usize,
    table_rows: usize,
    tables: usize,
    links: usize,
    first_links: Vec<&'a str>,
    images: usize,
    words: usize,
    front_matter: Vec<&'a str>,
    paragraph: Option<&'a str>,
}

/// The level and the text of an ATX heading.
pub fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    let rest = line.get(level..)?;
    let title = rest.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t']) && !title.is_empty()).then_some((level, title))
}

/// The marker of a fence of a code block, `` ``` `` or `~~~`.
pub fn fence(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(fence))
}

/// Whether `line` is an item of a list.
pub fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
        || (digits > 0 && line.get(digits..).is_some_and(|rest| rest.starts_with(". ") || rest.starts_with(") ")))
}

impl<'a> Outline<'a> {
    fn read(text: &'a str) -> Self {
        let mut outline = Self::default();
        let mut fenced: Option<&str> = None;
        let mut front = false;
        let mut in_table = false;
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            if number == 0 && line.trim_end() == "---" {
                front = true;
                continue;
            }
            if front {
                front = line.trim_end() != "---";
                if front && line.contains(':') && outline.front_matter.len() < 40 {
                    outline.front_matter.push(line);
                }
                continue;
            }
            let mark = fence(line);
            if let Some(open) = fenced {
                if mark == Some(open) {
                    fenced = None;
                }
                continue;
            }
            if let Some(mark) = mark {
                outline.code_block(line.trim_start().trim_start_matches(['`', '~']).trim());
                fenced = Some(mark);
                continue;
            }
            let row = line.trim_start().starts_with('|');
            if row {
                outline.tables += usize::from(!in_table);
                outline.table_rows += 1;
            }
            in_table = row;
            outline.line(line, before);
            before = line;
        }
        outline
    }

    fn code_block(&mut self, language: &'a str) {
        self.code_blocks += 1;
        let language = language.split([' ', ',', '{']).next().unwrap_or_default();
        if !language.is_empty() && self.languages.len() < 12 && !self.languages.contains(&language) {
            self.languages.push(language);
        }
    }

    fn line(&mut self, line: &'a str, before: &'a str) {
        self.words += line.split_ascii_whitespace().count();
        if let Some((level, title)) = heading(line) {
            return self.heading(level, title);
        }
        let underline = line.trim_end();
        if underline.len() >= 3 && !before.trim().is_empty() && heading(before).is_none() {
            if underline.bytes().all(|byte| byte == b'=') {
                return self.heading(1, before.trim());
            }
            if underline.bytes().all(|byte| byte == b'-') && !is_item(before) && !before.contains('|') {
                return self.heading(2, before.trim());
            }
        }
        self.list_items += usize::from(is_item(line));
        let starts_with_letter = line.starts_with(|character: char| character.is_alphabetic());
        if self.paragraph.is_none() && starts_with_letter && line.len() > 30 {
            self.paragraph = Some(line);
        }
        if line.contains("](") || line.contains("http") {
            for found in LINK.captures_iter(line) {
                self.links += 1;
                let target = found.iter().skip(1).flatten().next().map(|target| target.as_str());
                if let Some(target) = target.filter(|target| self.first_links.len() < 200 && target.starts_with("http"))
                {
                    self.first_links.push(target);
                }
            }
            self.images += line.matches("![").count();
        }
    }

    fn heading(&mut self, level: usize, title: &'a str) {
        self.heading_count += 1;
        if let Some(count) = self.levels.get_mut(level - 1) {
            *count += 1;
        }
        if self.headings.len() < KEPT {
            self.headings.push((level, title));
        }
    }
}

/// What a Markdown text says.
pub fn pieces(text: &str) -> Vec<Piece> {
    let outline = Outline::read(text);
    let tally = Tally::of(text);
    let mut pieces = vec![shape(&outline, &tally)];
    pieces.extend(tally.ends());
    pieces.extend(counts(&outline));
    for line in &outline.front_matter {
        pieces.push(Piece::line(rank::LEAF_PLACE, rank::LEAF, cut(line, 120)));
    }
    pieces.extend(headings(&outline));
    if let Some(paragraph) = outline.paragraph {
        pieces.push(
            Piece::line(rank::LEAF_PLACE, rank::SECOND_OUTLINE, format!("text: {}", cut(paragraph, 160)))
                .or(rank::LONGEST, format!("text: {}", cut(paragraph, 400))),
        );
    }
    pieces.extend(links(outline.first_links.iter().map(|&link| link.to_owned()).collect()));
    pieces.extend(samples(text, &tally));
    pieces
}

/// The addresses of a page, each once, in the order of their first appearance.
pub fn links(addresses: Vec<String>) -> Option<Piece> {
    let mut seen = rustc_hash::FxHashSet::default();
    let addresses: Vec<String> = addresses.into_iter().filter(|address| seen.insert(address.clone())).collect();
    (!addresses.is_empty()).then(|| {
        let least = (rank::SECOND_OUTLINE, 2);
        Piece::list(rank::SECOND_OUTLINE_PLACE, "links:\n", addresses, "\n", least, rank::SECOND_OUTLINE)
    })
}

fn shape(outline: &Outline, tally: &Tally) -> Piece {
    let text = format!(
        "Markdown: {}, {}, {}",
        counted(tally.lines, "line"),
        counted(outline.heading_count, "heading"),
        counted(outline.code_blocks, "code block")
    );
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, text)
}

fn counts(outline: &Outline) -> Vec<Piece> {
    let mut said = vec![counted(outline.words, "word")];
    for (count, noun) in [
        (outline.links, "link"),
        (outline.list_items, "list item"),
        (outline.tables, "table"),
        (outline.table_rows, "table row"),
        (outline.images, "image"),
    ] {
        if count > 0 {
            said.push(counted(count, noun));
        }
    }
    let levels: Vec<String> = outline
        .levels
        .iter()
        .zip(1..)
        .filter(|&(&count, _)| count > 0)
        .map(|(count, level)| format!("{count} of level {level}"))
        .collect();
    let mut pieces = vec![Piece::line(rank::STAT_PLACE, rank::STAT, said.join(", "))];
    if levels.len() > 1 {
        pieces.push(Piece::line(rank::STAT_PLACE, rank::MORE_STAT, format!("headings: {}", levels.join(", "))));
    }
    if !outline.languages.is_empty() {
        let text = format!("code blocks in: {}", outline.languages.join(", "));
        pieces.push(Piece::line(rank::STAT_PLACE, rank::MORE_STAT, text));
    }
    pieces
}

/// Headings in the order of the text, higher levels before lower ones; a heading that recurs stands once with the
/// number of its occurrences.
fn headings(outline: &Outline) -> Option<Piece> {
    headings_piece(&outline.headings, "headings:\n")
}

/// See [`headings`]; also for pages.
pub fn headings_piece(headings: &[(usize, &str)], head: &str) -> Option<Piece> {
    let mut distinct: Vec<(usize, &str, usize)> = Vec::new();
    let mut at = rustc_hash::FxHashMap::default();
    for &(level, title) in headings {
        let index = *at.entry((level, title)).or_insert_with(|| {
            distinct.push((level, title, 0));
            distinct.len() - 1
        });
        distinct[index].2 += 1;
    }
    if distinct.is_empty() {
        return None;
    }
    let entries: Vec<String> = distinct
        .iter()
        .map(|&(level, title, times)| {
            let again = if times > 1 { format!(" ×{times}") } else { String::new() };
            format!("{} {}{again}", "#".repeat(level), cut(title, HEADING_LENGTH))
        })
        .collect();
    // A heading that stands for many comes first, then level by level, each level spread over the text.
    let mut order: Vec<usize> = (0..distinct.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(distinct[index].2), distinct[index].0, index));
    let mut spread_order = Vec::with_capacity(order.len());
    for group in order.chunk_by(|&a, &b| distinct[a].2 == distinct[b].2 && distinct[a].0 == distinct[b].0) {
        spread_order.extend(spread(group.len()).into_iter().map(|at| group[at]));
    }
    Some(Piece::chosen(rank::OUTLINE_PLACE, head, entries, spread_order, "\n", (rank::OUTLINE, 5), rank::WHOLE_OUTLINE))
}
