//! Tokens of an authorization server: JSON Web Tokens (RFC 7519, RFC 9068), whose signatures are checked with keys that
//! the server publishes (RFC 7517).
//!
//! What a token says about how it is signed is believed only where the configuration permits that signature and the key
//! is of its kind. A token that is signed with a shared secret, or not at all, is not a token.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::Value;

use crate::config::oauth::{Algorithm, OAuthConfig};

/// The longest token, in bytes.
const LONGEST: usize = 16 * 1024;

/// The longest subject, in bytes.
const LONGEST_SUBJECT: usize = 256;

/// Keys of an issuer, at most.
const MOST_KEYS: usize = 64;

/// A token is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadToken {
    #[error("the token is too long")]
    Long,
    #[error("the token is not a JSON Web Token")]
    Form,
    #[error("the token is signed in a way that is not accepted here")]
    Algorithm,
    #[error("the token needs an extension that is not supported here")]
    Critical,
    #[error("the token is signed with a key that its issuer does not publish")]
    UnknownKey,
    #[error("the signature of the token is wrong")]
    Signature,
    #[error("the token is from another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token does not say when it expires")]
    NoExpiry,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    Early,
    #[error("the token does not say who its subject is")]
    Subject,
}

impl BadToken {
    /// Whether newer keys of its issuer could make a difference: an issuer may give another key the name of the one before.
    pub(super) fn may_be_of_a_newer_key(self) -> bool {
        matches!(self, Self::UnknownKey | Self::Signature)
    }
}

/// What a token that is taken says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claims {
    /// Who the caller is to its issuer.
    pub(super) subject: String,
    /// What it may do.
    pub(super) scopes: Vec<String>,
    /// Whom the token is for.
    pub(super) audiences: Vec<String>,
    /// How long the token is valid from now on.
    pub(super) left: Duration,
}

/// A published key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    id: Option<String>,
    /// The only signature that it is for, where it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// The point, uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// The keys that an issuer publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeySet(Vec<Key>);

#[derive(Deserialize)]
struct WrittenKeys {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct WrittenKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl WrittenKey {
    /// The key, if it is one that signatures can be checked with.
    fn key(self) -> Option<Key> {
        if self.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let part = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let point = |length: usize| {
            let (x, y) = (part(&self.x)?, part(&self.y)?);
            (x.len() == length && y.len() == length).then(|| [&[4], &*x, &*y].concat())
        };
        let material = match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Material::Rsa { n: part(&self.n)?, e: part(&self.e)? },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(part(&self.x)?),
            _ => return None,
        };
        Some(Key { id: self.kid, algorithm: self.alg, material })
    }
}

impl KeySet {
    /// The keys in a JWK set. Keys of other kinds, and for other purposes, are left out.
    ///
    /// # Errors
    /// What it is instead.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let written: WrittenKeys =
            serde_json::from_slice(text).map_err(|error| format!("not a key set in JSON: {error}"))?;
        if written.keys.len() > MOST_KEYS {
            return Err(format!("{} keys; at most {MOST_KEYS} are accepted", written.keys.len()));
        }
        let keys = written.keys.into_iter();
        let keys: Vec<Key> = keys.filter_map(|key| serde_json::from_value::<WrittenKey>(key).ok()?.key()).collect();
        match keys.is_empty() {
            true => Err("no key that can check signatures".to_owned()),
            false => Ok(Self(keys)),
        }
    }
}

