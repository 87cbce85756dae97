//! The log of observations: a local file with one JSON object a line, only ever appended to.
//!
//! A log is not worth losing a route over: a line that is not an observation, such as the torn last line of a process
//! that was killed, is skipped and counted, and the next line starts fresh behind it. When the file outgrows its bounds
//! the newer half of the observations is kept. No clock is read here: the caller says when something happened. Queries
//! are in the log as they were asked, so the file is readable by its owner alone.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use contextweaver_core::files::{WriteError, open_kept_file, replace_file, without_mark};

/// The number of observations in a log at most; of a longer log only the newest are read.
pub const MAX_OBSERVATIONS: usize = 10_000;

/// The size of a log in bytes at most; of a larger log only the end is read.
pub const MAX_LOG_BYTES: u64 = 4 << 20;

/// Longer queries are cut at this many bytes, at a character boundary: further words say no more about what was meant.
const MAX_QUERY_BYTES: usize = 2000;

/// Longer tool ids are refused, in bytes.
const MAX_TOOL_BYTES: usize = 1000;

/// The record that a query led to a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The time, in seconds since 1970-01-01 UTC. For people: rankings do not read it.
    pub at: u64,
    /// The query as it was asked.
    pub query: String,
    /// The id of the tool that it led to.
    pub tool: String,
    /// Whether the tool was useful.
    pub useful: bool,
}

/// A feedback log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FeedbackError {
    /// The file could not be read or appended to.
    #[error("{}: {source}", path.display())]
    File {
        /// The log file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The log could not be cut back to its bounds.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The observation is not valid; the text says why.
    #[error("{0}")]
    Observation(&'static str),
}

/// The content of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackLog {
    /// The oldest first, at most [`MAX_OBSERVATIONS`].
    pub observations: Vec<Observation>,
    /// The number of lines that are not observations.
    pub damaged: usize,
}

impl FeedbackLog {
    /// Parses the bytes of a log.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut log = Self::default();
        for line in without_mark(bytes).split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice(line) {
                Ok(observation) => log.observations.push(observation),
                Err(_) => log.damaged += 1,
            }
        }
        let surplus = log.observations.len().saturating_sub(MAX_OBSERVATIONS);
        log.observations.drain(..surplus);
        log
    }

    /// Reads a log; of a log beyond [`MAX_LOG_BYTES`] only the end.
    ///
    /// # Errors
    /// [`FeedbackError::File`], also when the file does not exist.
    pub fn read(path: &Path) -> Result<Self, FeedbackError> {
        let file = |source| FeedbackError::File { path: path.to_owned(), source };
        Ok(Self::parse(&tail(path).map_err(file)?))
    }

    /// Appends an observation, and creates the file when it is missing. A log that then exceeds its bounds keeps the
    /// newer half of its observations. Two processes may append to one log; when one of them cuts it back at that
    /// moment, an observation of the other may be lost.
    ///
    /// # Errors
    /// [`FeedbackError::Observation`] for an observation without a query or a tool; otherwise the file system's error.
    pub fn append(path: &Path, observation: &Observation) -> Result<(), FeedbackError> {
        let line = line(observation)?;
        let file = |source| FeedbackError::File { path: path.to_owned(), source };
        let bytes = append_line(path, &line).map_err(file)?;
        if bytes <= MAX_LOG_BYTES && bytes <= line_limit() {
            return Ok(());
        }
        let log = Self::read(path)?;
        if bytes > MAX_LOG_BYTES || log.observations.len() >= MAX_OBSERVATIONS {
            replace_file(path, &newer_half(&log)?)?;
        }
        Ok(())
    }
}

/// The size up to which no file holds [`MAX_OBSERVATIONS`] observations, so that it need not be read to know.
fn line_limit() -> u64 {
    const SHORTEST: usize = r#"{"at":0,"query":"q","tool":"t","useful":true}"#.len();
    (SHORTEST * MAX_OBSERVATIONS) as u64
}

/// The line of an observation without its line break, within the bounds of a line.
fn line(observation: &Observation) -> Result<String, FeedbackError> {
    if observation.query.trim().is_empty() || observation.tool.trim().is_empty() {
        return Err(FeedbackError::Observation("an observation needs a query and a tool"));
    }
    if observation.tool.len() > MAX_TOOL_BYTES {
        return Err(FeedbackError::Observation("the id of the tool is too long to be one"));
    }
    let written = Observation { query: bounded(&observation.query).to_owned(), ..observation.clone() };
    serde_json::to_string(&written).map_err(|_| FeedbackError::Observation("the observation is not JSON"))
}

