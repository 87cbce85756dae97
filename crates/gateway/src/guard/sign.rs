//! Calls and results that gateways sign for each other.
//!
//! Two gateways that share a key put an HMAC-SHA256 over the canonical JSON of a call, with the time and a nonce, into
//! `_meta`, and the answer carries one over the result and the nonce of its call. A call is taken when its time is
//! within the window and its nonce was not seen before; nonces are remembered for as long as their time would be
//! accepted, and when there is no room for another the call is refused. Nothing is remembered of a call whose signature
//! is wrong, so that nobody without the key can fill the room. Signatures are compared in constant time.
//!
//! A key is for one pair of gateways: with one key for several, a call to one could be replayed at another.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::call::Guard;
use super::canonical::{canonical, canonical_object, canonical_of};
use super::shared::{Shared, SpendError};
use super::state::NonceKind;
use crate::common::error::{Code, GatewayError};
use crate::common::settings::{ExpandError, FieldError, duration};
use crate::common::work::{Exhausted, LARGE, in_turn_if};
use crate::protocol::message::{Members, Raw};
use contextweaver_core::text::hex;

/// The member of `_meta` that holds a signature.
pub const SIGNATURE: &str = "contextweaver/signature";

/// Bytes of a key, at least: as many as its signatures have.
const SHORTEST_KEY: usize = 32;

/// A key that two gateways share. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

/// A key is too short to be safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("has {bytes} bytes; a key needs {SHORTEST_KEY} or more")]
pub struct ShortKey {
    /// The bytes that it has.
    pub bytes: usize,
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

impl Key {
    /// A key of at least 32 bytes.
    ///
    /// # Errors
    /// The key has fewer bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, ShortKey> {
        let bytes = bytes.into();
        if bytes.len() < SHORTEST_KEY {
            return Err(ShortKey { bytes: bytes.len() });
        }
        Ok(Self(bytes))
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }

    /// The code over `text` in hexadecimal: HMAC-SHA256 (RFC 2104).
    pub(crate) fn code(&self, text: &str) -> String {
        hex(hmac::sign(&self.hmac(), text.as_bytes()).as_ref())
    }

    /// A keyed hash for one purpose: BLAKE3, with a key that is derived from this one. It takes long texts in parts and in
    /// a fraction of the time of an HMAC, and stays within this gateway: what two gateways exchange is [`Key::code`].
    pub(crate) fn hasher(&self, purpose: &str) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&blake3::derive_key(purpose, &self.0))
    }

    /// Whether these are the bytes of the code over `text`; compared in constant time.
    pub(super) fn is_code(&self, text: &str, code: &[u8]) -> bool {
        hmac::verify(&self.hmac(), text.as_bytes(), code).is_ok()
    }
}

/// Whether calls must be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incoming {
    /// What is signed is checked; what is not is taken.
    #[default]
    Optional,
    /// What is not signed is refused.
    Required,
}

/// The section `signing` of a configuration file, before it is checked. It holds the keys, so it has no `Debug`.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SigningSection {
    keys: BTreeMap<String, String>,
    upstreams: BTreeMap<String, String>,
    incoming: Incoming,
    window_seconds: f64,
    max_nonces: usize,
}

impl Default for SigningSection {
    fn default() -> Self {
        Self {
            keys: BTreeMap::new(),
            upstreams: BTreeMap::new(),
            incoming: Incoming::Optional,
            window_seconds: 300.0,
            max_nonces: 100_000,
        }
    }
}

/// Which calls are signed, and with what.
#[derive(Debug, Clone, PartialEq)]
pub struct SigningConfig {
    /// The keys by their ids.
    pub keys: BTreeMap<String, Key>,
    /// The ids of the keys with which calls of these upstreams are signed, by the upstreams' names. Their answers must
    /// be signed then.
    pub upstreams: BTreeMap<String, String>,
    /// Whether calls of clients must be signed.
    pub incoming: Incoming,
    /// How far the time of a call may be from ours.
    pub window: Duration,
    /// Nonces that are remembered, at most.
    pub max_nonces: usize,
}

