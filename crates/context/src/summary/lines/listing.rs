//! Listings: one file, path or name a line, with or without sizes.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::brief::Piece;

use super::excerpt::{Tally, counted, cut};
use super::paths::{by_directory, extension};
use super::rank;

/// The number of extensions that are counted in the summary, the most frequent first.
const EXTENSIONS: usize = 12;
/// The number of entries kept for the outline.
const KEPT: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Unknown,
}

/// One line of a listing.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    name: &'a str,
    kind: Kind,
    /// The size in bytes, and as written.
    size: Option<(f64, &'a str)>,
}

/// Whether `line` is marked as an entry of a listing: `[FILE] …`, `-rw-r--r-- …`.
pub(super) fn is_marked(line: &str) -> bool {
    let line = line.trim_end();
    marked(line).is_some() || long(line).is_some()
}

/// Whether `line` can only be an entry of a listing: marked, drawn, or with a mode or a size.
pub(super) fn is_certain(line: &str) -> bool {
    let line = line.trim_end();
    is_marked(line) || sized(line).is_some() || is_branch(line)
}

/// Whether `line` looks like an entry of a listing.
pub(super) fn is_entry(line: &str) -> bool {
    is_certain(line) || is_path(line.trim())
}

/// Whether a line is part of a drawn tree.
fn is_branch(line: &str) -> bool {
    ["├", "└", "│", "|--", "`--", "|   "].iter().any(|mark| line.starts_with(mark))
}

/// Whether a line is a path or a bare name: one word, or several with an extension or a slash in them.
fn is_path(line: &str) -> bool {
    let line = line.strip_prefix("- ").unwrap_or(line);
    let odd = |c: char| {
        matches!(c, '{' | '}' | ';' | '=' | '<' | '>' | '"' | '(' | ',' | '`' | '。' | '、' | '！' | '？')
            || c.is_control()
    };
    if line.is_empty()
        || line.starts_with("# ")
        || line == "#"
        || line.len() > 400
        || line.contains(odd)
        || line.ends_with([':', '.'])
        || line.contains(": ")
    {
        return false;
    }
    let blanks = line.split(' ').count() - 1;
    let begins = line.starts_with('/') || line.starts_with("./");
    blanks == 0 || (blanks < 6 && (begins || (!extension(line).is_empty() && !line.contains(". "))))
}

/// Parses `[FILE] name  1.2 KB` and `[DIR] name`.
fn marked(line: &str) -> Option<Entry<'_>> {
    let (kind, rest) = if let Some(rest) = line.strip_prefix("[FILE] ") {
        (Kind::File, rest)
    } else {
        (Kind::Directory, line.strip_prefix("[DIR] ").or_else(|| line.strip_prefix("[DIRECTORY] "))?)
    };
    let rest = rest.trim();
    let (name, size) = match rest.rsplit_once("  ") {
        Some((name, size)) => (name.trim_end(), bytes(size.trim()).map(|bytes| (bytes, size.trim()))),
        None => (rest, None),
    };
    Some(Entry { name, kind, size })
}

/// Parses a line of `ls -l`.
fn long(line: &str) -> Option<Entry<'_>> {
    let mode = line.as_bytes().first_chunk::<10>()?;
    if !matches!(mode[0], b'-' | b'd' | b'l' | b'c' | b'b' | b'p' | b's')
        || !mode[1..].iter().all(|byte| matches!(byte, b'r' | b'w' | b'x' | b's' | b'S' | b't' | b'T' | b'-'))
    {
        return None;
    }
    let mut rest = line;
    let mut fields = [""; 8];
    for field in &mut fields {
        rest = rest.trim_start();
        let end = rest.find(' ')?;
        *field = rest.get(..end)?;
        rest = rest.get(end..)?;
    }
    let name = rest.trim_start().split(" -> ").next().unwrap_or_default();
    let kind = match mode[0] {
        b'd' => Kind::Directory,
        _ => Kind::File,
    };
    let size = (kind == Kind::File).then(|| bytes(fields[4]).map(|bytes| (bytes, fields[4]))).flatten();
    Some(Entry { name, kind, size })
}

/// Parses a line of `du`: a size, a tab, a path.
fn sized(line: &str) -> Option<Entry<'_>> {
    let (size, name) = line.split_once('\t')?;
    let bytes = bytes(size.trim())?;
    (!name.contains('\t')).then_some(Entry { name, kind: Kind::Unknown, size: Some((bytes, size.trim())) })
}

