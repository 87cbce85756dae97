//! Lists paths by directory, so that each file of a long list costs only its name.

use rustc_hash::FxHashMap;

use crate::brief::Groups;

use super::excerpt::shorter_first;

/// The number of files from which a directory is shown with its number of files.
const NUMBERED: usize = 4;
/// The number of bytes up to which further lines of a directory begin with its whole name.
const SHORT_LEAD: usize = 24;

/// The number of bytes that must be saved before a shared directory is separated from the paths.
const LEAST_SAVED: usize = 12;

/// Paths under their directories, each with its note, for [`Piece::grouped`](crate::brief::Piece::grouped).
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// The prefix of all paths, which no line repeats; empty or with a slash at its end.
    pub(super) base: String,
    /// The paths without that prefix, in groups by directory.
    pub(super) list: Groups,
}

impl Paths {
    /// The heading: `word`, with the directory that all paths share.
    pub(super) fn head(&self, word: &str) -> String {
        if self.base.is_empty() { format!("{word}:") } else { format!("{word} under {}:", self.base) }
    }

    /// All paths, in one wording.
    pub(super) fn whole(&self, word: &str) -> String {
        format!("{}{}", self.head(word), self.list.written(self.list.order.len()))
    }
}

/// The paths with their notes by directory. Directories and names keep the order of their first appearance. The first
/// and the last path are shown first, then directories by their numbers of files, since a name costs least where many
/// share a directory; among names of about equal length in a directory, those that are spread over the whole.
pub(super) fn by_directory<'a>(files: impl Iterator<Item = (&'a str, String)>) -> Paths {
    let mut directories: Vec<(&str, Vec<(usize, String)>)> = Vec::new();
    let mut at: FxHashMap<&str, usize> = FxHashMap::default();
    let mut count = 0;
    let mut blanks = false;
    for (path, note) in files {
        let inner = path.strip_suffix('/').unwrap_or(path);
        let split = inner.rfind('/').map_or(0, |at| at + 1);
        let (directory, name) = (path.get(..split).unwrap_or_default(), path.get(split..).unwrap_or_default());
        let index = *at.entry(directory).or_insert_with(|| {
            directories.push((directory, Vec::new()));
            directories.len() - 1
        });
        blanks |= !note.is_empty() || name.contains(' ');
        let entry = if note.is_empty() { name.to_owned() } else { format!("{name} {note}") };
        directories[index].1.push((count, entry));
        count += 1;
    }
    let base = base(directories.iter().map(|(directory, _)| *directory));
    let base = if base.len() * directories.len().saturating_sub(1) > LEAST_SAVED { base } else { "" };
    let mut list = Groups { separator: if blanks { ", " } else { " " }, ..Groups::default() };
    let mut ends = [0; 2];
    let mut ranges: Vec<(usize, Vec<usize>)> = Vec::new();
    for (group, (directory, names)) in directories.into_iter().enumerate() {
        list.leads.push(leads(directory.get(base.len()..).unwrap_or(directory), names.len()));
        ranges.push((list.entries.len(), names.iter().map(|(_, name)| name.len()).collect()));
        for (number, name) in names {
            if number == 0 {
                ends[0] = list.entries.len();
            }
            if number + 1 == count {
                ends[1] = list.entries.len();
            }
            list.entries.push((group, name));
        }
    }
    ranges.sort_by_key(|(_, lengths)| std::cmp::Reverse(lengths.len()));
    let inner =
        ranges.into_iter().flat_map(|(start, lengths)| shorter_first(&lengths).into_iter().map(move |at| start + at));
    let inner: Vec<usize> = inner.filter(|at| !ends.contains(at)).collect();
    list.order = if count > 1 { ends.to_vec() } else { (0..count).collect() };
    list.order.extend(inner);
    Paths { base: base.to_owned(), list }
}

