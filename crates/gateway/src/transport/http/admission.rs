//! Admission of requests by the host that they name, the page that they come from, and the token or certificate that they
//! present.
//!
//! A page in a browser can have its own name resolved to this machine; the host that its requests name then gives it
//! away, and where it sends `Origin`, that does too.

use std::sync::Arc;

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};

use super::jwt;
use super::oauth::OAuth;
use super::reply::{Lease, Refused};
use super::tls::Certificate;
use crate::config::http::{HostRule, HttpConfig, OriginRule, anyone};
use crate::config::tls::{CertificateName, TlsConfig};
use crate::protocol::headers::JSON;
use crate::session::identity::{Identity, Presented};

/// The checks of a server: hosts, origins, tokens and certificates.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) settings: Settings,
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
    callers: Vec<Known>,
    oauth: Option<Arc<OAuth>>,
    /// By which authorities certificates must have been checked.
    tls: Option<TlsConfig>,
    /// The caller that all clients are where nobody is asked who they are.
    anyone: Option<Known>,
}

/// A caller of the configuration.
#[derive(Debug, Clone)]
struct Known {
    proof: Proof,
    identity: Arc<Identity>,
    /// Streams of the caller end when this does.
    alive: Arc<()>,
}

/// What a caller is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Proof {
    /// The digest of its token: how long a comparison of digests takes tells nothing about what was digested.
    Token([u8; 32]),
    Certificate(CertificateName),
    Nothing,
}

impl Known {
    fn admitted(&self) -> Admitted {
        Admitted {
            identity: Arc::clone(&self.identity),
            lease: Lease { until: None, by: Some(Arc::downgrade(&self.alive)) },
            presented: None,
        }
    }
}

/// A caller that is admitted, and for how long.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) identity: Arc<Identity>,
    pub(super) lease: Lease,
    /// The token of an authorization server that it is known by.
    pub(super) presented: Option<Arc<Presented>>,
}

/// Where whoever runs what listens says whom to admit; messages name no other place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settings {
    /// Options of `mcp serve`, or the section `http` of its configuration.
    Gateway,
    /// Options of `serve`, which has no such section.
    Engines,
}

impl Settings {
    /// What a message ends with, after the option: the field of the configuration, where there is one.
    fn or_in(self, field: &str) -> String {
        match self {
            Self::Gateway => format!(", or in `http.{field}`"),
            Self::Engines => String::new(),
        }
    }
}

impl Admission {
    /// The checks that `config` describes. What is the same as before stays, so that streams go on.
    ///
    /// # Errors
    /// There is no client for HTTP, with which keys could be fetched.
    pub(super) fn new(config: &HttpConfig, settings: Settings, before: Option<&Self>) -> Result<Self, String> {
        let mut hosts = config.allowed_hosts.clone();
        if !config.listen.ip().is_unspecified() {
            hosts.push(HostRule::Host { host: config.listen.ip().to_string(), port: None });
        }
        let known = |proof: Proof, identity: &Arc<Identity>| {
            let earlier = before.into_iter().flat_map(|before| before.callers.iter().chain(&before.anyone));
            let same = earlier.into_iter().find(|known| known.proof == proof && known.identity == *identity);
            same.cloned().unwrap_or_else(|| Known { proof, identity: Arc::clone(identity), alive: Arc::default() })
        };
        let held = config.tokens.iter().map(|held| (Proof::Token(digest(held.token.text())), &held.identity));
        let certified = config.tls.iter().flat_map(|tls| &tls.clients);
        let certified = certified.map(|held| (Proof::Certificate(held.certificate.clone()), &held.identity));
        let oauth = config.oauth.as_ref();
        let oauth =
            oauth.map(|oauth| OAuth::new(oauth, before.and_then(|before| before.oauth.as_ref()))).transpose()?;
        Ok(Self {
            settings,
            hosts,
            origins: config.allowed_origins.clone(),
            callers: held.chain(certified).map(|(proof, identity)| known(proof, identity)).collect(),
            oauth,
            tls: config.tls.clone(),
            anyone: config.is_open().then(|| known(Proof::Nothing, &anyone())),
        })
    }

    /// Who publishes what clients need to know to get a token.
    pub(super) fn oauth(&self) -> Option<&OAuth> {
        self.oauth.as_deref()
    }

    /// Checks the host that a request names and the page that it comes from.
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        // Of two, others on the way may believe the other one.
        if let Some(name) = [HOST, ORIGIN].into_iter().find(|name| headers.get_all(name).iter().nth(1).is_some()) {
            return Err(Refused::text(StatusCode::BAD_REQUEST, format!("the header `{name}` appears twice")));
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = host else {
            return Err(Refused::text(StatusCode::BAD_REQUEST, "the `Host` header is missing or is not a host"));
        };
        if !self.hosts.iter().any(|rule| rule.permits(&host)) {
            let more = self.settings.or_in("allowed_hosts");
            let reason = format!("the host `{host}` is not allowed; allow it with --allowed-host{more}");
            return Err(Refused::text(StatusCode::FORBIDDEN, reason));
        }
        let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
        match self.permits(origin) {
            true => Ok(()),
            false => {
                let more = self.settings.or_in("allowed_origins");
                let reason = format!("the origin is not allowed; allow it with --allowed-origin{more}");
                Err(Refused::text(StatusCode::FORBIDDEN, reason))
            }
        }
    }

