//! Listings: one file, path or name a line, with or without sizes.

use crate::brief::Piece;

use super::excerpt::{Tally, samples};
use super::paths::extension;
use super::rank;
use contextweaver_core::text::counted;

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
    for at in 0..fields.len() {
        // A date as in ISO 8601 is one field and not two.
        if at == 7 && fields[5].len() == 10 && fields[5].as_bytes().get(4) == Some(&b'-') {
            break;
        }
        rest = rest.trim_start();
        let end = rest.find(' ')?;
        fields[at] = rest.get(..end)?;
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

/// Describes a listing: how many entries it has, and the largest of them.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let tally = Tally::of(text);
    let mut kinds = [0usize; 3];
    let mut largest: Option<(f64, &str, &str)> = None;
    for Entry { name, kind, size } in text.lines().filter_map(entry) {
        kinds[kind as usize] += 1;
        if let Some((bytes, written)) = size
            && largest.as_ref().is_none_or(|(most, ..)| bytes > *most)
        {
            largest = Some((bytes, name, written));
        }
    }
    let mut pieces = vec![shape(&tally, kinds)];
    pieces.extend(tally.ends());
    pieces.extend(
        largest
            .map(|(_, name, written)| Piece::line(rank::STAT_PLACE, rank::STAT, format!("largest: {name} {written}"))),
    );
    pieces.extend(samples(text, &tally));
    pieces
}

fn shape(tally: &Tally, kinds: [usize; 3]) -> Piece {
    let several = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let mut said = vec![counted(tally.lines, "line"), several(kinds.iter().sum(), "entry", "entries")];
    let [files, directories, _] = kinds;
    if files + directories > 0 {
        said.push(counted(files, "file"));
        said.push(several(directories, "directory", "directories"));
    }
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, format!("listing: {}", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    #[test]
    fn the_largest_entry_is_named() {
        let text = "[DIR] docs\n[FILE] b.rs    973 B\n[FILE] c.rs    68.81 KB\n[FILE] d.toml    68.81 KB\n\nTotal: 3 files, 1 directories";
        insta::assert_snapshot!(told(text, 50), @r"
        [Listing]
        listing: 6 lines, 4 entries, 3 files, 1 directory
        first line: [DIR] docs
        largest: c.rs 68.81 KB
        last line: Total: 3 files, 1 directories
        ");
    }

    #[test]
    fn paths_are_counted() {
        let text: String = (0..50).map(|n| format!("src/room{}/file{n}.rs\n", n / 20)).collect();
        insta::assert_snapshot!(told(&text, 40), @r"
        [Listing]
        listing: 50 lines, 50 entries
        first line: src/room0/file0.rs
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
