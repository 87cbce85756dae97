//! What a configuration says about serving over HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Authority;
use ipnet::IpNet;
use serde::Deserialize;

use super::caller::{CallerBounds, EntryError, check_name};
use super::oauth::{OAuthConfig, OAuthSection};
use super::tls::{TlsConfig, TlsSection};
use crate::common::masks::LARGEST_SECRET;
use crate::common::settings::{FieldError, duration, expand};
use crate::session::identity::Identity;
use contextweaver_core::files::{ReadError, read_text_file};

/// A secret that clients present; it is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in `text`, without the white space around it.
    ///
    /// # Errors
    /// The text is blank, or holds what cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true if !text.is_empty() => Ok(Self(text.to_owned())),
            _ => Err(TokenError::Unprintable),
        }
    }

    /// The token in a file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = read_text_file(path, LARGEST_SECRET)?;
        Self::new(&text).map_err(|error| TokenError::File { path: path.to_owned(), error: Box::new(error) })
    }

    /// The text of the secret.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// A text or file holds no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The text is blank, or holds what cannot stand in a header.
    #[error("must be printable ASCII without spaces, and not empty")]
    Unprintable,
    /// The file cannot be read, or is too large for a token.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The content of the file is not a token.
    #[error("{}: {error}", path.display())]
    File {
        /// The file with the content.
        path: PathBuf,
        /// What is wrong with its content.
        error: Box<TokenError>,
    },
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// A token, and who its holder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    /// The token that the holder presents.
    pub token: Token,
    /// The client that presents it.
    pub identity: Arc<Identity>,
}

impl TokenHolder {
    /// The holder of the only token, which all clients share.
    #[must_use]
    pub fn anyone(token: Token) -> Self {
        Self { token, identity: anyone() }
    }
}

/// The identity of clients without names of their own: quotas are counted for all of them together.
pub(crate) fn anyone() -> Arc<Identity> {
    Arc::new(Identity { name: "http".to_owned(), profile: None })
}

