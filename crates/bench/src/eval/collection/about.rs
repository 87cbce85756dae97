//! `collection.toml`: what a collection is, and the seal that ties the statement to the files.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::record::Origin;
use super::{ABOUT_FILE, CATALOG_FILE, Collection, CollectionError, QUERIES_FILE, read, replace_file};
use contextweaver_core::text::sha256_hex;

/// The content of `collection.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The name of the folder.
    pub name: String,
    /// The heading under which pages show the collection.
    pub title: String,
    /// SPDX identifier of the licence of both files.
    pub licence: String,
    /// Where the catalog and the queries come from.
    pub source: String,
    /// Language codes of the queries, sorted.
    pub languages: Vec<String>,
    /// How the collection was made, by which rules it was labelled, and what it cannot show.
    pub analysis: String,
    /// What the files hold.
    pub counts: Counts,
    /// The files themselves.
    pub sha256: Hashes,
}

/// How much a collection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Tools in the catalog: what is neither a resource nor a prompt.
    pub tools: usize,
    /// Resources in the catalog; not written where there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub resources: usize,
    /// Prompts in the catalog; likewise.
    #[serde(default, skip_serializing_if = "is_none")]
    pub prompts: usize,
    /// Namespaces in the catalog.
    pub namespaces: usize,
    /// Queries, answerable or not.
    pub queries: usize,
    /// Queries that a tool answers.
    pub answerable: usize,
    /// Answerable queries that need more than one tool.
    pub multi_tool: usize,
    /// Queries that no tool answers.
    pub unanswerable: usize,
}

/// The rule of serialising counts that most collections lack.
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// SHA-256 of the files, hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hashes {
    /// Of `catalog.json`.
    pub catalog: String,
    /// Of `queries.jsonl`.
    pub queries: String,
}

impl Hashes {
    /// Both as one digest (hex): SHA-256 of the two, a line each. So what a collection was measured from can be told of its
    /// hashes, without its files.
    #[must_use]
    pub fn together(&self) -> String {
        sha256_hex(format!("{}\n{}\n", self.catalog, self.queries).as_bytes())
    }

    /// The hashes of the bytes of the two files.
    #[must_use]
    pub fn of(catalog: &[u8], queries: &[u8]) -> Self {
        Self { catalog: sha256_hex(catalog), queries: sha256_hex(queries) }
    }

    /// The hashes of the two files in `folder`.
    ///
    /// # Errors
    /// [`CollectionError::Read`] when one cannot be read.
    pub fn of_folder(folder: &Path) -> Result<Self, CollectionError> {
        let hash = |file| read(&folder.join(file)).map(|bytes| sha256_hex(&bytes));
        Ok(Self { catalog: hash(CATALOG_FILE)?, queries: hash(QUERIES_FILE)? })
    }
}

/// The text is not a `collection.toml`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseAboutError(String);

impl std::str::FromStr for About {
    type Err = ParseAboutError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        toml::from_str(text).map_err(|error| ParseAboutError(error.to_string().trim_end().to_owned()))
    }
}

impl About {
    pub(super) fn read(path: &Path, name: &str) -> Result<Self, CollectionError> {
        let refuse = |reason: String| CollectionError::About { path: path.to_owned(), reason };
        if !path.exists() {
            return Err(refuse(format!(
                "absent; run `contextweaver gold seal {name}` and fill in what it leaves empty"
            )));
        }
        let text = String::from_utf8(read(path)?).map_err(|_| refuse("not valid UTF-8".to_owned()))?;
        text.parse().map_err(|error: ParseAboutError| refuse(error.to_string()))
    }

