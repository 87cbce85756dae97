//! Results out of files: a recorded session, one `CallToolResult`, or any file as it is.

use serde_json::Value;

use super::fidelity::Content;

/// Results in `bytes`, which come from the file called `name`. Text in other encodings is read with replacement
/// characters, since what is measured is what a prompt would show.
#[must_use]
pub fn contents(name: &str, bytes: &[u8]) -> Vec<Content> {
    let text = String::from_utf8_lossy(bytes);
    let document: Option<Value> =
        text.trim_start().starts_with('{').then(|| serde_json::from_str(&text).ok()).flatten();
    if let Some(calls) = document.as_ref().and_then(|document| document.get("calls")).and_then(Value::as_array) {
        return calls.iter().filter_map(recorded).collect();
    }
    let result = document.as_ref().filter(|document| is_result(document));
    let text = result.map_or_else(|| text.into_owned(), result_text);
    vec![Content::of(name.to_owned(), text)]
}

fn is_result(document: &Value) -> bool {
    document.get("content").is_some_and(Value::is_array) || document.get("structuredContent").is_some()
}

fn recorded(call: &Value) -> Option<Content> {
    let tool = call.get("tool").and_then(Value::as_str).unwrap_or("call");
    let number = call.get("seq").map(Value::to_string).unwrap_or_default();
    let text = result_text(call.get("result")?);
    Some(Content::of(format!("{number} {tool}"), text))
}

/// The text of the parts, one below the other; the structured content where there is none.
fn result_text(result: &Value) -> String {
    let parts = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |part: &Value| {
        let own = part.get("text").or_else(|| part.get("resource")?.get("text"))?;
        Some(own.as_str()?.to_owned())
    };
    let texts: Vec<String> = parts.iter().filter_map(text).collect();
    match result.get("structuredContent") {
        Some(structured) if texts.is_empty() => structured.to_string(),
        _ => texts.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_results_and_plain_files_are_told_apart() {
        let texts = |bytes: &str| -> Vec<(String, String)> {
            contents("file", bytes.as_bytes()).into_iter().map(|one| (one.name, one.text)).collect()
        };
        let own = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let session = r#"{"calls": [{"seq": 1, "tool": "t", "result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}]}"#;
        assert_eq!(texts(session), [own("1 t", "a\nb")]);
        assert_eq!(texts(r#"{"content": [], "structuredContent": {"x": 1}}"#), [own("file", r#"{"x":1}"#)]);
        assert_eq!(texts(r#"{"other": 1}"#), [own("file", r#"{"other": 1}"#)]);
        assert_eq!(texts("plain"), [own("file", "plain")]);
    }
}
