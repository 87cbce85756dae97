//! The gateway itself: requests come in, are dispatched by method, and are answered.

pub(crate) mod dispatch;
pub(crate) mod gateway;
pub(crate) mod live;
pub(crate) mod local_client;
pub(crate) mod overview;
pub(crate) mod passthrough;
pub(crate) mod requests;
