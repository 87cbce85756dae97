//! A recorded session served without its server.
//!
//! A request is answered as the recording answers the same one: same method, same parameters whatever their order and
//! `_meta`. Of several equal requests the first asked gets the first answer and so on; the last answer serves all
//! further ones. What the server said in between goes out with the answer, progress under the client's own token.
//! Answers come at once: the recording's times and the order of requests do not matter. Where a request is not in the
//! recording, the answer is an error that says so; nothing is made up.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::operations::recording::{Direction, Recorded};
use crate::protocol::framing::{Line, LineReader, write_lines};
use crate::protocol::message::{self, INVALID_PARAMS, INVALID_REQUEST, Members, Message, Outcome, Raw, RpcError};
use crate::transport::stdio::own_streams;
use crate::upstream::call::MESSAGE_LIMIT;

/// Messages that wait to be written, at most.
const QUEUE: usize = 1024;

/// Methods whose answer does not depend on what the client says about itself.
const BY_METHOD: [&str; 4] = ["initialize", "server/discover", "logging/setLevel", "ping"];

/// A recording cannot be played back.
#[derive(Debug, thiserror::Error)]
pub enum PlaybackError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Its first line is no recorded message, so that the others are not looked at.
    #[error("it is no recording of `mcp record`, which has one message on each line: line {line}: {reason}")]
    NoRecording {
        /// The number of the line, from 1.
        line: usize,
        /// Why the line cannot be read.
        reason: String,
    },
    /// A line does not have the form of a recorded message.
    #[error("line {line}: {reason}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why the line cannot be read.
        reason: String,
    },
    /// It has no request with an answer.
    #[error("it contains no request with an answer")]
    Empty,
}

/// What a request is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    method: String,
    /// The parameters with their keys in order; `None` where they do not matter.
    params: Option<String>,
}

impl Key {
    fn of(method: &str, params: Option<&Raw>) -> Self {
        let params = (!BY_METHOD.contains(&method)).then(|| {
            let mut params = params.and_then(|params| params.read::<Value>().ok()).unwrap_or_else(|| json!({}));
            if let Value::Object(params) = &mut params {
                params.remove("_meta");
            }
            in_order(params).to_string()
        });
        Self { method: method.to_owned(), params }
    }
}

fn in_order(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: BTreeMap<String, Value> =
                members.into_iter().map(|(key, value)| (key, in_order(value))).collect();
            members.into_iter().collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(in_order).collect(),
        other => other,
    }
}

/// What the server says unasked, or asks.
#[derive(Debug, Clone)]
struct Said {
    method: String,
    params: Option<Raw>,
    is_request: bool,
}

#[derive(Debug)]
struct Exchange {
    key: Key,
    token: Option<Raw>,
    before: Vec<Said>,
    answer: Option<Outcome>,
    after: Vec<Said>,
}

/// A recording, ready to answer.
#[derive(Debug)]
pub struct Playback {
    exchanges: Vec<Exchange>,
    /// The exchanges of equal requests, in the order of the recording, and how many were used.
    known: HashMap<Key, (Vec<usize>, usize)>,
    /// Numbers the server's own requests.
    asked: u64,
}

impl Playback {
    /// Reads a recording from a file.
    ///
    /// # Errors
    /// [`PlaybackError`] for the first line that does not have the form of a recorded message.
    pub fn load(input: impl BufRead) -> Result<Self, PlaybackError> {
        let (mut reading, mut is_first) = (Reading::default(), true);
        for (index, line) in input.split(b'\n').enumerate() {
            let line = line?;
            if !line.trim_ascii().is_empty() {
                reading.take(&line).map_err(|reason| match is_first {
                    true => PlaybackError::NoRecording { line: index + 1, reason },
                    false => PlaybackError::Line { line: index + 1, reason },
                })?;
                is_first = false;
            }
        }
        let exchanges = reading.exchanges;
        let mut known: HashMap<Key, (Vec<usize>, usize)> = HashMap::new();
        for (at, exchange) in exchanges.iter().enumerate() {
            // A request that was never answered is not known.
            if exchange.answer.is_some() {
                known.entry(exchange.key.clone()).or_default().0.push(at);
            }
        }
        if known.is_empty() {
            return Err(PlaybackError::Empty);
        }
        Ok(Self { exchanges, known, asked: 0 })
    }

