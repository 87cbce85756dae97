//! Reads the results of the methods that models see: of tools, resources and prompts.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::kinds::kind_of;
use contextweaver_context::adapters::{AdapterError, Bounds, from_mcp_result_within};
use contextweaver_context::event::{PartBody, ToolOutput};

/// A text is not a result of its method.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is not JSON of that form.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// Its content is not that of a tool's result.
    #[error(transparent)]
    Content(#[from] AdapterError),
}

/// Reads the result of a method.
pub(crate) type Read = fn(&str) -> Result<ToolOutput, ReadError>;

/// What is read of one result: each part that is not text gets a handle of its own, and each value takes seventy times the room of
/// its text.
const BOUNDS: Bounds = Bounds { parts: 1_000, others: 100, values: 100_000 };

/// Reads a `CallToolResult`. A content of very many parts is read as one text, its JSON.
///
/// # Errors
/// [`ReadError`].
pub(crate) fn tool_result(text: &str) -> Result<ToolOutput, ReadError> {
    Ok(from_mcp_result_within(text, BOUNDS)?)
}

/// The content parts of a result of a tool.
#[derive(Serialize)]
struct Content<P> {
    content: Vec<P>,
}

impl<P: Serialize> Content<P> {
    fn read(self) -> Result<ToolOutput, ReadError> {
        tool_result(&serde_json::to_string(&self)?)
    }
}

/// Reads a `ReadResourceResult`. A single text is the content itself; of several, each is kept under its own handle.
/// Pictures and recordings are what they are, and no files.
pub(crate) fn contents(text: &str) -> Result<ToolOutput, ReadError> {
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
    let result: ReadResourceResult<'_> = serde_json::from_str(text)?;
    let content = result.contents.into_iter().map(|resource| Embedded { r#type: "resource", resource }).collect();
    let mut output = Content { content }.read()?;
    if let [part] = output.parts.as_mut_slice()
        && let PartBody::ResourceText { text, .. } = &mut part.body
    {
        part.body = PartBody::Text(std::mem::take(text));
    }
    // Who reads a picture wants to see it.
    for part in &mut output.parts {
        let body = std::mem::replace(&mut part.body, PartBody::Text(String::new()));
        part.body = match body {
            PartBody::ResourceBlob { media_type: Some(media_type), bytes, uri } => match kind_of(&media_type) {
                Some("image") => PartBody::Image { bytes, media_type },
                Some(_) => PartBody::Audio { bytes, media_type },
                None => PartBody::ResourceBlob { media_type: Some(media_type), bytes, uri },
            },
            body => body,
        };
    }
    Ok(output)
}

/// Reads a `GetPromptResult`. Of several messages each stands under its role.
pub(crate) fn messages(text: &str) -> Result<ToolOutput, ReadError> {
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
    let result: GetPromptResult<'_> = serde_json::from_str(text)?;
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

    fn bodies(output: Result<ToolOutput, ReadError>) -> String {
        match output {
            Ok(output) => output.parts.iter().map(|part| format!("{:?}\n", part.body)).collect(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn contents_are_parts_and_a_single_text_is_the_result() {
        insta::assert_snapshot!(bodies(contents(r#"{"contents":[{"uri":"a:b","text":"x"}]}"#)), @r#"Text("x")"#);
        let two =
            r#"{"contents":[{"uri":"a:b","text":"x"},{"uri":"a:c","mimeType":"image/png","blob":"AAE="}],"_meta":{}}"#;
        insta::assert_snapshot!(bodies(contents(two)), @r#"
        ResourceText { uri: "a:b", media_type: None, text: "x" }
        Image { bytes: [0, 1], media_type: "image/png" }
        "#);
        let file = r#"{"contents":[{"uri":"a:c","mimeType":"application/pdf","blob":"AAE="}]}"#;
        insta::assert_snapshot!(bodies(contents(file)), @r#"ResourceBlob { uri: "a:c", media_type: Some("application/pdf"), bytes: [0, 1] }"#);
        assert!(contents(r#"{"content":[]}"#).unwrap_err().to_string().contains("contents"));
    }

    #[test]
    fn a_content_of_very_many_parts_is_one_text() {
        let content = |part: &str, number: usize| format!("[{}]", vec![part; number].join(","));
        let texts = |content: &str| tool_result(&format!(r#"{{"content":{content},"_meta":{{"a":1}}}}"#)).unwrap();
        let many = [
            content(r#"{"type":"zz"}"#, 101),
            content(r#"{"type":"text","text":"x"}"#, 1_001),
            content("{}", 200_000),
            format!(r#"[{{"type":"text","text":"x","annotations":{{"a":{}}}}}]"#, content("1", 100_000)),
        ];
        for content in &many {
            let output = texts(content);
            assert_eq!(output.parts.len(), 1);
            assert!(matches!(&output.parts[0].body, PartBody::Text(text) if text == content));
        }
        assert_eq!(texts(&content(r#"{"type":"zz"}"#, 100)).parts.len(), 100);
        let long = format!(r#"{{"content":[{{"type":"text","text":"x"}}],"_meta":{{"a":{}}}}}"#, content("1", 100_000));
        let output = tool_result(&long).unwrap();
        assert_eq!((output.parts.len(), output.other.is_empty()), (1, true));
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