impl SigningSection {
    /// The checked configuration, with the keys that `expand` finds in the environment.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(super) fn checked(
        self,
        expand: &dyn Fn(&str) -> Result<String, ExpandError>,
    ) -> Result<SigningConfig, FieldError> {
        let key = |(id, text): (String, String)| {
            let field = format!("signing.keys.{id}");
            let text = expand(&text).map_err(|error| FieldError::new(&field, error))?;
            let key = Key::new(text).map_err(|error| FieldError::new(&field, error))?;
            Ok((id, key))
        };
        let keys: BTreeMap<String, Key> = self.keys.into_iter().map(key).collect::<Result<_, FieldError>>()?;
        if let Some((name, id)) = self.upstreams.iter().find(|(_, id)| !keys.contains_key(*id)) {
            let reason = format!("there is no key `{id}` under `signing.keys`");
            return Err(FieldError::new(format!("signing.upstreams.{name}"), reason));
        }
        let window = duration(self.window_seconds).map_err(|error| FieldError::new("signing.window_seconds", error))?;
        if self.max_nonces == 0 {
            let reason = "must be at least 1: without nonces every signed call is refused";
            return Err(FieldError::new("signing.max_nonces", reason));
        }
        if self.incoming == Incoming::Required && keys.is_empty() {
            let reason = "is `required`, but there is no key under `signing.keys`";
            return Err(FieldError::new("signing.incoming", reason));
        }
        Ok(SigningConfig {
            keys,
            upstreams: self.upstreams,
            incoming: self.incoming,
            window,
            max_nonces: self.max_nonces,
        })
    }
}

/// A signature as it is carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The id of the key.
    pub key: String,
    /// When it was made, in milliseconds since 1970.
    pub timestamp: u64,
    /// That of the call; no two calls have the same.
    pub nonce: String,
    /// The code, in hexadecimal.
    pub mac: String,
}

/// Why a signature is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The call or answer carries no signature.
    #[error("it is not signed")]
    Missing,
    /// The signature does not have the form of one.
    #[error("its signature cannot be read")]
    Malformed,
    /// It was made with a key that is not known here, or it is wrong; which of both is not told.
    #[error("its signature is not valid")]
    Invalid,
    /// Its time is too far from ours.
    #[error("its time is {seconds} s from ours, and {window} s are permitted; set the clocks")]
    Time {
        /// The distance, in seconds.
        seconds: u64,
        /// How far it may be.
        window: u64,
    },
    /// It was used before.
    #[error("it was used before")]
    Replayed,
    /// There is no room for its nonce.
    #[error("too many signed calls at once; try again later")]
    Full,
    /// The request had not enough left for checking it.
    #[error("checking it {0}")]
    Spent(String),
    /// What the nonces are kept in failed.
    #[error("whether it was used before cannot be known now")]
    Unknown,
}

impl From<SpendError> for SignatureError {
    fn from(error: SpendError) -> Self {
        match error {
            SpendError::Seen => Self::Replayed,
            SpendError::Full => Self::Full,
            SpendError::Unknown => Self::Unknown,
        }
    }
}

impl SignatureError {
    fn spent(exhausted: Exhausted) -> Self {
        Self::Spent(exhausted.to_string())
    }

    /// The word under which it is counted and recorded.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Invalid => "invalid",
            Self::Time { .. } => "time",
            Self::Replayed => "replayed",
            Self::Full => "full",
            Self::Spent(_) => "spent",
            Self::Unknown => "unknown",
        }
    }

    /// What a client is answered whose call is refused.
    pub(crate) fn of_call(&self) -> GatewayError {
        let code = match self {
            Self::Full | Self::Spent(_) => Code::RateLimited,
            _ => Code::AuthFailed,
        };
        GatewayError::new(code, format!("the call is refused: {self}"))
    }

    /// What becomes of a call whose answer is not taken. What an unsigned refusal gives as its reason is told on: it
    /// proves nothing, and the operator of both gateways needs it.
    pub(crate) fn of_answer(&self, answer: &Raw) -> GatewayError {
        let said = Some(answer).filter(|_| *self == Self::Missing).and_then(refusal);
        let said = said.map(|said| format!("; unsigned, it says: {said}")).unwrap_or_default();
        GatewayError::new(Code::UpstreamError, format!("the answer is refused: {self}{said}"))
    }
}

