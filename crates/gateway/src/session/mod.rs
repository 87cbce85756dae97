//! The clients: their sessions, their requests, and what was shown to them.

pub(crate) mod backlog;
pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod context;
pub(crate) mod elicitation;
pub(crate) mod identity;
pub(crate) mod seen;
pub(crate) mod subscriptions;
