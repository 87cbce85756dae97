//! What an upstream asks of the person or the model behind a client, in both eras of the protocol.
//!
//! In the handshake era a question is a request, in the stateless protocol it is a result of the kind `input_required`.
//! Either way its texts come before a person, so they are cleaned as results are, and the person is told which upstream
//! asks: a question cannot pass for the gateway's own. What comes back to the upstream with the answer (names of
//! members, choices, defaults, addresses) stays as it is; where it holds what cleaning would take out, the question is
//! refused. A result that asks has the members that such a result needs, and no others: content beside them would pass
//! by the firewall and the output schema.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::config::Mode;
use super::error::{Code, GatewayError};
use super::guard::consent::Passage;
use super::guard::sanitize::{Html, SanitizeConfig, Scope};
use super::guard::strict;
use super::hub::Gateway;
use super::session::Caller;
use super::wire::{Members, Raw};
use crate::context::Secrets;
use crate::store::redact;

/// How questions of upstreams are put to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// As they came.
    AsTheyCame,
    /// Under the name of the upstream that asks.
    Presented {
        /// How their texts are cleaned.
        texts: SanitizeConfig,
        /// What becomes of secrets in them.
        secrets: Secrets,
    },
}

/// Members of a question whose values the answer repeats, or that lead somewhere.
const VERBATIM: [&str; 10] =
    ["const", "data", "default", "elicitationId", "enum", "mimeType", "pattern", "required", "uri", "url"];

impl Questions {
    /// The parameters of a question as the client of `upstream` gets them.
    ///
    /// # Errors
    /// Why it cannot be put to anybody.
    pub(super) fn present(self, upstream: &str, method: &str, params: Option<&Raw>) -> Result<Option<Raw>, String> {
        let (Self::Presented { texts, secrets }, Some(raw)) = (self, params) else { return Ok(params.cloned()) };
        let mut params: Value = raw.read().map_err(|error| error.to_string())?;
        Presenter { texts, secrets }.clean(&mut params)?;
        if method == "elicitation/create"
            && let Some(message) = params.get_mut("message")
        {
            *message = format!("{upstream} asks: {}", message.as_str().unwrap_or_default()).into();
        }
        Ok(Some(Raw::of(&params)))
    }
}

struct Presenter {
    texts: SanitizeConfig,
    secrets: Secrets,
}

impl Presenter {
    fn clean(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) => *text = self.cleaned(text).into_owned(),
            Value::Array(elements) => elements.iter_mut().try_for_each(|element| self.clean(element))?,
            Value::Object(members) => {
                for (name, member) in members {
                    self.check(name)?;
                    match VERBATIM.contains(&name.as_str()) {
                        true => self.check_all(member)?,
                        false => self.clean(member)?,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn cleaned<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let clean = self.texts.clean(text);
        match self.secrets {
            Secrets::Keep => clean,
            Secrets::Redact => Cow::Owned(redact(&clean).text.into_owned()),
        }
    }

    fn check_all(&self, value: &Value) -> Result<(), String> {
        match value {
            Value::String(text) => self.check(text),
            Value::Array(elements) => elements.iter().try_for_each(|element| self.check_all(element)),
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                self.check(name)?;
                self.check_all(member)
            }),
            _ => Ok(()),
        }
    }

    /// Refuses what would have to be cleaned and must not be changed. Entities are no matter of what acts.
    fn check(&self, text: &str) -> Result<(), String> {
        match (SanitizeConfig { html: Html::Keep, ..self.texts }).clean(text) {
            Cow::Borrowed(_) => Ok(()),
            Cow::Owned(_) => Err("a name or choice in it holds hidden characters or markers".to_owned()),
        }
    }
}

