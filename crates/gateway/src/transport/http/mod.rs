//! HTTP: many clients of both eras at one endpoint.

mod admission;
mod cors;
mod crowd;
mod headers;
mod patience;
mod reply;
pub(crate) mod server;
mod sessions;
