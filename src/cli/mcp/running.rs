//! What a running gateway says of itself over HTTP, for the commands that ask it.
//!
//! An answer is bounded in size and in time. Redirects are not followed: the token is for the gateway alone.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, redirect};

use crate::cli::client;

/// Bytes of an answer, at most.
const MOST_BYTES: usize = 4 << 20;

/// What a gateway answered.
#[derive(Debug)]
pub(super) struct Answer {
    /// What was asked.
    pub(super) address: String,
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// Asks the gateway that listens at `url` for `path`, such as `/metrics`, with the token in a file if there is one; gives the
/// answer whatever its status.
///
/// # Errors
/// The gateway is not reached within `patience`, its answer is no text or longer than 4 MiB, or the token cannot be read.
pub(super) async fn get(url: &str, path: &str, token_file: Option<&Path>, patience: Duration) -> Result<Answer> {
    ask(url, path, None, token_file, patience).await
}

/// As [`get`]; with a body, JSON, it is posted.
///
/// # Errors
/// As [`get`].
pub(super) async fn ask(
    url: &str,
    path: &str,
    body: Option<String>,
    token_file: Option<&Path>,
    patience: Duration,
) -> Result<Answer> {
    // The address of a console is printed with its token there.
    let bare = url.split('#').next().unwrap_or_default().trim_end_matches('/');
    let bare = ["/mcp", path].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
    let address = format!("{bare}{path}");
    let client = client::builder().timeout(patience).redirect(redirect::Policy::none()).build()?;
    let mut request = match body {
        Some(body) => client.post(&address).header(CONTENT_TYPE, "application/json").body(body),
        None => client.get(&address),
    };
    if let Some(file) = token_file {
        let token = std::fs::read_to_string(file).with_context(|| format!("--token-file: {}", file.display()))?;
        request = request.bearer_auth(token.trim());
    }
    let failed = || address.clone();
    let mut answer = request.send().await.with_context(failed)?;
    let status = answer.status();
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.with_context(failed)? {
        if bytes.len() + chunk.len() > MOST_BYTES {
            bail!("{address}: more than {MOST_BYTES} bytes");
        }
        bytes.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(bytes).with_context(failed)?;
    Ok(Answer { address, status, text })
}
