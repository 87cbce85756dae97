//! Labelled values, one a line: reports, settings, headers, and records of them separated by blank lines.

use rustc_hash::FxHashMap;

use crate::context::brief::{Piece, spread};

use super::excerpt::{Tally, counted, cut, samples};
use super::log::{Errors, tells_of_error};
use super::rank;

/// Keys whose values are counted.
const KEYS: usize = 512;
/// Lines that are kept for the list.
const KEPT: usize = 4000;
/// Characters of a line.
const LINE_LENGTH: usize = 140;
/// Different values that a key may have for their counts to be kept.
const DISTINCT: usize = 12;

/// The key and the value of `key: value`, `key = value` or `key=value`.
pub fn parse(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start().trim_start_matches("- ").trim_end();
    let at = line.find([':', '='])?;
    let key = line.get(..at)?.trim_end().trim_matches(['"', '*', '`']);
    let rest = line.get(at + 1..)?;
    let spaced = rest.is_empty() || rest.starts_with([' ', '\t']) || line.get(at..)?.starts_with('=');
    let words = key.split(' ').count();
    let plain = !key.is_empty()
        && key.len() <= 60
        && words <= 5
        && !key.contains(['(', ')', '{', '}', ';', ',', '<', '>', '[', '"']);
    let starts = key.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '@' | '$' | '/' | '.'));
    (spaced && plain && starts && !rest.starts_with('=')).then(|| (key, rest.trim()))
}

/// `[section]` of a settings file.
pub fn section(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
    (!inner.is_empty() && !inner.contains([',', '[', ' ', '{'])).then_some(inner)
}

#[derive(Debug, Default)]
struct Values<'a> {
    count: usize,
    /// Count, least, greatest and sum of the values that are numbers.
    numbers: Option<(usize, f64, f64, f64)>,
    /// Values with their counts, until there are too many.
    distinct: Vec<(&'a str, usize)>,
    too_many: bool,
}

impl<'a> Values<'a> {
    fn add(&mut self, value: &'a str) {
        self.count += 1;
        if let Some(number) = value.parse::<f64>().ok().filter(|number| number.is_finite()) {
            let (count, least, most, sum) = self.numbers.unwrap_or((0, number, number, 0.0));
            self.numbers = Some((count + 1, least.min(number), most.max(number), sum + number));
        }
        if self.too_many {
            return;
        }
        if let Some((_, count)) = self.distinct.iter_mut().find(|(known, _)| *known == value) {
            *count += 1;
        } else if self.distinct.len() < DISTINCT && value.len() <= 40 {
            self.distinct.push((value, 1));
        } else {
            self.too_many = true;
        }
    }
}

#[derive(Debug, Default)]
struct Content<'a> {
    keys: Vec<(&'a str, Values<'a>)>,
    values: usize,
    sections: Vec<&'a str>,
    /// Blocks between blank lines, and how many begin with the first key of all.
    blocks: usize,
    records: usize,
    lines: Vec<(usize, &'a str)>,
}

impl<'a> Content<'a> {
    fn read(text: &'a str) -> Self {
        let mut content = Self::default();
        let mut at: FxHashMap<&str, usize> = FxHashMap::default();
        let mut first_key = None;
        let mut after_blank = true;
        for line in text.lines() {
            if line.trim().is_empty() {
                after_blank = true;
                continue;
            }
            content.blocks += usize::from(after_blank);
            if let Some(name) = section(line) {
                if content.sections.len() < KEPT {
                    content.sections.push(name);
                }
            } else if let Some((key, value)) = parse(line) {
                content.values += usize::from(!value.is_empty());
                let first = *first_key.get_or_insert(key);
                content.records += usize::from(first == key);
                if content.lines.len() < KEPT {
                    content.lines.push((line.len() - line.trim_start().len(), line));
                }
                let index = match at.get(key) {
                    Some(&index) => Some(index),
                    None if content.keys.len() < KEYS => {
                        content.keys.push((key, Values::default()));
                        at.insert(key, content.keys.len() - 1);
                        Some(content.keys.len() - 1)
                    }
                    None => None,
                };
                if let Some(index) = index {
                    content.keys[index].1.add(value);
                }
            }
            after_blank = false;
        }
        content
    }

