//! Why a catalog was refused.

use std::fmt;
use std::path::PathBuf;

/// A catalog, one of its files or an id cannot be used. Every message names the place and, where it is not obvious,
/// the fix.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A file or folder cannot be read.
    #[error("{}: {fault}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error, or what was expected instead.
        fault: Fault,
    },
    /// A file can be read, but holds something other than a catalog.
    #[error("{}: {place}: {fault}", path.display())]
    Parse {
        /// The path of the file.
        path: PathBuf,
        /// Line and column, or the list, index and name of the definition.
        place: String,
        /// What is wrong there.
        fault: Fault,
    },
    /// A definition that was given in code cannot be used.
    #[error("{place}: {fault}")]
    Definition {
        /// The list, index and name of the definition.
        place: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// Two different items have one id.
    #[error(
        "duplicate id `{id}`: {first} and {second}; remove one, or give its server another name{}",
        if *can_be_left_out { ", or leave the second out with --lenient" } else { "" }
    )]
    Collision {
        /// The id that both have.
        id: String,
        /// The place of the first item.
        first: String,
        /// The place of the second item.
        second: String,
        /// Whether a lenient load would leave the second item out and load the rest. The message then says so.
        can_be_left_out: bool,
    },
    /// There is no item at all; the text says what was looked at.
    #[error("the catalog is empty: {0}")]
    Empty(String),
    /// A text is not an id.
    #[error("`{text}` is not a tool id (namespace:name[@version][#hash8]): {reason}")]
    Id {
        /// The text, cut to the length of the longest id.
        text: String,
        /// The rule that it breaks.
        reason: String,
    },
    /// The rendered card of an item exceeds the hard cap even without its description.
    #[error("the card of `{id}` has {tokens} cl100k_base tokens, over the cap of {cap}; shorten its name or tags")]
    CardTooLarge {
        /// The id of the item.
        id: String,
        /// Tokens of the rendered line.
        tokens: usize,
        /// The cap, in the same tokens.
        cap: usize,
    },
}

/// What is wrong with a file or definition, and what to do about it. Displayed as `problem; fix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, as a clause without a full stop.
    pub problem: String,
    /// What to do about it; `None` where that is plain from the problem.
    pub fix: Option<String>,
    /// Whether a lenient load would leave the file or definition out and load the rest. The message then says so.
    pub can_be_left_out: bool,
}

impl Fault {
    /// A fault whose fix is plain from the problem.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), fix: None, can_be_left_out: false }
    }

    /// The same fault with a fix, as a clause in the imperative: `remove one`.
    #[must_use]
    pub fn with_fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.problem)?;
        match (&self.fix, self.can_be_left_out) {
            (None, false) => Ok(()),
            (Some(fix), false) => write!(formatter, "; {fix}"),
            (fix, true) => {
                let fix = fix.as_deref().unwrap_or("correct it");
                write!(formatter, "; {fix}, or leave it out with --lenient")
            }
        }
    }
}
