//! Lines that match a regular expression.

use std::borrow::Cow;
use std::collections::VecDeque;

use regex::{Regex, RegexBuilder};

use super::ViewError;

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
                self.matches(number, &line, &mut found);
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

    fn matches(&self, number: usize, line: &str, found: &mut Vec<String>) {
        if line.len() <= LONG_LINE {
            found.push(format!("{number}: {line}"));
            return;
        }
        let mut shown = 0;
        let mut count = 0;
        for place in self.expression.find_iter(line) {
            if place.start() < shown {
                continue;
            }
            if count == MOST_IN_LINE {
                found.push(format!("{number}: … more matches in this line"));
                return;
            }
            count += 1;
            let start = line.floor_char_boundary(place.start().saturating_sub(AROUND));
            let end = line.ceil_char_boundary(place.end().min(place.start() + LONG_LINE).saturating_add(AROUND));
            let part = line.get(start..end).unwrap_or_default();
            let (left, right) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
            found.push(format!("{number}: {left}{part}{right}"));
            shown = end;
        }
    }
}

fn shortened(line: &str) -> Cow<'_, str> {
    if line.len() <= LONG_LINE {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{}…", line.get(..line.floor_char_boundary(LONG_LINE)).unwrap_or_default()))
}
