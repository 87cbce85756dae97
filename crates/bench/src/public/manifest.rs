//! The manifest of public collections: addresses, checksums, licences, citations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use contextweaver_core::text::sha256_hex;

use super::Mismatch;
use super::rules::{self, Rule};
use crate::data::{DataError, DataFile};
use crate::eval::collection::Hashes;

const NAME: &str = "public.toml";
const TEXT: &str = include_str!("../../data/public.toml");

/// No file of a source may be larger.
const MOST_BYTES: u64 = 64 << 20;

/// All public collections and their sources.
#[derive(Debug)]
pub struct Manifest {
    sources: BTreeMap<String, Source>,
    collections: BTreeMap<String, PublicCollection>,
}

/// A published work of which files are needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its name in the manifest, and of its folder among the downloads.
    pub name: String,
    /// Where it is published.
    pub host: Host,
    /// SPDX identifier of its licence, or what the source says instead.
    pub licence: String,
    /// What to cite.
    pub citation: String,
    /// The files that are needed.
    pub files: Vec<SourceFile>,
}

/// Where a source is published, at one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// A repository on GitHub.
    Github {
        /// `owner/name`.
        repository: String,
        /// The commit, 40 hexadecimal digits.
        commit: String,
    },
    /// A package on the Python package index; its files are those of the release.
    Pypi {
        /// The name of the package.
        package: String,
        /// The version.
        version: String,
    },
}

/// A published file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFile {
    /// Its path in the source, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// A collection made from the files of sources.
#[derive(Debug, Clone, Serialize)]
pub struct PublicCollection {
    /// The name of its folder.
    pub name: String,
    /// The heading under which lists show it.
    pub title: String,
    /// The names of its sources.
    pub sources: Vec<String>,
    /// How it is made, in words.
    pub made: String,
    /// Tools in the catalog.
    pub tools: usize,
    /// Queries in the file.
    pub queries: usize,
    /// Whether the rule is known to give the measured files.
    pub state: State,
    /// SHA-256 of the measured files, hex.
    pub sha256: Hashes,
    #[serde(skip)]
    rule: Rule,
}

/// Whether a rule is known to give the measured files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It was run on the files of the manifest and gave the measured bytes.
    Verified,
    /// It was not, for this reason.
    Unverified(String),
}

impl Manifest {
    /// The manifest that is built in.
    ///
    /// # Errors
    /// [`DataError`] when the file was changed to say something wrong.
    pub fn builtin() -> Result<&'static Self, DataError> {
        static BUILTIN: LazyLock<Result<Manifest, DataError>> = LazyLock::new(|| Manifest::parse(NAME, TEXT));
        BUILTIN.as_ref().map_err(Clone::clone)
    }

    /// A manifest from its text; errors call the file `name`.
    ///
    /// # Errors
    /// [`DataError`] for what is not a manifest, a path that leaves its folder, a malformed checksum, a source that
    /// does not exist or that nothing needs, and a collection that no rule makes.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, DataError> {
        let file = DataFile { name, text };
        let wire: Wire = file.read()?;
        let mut sources = BTreeMap::new();
        for (name, entry) in wire.source {
            let source = entry.into_inner().checked(file, name)?;
            sources.insert(source.name.clone(), source);
        }
        let mut collections = BTreeMap::new();
        let mut needed = BTreeSet::new();
        for (name, entry) in wire.collection {
            let collection = entry.into_inner().checked(file, name, &sources)?;
            needed.extend(collection.sources.iter().cloned());
            collections.insert(collection.name.clone(), collection);
        }
        match sources.keys().find(|source| !needed.contains(*source)) {
            Some(unused) => Err(file.refuse(0..0, format!("no collection needs the source `{unused}`"))),
            None => Ok(Self { sources, collections }),
        }
    }

    /// The collections by name.
    pub fn collections(&self) -> impl Iterator<Item = &PublicCollection> {
        self.collections.values()
    }

    /// The collection of this name.
    #[must_use]
    pub fn collection(&self, name: &str) -> Option<&PublicCollection> {
        self.collections.get(name)
    }

    /// The sources of a collection.
    pub fn sources_of<'m>(&'m self, collection: &'m PublicCollection) -> impl Iterator<Item = &'m Source> {
        collection.sources.iter().filter_map(|source| self.sources.get(source))
    }

    /// The published files that a collection needs, with their sources.
    pub fn files_of<'m>(
        &'m self,
        collection: &'m PublicCollection,
    ) -> impl Iterator<Item = (&'m Source, &'m SourceFile)> {
        self.sources_of(collection).flat_map(|source| source.files.iter().map(move |file| (source, file)))
    }
}

impl PublicCollection {
    pub(super) fn rule(&self) -> Rule {
        self.rule
    }
}

impl Source {
    /// Where a file of this source lies among the downloads.
    #[must_use]
    pub fn place(&self, downloads: &Path, file: &SourceFile) -> PathBuf {
        downloads.join(&self.name).join(&file.path)
    }
}

