//! As whom an upstream over HTTP is asked: as the gateway, or as each caller.

use std::collections::BTreeMap;

use reqwest::Url;
use serde::Deserialize;

use crate::common::masks::Noted;
use crate::common::secret::Secret;
use crate::common::settings::{FieldError, Reference, is_loopback};

/// As whom an upstream is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Credentials {
    /// As the gateway, with what stands under `headers`.
    #[default]
    Headers,
    /// As the gateway, by a rule that says so.
    Static,
    /// As the caller, with its own token.
    Passthrough(Passthrough),
    /// As the caller, with a token that its own is exchanged for.
    Exchange(Exchange),
}

impl Credentials {
    /// The name of the rule, where there is one.
    #[must_use]
    pub fn rule(&self) -> Option<&'static str> {
        match self {
            Self::Headers => None,
            Self::Static => Some("static"),
            Self::Passthrough(_) => Some("passthrough"),
            Self::Exchange(_) => Some("exchange"),
        }
    }

    /// Whether each caller is one of its own to the upstream.
    #[must_use]
    pub fn is_per_caller(&self) -> bool {
        matches!(self, Self::Passthrough(_) | Self::Exchange(_))
    }

    /// What tokens for the upstream name as their audience, with the fields that say it.
    pub(crate) fn audiences(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Headers | Self::Static => Vec::new(),
            Self::Passthrough(rule) => vec![("passthrough.audience", &rule.audience)],
            Self::Exchange(rule) => {
                let named = [("exchange.audience", &rule.audience), ("exchange.resource", &rule.resource)];
                named.into_iter().filter_map(|(field, value)| Some((field, value.as_deref()?))).collect()
            }
        }
    }
}

/// The caller's own token is sent on, where it was issued for the upstream too.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passthrough {
    /// Whose tokens are sent on.
    pub issuer: String,
    /// What the token must name as its audience.
    pub audience: String,
}

/// The caller's token is exchanged for one that is for the upstream (RFC 8693).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The address that is asked for it.
    pub token_endpoint: Url,
    /// Who the gateway is there.
    pub client_id: String,
    /// What the gateway shows it by.
    pub client_secret: Secret,
    /// How it is shown.
    pub client_authentication: ClientAuthentication,
    /// The name of the upstream, as the authorization server has it.
    pub audience: Option<String>,
    /// The address of the upstream.
    pub resource: Option<String>,
    /// What the token shall permit, at most.
    pub scope: Option<String>,
}

/// How the gateway says who it is to an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuthentication {
    /// In a header (`client_secret_basic`).
    #[default]
    Basic,
    /// In the body (`client_secret_post`).
    Post,
}

/// The section `credentials` of an upstream: one of its fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CredentialsSection {
    #[serde(rename = "static")]
    fixed: Option<BTreeMap<String, String>>,
    passthrough: Option<Passthrough>,
    exchange: Option<ExchangeSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExchangeSection {
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    client_secret_file: Option<String>,
    #[serde(default)]
    client_authentication: ClientAuthentication,
    audience: Option<String>,
    resource: Option<String>,
    scope: Option<String>,
}

/// The text of the field of that name, with its references replaced.
fn expand(noted: &Noted<'_>, field: &str, text: &str) -> Result<String, FieldError> {
    noted.expand(text).map_err(|error| FieldError::new(field, error))
}

impl CredentialsSection {
    /// The rule; `headers` are what goes with every request, and get those of `static`. What is read of the environment and of
    /// files is noted.
    ///
    /// # Errors
    /// There is not exactly one rule, or a field of it cannot be used.
    pub(crate) fn checked(
        self,
        noted: &Noted<'_>,
        headers: &mut BTreeMap<String, String>,
    ) -> Result<Credentials, FieldError> {
        match (self.fixed, self.passthrough, self.exchange) {
            (Some(fixed), None, None) => {
                for (name, value) in &fixed {
                    let field = format!("static.{name}");
                    let is_there = headers.keys().any(|other| other.eq_ignore_ascii_case(name));
                    if is_there {
                        return Err(FieldError::new(field, "is also set under `headers`; remove one of the two"));
                    }
                    headers.insert(name.clone(), expand(noted, &field, value)?);
                }
                Ok(Credentials::Static)
            }
            (None, Some(rule), None) => {
                for (field, value) in [("issuer", &rule.issuer), ("audience", &rule.audience)] {
                    check_name(&format!("passthrough.{field}"), value)?;
                }
                Ok(Credentials::Passthrough(rule))
            }
            (None, None, Some(section)) => {
                let checked = section.checked(noted).map_err(|error| error.under("exchange"))?;
                Ok(Credentials::Exchange(checked))
            }
            _ => Err(FieldError::new(
                "static",
                "exactly one rule is needed; write one of `static`, `passthrough` and `exchange`",
            )),
        }
    }
}

impl ExchangeSection {
    fn checked(self, noted: &Noted<'_>) -> Result<Exchange, FieldError> {
        let token_endpoint = endpoint(&expand(noted, "token_endpoint", &self.token_endpoint)?)?;
        check_name("client_id", &self.client_id)?;
        let secret = match (&self.client_secret, &self.client_secret_file) {
            (Some(text), None) => expand(noted, "client_secret", text)?,
            (None, Some(file)) => {
                noted.get(Reference::File(file)).map_err(|error| FieldError::new("client_secret_file", error))?
            }
            _ => {
                let reason = "needs `client_secret` or `client_secret_file`, and not both";
                return Err(FieldError::new("client_secret", reason));
            }
        };
        if self.audience.is_none() && self.resource.is_none() {
            return Err(FieldError::new("audience", "name the upstream by `audience` or `resource`, or by both"));
        }
        for (field, value) in [("audience", &self.audience), ("resource", &self.resource)] {
            value.as_ref().map_or(Ok(()), |value| check_name(field, value))?;
        }
        if self.resource.as_ref().is_some_and(|resource| Url::parse(resource).is_err()) {
            return Err(FieldError::new("resource", "is not an address; write e.g. https://host/mcp"));
        }
        Ok(Exchange {
            token_endpoint,
            client_id: self.client_id,
            client_secret: Secret::new(secret.trim()),
            client_authentication: self.client_authentication,
            audience: self.audience,
            resource: self.resource,
            scope: self.scope,
        })
    }
}

/// The address of a token endpoint. Secrets and tokens go there, so that it is encrypted or on this machine.
fn endpoint(text: &str) -> Result<Url, FieldError> {
    let wrong = |reason: &str| FieldError::new("token_endpoint", reason);
    // Where a variable is not set the server is not reached, and the text may be anything.
    let url = Url::parse(text).map_err(|_| wrong("is not an address; write e.g. https://host/token"))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if url.host_str().is_some_and(is_loopback) => Ok(url),
        _ => Err(wrong("must begin with `https://`: the secret of the gateway and tokens go there")),
    }
}

fn check_name(field: &str, text: &str) -> Result<(), FieldError> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(()),
        false => Err(FieldError::new(field, "must be printable ASCII without spaces, and not empty")),
    }
}
