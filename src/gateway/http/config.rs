//! What the HTTP face is told, checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Authority;
use serde::Deserialize;

use crate::gateway::config::{ConfigError, duration, expand, invalid};

/// A secret that clients present; it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in `text`, without the white space around it.
    ///
    /// # Errors
    /// The text is blank, or holds what cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true if !text.is_empty() => Ok(Self(text.to_owned())),
            _ => Err("must be printable ASCII without spaces, and not empty".to_owned()),
        }
    }

    /// The token in a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no token.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::new(&text).map_err(|reason| format!("{}: {reason}", path.display()))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// A host that clients may name: `host`, `host:port`, or `*` for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRule {
    /// Whatever it is; for a gateway behind a proxy that checks it.
    Any,
    /// This one, in lower case.
    Host {
        /// Name or address, without brackets.
        host: String,
        /// Its port; any when `None`.
        port: Option<u16>,
    },
}

impl HostRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// It is no host.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        // A bare IPv6 address has no brackets.
        let bare = text.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        let text = if bare { format!("[{text}]") } else { text.to_owned() };
        let authority: Authority =
            text.parse().map_err(|error| format!("`{text}` is no host: {error}; write `host` or `host:port`"))?;
        Ok(Self::Host { host: plain_host(&authority), port: authority.port_u16() })
    }

    fn loopback(host: &str) -> Self {
        Self::Host { host: host.to_owned(), port: None }
    }

    pub(super) fn permits(&self, authority: &Authority) -> bool {
        match self {
            Self::Any => true,
            Self::Host { host, port } => {
                *host == plain_host(authority) && port.is_none_or(|port| authority.port_u16() == Some(port))
            }
        }
    }
}

/// The host without brackets, in lower case.
fn plain_host(authority: &Authority) -> String {
    authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// A page that may speak to the gateway: `scheme://host`, `scheme://host:port`, `scheme://host:*`, or `*` for any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginRule {
    /// Whatever it is.
    Any,
    /// Pages of this host.
    Origin {
        /// `http` or `https`.
        scheme: String,
        /// Name or address, without brackets.
        host: String,
        /// Its port; any when `None`.
        port: Option<u16>,
    },
}

impl OriginRule {
    /// Reads a rule.
    ///
    /// # Errors
    /// It is no origin.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (origin, any_port) = text.strip_suffix(":*").map_or((text, false), |origin| (origin, true));
        let (scheme, host, port) = origin_parts(origin)
            .ok_or_else(|| format!("`{text}` is no origin; write `https://host`, with `:port` or `:*` if need be"))?;
        Ok(Self::Origin { scheme, host, port: if any_port { None } else { port } })
    }

    pub(super) fn permits(&self, origin: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Origin { scheme, host, port } => {
                origin_parts(origin).is_some_and(|(its_scheme, its_host, its_port)| {
                    *scheme == its_scheme && *host == its_host && (port.is_none() || *port == its_port)
                })
            }
        }
    }
}

/// Scheme, host and port of an origin; the port that the scheme implies when it names none.
fn origin_parts(origin: &str) -> Option<(String, String, Option<u16>)> {
    let uri: Uri = origin.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let authority = uri.authority()?;
    let implied = match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Some((scheme, plain_host(authority), authority.port_u16().or(implied)))
}

/// How the gateway is served over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpConfig {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What clients must present; nothing when `None`, which is for addresses of this machine only.
    pub token: Option<Token>,
    /// The hosts by which clients may name it. The address at which it listens is always one of them.
    pub allowed_hosts: Vec<HostRule>,
    /// The pages that may speak to it.
    pub allowed_origins: Vec<OriginRule>,
    /// Bytes of a request, at most.
    pub body_limit: usize,
    /// How long the head of a request may take to arrive, and its body; a connection may rest as long between two.
    pub read_timeout: Duration,
    /// How long a session lives without a request.
    pub session_idle: Duration,
    /// Sessions at a time, at most; a new one takes the place of the one that rested longest.
    pub max_sessions: usize,
    /// How long requests have to finish when the gateway ends.
    pub shutdown: Duration,
}

impl Default for HttpConfig {
    fn default() -> Self {
        let origin = |scheme: &str, host: &str| OriginRule::Origin {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: None,
        };
        const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            token: None,
            allowed_hosts: LOOPBACK.into_iter().map(HostRule::loopback).collect(),
            allowed_origins: LOOPBACK
                .into_iter()
                .flat_map(|host| [origin("http", host), origin("https", host)])
                .collect(),
            body_limit: 16 * 1024 * 1024,
            read_timeout: Duration::from_secs(60),
            session_idle: Duration::from_secs(1_800),
            max_sessions: 1_000,
            shutdown: Duration::from_secs(10),
        }
    }
}

/// The block `http` of a file.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::gateway) struct WrittenHttp {
    listen: SocketAddr,
    token: Option<String>,
    token_file: Option<PathBuf>,
    allowed_hosts: Option<Vec<String>>,
    allowed_origins: Option<Vec<String>>,
    body_limit_bytes: usize,
    read_timeout_seconds: f64,
    session_idle_seconds: f64,
    max_sessions: usize,
    shutdown_seconds: f64,
}

