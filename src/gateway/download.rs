//! A file of a package index, such as PyPI, into memory.
//!
//! The index is asked for the page of the package (PEP 503 or PEP 691: HTML or JSON, both name the address of each
//! file), then for the file. What comes is bounded in size and otherwise not judged: the caller knows its checksum.

use regex::Regex;
use reqwest::header::ACCEPT;
use reqwest::{Client, Url};

/// The page of a package is read up to this many bytes.
const MOST_PAGE_BYTES: u64 = 16 << 20;

const ACCEPTED: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// A file could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// An address is none.
    #[error("`{0}` is no address")]
    Address(String),
    /// A server was not reached, or did not give what it was asked for.
    #[error("{address}: {reason}")]
    Failed {
        /// What was asked for.
        address: String,
        /// What happened.
        reason: String,
    },
    /// The index does not have the file.
    #[error("{address} does not list {file}")]
    NotListed {
        /// The page of the package.
        address: String,
        /// The file.
        file: String,
    },
}

/// The bytes of `file` of `package` from the simple index at `index` (`https://…/simple`), at most `most_bytes`.
///
/// # Errors
/// [`DownloadError`].
pub async fn download(index: &str, package: &str, file: &str, most_bytes: u64) -> Result<Vec<u8>, DownloadError> {
    let address = format!("{}/{package}/", index.trim_end_matches('/'));
    let page = Url::parse(&address).map_err(|_| DownloadError::Address(address.clone()))?;
    // Another part of the program may have chosen one already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| failed(&page, &error))?;
    let text = get(&client, page.clone(), MOST_PAGE_BYTES).await?;
    let found = listed(&String::from_utf8_lossy(&text), file).and_then(|found| page.join(&found).ok());
    let found = found.ok_or(DownloadError::NotListed { address, file: file.to_owned() })?;
    get(&client, found, most_bytes).await
}

/// The address of `file` on the page of its package, in either form of page.
fn listed(page: &str, file: &str) -> Option<String> {
    let link = Regex::new(&format!(r#"(?:href\s*=|"url"\s*:)\s*"([^"\#]*{})["\#]"#, regex::escape(file))).ok()?;
    Some(link.captures(page)?.get(1)?.as_str().to_owned())
}

async fn get(client: &Client, address: Url, most_bytes: u64) -> Result<Vec<u8>, DownloadError> {
    let request = client.get(address.clone()).header(ACCEPT, format!("{ACCEPTED}, */*;q=0.05"));
    let response = request.send().await.and_then(reqwest::Response::error_for_status);
    let mut response = response.map_err(|error| failed(&address, &error))?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failed(&address, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > most_bytes {
            let reason = format!("more than {most_bytes} bytes");
            return Err(DownloadError::Failed { address: address.into(), reason });
        }
    }
    Ok(bytes)
}

fn failed(address: &Url, error: &reqwest::Error) -> DownloadError {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    DownloadError::Failed { address: address.to_string(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_both_forms_of_page() {
        let table = [
            (r#"<a href="../../a/b-1.0.whl#sha256=12">b-1.0.whl</a>"#, Some("../../a/b-1.0.whl")),
            (
                r#"{"files": [{"filename": "b-1.0.whl", "url": "https://f.example/b-1.0.whl"}]}"#,
                Some("https://f.example/b-1.0.whl"),
            ),
            (r#"<a href="/a/b-1x0.whl">b-1x0.whl</a>"#, None),
            (r#"<a href="/a/b-1.0.whl.metadata">"#, None),
            ("b-1.0.whl", None),
        ];
        for (page, expected) in table {
            assert_eq!(listed(page, "b-1.0.whl").as_deref(), expected, "{page}");
        }
    }
}
