//! `resource_read` and `prompt_get`: what a model gets of resources and prompts (gateway surface, section 9.4).
//!
//! Both are results like those of tools: a summary where they are large, the whole by its handle. A resource may also
//! be named by its URI, since the results of tools link to resources that no list names.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::{Code, GatewayError};
use super::execute::{Along, Target, call_params, checked, failed};
use super::guard::consent::{Agreed, Passage};
use super::hub::Gateway;
use super::question::is_question;
use super::screen::{Origin, Read};
use super::session::Caller;
use super::snapshot::{Shelf, Snapshot};
use super::surface::MetaTool;
use super::upstream::{Call, Upstream};
use super::wire::Raw;
use crate::adapters::from_mcp_result;
use crate::event::{PartBody, ToolOutput};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    resource_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GetArgs<'a> {
    prompt_id: String,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

impl Gateway {
    pub(super) async fn resource_read(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        args: &ReadArgs,
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let id = args.resource_id.as_str();
        let listed = find_in(snapshot.resources.as_ref(), id).map(|target| Cow::Borrowed(target.item));
        let Some(item) = listed.or_else(|| snapshot.resource_at(id)) else {
            let reason = "no such resource is in the catalog now; find one with resource_browse";
            return Err(GatewayError::new(Code::ResourceNotFound, reason).at(id));
        };
        let upstream = self.upstream_for(item.server.as_deref(), id)?;
        let asked = json!({ "uri": item.metadata.get("uri").and_then(Value::as_str).unwrap_or(&item.name) });
        let admission = self.guards.gate(caller, MetaTool::ResourceRead, Some(&item))?;
        let read = (MetaTool::ResourceRead, &*item);
        let passage = match self.guards.agree(caller, read, &admission, &asked, along).await? {
            Agreed::Go(passage) => passage,
            Agreed::Ask(question) => return Ok(question),
        };
        let arguments = Raw::of(&asked);
        let origin =
            Origin { id, name: &item.name, arguments: &arguments, sensitivity: self.guards.sensitivity(&item) };
        let params = passage.along.params(&arguments);
        self.fetched(caller, upstream, "resources/read", (origin, &params), &passage, contents).await
    }

    pub(super) async fn prompt_get(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        args: &GetArgs<'_>,
        along: &Along,
    ) -> Result<Raw, GatewayError> {
        let id = args.prompt_id.as_str();
        let Some(target) = find_in(snapshot.prompts.as_ref(), id) else {
            let reason = "no such prompt is in the catalog now; find one with prompt_browse";
            return Err(GatewayError::new(Code::PromptNotFound, reason).at(id));
        };
        let item = target.item;
        let admission = self.guards.gate(caller, MetaTool::PromptGet, Some(item))?;
        let arguments = checked(&target, args.args, self.config.tolerant_args)?;
        let got = (MetaTool::PromptGet, item);
        let passage = match self.guards.agree(caller, got, &admission, &arguments.value, along).await? {
            Agreed::Go(passage) => passage,
            Agreed::Ask(question) => return Ok(question),
        };
        let upstream = self.upstream(item)?;
        let params = passage.along.params(&call_params(&item.name, &arguments.raw, None));
        let sensitivity = self.guards.sensitivity(item);
        let origin = Origin { id, name: &item.name, arguments: &arguments.raw, sensitivity };
        self.fetched(caller, upstream, "prompts/get", (origin, &params), &passage, messages).await
    }

    async fn fetched(
        &self,
        caller: &Caller,
        upstream: &Upstream,
        method: &str,
        (origin, params): (Origin<'_>, &Raw),
        passage: &Passage,
        read: Read,
    ) -> Result<Raw, GatewayError> {
        let (progress, questions) = (passage.along.progress.as_ref(), self.questions());
        let call = Call { method, params: Some(params), caller: Some(caller), progress, questions };
        let result = upstream.request(call).await.map_err(|fault| failed(upstream.name(), &fault, origin.id))?;
        if is_question(&result) {
            return self.asked_back(caller, upstream.name(), origin.id, passage, &result);
        }
        let finish = |envelope: &mut _| self.guards.sanitize().envelope(envelope);
        self.screened(caller, origin, read, &result, &finish).await
    }
}

/// The item of a shelf.
fn find_in<'s>(shelf: Option<&'s Shelf>, id: &str) -> Option<Target<'s>> {
    let shelf = shelf?;
    shelf.item(id).map(|(at, item)| Target { shelf, at, item })
}

