//! The Model Context Protocol on the wire: JSON-RPC messages, their framing, and what the two eras of the protocol add.
//!
//! Nothing here knows of gateways, clients or upstreams.

pub(crate) mod client_info;
pub(crate) mod framing;
pub(crate) mod headers;
pub(crate) mod listing;
pub mod message;
pub(crate) mod stateless;
pub(crate) mod strict;
pub(crate) mod subscription;
pub(crate) mod trace_context;
pub(crate) mod transport;
pub(crate) mod versions;
