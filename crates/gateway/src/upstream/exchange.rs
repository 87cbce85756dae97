//! A token for an upstream in place of the caller's own: OAuth 2.0 Token Exchange (RFC 8693).
//!
//! No token and no secret is part of an error, and of what the authorization server says only its error code is.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::credentials::{ClientAuthentication, Exchange};
use super::fault::Fault;
use super::http::body_within;
use crate::common::secret::Secret;
use crate::session::identity::Presented;

/// What an exchange may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of an answer of the authorization server, at most.
const LARGEST: usize = 256 * 1024;

/// The longest token, in bytes.
const LONGEST: usize = 16 * 1024;

/// How long a token is used of which the server does not say how long it is good.
const UNSAID: Duration = Duration::from_secs(60);

/// How long before its end a token is not used any more, at most: a call takes time.
const MARGIN: Duration = Duration::from_secs(30);

/// The longest time that a token is used, whatever the server says.
const LONGEST_USE: Duration = Duration::from_secs(24 * 60 * 60);

/// What an access token may be called by `issued_token_type`.
const ACCESS_TOKENS: [&str; 2] =
    ["urn:ietf:params:oauth:token-type:access_token", "urn:ietf:params:oauth:token-type:jwt"];

/// A token for the upstream.
#[derive(Debug)]
pub(super) struct Exchanged {
    pub(super) token: Secret,
    /// Until when it is used.
    pub(super) until: Instant,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// Asks for a token in place of that of the caller.
///
/// # Errors
/// The authorization server refuses it, cannot be reached, or gives no token.
pub(super) async fn exchange(rule: &Exchange, client: &Client, shown: &Presented) -> Result<Exchanged, Fault> {
    let begun = Instant::now();
    let mut fields = vec![
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("subject_token", shown.token.text()),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ];
    let named = [("audience", &rule.audience), ("resource", &rule.resource), ("scope", &rule.scope)];
    fields.extend(named.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))));
    let mut request = client.post(rule.token_endpoint.clone()).header(ACCEPT, "application/json");
    match rule.client_authentication {
        ClientAuthentication::Basic => {
            let pair = format!("{}:{}", encoded(&rule.client_id), encoded(rule.client_secret.text()));
            let value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair)));
            let mut value = value.map_err(|_| malformed("the secret of the gateway cannot be sent"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        ClientAuthentication::Post => {
            fields.extend([("client_id", rule.client_id.as_str()), ("client_secret", rule.client_secret.text())]);
        }
    }
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form(&fields));
    let unreachable = |error: reqwest::Error| {
        let reason = error.without_url();
        Fault::Unavailable(format!("the token endpoint cannot be asked for a token for it: {reason}; try again later"))
    };
    let response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let text = body_within(response, LARGEST).await.map_err(unreachable)?;
    let text = text.ok_or_else(|| malformed("the answer of the token endpoint is too large"))?;
    let (token, used) = given(status, &text)?;
    Ok(Exchanged { token, until: (begun + used).min(shown.until) })
}

/// The token in an answer of this status, and for how long it is used.
///
/// # Errors
/// There is none that can be used.
fn given(status: StatusCode, text: &[u8]) -> Result<(Secret, Duration), Fault> {
    if status.is_server_error() || status.as_u16() == 429 {
        let status = status.as_u16();
        return Err(Fault::Unavailable(format!("the token endpoint answers with status {status}; try again later")));
    }
    if !status.is_success() {
        let refusal = serde_json::from_slice::<Refusal>(text).map(|refusal| refusal.error).unwrap_or_default();
        return Err(refused(&refusal, status.as_u16()));
    }
    // Why it cannot be read is not said, and of its members the names alone: the text has a token.
    let answer: Answer = serde_json::from_slice(text)
        .map_err(|_| malformed("the token endpoint answers with what is no object in JSON"))?;
    if let (None, Some(code)) = (answer.get("access_token"), text_of(&answer, "error")?) {
        return Err(refused(code, status.as_u16()));
    }
    let token = required(&answer, "access_token")?;
    if token.is_empty() || token.len() > LONGEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(malformed("the token endpoint gives a token that cannot be sent"));
    }
    if !required(&answer, "token_type")?.eq_ignore_ascii_case("bearer") {
        return Err(malformed("the token endpoint gives a token that is not a bearer token"));
    }
    if text_of(&answer, "issued_token_type")?.is_some_and(|issued| !ACCESS_TOKENS.contains(&issued)) {
        return Err(malformed("the token endpoint gives a token that, by `issued_token_type`, is no access token"));
    }
    let seconds = seconds_of(&answer, "expires_in")?.map(|seconds| seconds.min(LONGEST_USE.as_secs_f64()));
    let used = seconds.map_or(UNSAID, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    Ok((Secret::new(token), used.saturating_sub(MARGIN.min(used / 4))))
}

/// What a token endpoint answers.
type Answer = Map<String, Value>;

/// The member of that name, which is a text where it is there.
fn text_of<'a>(answer: &'a Answer, member: &str) -> Result<Option<&'a str>, Fault> {
    match answer.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(malformed(&format!("`{member}` in the answer of the token endpoint is no text"))),
    }
}

/// The same of a member that has to be there.
fn required<'a>(answer: &'a Answer, member: &str) -> Result<&'a str, Fault> {
    let missing = || malformed(&format!("the answer of the token endpoint has no `{member}`"));
    text_of(answer, member)?.ok_or_else(missing)
}

