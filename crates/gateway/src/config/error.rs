//! Why a configuration cannot be used.

use std::path::{Path, PathBuf};

use crate::common::program::quoted;
use crate::common::settings::FieldError;
use crate::common::yaml::YamlError;
use contextweaver_core::files::ReadError;

/// A configuration cannot be used. The path is empty where the text did not come from a file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The text is not YAML or JSON, or does not have the form of a configuration.
    #[error("{}{}", prefix(path), self.problem())]
    Parse {
        /// The file with the error.
        path: PathBuf,
        /// The place in the text and what is wrong there.
        reason: YamlError,
    },
    /// The text is the file of a client: it has servers in the way of clients.
    #[error("{}{}", prefix(path), self.problem())]
    ClientsFile {
        /// The client's file.
        path: PathBuf,
    },
    /// A field has a value that cannot be used, alone or together with others.
    #[error("{}{}", prefix(path), self.problem())]
    Invalid {
        /// The file with the field.
        path: PathBuf,
        /// The field and what is wrong with it.
        error: FieldError,
    },
}

impl From<FieldError> for ConfigError {
    fn from(error: FieldError) -> Self {
        Self::Invalid { path: PathBuf::new(), error }
    }
}

impl ConfigError {
    /// What is wrong, without the file.
    pub(crate) fn problem(&self) -> String {
        match self {
            Self::Read(error) => error.reason.to_string(),
            Self::Parse { reason, .. } => reason.to_string(),
            Self::ClientsFile { path } => format!(
                "this is the file of a client, not the configuration of a gateway; convert it: contextweaver mcp import {} \
                 --write gateway.yaml",
                named(path)
            ),
            Self::Invalid { error, .. } => error.to_string(),
        }
    }

    /// The same error, of the file at `path`.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::Read(ReadError { reason, .. }) => Self::Read(ReadError { path, reason }),
            Self::Parse { reason, .. } => Self::Parse { path, reason },
            Self::ClientsFile { .. } => Self::ClientsFile { path },
            Self::Invalid { error, .. } => Self::Invalid { path, error },
        }
    }
}

fn prefix(path: &Path) -> String {
    if path.as_os_str().is_empty() { String::new() } else { format!("{}: ", path.display()) }
}

/// A file as a shell takes it.
fn named(path: &Path) -> String {
    if path.as_os_str().is_empty() { "FILE".to_owned() } else { quoted(&path.to_string_lossy()) }
}
