//! How clients reach the gateway: standard streams and HTTP.

pub(crate) mod http;
pub(crate) mod stdio;
