//! `git blame`: the lines of a file, each with the commit that changed it last.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::brief::Piece;

use super::excerpt::{Tally, samples};
use super::rank;
use contextweaver_core::text::counted;

/// The number of digits of a hash.
const HASH_LENGTH: usize = 8;

/// The hash, a path where lines come from another, the author, the day, and the number of the line.
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^\^?([0-9a-f]{7,40}) [^(]*\(([^()]*?) +(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d:\d\d)?(?: ?[-+Z][\d:]*)? +\d+\)",
    )
    .expect("a fixed pattern")
});

/// Who changed a line last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blamed<'a> {
    hash: &'a str,
    author: &'a str,
    day: &'a str,
}

/// Parses a line of `git blame`.
pub(super) fn parse(line: &str) -> Option<Blamed<'_>> {
    let found = LINE.captures(line)?;
    let part = |number: usize| found.get(number).map(|part| part.as_str());
    Some(Blamed { hash: part(1)?, author: part(2)?, day: part(3)? })
}

/// Describes the output of `git blame`: how many lines are of which commit and author, and from when to when.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let (mut commits, mut authors) = (BTreeMap::new(), BTreeMap::new());
    let mut days: Option<[&str; 2]> = None;
    for Blamed { hash, author, day } in text.lines().filter_map(parse) {
        *commits.entry(hash.get(..HASH_LENGTH).unwrap_or(hash)).or_default() += 1;
        *authors.entry(author).or_default() += 1;
        let [first, last] = days.unwrap_or([day; 2]);
        days = Some([first.min(day), last.max(day)]);
    }
    let size = format!("git blame: {} of {}", counted(tally.lines, "line"), counted(commits.len(), "commit"));
    let mut pieces = vec![Piece::line(rank::SHAPE_PLACE, rank::SHAPE, size)];
    pieces.extend(tally.ends());
    pieces.extend(days.map(|[first, last]| {
        Piece::line(rank::STAT_PLACE, rank::STAT, format!("lines last changed from {first} to {last}"))
    }));
    pieces.push(by_lines("author", &authors, rank::STAT));
    pieces.push(by_lines("commit", &commits, rank::LEAF));
    pieces.extend(samples(text, &tally));
    pieces
}

/// The names with the number of their lines, the most first.
fn by_lines(noun: &str, counts: &BTreeMap<&str, usize>, rank: u32) -> Piece {
    let mut counts: Vec<(&str, usize)> = counts.iter().map(|(name, count)| (*name, *count)).collect();
    counts.sort_by_key(|&(name, count)| (Reverse(count), name));
    let head = format!("lines by {noun}: ");
    let entries = counts.into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    Piece::list(rank::LEAF_PLACE, &head, entries, ", ", (rank, 3), rank::SECOND_OUTLINE)
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn the_lines_of_commits_and_authors_are_counted() {
        let text: String = (1..=40)
            .map(|n| match n {
                7 => format!("^9f8e7d6 (Bob 2024-02-11 10:00:00 +0000 {n:2}) let x{n} = {n};\n"),
                _ => format!("deadbeef (Ann Lee 2024-03-{:02} 10:00:00 -0130 {n:2}) let x{n} = {n};\n", 1 + n / 30),
            })
            .collect();
        insta::assert_snapshot!(told(&text, 150), @r"
        [Blame]
        git blame: 40 lines of 2 commits
        first line: deadbeef (Ann Lee 2024-03-01 10:00:00 -0130  1) let x1 = 1;
        lines last changed from 2024-02-11 to 2024-03-02
        lines by author: Ann Lee 39, Bob 1
        lines by commit: deadbeef 39, 9f8e7d6 1
        last line: deadbeef (Ann Lee 2024-03-02 10:00:00 -0130 40) let x40 = 40;
        ");
    }

    #[test]
    fn lines_of_blame_in_their_forms() {
        for line in [
            "dc8dc2c07 (Ada L 2026-11-23 18:12:37 +0000  1) # A title",
            "^dc8dc2c (Ada 2026-11-23 18:12:37 -0500 11)",
            "dc8dc2c07 src/a b.rs (Ada 2026-11-23 1) x",
            "dc8dc2c07 (<ada@x.org> 2026-11-23T18:12:37+01:00 1) f(2026-11-24 2)",
        ] {
            assert!(parse(line).is_some_and(|line| line.day == "2026-11-23"), "{line}");
        }
        for line in ["dc8dc2c07 Release (2026-11-23)", "dc8dc2c (tag: v1) Release 2", "2026-11-23 (Ada 1) x"] {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