impl Key {
    /// Whether it has made the signature; `None` when it is for other signatures.
    fn has_signed(&self, algorithm: Algorithm, message: &[u8], signed: &[u8]) -> Option<bool> {
        if self.algorithm.as_deref().is_some_and(|only| only != algorithm.name()) {
            return None;
        }
        let rsa = |parameters: &'static RsaParameters| match &self.material {
            Material::Rsa { n, e } => Some(RsaPublicKeyComponents { n, e }.verify(parameters, message, signed).is_ok()),
            _ => None,
        };
        let other = |method: &'static dyn signature::VerificationAlgorithm, key: &Vec<u8>| {
            Some(UnparsedPublicKey::new(method, key).verify(message, signed).is_ok())
        };
        match (algorithm, &self.material) {
            (Algorithm::Rs256, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            (Algorithm::Rs384, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            (Algorithm::Rs512, _) => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            (Algorithm::Ps256, _) => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            (Algorithm::Ps384, _) => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            (Algorithm::Ps512, _) => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            (Algorithm::Es256, Material::P256(key)) => other(&signature::ECDSA_P256_SHA256_FIXED, key),
            (Algorithm::Es384, Material::P384(key)) => other(&signature::ECDSA_P384_SHA384_FIXED, key),
            (Algorithm::EdDsa, Material::Ed25519(key)) => other(&signature::ED25519, key),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Body {
    iss: Option<String>,
    aud: Option<Several>,
    sub: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
    scope: Option<Several>,
    scp: Option<Several>,
}

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Several {
    One(String),
    Many(Vec<String>),
}

impl Several {
    fn has(&self, wanted: &str) -> bool {
        match self {
            Self::One(text) => text == wanted,
            Self::Many(texts) => texts.iter().any(|text| text == wanted),
        }
    }

    /// All texts.
    fn texts(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }

    /// The words of all texts.
    fn words(&self) -> Vec<String> {
        let texts = match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        };
        texts.iter().flat_map(|text| text.split_ascii_whitespace()).map(str::to_owned).collect()
    }
}

/// Whether a text may be a token of this kind at all.
pub(super) fn is_like(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Checks a token with these keys, at the time `now` since 1970.
///
/// # Errors
/// [`BadToken`].
pub(super) fn check(token: &str, keys: &KeySet, config: &OAuthConfig, now: Duration) -> Result<Claims, BadToken> {
    if token.len() > LONGEST {
        return Err(BadToken::Long);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(BadToken::Form)?;
    let (head, body) = signed.split_once('.').ok_or(BadToken::Form)?;
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| BadToken::Form);
    let signature = decoded(signature)?;
    let head: Head = serde_json::from_slice(&decoded(head)?).map_err(|_| BadToken::Form)?;
    let algorithm = config.algorithms.iter().find(|taken| taken.name() == head.alg).ok_or(BadToken::Algorithm)?;
    if head.crit.is_some() {
        return Err(BadToken::Critical);
    }
    let named = keys.0.iter().filter(|key| head.kid.is_none() || key.id == head.kid);
    let checked: Vec<bool> =
        named.filter_map(|key| key.has_signed(*algorithm, signed.as_bytes(), &signature)).collect();
    match checked.contains(&true) {
        true => {}
        // A token that names no key may be of one that is newer than those that are known.
        false if checked.is_empty() || head.kid.is_none() => return Err(BadToken::UnknownKey),
        false => return Err(BadToken::Signature),
    }
    let body: Body = serde_json::from_slice(&decoded(body)?).map_err(|_| BadToken::Form)?;
    if body.iss.as_deref() != Some(config.issuer.as_str()) {
        return Err(BadToken::Issuer);
    }
    let audiences = body.aud.filter(|audience| audience.has(&config.audience)).ok_or(BadToken::Audience)?.texts();
    let (now, leeway) = (now.as_secs_f64(), config.leeway.as_secs_f64());
    let left = body.exp.ok_or(BadToken::NoExpiry)? + leeway - now;
    if left <= 0.0 {
        return Err(BadToken::Expired);
    }
    if body.nbf.is_some_and(|begin| begin - leeway > now) {
        return Err(BadToken::Early);
    }
    let is_usable = |subject: &String| {
        !subject.is_empty() && subject.len() <= LONGEST_SUBJECT && !subject.chars().any(char::is_control)
    };
    let subject = body.sub.filter(is_usable).ok_or(BadToken::Subject)?;
    let scopes = body.scope.or(body.scp).map(|scopes| scopes.words()).unwrap_or_default();
    // What lasts longer than anybody waits need not be exact.
    let left = Duration::try_from_secs_f64(left.min(1e9)).map_err(|_| BadToken::NoExpiry)?;
    Ok(Claims { subject, scopes, audiences, left })
}

#[cfg(test)]
pub(super) mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;
    use serde_json::json;

    use super::*;

    /// Keys of an issuer, made anew for each test.
    pub(in super::super) enum Signer {
        Rsa(RsaKeyPair),
        Ec(EcdsaKeyPair),
        Ed(Ed25519KeyPair),
    }

    fn encoded(bytes: impl AsRef<[u8]>) -> String {
        URL_SAFE_NO_PAD.encode(bytes)
    }

    impl Signer {
        pub(in super::super) fn ec() -> Self {
            let (random, method) = (SystemRandom::new(), &signature::ECDSA_P256_SHA256_FIXED_SIGNING);
            let made = EcdsaKeyPair::generate_pkcs8(method, &random).unwrap();
            Self::Ec(EcdsaKeyPair::from_pkcs8(method, made.as_ref(), &random).unwrap())
        }

        fn ed() -> Self {
            let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
            Self::Ed(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
        }

        fn rsa() -> Self {
            let pem = include_bytes!("testdata/rsa.key");
            Self::Rsa(RsaKeyPair::from_pkcs8(PrivateKeyDer::from_pem_slice(pem).unwrap().secret_der()).unwrap())
        }

        /// The key as it is published.
        pub(in super::super) fn published(&self, id: &str) -> Value {
            match self {
                Self::Rsa(pair) => {
                    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                    json!({"kty": "RSA", "kid": id, "n": encoded(public.n), "e": encoded(public.e)})
                }
                Self::Ec(pair) => {
                    let point = pair.public_key().as_ref();
                    json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256",
                        "x": encoded(&point[1..33]), "y": encoded(&point[33..])})
                }
                Self::Ed(pair) => {
                    json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(pair.public_key().as_ref())})
                }
            }
        }

        pub(in super::super) fn token(&self, head: &Value, body: &Value) -> String {
            let signed = format!("{}.{}", encoded(head.to_string()), encoded(body.to_string()));
            let random = SystemRandom::new();
            let signature = match self {
                Self::Rsa(pair) => {
                    let mut made = vec![0; pair.public().modulus_len()];
                    let method: &dyn signature::RsaEncoding = match head["alg"].as_str() {
                        Some("PS256") => &signature::RSA_PSS_SHA256,
                        _ => &signature::RSA_PKCS1_SHA256,
                    };
                    pair.sign(method, &random, signed.as_bytes(), &mut made).unwrap();
                    made
                }
                Self::Ec(pair) => pair.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
                Self::Ed(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
            };
            format!("{signed}.{}", encoded(signature))
        }
    }

    fn config() -> OAuthConfig {
        OAuthConfig {
            issuer: "https://id.example".to_owned(),
            resource: "https://gateway.example/mcp".to_owned(),
            audience: "https://gateway.example/mcp".to_owned(),
            jwks_url: None,
            scopes: Vec::new(),
            algorithms: vec![Algorithm::Rs256, Algorithm::Ps256, Algorithm::Es256, Algorithm::EdDsa],
            leeway: Duration::from_secs(10),
        }
    }

    /// What a good token says at the time 1 000, with members in place of others; `null` leaves one out.
    fn body(other: &Value) -> Value {
        let mut body = json!({"iss": "https://id.example", "aud": "https://gateway.example/mcp", "sub": "ann", "exp": 1_100,
            "nbf": 900, "scope": "read write"});
        for (name, value) in other.as_object().unwrap() {
            match value {
                Value::Null => body.as_object_mut().unwrap().remove(name),
                value => body.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        body
    }

    const NOW: Duration = Duration::from_secs(1_000);

    /// Good tokens, each before a line break and the keys of their issuer; and what reads both and checks the token.
    pub(crate) fn signed_tokens() -> (Vec<String>, impl Fn(&[u8])) {
        let tokens =
            [(Signer::ec(), "ES256"), (Signer::ed(), "EdDSA"), (Signer::rsa(), "RS256")].map(|(signer, algorithm)| {
                let token = signer.token(&json!({"alg": algorithm, "kid": "k", "typ": "at+jwt"}), &body(&json!({})));
                format!("{token}\n{}", json!({"keys": [signer.published("k")]}))
            });
        let config = config();
        let read = move |input: &[u8]| {
            let mut parts = input.splitn(2, |byte| *byte == b'\n');
            let (token, keys) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let (Ok(token), Ok(keys)) = (std::str::from_utf8(token), KeySet::read(keys)) else { return };
            if is_like(token) {
                drop(check(token, &keys, &config, NOW));
            }
        };
        (tokens.to_vec(), read)
    }

    /// Key sets as issuers publish them; and what reads one and checks tokens that none of its keys has signed.
    pub(crate) fn key_sets() -> (Vec<String>, impl Fn(&[u8])) {
        let mut keys = [Signer::ec(), Signer::ed(), Signer::rsa()].map(|signer| signer.published("k")).to_vec();
        let [x, y] = [3, 4].map(|byte| encoded([byte; 48]));
        keys.push(json!({"kty": "EC", "crv": "P-384", "use": "sig", "alg": "ES384", "x": x, "y": y}));
        keys.push(json!({"kty": "oct", "kid": "s", "k": "AA", "x5c": ["MIIB"], "key_ops": ["verify"]}));
        let sets = [json!({"keys": keys[..1]}), json!({"keys": keys})].map(|set| set.to_string());
        assert!(sets.iter().all(|set| KeySet::read(set.as_bytes()).is_ok()));
        let (stranger, mut config) = (Signer::ec(), config());
        config.algorithms.push(Algorithm::Es384);
        let forged = ["ES256", "ES384", "EdDSA", "RS256", "PS256"]
            .map(|algorithm| stranger.token(&json!({"alg": algorithm}), &body(&json!({}))));
        let read = move |input: &[u8]| {
            let Ok(keys) = KeySet::read(input) else { return };
            assert!((1..=MOST_KEYS).contains(&keys.0.len()));
            assert!(
                forged.iter().all(|token| check(token, &keys, &config, NOW).is_err()),
                "it was signed by a stranger"
            );
        };
        (sets.to_vec(), read)
    }

    #[test]
    fn a_token_is_taken_whichever_way_it_is_signed() {
        let signers =
            [("RS256", Signer::rsa()), ("PS256", Signer::rsa()), ("ES256", Signer::ec()), ("EdDSA", Signer::ed())];
        for (algorithm, signer) in signers {
            let keys = json!({"keys": [{"kty": "oct", "k": "AA"}, signer.published("a")]}).to_string();
            let keys = KeySet::read(keys.as_bytes()).unwrap();
            for head in [json!({"alg": algorithm, "kid": "a", "typ": "at+jwt"}), json!({"alg": algorithm})] {
                let token = signer.token(&head, &body(&json!({})));
                let claims = check(&token, &keys, &config(), NOW).unwrap();
                let left = Duration::from_secs(110);
                let scopes = vec!["read".to_owned(), "write".to_owned()];
                let (subject, audiences) = ("ann".to_owned(), claims.audiences.clone());
                assert!(audiences.contains(&config().audience));
                assert_eq!(claims, Claims { subject, scopes, audiences, left }, "{algorithm}");
            }
        }
    }

    #[test]
    fn every_bad_token_is_refused_for_what_is_bad_about_it() {
        let (ours, theirs, rsa) = (Signer::ec(), Signer::ec(), Signer::rsa());
        let mut for_secrets = Signer::ec().published("e");
        for_secrets["use"] = "enc".into();
        let published = [ours.published("a"), rsa.published("r"), for_secrets];
        let keys = KeySet::read(json!({"keys": published}).to_string().as_bytes()).unwrap();
        let head = json!({"alg": "ES256", "kid": "a"});
        let with = |other: &Value| ours.token(&head, &body(other));
        let headed = |head: Value| ours.token(&head, &body(&json!({})));
        let good = with(&json!({}));
        let parts: Vec<&str> = good.split('.').collect();
        let altered = encoded(body(&json!({"sub": "root"})).to_string());
        // A secret that is the public key: whoever takes both kinds of signatures for one takes it.
        let hmac = headed(json!({"alg": "HS256", "kid": "a"}));
        let cases = [
            (good.clone(), None),
            (with(&json!({"aud": ["x", "https://gateway.example/mcp"], "scope": null})), None),
            (with(&json!({"exp": 991, "nbf": 1_010})), None),
            (with(&json!({"exp": 989})), Some(BadToken::Expired)),
            (with(&json!({"exp": -1e300})), Some(BadToken::Expired)),
            (with(&json!({"exp": null})), Some(BadToken::NoExpiry)),
            (with(&json!({"exp": "1100"})), Some(BadToken::Form)),
            (with(&json!({"nbf": 1_011})), Some(BadToken::Early)),
            (with(&json!({"iss": "https://id.example/"})), Some(BadToken::Issuer)),
            (with(&json!({"iss": null})), Some(BadToken::Issuer)),
            (with(&json!({"aud": "https://other.example"})), Some(BadToken::Audience)),
            (with(&json!({"aud": []})), Some(BadToken::Audience)),
            (with(&json!({"aud": null})), Some(BadToken::Audience)),
            (with(&json!({"sub": null})), Some(BadToken::Subject)),
            (with(&json!({"sub": ""})), Some(BadToken::Subject)),
            (with(&json!({"sub": "a\nb"})), Some(BadToken::Subject)),
            (with(&json!({"sub": "x".repeat(257)})), Some(BadToken::Subject)),
            (headed(json!({"alg": "none"})), Some(BadToken::Algorithm)),
            (format!("{}.{}.", encoded(r#"{"alg":"none"}"#), parts[1]), Some(BadToken::Algorithm)),
            (hmac, Some(BadToken::Algorithm)),
            (headed(json!({"alg": "ES384", "kid": "a"})), Some(BadToken::Algorithm)),
            (headed(json!({"alg": "es256", "kid": "a"})), Some(BadToken::Algorithm)),
            (headed(json!({"alg": "ES256", "kid": "a", "crit": ["x"]})), Some(BadToken::Critical)),
            (headed(json!({"alg": "ES256", "kid": "b"})), Some(BadToken::UnknownKey)),
            (headed(json!({"alg": "ES256", "kid": "e"})), Some(BadToken::UnknownKey)),
            (headed(json!({"alg": "ES256", "kid": "r"})), Some(BadToken::UnknownKey)),
            (headed(json!({"alg": "RS256", "kid": "a"})), Some(BadToken::UnknownKey)),
            (headed(json!({"alg": "RS256", "kid": "r"})), Some(BadToken::Signature)),
            (theirs.token(&head, &body(&json!({}))), Some(BadToken::Signature)),
            (theirs.token(&json!({"alg": "ES256"}), &body(&json!({}))), Some(BadToken::UnknownKey)),
            (format!("{}.{altered}.{}", parts[0], parts[2]), Some(BadToken::Signature)),
            (format!("{}.{}.", parts[0], parts[1]), Some(BadToken::Signature)),
            (format!("{}.{}.{}=", parts[0], parts[1], parts[2]), Some(BadToken::Form)),
            (format!("{}.{}", parts[0], parts[1]), Some(BadToken::Form)),
            ("..".to_owned(), Some(BadToken::Form)),
            (String::new(), Some(BadToken::Form)),
            ("x".repeat(LONGEST + 1), Some(BadToken::Long)),
        ];
        for (number, (token, bad)) in cases.into_iter().enumerate() {
            assert_eq!(check(&token, &keys, &config(), NOW).err(), bad, "case {number}");
        }
        let only = OAuthConfig { algorithms: vec![Algorithm::Rs256], ..config() };
        assert_eq!(check(&good, &keys, &only, NOW), Err(BadToken::Algorithm));
    }

    #[test]
    fn a_set_of_keys_is_bounded_and_has_one_at_least() {
        let key = Signer::ec().published("a");
        let cases = [
            (json!({"keys": vec![&key; MOST_KEYS + 1]}).to_string(), "65 keys"),
            (
                json!({"keys": [{"kty": "oct", "k": "AA"}, 7, {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}]})
                    .to_string(),
                "no key",
            ),
            ("[]".to_owned(), "not a key set in JSON"),
        ];
        for (text, expected) in cases {
            let message = KeySet::read(text.as_bytes()).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