/// Whether a result asks the caller for more, in the stateless protocol, for whichever parser.
pub(super) fn is_question(result: &Raw) -> bool {
    const KIND: &str = "input_required";
    let bytes = result.bytes();
    let found = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    // The word can be written with escapes.
    if !found(KIND) && !found("\\u") {
        return false;
    }
    let Ok(members) = result.read::<Members<'_>>() else { return false };
    let kinds = members.0.iter().filter(|(name, _)| name == "resultType");
    kinds.into_iter().any(|(_, kind)| serde_json::from_str::<String>(kind.get()).is_ok_and(|kind| kind == KIND))
}

/// Questions of one result, at most.
const MOST_REQUESTS: usize = 32;

/// Bytes of the name of a question, at most.
const LONGEST_NAME: usize = 128;

/// Bytes of what an upstream wants back with the answers, at most.
const LONGEST_STATE: usize = 64 * 1024;

impl Gateway {
    /// How questions of upstreams are put to clients.
    pub(super) fn questions(&self) -> Questions {
        let (sanitize, secrets) = (*self.guards.sanitize(), self.config.firewall.secrets);
        match self.config.mode {
            _ if self.only_upstream().is_some() => Questions::AsTheyCame,
            Mode::Gateway => Questions::Presented { texts: sanitize, secrets },
            Mode::Proxy | Mode::Passthrough => {
                let scope = if sanitize.scope == Scope::All { Scope::All } else { Scope::Off };
                Questions::Presented { texts: SanitizeConfig { scope, ..sanitize }, secrets: Secrets::Keep }
            }
        }
    }

    /// What the caller gets of the result of `upstream` that asks it for more, about what is called `id`.
    ///
    /// # Errors
    /// The caller cannot be asked, or the result is more than a question.
    pub(super) fn asked_back(
        &self,
        caller: &Caller,
        upstream: &str,
        id: &str,
        passage: &Passage,
        result: &Raw,
    ) -> Result<Raw, GatewayError> {
        let refuse = |reason: String| {
            GatewayError::new(Code::UpstreamError, format!("the server asks for more input, and {reason}"))
                .at(id)
                .with("upstream", upstream)
        };
        if !caller.is_modern() {
            return Err(refuse("the protocol of this client has no way to give it".to_owned()));
        }
        let question = self.question_of(caller, upstream, result).map_err(refuse)?;
        let state = self.guards.state_of(passage, question.state);
        let mut members = Map::new();
        members.insert("resultType".to_owned(), "input_required".into());
        if !question.requests.is_empty() {
            members.insert("inputRequests".to_owned(), question.requests.into());
        }
        if let Some(state) = state {
            members.insert("requestState".to_owned(), state.into());
        }
        Ok(Raw::of(&members))
    }

    fn question_of(&self, caller: &Caller, upstream: &str, result: &Raw) -> Result<Question, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Request<'r> {
            method: String,
            #[serde(borrow, default)]
            params: Option<&'r RawValue>,
        }
        let text = std::str::from_utf8(result.bytes()).map_err(|error| error.to_string())?;
        strict::check(text).map_err(|error| format!("its question is ambiguous: {error}"))?;
        let members: Members<'_> = result.read().map_err(|error| error.to_string())?;
        const KNOWN: [&str; 4] = ["resultType", "inputRequests", "requestState", "_meta"];
        if let Some((name, _)) = members.0.iter().find(|(name, _)| !KNOWN.contains(&&**name)) {
            return Err(format!("its question carries `{name}`, which is no part of one"));
        }
        let state: Option<String> = members
            .get("requestState")
            .map(|state| serde_json::from_str(state.get()))
            .transpose()
            .map_err(|_| "its `requestState` is no text".to_owned())?;
        if state.as_ref().is_some_and(|state| state.len() > LONGEST_STATE) {
            return Err(format!("its `requestState` has more than {LONGEST_STATE} bytes"));
        }
        let asked = members.get("inputRequests").map_or("{}", RawValue::get);
        let asked: Members<'_> = serde_json::from_str(asked).map_err(|_| "its `inputRequests` are none".to_owned())?;
        if asked.0.len() > MOST_REQUESTS || (asked.0.is_empty() && state.is_none()) {
            return Err(format!("it has {} questions; there must be 1 to {MOST_REQUESTS}", asked.0.len()));
        }
        let questions = self.questions();
        let mut requests = Map::new();
        for (name, request) in &asked.0 {
            if name.len() > LONGEST_NAME || matches!(SanitizeConfig::default().clean(name), Cow::Owned(_)) {
                return Err("the name of a question is too long or holds hidden characters or markers".to_owned());
            }
            let Request { method, params } = serde_json::from_str(request.get())
                .map_err(|_| format!("its question `{name}` is not a `method` with `params`"))?;
            match capability(&method) {
                Some(capability) if caller.client().can(capability) => {}
                _ => return Err(format!("this client offers no `{method}`")),
            }
            let params = questions.present(upstream, &method, params.map(Raw::of).as_ref())?;
            let mut request = Map::new();
            request.insert("method".to_owned(), method.into());
            if let Some(params) = params {
                request.insert("params".to_owned(), params.read().map_err(|error| error.to_string())?);
            }
            requests.insert(name.clone().into_owned(), request.into());
        }
        Ok(Question { requests, state })
    }
}

