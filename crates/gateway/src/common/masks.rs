//! What stands for values that a configuration took from the environment or a file, wherever an upstream is spoken of.
//!
//! A value that is substituted for `${env:NAME}` or `${file:PATH}` may be a secret, in a program's name and its arguments
//! as well as in a header. Programs print what they were given, and systems what they could not start. Before any such text
//! goes to a log, a report or a client, each of the values becomes the reference that the file has in its place. Values of
//! fewer than four characters stay: they would cover what is not a value. Of a value of several lines each line is covered
//! too, since what a program prints is read line by line. A value in another encoding is not recognised.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::settings::{ExpandError, Reference, replaced};
use contextweaver_core::files::read_text_file;

/// Bytes of a file with a secret that a configuration refers to, at most.
pub(crate) const LARGEST_SECRET: u64 = 64 << 10;

/// Characters of a value that is covered, at least.
const SHORTEST: usize = 4;

/// Characters of a line of a longer value that is covered, at least: shorter ones are more often text of others.
const SHORTEST_LINE: usize = 6;

/// The lines of a value of several that say what it is; none of a value of one line.
fn telling_lines(value: &str) -> impl Iterator<Item = &str> {
    let is_whole = !value.contains(['\n', '\r']);
    let lines = value.split(['\n', '\r']).map(str::trim);
    lines.filter(move |line| !is_whole && line.chars().count() >= SHORTEST_LINE && !is_common(line))
}

/// Whether a line stands in many values: those around a text in PEM form, and those without letters or digits.
fn is_common(line: &str) -> bool {
    let is_border =
        line.starts_with("----") && line.ends_with("----") && (line.contains("BEGIN ") || line.contains("END "));
    is_border || !line.contains(char::is_alphanumeric)
}

/// Values, with the references that they stand for; the longest first.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Masks(Arc<[(String, String)]>);

impl fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.iter().map(|(_, reference)| reference)).finish()
    }
}

impl Masks {
    /// The text with every value covered by its reference.
    #[must_use]
    pub fn cover<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut covered = Cow::Borrowed(text);
        for (value, reference) in self.0.iter() {
            if covered.contains(value.as_str()) {
                covered = Cow::Owned(covered.replace(value, reference));
            }
        }
        covered
    }
}

/// An environment and a folder of files that note what is read of them.
pub(crate) struct Noted<'e> {
    environment: &'e dyn Fn(&str) -> Option<String>,
    folder: &'e Path,
    read: RefCell<BTreeMap<String, String>>,
    /// Where a variable that is not set counts as empty, those that are not.
    unset: Option<RefCell<BTreeSet<String>>>,
}

impl<'e> Noted<'e> {
    /// Nothing was read of `environment` yet, nor of the files, whose paths are relative to `folder`.
    pub(crate) fn new(environment: &'e dyn Fn(&str) -> Option<String>, folder: &'e Path) -> Self {
        Self { environment, folder, read: RefCell::default(), unset: None }
    }

    /// The same, where a variable that is not set is noted and counts as empty.
    pub(crate) fn tolerant(self) -> Self {
        Self { unset: Some(RefCell::default()), ..self }
    }

    /// The variables that were asked for and are not set.
    pub(crate) fn unset(&self) -> Vec<String> {
        self.unset.iter().flat_map(|unset| unset.borrow().iter().cloned().collect::<Vec<_>>()).collect()
    }

    /// The value that a reference stands for, which is covered from now on. Of a file it is the text without the white space
    /// around it.
    ///
    /// # Errors
    /// A variable that is not set, unless that is noted, and a file that cannot be read or is empty.
    pub(crate) fn get(&self, reference: Reference<'_>) -> Result<String, ExpandError> {
        let value = match reference {
            Reference::Variable(name) => match ((self.environment)(name), &self.unset) {
                (Some(value), _) => value,
                (None, None) => return Err(ExpandError::Unset(name.to_owned())),
                (None, Some(unset)) => {
                    unset.borrow_mut().insert(name.to_owned());
                    return Ok(String::new());
                }
            },
            Reference::File(path) => {
                let text = read_text_file(&self.folder.join(path), LARGEST_SECRET);
                match text.map_err(|error| ExpandError::Unread(error.to_string()))?.trim() {
                    // As it is while it is being replaced.
                    "" => return Err(ExpandError::Unread(format!("{path}: the file is empty"))),
                    text => text.to_owned(),
                }
            }
        };
        let whole = value.trim();
        if whole.chars().count() >= SHORTEST {
            let mut read = self.read.borrow_mut();
            read.insert(whole.to_owned(), reference.to_string());
            for line in telling_lines(whole) {
                // A value of its own is known by its own name.
                read.entry(line.to_owned()).or_insert_with(|| reference.to_string());
            }
        }
        Ok(value)
    }

