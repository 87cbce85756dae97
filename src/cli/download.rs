//! Files of package indexes and web servers, into memory.
//!
//! What comes is bounded in size and in time and otherwise not judged: the caller knows its checksum. An address that
//! begins as https stays https. The variables of the environment that name proxies (`HTTPS_PROXY`, `NO_PROXY`, …) are
//! obeyed.
//!
//! A package index, such as PyPI, is asked for the page of the package (PEP 503 or PEP 691: HTML or JSON, both name the
//! address of each file), then for the file.

use std::time::Duration;

use contextweaver_core::text::unknown_host;
use regex::Regex;
use reqwest::header::ACCEPT;
use reqwest::{Client, Url, redirect};

/// The page of a package is read up to this many bytes.
const MOST_PAGE_BYTES: u64 = 16 << 20;

/// Redirects are followed this often.
const MOST_REDIRECTS: usize = 10;

const ACCEPTED: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// The package index that is asked when nobody names another.
const PYPI: &str = "https://pypi.org/simple";

/// A file could not be downloaded. Addresses are shown without names and passwords.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    /// An address is malformed.
    #[error("`{0}` is not a web address")]
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

/// How long a download may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Until the server is reached.
    pub(super) connect: Duration,
    /// From one part of the answer to the next.
    pub(super) idle: Duration,
    /// From the request to the last byte.
    pub(super) total: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let [connect, idle, total] = [30, 60, 900].map(Duration::from_secs);
        Self { connect, idle, total }
    }
}

/// The index that is meant when none is named: that of the variable `PIP_INDEX_URL`, or PyPI.
#[must_use]
pub(super) fn usual_index() -> String {
    std::env::var("PIP_INDEX_URL").ok().filter(|index| !index.is_empty()).unwrap_or_else(|| PYPI.to_owned())
}

/// Downloads files.
#[derive(Debug)]
pub(super) struct Downloader {
    client: Client,
}

impl Downloader {
    /// One with this patience.
    ///
    /// # Errors
    /// [`DownloadError::Failed`] when the system gives no means to check certificates.
    pub(super) fn new(patience: Patience) -> Result<Self, DownloadError> {
        let stays_https = redirect::Policy::custom(|attempt| {
            let began = attempt.previous().first().is_some_and(|first| first.scheme() == "https");
            if began && attempt.url().scheme() != "https" {
                attempt.error("the server redirects from https to an address without it")
            } else if attempt.previous().len() > MOST_REDIRECTS {
                attempt.error("too many redirects")
            } else {
                attempt.follow()
            }
        });
        let client = super::client::builder()
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .redirect(stays_https)
            .connect_timeout(patience.connect)
            .read_timeout(patience.idle)
            .timeout(patience.total)
            .build()
            .map_err(|error| DownloadError::Failed { address: "downloads".to_owned(), reason: root(&error) })?;
        Ok(Self { client })
    }

    /// The bytes at `address`, at most `most_bytes`.
    ///
    /// # Errors
    /// [`DownloadError`].
    pub(super) async fn file(&self, address: &str, most_bytes: u64) -> Result<Vec<u8>, DownloadError> {
        self.get(&parsed(address)?, most_bytes).await
    }

    /// The bytes of `file` of `package` from the simple index at `index` (`https://…/simple`), at most `most_bytes`.
    ///
    /// # Errors
    /// [`DownloadError`].
    pub(super) async fn package_file(
        &self,
        index: &str,
        package: &str,
        file: &str,
        most_bytes: u64,
    ) -> Result<Vec<u8>, DownloadError> {
        let page = parsed(&format!("{}/{package}/", index.trim_end_matches('/')))?;
        let text = self.get(&page, MOST_PAGE_BYTES).await?;
        let found = listed(&String::from_utf8_lossy(&text), file).and_then(|found| page.join(&found).ok());
        let found = found.ok_or_else(|| DownloadError::NotListed { address: shown(&page), file: file.to_owned() })?;
        if page.scheme() == "https" && found.scheme() != "https" {
            return Err(failed(&found, "the index links from https to an address without it"));
        }
        self.get(&found, most_bytes).await
    }

    async fn get(&self, address: &Url, most_bytes: u64) -> Result<Vec<u8>, DownloadError> {
        let request = self.client.get(address.clone()).header(ACCEPT, format!("{ACCEPTED}, */*;q=0.05"));
        let response = request.send().await.and_then(reqwest::Response::error_for_status);
        let mut response = response.map_err(|error| failed(address, root(&error)))?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(address, root(&error)))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > most_bytes {
                return Err(failed(address, format!("more than {most_bytes} bytes")));
            }
        }
        Ok(bytes)
    }
}

