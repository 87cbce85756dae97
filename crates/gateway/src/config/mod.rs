//! Everything that a gateway is told, in one file.

pub(crate) mod caller;
pub(crate) mod caller_file;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod oauth;
pub(crate) mod startup;
pub(crate) mod tls;
