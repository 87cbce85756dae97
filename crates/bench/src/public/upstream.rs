//! The published files that a collection is made from, in memory.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Cursor;

use contextweaver_core::files::read_at_most;
use serde::de::DeserializeOwned;
use zip::ZipArchive;

/// An entry of an archive is read up to this many bytes.
const MOST_ENTRY_BYTES: u64 = 64 << 20;

/// A published file is not what its rule reads.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct RuleError {
    /// The source and the path of the file.
    pub file: String,
    /// What is wrong.
    pub reason: String,
}

/// Published files by source and path.
#[derive(Debug, Default)]
pub(super) struct Upstream(BTreeMap<String, Vec<u8>>);

impl Upstream {
    /// Adds the file at `source/path`.
    pub(super) fn insert(&mut self, source: &str, path: &str, bytes: Vec<u8>) {
        self.0.insert(format!("{source}/{path}"), bytes);
    }

    /// The bytes of a file, by `source/path`.
    pub(super) fn bytes(&self, file: &str) -> Result<&[u8], RuleError> {
        let found = self.0.get(file).map(Vec::as_slice);
        found.ok_or_else(|| refuse(file, &"the manifest does not list the file, and the rule needs it"))
    }

    /// A file of text.
    pub(super) fn text(&self, file: &str) -> Result<&str, RuleError> {
        std::str::from_utf8(self.bytes(file)?).map_err(|error| refuse(file, &error))
    }

    /// A file with one JSON value.
    pub(super) fn json<T: DeserializeOwned>(&self, file: &str) -> Result<T, RuleError> {
        serde_json::from_slice(self.bytes(file)?).map_err(|error| refuse(file, &error))
    }

    /// A file with one JSON value a line.
    pub(super) fn json_lines<T: DeserializeOwned>(&self, file: &str) -> Result<Vec<T>, RuleError> {
        lines(file, self.text(file)?)
    }

    /// A zip archive, such as a wheel.
    pub(super) fn archive<'a>(&'a self, file: &'a str) -> Result<Archive<'a>, RuleError> {
        let zip = ZipArchive::new(Cursor::new(self.bytes(file)?)).map_err(|error| refuse(file, &error))?;
        Ok(Archive { file, zip })
    }
}

/// A zip archive among the published files.
pub(super) struct Archive<'a> {
    file: &'a str,
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

impl Archive<'_> {
    /// An entry with one JSON value a line.
    pub(super) fn json_lines<T: DeserializeOwned>(&mut self, entry: &str) -> Result<Vec<T>, RuleError> {
        let place = format!("{}: {entry}", self.file);
        let file = self.zip.by_name(entry).map_err(|error| refuse(&place, &error))?;
        let bytes = read_at_most(file, MOST_ENTRY_BYTES).map_err(|error| refuse(&place, &error))?;
        lines(&place, std::str::from_utf8(&bytes).map_err(|error| refuse(&place, &error))?)
    }
}

/// That a file is not what its rule reads.
pub(super) fn refuse(file: &str, reason: &dyn Display) -> RuleError {
    RuleError { file: file.to_owned(), reason: reason.to_string() }
}

fn lines<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, RuleError> {
    let numbered = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    numbered
        .map(|(line, number)| serde_json::from_str(line).map_err(|error| refuse(&format!("{file}:{number}"), &error)))
        .collect()
}