fn parsed(address: &str) -> Result<Url, DownloadError> {
    let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| DownloadError::Address(address.to_owned()))
}

/// The address of `file` on the page of its package, in either form of page.
fn listed(page: &str, file: &str) -> Option<String> {
    let link = Regex::new(&format!(r#"(?:href\s*=|"url"\s*:)\s*"([^"\#]*{})["\#]"#, regex::escape(file))).ok()?;
    Some(link.captures(page)?.get(1)?.as_str().to_owned())
}

/// The address without a name and a password.
fn shown(address: &Url) -> String {
    let mut address = address.clone();
    // Fails for addresses that can have none.
    let _ = address.set_username("");
    let _ = address.set_password(None);
    address.into()
}

fn failed(address: &Url, reason: impl Into<String>) -> DownloadError {
    DownloadError::Failed { address: shown(address), reason: reason.into() }
}

/// What began an error.
pub(super) fn root(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "the server took too long".to_owned();
    }
    if let Some(status) = error.status() {
        return format!("the server answered {status}");
    }
    if let Some(unknown) = unknown_host(error) {
        return unknown;
    }
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    reason
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    /// A server on this machine that answers every path with these bytes (status line and headers included) and then
    /// closes the connection; an unknown path gets no answer until the client gives up. Returns its address.
    pub(in crate::cli) fn serve(answers: BTreeMap<String, Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while reader.read_line(&mut request).is_ok_and(|read| read > 2) {}
                let path = request.split(' ').nth(1).unwrap_or_default();
                match answers.get(path) {
                    Some(answer) => stream.write_all(answer).unwrap_or_default(),
                    None => silent.push(stream),
                }
            }
        });
        address
    }

    /// An answer with this status and this body.
    pub(in crate::cli) fn answer(status: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

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

    #[test]
    fn downloads_end_in_bytes_or_in_a_reason() {
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec();
        let again =
            b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
        let moved = b"HTTP/1.1 302 Found\r\nLocation: /file\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec();
        let page = br#"<a href="../../file">p-1.whl</a> <a href="/files/p-1.whl">"#;
        let answers = [
            ("/file", answer("200 OK", b"content")),
            ("/files/p-1.whl", answer("200 OK", b"wheel")),
            ("/simple/p/", answer("200 OK", page)),
            ("/gone", answer("404 Not Found", b"no")),
            ("/moved", moved),
            ("/again", again),
            ("/cut", cut),
        ];
        let server = serve(answers.map(|(path, bytes)| (path.to_owned(), bytes)).into_iter().collect());
        let short = Duration::from_millis(300);
        let downloader = Downloader::new(Patience { connect: short, idle: short, total: short * 4 }).unwrap();
        let text = |result: Result<Vec<u8>, DownloadError>| match result {
            Ok(bytes) => String::from_utf8(bytes).unwrap(),
            Err(error) => error.to_string().replace(&server, "SERVER"),
        };
        let get = |path: &str| text(block_on(downloader.file(&format!("{server}{path}"), 7)));
        assert_eq!(get("/file"), "content");
        assert_eq!(get("/moved"), "content");
        assert_eq!(get("/gone"), "SERVER/gone: the server answered 404 Not Found");
        assert_eq!(get("/again"), "SERVER/again: too many redirects");
        assert_eq!(get("/silent"), "SERVER/silent: the server took too long");
        assert!(get("/cut").starts_with("SERVER/cut: "), "{}", get("/cut"));
        assert_eq!(text(block_on(downloader.file(&format!("{server}/file"), 6))), "SERVER/file: more than 6 bytes");
        assert_eq!(text(block_on(downloader.file("ftp://a/b", 6))), "`ftp://a/b` is not a web address");
        let from = |file: &str| text(block_on(downloader.package_file(&format!("{server}/simple/"), "p", file, 9)));
        assert_eq!(from("p-1.whl"), "wheel");
        assert_eq!(from("p-2.whl"), "SERVER/simple/p/ does not list p-2.whl");
        let closed = "http://user:secret@127.0.0.1:9/x";
        let error = text(block_on(downloader.file(closed, 1)));
        assert!(error.starts_with("http://127.0.0.1:9/x: ") && !error.contains("secret"), "{error}");
    }
}