/// A few paths with their notes, in order; the directory of neighbours is written once.
pub(super) fn in_one_line<'a>(files: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut runs: Vec<(&str, Vec<String>)> = Vec::new();
    for (path, note) in files {
        let (directory, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        let entry = format!("{name} {note}");
        match runs.last_mut().filter(|(last, _)| *last == directory) {
            Some((_, names)) => names.push(entry),
            None => runs.push((directory, vec![entry])),
        }
    }
    let told = runs.into_iter().map(|(directory, names)| {
        let between = if names.len() > 1 && !directory.is_empty() { ": " } else { "" };
        format!("{directory}{between}{}", names.join(", "))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The starts of the lines of a directory: its name and number of files on the first, the name alone on further lines.
fn leads(directory: &str, files: usize) -> [String; 2] {
    if directory.is_empty() {
        return [String::new(), String::new()];
    }
    let inner = directory.trim_end_matches('/');
    let last = inner.rfind('/').filter(|_| directory.len() > SHORT_LEAD).and_then(|at| directory.get(at + 1..));
    let again = last.map_or_else(|| format!("{directory}: "), |last| format!("…/{last}: "));
    let first = if files < NUMBERED { format!("{directory}: ") } else { format!("{directory} ({files}): ") };
    [first, again]
}

/// The parent of the directory that all of `directories` are in, with its slash: the last shared name stays with the
/// paths.
fn base<'a>(mut directories: impl Iterator<Item = &'a str>) -> &'a str {
    let mut shared = directories.next().unwrap_or_default();
    for directory in directories {
        let same = shared.bytes().zip(directory.bytes()).take_while(|(a, b)| a == b).count();
        let slash = shared.as_bytes().get(..same).and_then(|front| front.iter().rposition(|&byte| byte == b'/'));
        shared = shared.get(..slash.map_or(0, |at| at + 1)).unwrap_or_default();
    }
    let parent = shared.strip_suffix('/').and_then(|inner| inner.rfind('/')).map_or(0, |at| at + 1);
    shared.get(..parent).unwrap_or_default()
}

/// The extension of a path with its dot, or nothing. An extension has a letter, so the end of a version number is not one.
pub(super) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let at = name.rfind('.').filter(|&at| at > 0 && name.len() - at <= 12 && at + 1 < name.len());
    let found = at.and_then(|at| name.get(at..)).unwrap_or_default();
    let plain = found.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let lettered = found.bytes().any(|byte| byte.is_ascii_alphabetic());
    if plain && lettered { found } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[&str]) -> String {
        by_directory(files.iter().map(|path| (*path, String::new()))).whole("files")
    }

    #[test]
    fn directories_are_named_once() {
        assert_eq!(told(&["src/a.rs", "src/b/c.rs", "src/d.rs", "top"]), "files:\nsrc/: a.rs d.rs\nsrc/b/: c.rs\ntop");
        let noted = by_directory([("a/b c", "+1".to_owned()), ("a/d", String::new())].into_iter());
        assert_eq!(noted.whole("files"), "files:\na/: b c +1, d");
    }

    #[test]
    fn what_all_paths_share_is_said_once() {
        let shared = "files under /home/the/user/:\nx/: a\nx/y/: b";
        assert_eq!(told(&["/home/the/user/x/a", "/home/the/user/x/y/b"]), shared);
        assert_eq!(told(&["src/x/a", "src/x/y/b"]), "files:\nsrc/x/: a\nsrc/x/y/: b");
    }

    #[test]
    fn ends_come_first_then_the_largest_directories() {
        let files = ["a/0", "a/1", "b/0", "b/1", "b/2", "b/3", "b/4", "c/0", "c/1"];
        let paths = by_directory(files.iter().map(|path| (*path, String::new())));
        assert_eq!(paths.list.written(2), "\na/: 0\nc/: 1");
        assert_eq!(paths.list.written(5), "\na/: 0\nb/ (5): 0 2 4\nc/: 1");
    }

    #[test]
    fn long_directories_are_named_again() {
        let names: Vec<String> = (0..30).map(|n| format!("some/very/long/directory/name{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = told(&names);
        assert_eq!(shown.lines().count(), 3, "{shown}");
        assert!(shown.contains("\n…/directory/: name"), "{shown}");
        assert!(shown.lines().all(|line| line.len() < 180), "{shown}");
    }

    #[test]
    fn neighbours_in_a_directory_name_it_once() {
        let files = [("a/b", "+1"), ("a/c", "-1"), ("d/e", "+2"), ("f", "+3")];
        assert_eq!(
            in_one_line(files.into_iter().map(|(path, note)| (path, note.to_owned()))),
            "a/: b +1, c -1; d/e +2; f +3"
        );
    }

    #[test]
    fn extensions() {
        assert_eq!(
            ["a/b.rs", ".hidden", "x.", "a.tar.gz", "a.b/c", "v1.20"].map(extension),
            [".rs", "", "", ".gz", "", ""]
        );
    }
}
