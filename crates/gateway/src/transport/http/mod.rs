//! HTTP: MCP for many clients of both eras at one endpoint, and an interface of JSON that others define.

mod admission;
pub(crate) mod api;
pub(crate) mod console;
mod cors;
mod forwarded;
mod headers;
mod jwt;
mod keys;
pub(crate) mod listener;
mod load;
mod oauth;
mod patience;
mod probes;
mod replicas;
mod reply;
pub(crate) mod server;
mod sessions;
mod streams;
mod tls;

#[cfg(test)]
pub(crate) use jwt::tests::{key_sets, signed_tokens};
#[cfg(test)]
pub(crate) use keys::tests::issuer_metadata;