/// A rule about hosts, origins or proxies cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RuleError {
    /// The text is not a host.
    #[error("`{text}` is not a host: {reason}; write `host` or `host:port`")]
    Host {
        /// The text that was written as a host.
        text: String,
        /// Why it cannot be parsed.
        reason: hyper::http::uri::InvalidUri,
    },
    /// The text is not an origin.
    #[error("`{text}` is not an origin; write `https://host`, with `:port` or `:*` if needed")]
    Origin {
        /// The text that was written as an origin.
        text: String,
    },
    /// The text is neither an address nor a network.
    #[error("`{text}` is not an address or a network; write `192.0.2.1` or `192.0.2.0/24`")]
    Proxy {
        /// The text that was written as an address or a network.
        text: String,
    },
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
    /// Reads a rule about hosts.
    ///
    /// # Errors
    /// The text is not a host.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        // A bare IPv6 address has no brackets.
        let bare = text.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6());
        let text = if bare { format!("[{text}]") } else { text.to_owned() };
        let authority: Authority = text.parse().map_err(|reason| RuleError::Host { text: text.clone(), reason })?;
        Ok(Self::Host { host: plain_host(&authority), port: authority.port_u16() })
    }

    fn loopback(host: &str) -> Self {
        Self::Host { host: host.to_owned(), port: None }
    }

    pub(crate) fn permits(&self, authority: &Authority) -> bool {
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
    /// Pages of any origin.
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
    /// Reads a rule about origins.
    ///
    /// # Errors
    /// The text is not an origin.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (origin, any_port) = text.strip_suffix(":*").map_or((text, false), |origin| (origin, true));
        let (scheme, host, port) = origin_parts(origin).ok_or_else(|| RuleError::Origin { text: text.to_owned() })?;
        Ok(Self::Origin { scheme, host, port: if any_port { None } else { port } })
    }

    pub(crate) fn permits(&self, origin: &str) -> bool {
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

/// A proxy whose word about the address of a client is taken: an address, or a network as in `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyRule(IpNet);

impl ProxyRule {
    /// Reads a rule about proxies.
    ///
    /// # Errors
    /// The text is neither an address nor a network.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let bad = || RuleError::Proxy { text: text.to_owned() };
        // `IpNet` would read `010.0.0.0` too, whose first number others take for an octal one.
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let all = IpNet::from(address).prefix_len();
        let bits: u8 = bits.map_or(Ok(all), str::parse).map_err(|_| bad())?;
        let canonical = address.to_canonical();
        // An address of IPv4 in the form of IPv6 has 96 bits in front.
        let before = if canonical.is_ipv4() { all - 32 } else { 0 };
        let network = bits.checked_sub(before).and_then(|bits| IpNet::new(canonical, bits).ok());
        Ok(Self(network.ok_or_else(bad)?.trunc()))
    }

    /// Whether the address is that of the proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

/// How the gateway is served over HTTP.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpConfig {
    /// The address to listen at.
    pub listen: SocketAddr,
    /// What clients must present, one of these; nothing when there are none, which is for addresses of this machine
    /// only.
    pub tokens: Vec<TokenHolder>,
    /// What callers are held to, by their names in `tokens`. When it is empty, clients with the same token are told apart by
    /// their hosts. Only an [`ApiServer`](crate::ApiServer) uses it.
    pub callers: BTreeMap<String, CallerBounds>,
    /// The proxies whose `X-Forwarded-For` names the host of a client. Only an [`ApiServer`](crate::ApiServer) uses hosts.
    pub trusted_proxies: Vec<ProxyRule>,
    /// The certificate that it shows, and those of clients; it speaks in clear when `None`.
    pub tls: Option<TlsConfig>,
    /// The authorization server whose tokens are taken too.
    pub oauth: Option<OAuthConfig>,
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
    /// Sessions at a time, at most.
    pub max_sessions: usize,
    /// Sessions of one caller at a time, at most; a new one replaces the one of the same caller that was idle longest.
    /// An equal share of all sessions for each token when `None`.
    pub max_sessions_per_caller: Option<usize>,
    /// Requests of one caller that are served at a time, at most.
    pub max_requests_per_caller: usize,
    /// Bytes of the requests that are served at a time, of all callers together, at most; one caller has half of them.
    pub max_bytes_in_flight: usize,
    /// Connections from one address at a time, at most; never more than half of all.
    pub max_connections_per_address: usize,
    /// Bytes of results that one session remembers, to refer to them; it forgets them all when there are more.
    pub session_memory: usize,
    /// Bytes of results that all sessions remember together; those that were used least recently forget theirs.
    pub sessions_memory: usize,
    /// How long requests have to finish when the gateway ends.
    pub shutdown: Duration,
    /// After how long without an answer the stream of a request is opened: nobody on the way then takes the connection for
    /// a dead one, and the client has an event that it can take the stream up after.
    pub stream_after: Duration,
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
            callers: BTreeMap::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            oauth: None,
            allowed_hosts: LOOPBACK.into_iter().map(HostRule::loopback).collect(),
            allowed_origins: LOOPBACK
                .into_iter()
                .flat_map(|host| [origin("http", host), origin("https", host)])
                .collect(),
            body_limit: 16 * 1024 * 1024,
            read_timeout: Duration::from_secs(60),
            session_idle: Duration::from_secs(1_800),
            max_sessions: 1_000,
            max_sessions_per_caller: None,
            max_requests_per_caller: 256,
            max_bytes_in_flight: 256 << 20,
            max_connections_per_address: 1_024,
            session_memory: 4 << 20,
            sessions_memory: 64 << 20,
            shutdown: Duration::from_secs(10),
            stream_after: Duration::from_secs(10),
        }
    }
}

impl HttpConfig {
    /// Callers of an authorization server are not counted beforehand: each may have what it would have if there were so
    /// many.
    const OAUTH_CALLERS: usize = 16;

    /// Sessions that one caller may have at a time.
    pub(crate) fn sessions_of_one(&self) -> usize {
        let certified = self.tls.as_ref().map_or(0, |tls| tls.clients.len());
        let unknown = if self.oauth.is_some() { Self::OAUTH_CALLERS } else { 1 };
        let share = (self.max_sessions / (self.tokens.len() + certified).max(unknown)).max(1);
        self.max_sessions_per_caller.unwrap_or(share).min(self.max_sessions)
    }

