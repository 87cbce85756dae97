//! Labelled values, one a line: reports, settings, headers, and records of them separated by blank lines.

use rustc_hash::FxHashMap;

use crate::brief::{Piece, spread};

use super::excerpt::{Tally, counted, cut, samples};
use super::log::{Errors, may_tell_of_error, tells_of_error};
use super::rank;

/// The number of keys whose values are counted.
const KEYS: usize = 512;
/// The number of lines kept for the list.
const KEPT: usize = 4000;
/// The number of characters of a line.
const LINE_LENGTH: usize = 140;
/// The number of lines that are shown before all others.
const ON_TOP: usize = 12;
/// The number of characters of a section's content.
const SECTION_LENGTH: usize = 100;
/// The number of different values of a key up to which their counts are kept.
const DISTINCT: usize = 12;

/// The key and the value of `key: value`, `key = value` or `key=value`.
pub(super) fn parse(line: &str) -> Option<(&str, &str)> {
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

/// The name in `[section]` of a settings file.
pub(super) fn section(line: &str) -> Option<&str> {
    let inner = line.trim().strip_prefix('[')?.strip_suffix(']')?;
    let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
    (!inner.is_empty() && !inner.contains([',', '[', ' ', '{'])).then_some(inner)
}

#[derive(Debug, Default)]
struct Values<'a> {
    count: usize,
    /// The count, minimum, maximum and sum of the values that are numbers.
    numbers: Option<(usize, f64, f64, f64)>,
    /// The values with their counts, until there are too many.
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
    /// The number of blocks between blank lines, and the number of those that begin with the very first key.
    blocks: usize,
    records: usize,
    lines: Vec<Line<'a>>,
}

/// A line with a key, and the section that it is in.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    /// The position of its key among the keys, if it is counted.
    key: Option<usize>,
    /// The number of the section from 1; 0 before the first.
    section: usize,
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
                let index = match at.get(key) {
                    Some(&index) => Some(index),
                    None if content.keys.len() < KEYS => {
                        content.keys.push((key, Values::default()));
                        at.insert(key, content.keys.len() - 1);
                        Some(content.keys.len() - 1)
                    }
                    None => None,
                };
                if let Some((_, values)) = index.and_then(|index| content.keys.get_mut(index)) {
                    values.add(value);
                }
                if content.lines.len() < KEPT {
                    content.lines.push(Line { text: line, key: index, section: content.sections.len() });
                }
            }
            after_blank = false;
        }
        content
    }

    /// Whether the text is a series of records: the very first key recurs, and most keys recur with it. The same keys
    /// in several sections are settings of different things.
    fn repeats(&self) -> bool {
        if !self.sections.is_empty() {
            return false;
        }
        let recurring = self.keys.iter().filter(|(_, values)| values.count * 2 >= self.records).count();
        self.records > 2 && recurring * 2 >= self.keys.len()
    }
}

