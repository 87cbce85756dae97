//! Who a client is.

use tokio::time::Instant;

use crate::common::secret::Secret;

/// The token of an authorization server that a request came with, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Presented {
    /// The token itself.
    pub(crate) token: Secret,
    /// Who has issued it.
    pub(crate) issuer: String,
    /// Whom it is for.
    pub(crate) audiences: Vec<String>,
    /// When it expires.
    pub(crate) until: Instant,
}

/// Who a client is to the gateway, by the transport that it came in on and not by what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name that its quotas are counted under, in all its sessions.
    pub name: String,
    /// The name of its visibility profile; the profile of all clients when `None`.
    pub profile: Option<String>,
}

impl Identity {
    /// One text for the name and the profile: no two identities have the same. What a client was given under one
    /// profile is not for it under another.
    pub(crate) fn tenant(&self) -> String {
        serde_json::json!([self.name, self.profile]).to_string()
    }
}