/// Parses `973`, `973 B`, `1.5K`, `68.81 KB`, `2 MiB` into bytes (units of 1 024).
fn bytes(text: &str) -> Option<f64> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text.get(..digits)?.parse().ok()?;
    let unit = text.get(digits..)?.trim();
    let factor = match unit.trim_end_matches("iB").trim_end_matches('B') {
        "" => 1.0,
        "K" | "k" => 1024.0,
        "M" => 1024.0 * 1024.0,
        "G" => 1024.0 * 1024.0 * 1024.0,
        "T" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ if unit == "bytes" => 1.0,
        _ => return None,
    };
    Some(number * factor)
}

fn in_words(bytes: f64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{value:.0} B") } else { format!("{value:.2} {}", units[unit]) }
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let line = line.trim_end();
    if let Some(entry) = marked(line).or_else(|| long(line)).or_else(|| sized(line)) {
        return Some(entry);
    }
    if is_branch(line) {
        let name = line.trim_start_matches(['├', '└', '│', '─', '|', '`', '-', ' ', '\u{a0}']);
        return Some(Entry { name, kind: Kind::Unknown, size: None }).filter(|entry| !entry.name.is_empty());
    }
    let line = line.trim_start();
    let name = line.strip_prefix("- ").unwrap_or(line);
    is_path(name).then(|| {
        let kind = if name.ends_with('/') { Kind::Directory } else { Kind::Unknown };
        Entry { name, kind, size: None }
    })
}

/// Describes a listing.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let mut entries: Vec<Entry> = Vec::new();
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    let mut kinds = [0usize; 3];
    let mut total = 0;
    let mut others: Vec<&str> = Vec::new();
    let mut sizes = Sizes::default();
    let mut extensions: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Some(entry) = entry(line) else {
            others.push(line);
            continue;
        };
        total += 1;
        kinds[entry.kind as usize] += 1;
        sizes.add(&entry);
        if entry.kind != Kind::Directory {
            *extensions.entry(extension(entry.name)).or_default() += 1;
        }
        if entries.len() < KEPT {
            let count = counts.entry(entry.name).or_default();
            *count += 1;
            if *count == 1 {
                entries.push(entry);
            }
        } else if let Some(count) = counts.get_mut(entry.name) {
            *count += 1;
        }
    }
    let mut pieces = vec![shape(&tally, total, kinds, entries.len())];
    pieces.extend(tally.ends());
    pieces.extend(sizes.piece());
    for line in others.iter().filter(|line| line.contains(':') || line.starts_with("total ")).take(20) {
        pieces.push(Piece::line(rank::LEAF_PLACE, rank::LEAF, cut(line, 120)));
    }
    pieces.extend(by_extension(&extensions));
    pieces.extend(repeated(&entries, &counts));
    pieces.extend(outline(&entries, &counts));
    pieces
}

fn shape(tally: &Tally, total: usize, kinds: [usize; 3], distinct: usize) -> Piece {
    let mut said = vec![counted(tally.lines, "line")];
    if total == 1 {
        said.push("1 entry".to_owned());
    } else {
        said.push(format!("{total} entries"));
    }
    if kinds[Kind::File as usize] + kinds[Kind::Directory as usize] > 0 {
        said.push(counted(kinds[Kind::File as usize], "file"));
        let directories = kinds[Kind::Directory as usize];
        said.push(if directories == 1 { "1 directory".to_owned() } else { format!("{directories} directories") });
    }
    if distinct < total && distinct < KEPT {
        said.push(format!("{distinct} different"));
    }
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, format!("listing: {}", said.join(", ")))
}

#[derive(Debug, Default)]
struct Sizes<'a> {
    count: usize,
    total: f64,
    least: Option<(f64, &'a str, &'a str)>,
    most: Option<(f64, &'a str, &'a str)>,
}

impl<'a> Sizes<'a> {
    fn add(&mut self, entry: &Entry<'a>) {
        let Some((bytes, written)) = entry.size else { return };
        self.count += 1;
        self.total += bytes;
        if self.least.is_none_or(|(least, ..)| bytes < least) {
            self.least = Some((bytes, written, entry.name));
        }
        if self.most.is_none_or(|(most, ..)| bytes > most) {
            self.most = Some((bytes, written, entry.name));
        }
    }

    fn piece(&self) -> Option<Piece> {
        let ((_, least, smallest), (_, most, largest)) = self.least.zip(self.most)?;
        let total = in_words(self.total);
        let text = format!("sizes: max {most} ({largest}), min {least} ({smallest}), total {total}");
        Some(Piece::line(rank::STAT_PLACE, rank::STAT, text))
    }
}