/// The content parts of a result of a tool.
#[derive(Serialize)]
struct Content<P> {
    content: Vec<P>,
}

impl<P: Serialize> Content<P> {
    fn read(self) -> Result<ToolOutput, String> {
        let text = serde_json::to_string(&self).map_err(|error| error.to_string())?;
        from_mcp_result(&text).map_err(|error| error.to_string())
    }
}

/// A `ReadResourceResult`. A single text is the content itself; of several, each is kept under its own handle.
fn contents(text: &str) -> Result<ToolOutput, String> {
    #[derive(Deserialize)]
    struct ReadResourceResult<'r> {
        #[serde(borrow)]
        contents: Vec<&'r RawValue>,
    }
    #[derive(Serialize)]
    struct Embedded<'r> {
        r#type: &'static str,
        resource: &'r RawValue,
    }
    let result: ReadResourceResult<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let content = result.contents.into_iter().map(|resource| Embedded { r#type: "resource", resource }).collect();
    let mut output = Content { content }.read()?;
    if let [part] = output.parts.as_mut_slice()
        && let PartBody::ResourceText { text, .. } = &mut part.body
    {
        part.body = PartBody::Text(std::mem::take(text));
    }
    Ok(output)
}

/// A `GetPromptResult`. Of several messages each stands under its role.
fn messages(text: &str) -> Result<ToolOutput, String> {
    #[derive(Deserialize)]
    struct GetPromptResult<'r> {
        #[serde(borrow)]
        messages: Vec<Message<'r>>,
    }
    #[derive(Deserialize)]
    struct Message<'r> {
        role: String,
        #[serde(borrow)]
        content: &'r RawValue,
    }
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Part<'r> {
        Role { r#type: &'static str, text: String },
        Content(&'r RawValue),
    }
    let result: GetPromptResult<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let several = result.messages.len() > 1;
    let mut content = Vec::new();
    for message in result.messages {
        if several {
            content.push(Part::Role { r#type: "text", text: format!("{}:", message.role) });
        }
        content.push(Part::Content(message.content));
    }
    Content { content }.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(output: Result<ToolOutput, String>) -> String {
        match output {
            Ok(output) => output.parts.iter().map(|part| format!("{:?}\n", part.body)).collect(),
            Err(error) => error,
        }
    }

    #[test]
    fn contents_are_parts_and_a_single_text_is_the_result() {
        insta::assert_snapshot!(bodies(contents(r#"{"contents":[{"uri":"a:b","text":"x"}]}"#)), @r#"Text("x")"#);
        let two =
            r#"{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:c","mimeType":"image/png","blob":"AAE="}],"_meta":{}}"#;
        insta::assert_snapshot!(bodies(contents(two)), @r#"
        ResourceText { uri: "a:b", media_type: None, text: "x" }
        ResourceBlob { uri: "a:c", media_type: Some("image/png"), bytes: [0, 1] }
        "#);
        assert!(contents(r#"{"content":[]}"#).unwrap_err().contains("contents"));
    }

    #[test]
    fn of_several_messages_each_has_its_role() {
        let one = r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}"#;
        insta::assert_snapshot!(bodies(messages(one)), @r#"Text("x")"#);
        let two = r#"{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"x"}},
            {"role":"assistant","content":{"type":"image","data":"AAE=","mimeType":"image/png"}}]}"#;
        insta::assert_snapshot!(bodies(messages(two)), @r#"
        Text("user:")
        Text("x")
        Text("assistant:")
        Image { bytes: [0, 1], media_type: "image/png" }
        "#);
        assert!(messages("[]").is_err());
    }
}
