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
use serde_json::Value;
use serde_json::value::RawValue;

use crate::common::sanitize::{Html, SanitizeConfig};
use crate::protocol::client_info::ClientInfo;
use crate::protocol::message::{Members, Raw, RpcError, URL_ELICITATION_REQUIRED};
use contextweaver_context::Secrets;
use contextweaver_context::store::redact;

/// Why a question cannot be put to a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PresentError {
    /// Its parameters cannot be read.
    #[error(transparent)]
    Unreadable(#[from] serde_json::Error),
    /// It is longer than what is read and cleaned while others wait.
    #[error("its question has {0} bytes; at most {LONGEST} are put to a person")]
    TooLong(usize),
    /// A text that must come back unchanged holds what sanitising would remove.
    #[error("a name or choice in it holds hidden characters or markers")]
    Hidden,
}

/// How questions of upstreams are put to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Questions {
    /// Unchanged, without the name of the upstream.
    AsTheyCame,
    /// Under the name of the upstream that asks.
    Presented {
        /// How their texts are cleaned.
        texts: SanitizeConfig,
        /// What becomes of secrets in them.
        secrets: Secrets,
    },
}

/// The request to ask a person.
pub(crate) const ELICIT: &str = "elicitation/create";

/// Addresses that one error names, at most.
const MOST_ADDRESSES: usize = 32;

/// Bytes of the parameters of a question, at most.
const LONGEST: usize = 1 << 20;

/// Bytes of an upstream's name for what it has a person do at an address, at most: it is remembered.
const LONGEST_NAME: usize = 256;

/// Members of a question whose values the answer repeats, or that lead somewhere.
const VERBATIM: [&str; 10] =
    ["const", "data", "default", "elicitationId", "enum", "mimeType", "pattern", "required", "uri", "url"];

