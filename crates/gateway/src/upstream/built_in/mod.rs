//! Servers that need no process: what the gateway itself reads for clients, with the tools of a server in front of it.
//!
//! Each is a [`Toolset`](super::toolset::Toolset), so that guards, limits, the firewall and the audit log see its calls as
//! those of any other server. They read and change nothing, and have bounds of their own for what they read.

pub(crate) mod database;
pub(crate) mod documents;
mod folder;
mod passages;

use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

/// A server cannot be made of what the configuration names.
#[derive(Debug, thiserror::Error)]
#[error("{}; {}", self.problem(), self.remedy())]
pub(crate) enum BuiltInError {
    /// There is nothing at the path, or the system refuses it.
    Unreadable {
        /// What is named.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// It is there and no folder.
    NoFolder(PathBuf),
    /// It is there and no file.
    NoFile(PathBuf),
    /// SQLite cannot read it.
    NoDatabase {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        reason: rusqlite::Error,
    },
}

impl BuiltInError {
    /// What is wrong, and where.
    pub(crate) fn problem(&self) -> String {
        match self {
            Self::Unreadable { path, reason } => format!("{}: {reason}", path.display()),
            Self::NoFolder(path) => format!("{} is not a folder", path.display()),
            Self::NoFile(path) => format!("{} is not a file", path.display()),
            Self::NoDatabase { path, reason } => format!("{}: {reason}", path.display()),
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "name something that exists and that the gateway's user may read",
            Self::NoFolder(_) => "name the folder that the documents are in",
            Self::NoFile(_) => "name a database file of SQLite",
            Self::NoDatabase { .. } => {
                "name a database file of SQLite; one with a write-ahead log needs a folder that may be written"
            }
        }
    }
}

/// The annotations of a tool that reads what is here.
fn reading() -> Value {
    json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
}

/// The beginning of a text, of `most` bytes at most, and whether that is all of it.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    (&text[..text.floor_char_boundary(most)], text.len() <= most)
}