/// What an answer says that refuses a call for its signature.
fn refusal(answer: &Raw) -> Option<String> {
    #[derive(Deserialize)]
    struct Answer {
        content: Vec<Part>,
    }
    #[derive(Deserialize)]
    struct Part {
        text: String,
    }
    #[derive(Deserialize)]
    struct Said {
        error: Code,
        message: String,
    }
    let text = answer.read::<Answer>().ok()?.content.into_iter().next()?.text;
    let said: Said = serde_json::from_str(&text).ok()?;
    matches!(said.error, Code::AuthFailed | Code::RateLimited).then_some(said.message)
}

/// The longest nonce that is read.
const LONGEST_NONCE: usize = 128;

/// The text that a signature is over; arguments and results are canonical texts.
enum Subject<'s> {
    Call { tool: &'s str, arguments: &'s str },
    Result { result: &'s str },
}

impl Subject<'_> {
    fn text(&self, key: &str, timestamp: u64, nonce: &str) -> String {
        let [key, timestamp, nonce] = [json!(key), json!(timestamp), json!(nonce)].map(|value| canonical(&value));
        match self {
            Self::Call { tool, arguments } => canonical_object(&[
                ("arguments", arguments),
                ("key", &key),
                ("kind", "\"call\""),
                ("nonce", &nonce),
                ("timestamp", &timestamp),
                ("tool", &canonical(&json!(tool))),
            ]),
            Self::Result { result } => canonical_object(&[
                ("key", &key),
                ("kind", "\"result\""),
                ("nonce", &nonce),
                ("result", result),
                ("timestamp", &timestamp),
            ]),
        }
    }
}

impl SigningConfig {
    fn sign(&self, subject: &Subject<'_>, key: &str, now: Duration, nonce: &str) -> Option<Signature> {
        let timestamp = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let mac = self.keys.get(key)?.code(&subject.text(key, timestamp, nonce));
        Some(Signature { key: key.to_owned(), timestamp, nonce: nonce.to_owned(), mac })
    }

    /// Whether the code is right and the time near `now`.
    fn verify(&self, subject: &Subject<'_>, signature: &Signature, now: Duration) -> Result<(), SignatureError> {
        let text = subject.text(&signature.key, signature.timestamp, &signature.nonce);
        let key = self.keys.get(&signature.key).ok_or(SignatureError::Invalid)?;
        let code = unhex(&signature.mac).ok_or(SignatureError::Malformed)?;
        if !key.is_code(&text, &code) {
            return Err(SignatureError::Invalid);
        }
        let apart = now.abs_diff(Duration::from_millis(signature.timestamp));
        if apart > self.window {
            return Err(SignatureError::Time { seconds: apart.as_secs(), window: self.window.as_secs() });
        }
        Ok(())
    }

    /// The signature of a call with the key called `key`; `None` when there is no key with that id. `arguments` are as
    /// they are sent.
    #[must_use]
    pub fn sign_call(&self, key: &str, tool: &str, arguments: &RawValue, now: Duration) -> Option<Signature> {
        self.sign_canonical(key, tool, &canonical_of(arguments.get())?, now)
    }

    /// The same for arguments with this canonical text.
    fn sign_canonical(&self, key: &str, tool: &str, arguments: &str, now: Duration) -> Option<Signature> {
        self.sign(&Subject::Call { tool, arguments }, key, now, &unique())
    }

