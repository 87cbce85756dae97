//! A support pack: what somebody needs to help, and none of the secrets.
//!
//! A pack is made in memory and is bounded: each file, each list and each text in it. Every text is covered by [`Cover`]; a file
//! that still held a value in another form is left out. The manifest names the files with their digests, and what is missing with
//! the reason.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;

use super::cover::Cover;
use super::likely_secrets::{is_harmless, is_secret_name};
use crate::common::yaml;
use crate::config::file::GatewayConfig;
use crate::telemetry::run::timestamp;
use contextweaver_core::files::read_text_file;
use contextweaver_core::text::sha256_hex;

/// Bytes of a file of a pack, at most.
const MOST_BYTES: usize = 4 << 20;

/// Bytes at the end of a log that are looked at, at most.
const MOST_OF_LOG: u64 = 4 << 20;

/// Bytes of a configuration, at most.
const LONGEST_CONFIGURATION: u64 = 4 << 20;

/// Why a file is left out that still holds a value.
const UNCOVERED: &str = "it contains a value that may be a secret, in a form that cannot be masked";

/// A file of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentFile {
    /// Its name in the pack.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// What the manifest says of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncidentEntry {
    /// Its name in the pack.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// What is not in a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncidentGap {
    /// The file that it would be.
    pub name: String,
    /// Why it is missing.
    pub reason: String,
}

/// What a pack holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncidentManifest {
    /// The version of the program.
    pub version: String,
    /// The operating system and the processor.
    pub platform: String,
    /// When it was made, UTC.
    pub created: String,
    /// How many values were looked for and covered.
    pub covered: usize,
    /// The files, in the order in which they were added.
    pub files: Vec<IncidentEntry>,
    /// What is missing.
    pub left_out: Vec<IncidentGap>,
}

/// A pack that is being made.
#[derive(Debug)]
pub struct Incident {
    cover: Cover,
    files: Vec<(IncidentFile, String)>,
    left_out: Vec<IncidentGap>,
}

impl Incident {
    /// Begins a pack about the configuration at `path`, which is its first file. `values` are the variables that its servers may
    /// have and `environment` are those of this process, of which the ones with telling names are covered; `home` is the folder of
    /// the person.
    pub fn begin(
        path: &Path,
        values: &BTreeMap<String, String>,
        environment: impl IntoIterator<Item = (String, String)>,
        home: Option<&Path>,
    ) -> Self {
        const NAME: &str = "configuration.json";
        let mut cover = Cover::default();
        for (name, value) in values {
            cover.note_variable(name, value);
        }
        for (name, value) in environment {
            if is_secret_name(&name) && !is_path(&value) && (value.len() >= 8 || !is_harmless(&name, &value)) {
                cover.note_variable(&name, &value);
            }
        }
        let mut incident = Self { cover, files: Vec::new(), left_out: Vec::new() };
        let folder = path.parent().unwrap_or(Path::new("."));
        let read = read_text_file(path, LONGEST_CONFIGURATION).map_err(|error| error.reason.to_string());
        match read.and_then(|text| Ok((yaml::read::<Value>(&text).map_err(|error| error.to_string())?, text))) {
            Ok((tree, text)) => {
                let lookup = |name: &str| Some(values.get(name).cloned().unwrap_or_default());
                let accepted = GatewayConfig::parse_for_a_look(&text, folder, &lookup).is_ok();
                let shown = incident.cover.configuration(&tree, folder, accepted);
                incident.note_home(home);
                incident.add(NAME, "the configuration, without values that may be secrets", &shown);
            }
            Err(reason) => {
                incident.note_home(home);
                incident.leave_out(NAME, &reason);
            }
        }
        incident
    }

    /// The name of a person often stands in paths.
    fn note_home(&mut self, home: Option<&Path>) {
        if let Some(home) = home.filter(|home| home.parent().is_some()) {
            self.cover.note(&home.to_string_lossy(), "~".to_owned());
        }
    }

    /// Covers what a file with a secret holds, such as the token of a gateway.
    pub fn cover_file(&mut self, path: &Path) {
        self.cover.note_file(path);
    }

