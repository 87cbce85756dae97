//! Admission of requests by the host that they name, the page that they come from, and the token that they present.
//!
//! A page in a browser can have its own name resolved to this machine; the host that its requests name then gives it
//! away, and where it sends `Origin`, that does too.

use std::sync::Arc;

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};

use super::headers::JSON;
use super::reply::Refused;
use crate::config::http::{HostRule, HttpConfig, OriginRule, TokenHolder, anyone};
use crate::session::identity::Identity;

/// The checks of a server: hosts, origins and tokens.
#[derive(Debug)]
pub(super) struct Admission {
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    /// The digests of the tokens, with their holders: how long a comparison of digests takes tells nothing about what
    /// was digested.
    tokens: Vec<([u8; 32], Arc<Identity>)>,
    /// The identity of all clients where there are no tokens.
    anyone: Arc<Identity>,
}

impl Admission {
    pub(super) fn new(config: &HttpConfig) -> Self {
        let mut hosts = config.allowed_hosts.clone();
        if !config.listen.ip().is_unspecified() {
            hosts.push(HostRule::Host { host: config.listen.ip().to_string(), port: None });
        }
        let held = |holder: &TokenHolder| (digest(holder.token.text()), Arc::clone(&holder.identity));
        let tokens = config.tokens.iter().map(held).collect();
        Self { hosts, origins: config.allowed_origins.clone(), tokens, anyone: anyone() }
    }

    /// Checks the host that a request names and the page that it comes from.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        // Of two, others on the way may believe the other one.
        if let Some(name) = [HOST, ORIGIN].into_iter().find(|name| headers.get_all(name).iter().nth(1).is_some()) {
            return Err(Refused::text(StatusCode::BAD_REQUEST, format!("the header `{name}` is there twice")));
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = host else {
            return Err(Refused::text(StatusCode::BAD_REQUEST, "the `Host` header is missing or is not a host"));
        };
        if !self.hosts.iter().any(|rule| rule.permits(&host)) {
            let reason = format!("the host `{host}` is not allowed; add it to `http.allowed_hosts`");
            return Err(Refused::text(StatusCode::FORBIDDEN, reason));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        match self.permits(origin) {
            true => Ok(()),
            false => {
                let reason = "the origin is not allowed; add it to `http.allowed_origins`";
                Err(Refused::text(StatusCode::FORBIDDEN, reason))
            }
        }
    }

    /// Whether the page may speak to the gateway.
    pub(super) fn permits(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.origins.iter().any(|rule| rule.permits(origin)))
    }