fn by_extension(extensions: &BTreeMap<&str, usize>) -> Option<Piece> {
    let mut counts: Vec<(&str, usize)> = extensions.iter().map(|(&extension, &count)| (extension, count)).collect();
    counts.sort_by_key(|&(extension, count)| (std::cmp::Reverse(count), extension));
    let all: usize = counts.iter().map(|&(_, count)| count).sum();
    let without = extensions.get("").copied().unwrap_or_default();
    if without * 10 > all * 7 {
        return None;
    }
    counts.truncate(EXTENSIONS);
    let entries = counts
        .into_iter()
        .map(|(extension, count)| format!("{} {count}", if extension.is_empty() { "none" } else { extension }))
        .collect();
    Some(Piece::list(rank::STAT_PLACE, "by extension: ", entries, ", ", (rank::STAT, 3), rank::SECOND_OUTLINE))
}

/// Entries that occur more than once, the most frequent first.
fn repeated(entries: &[Entry], counts: &FxHashMap<&str, usize>) -> Option<Piece> {
    let mut repeated: Vec<(&str, usize)> = entries
        .iter()
        .filter_map(|entry| counts.get(entry.name).map(|&count| (entry.name, count)))
        .filter(|&(_, count)| count > 1)
        .collect();
    repeated.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let entries: Vec<String> = repeated.iter().map(|(name, count)| format!("{name} ×{count}")).collect();
    (!entries.is_empty())
        .then(|| Piece::list(rank::STAT_PLACE, "repeated: ", entries, ", ", (rank::STAT, 2), rank::MORE_STAT))
}

fn outline(entries: &[Entry], counts: &FxHashMap<&str, usize>) -> Option<Piece> {
    let once: Vec<&Entry> =
        entries.iter().filter(|entry| counts.get(entry.name).is_none_or(|&count| count == 1)).collect();
    if once.is_empty() {
        return None;
    }
    let names = by_directory(once.iter().map(|entry| (entry.name, String::new())));
    let head = names.head("entries");
    let piece = Piece::grouped(rank::OUTLINE_PLACE, &head, names.list, (rank::OUTLINE, 5), rank::WHOLE_OUTLINE);
    if once.iter().all(|entry| entry.size.is_none()) {
        return Some(piece);
    }
    let sized = by_directory(
        once.iter().map(|entry| (entry.name, entry.size.map(|(_, written)| written.to_owned()).unwrap_or_default())),
    );
    Some(piece.or(rank::RICH_OUTLINE, sized.whole("entries")))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn a_listing_with_sizes() {
        let text = "[DIR] docs\n[FILE] b.rs    68.81 KB\n[FILE] c.rs    973 B\n[FILE] d.toml    1 B\n\nTotal: 3 files, 1 directories\nCombined size: 69.76 KB";
        insta::assert_snapshot!(told(text, 300), @r"
        [Listing]
        listing: 7 lines, 4 entries, 3 files, 1 directory
        first line: [DIR] docs
        sizes: max 68.81 KB (b.rs), min 1 B (d.toml), total 69.76 KB
        by extension: .rs 2, .toml 1
        Total: 3 files, 1 directories
        Combined size: 69.76 KB
        entries:
        docs, b.rs 68.81 KB, c.rs 973 B, d.toml 1 B
        last line: Combined size: 69.76 KB
        ");
    }

    #[test]
    fn a_path_that_recurs() {
        insta::assert_snapshot!(told(&"/srv/data\n".repeat(71), 300), @r"
        [Listing]
        listing: 71 lines, 71 entries, 1 different
        first line: /srv/data
        repeated: /srv/data ×71
        last line: /srv/data
        ");
    }

    #[test]
    fn paths_by_directory() {
        let text: String = (0..50).map(|n| format!("src/room{}/file{n}.rs\n", n / 20)).collect();
        insta::assert_snapshot!(told(&text, 110), @r"
        [Listing]
        listing: 50 lines, 50 entries
        first line: src/room0/file0.rs
        by extension: .rs 50
        entries:
        src/room0/ (20): file0.rs file1.rs file2.rs file3.rs file4.rs file5.rs file6.rs file7.rs file9.rs file10.rs file11.rs file14.rs file16.rs file19.rs
        src/room2/ (10): file49.rs … +35
        last line: src/room2/file49.rs
        ");
    }

    #[test]
    fn entries_of_several_tools() {
        let cases = [
            ("[FILE] a b.rs              68.81 KB", Some(("a b.rs", Some("68.81 KB")))),
            ("[DIR] src                 ", Some(("src", None))),
            ("-rw-r--r-- 1 root root 1234 Nov 22 04:56 my file.txt", Some(("my file.txt", Some("1234")))),
            ("12K\t./target", Some(("./target", Some("12K")))),
            ("│   ├── main.rs", Some(("main.rs", None))),
            ("/srv/data", Some(("/srv/data", None))),
            ("let x = 1;", None),
            ("A sentence of prose, with a comma.", None),
        ];
        for (line, expected) in cases {
            let found = entry(line).map(|entry| (entry.name, entry.size.map(|(_, written)| written)));
            assert_eq!(found, expected, "{line}");
        }
    }
}
