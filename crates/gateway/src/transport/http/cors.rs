//! What a browser asks before it lets a page speak to the gateway, and what it wants to read on every answer.
//!
//! Only pages of `http.allowed_origins` get these headers, each for itself: never `*`, for what is answered depends on
//! the token. A preflight shows no token and calls nothing, so it is answered without one.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::{HeaderMap, Response, StatusCode};

use super::admission::Admission;
use super::reply::{Reply, empty};

/// Headers that pages may send, beside those that repeat arguments.
const SENT: [&str; 8] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// How the names of headers begin that repeat arguments.
const ARGUMENT: &str = "mcp-param-";

/// Headers of answers that pages may read.
const READ: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, Retry-After, WWW-Authenticate");

/// Methods that pages may use.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Seconds that a browser need not ask again.
const AGE: HeaderValue = HeaderValue::from_static("600");

/// Whether a request with `OPTIONS` asks for leave on behalf of a page.
pub(super) fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to that, for a page that is allowed: of the headers that it names those that the protocol has.
pub(super) fn preflight(headers: &HeaderMap) -> Response<Reply> {
    let asked = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|value| value.to_str().ok());
    let names = asked.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let mut allowed: Vec<String> =
        names.filter(|name| SENT.contains(&name.as_str()) || name.starts_with(ARGUMENT)).collect();
    allowed.sort_unstable();
    allowed.dedup();
    let mut response = empty(StatusCode::NO_CONTENT);
    let given = response.headers_mut();
    given.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    given.insert(ACCESS_CONTROL_MAX_AGE, AGE);
    if let Ok(allowed) = HeaderValue::from_str(&allowed.join(", ")) {
        given.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// The page that a request comes from.
#[derive(Debug)]
pub(super) enum Page {
    /// One that may read the response.
    Allowed(HeaderValue),
    /// One that may not.
    Other,
}

impl Page {
    /// The page that these headers name; `None` where the request comes from no page.
    pub(super) fn of(headers: &HeaderMap, admission: &Admission) -> Option<Self> {
        let origin = headers.get(ORIGIN)?;
        Some(if admission.permits(origin) { Self::Allowed(origin.clone()) } else { Self::Other })
    }

    /// Lets the page read the response, where it may.
    pub(super) fn read(self, response: &mut Response<Reply>) {
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from_static("Origin"));
        if let Self::Allowed(origin) = self {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
        }
    }
}