    /// Whether the text is a series of records: most blocks have the first key of all, and keys recur.
    fn repeats(&self) -> bool {
        self.records > 2 && self.records * 3 > self.blocks && self.values > self.keys.len() * 2
    }
}

/// What labelled values say.
pub fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let content = Content::read(text);
    let mut errors = Errors::default();
    for (number, line) in (1..).zip(text.lines()) {
        if tells_of_error(line) {
            errors.add(number, line);
        }
    }
    let mut pieces = vec![shape(&tally, &content)];
    pieces.extend(tally.ends());
    if errors.count * 10 < tally.filled {
        pieces.extend(errors.pieces("error line").into_iter().take(1));
    }
    if content.repeats() {
        pieces.push(columns(&content));
    }
    if !content.sections.is_empty() {
        let mut sections: Vec<(&str, usize)> = Vec::new();
        let mut at: FxHashMap<&str, usize> = FxHashMap::default();
        for &name in &content.sections {
            let index = *at.entry(name).or_insert_with(|| {
                sections.push((name, 0));
                sections.len() - 1
            });
            sections[index].1 += 1;
        }
        let entries: Vec<String> = sections
            .iter()
            .map(|&(name, times)| if times > 1 { format!("[{name}] ×{times}") } else { format!("[{name}]") })
            .collect();
        let order = spread(entries.len());
        let least = (rank::OUTLINE, 4);
        let later = rank::OUTLINE + 5;
        pieces.push(Piece::chosen(rank::OUTLINE_PLACE, "sections: ", entries, order, " ", least, later));
    }
    pieces.push(values(&content));
    pieces.extend(samples(text, &tally));
    pieces
}

fn shape(tally: &Tally, content: &Content) -> Piece {
    let mut said =
        vec![counted(tally.lines, "line"), counted(content.values, "value"), counted(content.keys.len(), "key")];
    if content.repeats() {
        let first = content.keys.first().map_or("", |(key, _)| *key);
        said.push(format!("{} ({first})", counted(content.records, "record")));
        if first.eq_ignore_ascii_case("commit") {
            said.push(counted(content.records, "commit"));
        }
    } else if content.blocks > 1 {
        said.push(counted(content.blocks, "block"));
    }
    if !content.sections.is_empty() {
        said.push(counted(content.sections.len(), "section"));
    }
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, format!("key-value text: {}", said.join(", ")))
}

/// What the records hold under each key.
fn columns(content: &Content) -> Piece {
    let entries = content
        .keys
        .iter()
        .map(|(key, values)| match values.numbers {
            Some((count, least, most, sum)) if count * 2 > values.count => {
                format!("{key}: {count} numbers, min {least}, max {most}, sum {sum}")
            }
            _ if !values.too_many && values.distinct.len() < values.count => {
                let mut distinct = values.distinct.clone();
                distinct.sort_by_key(|&(value, count)| (std::cmp::Reverse(count), value));
                let listed: Vec<String> = distinct.iter().map(|(value, count)| format!("{value} ×{count}")).collect();
                format!("{key}: {} different: {}", distinct.len(), listed.join(", "))
            }
            _ => format!("{key}: {}", counted(values.count, "value")),
        })
        .collect();
    Piece::list(rank::STAT_PLACE, "", entries, "\n", (rank::STAT, 6), rank::MORE_STAT)
}

/// The lines themselves, those at the margin first.
fn values(content: &Content) -> Piece {
    let entries: Vec<String> = content.lines.iter().map(|(_, line)| cut(line, LINE_LENGTH)).collect();
    let mut order = spread(entries.len());
    order.sort_by_key(|&index| content.lines[index].0);
    Piece::chosen(rank::LEAF_PLACE, "", entries, order, "\n", (rank::LEAF, 6), rank::WHOLE_OUTLINE)
}
