//! Everything that a gateway is told, in one file.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod http;
pub(crate) mod startup;
