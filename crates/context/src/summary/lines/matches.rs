//! Results of a search: `path:line:text`, one match a line; also compiler messages in that form.

use rustc_hash::FxHashMap;

use crate::brief::Piece;

use super::excerpt::{Tally, samples};
use super::log::Errors;
use super::paths::by_directory;
use super::rank;
use contextweaver_core::text::counted;

/// The path and the text of a match.
pub(super) fn parse(line: &str) -> Option<(&str, &str)> {
    let (path, rest) = line.split_once(':')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let text = rest.get(digits..)?;
    let plausible = digits > 0 && digits < 8 && !path.is_empty() && !path.contains(' ') && path.contains(['.', '/']);
    (plausible && text.starts_with([':', '-'])).then(|| (path, text.get(1..).unwrap_or_default()))
}

/// Describes a list of matches.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let mut files: Vec<(&str, usize)> = Vec::new();
    let mut at: FxHashMap<&str, usize> = FxHashMap::default();
    let mut total = 0;
    let mut errors = Errors::default();
    for (number, line) in (0..).zip(text.lines()) {
        let Some((path, message)) = parse(line) else { continue };
        total += 1;
        let index = *at.entry(path).or_insert_with(|| {
            files.push((path, 0));
            files.len() - 1
        });
        files[index].1 += 1;
        let message = message.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        if message.starts_with(" error") || message.starts_with(" fatal") {
            errors.add(number, line);
        }
    }
    let in_files = counted(files.len(), "file");
    let matches = if total == 1 { "1 match".to_owned() } else { format!("{total} matches") };
    let shape = format!("search result: {matches} in {in_files}, {}", counted(tally.lines, "line"));
    let mut pieces = vec![Piece::line(rank::SHAPE_PLACE, rank::SHAPE, shape)];
    pieces.extend(tally.ends());
    pieces.extend(errors.pieces("error", tally.last));
    if let Some((path, count)) = files.iter().rev().max_by_key(|file| file.1) {
        let text = format!("most matches: {path} {count}");
        pieces.push(Piece::line(rank::STAT_PLACE, rank::STAT, text));
    }
    let listed = by_directory(files.iter().map(|&(path, count)| (path, times(count))));
    if !files.is_empty() {
        let head = listed.head("matches by file");
        let least = (rank::OUTLINE, 4);
        pieces.push(Piece::grouped(rank::OUTLINE_PLACE, &head, listed.list, least, rank::WHOLE_OUTLINE));
    }
    pieces.extend(samples(text, &tally));
    pieces
}

/// A count as `×3`; empty for one.
fn times(count: usize) -> String {
    if count > 1 { format!("×{count}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::super::told;

    #[test]
    fn matches_by_file() {
        let text: String =
            (1..40).map(|n| format!("src/a/{}.rs:{n}:    fn f{n}() {{\n", if n < 30 { "x" } else { "y" })).collect();
        insta::assert_snapshot!(told(&text, 160), @r"
        [Matches]
        search result: 39 matches in 2 files, 39 lines
        first line: src/a/x.rs:1:    fn f1() {
        most matches: src/a/x.rs 29
        matches by file:
        src/a/: x.rs ×29, y.rs ×10
        some lines:
        4: src/a/x.rs:5:    fn f5() {
        9: src/a/x.rs:10:    fn f10() {
        14: src/a/x.rs:15:    fn f15() {
        19: src/a/x.rs:20:    fn f20() {
        28: src/a/x.rs:29:    fn f29() {
        … +34
        last line: src/a/y.rs:39:    fn f39() {
        ");
        // What is searched may have delimiters in each line.
        for line in ["let a = 1; // one; kept", "a,b,c", "\tx := 1", "a | b | c"] {
            let text: String = (1..40).map(|n| format!("src/a.rs:{n}:{line}\n")).collect();
            assert!(told(&text, 160).starts_with("[Matches]"), "{line}");
        }
    }
}
