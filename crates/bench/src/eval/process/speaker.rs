//! What every program of protocol 1 of `docs/engines.md` does, whatever it is asked for: hello, ping, an answer to every line.

use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::program::{Launch, Program, bounded, micros};
use super::{Hello, Limits, PROTOCOL, ProcessError, folder};

/// What a program may answer. Fields that we do not know are its own business.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Reply {
    pub(super) id: Option<String>,
    pub(super) ok: Option<bool>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    /// Of `load` and `route`.
    pub(super) tools: Option<Value>,
    /// Of `route`.
    pub(super) scores: Option<Vec<f64>>,
    /// Of `route`.
    pub(super) us: Option<f64>,
    /// Of `compile` and `compact`.
    pub(super) text: Option<String>,
    /// Of `choose`: a text, or null for no tool. `None` where the member is not there.
    #[serde(deserialize_with = "present")]
    pub(super) choice: Option<Option<String>>,
    pub(super) unsupported: Option<String>,
    pub(super) error: Option<String>,
}

/// A member that is there, be it null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A program that runs and answers lines.
pub(super) struct Speaker {
    pub(super) program: Program,
    pub(super) limits: Limits,
    asked: usize,
}

impl Speaker {
    /// Starts a program in a folder of its own.
    pub(super) fn start(launch: Launch<'_>, limits: Limits) -> Result<Self, ProcessError> {
        Ok(Self { program: Program::start(launch, folder()?)?, limits, asked: 0 })
    }

    /// An id that says nothing: a number of no collection.
    pub(super) fn id(&mut self) -> String {
        self.asked += 1;
        format!("a{}", self.asked)
    }

    /// Sends one line and waits for one.
    pub(super) fn ask(&mut self, what: &str, request: &Value, limit: Duration) -> Result<(Reply, u64), ProcessError> {
        if let Some(line) = self.program.waiting() {
            return Err(self.program.failed(format!("it answered before {what} was asked: {:?}", bounded(&line))));
        }
        let start = Instant::now();
        self.program.send(what, &request.to_string())?;
        let text = self.program.receive(what, start, limit)?;
        let us = micros(start.elapsed());
        let reply: Reply = serde_json::from_str(&text).map_err(|error| {
            let shown = bounded(&text);
            self.program.failed(format!("{what}: the answer {shown:?} is not a JSON object of the protocol: {error}"))
        })?;
        if let Some(why) = reply.unsupported {
            return Err(ProcessError::Unsupported(format!("{what}: {}", bounded(&why))));
        }
        if let Some(why) = &reply.error {
            return Err(self.program.failed(format!("{what}: it says {:?}", bounded(why))));
        }
        Ok((reply, us))
    }

    /// The same for a request with an id, which the answer must bear.
    pub(super) fn ask_by_id(&mut self, what: &str, mut request: Value) -> Result<(Reply, u64), ProcessError> {
        let id = self.id();
        request["id"] = json!(id);
        let answer = self.ask(what, &request, self.limits.route)?;
        if answer.0.id.as_deref() == Some(id.as_str()) {
            Ok(answer)
        } else {
            Err(self.program.failed(format!("{what}: the answer has the id {:?} and not {id:?}", answer.0.id)))
        }
    }

    /// That the answer has `"ok": true`.
    pub(super) fn confirmed(&self, what: &str, reply: &Reply) -> Result<(), ProcessError> {
        if reply.ok == Some(true) {
            Ok(())
        } else {
            Err(self.program.failed(format!("{what}: the answer has no `\"ok\": true`")))
        }
    }

    /// Its name and version.
    pub(super) fn hello(&mut self) -> Result<Hello, ProcessError> {
        let limit = self.limits.load;
        let (reply, _) = self.ask("hello", &json!({"op": "hello", "protocol": PROTOCOL}), limit)?;
        let us = self.program.age_us();
        self.confirmed("hello", &reply)?;
        match (reply.name, reply.version) {
            (Some(name), Some(version)) if !name.trim().is_empty() && !version.trim().is_empty() => {
                Ok(Hello { name: bounded(&name), version: bounded(&version), us })
            }
            _ => Err(self
                .program
                .failed("the answer to hello has no name and version; without a version there is no row")),
        }
    }

    /// The way there and back, in microseconds.
    pub(super) fn ping(&mut self) -> Result<u64, ProcessError> {
        Ok(self.ask_by_id("a ping", json!({"op": "ping"}))?.1)
    }
}
