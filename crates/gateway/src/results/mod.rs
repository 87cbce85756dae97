//! Results: what models are shown of them, and where the rest is kept.

pub(crate) mod artifacts;
pub(crate) mod content;
pub(crate) mod firewall;
pub(crate) mod holdings;
pub(crate) mod kinds;
pub(crate) mod s3;
