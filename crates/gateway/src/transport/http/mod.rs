//! HTTP: MCP for many clients of both eras at one endpoint, and an interface of JSON that others define.

mod admission;
pub(crate) mod api;
pub(crate) mod console;
mod cors;
mod crowd;
mod headers;
pub(crate) mod listener;
mod patience;
mod reply;
pub(crate) mod server;
mod sessions;
