//! Markdown: its headings are the outline; code blocks, lists, tables and links are counted.

use regex::Regex;
use std::sync::LazyLock;

use crate::brief::{Piece, spread};

use super::excerpt::{Tally, cut, samples};
use super::rank;
use contextweaver_core::text::counted;

/// The number of headings and links kept.
const KEPT: usize = 4000;
/// The number of headings that are shown first.
const FIRST_HEADINGS: usize = 5;
/// The number of headings up to which they are shown with their line numbers.
const NUMBERED: usize = 200;
/// The number of characters of a heading.
const HEADING_LENGTH: usize = 80;

static LINK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\]\((https?://[^\s)]+|[^\s)]+)|<(https?://[^\s>]+)>|\b(https?://[^\s<>()\]]+)")
        .expect("a fixed pattern")
});

/// A heading of a text or a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heading<'a> {
    pub(super) level: usize,
    pub(super) title: &'a str,
    /// The number of its line from 0, if known.
    pub(super) line: Option<usize>,
}

#[derive(Debug, Default)]
struct Outline<'a> {
    headings: Vec<Heading<'a>>,
    heading_count: usize,
    levels: [usize; 6],
    code_blocks: usize,
    /// The languages of code blocks, in order of first appearance.
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
pub(crate) fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    let rest = line.get(level..)?;
    let title = rest.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t']) && !title.is_empty()).then_some((level, title))
}

/// The text without images and link targets: `[3.1](https://…)` becomes `3.1`.
fn unlinked(title: &str) -> String {
    let mut plain = String::new();
    let mut rest = title;
    while let Some((front, target)) = rest.split_once("](") {
        let Some((_, behind)) = target.split_once(')') else { break };
        plain.push_str(front);
        let Some(open) = opening(&plain) else {
            plain.push_str("](");
            rest = target;
            continue;
        };
        if plain.get(..open).is_some_and(|before| before.ends_with('!')) {
            plain.truncate(open - 1);
        } else {
            plain.remove(open);
        }
        rest = behind;
    }
    plain.push_str(rest);
    if plain.trim().is_empty() { title.to_owned() } else { plain }
}

/// The position of the bracket that a bracket after `front` would close.
fn opening(front: &str) -> Option<usize> {
    let mut inside = 0_usize;
    for (at, character) in front.char_indices().rev() {
        match character {
            ']' => inside += 1,
            '[' if inside == 0 => return Some(at),
            '[' => inside -= 1,
            _ => {}
        }
    }
    None
}

/// A line that begins or ends a block of code: at least three `` ` `` or `~`, and what stands behind them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence<'l> {
    mark: u8,
    length: usize,
    info: &'l str,
}

/// The fence that a line is, if it is one. Backticks with another one behind them are code within a line.
pub(crate) fn fence(line: &str) -> Option<Fence<'_>> {
    let line = line.trim();
    let mark = *line.as_bytes().first().filter(|mark| b"`~".contains(mark))?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    let info = line.get(length..)?.trim();
    (length >= 3 && !(mark == b'`' && info.contains('`'))).then_some(Fence { mark, length, info })
}

/// What a line is to the blocks of code of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fenced<'l> {
    /// It is in none.
    Not,
    /// It begins one, and says this about it.
    Opens(&'l str),
    /// It is within one, or ends it.
    Within,
}

/// Follows the lines of a text into its blocks of code and out of them.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    /// The mark of the block that is open, and the least length of the fence that ends it.
    open: Option<(u8, usize)>,
}

impl Fences {
    /// What the next line is.
    pub(crate) fn next<'l>(&mut self, line: &'l str) -> Fenced<'l> {
        let fence = fence(line);
        match (self.open, fence) {
            (Some((mark, least)), Some(fence)) => {
                if fence.mark == mark && fence.length >= least && fence.info.is_empty() {
                    self.open = None;
                }
                Fenced::Within
            }
            (Some(_), None) => Fenced::Within,
            (None, Some(Fence { mark, length, info })) => {
                self.open = Some((mark, length));
                Fenced::Opens(info)
            }
            (None, None) => Fenced::Not,
        }
    }
}

