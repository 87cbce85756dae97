//! Lines that match a regular expression.

use std::borrow::Cow;
use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

use super::ViewError;
use super::units::{Rows, lines_of, rows_of_text};
use crate::clean::without_sequences;
use crate::literal::{Document, Value, Visit};
use crate::split::lines;
use crate::summary::{document_and_rest, has_lines, main_text, rows_of, selector_path};

/// The size of a compiled expression at most, in bytes: a larger one is a way to stop a server.
const MOST_PROGRAM: usize = 1 << 20;

/// The number of bytes of a line above which only the surroundings of a match are shown.
const LONG_LINE: usize = 400;

/// The number of bytes shown before and after a match in a long line.
const AROUND: usize = 80;

/// The number of matches shown of one long line.
const MOST_IN_LINE: usize = 20;

/// The number of bytes of matches that are collected: far more than any answer holds, and a bound on memory.
const MOST_FOUND: usize = 4 << 20;

/// Whether the lines of a text are a sensible unit: a text of one huge line is searched by rows.
pub(super) fn has_readable_lines(text: &str) -> bool {
    text.lines().take(64).all(|line| line.len() <= 8 * LONG_LINE)
}

/// A search for an expression.
pub(super) struct Search {
    expression: Regex,
    context: usize,
}

impl Search {
    pub(super) fn new(pattern: &str, context: usize) -> Result<Self, ViewError> {
        let refuse = |reason: String| ViewError::Pattern { pattern: pattern.to_owned(), reason };
        if pattern.is_empty() {
            return Err(refuse("it is empty".to_owned()));
        }
        match RegexBuilder::new(pattern).size_limit(MOST_PROGRAM).build() {
            Ok(expression) => Ok(Self { expression, context }),
            Err(error) => Err(refuse(error.to_string().lines().last().unwrap_or_default().trim().to_owned())),
        }
    }

    /// Matching lines as `number: line` and lines around them as `number- line`, numbers from 0, `--` between groups.
    pub(super) fn lines<'a>(&self, lines: impl Iterator<Item = Cow<'a, str>>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut bytes = 0;
        let mut before: VecDeque<(usize, Cow<'a, str>)> = VecDeque::new();
        let mut after = 0;
        let mut last = None;
        for (number, line) in lines.enumerate() {
            if bytes > MOST_FOUND {
                break;
            }
            let collected = found.len();
            if self.expression.is_match(&line) {
                let first = before.front().map_or(number, |(number, _)| *number);
                if self.context > 0 && last.is_some_and(|last| last + 1 < first) {
                    found.push("--".to_owned());
                }
                found.extend(before.drain(..).map(|(number, line)| format!("{number}- {}", shortened(&line))));
                self.matches(&number.to_string(), &line, &mut found);
                last = Some(number);
                after = self.context;
            } else if after > 0 {
                found.push(format!("{number}- {}", shortened(&line)));
                last = Some(number);
                after -= 1;
            } else if self.context > 0 {
                if before.len() == self.context {
                    before.pop_front();
                }
                before.push_back((number, line));
            }
            bytes += found.iter().skip(collected).map(String::len).sum::<usize>();
        }
        found
    }

    /// The matches in a document of the path `base`, and in what stands before and behind it: first those in the text or in
    /// the rows that most of it is, by their numbers, then those in other values, each by its path.
    pub(super) fn document(&self, document: &Document<'_>, rest: &[&str; 2], base: &str) -> Vec<String> {
        let root = document.root();
        let mut found = Vec::new();
        let text = main_text(root, base).filter(|(value, path)| self.in_text(&value.plain(), path, &mut found));
        let main = text.map(|(value, _)| value).or_else(|| {
            let place = (base != "$").then(|| rows_of_text(base));
            rows_of(root).inspect(|array| found.extend(below(place, self.lines(Rows::of(*array).iter()))))
        });
        self.values(root, base, main, &mut found);
        for line in rest.iter().flat_map(|part| lines(part)).filter(|line| self.expression.is_match(line)) {
            self.matches(&format!("around {base}"), line, &mut found);
        }
        found
    }