    /// Whether the page may speak to the gateway.
    pub(super) fn permits(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.origins.iter().any(|rule| rule.permits(origin)))
    }

    /// Checks what a request shows, a token or the certificate of its connection, and returns whose it is. A token that is
    /// shown must be right, whatever the certificate.
    pub(super) async fn authorize(
        &self,
        headers: &HeaderMap,
        certificate: Option<&Certificate>,
    ) -> Result<Admitted, Refused> {
        let current = certificate.filter(|shown| self.tls.as_ref().is_some_and(|tls| shown.is_current(tls)));
        if let Some(anyone) = &self.anyone {
            let must_show = self.tls.as_ref().is_some_and(|tls| tls.authorities.is_some() && tls.is_required);
            return match must_show && current.is_none() {
                true => {
                    Err(Refused::text(StatusCode::UNAUTHORIZED, "the certificate is no longer accepted; reconnect"))
                }
                false => Ok(anyone.admitted()),
            };
        }
        let refused = || self.oauth.as_ref().map_or_else(Refused::unauthorized, |oauth| oauth.challenge(None));
        let Some(shown) = headers.get(AUTHORIZATION) else {
            let says = |known: &&Known| match (&known.proof, current) {
                (Proof::Certificate(name), Some(certificate)) => certificate.says(name),
                _ => false,
            };
            return self.callers.iter().find(says).map(Known::admitted).ok_or_else(refused);
        };
        let shown = shown.to_str().ok().and_then(|shown| shown.split_once(' '));
        let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = shown.map(|(_, token)| token.trim()).ok_or_else(refused)?;
        let shown = digest(token);
        // All are compared, whichever fits.
        let held = self.callers.iter().fold(None, |held, known| match &known.proof {
            Proof::Token(token) if equal(&shown, token) => Some(known),
            _ => held,
        });
        if let Some(known) = held {
            return Ok(known.admitted());
        }
        match &self.oauth {
            Some(oauth) if jwt::is_like(token) => {
                let permitted = Box::pin(oauth.permit(token)).await?;
                let until = Box::pin(tokio::time::sleep_until(permitted.presented.until));
                let lease = Lease { until: Some(until), by: Some(Arc::downgrade(oauth.alive())) };
                Ok(Admitted { identity: permitted.identity, lease, presented: Some(permitted.presented) })
            }
            Some(oauth) => Err(oauth.challenge(Some(jwt::BadToken::Form))),
            None => Err(Refused::text(StatusCode::UNAUTHORIZED, "the bearer token is not known")
                .with_challenge("Bearer error=\"invalid_token\"".to_owned())),
        }
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
    let unsupported = |reason| Err(Refused::text(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
    if !written.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON) {
        return unsupported(format!("`Content-Type` must be {JSON}"));
    }
    if headers.get_all(CONTENT_ENCODING).iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return unsupported("a body with a `Content-Encoding` is not read; send it as it is".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderName;

    use super::*;
    use crate::config::http::{Token, TokenHolder};
    use crate::protocol::headers::EVENTS;

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
        let admission = Admission::new(&config, Settings::Gateway, None).unwrap();
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
    fn a_refusal_names_the_settings_that_there_are() {
        for (settings, more) in [
            (Settings::Gateway, [", or in `http.allowed_hosts`", ", or in `http.allowed_origins`"]),
            (Settings::Engines, ["", ""]),
        ] {
            let admission = Admission::new(&HttpConfig::default(), settings, None).unwrap();
            let told = |lines: &[(HeaderName, &str)]| admission.admit(&headers(lines)).unwrap_err().reason();
            assert_eq!(
                told(&[(HOST, "evil.example")]),
                format!("the host `evil.example` is not allowed; allow it with --allowed-host{}", more[0])
            );
            assert_eq!(
                told(&[(HOST, "localhost"), (ORIGIN, "http://evil.example")]),
                format!("the origin is not allowed; allow it with --allowed-origin{}", more[1])
            );
            let open = HttpConfig { listen: "0.0.0.0:80".parse().unwrap(), ..HttpConfig::default() };
            let told = super::super::listener::check_exposure(&open, settings).unwrap_err().to_string();
            assert_eq!(
                (told.contains("`http."), told.contains("--callers")),
                (settings == Settings::Gateway, settings == Settings::Engines),
                "{told}"
            );
        }
    }

    #[tokio::test]
    async fn the_token_opens_and_nothing_else() {
        let holder = |token: &str, name: &str| TokenHolder {
            token: Token::new(token).unwrap(),
            identity: Arc::new(Identity { name: name.to_owned(), profile: None }),
        };
        let tokens = vec![holder("s3cret\n", "one"), holder("other", "two")];
        let admission =
            Admission::new(&HttpConfig { tokens, ..HttpConfig::default() }, Settings::Gateway, None).unwrap();
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
            let held = admission.authorize(&headers(&[(AUTHORIZATION, shown)]), None).await.ok();
            assert_eq!(held.as_ref().map(|held| held.identity.name.as_str()), name, "{shown}");
        }
        let nothing = HeaderMap::new();
        assert_eq!(admission.authorize(&nothing, None).await.unwrap_err().status(), StatusCode::UNAUTHORIZED);
        let open = Admission::new(&HttpConfig::default(), Settings::Gateway, None).unwrap();
        assert_eq!(open.authorize(&nothing, None).await.unwrap().identity, anyone());
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
        for (coding, expected) in [("identity", true), ("gzip", false)] {
            let lines = [(CONTENT_TYPE, JSON), (CONTENT_ENCODING, coding)];
            assert_eq!(check_content_type(&headers(&lines)).is_ok(), expected, "{coding}");
        }
    }
}
