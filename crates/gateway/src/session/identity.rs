//! Who a client is.

/// Who a client is to the gateway, by the transport that it came in on and not by what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name that its quotas are counted under, in all its sessions.
    pub name: String,
    /// The name of its visibility profile; the profile of all clients when `None`.
    pub profile: Option<String>,
}
