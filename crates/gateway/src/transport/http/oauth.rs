//! The gateway as an OAuth 2.1 resource server, as the authorization section of MCP has it: what is published about it
//! (RFC 9728), and whose tokens are taken.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::{Response, StatusCode, Uri};
use serde_json::json;
use tokio::time::Instant;

use super::jwt::{self, BadToken, Claims};
use super::keys::Keys;
use super::reply::{Refused, Reply, whole};
use crate::common::secret::Secret;
use crate::config::oauth::OAuthConfig;
use crate::protocol::headers::JSON;
use crate::session::identity::{Identity, Presented};

/// Where clients find what they need to know to get a token.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The tokens of an authorization server.
#[derive(Debug)]
pub(super) struct OAuth {
    config: OAuthConfig,
    keys: Arc<Keys>,
    /// What is published about the gateway.
    metadata: String,
    /// The path of the endpoint, as clients know it.
    path: String,
    /// Where the metadata is, for challenges.
    metadata_url: String,
    /// Streams of callers with its tokens end when this does.
    alive: Arc<()>,
}

/// A caller that has shown a token.
#[derive(Debug)]
pub(super) struct Permitted {
    pub(super) identity: Arc<Identity>,
    /// The token, with when it expires.
    pub(super) presented: Arc<Presented>,
}

impl OAuth {
    /// Takes the tokens that `config` describes; what was there before stays where nothing of it has changed. Where the issuer
    /// is the same its keys stay, and are good until those of another address are there.
    ///
    /// # Errors
    /// There is no client for HTTP.
    pub(super) fn new(config: &OAuthConfig, before: Option<&Arc<Self>>) -> Result<Arc<Self>, String> {
        if let Some(same) = before.filter(|before| before.config == *config) {
            return Ok(Arc::clone(same));
        }
        let keys = match before.filter(|before| before.config.issuer == config.issuer) {
            Some(before) if before.config.jwks_url == config.jwks_url => Arc::clone(&before.keys),
            before => Keys::of(config, before.map(|before| &*before.keys))?,
        };
        Ok(Arc::new(Self::with_keys(config, keys)))
    }

    /// What lives as long as its tokens are taken.
    pub(super) fn alive(&self) -> &Arc<()> {
        &self.alive
    }

    pub(super) fn with_keys(config: &OAuthConfig, keys: Arc<Keys>) -> Self {
        let scopes: Vec<&str> = config.scopes.iter().map(|rule| rule.scope.as_str()).collect();
        let mut metadata = json!({
            "resource": config.resource,
            "authorization_servers": [config.issuer],
            "bearer_methods_supported": ["header"],
        });
        if !scopes.is_empty() {
            metadata["scopes_supported"] = scopes.into();
        }
        let url = config.resource.parse::<Uri>().unwrap_or_default();
        let path = url.path().trim_end_matches('/').to_owned();
        let scheme = url.scheme_str().unwrap_or("https");
        let host = url.authority().map_or("", |authority| authority.as_str());
        let metadata_url = format!("{scheme}://{host}{WELL_KNOWN}{path}");
        Self { config: config.clone(), keys, metadata: metadata.to_string(), path, metadata_url, alive: Arc::default() }
    }

    /// What is published at a path; `None` when nothing is.
    pub(super) fn published(&self, path: &str) -> Option<Response<Reply>> {
        let rest = path.strip_prefix(WELL_KNOWN)?;
        (rest.is_empty() || rest == self.path).then(|| whole(StatusCode::OK, JSON, self.metadata.clone()))
    }

    /// Checks a token; keys that may be newer are looked for once.
    ///
    /// # Errors
    /// The token is not taken (401), permits nothing here (403), or nobody knows (503).
    pub(super) async fn permit(&self, token: &str) -> Result<Permitted, Refused> {
        let begun = Instant::now();
        let mut checked = self.check(token);
        let may_change = |checked: &Result<_, BadToken>| checked.as_ref().is_err_and(|bad| bad.may_be_of_a_newer_key());
        if checked.as_ref().is_none_or(may_change) {
            self.keys.renew(begun).await;
            checked = self.check(token);
        }
        let Some(checked) = checked else {
            if let Some(error) = self.keys.fault() {
                tracing::debug!(%error, "no keys to check a token with");
            }
            let reason = "the keys of the authorization server cannot be fetched; try again later";
            return Err(Refused::text(StatusCode::SERVICE_UNAVAILABLE, reason));
        };
        let claims = checked.map_err(|bad| self.challenge(Some(bad)))?;
        let profile = self.profile_of(&claims)?;
        // The issuer has no space in it, and names in the configuration have none: no two callers are called alike.
        let name = format!("{} {}", self.config.issuer, claims.subject);
        let presented = Presented {
            token: Secret::new(token),
            issuer: self.config.issuer.clone(),
            audiences: claims.audiences,
            until: begun + claims.left,
        };
        Ok(Permitted { identity: Arc::new(Identity { name, profile }), presented: Arc::new(presented) })
    }

    fn check(&self, token: &str) -> Option<Result<Claims, BadToken>> {
        let known = self.keys.known()?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::MAX);
        Some(jwt::check(token, &known.0, &self.config, now))
    }

    /// The profile of the first scope that the token has.
    fn profile_of(&self, claims: &Claims) -> Result<Option<String>, Refused> {
        let rules = &self.config.scopes;
        if rules.is_empty() {
            return Ok(None);
        }
        match rules.iter().find(|rule| claims.scopes.contains(&rule.scope)) {
            Some(rule) => Ok(rule.profile.clone()),
            None => {
                let reason = "the token has none of the scopes that permit something here";
                let challenge = format!("Bearer error=\"insufficient_scope\", {}", self.hints());
                Err(Refused::text(StatusCode::FORBIDDEN, reason).with_challenge(challenge))
            }
        }
    }

    /// Refuses for want of a token, or because of one.
    pub(super) fn challenge(&self, bad: Option<BadToken>) -> Refused {
        match bad {
            None => Refused::unauthorized().with_challenge(format!("Bearer {}", self.hints())),
            Some(bad) => {
                let challenge =
                    format!("Bearer error=\"invalid_token\", error_description=\"{bad}\", {}", self.hints());
                Refused::text(StatusCode::UNAUTHORIZED, bad.to_string()).with_challenge(challenge)
            }
        }
    }

    /// Where to get a token, and for what.
    fn hints(&self) -> String {
        let scopes: Vec<&str> = self.config.scopes.iter().map(|rule| rule.scope.as_str()).collect();
        let scope = if scopes.is_empty() { String::new() } else { format!(", scope=\"{}\"", scopes.join(" ")) };
        format!("resource_metadata=\"{}\"{scope}", self.metadata_url)
    }
}
