//! Lines that differ only in numbers and identifiers, counted together.

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};

/// The number of different patterns that are kept; later ones are only counted.
const KEPT: usize = 4096;

/// Lines of one pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group<'a> {
    /// The first line of the pattern.
    pub(super) first: &'a str,
    /// The number of the first line, from 0.
    pub(super) line: usize,
    /// The number of lines of the pattern.
    pub(super) count: usize,
}

/// The patterns of a text.
#[derive(Debug, Default)]
pub(super) struct Templates<'a> {
    groups: Vec<Group<'a>>,
    at: FxHashMap<u64, usize>,
    /// The number of lines whose pattern was not kept.
    pub(super) others: usize,
}

impl<'a> Templates<'a> {
    /// Counts `line`, which has this number.
    pub(super) fn add(&mut self, line: &'a str, number: usize) {
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
    pub(super) fn groups(&self) -> &[Group<'a>] {
        &self.groups
    }

    /// The number of lines like `line`; 0 where its pattern was not kept.
    pub(super) fn count_of(&self, line: &str) -> usize {
        self.at.get(&pattern(line)).and_then(|&index| self.groups.get(index)).map_or(0, |group| group.count)
    }

    /// The most frequent patterns first, equals in the order of their first lines.
    pub(super) fn frequent(&self) -> Vec<Group<'a>> {
        let mut groups = self.groups.clone();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.count), group.line));
        groups
    }
}

/// A hash of the line with every word that contains a digit replaced by one mark, and blanks collapsed.
pub(super) fn pattern(line: &str) -> u64 {
    let mut hasher = FxHasher::default();
    let mut rest = line.as_bytes();
    while let Some(&first) = rest.first() {
        let class = class(first);
        let word = class == WORD;
        let (run, behind) =
            rest.split_at(rest.iter().position(|&byte| self::class(byte) != class).unwrap_or(rest.len()));
        rest = behind;
        if word && run.iter().any(u8::is_ascii_digit) {
            hasher.write_u8(0);
        } else if class != BETWEEN || !run.iter().all(u8::is_ascii_whitespace) {
            // `-`, `:` and `.` between numbers belong to dates and addresses, whose length may vary. Blanks before a number
            // only bring it to its place.
            hasher.write(run.trim_ascii_end());
        }
    }
    hasher.finish()
}

/// The classes of bytes: between words, of words, and of letters beyond ASCII. Those are no part of words: many scripts
/// put no blank between a number and what it counts.
const BETWEEN: u8 = 0;
const WORD: u8 = 1;
const LETTER: u8 = 2;

/// The class of a byte.
fn class(byte: u8) -> u8 {
    /// By byte: what takes several comparisons is tested twice for each byte of large texts.
    static CLASSES: [u8; 256] = {
        let mut classes = [BETWEEN; 256];
        let mut byte = 0;
        while byte < classes.len() {
            if byte >= 0x80 {
                classes[byte] = LETTER;
            } else if (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize {
                classes[byte] = WORD;
            }
            byte += 1;
        }
        classes
    };
    CLASSES[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_identifiers_do_not_make_a_pattern() {
        let lines =
            ["[  7.5] took 12 ms id=ab12", "[77.25] took  7 ms id=77ff0", "took no time", "[ 99.1] took 1 ms id=9"];
        let mut templates = Templates::default();
        for (line, number) in lines.into_iter().zip(1..) {
            templates.add(line, number);
        }
        let groups: Vec<(usize, usize)> = templates.frequent().iter().map(|group| (group.line, group.count)).collect();
        assert_eq!(groups, [(1, 3), (3, 1)]);
    }
}