impl Default for WrittenHttp {
    fn default() -> Self {
        let HttpConfig { listen, body_limit, read_timeout, session_idle, max_sessions, shutdown, .. } =
            HttpConfig::default();
        Self {
            listen,
            token: None,
            token_file: None,
            allowed_hosts: None,
            allowed_origins: None,
            body_limit_bytes: body_limit,
            read_timeout_seconds: read_timeout.as_secs_f64(),
            session_idle_seconds: session_idle.as_secs_f64(),
            max_sessions,
            shutdown_seconds: shutdown.as_secs_f64(),
        }
    }
}

impl WrittenHttp {
    /// Checks the block; paths are relative to `folder`.
    pub(in crate::gateway) fn check(
        self,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HttpConfig, ConfigError> {
        let bad = |field: &'static str| move |reason: String| invalid(format!("http.{field}"), reason);
        let token = match (self.token, self.token_file) {
            (None, None) => None,
            (Some(text), None) => {
                Some(expand(&text, environment).and_then(|text| Token::new(&text)).map_err(bad("token"))?)
            }
            (None, Some(path)) => Some(Token::read(&folder.join(path)).map_err(bad("token_file"))?),
            (Some(_), Some(_)) => return Err(bad("token")("give either `token` or `token_file`".to_owned())),
        };
        for (field, number) in [("body_limit_bytes", self.body_limit_bytes), ("max_sessions", self.max_sessions)] {
            if number == 0 {
                return Err(bad(field)("must be at least 1".to_owned()));
            }
        }
        let default = HttpConfig::default();
        Ok(HttpConfig {
            listen: self.listen,
            token,
            allowed_hosts: match self.allowed_hosts {
                Some(hosts) => rules(&hosts, HostRule::parse).map_err(bad("allowed_hosts"))?,
                None => default.allowed_hosts,
            },
            allowed_origins: match self.allowed_origins {
                Some(origins) => rules(&origins, OriginRule::parse).map_err(bad("allowed_origins"))?,
                None => default.allowed_origins,
            },
            body_limit: self.body_limit_bytes,
            read_timeout: duration(self.read_timeout_seconds).map_err(bad("read_timeout_seconds"))?,
            session_idle: duration(self.session_idle_seconds).map_err(bad("session_idle_seconds"))?,
            max_sessions: self.max_sessions,
            shutdown: duration(self.shutdown_seconds).map_err(bad("shutdown_seconds"))?,
        })
    }
}

fn rules<T>(texts: &[String], parse: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| parse(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::GatewayConfig;

    fn parse(text: &str) -> Result<HttpConfig, ConfigError> {
        let environment = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        GatewayConfig::parse(text, Path::new("/nowhere"), &environment).map(|config| config.http)
    }

    #[test]
    fn an_empty_block_is_the_default() {
        assert_eq!(parse("http: {}").unwrap(), HttpConfig::default());
        assert_eq!(parse("{}").unwrap(), HttpConfig::default());
    }

    #[test]
    fn a_token_comes_from_the_environment_and_is_not_printed() {
        let config = parse("http: {listen: '[::1]:9', token: '${env:TOKEN}', allowed_hosts: [a:1, '*']}").unwrap();
        assert_eq!(config.token.as_ref().unwrap().text(), "s3cret");
        assert!(!format!("{config:?}").contains("s3cret"));
        assert_eq!(config.allowed_hosts, [HostRule::parse("A:1").unwrap(), HostRule::Any]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("http: {listen: here}", "http"),
            ("http: {port: 1}", "unknown field"),
            ("http: {token: '${env:NO}'}", "http.token: the variable `NO` is not set"),
            ("http: {token: ' '}", "http.token: must be printable"),
            ("http: {token: a, token_file: b}", "http.token: give either"),
            ("http: {token_file: none}", "http.token_file: /nowhere/none"),
            ("http: {allowed_hosts: ['a b']}", "http.allowed_hosts: `a b` is no host"),
            ("http: {allowed_origins: [a.example]}", "http.allowed_origins: `a.example` is no origin"),
            ("http: {max_sessions: 0}", "http.max_sessions: must be at least 1"),
            ("http: {shutdown_seconds: 0}", "http.shutdown_seconds: is 0"),
        ];
        for (text, expected) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn rules_permit_what_they_name() {
        let hosts = [
            ("localhost", "localhost:8080", true),
            ("localhost", "LOCALHOST", true),
            ("localhost:1", "localhost:2", false),
            ("localhost", "localhost.evil.example", false),
            ("::1", "[::1]:80", true),
            ("[::1]:80", "[::1]:80", true),
            ("*", "x", true),
        ];
        for (rule, host, expected) in hosts {
            assert_eq!(HostRule::parse(rule).unwrap().permits(&host.parse().unwrap()), expected, "{rule} {host}");
        }
        let origins = [
            ("https://a.example", "https://a.example", true),
            ("https://a.example", "https://a.example:443", true),
            ("https://a.example", "https://a.example:444", false),
            ("https://a.example:*", "https://a.example:444", true),
            ("https://a.example", "http://a.example", false),
            ("https://a.example", "https://a.example.evil.example", false),
            ("https://a.example", "null", false),
            ("*", "null", true),
        ];
        for (rule, origin, expected) in origins {
            assert_eq!(OriginRule::parse(rule).unwrap().permits(origin), expected, "{rule} {origin}");
        }
    }
}
