//! Where in the files of a catalog a definition stands.
//!
//! Loading keeps the bytes of a definition as they are in the file, so it is found by looking for them: nothing is parsed
//! twice and every form is covered. A definition of a YAML file or of the native form has other bytes there; it is found
//! by the line that has its name.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use contextweaver_core::catalog::{MAX_FILE_BYTES, SelectableItem};
use contextweaver_core::files::read_text_file;

/// Files of a folder that are looked through, at most.
const MOST_FILES: usize = 1_000;

/// The lines of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file, as its path was given.
    pub path: PathBuf,
    /// The first line, from 1.
    pub line: usize,
    /// The last line.
    pub end_line: usize,
}

/// The files of a catalog, read once for all definitions that are looked for.
#[derive(Debug)]
pub struct Texts(Vec<(PathBuf, String)>);

impl Texts {
    /// Those of the file or folder `source`. What cannot be read, or is larger than a file of a catalog may be, is left out.
    #[must_use]
    pub fn of(source: &Path) -> Self {
        let files = if source.is_dir() { files_of(source) } else { vec![source.to_owned()] };
        let text = |path: PathBuf| read_text_file(&path, MAX_FILE_BYTES).ok().map(|text| (path, text));
        Self(files.into_iter().filter_map(text).collect())
    }

    /// The place of `item`; `None` when it is not found.
    #[must_use]
    pub fn locate(&self, item: &SelectableItem) -> Option<Place> {
        let place = |lines: &dyn Fn(&str) -> Option<(usize, usize)>| {
            self.0.iter().find_map(|(path, text)| {
                lines(text).map(|(line, end_line)| Place { path: path.clone(), line, end_line })
            })
        };
        let raw = item.raw.as_ref().map(|raw| raw.get());
        let whole = raw.and_then(|raw| place(&|text| lines_of(text, raw)));
        whole.or_else(|| place(&|text| line_of_name(text, &item.name)))
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort_unstable();
    files.truncate(MOST_FILES);
    files
}

/// The first and last line that `part` takes in `text`.
fn lines_of(text: &str, part: &str) -> Option<(usize, usize)> {
    let at = text.find(part)?;
    let breaks = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let line = 1 + breaks(text.get(..at)?);
    Some((line, line + breaks(part)))
}

/// The line of `name: NAME` or `"name": "NAME"`.
fn line_of_name(text: &str, name: &str) -> Option<(usize, usize)> {
    let names = |line: &str| {
        let rest = line.trim_start_matches([' ', '\t', '-', '{', '"', '\'']).strip_prefix("name")?;
        let rest = rest.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?.trim_start();
        let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).strip_prefix(name)?;
        rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && !"_-./".contains(next)).then_some(())
    };
    let line = 1 + text.lines().position(|line| names(line).is_some())?;
    Some((line, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_core::catalog::{LoadOptions, load};

    #[test]
    fn definitions_are_found_by_their_bytes_or_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let json = "{\"tools\": [\n  {\"name\": \"a\",\n   \"description\": \"first\"},\n  {\"name\": \"ab\"}\n]}\n";
        let yaml = "tools:\n  - name: b\n    description: x\n  - name: \"bc\"\n";
        fs::write(folder.path().join("one.json"), json).unwrap();
        fs::write(folder.path().join("two.yaml"), yaml).unwrap();
        let loaded = load(&[folder.path()], LoadOptions::default());
        // Without YAML in this build, the JSON file alone.
        let catalog =
            loaded.or_else(|_| load(&[folder.path().join("one.json")], LoadOptions::default())).unwrap().catalog;
        let texts = Texts::of(folder.path());
        // What is found does not hang on what becomes of the files meanwhile: each is read once.
        fs::remove_file(folder.path().join("one.json")).unwrap();
        let place = |name: &str| {
            let item = catalog.items().iter().find(|item| item.name == name)?;
            let place = texts.locate(item)?;
            Some((place.path.file_name()?.to_str()?.to_owned(), place.line, place.end_line))
        };
        assert_eq!(place("a"), Some(("one.json".to_owned(), 2, 3)));
        assert_eq!(place("ab"), Some(("one.json".to_owned(), 4, 4)));
        assert_eq!(line_of_name(yaml, "b"), Some((2, 2)));
        assert_eq!(line_of_name(yaml, "bc"), Some((4, 4)));
        assert_eq!(line_of_name(yaml, "c"), None);
        let gone = SelectableItem::tool("x:gone#00000000", "x", "gone", "");
        assert_eq!(texts.locate(&gone), None);
        assert_eq!(Texts::of(&folder.path().join("nowhere")).locate(&gone), None);
    }
}
