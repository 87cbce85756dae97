//! What operators see of a running gateway: metrics and a file of events.

pub(crate) mod diagnostics;
pub(crate) mod metrics;
pub(crate) mod observer;
pub(crate) mod savings;