    /// Requests that have an answer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.values().map(|(exchanges, _)| exchanges.len()).sum()
    }

    /// Whether no request is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// What the server says to a message of the client.
    pub fn take(&mut self, message: Message) -> Vec<Bytes> {
        let Message::Request { id, method, params } = message else { return Vec::new() };
        let key = Key::of(&method, params.as_ref());
        let Some(at) = self.next(&key) else {
            return vec![message::response(Some(&id), &self.unknown(&method))];
        };
        let token = token_of(params.as_ref());
        let mut said: Vec<Bytes> = Vec::new();
        let Some(Exchange { before, answer: Some(answer), after, .. }) = self.exchanges.get(at) else { return said };
        let mut asked = self.asked;
        said.extend(before.iter().filter_map(|words| words.again(token.as_ref(), &mut asked)));
        said.push(message::response(Some(&id), answer));
        said.extend(after.iter().filter_map(|words| words.again(token.as_ref(), &mut asked)));
        self.asked = asked;
        said
    }

    /// The exchange that answers the next request of this kind.
    fn next(&mut self, key: &Key) -> Option<usize> {
        let (exchanges, used) = self.known.get_mut(key)?;
        let at = exchanges.get(*used).or(exchanges.last()).copied()?;
        *used += 1;
        Some(at)
    }

    fn unknown(&self, method: &str) -> Outcome {
        if method == "ping" {
            return Ok(Raw::of(&json!({})));
        }
        let alike: usize =
            self.known.iter().filter(|(key, _)| key.method == method).map(|(_, (exchanges, _))| exchanges.len()).sum();
        Err(match alike {
            0 => RpcError::method_not_found(method),
            count => RpcError::new(
                INVALID_PARAMS,
                format!("the recording has {count} requests of `{method}`, none with these parameters"),
            ),
        })
    }
}

impl Said {
    /// The message; `None` for progress that the client does not want to hear of.
    fn again(&self, token: Option<&Raw>, asked: &mut u64) -> Option<Bytes> {
        if self.is_request {
            *asked += 1;
            let id = Raw::of(&format!("replay-{asked}"));
            return Some(message::request(&id, &self.method, self.params.as_ref()));
        }
        if self.method != PROGRESS {
            return Some(message::notification(&self.method, self.params.as_ref()));
        }
        let mut members: Members<'_> = self.params.as_ref()?.read().ok()?;
        members.set("progressToken", token?);
        Some(message::notification(&self.method, Some(&Raw::of(&members))))
    }
}

const PROGRESS: &str = "notifications/progress";

/// The progress token of a request.
fn token_of(params: Option<&Raw>) -> Option<Raw> {
    #[derive(Deserialize)]
    struct Params<'p> {
        #[serde(rename = "_meta", borrow)]
        meta: Meta<'p>,
    }
    #[derive(Deserialize)]
    struct Meta<'p> {
        #[serde(rename = "progressToken", borrow)]
        token: &'p RawValue,
    }
    Some(Raw::of(params?.read::<Params<'_>>().ok()?.meta.token))
}

#[derive(Default)]
struct Reading {
    exchanges: Vec<Exchange>,
    /// Requests without an answer so far.
    open: BTreeMap<usize, Raw>,
}

impl Reading {
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let recorded: Recorded<Box<RawValue>> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let text = Bytes::copy_from_slice(recorded.message.get().as_bytes());
        let message = Message::parse(text).map_err(|error| error.to_string())?;
        match (recorded.direction, message) {
            (Direction::Client, Message::Request { id, method, params }) => {
                self.open.insert(self.exchanges.len(), id);
                self.exchanges.push(Exchange {
                    key: Key::of(&method, params.as_ref()),
                    token: token_of(params.as_ref()),
                    before: Vec::new(),
                    answer: None,
                    after: Vec::new(),
                });
            }
            // What the client only tells, and answers, the server of the recording has heard already.
            (Direction::Client, _) => {}
            (Direction::Server, Message::Response { id, outcome }) => {
                let asked = self.open.iter().find(|(_, open)| **open == id).map(|(at, _)| *at);
                if let Some(at) = asked {
                    self.open.remove(&at);
                    if let Some(exchange) = self.exchanges.get_mut(at) {
                        exchange.answer = Some(outcome);
                    }
                }
            }
            (Direction::Server, Message::Notification { method, params }) => {
                self.said(Said { method, params, is_request: false });
            }
            (Direction::Server, Message::Request { method, params, .. }) => {
                self.said(Said { method, params, is_request: true });
            }
        }
        Ok(())
    }

    /// Progress belongs to the request with its token, everything else to the latest one. What a server says before
    /// the first request belongs to none and is not said again.
    fn said(&mut self, said: Said) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Progress {
            progress_token: Box<RawValue>,
        }
        let token = (said.method == PROGRESS)
            .then(|| Some(Raw::of(&said.params.as_ref()?.read::<Progress>().ok()?.progress_token)))
            .flatten();
        let open = self.open.keys().rev().copied();
        let by_token =
            open.clone().find(|at| token.is_some() && self.exchanges.get(*at).is_some_and(|e| e.token == token));
        let latest = open.clone().next().or(self.exchanges.len().checked_sub(1));
        let Some(exchange) = by_token.or(latest).and_then(|at| self.exchanges.get_mut(at)) else { return };
        match exchange.answer {
            None => exchange.before.push(said),
            Some(_) => exchange.after.push(said),
        }
    }
}

/// Serves a recording to the client on our own standard streams until its input ends.
///
/// # Errors
/// The streams cannot be used.
pub async fn serve_playback(playback: Playback) -> io::Result<()> {
    let (input, output) = own_streams()?;
    serve_between(playback, input, output).await
}