    /// Adds the matches in a long text inside a document, if it has lines or is a document itself; whether it has or is.
    fn in_text(&self, text: &str, path: &str, found: &mut Vec<String>) -> bool {
        if let Some((document, rest)) = document_and_rest(&without_sequences(text)) {
            found.extend(self.document(&document, &rest, path));
        } else if has_lines(text) {
            found.extend(below(Some(lines_of(path)), self.lines(lines(text).map(Cow::Borrowed))));
        } else {
            return false;
        }
        true
    }

    /// Adds the matches in the values in `root`, which has the path `base`, without those in `main`.
    fn values(&self, root: Value<'_>, base: &str, main: Option<Value<'_>>, found: &mut Vec<String>) {
        let told = main.map_or(0..0, Value::span);
        if told == root.span() {
            return;
        }
        // The key or the number of the value and of everything around it.
        let mut steps: Vec<(Option<Value<'_>>, usize)> = Vec::new();
        let mut bytes = 0;
        for Visit { depth, key, value } in root.descendants() {
            if let Some(depth) = depth.checked_sub(1) {
                let number = steps.get(depth).map_or(0, |(_, before)| before + 1);
                steps.truncate(depth);
                steps.push((key, number));
            }
            if value.is_container() || told.contains(&value.span().start) {
                continue;
            }
            let collected = found.len();
            self.value(key, &value.plain(), || path_of(base, &steps), found);
            bytes += found.iter().skip(collected).map(String::len).sum::<usize>();
            if bytes > MOST_FOUND {
                return;
            }
        }
    }

    /// Adds the matches in one value, or the value if its key matches.
    fn value(&self, key: Option<Value<'_>>, text: &str, path: impl Fn() -> String, found: &mut Vec<String>) {
        let with_key = || key.is_some_and(|key| self.expression.is_match(&format!("{}: {text}", key.plain())));
        if has_lines(text) {
            let matching = self.lines(lines(text).map(Cow::Borrowed));
            if !matching.is_empty() {
                found.push(lines_of(&path()));
                found.extend(matching);
            }
        } else if self.expression.is_match(text) {
            self.matches(&path(), text, found);
        } else if with_key() {
            found.push(format!("{}: {}", path(), shortened(text)));
        }
    }

    /// Adds a line that matches, under what it is called.
    fn matches(&self, name: &str, line: &str, found: &mut Vec<String>) {
        if line.len() <= LONG_LINE {
            found.push(format!("{name}: {line}"));
            return;
        }
        let mut shown = 0;
        let mut count = 0;
        for place in self.expression.find_iter(line) {
            if place.start() < shown {
                continue;
            }
            if count == MOST_IN_LINE {
                found.push(format!("{name}: … more matches in this line"));
                return;
            }
            count += 1;
            let start = line.floor_char_boundary(place.start().saturating_sub(AROUND));
            let end = line.ceil_char_boundary(place.end().min(place.start() + LONG_LINE).saturating_add(AROUND));
            let part = line.get(start..end).unwrap_or_default();
            let (left, right) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
            found.push(format!("{name}: {left}{part}{right}"));
            shown = end;
        }
    }
}

/// What was found, if anything, below the line that says where.
fn below(place: Option<String>, found: Vec<String>) -> Vec<String> {
    let place = place.filter(|_| !found.is_empty());
    place.into_iter().chain(found).collect()
}

/// The path to which keys or numbers lead from `base`.
fn path_of(base: &str, steps: &[(Option<Value<'_>>, usize)]) -> String {
    steps.iter().fold(base.to_owned(), |path, (key, number)| match key {
        Some(key) => selector_path(&path, &key.plain()),
        None => format!("{path}[{number}]"),
    })
}

fn shortened(line: &str) -> Cow<'_, str> {
    if line.len() <= LONG_LINE {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{}…", line.get(..line.floor_char_boundary(LONG_LINE)).unwrap_or_default()))
}