/// Describes labelled values.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let content = Content::read(text);
    let mut errors = Errors::default();
    if may_tell_of_error(text) {
        for (number, line) in (1..).zip(text.lines()) {
            if tells_of_error(line) {
                errors.add(number, line);
            }
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
        let later = rank::WHOLE_OUTLINE;
        pieces.push(Piece::grown(rank::STAT_PLACE, "sections: ", entries, order, " ", least, later));
    }
    pieces.push(by_section(&content).unwrap_or_else(|| values(&content)));
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

/// A sum without the noise of binary fractions.
fn rounded(sum: f64) -> String {
    let text = format!("{sum:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The values of the records under each key. Keys that occur once are listed with their lines.
fn columns(content: &Content) -> Piece {
    let entries = content
        .keys
        .iter()
        .filter(|(_, values)| values.count > 1)
        .map(|(key, values)| match values.numbers {
            Some((count, least, most, sum)) if count * 2 > values.count => {
                format!("{key}: {count} numbers, min {least}, max {most}, sum {}", rounded(sum))
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

/// The lines themselves. Lines at the top and keys that occur once come before keys that recur.
fn values(content: &Content) -> Piece {
    let entries: Vec<String> = content.lines.iter().map(|line| cut(line.text, LINE_LENGTH)).collect();
    let once = |line: &Line| line.key.and_then(|key| content.keys.get(key)).is_none_or(|(_, values)| values.count == 1);
    let end = content.lines.len().saturating_sub(1);
    let second = content.lines.iter().skip(1).position(|line| line.key == Some(0)).map_or(ON_TOP, |at| at + 1);
    let on_top = if content.repeats() { second.min(ON_TOP) } else { ON_TOP };
    let (mut first, mut single, mut recurring) = (Vec::new(), Vec::new(), Vec::new());
    for (at, line) in content.lines.iter().enumerate() {
        let list = match () {
            () if at < on_top || at == end => &mut first,
            () if once(line) => &mut single,
            () => &mut recurring,
        };
        list.push(at);
    }
    // Records are shown whole, from the first on.
    let spread_over = |list: Vec<usize>| spread(list.len()).into_iter().filter_map(move |at| list.get(at).copied());
    let order: Vec<usize> = if content.repeats() {
        first.into_iter().chain(single).chain(recurring).collect()
    } else {
        first.into_iter().chain(spread_over(single)).chain(spread_over(recurring)).collect()
    };
    Piece::grown(rank::LEAF_PLACE, "", entries, order, "\n", (rank::LEAF, ON_TOP + 1), rank::WHOLE_OUTLINE)
}

/// The content of the sections, each in one entry; `None` without sections.
fn by_section(content: &Content) -> Option<Piece> {
    if content.sections.is_empty() {
        return None;
    }
    let mut entries: Vec<String> = Vec::new();
    let lines = content.lines.chunk_by(|one, next| one.section == next.section && one.section > 0);
    for group in lines {
        let pairs: Vec<&str> = group.iter().map(|line| line.text.trim()).collect();
        let number = group.first().map_or(0, |line| line.section);
        let name = number.checked_sub(1).and_then(|at| content.sections.get(at));
        let name = name.map_or_else(String::new, |name| format!("[{name}] "));
        entries.push(format!("{name}{}", cut(&pairs.join(", "), SECTION_LENGTH)));
    }
    let order = spread(entries.len());
    Some(Piece::grown(rank::LEAF_PLACE, "", entries, order, "\n", (rank::OUTLINE + 5, 2), rank::WHOLE_OUTLINE))
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn records_are_counted_by_key() {
        let text: String = (0..20)
            .map(|n| format!("Name: item {n}\nPrice: {}\nStatus: {}\n\n", n * 3, if n % 3 == 0 { "bad" } else { "ok" }))
            .collect();
        insta::assert_snapshot!(told(&text, 120), @r"
        [KeyValue]
        key-value text: 80 lines, 60 values, 3 keys, 20 records (Name)
        first line: Name: item 0
        Name: 20 values
        Price: 20 numbers, min 0, max 57, sum 570
        Status: 2 different: ok ×13, bad ×7
        Name: item 0
        Price: 0
        Status: bad
        Name: item 1
        Price: 3
        Status: ok
        Name: item 2
        Status: ok
        … +52
        last line: Status: ok
        ");
    }

    #[test]
    fn what_stands_once_comes_before_what_recurs() {
        let record = |n: usize| format!("item: {n}\nstate: open\nowner: nobody\nplace: shelf {n}\n\n");
        let records: String = (0..9).map(record).collect();
        let text = format!("{records}summary:\n  total: 9\n  newest: shelf 8\n\n{records}warning: two are missing\n");
        insta::assert_snapshot!(told(&text, 170), @r"
        [KeyValue]
        key-value text: 95 lines, 75 values, 8 keys, 18 records (item)
        first line: item: 0
        item: 18 numbers, min 0, max 8, sum 72
        state: 1 different: open ×18
        owner: 1 different: nobody ×18
        place: 9 different: shelf 0 ×2, shelf 1 ×2, shelf 2 ×2, shelf 3 ×2, shelf 4 ×2, shelf 5 ×2, shelf 6 ×2, shelf 7 ×2, shelf 8 ×2
        item: 0
        state: open
        owner: nobody
        place: shelf 0
        summary:
        warning: two are missing
        … +70
        last line: warning: two are missing
        ");
    }

    #[test]
    fn settings_with_sections() {
        let text = "[server]\nport = 80\nhost = \"a\"\n\n[client]\ntimeout = 3\n";
        insta::assert_snapshot!(told(text, 200), @r#"
        [KeyValue]
        key-value text: 6 lines, 3 values, 3 keys, 2 blocks, 2 sections
        first line: [server]
        sections: [server] [client]
        [server] port = 80, host = "a"
        [client] timeout = 3
        some lines:
        1: [server]
        2: port = 80
        3: host = "a"
        5: [client]
        6: timeout = 3
        last line: timeout = 3
        "#);
    }
}
