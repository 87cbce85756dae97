//! What operators see of a running gateway: metrics, a file of events, a log of decisions, the last calls, and traces.

pub(crate) mod activity;
pub(crate) mod audit;
pub(crate) mod audit_line;
pub(crate) mod diagnostics;
pub(crate) mod metrics;
pub(crate) mod observer;
pub(crate) mod otlp;
pub(crate) mod otlp_form;
mod protobuf;
pub(crate) mod run;
pub(crate) mod samples;
pub(crate) mod savings;
