//! Lines that differ only in numbers and identifiers, counted together.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

/// Different patterns that are kept; what comes later is counted only.
const KEPT: usize = 4096;

/// Lines of one pattern.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// The first of them.
    pub first: &'a str,
    /// Its number, from 1.
    pub line: usize,
    /// How many there are.
    pub count: usize,
}

/// The patterns of a text.
#[derive(Debug, Default)]
pub struct Templates<'a> {
    groups: Vec<Group<'a>>,
    at: FxHashMap<u64, usize>,
    /// Lines of patterns that were not kept.
    pub others: usize,
}

impl<'a> Templates<'a> {
    /// Counts `line`, the `number`th.
    pub fn add(&mut self, line: &'a str, number: usize) {
        let pattern = pattern(line);
        if let Some(&index) = self.at.get(&pattern) {
            self.groups[index].count += 1;
        } else if self.groups.len() < KEPT {
            self.at.insert(pattern, self.groups.len());
            self.groups.push(Group { first: line, line: number, count: 1 });
        } else {
            self.others += 1;
        }
    }

    /// The patterns in the order of their first lines.
    pub fn groups(&self) -> &[Group<'a>] {
        &self.groups
    }

    /// The most frequent patterns first, equals in the order of their first lines.
    pub fn frequent(&self) -> Vec<Group<'a>> {
        let mut groups = self.groups.clone();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.count), group.line));
        groups
    }
}

/// A hash of the line with every word that contains a digit replaced by one mark, and blanks collapsed.
fn pattern(line: &str) -> u64 {
    let mut hasher = FxHasher::default();
    let bytes = line.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    for run in bytes.chunk_by(|&a, &b| is_word(a) == is_word(b)) {
        let word = run.first().is_some_and(|&byte| is_word(byte));
        if word && run.iter().any(u8::is_ascii_digit) {
            hasher.write_u8(0);
        } else if word {
            hasher.write(run);
        } else if !run.iter().all(u8::is_ascii_whitespace) {
            // `-`, `:` and `.` between numbers belong to dates and addresses, whose length may vary.
            hasher.write(run);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_identifiers_do_not_make_a_pattern() {
        let lines = ["took 12 ms id=ab12", "took 7 ms id=77ff0", "took no time", "took 1 ms id=9"];
        let mut templates = Templates::default();
        for (line, number) in lines.into_iter().zip(1..) {
            templates.add(line, number);
        }
        let groups: Vec<(usize, usize)> = templates.frequent().iter().map(|group| (group.line, group.count)).collect();
        assert_eq!(groups, [(1, 3), (3, 1)]);
    }
}
