//! How clients reach the gateway: standard streams and HTTP.

mod crowd;
pub(crate) mod http;
pub(crate) mod stdio;
