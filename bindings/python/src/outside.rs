//! What the context engine asks of others from Python: the hooks of a configuration, and memories.
//!
//! What has an address is reached by the HTTP client of Python, so that the module needs none of its own. Each question is asked on a
//! thread of its own and waited for no longer than it may take: the caller has released the interpreter lock, and the thread takes it.

use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pyo3::prelude::*;

use contextweaver_context::ContextConfig;
use contextweaver_context::hooks::{Exchange, HookConfig, Hooks};
use contextweaver_context::memory::{LocalMemories, MemorySource, SqliteMemories, mem0};

use crate::errors;
use crate::session::is_database;

/// The module that sends.
const MODULE: &str = "contextweaver_rs._http";

/// Sends JSON to an address and reads what comes back.
struct Poster {
    address: String,
    key: Option<String>,
    patience: Duration,
    most_bytes: usize,
}

impl Poster {
    fn post(&self, body: &str) -> Result<Vec<u8>, String> {
        let (send, answer) = sync_channel(1);
        let (address, key, body) = (self.address.clone(), self.key.clone(), body.to_owned());
        let (seconds, most) = (self.patience.as_secs_f64(), self.most_bytes);
        let asking = move || {
            let asked = Python::attach(|py| {
                let post = py.import(MODULE)?.getattr("post")?;
                post.call1((address, body.as_bytes(), seconds, most, key))?.extract::<Vec<u8>>()
            });
            // Nobody waits any more where it took too long.
            let _ = send.send(asked.map_err(|error| Python::attach(|py| error.value(py).to_string())));
        };
        std::thread::Builder::new().spawn(asking).map_err(|error| error.to_string())?;
        answer.recv_timeout(self.patience).unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }
}

impl Exchange for Poster {
    fn ask(&self, line: &str) -> Result<String, String> {
        String::from_utf8(self.post(line)?).map_err(|_| "the answer is not UTF-8".to_owned())
    }
}

/// The hooks of a configuration; none where it has none.
pub(crate) fn hooks(config: &ContextConfig) -> PyResult<Hooks> {
    let http = |hook: &HookConfig| -> Result<Box<dyn Exchange>, String> {
        let address = hook.url.clone().unwrap_or_default();
        let (patience, most_bytes) = (Duration::from_millis(hook.timeout_ms), hook.max_bytes);
        Ok(Box::new(Poster { address, key: None, patience, most_bytes }))
    };
    Hooks::open(&config.hooks, &http).map_err(errors::config)
}

/// The memory that an argument names: a file, an SQLite store, or an address with the interface of Mem0.
pub(crate) fn memory(argument: &Path) -> PyResult<Box<dyn MemorySource>> {
    if let Some(address) = argument.to_str().filter(|text| text.starts_with("http://") || text.starts_with("https://"))
    {
        return Ok(Box::new(mem0(address)?));
    }
    Ok(match is_database(argument) {
        true => Box::new(SqliteMemories::open(argument).map_err(errors::context)?),
        false => Box::new(LocalMemories::load(argument).map_err(errors::context)?),
    })
}

/// The memory with the interface of Mem0 at an address, whose query says what it is filtered by.
fn mem0(argument: &str) -> PyResult<impl MemorySource + 'static> {
    let divided = Python::attach(|py| {
        let divided = py.import(MODULE)?.getattr("divided")?.call1((argument, mem0::PATH))?;
        divided.extract::<(String, String, Vec<(String, String)>)>()
    });
    let (address, path, filters) =
        divided.map_err(|error| errors::InputError::new_err(format!("memory: {argument}: {error}")))?;
    let key = std::env::var(mem0::KEY).ok().filter(|key| !key.is_empty());
    let poster = Poster { address, key, patience: mem0::PATIENCE, most_bytes: mem0::MOST_BYTES };
    Ok(mem0::Mem0::new(&path, filters, move |body: &str| poster.post(body)))
}