async fn serve_between(
    mut playback: Playback,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let (out, lines) = mpsc::channel::<Bytes>(QUEUE);
    let writing = tokio::spawn(write_lines(output, lines));
    let mut input = LineReader::new(input, MESSAGE_LIMIT);
    while let Some(line) = input.next().await? {
        let said = match line {
            Line::Text(line) => match Message::parse(line) {
                Ok(message) => playback.take(message),
                Err(error) => vec![message::response(None, &Err(error.to_rpc()))],
            },
            Line::TooLong { length, .. } => {
                let reason = format!("a message of {length} bytes is over the limit of {MESSAGE_LIMIT}");
                vec![message::response(None, &Err(RpcError::new(INVALID_REQUEST, reason)))]
            }
        };
        for message in said {
            if out.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
    drop(out);
    let _ = writing.await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::operations::recording::tests::{CLIENT, recorded};

    async fn replayed(recording: &str, client: &str) -> String {
        let playback = Playback::load(recording.as_bytes()).unwrap();
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        serve_between(playback, client.as_bytes(), ours).await.unwrap();
        let mut seen = String::new();
        theirs.read_to_string(&mut seen).await.unwrap();
        seen
    }

    #[tokio::test]
    async fn a_session_replays_as_it_was_recorded() {
        let (recording, seen) = recorded().await;
        assert_eq!(replayed(&recording, CLIENT).await, seen);
    }

    #[tokio::test]
    async fn ids_order_and_meta_are_the_new_clients() {
        let (recording, _) = recorded().await;
        let client = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"a":"\u00e9","b":1},"name":"say"}}
{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"_meta":{"progressToken":5},"arguments":{"a":"é","b":1},"name":"say"}}
{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"other"}}
{"jsonrpc":"2.0","id":10,"method":"resources/list"}
{"jsonrpc":"2.0","id":11,"method":"ping"}
{"jsonrpc":"2.0","id":12,"method":"initialize","params":{}}
nonsense
"#;
        insta::assert_snapshot!(replayed(&recording, client).await, @r#"
    {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"one"}],"n":1.0e0}}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}
    {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"one"}],"n":1.0e0}}
    {"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"the recording has 2 requests of `tools/call`, none with these parameters"}}
    {"jsonrpc":"2.0","id":10,"error":{"code":-32601,"message":"method `resources/list` is not offered here"}}
    {"jsonrpc":"2.0","id":11,"result":{}}
    {"jsonrpc":"2.0","id":12,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON: expected ident at line 1 column 2"}}
    "#);
    }

    #[test]
    fn equal_requests_get_their_answers_in_turn() {
        let line = |seq: u64, direction: &str, message: Value| {
            json!({"seq": seq, "direction": direction, "message": message}).to_string()
        };
        let recording = [
            line(1, "client", json!({"id": 1, "method": "tools/call", "params": {"name": "n"}})),
            line(2, "server", json!({"id": 99, "method": "sampling/createMessage", "params": {"m": 1}})),
            line(3, "client", json!({"id": 99, "result": {}})),
            line(4, "server", json!({"id": 1, "result": {"n": 1}})),
            line(5, "server", json!({"method": "notifications/tools/list_changed"})),
            line(6, "client", json!({"id": 1, "method": "tools/call", "params": {"name": "n"}})),
            line(7, "server", json!({"id": 1, "result": {"n": 2}})),
            line(8, "client", json!({"id": 2, "method": "tools/call", "params": {"name": "cut off"}})),
        ];
        let mut playback = Playback::load(recording.join("\n").as_bytes()).unwrap();
        assert_eq!(playback.len(), 2);
        let mut ask = |id: u64, name: &str| {
            let text = json!({"id": id, "method": "tools/call", "params": {"name": name}}).to_string();
            let said = playback.take(Message::parse(text.into()).unwrap());
            said.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>().join("\n")
        };
        let said = [ask(4, "n"), ask(5, "n"), ask(6, "n"), ask(7, "cut off")];
        insta::assert_snapshot!(said.join("\n"), @r#"
    {"jsonrpc":"2.0","id":"replay-1","method":"sampling/createMessage","params":{"m":1}}
    {"jsonrpc":"2.0","id":4,"result":{"n":1}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","id":5,"result":{"n":2}}
    {"jsonrpc":"2.0","id":6,"result":{"n":2}}
    {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"the recording has 2 requests of `tools/call`, none with these parameters"}}
    "#);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let cases = [
            ("", "it contains no request"),
            ("\n{\"seq\":1}", "line 2: missing field"),
            ("{\"seq\":1,\"direction\":\"up\",\"message\":{}}", "line 1: unknown variant `up`"),
            ("{\"seq\":1,\"direction\":\"client\",\"message\":{}}", "line 1: not a JSON-RPC message"),
            (
                "[\n  {\"name\": \"a\"}\n]",
                "it is no recording of `mcp record`, which has one message on each line: line 1: EOF",
            ),
            ("{\"tools\": []}", "it is no recording of `mcp record`"),
            (
                "{\"seq\":1,\"direction\":\"client\",\"message\":{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}\n{",
                "line 2: EOF",
            ),
        ];
        for (text, expected) in cases {
            let message = Playback::load(text.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
            assert_eq!(message.contains("no recording"), !text.is_empty() && !message.starts_with("line"), "{message}");
        }
    }
}