impl SourceFile {
    /// That these are the bytes of the file.
    ///
    /// # Errors
    /// [`Mismatch`] with what differs.
    pub fn check(&self, bytes: &[u8]) -> Result<(), Mismatch> {
        let found = bytes.len() as u64;
        if found != self.bytes {
            return Err(Mismatch::Size { stated: self.bytes, found });
        }
        same_digest(&self.sha256, bytes)
    }
}

/// That the SHA-256 of `bytes` is `stated`.
pub(super) fn same_digest(stated: &str, bytes: &[u8]) -> Result<(), Mismatch> {
    let found = sha256_hex(bytes);
    if found == stated { Ok(()) } else { Err(Mismatch::Digest { stated: stated.to_owned(), found }) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    source: BTreeMap<Spanned<String>, Spanned<SourceEntry>>,
    collection: BTreeMap<Spanned<String>, Spanned<CollectionEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceEntry {
    github: Option<Spanned<String>>,
    commit: Option<Spanned<String>>,
    pypi: Option<Spanned<String>>,
    version: Option<Spanned<String>>,
    licence: Spanned<String>,
    citation: Spanned<String>,
    files: Spanned<Vec<FileEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    path: Spanned<String>,
    bytes: Spanned<u64>,
    sha256: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CollectionEntry {
    title: Spanned<String>,
    sources: Spanned<Vec<Spanned<String>>>,
    made: Spanned<String>,
    tools: usize,
    queries: usize,
    state: StateEntry,
    differs: Option<Spanned<String>>,
    sha256: HashesEntry,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StateEntry {
    Verified,
    Unverified,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HashesEntry {
    catalog: Spanned<String>,
    queries: Spanned<String>,
}

/// A name that can be that of a folder everywhere.
fn name_of(file: DataFile, name: Spanned<String>) -> Result<String, DataError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match name.get_ref() {
        text if !text.is_empty() && text.bytes().all(fits) => Ok(name.into_inner()),
        text => Err(file.refuse(
            name.span(),
            format!(
                "`{text}` is not a name of lower-case letters, digits and \
                                                  underscores"
            ),
        )),
    }
}

/// Hexadecimal digits in small letters, so many of them.
fn digits_of(file: DataFile, text: Spanned<String>, count: usize) -> Result<String, DataError> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    match text.get_ref() {
        digits if digits.len() == count && digits.bytes().all(is_digit) => Ok(text.into_inner()),
        digits => Err(file.refuse(text.span(), format!("`{digits}` is not {count} hexadecimal digits"))),
    }
}

/// Parts between slashes that can neither leave a folder nor change an address.
fn path_of(file: DataFile, text: Spanned<String>) -> Result<String, DataError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    let fits = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    match text.get_ref() {
        path if path.split('/').all(fits) => Ok(text.into_inner()),
        path => Err(file.refuse(text.span(), format!("`{path}` is not a relative path of plain names"))),
    }
}

impl SourceEntry {
    fn checked(self, file: DataFile, name: Spanned<String>) -> Result<Source, DataError> {
        let place = name.span();
        let host = match (self.github, self.commit, self.pypi, self.version) {
            (Some(repository), Some(commit), None, None) => {
                Host::Github { repository: path_of(file, repository)?, commit: digits_of(file, commit, 40)? }
            }
            (None, None, Some(package), Some(version)) => {
                Host::Pypi { package: path_of(file, package)?, version: path_of(file, version)? }
            }
            _ => {
                let reason = "a source has either `github` and `commit` or `pypi` and `version`";
                return Err(file.refuse(place, reason));
            }
        };
        let mut paths = BTreeSet::new();
        let mut files = Vec::new();
        let files_place = self.files.span();
        for entry in self.files.into_inner() {
            let place = entry.path.span();
            let path = path_of(file, entry.path)?;
            if !paths.insert(path.clone()) {
                return Err(file.refuse(place, format!("`{path}` is in the list twice")));
            }
            let (size, bytes) = (entry.bytes.span(), entry.bytes.into_inner());
            if bytes > MOST_BYTES {
                return Err(file.refuse(size, format!("{bytes} bytes are more than {MOST_BYTES}")));
            }
            files.push(SourceFile { path, bytes, sha256: digits_of(file, entry.sha256, 64)? });
        }
        if files.is_empty() {
            return Err(file.refuse(files_place, "the list has no file"));
        }
        Ok(Source {
            name: name_of(file, name)?,
            host,
            licence: file.text_of(self.licence)?,
            citation: file.text_of(self.citation)?,
            files,
        })
    }
}

impl CollectionEntry {
    fn checked(
        self,
        file: DataFile,
        name: Spanned<String>,
        sources: &BTreeMap<String, Source>,
    ) -> Result<PublicCollection, DataError> {
        let place = name.span();
        let name = name_of(file, name)?;
        let Some(rule) = rules::of(&name) else {
            return Err(file.refuse(place, format!("no rule makes a collection `{name}`")));
        };
        let known = |source: &str| match sources.contains_key(source) {
            true => Ok(source.to_owned()),
            false => Err(format!("there is no source `{source}`")),
        };
        let state = match (self.state, self.differs) {
            (StateEntry::Verified, None) => State::Verified,
            (StateEntry::Unverified, Some(reason)) => State::Unverified(file.text_of(reason)?),
            (StateEntry::Verified, Some(_)) => return Err(file.refuse(place, "a verified collection has `differs`")),
            (StateEntry::Unverified, None) => {
                return Err(file.refuse(place, "an unverified collection needs `differs`, which says why"));
            }
        };
        Ok(PublicCollection {
            name,
            title: file.text_of(self.title)?,
            sources: file.list_of(self.sources, 1, known)?,
            made: file.text_of(self.made)?,
            tools: self.tools,
            queries: self.queries,
            state,
            sha256: Hashes {
                catalog: digits_of(file, self.sha256.catalog, 64)?,
                queries: digits_of(file, self.sha256.queries, 64)?,
            },
            rule,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"[source.toolalpaca]
github = "o/r"
commit = "0123456789abcdef0123456789abcdef01234567"
licence = "MIT"
citation = "c"
files = [
  { path = "a/b.json", bytes = 2, sha256 = "0000000000000000000000000000000000000000000000000000000000000000" },
]
[collection.toolalpaca]
title = "t"
sources = ["toolalpaca"]
made = "m"
tools = 1
queries = 1
state = "verified"
sha256 = { catalog = "0000000000000000000000000000000000000000000000000000000000000000", queries = "0000000000000000000000000000000000000000000000000000000000000000" }
"#;

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        let table = [
            ("MIT", "MIT", "Ok"),
            ("\"a/b.json\"", "\"../b.json\"", "m.toml:7: `../b.json` is not a relative path of plain names"),
            ("\"a/b.json\"", "\"/etc/b.json\"", "m.toml:7: `/etc/b.json` is not a relative path of plain names"),
            ("\"a/b.json\"", "\"a/b.json?x\"", "m.toml:7: `a/b.json?x` is not a relative path of plain names"),
            ("0123456789abcdef01234567\"", "main\"", "m.toml:3: `0123456789abcdefmain` is not 40 hexadecimal digits"),
            ("bytes = 2,", "bytes = 99999999999,", "m.toml:7: 99999999999 bytes are more than 67108864"),
            (
                "catalog = \"0",
                "catalog = \"",
                "m.toml:16: `000000000000000000000000000000000000000000000000000000000000000` is not 64 hexadecimal digits",
            ),
            ("github", "pypi", "m.toml:1: a source has either `github` and `commit` or `pypi` and `version`"),
            ("[\"toolalpaca\"]", "[\"alpaca\"]", "m.toml:11: there is no source `alpaca`"),
            ("[\"toolalpaca\"]", "[]", "m.toml:11: the list has 0 entries; 1 are needed"),
            ("[collection.toolalpaca]", "[collection.alpaca]", "m.toml:9: no rule makes a collection `alpaca`"),
            (
                "[source.toolalpaca]",
                "[source.\"Tool Alpaca\"]",
                "m.toml:1: `Tool Alpaca` is not a name of lower-case letters, digits and underscores",
            ),
            ("\"verified\"", "\"unverified\"", "m.toml:9: an unverified collection needs `differs`, which says why"),
            ("\"verified\"", "\"verified\"\ndiffers = \"x\"", "m.toml:9: a verified collection has `differs`"),
            (
                "tools = 1\n",
                "tools = 1\nsize = 1\n",
                "m.toml:14: unknown field `size`, expected one of `title`, `sources`, `made`, `tools`, `queries`, `state`, `differs`, `sha256`",
            ),
        ];
        for (from, to, expected) in table {
            let text = GOOD.replacen(from, to, 1);
            let found = Manifest::parse("m.toml", &text);
            assert_eq!(found.map_or_else(|error| error.to_string(), |_| "Ok".to_owned()), expected, "{text}");
        }
        let unused = GOOD.replace("[collection", "[source.other]\npypi = \"p\"\nversion = \"1\"\nlicence = \"MIT\"\ncitation = \"c\"\nfiles = [{ path = \"p.whl\", bytes = 1, sha256 = \"0000000000000000000000000000000000000000000000000000000000000000\" }]\n[collection");
        let error = Manifest::parse("m.toml", &unused).unwrap_err().to_string();
        assert_eq!(error, "m.toml:1: no collection needs the source `other`");
    }

    #[test]
    fn the_built_in_manifest_names_every_public_collection() {
        let names: Vec<&str> = Manifest::builtin().unwrap().collections().map(|one| one.name.as_str()).collect();
        insta::assert_snapshot!(names.join(" "), @"bfcl_synth contextweaver_83 metatool_multi metatool_single nestful sealtools_dev toolalpaca toolbench");
    }
}
