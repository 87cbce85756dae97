//! What the context engine asks of others from Python: the hooks of a configuration, functions of the program, and memories.
//!
//! What has an address is reached by the HTTP client of Python, so that the module needs none of its own. Each question is asked on a
//! thread of its own and waited for no longer than it may take: the caller has released the interpreter lock, and the thread takes it.
//!
//! A function of the program is asked on the thread of the caller, and takes as long as it takes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::mem;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pyo3::exceptions::{PyException, PyRuntimeWarning};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use serde_json::{Value, json};

use contextweaver_context::ContextConfig;
use contextweaver_context::hooks::{Exchange, HookConfig, HookKind, Hooks, end_programs};
use contextweaver_context::memory::{LocalMemories, MemorySource, SqliteMemories, mem0};
use contextweaver_context::store::database::Database;
use contextweaver_core::sync::lock;

use crate::errors::{self, ContextError, InputError};

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
    fn post(&self, body: &str, patience: Duration) -> Result<Vec<u8>, String> {
        let patience = patience.min(self.patience);
        let (send, answer) = sync_channel(1);
        let (address, key, body) = (self.address.clone(), self.key.clone(), body.to_owned());
        let (seconds, most) = (patience.as_secs_f64(), self.most_bytes);
        let asking = move || {
            let asked = Python::attach(|py| {
                let post = py.import(MODULE)?.getattr("post")?;
                post.call1((address, body.as_bytes(), seconds, most, key))?.extract::<Vec<u8>>()
            });
            // Nobody waits any more where it took too long.
            let _ = send.send(asked.map_err(|error| Python::attach(|py| error.value(py).to_string())));
        };
        std::thread::Builder::new().spawn(asking).map_err(|error| error.to_string())?;
        answer.recv_timeout(patience).unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }
}

