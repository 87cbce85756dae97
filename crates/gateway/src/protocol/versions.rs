//! The protocol versions that the gateway speaks.

/// Versions of the era that begins with a handshake (`initialize`), newest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The version of the stateless protocol.
pub const MODERN_VERSION: &str = "2026-07-28";
