//! What a configuration says about callers with tokens of an OAuth authorization server.

use std::time::Duration;

use hyper::Uri;
use serde::Deserialize;

use crate::common::settings::{FieldError, is_loopback};

/// The section `http.oauth`, checked: whose tokens are taken, and what they permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The authorization server, as its tokens name it.
    pub issuer: String,
    /// The address of this gateway's endpoint, as clients know it.
    pub resource: String,
    /// What tokens for this gateway name as their audience.
    pub audience: String,
    /// Where the keys of the issuer are; the issuer's metadata says it when `None`.
    pub jwks_url: Option<String>,
    /// What scopes permit: the first that a token has decides. Every token of the issuer is taken when there are none.
    pub scopes: Vec<ScopeRule>,
    /// The signatures that are taken.
    pub algorithms: Vec<Algorithm>,
    /// How far the clocks of issuer and gateway may differ.
    pub leeway: Duration,
}

/// What a scope permits.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeRule {
    /// The scope, as tokens name it.
    pub scope: String,
    /// The visibility profile of callers with the scope; the profile of all clients when `None`.
    pub profile: Option<String>,
}

/// A signature of tokens. None is made with a secret that issuer and gateway share: whoever checks such a token could make
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Algorithm {
    /// RSA, PKCS #1, with SHA-256.
    Rs256,
    /// RSA, PKCS #1, with SHA-384.
    Rs384,
    /// RSA, PKCS #1, with SHA-512.
    Rs512,
    /// RSA, PSS, with SHA-256.
    Ps256,
    /// RSA, PSS, with SHA-384.
    Ps384,
    /// RSA, PSS, with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

impl Algorithm {
    /// Its name in the head of a token.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// The section `http.oauth` of a configuration file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OAuthSection {
    issuer: String,
    resource: String,
    audience: Option<String>,
    jwks_url: Option<String>,
    #[serde(default)]
    scopes: Vec<ScopeRule>,
    #[serde(default = "usual_algorithms")]
    algorithms: Vec<Algorithm>,
    #[serde(default = "usual_leeway")]
    leeway_seconds: f64,
}

fn usual_algorithms() -> Vec<Algorithm> {
    vec![Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::EdDsa]
}

fn usual_leeway() -> f64 {
    30.0
}

/// The largest difference of clocks that may be permitted, in seconds.
const LARGEST_LEEWAY: f64 = 300.0;

impl OAuthSection {
    /// The checked configuration.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(super) fn checked(self) -> Result<OAuthConfig, FieldError> {
        check_url("issuer", &self.issuer, true)?;
        check_url("resource", &self.resource, false)?;
        if let Some(url) = &self.jwks_url {
            check_url("jwks_url", url, true)?;
        }
        let audience = self.audience.unwrap_or_else(|| self.resource.clone());
        if audience.is_empty() {
            return Err(FieldError::new("audience", "must not be empty: tokens meant for others would be accepted"));
        }
        if self.algorithms.is_empty() {
            return Err(FieldError::new("algorithms", "must name at least one"));
        }
        for (number, rule) in self.scopes.iter().enumerate() {
            // What RFC 6749 permits in a scope.
            let is_scope = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
            if rule.scope.is_empty() || !rule.scope.bytes().all(is_scope) {
                let reason = format!("`{}` is not a scope; write one word", rule.scope);
                return Err(FieldError::new(format!("scopes[{number}].scope"), reason));
            }
            if self.scopes[..number].iter().any(|other| other.scope == rule.scope) {
                let reason = format!("there is another entry for the scope `{}`", rule.scope);
                return Err(FieldError::new(format!("scopes[{number}].scope"), reason));
            }
        }
        if !(0.0..=LARGEST_LEEWAY).contains(&self.leeway_seconds) {
            let reason = format!(
                "is {}; it must be a number of seconds from 0 to \
                                  {LARGEST_LEEWAY}",
                self.leeway_seconds
            );
            return Err(FieldError::new("leeway_seconds", reason));
        }
        Ok(OAuthConfig {
            issuer: self.issuer,
            resource: self.resource,
            audience,
            jwks_url: self.jwks_url,
            scopes: self.scopes,
            algorithms: self.algorithms,
            leeway: Duration::from_secs_f64(self.leeway_seconds),
        })
    }
}

/// Checks the address of a server. Keys that come over a network in clear could be anybody's.
fn check_url(field: &str, text: &str, is_asked: bool) -> Result<(), FieldError> {
    let bad = |reason: &str| Err(FieldError::new(field, format!("`{text}` {reason}")));
    // What goes into a header is written as it is.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\');
    let Some(url) = text.parse::<Uri>().ok().filter(|url| is_plain && url.host().is_some()) else {
        return bad("is not an address; write `https://host/path`");
    };
    match url.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if !is_asked || url.host().is_some_and(is_loopback) => Ok(()),
        Some("http") => bad("must begin with `https://`: `http://` is safe only on this machine itself"),
        _ => bad("must begin with `https://`"),
    }
}
