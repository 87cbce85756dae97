//! What a running gateway says of itself over HTTP, for the commands that ask it.
//!
//! An answer is bounded in size and in time. Redirects are not followed: the token is for the gateway alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use contextweaver_core::files::{Unread, read_text_file};
use contextweaver_core::text::unknown_host;
use reqwest::header::CONTENT_TYPE;
use reqwest::{StatusCode, Url, redirect};

use crate::cli::client;

/// Bytes of an answer, at most.
const MOST_BYTES: usize = 4 << 20;

/// Bytes of a file with a token, at most.
const MOST_TOKEN_BYTES: u64 = 64 << 10;

// No doc comment: it would become that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct Running {
    /// A running gateway: the address that it says it listens at, or that of its console
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    /// A file with the bearer token for `--url`
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) token_file: Option<PathBuf>,
}

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
/// The address is malformed, the gateway is not reached within `patience`, its answer is not text or longer than 4 MiB, or the file
/// has no token.
pub(super) async fn get(url: &str, path: &str, token_file: Option<&Path>, patience: Duration) -> Result<Answer> {
    ask(url, path, None, token_file, patience).await.map_err(|error| {
        let is_unreached = error.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect);
        if is_unreached { error.context(no_gateway(url)) } else { error }
    })
}

/// The error of the client, in plain words where the name of the host is not known: to start a gateway is no help then.
fn told(error: reqwest::Error, address: &str) -> anyhow::Error {
    match unknown_host(&error) {
        Some(unknown) => anyhow!("{address}: {unknown}; check the address in --url"),
        None => anyhow::Error::new(error).context(address.to_owned()),
    }
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
    // The address of a console is printed with its token there, and an address to listen at has no scheme.
    let named = url.split('#').next().unwrap_or_default();
    let (scheme, rest) = named.split_once("://").unwrap_or(("http", named));
    let rest = rest.trim_end_matches('/');
    let rest = ["/mcp", path].iter().find_map(|end| rest.strip_suffix(end)).unwrap_or(rest);
    let address = format!("{scheme}://{rest}{path}");
    let is_usable = Url::parse(&address).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    // A parser takes the first part of the path for a host that is missing.
    if !is_usable || rest.is_empty() || rest.starts_with('/') {
        bail!("--url: {url:?} is not an address; write one such as http://127.0.0.1:8080");
    }
    let client = client::builder().timeout(patience).redirect(redirect::Policy::none()).build()?;
    let mut request = match body {
        Some(body) => client.post(&address).header(CONTENT_TYPE, "application/json").body(body),
        None => client.get(&address),
    };
    if let Some(file) = token_file {
        request = request.bearer_auth(token(file).with_context(|| format!("--token-file: {}", file.display()))?);
    }
    let failed = || address.clone();
    let mut answer = request.send().await.map_err(|error| told(error, &address))?;
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

/// That nothing listens at the address of a gateway.
fn no_gateway(url: &str) -> String {
    // What follows is a token.
    let url = url.split('#').next().unwrap_or_default();
    let address = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    let (listen, console) = match address.parse::<std::net::SocketAddr>() {
        Ok(address) => (format!(" --listen {address}"), address.to_string()),
        Err(_) => (String::new(), "ADDRESS:PORT".to_owned()),
    };
    format!(
        "no gateway answers at {url}; start one with `contextweaver mcp serve --transport http{listen}`, or on standard streams \
         with `--console {console}`, or give its address with --url"
    )
}

/// That a gateway wants a token, and has none that it knows.
pub(super) fn unknown_token(address: &str, token_file: Option<&Path>) -> String {
    match token_file {
        Some(file) => format!("{address}: the gateway does not know the token in {}; check that file", file.display()),
        None => format!("{address}: the gateway wants a token; give it with --token-file"),
    }
}

/// The token in a file: its one line.
fn token(file: &Path) -> Result<String> {
    let text = match read_text_file(file, MOST_TOKEN_BYTES).map_err(|error| error.reason) {
        Err(reason @ Unread::TooLarge { .. }) => bail!("{reason}; a token is one line"),
        read => read?,
    };
    let token = text.trim();
    if token.is_empty() {
        bail!("it is empty; write the token into it");
    }
    if token.lines().nth(1).is_some() {
        bail!("it has several lines; leave only the token in it");
    }
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        bail!("a token has only ASCII letters, digits and symbols, and no spaces");
    }
    Ok(token.to_owned())
}
