//! A memory behind an address, with the interface of Mem0, as a program meets it: asked over HTTP, on this machine alone.
//!
//! The service is a stand-in within the harness: it searches as memories in a file are searched, so that every machine gives
//! the same. It answers what asks as that interface does, and refuses anything else, so that a wrong request cannot pass for
//! an empty memory. It ends with the source that asks it. Its port is another one each time: nothing that either side says
//! names it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::told;
use contextweaver_context::memory::mem0::{MOST_BYTES, Mem0, PATH, PATIENCE};
use contextweaver_context::memory::{LocalMemories, MemorySource, RecallBounds, Remembered};

/// Whose memories they are: what is asked names it, as it must for the service.
const USER: &str = "harness";

/// The bytes of a question at most.
const MOST_ASKED: usize = 64 << 10;

/// The memories that one question may have at most.
const MOST_MEMORIES: u64 = 100;

/// The status of an answer with memories.
const FINE: &str = "200 OK";

/// The service, on a port of this machine that was free.
pub(super) struct Service {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves these memories until it is dropped.
    ///
    /// # Errors
    /// What the system says where it gives no port or no thread.
    pub(super) fn start(memories: LocalMemories) -> Result<Self, String> {
        let refuse = |error: std::io::Error| format!("no service with the interface of Mem0 on this machine: {error}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        let serving = move || {
            while let Ok((stream, _)) = listener.accept() {
                if seen.load(Ordering::Acquire) {
                    break;
                }
                // Who asked is told by the connection that closes.
                let _ = answered(&stream, &memories);
            }
        };
        let thread = std::thread::Builder::new().name("mem0".to_owned()).spawn(serving).map_err(refuse)?;
        Ok(Self { address, ended, thread: Some(thread) })
    }

    /// The memory that asks this service.
    pub(super) fn source(&self) -> impl MemorySource + 'static {
        let address = self.address;
        let filters = vec![("user_id".to_owned(), USER.to_owned())];
        Mem0::new(PATH, filters, move |body: &str| posted(address, PATH, body))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        // The thread waits for a connection. Where none can be made, it is left to the end of the program.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Reads a question and writes its answer.
fn answered(stream: &TcpStream, memories: &LocalMemories) -> Result<(), String> {
    let (line, body) = message(stream, MOST_ASKED)?;
    let (status, answer) = match found(&line, &body, memories) {
        Ok(answer) => (FINE, answer),
        Err((status, reason)) => (status, json!({"detail": reason})),
    };
    send(stream, &format!("HTTP/1.1 {status}"), &answer.to_string())
}

/// What is found for a question; else the status and what is wrong with the question.
fn found(line: &str, body: &[u8], memories: &LocalMemories) -> Result<Value, (&'static str, String)> {
    let bad = |reason: &str| ("400 Bad Request", reason.to_owned());
    if line != format!("POST {PATH} HTTP/1.1") {
        return Err(("404 Not Found", format!("only `POST {PATH}` is served")));
    }
    let asked: Value = serde_json::from_slice(body).map_err(|_| bad("the body must be JSON"))?;
    let query = asked["query"].as_str().ok_or_else(|| bad("`query` must be a text"))?;
    let user = asked["filters"]["user_id"].as_str().ok_or_else(|| bad("`filters` must name a `user_id`"))?;
    let most = asked["top_k"].as_u64().filter(|most| (1..=MOST_MEMORIES).contains(most));
    let most = most.ok_or_else(|| bad("`top_k` must be from 1 to 100"))? as usize;
    let bounds = RecallBounds { memories: most, ..RecallBounds::default() };
    let best = memories.search(query, bounds).map_err(|error| ("500 Internal Server Error", error.to_string()))?;
    let entry = |Remembered { id, text }: Remembered| json!({"id": id, "memory": text, "user_id": user});
    let results: Vec<Value> = best.into_iter().filter(|_| user == USER).map(entry).collect();
    Ok(json!({"results": results}))
}

/// Sends a body to a path of the service, and gives the body of its answer.
fn posted(address: SocketAddr, path: &str, body: &str) -> Result<Vec<u8>, String> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(told)?;
    send(&stream, &format!("POST {path} HTTP/1.1\r\nHost: localhost"), body)?;
    let (line, answer) = message(&stream, MOST_BYTES)?;
    match line.strip_prefix("HTTP/1.1 ") {
        Some(FINE) => Ok(answer),
        Some(status) => Err(format!("the server answers {status}: {}", String::from_utf8_lossy(&answer))),
        None => Err("the server does not answer in HTTP".to_owned()),
    }
}