    /// Whether the signature of a call is right; the time of it, before whose end in the window its nonce must not be
    /// forgotten.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify_call(
        &self,
        signature: &Signature,
        tool: &str,
        arguments: &RawValue,
        now: Duration,
    ) -> Result<Duration, SignatureError> {
        if signature.nonce.is_empty() || signature.nonce.len() > LONGEST_NONCE {
            return Err(SignatureError::Malformed);
        }
        let arguments = canonical_of(arguments.get()).ok_or(SignatureError::Malformed)?;
        self.verify(&Subject::Call { tool, arguments: &arguments }, signature, now)?;
        Ok(Duration::from_millis(signature.timestamp))
    }

    /// A result with the signature that answers the call signed with `of`; `None` where it is not JSON, or has more values
    /// than are read at once.
    #[must_use]
    pub fn sign_result(&self, result: &Raw, of: &Signature, now: Duration) -> Option<Raw> {
        let (unsigned, _) = taken_apart(result)?;
        let canonical = canonical_of(unsigned.bytes())?;
        Some(match self.sign(&Subject::Result { result: &canonical }, &of.key, now, &of.nonce) {
            Some(signature) => with_signature(&unsigned, &signature),
            None => unsigned,
        })
    }

    /// The result without the signature, when that is right and answers the call signed with `of`.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify_result(&self, result: &Raw, of: &Signature, now: Duration) -> Result<Raw, SignatureError> {
        let (unsigned, signature) = taken_apart(result).ok_or(SignatureError::Malformed)?;
        let signature = signature.ok_or(SignatureError::Missing)?;
        let signature: Signature = signature.read().map_err(|_| SignatureError::Malformed)?;
        if (&signature.key, &signature.nonce) != (&of.key, &of.nonce) {
            return Err(SignatureError::Invalid);
        }
        let canonical = canonical_of(unsigned.bytes()).ok_or(SignatureError::Malformed)?;
        self.verify(&Subject::Result { result: &canonical }, &signature, now)?;
        Ok(unsigned)
    }
}

/// Signs and checks the calls and answers of a gateway.
#[derive(Clone)]
pub(crate) struct Signatures {
    config: Option<Arc<SigningConfig>>,
    shared: Shared,
}

/// Nothing is decided about a call as such: each attempt to make it is signed, and each answer is checked, where the
/// upstream is asked.
impl Guard for Signatures {}

impl Signatures {
    pub(super) fn new(config: Option<SigningConfig>, shared: Shared) -> Self {
        Self { config: config.map(Arc::new), shared }
    }

    /// Checks the signature of a client's call; the returned one is for its answer.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub(crate) async fn verify_call(
        &self,
        tool: &str,
        arguments: Option<&RawValue>,
        signature: Option<&RawValue>,
    ) -> Result<Option<Signature>, SignatureError> {
        let Some(signing) = &self.config else { return Ok(None) };
        let Some(signature) = signature else {
            return match signing.incoming {
                Incoming::Required => Err(SignatureError::Missing),
                Incoming::Optional => Ok(None),
            };
        };
        let signature: Signature = serde_json::from_str(signature.get()).map_err(|_| SignatureError::Malformed)?;
        let now = self.shared.wall.now();
        // A call without arguments is signed like one with an empty object.
        let none = RawValue::from_string("{}".to_owned()).unwrap_or_default();
        let arguments = arguments.unwrap_or(&none);
        // Whoever sends them need not have a key.
        let verify = || signing.verify_call(&signature, tool, arguments, now);
        let at = in_turn_if(arguments.get().len() > LARGE, verify).await.map_err(SignatureError::spent)??;
        let (nonce, most) = (format!("{}:{}", signature.key, signature.nonce), signing.max_nonces);
        // What is older than the window is refused for its time alone.
        self.shared.spend(NonceKind::Call, nonce, now.saturating_sub(signing.window), at, most).await?;
        Ok(Some(signature))
    }

    /// The answer to a client's call, signed as the call was; `None` where it has more values than are signed. For a large one
    /// this waits for its turn.
    ///
    /// # Errors
    /// The turn did not come.
    pub(crate) async fn sign_answer(&self, call: &Signature, answer: Raw) -> Result<Option<Raw>, Exhausted> {
        let Some(signing) = &self.config else { return Ok(Some(answer)) };
        let sign = || signing.sign_result(&answer, call, self.shared.wall.now());
        in_turn_if(answer.bytes().len() > LARGE, sign).await
    }

    /// Whether calls of an upstream are signed.
    pub(super) fn signs_for(&self, upstream: &str) -> bool {
        self.config.as_ref().is_some_and(|signing| signing.upstreams.contains_key(upstream))
    }

    /// The signature of a call of an upstream with these canonical arguments; `None` for an upstream that shares no key.
    pub(crate) fn sign_call(&self, upstream: &str, tool: &str, arguments: &str) -> Option<Signature> {
        let signing = self.config.as_ref()?;
        signing.sign_canonical(signing.upstreams.get(upstream)?, tool, arguments, self.shared.wall.now())
    }

    /// The answer of an upstream to a call signed with `call`: its own signature is checked and removed. For a large one this
    /// waits for its turn.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub(crate) async fn verify_answer(&self, call: Option<&Signature>, answer: &Raw) -> Result<Raw, SignatureError> {
        let (Some(signing), Some(call)) = (&self.config, call) else { return Ok(answer.clone()) };
        let verify = || signing.verify_result(answer, call, self.shared.wall.now());
        in_turn_if(answer.bytes().len() > LARGE, verify).await.map_err(SignatureError::spent)?
    }
}