    /// That every statement agrees with the files.
    pub(super) fn check(&self, path: &Path, found: &Hashes, collection: &Collection) -> Result<(), CollectionError> {
        let counts = collection.counts();
        let table = [
            ("name", self.name.clone(), collection.name.clone()),
            ("sha256.catalog", self.sha256.catalog.clone(), found.catalog.clone()),
            ("sha256.queries", self.sha256.queries.clone(), found.queries.clone()),
            ("counts.tools", self.counts.tools.to_string(), counts.tools.to_string()),
            ("counts.resources", self.counts.resources.to_string(), counts.resources.to_string()),
            ("counts.prompts", self.counts.prompts.to_string(), counts.prompts.to_string()),
            ("counts.namespaces", self.counts.namespaces.to_string(), counts.namespaces.to_string()),
            ("counts.queries", self.counts.queries.to_string(), counts.queries.to_string()),
            ("counts.answerable", self.counts.answerable.to_string(), counts.answerable.to_string()),
            ("counts.multi_tool", self.counts.multi_tool.to_string(), counts.multi_tool.to_string()),
            ("counts.unanswerable", self.counts.unanswerable.to_string(), counts.unanswerable.to_string()),
            ("languages", self.languages.join(" "), collection.languages().join(" ")),
        ];
        match table.into_iter().find(|(_, stated, found)| stated != found) {
            None => Ok(()),
            Some((field, stated, found)) => Err(CollectionError::Stale {
                path: path.to_owned(),
                name: collection.name.clone(),
                field: field.to_owned(),
                stated,
                found,
            }),
        }
    }
}

/// Whether [`seal`] changed the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealed {
    /// The file agreed already and was left alone.
    Unchanged,
    /// The file was written.
    Written,
}

/// Makes `collection.toml` in `folder` agree with the files beside it: name, counts, languages and hashes are
/// rewritten, the prose is kept. A missing file is made, with empty prose. The file is replaced whole or not at all.
///
/// # Errors
/// Any [`CollectionError`] of the catalog, the queries or an unreadable `collection.toml`.
pub fn seal(folder: &Path) -> Result<(About, Sealed), CollectionError> {
    let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let collection =
        Collection::from_files(&name, Origin::Embedded, &folder.join(CATALOG_FILE), &folder.join(QUERIES_FILE))?;
    let path = folder.join(ABOUT_FILE);
    let old = if path.exists() { Some(About::read(&path, &name)?) } else { None };
    let prose = |pick: fn(&About) -> &String| old.as_ref().map(|about| pick(about).clone()).unwrap_or_default();
    let about = About {
        name,
        title: prose(|about| &about.title),
        licence: prose(|about| &about.licence),
        source: prose(|about| &about.source),
        languages: collection.languages(),
        analysis: prose(|about| &about.analysis),
        counts: collection.counts(),
        sha256: Hashes::of_folder(folder)?,
    };
    if old.as_ref() == Some(&about) {
        return Ok((about, Sealed::Unchanged));
    }
    let text = toml::to_string(&about)
        .map_err(|error| CollectionError::About { path: path.clone(), reason: error.to_string() })?;
    // The lines that name the schema, and what a person noted there, stay.
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let head: String = before.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
    replace_file(&path, (head + &text).as_bytes())?;
    Ok((about, Sealed::Written))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_seal_follows_the_files_and_keeps_the_prose() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join(CATALOG_FILE), r#"[{"name":"a","server":"s","inputSchema":{"type":"object"}}]"#).unwrap();
        fs::write(folder.join(QUERIES_FILE), r#"{"id":"1","query":"x","relevant":["a"],"lang":"en"}"#).unwrap();
        let load = || Collection::load(folder, Origin::Embedded);

        assert!(load().unwrap_err().to_string().contains("gold seal"), "an embedded collection needs the file");
        assert_eq!(seal(folder).unwrap().1, Sealed::Written);
        let path = folder.join(ABOUT_FILE);
        let text = fs::read_to_string(&path).unwrap().replace("title = \"\"", "title = \"One tool\"");
        fs::write(&path, text).unwrap();
        assert_eq!(load().unwrap().about.unwrap().title, "One tool");
        assert_eq!(seal(folder).unwrap().1, Sealed::Unchanged);

        fs::write(folder.join(QUERIES_FILE), r#"{"id":"1","query":"y","relevant":[],"lang":"de"}"#).unwrap();
        let error = load().unwrap_err().to_string();
        assert!(error.contains("sha256.queries") && error.contains("contextweaver gold seal"), "{error}");
        let (about, sealed) = seal(folder).unwrap();
        assert_eq!((sealed, about.title.as_str(), about.counts.unanswerable), (Sealed::Written, "One tool", 1));
        assert!(load().is_ok());
    }

    #[test]
    fn unknown_fields_are_refused() {
        assert!("name = \"a\"\nlicense = \"MIT\"".parse::<About>().unwrap_err().to_string().contains("license"));
    }
}