/// Whether `line` is an item of a list.
pub(super) fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
        || (digits > 0 && line.get(digits..).is_some_and(|rest| rest.starts_with(". ") || rest.starts_with(") ")))
}

impl<'a> Outline<'a> {
    fn read(text: &'a str) -> Self {
        let mut outline = Self::default();
        let mut fences = Fences::default();
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
            match fences.next(line) {
                Fenced::Not => {}
                Fenced::Opens(info) => {
                    outline.code_block(info);
                    continue;
                }
                Fenced::Within => continue,
            }
            let row = line.trim_start().starts_with('|');
            if row {
                outline.tables += usize::from(!in_table);
                outline.table_rows += 1;
            }
            in_table = row;
            outline.line(number, line, before);
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

    fn line(&mut self, number: usize, line: &'a str, before: &'a str) {
        self.words += line.split_ascii_whitespace().count();
        if let Some((level, title)) = heading(line) {
            return self.heading(level, title, number);
        }
        let underline = line.trim_end();
        if underline.len() >= 3 && !before.trim().is_empty() && heading(before).is_none() {
            if underline.bytes().all(|byte| byte == b'=') {
                return self.heading(1, before.trim(), number - 1);
            }
            if underline.bytes().all(|byte| byte == b'-') && !is_item(before) && !before.contains('|') {
                return self.heading(2, before.trim(), number - 1);
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

    fn heading(&mut self, level: usize, title: &'a str, line: usize) {
        self.heading_count += 1;
        if let Some(count) = self.levels.get_mut(level - 1) {
            *count += 1;
        }
        if self.headings.len() < KEPT {
            self.headings.push(Heading { level, title, line: Some(line) });
        }
    }
}

/// Describes a Markdown text.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
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

/// The addresses in a page, each once, in order of first appearance.
pub(super) fn links(addresses: Vec<String>) -> Option<Piece> {
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

/// The headings in the order of the text, higher levels before lower ones; a repeated heading is listed once with its
/// count.
fn headings(outline: &Outline) -> Option<Piece> {
    headings_piece(&outline.headings, "headings:\n")
}

/// As [`headings`], for texts and pages.
pub(super) fn headings_piece(headings: &[Heading], head: &str) -> Option<Piece> {
    let mut distinct: Vec<(&Heading, usize)> = Vec::new();
    let mut at = rustc_hash::FxHashMap::default();
    for heading in headings {
        let index = *at.entry((heading.level, heading.title)).or_insert_with(|| {
            distinct.push((heading, 0));
            distinct.len() - 1
        });
        if let Some((_, times)) = distinct.get_mut(index) {
            *times += 1;
        }
    }
    if distinct.is_empty() {
        return None;
    }
    let written = |&(heading, times): &(&Heading, usize)| {
        let again = if times > 1 { format!(" ×{times}") } else { String::new() };
        format!("{} {}{again}", "#".repeat(heading.level), cut(unlinked(heading.title).trim(), HEADING_LENGTH))
    };
    let entries: Vec<String> = distinct.iter().map(written).collect();
    // A repeated heading comes first, then level by level, each level spread over the text.
    let mut order: Vec<(usize, &(&Heading, usize))> = distinct.iter().enumerate().collect();
    order.sort_by_key(|(index, (heading, times))| (std::cmp::Reverse(*times), heading.level, *index));
    let mut spread_order = Vec::with_capacity(order.len());
    for group in order.chunk_by(|(_, a), (_, b)| a.1 == b.1 && a.0.level == b.0.level) {
        spread_order.extend(spread(group.len()).into_iter().filter_map(|at| group.get(at)).map(|(index, _)| *index));
    }
    let least = (rank::OUTLINE, FIRST_HEADINGS);
    let later = rank::WHOLE_OUTLINE;
    let piece = Piece::grown(rank::OUTLINE_PLACE, head, entries, spread_order, "\n", least, later);
    // With line numbers, if there is room for all.
    let numbered = distinct.iter().map(|one| Some(format!("{}: {}", one.0.line?, written(one))));
    let numbered: Option<Vec<String>> = numbered.collect();
    Some(match numbered.filter(|numbered| numbered.len() <= NUMBERED) {
        Some(lines) => piece.or(rank::RICH_OUTLINE, format!("{head}{}", lines.join("\n"))),
        None => piece,
    })
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::{Fenced, Fences, unlinked};

    #[test]
    fn titles_are_read_without_their_links() {
        for (title, plain) in [
            ("[3.1](https://example.org/a...b) - 2026-01-02", "3.1 - 2026-01-02"),
            ("[`#[cfg(doc)]`: Notes](#notes) and [more](x)", "`#[cfg(doc)]`: Notes and more"),
            ("![logo](a.png) Name [![build](b.png)](c)", " Name "),
            ("![only](an.png)", "![only](an.png)"),
            ("f](x) no link", "f](x) no link"),
            ("[open](never closed", "[open](never closed"),
            ("[Unreleased]", "[Unreleased]"),
        ] {
            assert_eq!(unlinked(title), plain);
        }
    }

    #[test]
    fn headings_links_and_blocks() {
        insta::assert_snapshot!(told("---\ntitle: Guide\n---\n# Guide\n\nThe first paragraph tells what the guide is about.\n\n## Install\n\n```sh\n# no heading\nmake\n```\n\n## Use\n\n- one [link](https://example.org/a)\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n### Notes\n\nEnd.\n", 300), @r"
        [Markdown]
        Markdown: 26 lines, 4 headings, 1 code block
        first line: ---
        34 words, 1 link, 2 list items, 1 table, 3 table rows
        headings: 1 of level 1, 2 of level 2, 1 of level 3
        code blocks in: sh
        title: Guide
        text: The first paragraph tells what the guide is about.
        headings:
        3: # Guide
        7: ## Install
        14: ## Use
        23: ### Notes
        links:
        https://example.org/a
        some lines:
        0: ---
        1: title: Guide
        2: ---
        3: # Guide
        5: The first paragraph tells what the guide is about.
        7: ## Install
        9: ```sh
        10: # no heading
        11: make
        12: ```
        14: ## Use
        16: - one [link](https://example.org/a)
        17: - two
        19: | a | b |
        20: |---|---|
        21: | 1 | 2 |
        23: ### Notes
        25: End.
        last line: End.
        ");
    }

    #[test]
    fn a_block_of_code_ends_with_a_fence_like_the_one_it_began_with() {
        let places = |text: &str| -> String {
            let mut fences = Fences::default();
            let place = |line| match fences.next(line) {
                Fenced::Not => '.',
                Fenced::Opens(_) => '<',
                Fenced::Within => '|',
            };
            text.lines().map(place).collect()
        };
        for (text, blocks) in [
            ("a\n```sh\nb\n```\nc", ".<||."),
            ("````md\n```\nb\n```\n````\nc", "<||||."),
            ("```\nb\n`````  \nc", "<||."),
            ("```\nb\n```sh\nc\n```\nd", "<||||."),
            ("~~~ a`b`\n```\n~~~\nc", "<||."),
            ("```code``` in a line\n# c", ".."),
            ("``\nb\n~~", "..."),
            ("- a\n  ```\n  b\n  ```\nc", ".<||."),
            ("```\nnever closed", "<|"),
        ] {
            assert_eq!(places(text), blocks, "{text}");
        }
        let told = told(
            "````md\n# In it\n```sh\n```\n````\n\n# Behind it\n\n- one\n- two\n\n```x``` is code.\n\n## Last\n",
            60,
        );
        assert!(told.contains("2 headings, 1 code block"), "{told}");
    }

    #[test]
    fn headings_that_recur_stand_once() {
        let text: String = (0..40).map(|n| format!("## 1.{n}.0\n\n### Added\n\n- thing {n}\n\n")).collect();
        insta::assert_snapshot!(told(&text, 130), @r"
        [Markdown]
        Markdown: 240 lines, 80 headings, 0 code blocks
        first line: ## 1.0.0
        280 words, 40 list items
        headings: 40 of level 2, 40 of level 3
        headings:
        ## 1.0.0
        ### Added ×40
        ## 1.4.0
        ## 1.9.0
        ## 1.14.0
        ## 1.19.0
        ## 1.29.0
        ## 1.39.0
        … +33
        last line: - thing 39
        ");
    }
}