/// The message without its signature, and that; `_meta` goes with it when nothing else is in it.
fn taken_apart(message: &Raw) -> Option<(Raw, Option<Raw>)> {
    let mut members: Members<'_> = message.read().ok()?;
    let Some(meta) = members.get("_meta") else { return Some((message.clone(), None)) };
    let mut meta: Members<'_> = serde_json::from_str(meta.get()).ok()?;
    let Some(signature) = meta.get(SIGNATURE).map(Raw::of) else { return Some((message.clone(), None)) };
    meta.remove(SIGNATURE);
    let rest = (!meta.0.is_empty()).then(|| Raw::of(&meta));
    drop(meta);
    match rest {
        Some(rest) => members.set("_meta", &rest),
        None => members.remove("_meta"),
    }
    Some((Raw::of(&members), Some(signature)))
}

fn with_signature(message: &Raw, signature: &Signature) -> Raw {
    message.with_meta(|meta| meta.set(SIGNATURE, &Raw::of(signature)))
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

/// A text that no call of this or another process has: 128 bits of the system's randomness, chosen at the start, and
/// a number. Nonces need to differ; they need not be secret.
pub(crate) fn unique() -> String {
    static PROCESS: LazyLock<(u64, u64)> = LazyLock::new(|| {
        let random = || RandomState::new().build_hasher().finish();
        (random(), random())
    });
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (first, second) = *PROCESS;
    format!("{first:016x}{second:016x}{:x}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use serde_json::Value;

    use super::*;
    use crate::guard::limits::SteadyClock;
    use crate::guard::state::MemoryState;
    use crate::protocol::strict::MOST_VALUES;
    use crate::tests::shop::run;
    use contextweaver_context::store::{Clock, SystemClock};

    fn raw(value: &Value) -> Box<RawValue> {
        Raw::of(value).to_raw_value()
    }

    fn config() -> SigningConfig {
        let keys = BTreeMap::from([
            ("one".to_owned(), Key::new(*b"0123456789abcdef0123456789abcdef").unwrap()),
            ("two".to_owned(), Key::new(*b"another key of more than 32 bytes").unwrap()),
        ]);
        let window = Duration::from_secs(300);
        SigningConfig { keys, upstreams: BTreeMap::new(), incoming: Incoming::Required, window, max_nonces: 10 }
    }

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    #[test]
    fn the_code_is_that_of_the_standard() {
        // RFC 4231, test case 6 (a key longer than a block), and case 1 with the key made long enough by zeros, which
        // changes nothing: keys are filled up with them.
        let long = Key::new(vec![0xaa; 131]).unwrap();
        assert_eq!(
            long.code("Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
        let mut bytes = vec![0x0b; 20];
        bytes.resize(32, 0);
        assert_eq!(
            Key::new(bytes).unwrap().code("Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
    }

    #[test]
    fn what_was_altered_is_refused() {
        let (config, arguments) = (config(), raw(&json!({"a": 1, "b": [2.0, "x"]})));
        let good = config.sign_call("one", "tool", &arguments, NOW).unwrap();
        let verify = |signature: &Signature, tool: &str, arguments: &RawValue, now| {
            config.verify_call(signature, tool, arguments, now)
        };
        assert_eq!(verify(&good, "tool", &arguments, NOW), Ok(NOW));
        // Another order of members and another form of numbers is the same call.
        assert!(verify(&good, "tool", &raw(&json!({"b": [2, "x"], "a": 1.0})), NOW).is_ok());
        let altered = |change: &dyn Fn(&mut Signature)| {
            let mut signature = good.clone();
            change(&mut signature);
            verify(&signature, "tool", &arguments, NOW).unwrap_err()
        };
        assert_eq!(verify(&good, "other", &arguments, NOW), Err(SignatureError::Invalid));
        assert_eq!(verify(&good, "tool", &raw(&json!({"a": 2, "b": [2.0, "x"]})), NOW), Err(SignatureError::Invalid));
        assert_eq!(altered(&|signature| signature.key = "two".to_owned()), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.key = "none".to_owned()), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.timestamp += 1), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.nonce.push('0')), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.nonce.clear()), SignatureError::Malformed);
        assert_eq!(altered(&|signature| signature.nonce = "n".repeat(200)), SignatureError::Malformed);
        assert_eq!(altered(&|signature| signature.mac.truncate(62)), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.mac.clear()), SignatureError::Invalid);
        assert_eq!(altered(&|signature| signature.mac = "xyz".to_owned()), SignatureError::Malformed);
        assert_eq!(config.sign_call("none", "tool", &arguments, NOW), None);
    }

    /// Whoever sends it need not have a key.
    #[test]
    fn a_call_of_very_many_values_is_not_read_and_a_large_one_is_read_in_its_turn() {
        let text = |values: usize| RawValue::from_string(format!("[{}1]", "1,".repeat(values - 2))).unwrap();
        let (many, large) = (text(MOST_VALUES + 1), text(MOST_VALUES));
        let config = config();
        let signature = config.sign_call("one", "tool", &large, SystemClock.now()).unwrap();
        assert_eq!(config.verify_call(&signature, "tool", &many, NOW), Err(SignatureError::Malformed));
        run(async move {
            let shared =
                Shared::new(Arc::new(MemoryState::default()), Arc::new(SteadyClock::default()), Arc::new(SystemClock));
            let signatures = Signatures::new(Some(config), shared);
            let verifying = tokio::spawn(async move {
                signatures.verify_call("tool", Some(&large), Some(&raw(&json!(signature)))).await.map(drop)
            });
            // The only thread that serves goes on with what comes next.
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
            assert!(!verifying.is_finished());
            assert_eq!(verifying.await.unwrap(), Ok(()));
        });
    }

    #[test]
    fn a_number_is_signed_with_all_its_digits() {
        let text = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let (config, amount) = (config(), |amount: &str| text(&format!(r#"{{"amount": {amount}}}"#)));
        let signature = config.sign_call("one", "pay", &amount("12345678901234567890124"), NOW).unwrap();
        let verify = |arguments: &RawValue| config.verify_call(&signature, "pay", arguments, NOW).map(drop);
        assert_eq!(verify(&amount("12345678901234567890124")), Ok(()));
        assert_eq!(verify(&amount("12345678901234567890999")), Err(SignatureError::Invalid));
        let result =
            Raw::of(&text(r#"{"content":[],"n":12345678901234567890124,"_meta":{"k":99999999999999999999991}}"#));
        let signed = config.sign_result(&result, &signature, NOW).unwrap();
        assert_eq!(config.verify_result(&signed, &signature, NOW), Ok(result), "the bytes come back");
        for (from, to) in [("0124", "0999"), ("9991", "9992")] {
            let altered = String::from_utf8(signed.bytes().to_vec()).unwrap().replace(from, to);
            let altered = Raw::of(&text(&altered));
            assert_eq!(config.verify_result(&altered, &signature, NOW), Err(SignatureError::Invalid), "{to}");
        }
    }

    #[test]
    fn the_text_that_is_signed_is_the_canonical_one() {
        let (arguments, result) = (r#"{"a":1}"#, "[]");
        let call = Subject::Call { tool: "t\"", arguments }.text("one", 7, "n");
        let written = json!({
            "kind": "call", "key": "one", "timestamp": 7, "nonce": "n", "tool": "t\"", "arguments": {"a": 1},
        });
        assert_eq!(call, canonical(&written));
        let written = json!({"kind": "result", "key": "one", "timestamp": 7, "nonce": "n", "result": []});
        assert_eq!(Subject::Result { result }.text("one", 7, "n"), canonical(&written));
    }

    #[test]
    fn the_window_is_open_on_both_sides_and_no_further() {
        let config = config();
        let signature = config.sign_call("one", "tool", &raw(&json!({})), NOW).unwrap();
        let at = |now| config.verify_call(&signature, "tool", &raw(&json!({})), now);
        let (second, window) = (Duration::from_secs(1), config.window);
        assert!(at(NOW + window).is_ok() && at(NOW - window).is_ok());
        let late = Err(SignatureError::Time { seconds: 301, window: 300 });
        assert_eq!((at(NOW + window + second), at(NOW - window - second)), (late.clone(), late));
    }

    #[test]
    fn a_result_answers_its_own_call_only() {
        let config = config();
        let call = config.sign_call("one", "tool", &raw(&json!({})), NOW).unwrap();
        let many = Raw::of(&json!({"content": [], "rows": vec![1; 250_001]}));
        assert_eq!(config.sign_result(&many, &call, NOW), None, "more values than are read at once");
        for text in
            [r#"{"content":[{"type":"text","text":"x"}],"n":1.50}"#, r#"{"content":[],"_meta":{"other":{"a":1}}}"#]
        {
            let result = Raw::of(&serde_json::from_str::<Box<RawValue>>(text).unwrap());
            let signed = config.sign_result(&result, &call, NOW).unwrap();
            assert_eq!(config.verify_result(&signed, &call, NOW), Ok(result.clone()), "the bytes come back");
            let other = config.sign_call("one", "tool", &raw(&json!({})), NOW).unwrap();
            assert_eq!(config.verify_result(&signed, &other, NOW), Err(SignatureError::Invalid));
            assert_eq!(config.verify_result(&result, &call, NOW), Err(SignatureError::Missing));
            let altered = String::from_utf8(signed.bytes().to_vec()).unwrap().replace("content", "contents");
            let altered = Raw::of(&serde_json::from_str::<Box<RawValue>>(&altered).unwrap());
            assert_eq!(config.verify_result(&altered, &call, NOW), Err(SignatureError::Invalid));
            // The signature of a call is not valid for a result.
            let forged = with_signature(&result, &call);
            assert_eq!(config.verify_result(&forged, &call, NOW), Err(SignatureError::Invalid));
        }
    }

    #[test]
    fn keys_are_long_and_never_shown() {
        let check = |text: &str| {
            let written: SigningSection = serde_saphyr::from_str(text).unwrap();
            written.checked(&|text| Ok(text.to_owned()))
        };
        let good = check("keys: {a: 0123456789abcdef0123456789abcdef}\nupstreams: {peer: a}\n").unwrap();
        assert!(!format!("{good:?}").contains("0123456789"), "{good:?}");
        for (text, expected) in [
            ("keys: {a: short}", "signing.keys.a: has 5 bytes"),
            ("upstreams: {peer: a}", "signing.upstreams.peer: there is no key `a`"),
            ("incoming: required", "there is no key"),
            ("window_seconds: 0", "signing.window_seconds"),
            ("max_nonces: 0", "signing.max_nonces: must be at least 1"),
        ] {
            let message = check(text).unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains("short"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_signature_that_is_made_is_taken_and_any_change_is_not(
            tool in "\\PC{0,8}", text in "\\PC{0,20}", number in any::<f64>(), flip in 0usize..64,
        ) {
            let config = config();
            let arguments = raw(&json!({"text": text, "number": number}));
            let signature = config.sign_call("two", &tool, &arguments, NOW).unwrap();
            prop_assert!(config.verify_call(&signature, &tool, &arguments, NOW).is_ok());
            let mut bytes = signature.mac.clone().into_bytes();
            bytes[flip] = if bytes[flip] == b'0' { b'1' } else { b'0' };
            let forged = Signature { mac: String::from_utf8(bytes).unwrap(), ..signature };
            prop_assert_eq!(config.verify_call(&forged, &tool, &arguments, NOW), Err(SignatureError::Invalid));
        }
    }
}