    /// Bytes of the requests of one caller that are served at a time, at most: one request is always taken.
    pub(crate) fn bytes_of_one(&self) -> usize {
        (self.max_bytes_in_flight / 2).max(self.body_limit)
    }

    /// What the caller of this name is held to; `None` where callers are told apart by their hosts.
    pub(crate) fn bounds_of(&self, name: &str) -> Option<CallerBounds> {
        (!self.callers.is_empty()).then(|| self.callers.get(name).copied().unwrap_or_default())
    }

    /// Whether who shows nothing is served.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_empty() && self.oauth.is_none() && self.tls.as_ref().is_none_or(|tls| tls.clients.is_empty())
    }

    /// Whether anybody may connect and is served: neither a token nor a certificate is asked for.
    pub(crate) fn is_for_everybody(&self) -> bool {
        self.is_open() && !self.tls.as_ref().is_some_and(|tls| tls.authorities.is_some() && tls.is_required)
    }

    /// The visibility profiles that callers have, each with the field that names it.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let held = self.tokens.iter().filter_map(|holder| Some(("http.tokens", holder.identity.profile.as_deref()?)));
        let certified = self.tls.iter().flat_map(|tls| &tls.clients);
        let certified = certified.filter_map(|holder| Some(("http.tls.clients", holder.identity.profile.as_deref()?)));
        let permitted = self.oauth.iter().flat_map(|oauth| &oauth.scopes);
        let permitted = permitted.filter_map(|rule| Some(("http.oauth.scopes", rule.profile.as_deref()?)));
        held.chain(certified).chain(permitted)
    }
}

/// An entry of `http.tokens`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenEntry {
    pub(super) name: String,
    pub(super) token: Option<String>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) profile: Option<String>,
}

