//! The keys of an authorization server, as they are now: fetched when the gateway starts, again from time to time, and
//! again when a token is of none that is known, but not more often than now and then.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use reqwest::Client;
use serde::Deserialize;
use tokio::time::Instant;

use super::jwt::KeySet;
use crate::common::sync::lock;
use crate::config::oauth::OAuthConfig;
use crate::upstream::http::{body_within, plain_client};

/// How often keys are fetched that were fetched well.
const REFRESH: Duration = Duration::from_secs(15 * 60);

/// How long after a fetch, good or bad, the next one begins at the earliest: whoever shows tokens with made-up keys
/// costs the issuer no more than that.
const PAUSE: Duration = Duration::from_secs(5);

/// For how long keys are used that cannot be fetched again: one that the issuer has withdrawn must not be good for ever.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What a fetch may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of an answer of the issuer, at most.
const LARGEST: usize = 256 * 1024;

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct Keys {
    issuer: String,
    /// Where they are; the issuer's metadata says it when `None`.
    url: Option<String>,
    client: Client,
    known: ArcSwapOption<(KeySet, Instant)>,
    /// When the last fetch ended. Held while one is under way.
    fetched: Arc<tokio::sync::Mutex<Option<Instant>>>,
    fault: Mutex<Option<String>>,
    pause: Duration,
}

impl Keys {
    /// The keys that `before` knows of the issuer, or none yet; they are fetched from now on for as long as somebody holds
    /// them.
    ///
    /// # Errors
    /// There is no client for HTTP.
    pub(super) fn of(config: &OAuthConfig, before: Option<&Self>) -> Result<Arc<Self>, String> {
        Self::with_pause(config, before, PAUSE)
    }

    pub(super) fn with_pause(
        config: &OAuthConfig,
        before: Option<&Self>,
        pause: Duration,
    ) -> Result<Arc<Self>, String> {
        let keys = Arc::new(Self {
            issuer: config.issuer.clone(),
            url: config.jwks_url.clone(),
            client: plain_client(TIMEOUT)?,
            known: ArcSwapOption::new(before.and_then(|before| before.known.load_full())),
            fetched: Arc::default(),
            fault: Mutex::default(),
            pause,
        });
        tokio::spawn(Self::keep(Arc::downgrade(&keys)));
        Ok(keys)
    }