fn send(mut stream: &TcpStream, head: &str, body: &str) -> Result<(), String> {
    let length = body.len();
    let head =
        format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(PATIENCE)).map_err(told)?;
    stream.write_all(format!("{head}{body}").as_bytes()).map_err(told)
}

/// A message of at most so many bytes: its first line, and its body, whose length its head must state.
fn message(stream: &TcpStream, most: usize) -> Result<(String, Vec<u8>), String> {
    stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    let mut bytes = BufReader::new(stream.take(most as u64));
    let mut next = || -> Result<String, String> {
        let mut line = String::new();
        bytes.read_line(&mut line).map_err(told)?;
        let whole = line.strip_suffix("\r\n").map(str::to_owned);
        whole.ok_or_else(|| format!("the head of the message breaks off within {most} bytes"))
    };
    let first = next()?;
    let mut length = None;
    loop {
        let line = next()?;
        if line.is_empty() {
            break;
        }
        if let Some((_, value)) = line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.parse::<usize>().ok();
        }
    }
    let length = length.ok_or("the head of the message states no length of its body")?;
    if length > most {
        return Err(format!("the body has {length} bytes; a message may have {most}"));
    }
    let mut body = vec![0; length];
    bytes.read_exact(&mut body).map_err(told)?;
    Ok((first, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        let memory = |(id, text): (&str, &str)| Remembered { id: id.to_owned(), text: text.to_owned() };
        let memories = [("lead", "Jonas leads the pool"), ("pool", "the pool has 40 connections"), ("zone", "UTC")];
        Service::start(LocalMemories::new("memory", memories.map(memory).to_vec())).unwrap()
    }

    #[test]
    fn it_is_asked_and_answers_in_the_shape_of_mem0() {
        let service = service();
        let asked = |path: &str, body: &str| match posted(service.address, path, body) {
            Ok(answer) => String::from_utf8(answer).unwrap(),
            Err(reason) => reason,
        };
        let whole = r#"{"query": "pool connections", "top_k": 1, "filters": {"user_id": "harness"}}"#;
        let large = format!("\"{}\"", "x".repeat(MOST_ASKED));
        let table = [
            (PATH, whole),
            (PATH, &whole.replace("harness", "ada")),
            (PATH, &whole.replace("top_k", "limit")),
            (PATH, &whole.replace(": 1,", ": 1000,")),
            (PATH, &whole.replace("user_id", "run_id")),
            (PATH, "{}"),
            (PATH, "pool"),
            ("/v1/memories/search/", whole),
        ];
        let told: Vec<String> = table.iter().map(|(path, body)| asked(path, body)).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        {"results":[{"id":"pool","memory":"the pool has 40 connections","user_id":"harness"}]}
        {"results":[]}
        the server answers 400 Bad Request: {"detail":"`top_k` must be from 1 to 100"}
        the server answers 400 Bad Request: {"detail":"`top_k` must be from 1 to 100"}
        the server answers 400 Bad Request: {"detail":"`filters` must name a `user_id`"}
        the server answers 400 Bad Request: {"detail":"`query` must be a text"}
        the server answers 400 Bad Request: {"detail":"the body must be JSON"}
        the server answers 404 Not Found: {"detail":"only `POST /v2/memories/search/` is served"}
        "#);
        // A question that is too long is not read, and the next one is answered.
        asked(PATH, &large);
        assert!(asked(PATH, whole).contains("40 connections"));
    }

    #[test]
    fn it_ends_with_who_asks_it() {
        let service = service();
        let source = service.source();
        let bounds = RecallBounds { memories: 2, ..RecallBounds::default() };
        let ids = |found: Vec<Remembered>| found.into_iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(source.search("pool connections", bounds).unwrap()), ["pool", "lead"]);
        assert_eq!(ids(source.search("", bounds).unwrap()), ["lead", "pool"]);
        let serving = Arc::downgrade(&service.ended);
        drop(service);
        assert!(serving.upgrade().is_none(), "the thread still serves");
        let error = source.search("pool", bounds).unwrap_err().to_string();
        assert!(error.starts_with("memory `mem0`: ") && !error.contains("127.0.0.1"), "{error}");
    }
}