impl TokenEntry {
    fn checked(self, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<TokenHolder, EntryError> {
        check_name(&self.name)?;
        let token = token_of(self.token, self.token_file, folder, environment).map_err(EntryError::Token)?;
        let token = token.ok_or_else(|| EntryError::NoToken(self.name.clone()))?;
        Ok(TokenHolder { token, identity: Arc::new(Identity { name: self.name, profile: self.profile }) })
    }
}

/// The token that `text` holds after its variables are replaced, or that `file` holds; `None` without either.
///
/// # Errors
/// The field `token` or `token_file` and what is wrong with it.
fn token_of(
    text: Option<String>,
    file: Option<PathBuf>,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Token>, FieldError> {
    match (text, file) {
        (None, None) => Ok(None),
        (Some(text), None) => {
            let text = expand(&text, environment).map_err(|error| FieldError::new("token", error))?;
            Token::new(&text).map(Some).map_err(|error| FieldError::new("token", error))
        }
        (None, Some(path)) => {
            Token::read(&folder.join(path)).map(Some).map_err(|error| FieldError::new("token_file", error))
        }
        (Some(_), Some(_)) => Err(FieldError::new("token", "give either `token` or `token_file`")),
    }
}

/// The holders of tokens that the list `field` names; no two have the same name, or the same token.
///
/// # Errors
/// The entry that cannot be used, and why.
pub(super) fn holders(
    field: &str,
    entries: Vec<TokenEntry>,
    folder: &Path,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<TokenHolder>, FieldError> {
    let mut holders: Vec<TokenHolder> = Vec::with_capacity(entries.len());
    for (number, entry) in entries.into_iter().enumerate() {
        let bad = |error: EntryError| FieldError::new(format!("{field}[{number}]"), error);
        let holder = entry.checked(folder, environment).map_err(bad)?;
        let name = &holder.identity.name;
        if holders.iter().any(|other| other.identity.name == *name) {
            return Err(bad(EntryError::SameName(name.clone())));
        }
        if let Some(other) = holders.iter().find(|other| other.token == holder.token) {
            return Err(bad(EntryError::SameToken(name.clone(), other.identity.name.clone())));
        }
        holders.push(holder);
    }
    Ok(holders)
}

/// The section `http` of a configuration file, before it is checked.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct HttpSection {
    listen: SocketAddr,
    token: Option<String>,
    token_file: Option<PathBuf>,
    tokens: Vec<TokenEntry>,
    tls: Option<TlsSection>,
    oauth: Option<OAuthSection>,
    allowed_hosts: Option<Vec<String>>,
    allowed_origins: Option<Vec<String>>,
    body_limit_bytes: usize,
    read_timeout_seconds: f64,
    session_idle_seconds: f64,
    max_sessions: usize,
    max_sessions_per_caller: Option<usize>,
    max_requests_per_caller: usize,
    max_bytes_in_flight: usize,
    max_connections_per_address: usize,
    session_memory_bytes: usize,
    sessions_memory_bytes: usize,
    shutdown_seconds: f64,
    stream_after_seconds: f64,
}

impl Default for HttpSection {
    fn default() -> Self {
        let HttpConfig { listen, body_limit, read_timeout, session_idle, shutdown, stream_after, .. } =
            HttpConfig::default();
        let HttpConfig { max_sessions, max_sessions_per_caller, max_requests_per_caller, .. } = HttpConfig::default();
        let HttpConfig { max_connections_per_address, session_memory, sessions_memory, .. } = HttpConfig::default();
        let HttpConfig { max_bytes_in_flight, .. } = HttpConfig::default();
        Self {
            listen,
            token: None,
            token_file: None,
            tokens: Vec::new(),
            tls: None,
            oauth: None,
            allowed_hosts: None,
            allowed_origins: None,
            body_limit_bytes: body_limit,
            read_timeout_seconds: read_timeout.as_secs_f64(),
            session_idle_seconds: session_idle.as_secs_f64(),
            max_sessions,
            max_sessions_per_caller,
            max_requests_per_caller,
            max_bytes_in_flight,
            max_connections_per_address,
            session_memory_bytes: session_memory,
            sessions_memory_bytes: sessions_memory,
            shutdown_seconds: shutdown.as_secs_f64(),
            stream_after_seconds: stream_after.as_secs_f64(),
        }
    }
}

impl HttpSection {
    /// The checked configuration; paths are relative to `folder`.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(super) fn checked(
        self,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HttpConfig, FieldError> {
        self.fields(folder, environment).map_err(|error| error.under("http"))
    }

    fn fields(self, folder: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<HttpConfig, FieldError> {
        let token = token_of(self.token, self.token_file, folder, environment)?;
        let tokens = match (token, self.tokens) {
            (Some(_), several) if !several.is_empty() => {
                return Err(FieldError::new("tokens", "give either `tokens`, or one `token` or `token_file`"));
            }
            (Some(token), _) => vec![TokenHolder::anyone(token)],
            (None, several) => holders("tokens", several, folder, environment)?,
        };
        let tls = self.tls.map(|tls| tls.checked(folder).map_err(|error| error.under("tls"))).transpose()?;
        let oauth = self.oauth.map(|oauth| oauth.checked().map_err(|error| error.under("oauth"))).transpose()?;
        let certified = tls.iter().flat_map(|tls| &tls.clients).map(|holder| &holder.identity);
        let named = tokens.iter().map(|holder| &holder.identity).chain(certified);
        let mut names = std::collections::BTreeSet::new();
        if let Some(twice) = named.map(|identity| &identity.name).find(|name| !names.insert(name.as_str())) {
            // Two entries of one name could have two profiles.
            let error = EntryError::SameName(twice.clone());
            return Err(FieldError::new("tls.clients", error));
        }
        for (field, number) in [
            ("body_limit_bytes", self.body_limit_bytes),
            ("max_sessions", self.max_sessions),
            ("max_sessions_per_caller", self.max_sessions_per_caller.unwrap_or(1)),
            ("max_requests_per_caller", self.max_requests_per_caller),
            ("max_bytes_in_flight", self.max_bytes_in_flight),
            ("max_connections_per_address", self.max_connections_per_address),
        ] {
            if number == 0 {
                return Err(FieldError::new(field, "must be at least 1"));
            }
        }
        if self.max_bytes_in_flight < self.body_limit_bytes {
            let reason = format!("is less than `body_limit_bytes`, which is {}", self.body_limit_bytes);
            return Err(FieldError::new("max_bytes_in_flight", reason));
        }
        let wait = |field: &'static str, seconds: f64| duration(seconds).map_err(|error| FieldError::new(field, error));
        let default = HttpConfig::default();
        Ok(HttpConfig {
            listen: self.listen,
            tokens,
            callers: default.callers,
            trusted_proxies: default.trusted_proxies,
            tls,
            oauth,
            allowed_hosts: match self.allowed_hosts {
                Some(hosts) => rules("allowed_hosts", &hosts, HostRule::parse)?,
                None => default.allowed_hosts,
            },
            allowed_origins: match self.allowed_origins {
                Some(origins) => rules("allowed_origins", &origins, OriginRule::parse)?,
                None => default.allowed_origins,
            },
            body_limit: self.body_limit_bytes,
            read_timeout: wait("read_timeout_seconds", self.read_timeout_seconds)?,
            session_idle: wait("session_idle_seconds", self.session_idle_seconds)?,
            max_sessions: self.max_sessions,
            max_sessions_per_caller: self.max_sessions_per_caller,
            max_requests_per_caller: self.max_requests_per_caller,
            max_bytes_in_flight: self.max_bytes_in_flight,
            max_connections_per_address: self.max_connections_per_address,
            session_memory: self.session_memory_bytes,
            sessions_memory: self.sessions_memory_bytes,
            shutdown: wait("shutdown_seconds", self.shutdown_seconds)?,
            stream_after: wait("stream_after_seconds", self.stream_after_seconds)?,
        })
    }
}

fn rules<T>(field: &str, texts: &[String], parse: fn(&str) -> Result<T, RuleError>) -> Result<Vec<T>, FieldError> {
    texts.iter().map(|text| parse(text).map_err(|error| FieldError::new(field, error))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::error::ConfigError;
    use crate::config::file::GatewayConfig;

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
            (
                "http: {tokens: [{name: b, token: c}, {name: d, token: c}]}",
                "http.tokens[1]: `d` has the same token as \
                                                                            `b`",
            ),
            ("http: {tokens: [{name: b, token: c, profile: p}]}", "http.tokens: there is no `p` under"),
            ("http: {token_file: none}", "http.token_file: /nowhere/none"),
            ("http: {allowed_hosts: ['a b']}", "http.allowed_hosts: `a b` is not a host"),
            ("http: {allowed_origins: [a.example]}", "http.allowed_origins: `a.example` is not an origin"),
            ("http: {max_sessions: 0}", "http.max_sessions: must be at least 1"),
            ("http: {max_sessions_per_caller: 0}", "http.max_sessions_per_caller: must be at least 1"),
            ("http: {max_requests_per_caller: 0}", "http.max_requests_per_caller: must be at least 1"),
            ("http: {max_connections_per_address: 0}", "http.max_connections_per_address: must be at least 1"),
            ("http: {max_bytes_in_flight: 0}", "http.max_bytes_in_flight: must be at least 1"),
            ("http: {max_bytes_in_flight: 9, body_limit_bytes: 10}", "http.max_bytes_in_flight: is less than"),
            ("http: {shutdown_seconds: 0}", "http.shutdown_seconds: is 0"),
            ("http: {stream_after_seconds: -1}", "http.stream_after_seconds: is -1"),
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
        let proxies = [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("::ffff:192.0.2.0/120", "192.0.2.9", true),
            ("::ffff:192.0.2.0/120", "192.0.3.9", false),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.1.2.3/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "a00::", false),
            ("192.0.2.128/25", "192.0.2.127", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "192.0.2.1", false),
            ("2001:db8::1", "2001:db8::1", true),
            ("2001:db8::1", "2001:db8::2", false),
            ("2001:db8:1::/48", "2001:db8:1:ffff::1", true),
            ("2001:db8:1::/48", "2001:db8:2::1", false),
        ];
        for (rule, address, expected) in proxies {
            let trusts = ProxyRule::parse(rule).unwrap().trusts(address.parse().unwrap());
            assert_eq!(trusts, expected, "{rule} {address}");
        }
        let no_proxies = [
            "",
            "*",
            "proxy.example",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "10.0.0/8",
            "010.0.0.0/8",
            "::/129",
            "::ffff:192.0.2.0/95",
            "10.0.0.1:80",
        ];
        for text in no_proxies {
            let expected = format!("`{text}` is not an address or a network; write `192.0.2.1` or `192.0.2.0/24`");
            assert_eq!(ProxyRule::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