/// As much of a query as a log keeps.
pub(super) fn bounded(query: &str) -> &str {
    query.get(..query.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default()
}

/// Appends `line`, after a line break where the file does not end with one, and returns the new size of the file in
/// bytes.
fn append_line(path: &Path, line: &str) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let mut text = String::with_capacity(line.len() + 2);
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            text.push('\n');
        }
    }
    text.push_str(line);
    text.push('\n');
    // One write, so that lines of two processes do not mix.
    file.write_all(text.as_bytes())?;
    Ok(file.metadata()?.len())
}

fn newer_half(log: &FeedbackLog) -> Result<Vec<u8>, FeedbackError> {
    let mut text = String::new();
    for observation in log.observations.iter().skip(log.observations.len() / 2) {
        text.push_str(&line(observation)?);
        text.push('\n');
    }
    Ok(text.into_bytes())
}

/// The last [`MAX_LOG_BYTES`] of a file, from the start of a line.
fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open_kept_file(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_LOG_BYTES).read_to_end(&mut bytes)?;
    if start > 0 {
        let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        bytes.drain(..first);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn observation(number: usize) -> Observation {
        Observation { at: number as u64, query: format!("query {number}"), tool: "a:b".to_owned(), useful: true }
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("feedback.jsonl");
        (folder, path)
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_the_log_is_refused_and_not_waited_for() {
        let (_folder, path) = folder();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = FeedbackLog::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("it is not a regular file"), "{error}");
    }

    #[test]
    fn a_torn_line_harms_nothing() {
        let (_folder, path) = folder();
        FeedbackLog::append(&path, &observation(1)).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"at":2,"query":"torn"#).unwrap();
        FeedbackLog::append(&path, &observation(3)).unwrap();
        let log = FeedbackLog::read(&path).unwrap();
        assert_eq!((&log.observations, log.damaged), (&vec![observation(1), observation(3)], 1));
        // An editor may put a byte order mark in front.
        let marked = [b"\xEF\xBB\xBF", fs::read(&path).unwrap().as_slice()].concat();
        assert_eq!(FeedbackLog::parse(&marked), log);
        assert!(FeedbackLog::read(&path.with_extension("none")).is_err());
    }

    #[test]
    fn a_log_outgrows_no_bound() {
        let (_folder, path) = folder();
        let lines: String = (0..MAX_OBSERVATIONS - 1).map(|n| line(&observation(n)).unwrap() + "\n").collect();
        fs::write(&path, &lines).unwrap();
        FeedbackLog::append(&path, &observation(MAX_OBSERVATIONS)).unwrap();
        let kept = FeedbackLog::read(&path).unwrap().observations;
        assert_eq!((kept.len(), kept.last()), (MAX_OBSERVATIONS / 2, Some(&observation(MAX_OBSERVATIONS))));
        let long = Observation { query: "word ".repeat(10_000), ..observation(1) };
        assert!(line(&long).unwrap().len() < MAX_QUERY_BYTES + 200);
        fs::write(&path, "x\n".repeat(MAX_LOG_BYTES as usize / 2 + 7) + &lines).unwrap();
        let log = FeedbackLog::read(&path).unwrap();
        assert_eq!(log.observations.len(), MAX_OBSERVATIONS - 1);
        FeedbackLog::append(&path, &observation(7)).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < MAX_LOG_BYTES);
    }

    #[test]
    fn what_is_no_observation_is_refused() {
        let (_folder, path) = folder();
        for (query, tool) in [("", "a:b"), ("x", " "), ("x", &*"y".repeat(MAX_TOOL_BYTES + 1))] {
            let wrong = Observation { query: query.to_owned(), tool: tool.to_owned(), ..observation(1) };
            assert!(FeedbackLog::append(&path, &wrong).is_err());
        }
        assert!(!path.exists());
        assert_eq!(FeedbackLog::parse(b"{}\n[1]\n\n\xff\n").damaged, 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_log_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, path) = folder();
        FeedbackLog::append(&path, &observation(1)).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o600);
        // One that is cut back stays as open as it was.
        for open in [0o600, 0o640] {
            fs::write(&path, "x\n".repeat(MAX_LOG_BYTES as usize / 2 + 1)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            FeedbackLog::append(&path, &observation(1)).unwrap();
            assert_eq!((mode(), FeedbackLog::read(&path).unwrap().observations.len()), (open, 1));
        }
    }
}
