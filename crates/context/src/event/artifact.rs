//! References to content that is kept out of the prompt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use contextweaver_core::text::sha256_hex;

/// The name under which a session addresses an artifact, e.g. `artifact:result:tc1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(String);

impl Handle {
    /// A handle with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The handle as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// The SHA-256 of an artifact's bytes: 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(String);

/// A text is not a content hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a content hash; write the 64 lower-case hexadecimal digits of a SHA-256")]
pub struct ParseHashError(String);

impl ContentHash {
    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha256_hex(bytes))
    }

    /// The 64 digits as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContentHash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() == 64 && text.bytes().all(digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseHashError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for ContentHash {
    type Error = ParseHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// The description of an artifact in a prompt or envelope. The bytes are in an artifact store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactRef {
    /// The name that selects the artifact.
    pub handle: Handle,
    /// The media type, e.g. `application/json`.
    pub media_type: String,
    /// The size in bytes.
    pub size_bytes: u64,
    /// A description for people.
    pub label: String,
    /// The hash of its bytes.
    pub content_hash: ContentHash,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_digest_is_a_content_hash() {
        let hash = ContentHash::of(b"abc");
        assert_eq!(hash.as_str().parse::<ContentHash>().unwrap(), hash);
        for wrong in ["", "abc", &hash.as_str().to_uppercase(), &format!("{hash}0")] {
            assert!(wrong.parse::<ContentHash>().is_err(), "{wrong}");
        }
    }
}
