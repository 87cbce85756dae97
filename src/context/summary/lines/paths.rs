//! Paths by directory, so that a long list of files costs a name each.

use rustc_hash::FxHashMap;

/// Entries for a list with an empty separator: the paths of one directory stand on a line after the directory's name,
/// each with its note. Directories and names keep the order of their first appearance.
pub fn by_directory<'a>(files: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut directories: Vec<(&str, Vec<String>)> = Vec::new();
    let mut at: FxHashMap<&str, usize> = FxHashMap::default();
    for (path, note) in files {
        let inner = path.strip_suffix('/').unwrap_or(path);
        let split = inner.rfind('/').map_or(0, |at| at + 1);
        let (directory, name) = (path.get(..split).unwrap_or_default(), path.get(split..).unwrap_or_default());
        let index = *at.entry(directory).or_insert_with(|| {
            directories.push((directory, Vec::new()));
            directories.len() - 1
        });
        directories[index].1.push(if note.is_empty() { name.to_owned() } else { format!("{name} {note}") });
    }
    let lines = directories.into_iter().map(|(directory, names)| {
        let lead = if directory.is_empty() { "\n".to_owned() } else { format!("\n{directory}: ") };
        names.into_iter().enumerate().map(
            move |(number, name)| {
                if number == 0 { format!("{lead}{name}") } else { format!(", {name}") }
            },
        )
    });
    lines.flatten().collect()
}

/// The extension of a path with its dot, or nothing.
pub fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let at = name.rfind('.').filter(|&at| at > 0 && name.len() - at <= 12 && at + 1 < name.len());
    let found = at.and_then(|at| name.get(at..)).unwrap_or_default();
    let plain = found.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if plain { found } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_named_once() {
        let files = [("src/a.rs", "+3"), ("src/b/c.rs", ""), ("src/d.rs", "-1"), ("top", "")];
        let entries = by_directory(files.into_iter().map(|(path, note)| (path, note.to_owned())));
        assert_eq!(entries.concat(), "\nsrc/: a.rs +3, d.rs -1\nsrc/b/: c.rs\ntop");
    }

    #[test]
    fn extensions() {
        assert_eq!(["a/b.rs", ".hidden", "x.", "a.tar.gz", "a.b/c"].map(extension), [".rs", "", "", ".gz", ""]);
    }
}