/// What a result asks for.
struct Question {
    requests: Map<String, Value>,
    /// What the upstream wants back.
    state: Option<String>,
}

/// The capability that a client must have to be asked this; `None` for what is no question.
pub(super) fn capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SHOWN: Questions = Questions::Presented {
        texts: SanitizeConfig { scope: Scope::Shown, html: Html::Escape },
        secrets: Secrets::Redact,
    };

    #[test]
    fn a_person_is_told_who_asks_in_clean_words() {
        let key = format!("AKIA{}", "IOSFODNN7EXAMPLE");
        let params = json!({
            "message": format!("Tom & <|im_start|>Jerry\u{200b}, is it {key}?"),
            "url": "https://h.example/?a=1&b=2",
            "requestedSchema": {"type": "object", "properties": {"who": {"enum": ["a & b"], "title": "Who\u{1b}[2J"}}},
        });
        let shown: Value =
            SHOWN.present("git", "elicitation/create", Some(&Raw::of(&params))).unwrap().unwrap().read().unwrap();
        let message = shown["message"].as_str().unwrap();
        assert!(message.starts_with("git asks: Tom &amp; &lt;|im_start|&gt;Jerry, is it [REDACTED"), "{message}");
        assert_eq!(shown["url"], params["url"]);
        assert_eq!(shown["requestedSchema"]["properties"]["who"], json!({"enum": ["a & b"], "title": "Who"}));
        let raw = Raw::of(&params);
        let untouched = Questions::AsTheyCame.present("git", "elicitation/create", Some(&raw)).unwrap();
        assert_eq!(untouched, Some(raw));
        assert_eq!(SHOWN.present("git", "roots/list", None), Ok(None));
    }

    #[test]
    fn what_would_come_back_changed_is_refused() {
        for params in [
            json!({"requestedSchema": {"properties": {"a\u{200b}": {}}}}),
            json!({"requestedSchema": {"properties": {"a": {"enum": ["<|im_start|>"]}}}}),
            json!({"requestedSchema": {"properties": {"a": {"default": {"b\u{0}": 1}}}}}),
        ] {
            assert!(SHOWN.present("git", "elicitation/create", Some(&Raw::of(&params))).is_err(), "{params}");
        }
    }

    #[test]
    fn a_question_is_known_however_it_is_written() {
        let cases = [
            (r#"{"resultType":"input_required"}"#, true),
            (r#"{"result\u0054ype":"input\u005frequired"}"#, true),
            (r#"{"resultType":"complete","content":[],"resultType":"input_required"}"#, true),
            (r#"{"resultType":"complete","content":[{"resultType":"input_required"}]}"#, false),
            (r#"{"content":[{"type":"text","text":"input_required \u0041"}]}"#, false),
            ("[]", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_question(&Raw::of_text(text.to_owned())), expected, "{text}");
        }
    }
}
