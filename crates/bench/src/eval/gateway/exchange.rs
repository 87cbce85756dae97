//! Calls and their answers, counted: what a result would have cost in a prompt, what the gateway's answer costs, and
//! whether what it stored is what the server gave.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::record::Injected;
use contextweaver_context::event::ArtifactRef;
use contextweaver_core::text::Estimator;
use contextweaver_gateway::LocalClient;
use contextweaver_gateway::wire::Raw;

/// Characters that a view is asked for.
const LOOK: usize = 200;

/// The exact number of tokens of a text (cl100k_base).
#[must_use]
pub fn tokens(text: &str) -> usize {
    Estimator::Cl100kBase.count(text)
}

/// A result of a tool, a resource or a prompt, read by rules that share nothing with the gateway.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Given {
    /// Of a tool.
    content: Vec<Value>,
    structured_content: Option<Box<RawValue>>,
    /// Of a resource.
    contents: Vec<Value>,
    /// Of a prompt.
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    content: Value,
}

impl Given {
    fn of(result: &Raw) -> Self {
        result.read().unwrap_or_default()
    }

    fn parts(&self) -> impl Iterator<Item = &Value> {
        self.content.iter().chain(&self.contents).chain(self.messages.iter().map(|message| &message.content))
    }
}

fn text_of(part: &Value) -> Option<&str> {
    part.get("text").or_else(|| part.get("resource")?.get("text"))?.as_str()
}

/// The texts of a result, one below the other; its structured content where there are none.
#[must_use]
pub fn texts(result: &Raw) -> String {
    let result = Given::of(result);
    let texts: Vec<&str> = result.parts().filter_map(text_of).collect();
    match (texts.is_empty(), &result.structured_content) {
        (true, Some(structured)) => structured.get().to_owned(),
        _ => texts.join("\n"),
    }
}

/// The code and the message of an answer that is a failure of the gateway.
#[must_use]
pub fn failure(answer: &Raw) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Failure {
        error: String,
        message: String,
    }
    let failure: Failure = serde_json::from_str(&texts(answer)).ok()?;
    Some((failure.error, failure.message))
}

/// The handles that an answer names.
#[must_use]
pub fn handles(answer: &Raw) -> Vec<String> {
    let envelope: Value = serde_json::from_str(&texts(answer)).unwrap_or_default();
    let artifacts = envelope.get("artifacts").and_then(Value::as_array).into_iter().flatten();
    artifacts.filter_map(|artifact| artifact.get("handle")?.as_str().map(str::to_owned)).collect()
}

/// What a server gave, in every form in which it may be stored as it is.
fn contents(result: &Raw) -> Vec<Vec<u8>> {
    let all_texts = texts(result).into_bytes();
    let result = Given::of(result);
    let mut contents = vec![all_texts];
    contents.extend(result.structured_content.as_ref().map(|structured| structured.get().as_bytes().to_vec()));
    for part in result.parts() {
        contents.extend(text_of(part).map(|text| text.as_bytes().to_vec()));
        contents.extend(part.get("uri").and_then(Value::as_str).map(|uri| uri.as_bytes().to_vec()));
        let encoded = part.get("data").or_else(|| part.get("blob")).or_else(|| part.get("resource")?.get("blob"));
        let encoded = encoded.and_then(Value::as_str);
        contents.extend(encoded.and_then(|encoded| STANDARD.decode(encoded).ok()));
    }
    contents
}

/// The calls of a case so far.
#[derive(Debug, Default)]
pub struct Ledger {
    injected: Injected,
    contents: Vec<Vec<u8>>,
}

impl Ledger {
    /// Notes what a server gave and what the gateway made of it.
    pub fn add(&mut self, result: &Raw, answer: &Raw) {
        self.injected.raw_tokens += tokens(&texts(result));
        self.injected.wire_tokens += tokens(&String::from_utf8_lossy(result.bytes()));
        self.injected.answer_tokens += tokens(&texts(answer));
        self.contents.extend(contents(result));
    }

    /// The sums, with what the gateway of `client` has stored.
    ///
    /// # Errors
    /// What the store says.
    pub fn close(mut self, client: &LocalClient) -> Result<Injected, String> {
        for artifact in client.artifacts().map_err(|error| error.to_string())? {
            let content = client.artifact(&artifact.handle).map_err(|error| error.to_string())?;
            self.injected.artifacts += 1;
            self.injected.artifact_bytes += content.len() as u64;
            self.injected.recovered += usize::from(self.contents.iter().any(|given| **given == *content));
            if let Ok(text) = std::str::from_utf8(&content) {
                self.injected.texts += 1;
                self.injected.viewed += usize::from(shows(client, &artifact, text));
            }
        }
        Ok(self.injected)
    }
}

/// Whether a view shows the beginning of `text` as it is.
fn shows(client: &LocalClient, artifact: &ArtifactRef, text: &str) -> bool {
    let beginning: String = text.chars().take(LOOK).collect();
    let look = json!({"handle": artifact.handle, "selector": {"type": "head", "chars": LOOK}});
    client.call("tool_view", &look).is_ok_and(|answer| texts(&answer).contains(beginning.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_what_its_parts_say() {
        let result = Raw::of(&json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x:1", "text": "b"}},
            {"type": "resource_link", "uri": "x:2", "name": "two"},
        ], "structuredContent": {"k": 1.50}}));
        assert_eq!(texts(&result), "a\nb");
        let expected: [&[u8]; 6] = [b"a\nb", br#"{"k":1.5}"#, b"a", &[0, 1, 2], b"b", b"x:2"];
        assert_eq!(contents(&result), expected);
        assert_eq!(texts(&Raw::of(&json!({"structuredContent": {"k": 1}}))), r#"{"k":1}"#);
        assert_eq!(texts(&Raw::of(&json!({"contents": [{"uri": "x:1", "text": "c"}]}))), "c");
        let message = json!({"role": "user", "content": {"type": "text", "text": "d"}});
        assert_eq!(texts(&Raw::of(&json!({ "messages": [message] }))), "d");
    }

    #[test]
    fn failures_and_handles_are_read_from_the_text() {
        let answer = |text: &str| Raw::of(&json!({"content": [{"type": "text", "text": text}]}));
        let failed = answer(r#"{"error":"ARGS_INVALID","message":"no","path":"","retryable":false}"#);
        assert_eq!(failure(&failed), Some(("ARGS_INVALID".to_owned(), "no".to_owned())));
        assert_eq!(failure(&answer("plain")), None);
        assert_eq!(handles(&answer(r#"{"artifacts":[{"handle":"artifact:1"}]}"#)), ["artifact:1"]);
    }
}