impl Exchange for Poster {
    fn ask(&self, line: &str, patience: Duration) -> Result<String, String> {
        String::from_utf8(self.post(line, patience)?).map_err(|_| "the answer is not UTF-8".to_owned())
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
    Ok(match Database::is_at(argument) {
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
        divided.map_err(|error| InputError::new_err(format!("memory: {argument}: {error}")))?;
    let key = std::env::var(mem0::KEY).ok().filter(|key| !key.is_empty());
    let poster = Poster { address, key, patience: mem0::PATIENCE, most_bytes: mem0::MOST_BYTES };
    Ok(mem0::Mem0::new(&path, filters, move |body: &str| poster.post(body, Duration::MAX)))
}

/// Has the programs of hooks ended when the process ends, which ends no other by itself.
pub(crate) fn end_with_process(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(_end_programs, module)?;
    module.py().import("atexit")?.call_method1("register", (end,)).map(drop)
}

/// Ends the programs of hooks.
#[pyfunction]
pub(crate) fn _end_programs() {
    end_programs();
}

/// The function that is told of each prompt, among those of a conversation.
const ON_BUILD: &str = "on_build";

/// Characters of what a function said of its failure, in the record of a prompt, at most.
const MOST_SAID: usize = 300;

thread_local! {
    /// The conversations whose functions this thread is asking.
    static ASKED: RefCell<Vec<*const Functions>> = const { RefCell::new(Vec::new()) };

    /// What a function raised on this thread to end the program, and not to say that it failed: raised again when the call
    /// ends that asked it.
    static ENDED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// What a function raised to end the program since this was last asked on this thread.
pub(crate) fn take_ended() -> Option<PyErr> {
    ENDED.take()
}

/// Warns the program.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// The functions that a conversation was given, by what they do. They are held in this one place, so that Python's
/// collector sees them: an object that has the conversation, and gave it a method of its own, is freed.
#[derive(Default)]
pub(crate) struct Functions {
    held: Mutex<BTreeMap<&'static str, Py<PyAny>>>,
    /// Whether a text for which the redactor fails is withheld, be it one of these or that of a configuration.
    requires_redactor: bool,
}

impl Functions {
    /// These functions: those in place of hooks, and the one that is told of each prompt.
    pub(crate) fn new(
        hooks: [(HookKind, Option<&Bound<'_, PyAny>>); 3],
        requires_redactor: bool,
        on_build: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Arc<Self>> {
        let named = hooks.into_iter().map(|(kind, function)| (kind.name(), function)).chain([(ON_BUILD, on_build)]);
        let mut held = BTreeMap::new();
        for (name, function) in named {
            let Some(function) = function else { continue };
            if !function.is_callable() {
                let kind = function.get_type().name()?;
                return Err(InputError::new_err(format!("`{name}` must be a function, not an object of type {kind}")));
            }
            held.insert(name, function.clone().unbind());
        }
        Ok(Arc::new(Self { held: Mutex::new(held), requires_redactor }))
    }

    /// The hooks with the functions in their place; `None` where there is neither.
    pub(crate) fn over(self: &Arc<Self>, hooks: Option<Hooks>) -> Option<Hooks> {
        let mut over = hooks;
        for kind in [HookKind::Summarizer, HookKind::TokenCounter, HookKind::Redactor] {
            if lock(&self.held).contains_key(kind.name()) {
                let function = Function { kind, functions: Arc::clone(self) };
                over = Some(over.unwrap_or_default().with(kind, Box::new(function), usize::MAX));
            }
        }
        if self.requires_redactor { over.map(Hooks::withholding) } else { over }
    }

    fn get<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
        lock(&self.held).get(name).map(|function| function.bind(py).clone())
    }

    /// Whether the conversation may be used here: a function that it waits for would wait for itself.
    pub(crate) fn check_free(&self) -> PyResult<()> {
        if ASKED.with_borrow(|asked| asked.contains(&std::ptr::from_ref(self))) {
            let reason = "a function cannot use the conversation that is calling it; use another one, or a copy";
            return Err(ContextError::new_err(reason));
        }
        Ok(())
    }

    /// Tells of a prompt that was built. What the function raises is a warning, so that the prompt is not lost; what
    /// ends the program is passed on.
    pub(crate) fn built(
        &self,
        py: Python<'_>,
        phase: &str,
        stats: impl FnOnce() -> PyResult<Py<PyAny>>,
    ) -> PyResult<()> {
        let Some(function) = self.get(py, ON_BUILD) else { return Ok(()) };
        let Err(error) = function.call1((phase, stats()?)) else { return Ok(()) };
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let text = format!("{ON_BUILD} failed, and the prompt is returned anyway: {}", said(py, &error));
        if let Err(refused) = warn(py, &text) {
            // Warnings are errors here, and this one has no caller that may lose the prompt.
            refused.write_unraisable(py, Some(&function));
        }
        Ok(())
    }

    /// Shows Python's collector what is held.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Who holds the lock is at work with a function, which is then in use and not to be collected.
        let Ok(held) = self.held.try_lock() else { return Ok(()) };
        held.values().try_for_each(|function| visit.call(function))
    }

    /// Lets go of what is held.
    pub(crate) fn clear(&self) {
        // What is freed may run code of the program, so nothing is locked then.
        let held = mem::take(&mut *lock(&self.held));
        drop(held);
    }
}

/// An exception on one line: its class and what it says.
fn said(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
    let text = error.value(py).to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = if words.is_empty() { kind } else { format!("{kind}: {}", words.join(" ")) };
    match text.char_indices().nth(MOST_SAID) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A function in place of a hook.
struct Function {
    kind: HookKind,
    functions: Arc<Functions>,
}

/// Says that a thread is asking a function, until it is dropped.
struct Asking;

impl Asking {
    fn of(functions: &Functions) -> Self {
        ASKED.with_borrow_mut(|asked| asked.push(std::ptr::from_ref(functions)));
        Self
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKED.with_borrow_mut(Vec::pop);
    }
}

impl Function {
    fn answer(&self, py: Python<'_>, question: &Value) -> PyResult<Value> {
        let function = self.functions.get(py, self.kind.name());
        let function = function.ok_or_else(|| ContextError::new_err("the function is gone"))?;
        let text = |member: &str| question[member].as_str().unwrap_or_default();
        Ok(match self.kind {
            HookKind::Summarizer => {
                let arguments = (text("content"), text("media_type"), question["tokens"].as_u64());
                json!({"text": function.call1(arguments)?.extract::<String>()?})
            }
            HookKind::TokenCounter => json!({"tokens": function.call1((text("text"),))?.extract::<usize>()?}),
            HookKind::Redactor => json!({"text": function.call1((text("text"),))?.extract::<String>()?}),
        })
    }
}

impl Exchange for Function {
    fn ask(&self, line: &str, _: Duration) -> Result<String, String> {
        let question: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let _asking = Asking::of(&self.functions);
        Python::attach(|py| {
            self.answer(py, &question).map(|answer| answer.to_string()).map_err(|error| {
                let reason = said(py, &error);
                if !error.is_instance_of::<PyException>(py) {
                    ENDED.set(Some(error));
                }
                reason
            })
        })
    }
}
