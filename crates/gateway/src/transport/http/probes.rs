//! What a gateway tells whoever watches it, wherever it listens: `/healthz` and `/metrics`.

use std::sync::Arc;

use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::json;

use super::listener::not_allowed;
use super::reply::{Refused, Reply, whole};
use crate::protocol::headers::JSON;
use crate::server::live::Live;
use crate::session::identity::Identity;

/// The path that says whether anything is served.
pub(super) const HEALTH: &str = "/healthz";

/// The path of what is counted.
pub(super) const METRICS: &str = "/metrics";

/// Answers a request for one of these paths; any other is taken for [`METRICS`].
///
/// # Errors
/// The metrics are not for this client.
pub(super) fn answer(
    live: &Live,
    client: Result<Arc<Identity>, Refused>,
    head: &Parts,
) -> Result<Response<Reply>, Refused> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Ok(not_allowed("GET, HEAD"));
    }
    if head.uri.path() == HEALTH {
        // A client that is shown only a part of the upstreams is not their operator.
        return Ok(health(live, client.is_ok_and(|client| client.profile.is_none())));
    }
    if client?.profile.is_some() {
        return Err(Refused::text(StatusCode::FORBIDDEN, "metrics are for tokens without a profile"));
    }
    Ok(whole(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", live.now().metrics_text()))
}

/// Whether anything is served; who shows the token also sees of which upstreams.
fn health(live: &Live, authorized: bool) -> Response<Reply> {
    let gateway = live.now();
    let counts = gateway.catalog().counts();
    let ready = counts.tools + counts.resources + counts.prompts > 0;
    let mut report = json!({"live": true, "ready": ready});
    if authorized {
        report["upstreams"] = serde_json::to_value(gateway.reports()).unwrap_or_default();
        // No reason to be taken out of service: calls that need no shared state are answered, and it is away for all replicas.
        if let Some(fault) = gateway.state().fault() {
            report["state"] = fault.into();
        }
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    whole(status, JSON, report.to_string())
}
