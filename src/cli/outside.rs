//! What the context engine asks of others: memory sources, and the hooks of a configuration.
//!
//! The engine is synchronous and knows no sockets. What has an address is reached from here, bounded in time and size.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use reqwest::{Client, Url, redirect};

use contextweaver_context::ContextConfig;
use contextweaver_context::hooks::{Exchange, HookConfig, Hooks};
use contextweaver_context::memory::{LocalMemories, MemorySource, SqliteMemories, mem0};
use contextweaver_context::store::database::Database;

/// Sends JSON to an address and reads what comes back.
struct Poster {
    client: Client,
    address: Url,
    key: Option<String>,
    patience: Duration,
    most_bytes: usize,
}

impl Poster {
    fn new(address: Url, key: Option<String>, patience: Duration, most_bytes: usize) -> Result<Self, String> {
        // A question may hold what only this address may read.
        let client = super::client::builder().redirect(redirect::Policy::none()).build();
        Ok(Self { client: client.map_err(|error| error.to_string())?, address, key, patience, most_bytes })
    }

    fn post(&self, body: &str, patience: Duration) -> Result<Vec<u8>, String> {
        // The caller may be a worker of a runtime already, and one cannot wait within another.
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime
                    .map_err(|error| error.to_string())?
                    .block_on(self.ask(body.to_owned(), patience.min(self.patience)))
            });
            asked.join().unwrap_or_else(|_| Err("the request broke off".to_owned()))
        })
    }

    async fn ask(&self, body: String, patience: Duration) -> Result<Vec<u8>, String> {
        let told = |error: reqwest::Error| match (error.is_timeout(), error.status()) {
            (true, _) => "no answer in time".to_owned(),
            (_, Some(status)) => format!("the server answered {status}"),
            _ => format!("not reached: {}", super::download::root(&error)),
        };
        let request = self.client.post(self.address.clone()).timeout(patience);
        let mut request = request.header("content-type", "application/json").body(body);
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Token {key}"));
        }
        let mut response = request.send().await.map_err(told)?;
        if !response.status().is_success() {
            return Err(format!("the server answered {}", response.status()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(told)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > self.most_bytes {
                return Err(format!("the answer has more than {} bytes", self.most_bytes));
            }
        }
        Ok(bytes)
    }
}

impl Exchange for Poster {
    fn ask(&self, line: &str, patience: Duration) -> Result<String, String> {
        String::from_utf8(self.post(line, patience)?).map_err(|_| "the answer is not UTF-8".to_owned())
    }
}

/// The hooks of a configuration; `None` where it has none.
pub(super) fn hooks(config: &ContextConfig) -> Result<Option<Hooks>> {
    if config.hooks.is_empty() {
        return Ok(None);
    }
    let http = |hook: &HookConfig| -> Result<Box<dyn Exchange>, String> {
        let address = Url::parse(hook.url.as_deref().unwrap_or_default()).map_err(|error| error.to_string())?;
        Ok(Box::new(Poster::new(address, None, Duration::from_millis(hook.timeout_ms), hook.max_bytes)?))
    };
    Ok(Some(Hooks::open(&config.hooks, &http)?))
}

/// The memory that an argument names: a file, an SQLite store, or an address with the interface of Mem0.
pub(super) fn memory(argument: &str) -> Result<Box<dyn MemorySource>> {
    if argument.starts_with("http://") || argument.starts_with("https://") {
        let key = std::env::var(mem0::KEY).ok().filter(|key| !key.is_empty());
        return Ok(Box::new(mem0(argument, key, mem0::PATIENCE)?));
    }
    local_memory(Path::new(argument))
}

/// The memory in a file of this machine.
pub(super) fn local_memory(path: &Path) -> Result<Box<dyn MemorySource>> {
    Ok(match Database::is_at(path) {
        true => Box::new(SqliteMemories::open(path)?),
        false => Box::new(LocalMemories::load(path)?),
    })
}

/// The memory with the interface of Mem0 at an address, whose query says what it is filtered by.
fn mem0(argument: &str, key: Option<String>, patience: Duration) -> Result<impl MemorySource + 'static> {
    let mut address = Url::parse(argument).with_context(|| argument.to_owned())?;
    let filters = address.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    address.set_query(None);
    if address.path() == "/" {
        address.set_path(mem0::PATH);
    }
    let path = address.path().to_owned();
    let poster = Poster::new(address, key, patience, mem0::MOST_BYTES).map_err(|reason| anyhow!(reason))?;
    Ok(mem0::Mem0::new(&path, filters, move |body: &str| poster.post(body, Duration::MAX)))
}

#[cfg(test)]
mod tests {
    use super::super::download::tests::{answer, serve};
    use super::*;
    use contextweaver_context::event::Phase;
    use contextweaver_context::memory::{RecallBounds, recall};

    #[test]
    fn a_memory_with_an_address_is_searched_within_bounds() {
        let memories =
            br#"{"results": [{"id": "m1", "memory": "The pool has\n40 connections."}, {"id": "m2", "memory": "UTC"}]}"#;
        let many = vec![b'x'; mem0::MOST_BYTES + 1];
        let answers = [
            (mem0::PATH, answer("200 OK", memories)),
            ("/v1/memories/search/", answer("200 OK", br#"[{"id": "m1", "memory": "old"}]"#)),
            ("/rubbish", answer("200 OK", b"<html>")),
            ("/large", answer("200 OK", &many)),
            ("/refused", answer("401 Unauthorized", b"no")),
            (
                "/moved",
                b"HTTP/1.1 302 Found\r\nLocation: /rubbish\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            ),
        ];
        let server = serve(answers.map(|(path, bytes)| (path.to_owned(), bytes)).into_iter().collect());
        let found = |path: &str| {
            let source = mem0(&format!("{server}{path}"), Some("key".to_owned()), Duration::from_secs(2)).unwrap();
            let asked =
                recall(&source, (Phase::Answer, "pool"), RecallBounds::default(), &ContextConfig::default(), None);
            match asked {
                Ok(recalled) => recalled.facts.iter().map(|fact| format!("{}={};", fact.key, fact.value)).collect(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(found("?user_id=ada"), "mem0:m1=The pool has 40 connections.;mem0:m2=UTC;");
        assert_eq!(found("/v1/memories/search/?user_id=ada"), "mem0:m1=old;");
        assert!(found("/rubbish").starts_with("memory `mem0`: the answer is not JSON: "), "{}", found("/rubbish"));
        assert_eq!(found("/large"), "memory `mem0`: the answer has more than 1048576 bytes");
        assert_eq!(found("/refused"), "memory `mem0`: the server answered 401 Unauthorized");
        assert_eq!(found("/moved"), "memory `mem0`: the server answered 302 Found");
        assert_eq!(found("/silent"), "memory `mem0`: no answer in time");
    }
}