    /// The text with its references replaced, as [`Self::get`] does it.
    ///
    /// # Errors
    /// As [`Self::get`], and a reference that does not end.
    pub(crate) fn expand(&self, text: &str) -> Result<String, ExpandError> {
        replaced(text, &|reference| self.get(reference))
    }

    /// What covers everything that was read.
    pub(crate) fn masks(self) -> Masks {
        let mut values: Vec<(String, String)> = self.read.into_inner().into_iter().collect();
        // A value may be a part of another.
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Masks(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_covered_by_the_names_of_their_variables() {
        let environment = |name: &str| {
            Some(match name {
                "TOKEN" => "s3cret-token\n".to_owned(),
                "PART" => "s3cret".to_owned(),
                _ => "a".to_owned(),
            })
        };
        let noted = Noted::new(&environment, Path::new("."));
        for name in ["PART", "TOKEN", "SHORT"] {
            noted.get(Reference::Variable(name)).unwrap();
        }
        let masks = noted.masks();
        assert_eq!(masks.cover("a s3cret-token and s3cret"), "a ${env:TOKEN} and ${env:PART}");
        assert!(matches!(masks.cover("nothing of it"), Cow::Borrowed(_)));
        assert_eq!(format!("{masks:?}"), r#"{"${env:TOKEN}", "${env:PART}"}"#);
    }

    #[test]
    fn each_line_of_a_value_is_covered() {
        const PEM: &str =
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\nq83=\n-----END PRIVATE KEY-----\n";
        let cases = [
            (PEM, "read MIIEvQIBADANBgkq", "read ${env:V}"),
            (PEM, "hkiG9w0BAQEFAASC\r", "${env:V}\r"),
            (PEM, "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"),
            (PEM, "-----END PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
            (PEM, "q83=", "q83="),
            (PEM, PEM, "${env:V}\n"),
            ("first-line\r\n  second-line\r\n", "a first-line, a second-line", "a ${env:V}, a ${env:V}"),
            ("s3cret\n------------\n{\n}", "s3cret ------------ {", "${env:V} ------------ {"),
            ("one\ntwo33\nthree3", "one two33 three3", "one two33 ${env:V}"),
            // A value of one line is covered as a whole alone.
            ("s3cret token", "s3cret s3cret token", "s3cret ${env:V}"),
        ];
        for (value, text, expected) in cases {
            let environment = |_: &str| Some(value.to_owned());
            let noted = Noted::new(&environment, Path::new("."));
            noted.get(Reference::Variable("V")).unwrap();
            assert_eq!(noted.masks().cover(text), expected, "{value:?}");
        }
        // A line that is the value of another variable has its name, whichever is read first.
        for names in [["ALL", "LINE"], ["LINE", "ALL"]] {
            let environment = |name: &str| Some(if name == "ALL" { "s3cret\nother0" } else { "s3cret" }.to_owned());
            let noted = Noted::new(&environment, Path::new("."));
            for name in names {
                noted.get(Reference::Variable(name)).unwrap();
            }
            assert_eq!(noted.masks().cover("s3cret other0"), "${env:LINE} ${env:ALL}");
        }
    }

    #[test]
    fn what_a_file_holds_is_covered_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "s3cret-of-a-file\n").unwrap();
        std::fs::write(folder.path().join("long"), "x".repeat(1 << 17)).unwrap();
        let environment = |_: &str| None;
        let noted = Noted::new(&environment, folder.path());
        assert_eq!(noted.get(Reference::File("key")).unwrap(), "s3cret-of-a-file");
        for (path, reason) in [("none", "none"), ("long", "it has more than 65536 bytes")] {
            let error = noted.get(Reference::File(path)).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert_eq!(noted.masks().cover("is s3cret-of-a-file"), "is ${file:key}");
    }
}