    /// Adds what was found out, as JSON.
    pub fn add(&mut self, name: &str, about: &str, value: &impl Serialize) {
        match serde_json::to_value(value).and_then(|value| serde_json::to_string_pretty(&self.cover.value(&value))) {
            Ok(text) => self.keep(name, about, text + "\n"),
            Err(error) => self.leave_out(name, &error.to_string()),
        }
    }

    /// Adds a text of several lines.
    pub fn add_text(&mut self, name: &str, about: &str, text: &str) {
        let covered: Vec<String> = text.lines().map(|line| self.cover.text(line) + "\n").collect();
        self.keep(name, about, covered.concat());
    }

    /// Adds the last lines of a log, at most `most`: those that are JSON. The others are counted in what the manifest says.
    pub fn add_lines(&mut self, name: &str, about: &str, path: &Path, most: usize) {
        match last_lines(path, most) {
            Ok((lines, foreign)) => {
                let others = match foreign {
                    0 => String::new(),
                    1 => "; 1 other is not JSON".to_owned(),
                    more => format!("; {more} others are not JSON"),
                };
                let about = format!("{about}, the last {}{others}", lines.len());
                let lines: Vec<String> = lines.iter().map(|line| format!("{}\n", self.cover.value(line))).collect();
                self.keep(name, &about, lines.concat());
            }
            Err(error) => self.leave_out(name, &format!("{}: {error}", path.display())),
        }
    }

    /// Says why something is missing.
    pub fn leave_out(&mut self, name: &str, reason: &str) {
        self.left_out.push(IncidentGap { name: name.to_owned(), reason: self.cover.text(reason) });
    }

    fn keep(&mut self, name: &str, about: &str, text: String) {
        if text.len() > MOST_BYTES {
            self.leave_out(name, &format!("it has {} bytes; at most {MOST_BYTES} are allowed", text.len()));
        } else if self.cover.is_in(&text) {
            self.leave_out(name, UNCOVERED);
        } else {
            self.files.push((IncidentFile { name: name.to_owned(), text }, about.to_owned()));
        }
    }

    /// The files, and what stands in their manifest.
    #[must_use]
    pub fn finish(self, now: OffsetDateTime) -> (Vec<IncidentFile>, IncidentManifest) {
        // What was noted after a file was added counts for it too.
        let Self { cover, files, mut left_out } = self;
        let (files, held): (Vec<_>, Vec<_>) = files.into_iter().partition(|(file, _)| !cover.is_in(&file.text));
        left_out
            .extend(held.into_iter().map(|(file, _)| IncidentGap { name: file.name, reason: UNCOVERED.to_owned() }));
        let entry = |(file, about): &(IncidentFile, String)| IncidentEntry {
            name: file.name.clone(),
            about: about.clone(),
            bytes: file.text.len(),
            sha256: sha256_hex(file.text.as_bytes()),
        };
        let manifest = IncidentManifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            created: timestamp(now),
            covered: cover.count(),
            files: files.iter().map(entry).collect(),
            left_out,
        };
        (files.into_iter().map(|(file, _)| file).collect(), manifest)
    }
}

/// Whether a value of a variable such as `SSH_AUTH_SOCK` is a place and no secret.
fn is_path(value: &str) -> bool {
    value.starts_with('/') && Path::new(value).exists()
}

/// The last lines of a file that are JSON, at most `most`, and how many others are among them.
fn last_lines(path: &Path, most: usize) -> io::Result<(VecDeque<Value>, usize)> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let skipped = about.len().saturating_sub(MOST_OF_LOG);
    file.seek(SeekFrom::Start(skipped))?;
    let mut file = BufReader::new(file.take(MOST_OF_LOG));
    if skipped > 0 {
        file.skip_until(b'\n')?;
    }
    let mut lines = VecDeque::new();
    for line in file.split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        if lines.len() == most {
            lines.pop_front();
        }
        lines.push_back(serde_json::from_slice::<Value>(&line).ok());
    }
    let all = lines.len();
    let lines: VecDeque<Value> = lines.into_iter().flatten().collect();
    let foreign = all - lines.len();
    Ok((lines, foreign))
}