    /// Checks the token of a request and returns its holder.
    pub(super) fn authorize(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Refused> {
        if self.tokens.is_empty() {
            return Ok(Arc::clone(&self.anyone));
        }
        let shown = headers.get(AUTHORIZATION).and_then(|shown| shown.to_str().ok()?.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let shown = shown.map(|(_, token)| digest(token.trim())).ok_or_else(Refused::unauthorized)?;
        // All are compared, whichever fits.
        let held = self.tokens.iter().fold(None, |held, (token, holder)| match equal(&shown, token) {
            true => Some(holder),
            false => held,
        });
        held.map(Arc::clone).ok_or_else(Refused::unauthorized)
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Compares without stopping at the first difference.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Checks that the client reads the media types, each by its name or by a wildcard.
pub(super) fn check_accept(headers: &HeaderMap, types: &[&str]) -> Result<(), Refused> {
    let accepts = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let range = parts.next().unwrap_or_default();
            let named = range.eq_ignore_ascii_case(wanted)
                || range.strip_suffix('*').is_some_and(|prefix| prefix == "*/" || wanted.starts_with(prefix));
            named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    };
    match types.iter().all(|wanted| accepts(wanted)) {
        true => Ok(()),
        false => {
            let reason = format!("the client must accept {}", types.join(" and "));
            Err(Refused::text(StatusCode::NOT_ACCEPTABLE, reason))
        }
    }
}

/// Checks that what comes in is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refused> {
    let written = headers.get(CONTENT_TYPE).and_then(|written| written.to_str().ok()).unwrap_or_default();
    match written.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON) {
        true => Ok(()),
        false => Err(Refused::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("`Content-Type` must be {JSON}"))),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;
    use crate::config::http::Token;
    use crate::transport::http::headers::EVENTS;

    fn headers(lines: &[(HeaderName, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn hosts_and_origins_are_checked() {
        let config = HttpConfig { listen: "192.0.2.7:80".parse().unwrap(), ..HttpConfig::default() };
        let admission = Admission::new(&config);
        type Headers<'h> = &'h [(HeaderName, &'h str)];
        let cases: [(Headers<'_>, Option<u16>); 10] = [
            (&[(HOST, "localhost:8080")], None),
            (&[(HOST, "192.0.2.7")], None),
            (&[(HOST, "[::1]:1"), (ORIGIN, "http://localhost:3000")], None),
            (&[], Some(400)),
            (&[(HOST, "a b")], Some(400)),
            (&[(HOST, "evil.example")], Some(403)),
            (&[(HOST, "localhost"), (ORIGIN, "http://evil.example")], Some(403)),
            (&[(HOST, "localhost"), (ORIGIN, "null")], Some(403)),
            (&[(HOST, "localhost"), (HOST, "evil.example")], Some(400)),
            (&[(HOST, "localhost"), (ORIGIN, "http://localhost"), (ORIGIN, "http://evil.example")], Some(400)),
        ];
        for (lines, status) in cases {
            let refused = admission.admit(&headers(lines)).err().map(|refused| refused.status().as_u16());
            assert_eq!(refused, status, "{lines:?}");
        }
    }

    #[test]
    fn the_token_opens_and_nothing_else() {
        let holder = |token: &str, name: &str| TokenHolder {
            token: Token::new(token).unwrap(),
            identity: Arc::new(Identity { name: name.to_owned(), profile: None }),
        };
        let tokens = vec![holder("s3cret\n", "one"), holder("other", "two")];
        let admission = Admission::new(&HttpConfig { tokens, ..HttpConfig::default() });
        let cases = [
            ("Bearer s3cret", Some("one")),
            ("bearer  s3cret", Some("one")),
            ("Bearer other", Some("two")),
            ("Bearer s3cre", None),
            ("Bearer s3cret2", None),
            ("Bearer", None),
            ("Basic s3cret", None),
            ("s3cret", None),
        ];
        for (shown, name) in cases {
            let held = admission.authorize(&headers(&[(AUTHORIZATION, shown)])).ok();
            assert_eq!(held.as_ref().map(|held| held.name.as_str()), name, "{shown}");
        }
        assert_eq!(admission.authorize(&HeaderMap::new()).unwrap_err().status(), StatusCode::UNAUTHORIZED);
        assert_eq!(Admission::new(&HttpConfig::default()).authorize(&HeaderMap::new()).unwrap(), anyone());
    }

    #[test]
    fn media_types_are_negotiated() {
        let cases = [
            ("application/json, text/event-stream", true),
            ("Application/JSON;q=0.9,text/event-stream;charset=utf-8", true),
            ("*/*", true),
            ("application/*, text/*", true),
            ("application/json", false),
            ("text/event-stream", false),
            ("application/json, text/event-stream;q=0", false),
            ("application/jsonx, text/event-stream", false),
        ];
        for (accept, expected) in cases {
            assert_eq!(check_accept(&headers(&[(ACCEPT, accept)]), &[JSON, EVENTS]).is_ok(), expected, "{accept}");
        }
        for (written, expected) in [("application/json; charset=utf-8", true), ("text/json", false), ("", false)] {
            assert_eq!(check_content_type(&headers(&[(CONTENT_TYPE, written)])).is_ok(), expected, "{written}");
        }
    }
}