    /// Fetches them again and again.
    async fn keep(keys: Weak<Self>) {
        let mut wait = PAUSE;
        loop {
            {
                let Some(keys) = keys.upgrade() else { return };
                let begun = Instant::now();
                keys.renew(begun).await;
                let is_new = keys.known.load().as_ref().is_some_and(|known| known.1 >= begun);
                wait = if is_new { REFRESH } else { (wait * 2).min(REFRESH) };
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Those that are known; `None` when none were fetched, or not for too long.
    pub(super) fn known(&self) -> Option<Arc<(KeySet, Instant)>> {
        self.known.load_full().filter(|known| known.1.elapsed() < OLDEST)
    }

    /// Why they could not be fetched the last time.
    pub(super) fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Fetches them again, unless that was done after `since` or a moment ago.
    pub(super) async fn renew(self: &Arc<Self>, since: Instant) {
        let mut fetched = Arc::clone(&self.fetched).lock_owned().await;
        if fetched.is_some_and(|at| at >= since || at.elapsed() < self.pause) {
            return;
        }
        let keys = Arc::clone(self);
        // A task of its own: it goes on when the caller hangs up, who would otherwise have the keys fetched without a
        // pause.
        let renewal = tokio::spawn(async move {
            let outcome = tokio::time::timeout(2 * TIMEOUT, keys.fetch()).await;
            *fetched = Some(keys.renewed(outcome.unwrap_or_else(|_| Err("no answer in time".to_owned()))));
        });
        if let Err(error) = renewal.await {
            tracing::error!(issuer = %self.issuer, %error, "fetching the keys of the issuer was broken off");
        }
    }

    /// Takes what came of a fetch that ended now.
    fn renewed(&self, outcome: Result<KeySet, String>) -> Instant {
        let now = Instant::now();
        *lock(&self.fault) = outcome.as_ref().err().cloned();
        match outcome {
            Ok(keys) => self.known.store(Some(Arc::new((keys, now)))),
            Err(error) => tracing::warn!(issuer = %self.issuer, %error, "the keys of the issuer could not be fetched"),
        }
        now
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let text = self.get(&url).await?;
        KeySet::read(&text).map_err(|error| format!("{url}: {error}"))
    }

    /// Where the keys are, by the metadata of the issuer (RFC 8414, or else OpenID Connect Discovery).
    async fn discover(&self) -> Result<String, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let host_ends = issuer.find("://").and_then(|at| issuer[at + 3..].find('/').map(|end| at + 3 + end));
        let (origin, path) = issuer.split_at(host_ends.unwrap_or(issuer.len()));
        let places = [
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{issuer}/.well-known/openid-configuration"),
        ];
        let keys = async |place: &str| {
            let text = self.get(place).await?;
            place_of_keys(&text, &self.issuer).map_err(|reason| format!("{place}: {reason}"))
        };
        let mut reasons = Vec::new();
        for place in places {
            match keys(&place).await {
                Ok(found) => return Ok(found),
                // Some servers answer every path with a page.
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }

    async fn get(&self, url: &str) -> Result<Bytes, String> {
        let failed = |error: reqwest::Error| format!("{url}: {}", error.without_url());
        let answer = self.client.get(url).header("accept", "application/json").send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(format!("{url}: status {}", answer.status().as_u16()));
        }
        let text = body_within(answer, LARGEST).await.map_err(failed)?;
        text.ok_or_else(|| format!("{url}: more than {LARGEST} bytes"))
    }
}

/// Where the keys of an issuer are, by its metadata.
///
/// # Errors
/// Why the metadata is not used.
fn place_of_keys(metadata: &[u8], issuer: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Metadata {
        issuer: String,
        jwks_uri: String,
    }
    let metadata: Metadata =
        serde_json::from_slice(metadata).map_err(|error| format!("not usable metadata: {error}"))?;
    if metadata.issuer != issuer {
        return Err(format!("it is about an issuer other than `{issuer}`"));
    }
    // In clear only where the issuer itself may be asked so.
    if !metadata.jwks_uri.starts_with("https://") && issuer.starts_with("https://") {
        return Err("`jwks_uri` does not begin with `https://`".to_owned());
    }
    Ok(metadata.jwks_uri)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ISSUER: &str = "https://id.example";

    /// Metadata of an issuer by both standards; and what reads it.
    pub(crate) fn issuer_metadata() -> (Vec<String>, impl Fn(&[u8])) {
        let written = [
            r#"{"issuer":"https://id.example","jwks_uri":"https://id.example/keys","scopes_supported":["read"]}"#,
            r#"{"issuer":"https://id.example","authorization_endpoint":"https://id.example/authorize",
                "token_endpoint":"https://id.example/token","jwks_uri":"https://keys.example/a?b=c#d",
                "subject_types_supported":["public"],"id_token_signing_alg_values_supported":["RS256"]}"#,
        ];
        let read = |input: &[u8]| {
            if let Ok(place) = place_of_keys(input, ISSUER) {
                assert!(place.starts_with("https://"), "{place}");
                drop(reqwest::Url::parse(&place));
            }
        };
        assert!(written.iter().all(|written| place_of_keys(written.as_bytes(), ISSUER).is_ok()));
        (written.map(str::to_owned).to_vec(), read)
    }

    #[test]
    fn metadata_leads_to_keys_of_its_own_issuer_and_not_from_encrypted_to_clear() {
        let (written, _) = issuer_metadata();
        let cases = [
            (written[0].clone(), "https://id.example/keys"),
            (written[0].replace("id.example\",", "id.example/\","), "issuer other than"),
            (written[0].replace("https://id.example/keys", "http://id.example/keys"), "begin with `https://`"),
            (written[0].replace("jwks_uri", "jwks"), "missing field `jwks_uri`"),
            ("<html>".to_owned(), "not usable metadata"),
        ];
        for (metadata, expected) in cases {
            let (Ok(said) | Err(said)) = place_of_keys(metadata.as_bytes(), ISSUER);
            assert!(said.contains(expected), "{metadata}: {said}");
        }
        let clear = r#"{"issuer":"http://127.0.0.1:1","jwks_uri":"http://127.0.0.1:1/keys"}"#;
        assert!(place_of_keys(clear.as_bytes(), "http://127.0.0.1:1").is_ok());
    }
}
