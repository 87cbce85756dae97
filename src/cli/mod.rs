//! One file per command: arguments, one call, print.

pub mod catalog;
pub mod gold;

/// What a command found, apart from errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as it should be: exit code 0.
    Ok,
    /// Something differs, or a gate failed: exit code 1.
    Drift,
}

/// How a command prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For machines: one JSON document.
    Json,
}
