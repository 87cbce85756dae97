//! What the HTTP face is told, checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Authority;
use serde::Deserialize;

use crate::gateway::config::{ConfigError, duration, expand, invalid};
use crate::gateway::session::Identity;

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

/// A token, and who its holder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// What is presented.
    pub token: Token,
    /// Who presents it.
    pub identity: Arc<Identity>,
}

impl TokenHolder {
    /// Everyone who holds the only token.
    #[must_use]
    pub fn anyone(token: Token) -> Self {
        Self { token, identity: anyone() }
    }
}

/// Who a client is that has no name of its own: quotas are counted for all such clients together.
pub(super) fn anyone() -> Arc<Identity> {
    Arc::new(Identity { name: "http".to_owned(), profile: None })
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
    /// What clients must present, one of these; nothing when there are none, which is for addresses of this machine
    /// only.
    pub tokens: Vec<TokenHolder>,
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
            tokens: Vec::new(),
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

/// An entry of `http.tokens`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    token: Option<String>,
    token_file: Option<PathBuf>,
    profile: Option<String>,
}

impl WrittenToken {
    fn check(self, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<TokenHolder, String> {
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(format!("the name `{}` must be 1 to {LONGEST_NAME} printable ASCII characters", self.name));
        }
        let token = token_of(self.token, self.token_file, folder, environment).map_err(|(_, reason)| reason)?;
        let token = token.ok_or_else(|| format!("`{}` has neither `token` nor `token_file`", self.name))?;
        Ok(TokenHolder { token, identity: Arc::new(Identity { name: self.name, profile: self.profile }) })
    }
}

/// Characters of the name of a token's holder, at most.
const LONGEST_NAME: usize = 64;

/// The token that is written, or in the file; the field that is wrong, and why.
fn token_of(
    text: Option<String>,
    file: Option<PathBuf>,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Token>, (&'static str, String)> {
    match (text, file) {
        (None, None) => Ok(None),
        (Some(text), None) => {
            let token = expand(&text, environment).and_then(|text| Token::new(&text));
            token.map(Some).map_err(|reason| ("token", reason))
        }
        (None, Some(path)) => Token::read(&folder.join(path)).map(Some).map_err(|reason| ("token_file", reason)),
        (Some(_), Some(_)) => Err(("token", "give either `token` or `token_file`".to_owned())),
    }
}

/// The holders of tokens; no two have one name, or one token.
fn holders(
    written: Vec<WrittenToken>,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<TokenHolder>, ConfigError> {
    let mut holders: Vec<TokenHolder> = Vec::with_capacity(written.len());
    for (number, entry) in written.into_iter().enumerate() {
        let bad = |reason: String| invalid(format!("http.tokens[{number}]"), reason);
        let holder = entry.check(folder, environment).map_err(bad)?;
        let name = &holder.identity.name;
        if holders.iter().any(|other| other.identity.name == *name) {
            return Err(bad(format!("there is another entry of the name `{name}`")));
        }
        if let Some(other) = holders.iter().find(|other| other.token == holder.token) {
            return Err(bad(format!("`{name}` has the token of `{}`; give each its own", other.identity.name)));
        }
        holders.push(holder);
    }
    Ok(holders)
}

/// The block `http` of a file.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(in crate::gateway) struct WrittenHttp {
    listen: SocketAddr,
    token: Option<String>,
    token_file: Option<PathBuf>,
    tokens: Vec<WrittenToken>,
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
            tokens: Vec::new(),
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
        let token = token_of(self.token, self.token_file, folder, environment)
            .map_err(|(field, reason)| invalid(format!("http.{field}"), reason))?;
        let tokens = match (token, self.tokens) {
            (Some(_), several) if !several.is_empty() => {
                let reason = "give either `tokens`, or one `token` or `token_file`";
                return Err(bad("tokens")(reason.to_owned()));
            }
            (Some(token), _) => vec![TokenHolder::anyone(token)],
            (None, several) => holders(several, folder, environment)?,
        };
        for (field, number) in [("body_limit_bytes", self.body_limit_bytes), ("max_sessions", self.max_sessions)] {
            if number == 0 {
                return Err(bad(field)("must be at least 1".to_owned()));
            }
        }
        let default = HttpConfig::default();
        Ok(HttpConfig {
            listen: self.listen,
            tokens,
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
        assert_eq!(config.tokens, [TokenHolder::anyone(Token::new("s3cret").unwrap())]);
        assert!(!format!("{config:?}").contains("s3cret"));
        assert_eq!(config.allowed_hosts, [HostRule::parse("A:1").unwrap(), HostRule::Any]);
    }

    #[test]
    fn tokens_have_names_and_profiles() {
        let config = parse(
            "{visibility_profiles: {reader: {}}, \
             http: {tokens: [{name: a, token: '${env:TOKEN}', profile: reader}, {name: b, token: t}]}}",
        )
        .unwrap();
        let known: Vec<(&str, &str, Option<&str>)> = config
            .tokens
            .iter()
            .map(|holder| (holder.token.text(), holder.identity.name.as_str(), holder.identity.profile.as_deref()))
            .collect();
        assert_eq!(known, [("s3cret", "a", Some("reader")), ("t", "b", None)]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let cases = [
            ("http: {listen: here}", "`listen`: invalid socket address"),
            ("http: {port: 1}", "unknown field"),
            ("http: {token: '${env:NO}'}", "http.token: the variable `NO` is not set"),
            ("http: {token: ' '}", "http.token: must be printable"),
            ("http: {token: a, token_file: b}", "http.token: give either"),
            ("http: {token: a, tokens: [{name: b, token: c}]}", "http.tokens: give either"),
            ("http: {tokens: [{name: b}]}", "http.tokens[0]: `b` has neither"),
            ("http: {tokens: [{name: '', token: c}]}", "http.tokens[0]: the name `` must be"),
            ("http: {tokens: [{name: b, token: '${env:NO}'}]}", "http.tokens[0]: the variable `NO` is not set"),
            ("http: {tokens: [{name: b, token: c}, {name: b, token: d}]}", "http.tokens[1]: there is another"),
            ("http: {tokens: [{name: b, token: c}, {name: d, token: c}]}", "http.tokens[1]: `d` has the token of `b`"),
            ("http: {tokens: [{name: b, token: c, profile: p}]}", "http.tokens: there is no `p` under"),
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