/// The seconds that a member says, where it is there. Some servers write the number as a text.
fn seconds_of(answer: &Answer, member: &str) -> Result<Option<f64>, Fault> {
    let seconds = match answer.get(member) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.parse::<f64>().ok().filter(|seconds| seconds.is_finite()),
        Some(value) => value.as_f64(),
    };
    let wrong = || malformed(&format!("`{member}` in the answer of the token endpoint is no number of seconds"));
    seconds.map(Some).ok_or_else(wrong)
}

fn refused(code: &str, status: u16) -> Fault {
    let is_code =
        (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let code = if is_code { format!("`{code}`") } else { format!("status {status}") };
    let remedy = match code.as_str() {
        "`invalid_client`" | "`unauthorized_client`" | "`unsupported_grant_type`" => {
            "the operator must permit the gateway's client the exchange at the authorization server"
        }
        "`invalid_target`" => "the operator must check `audience` and `resource` of the rule",
        "`invalid_scope`" => "the operator must check `scope` of the rule",
        _ => "sign in again, or ask for access to it",
    };
    Fault::Credentials(format!("the authorization server gives no token for it ({code}); {remedy}"))
}

fn malformed(reason: &str) -> Fault {
    Fault::Credentials(format!("{reason}; the operator must check `credentials.exchange`"))
}

/// Fields as a form has them.
fn form(fields: &[(&str, &str)]) -> String {
    let mut carrier = Url::parse("http://form").ok();
    if let Some(url) = &mut carrier {
        url.query_pairs_mut().extend_pairs(fields);
    }
    carrier.as_ref().and_then(Url::query).unwrap_or_default().to_owned()
}

/// A text as a part of a form.
fn encoded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Answers of a token endpoint, each behind a line with its status; and what reads them.
    pub(crate) fn token_answers() -> (Vec<String>, impl Fn(&[u8])) {
        let answers = [
            "200\n{\"access_token\":\"eyJhbGciOiJub25lIn0.e30.\",\"token_type\":\"Bearer\",\"expires_in\":3600,\
             \"issued_token_type\":\"urn:ietf:params:oauth:token-type:access_token\",\"scope\":\"a b\"}",
            "200\n{\"access_token\":\"t\",\"token_type\":\"bearer\"}",
            "400\n{\"error\":\"invalid_target\",\"error_description\":\"no such audience\"}",
            "503\nlater",
        ];
        let read = |input: &[u8]| {
            let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
            let status = StatusCode::from_bytes(&input[..end]).unwrap_or(StatusCode::OK);
            match given(status, input.get(end + 1..).unwrap_or_default()) {
                Ok((token, used)) => {
                    assert!(used <= LONGEST_USE && token.text().len() <= LONGEST);
                    assert!(HeaderValue::from_str(token.text()).is_ok(), "a token can be sent");
                }
                Err(fault) => assert!(fault.to_string().len() < 400, "a fault has nothing of the answer but its code"),
            }
        };
        (answers.map(str::to_owned).to_vec(), read)
    }

    #[test]
    fn an_answer_is_read_or_what_is_wrong_with_it_is_named() {
        const HOUR: &str = "good for 3570 s";
        let good = json!({"access_token": "s3cret", "token_type": "Bearer", "expires_in": 3600});
        let of = |kind: &str| format!("urn:ietf:params:oauth:token-type:{kind}");
        let cases = [
            (json!({}), HOUR),
            (json!({"expires_in": "3600"}), HOUR),
            (json!({"expires_in": 1e300}), "good for 86370 s"),
            (json!({"expires_in": null}), "good for 45 s"),
            (
                json!({"expires_in": "soon"}),
                "`expires_in` in the answer of the token endpoint is no number of seconds;",
            ),
            (json!({"expires_in": "inf"}), "`expires_in` in"),
            (json!({"expires_in": []}), "`expires_in` in"),
            (json!({"token_type": null}), "the answer of the token endpoint has no `token_type`;"),
            (json!({"token_type": 7}), "`token_type` in the answer of the token endpoint is no text;"),
            (json!({"token_type": "N_A"}), "that is not a bearer token;"),
            (json!({"access_token": null}), "has no `access_token`;"),
            (json!({"access_token": "two words"}), "that cannot be sent;"),
            (json!({"issued_token_type": of("access_token")}), HOUR),
            (json!({"issued_token_type": of("jwt")}), HOUR),
            (json!({"issued_token_type": of("refresh_token")}), "by `issued_token_type`, is no access token;"),
            (json!({"error": ""}), HOUR),
        ];
        let said = |text: &str| match given(StatusCode::OK, text.as_bytes()) {
            Ok((token, used)) => {
                assert_eq!(token.text(), "s3cret");
                format!("good for {} s", used.as_secs())
            }
            Err(fault) => fault.to_string(),
        };
        for (members, expected) in cases {
            let mut answer = good.clone();
            answer.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let said = said(&answer.to_string());
            assert!(said.contains(expected) && !said.contains("s3cret"), "{members}: {said}");
        }
        let refused = said(r#"{"error": "invalid_target"}"#);
        assert!(refused.contains("(`invalid_target`); the operator must check `audience`"), "{refused}");
        assert!(said("<html>").contains("no object in JSON;"));
    }
}
