//! How clients reach the gateway: standard streams and HTTP.

mod crowd;
pub(crate) mod http;
pub(crate) mod stdio;

/// How often a timer runs out that does nothing. It is sooner than any usual time-out of a request: when that is the first of
/// all timers, the runtime wakes itself for it, which costs two system calls a request.
const PULSE: std::time::Duration = std::time::Duration::from_secs(5);