impl Questions {
    /// The parameters of a question as the client of `upstream` gets them.
    ///
    /// # Errors
    /// [`PresentError`].
    pub(crate) fn present(
        self,
        upstream: &str,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<Option<Raw>, PresentError> {
        let (Self::Presented { texts, secrets }, Some(raw)) = (self, params) else { return Ok(params.cloned()) };
        if raw.bytes().len() > LONGEST {
            return Err(PresentError::TooLong(raw.bytes().len()));
        }
        let mut params: Value = raw.read()?;
        Presenter { texts, secrets }.clean(&mut params)?;
        if method == ELICIT
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
    fn clean(&self, value: &mut Value) -> Result<(), PresentError> {
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

    fn check_all(&self, value: &Value) -> Result<(), PresentError> {
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

    /// Refuses a text that would have to be cleaned and must not be changed. HTML is left out: it only acts on pages.
    fn check(&self, text: &str) -> Result<(), PresentError> {
        match (SanitizeConfig { html: Html::Keep, ..self.texts }).clean(text) {
            Cow::Borrowed(_) => Ok(()),
            Cow::Owned(_) => Err(PresentError::Hidden),
        }
    }
}

/// Whether a result asks the caller for more, in the stateless protocol, for whichever parser.
pub(crate) fn is_question(result: &Raw) -> bool {
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

/// Whether a client can be asked this; for what is to be done at an address, the upstream's name for that.
///
/// # Errors
/// It is not a question, or one that this client does not offer to answer.
pub(crate) fn check_askable(
    client: &ClientInfo,
    method: &str,
    params: Option<&Raw>,
) -> Result<Option<String>, RpcError> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Elicitation {
        mode: Option<String>,
        elicitation_id: Option<String>,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Sampling<'s> {
        #[serde(borrow)]
        tools: Option<&'s RawValue>,
        #[serde(borrow)]
        tool_choice: Option<&'s RawValue>,
    }
    if !capability(method).is_some_and(|capability| client.can(capability)) {
        return Err(RpcError::method_not_found(method));
    }
    if method == "sampling/createMessage" {
        let params = params.map(Raw::read::<Sampling<'_>>).transpose().map_err(RpcError::invalid_params)?;
        let uses_tools = params.is_some_and(|params| params.tools.or(params.tool_choice).is_some());
        if uses_tools && !client.samples_with_tools() {
            return Err(RpcError::invalid_params("this client offers no sampling with tools"));
        }
    }
    if method != ELICIT {
        return Ok(None);
    }
    let params = params.map(Raw::read::<Elicitation>).transpose().map_err(RpcError::invalid_params)?;
    let Elicitation { mode, elicitation_id } = params.unwrap_or_default();
    let mode = mode.as_deref().unwrap_or("form");
    if !client.elicits(mode) {
        return Err(RpcError::invalid_params(format!("this client offers no elicitation in mode `{}`", brief(mode))));
    }
    Ok(elicitation_id.filter(|id| mode == "url" && id.len() <= LONGEST_NAME))
}

/// What a person has to do at addresses before a request is made again, each as the parameters of a question; `None` where
/// the error says no such thing, or too much of it.
pub(crate) fn required(error: &RpcError) -> Option<Vec<Raw>> {
    #[derive(Deserialize)]
    struct Data<'d> {
        #[serde(borrow)]
        elicitations: Vec<&'d RawValue>,
    }
    let data = error.data.as_deref().filter(|data| data.get().len() <= LONGEST)?;
    if error.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let Data { elicitations } = serde_json::from_str(data.get()).ok()?;
    (1..=MOST_ADDRESSES).contains(&elicitations.len()).then(|| elicitations.into_iter().map(Raw::of).collect())
}

/// A text of an upstream as far as an error quotes it.
fn brief(text: &str) -> &str {
    text.get(..20).unwrap_or(text)
}

/// The capability that a client must have to be asked this; `None` for a method that is not a question.
pub(crate) fn capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        ELICIT => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::common::sanitize::Scope;

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
        assert!(SHOWN.present("git", "roots/list", None).unwrap().is_none());
    }

    #[test]
    fn what_would_come_back_changed_is_refused() {
        for params in [
            json!({"requestedSchema": {"properties": {"a\u{200b}": {}}}}),
            json!({"requestedSchema": {"properties": {"a": {"enum": ["<|im_start|>"]}}}}),
            json!({"requestedSchema": {"properties": {"a": {"default": {"b\u{0}": 1}}}}}),
            json!({"message": "x".repeat(LONGEST)}),
        ] {
            assert!(SHOWN.present("git", "elicitation/create", Some(&Raw::of(&params))).is_err(), "{params}");
        }
    }

    #[test]
    fn a_model_is_asked_to_use_tools_only_where_its_client_offers_that() {
        let ask = |sampling: &Value, params: &Value| {
            let capabilities = [("sampling".to_owned(), sampling.clone())].into_iter().collect();
            let client = ClientInfo { capabilities, ..ClientInfo::default() };
            check_askable(&client, "sampling/createMessage", Some(&Raw::of(params))).is_ok()
        };
        let (plain, able) = (json!({}), json!({"tools": {}}));
        for (params, uses_tools) in [
            (json!({"messages": []}), false),
            (json!({"messages": [], "tools": null}), false),
            (json!({"messages": [], "tools": []}), true),
            (json!({"messages": [], "toolChoice": {"mode": "auto"}}), true),
        ] {
            assert_eq!(ask(&plain, &params), !uses_tools, "{params}");
            assert!(ask(&able, &params), "{params}");
        }
    }

    #[test]
    fn an_error_names_addresses_within_bounds() {
        let named = |code: i64, data: Value| {
            let mut error = RpcError::new(code, "go");
            error.data = serde_json::value::to_raw_value(&data).ok();
            required(&error).map(|all| all.len())
        };
        let some = |count: usize| json!({"elicitations": vec![json!({"mode": "url"}); count]});
        assert_eq!(named(URL_ELICITATION_REQUIRED, some(MOST_ADDRESSES)), Some(MOST_ADDRESSES));
        assert_eq!(named(URL_ELICITATION_REQUIRED, some(MOST_ADDRESSES + 1)), None);
        assert_eq!(named(URL_ELICITATION_REQUIRED, some(0)), None);
        assert_eq!(named(URL_ELICITATION_REQUIRED, json!({"elicitations": ["x".repeat(LONGEST)]})), None);
        assert_eq!(named(-32_000, some(1)), None);
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
