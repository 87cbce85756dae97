//! What messages go over.

/// What messages go over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Standard streams.
    Pipe,
    /// HTTP.
    Tcp,
}

impl Transport {
    /// The word that telemetry has for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
        }
    }
}
