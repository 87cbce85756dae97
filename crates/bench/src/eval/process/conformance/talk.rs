//! A program that is asked line by line, and what it answers, right or wrong.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{QUIET, Sheet, text};
use crate::eval::process::program::{Launch, Program, bounded, micros};
use crate::eval::process::{Limits, PROTOCOL, ProcessError, folder};

/// Lines in a row that are no answer, at most.
const NOISE: usize = 20;

/// How often a program is started, at most: one that ends at every question need not be asked all of them.
const STARTS: usize = 6;

/// What was sent, and what came back.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) sent: String,
    pub(crate) got: Option<String>,
    pub(crate) us: u64,
}

/// A conversation with a program, which is started again where it ended too early.
pub(crate) struct Talk<'a> {
    launch: Launch<'a>,
    limits: Limits,
    program: Option<Program>,
    /// Whether the first answers were such that going on makes sense.
    is_ready: bool,
    starts: usize,
    asked: usize,
    pub(super) sheet: Sheet,
}

impl<'a> Talk<'a> {
    pub(super) fn new(launch: Launch<'a>, limits: Limits, sheet: Sheet) -> Self {
        Self { launch, limits, program: None, is_ready: true, starts: 0, asked: 0, sheet }
    }

    /// Starts it, says hello and gives it a catalog of so many tools, if there is one.
    ///
    /// # Errors
    /// It cannot be started at all.
    pub(super) fn start(&mut self, catalog: Option<(&str, &str, usize)>) -> Result<(), ProcessError> {
        self.program = None;
        self.starts += 1;
        let program = Program::start(self.launch, folder()?)?;
        let path = program.path("catalog.jsonl");
        self.program = Some(program);
        let limit = self.limits.load;
        let hello = self.ask("hello", &json!({"op": "hello", "protocol": PROTOCOL}), limit);
        self.is_ready = hello.is_some();
        if let Some((exchange, answer)) = hello {
            match (text(&answer, "name"), text(&answer, "version")) {
                _ if answer.get("ok") != Some(&json!(true)) => {
                    self.wrong("hello", "the answer has no `\"ok\": true`", &exchange);
                }
                (Some(_), Some(_)) => self.sheet.ok("hello"),
                (None, _) => self.wrong("hello", "the answer has no `name`", &exchange),
                (_, None) => self.wrong("hello", "the answer has no `version`", &exchange),
            }
        }
        let Some((lines, sha256, tools)) = catalog.filter(|_| self.is_ready) else { return Ok(()) };
        let failed = |error: std::io::Error| ProcessError::Failed(format!("{}: {error}", path.display()));
        std::fs::write(&path, lines).map_err(failed)?;
        let load = self.ask("load", &json!({"op": "load", "catalog": path, "sha256": sha256}), limit);
        self.is_ready = load.is_some();
        if let Some((exchange, answer)) = load {
            match answer.get("tools").map(Value::as_u64) {
                _ if answer.get("ok") != Some(&json!(true)) => {
                    self.wrong("load", "the answer has no `\"ok\": true`", &exchange);
                }
                Some(Some(said)) if said == tools as u64 => self.sheet.ok("load"),
                None => self.wrong("load", "the answer does not say how many `tools` there are", &exchange),
                Some(_) => self.wrong("load", &format!("the catalog has {tools} tools"), &exchange),
            }
        }
        Ok(())
    }

    /// Whether it can be asked something.
    pub(super) fn is_running(&self) -> bool {
        self.is_ready && self.program.is_some()
    }

    /// Whether another start makes sense.
    pub(super) fn may_start(&self) -> bool {
        self.is_ready && self.starts < STARTS
    }

    pub(super) fn wrong(&mut self, rule: &str, found: &str, exchange: &Exchange) {
        self.sheet.wrong(rule, vec![found.to_owned()], Some(exchange));
    }

    /// Sends one line and waits for an object; `None` where none came, which is then a mistake against `rule`.
    fn heard(&mut self, rule: &str, request: &Value, limit: Duration) -> Option<(Exchange, Value)> {
        let program = self.program.as_mut()?;
        let line = request.to_string();
        // Where it runs says nothing, and is another place each time.
        let sent = line.replace(&program.path("").display().to_string(), "…/");
        let mut exchange = Exchange { sent, got: None, us: 0 };
        if let Some(early) = program.waiting() {
            let early = Exchange { sent: "nothing yet".to_owned(), got: Some(early), us: 0 };
            self.sheet.wrong("quiet", vec!["a line that nobody asked for".to_owned()], Some(&early));
        }
        let start = Instant::now();
        let mut result = program.send(rule, &line);
        for _ in 0..NOISE {
            let received = result.and_then(|()| program.receive("it", start, limit));
            exchange.us = micros(start.elapsed());
            let text = match received {
                Ok(text) => text,
                Err(error) => {
                    let found = match &error {
                        ProcessError::TimedOut { limit, .. } => format!("no answer within {} ms", limit.as_millis()),
                        other => other.to_string(),
                    };
                    self.sheet.wrong(rule, vec![found], Some(&exchange));
                    self.program = None;
                    return None;
                }
            };
            exchange.got = Some(text.clone());
            match serde_json::from_str(&text) {
                Ok(answer @ Value::Object(_)) => return Some((exchange, answer)),
                _ => self.sheet.wrong("quiet", vec!["a line that is not a JSON object".to_owned()], Some(&exchange)),
            }
            result = Ok(());
        }
        self.sheet.wrong(rule, vec![format!("{NOISE} lines, none of which is a JSON object")], Some(&exchange));
        self.program = None;
        None
    }

    /// The same for a request with an id, which the answer must bear.
    pub(super) fn heard_by_id(&mut self, rule: &str, mut request: Value) -> Option<(Exchange, Value)> {
        self.asked += 1;
        let id = format!("a{}", self.asked);
        request["id"] = json!(id);
        let (exchange, answer) = self.heard(rule, &request, self.limits.route)?;
        match answer.get("id").map(Value::as_str) {
            Some(Some(own)) if own == id => self.sheet.ok("id"),
            // Why there is no answer may be said without one.
            None if answer.get("error").is_some() || answer.get("unsupported").is_some() => {}
            _ => self.wrong("id", &format!("the answer does not have the id {id:?}"), &exchange),
        }
        Some((exchange, answer))
    }

    /// As [`Self::heard`], where the object must be an answer: none that says why there is none.
    fn ask(&mut self, rule: &str, request: &Value, limit: Duration) -> Option<(Exchange, Value)> {
        let heard = self.heard(rule, request, limit)?;
        self.answered(rule, heard)
    }

    /// The same for a request with an id.
    pub(super) fn ask_by_id(&mut self, rule: &str, request: Value) -> Option<(Exchange, Value)> {
        let heard = self.heard_by_id(rule, request)?;
        self.answered(rule, heard)
    }

    fn answered(&mut self, rule: &str, (exchange, answer): (Exchange, Value)) -> Option<(Exchange, Value)> {
        for word in ["unsupported", "error"] {
            if let Some(why) = text(&answer, word) {
                self.wrong(rule, &format!("it says {word}: {}", bounded(why)), &exchange);
                return None;
            }
        }
        Some((exchange, answer))
    }

    /// Waits for lines that nobody asked for, ends the input, and waits for the end: the rules `quiet` and `ends`.
    pub(super) fn end(&mut self) {
        let Some(program) = self.program.take() else { return };
        std::thread::sleep(QUIET);
        let waiting = program.waiting();
        let sent = |sent: &str, got| Exchange { sent: sent.to_owned(), got, us: 0 };
        match waiting {
            None => self.sheet.ok("quiet"),
            some => {
                let exchange = sent("nothing more", some);
                self.sheet.wrong("quiet", vec!["a line that nobody asked for".to_owned()], Some(&exchange));
            }
        }
        match program.end() {
            Ok(()) => self.sheet.ok("ends"),
            Err(error) => {
                self.sheet.wrong("ends", vec![error.to_string()], Some(&sent("the end of the input", None)));
            }
        }
    }
}
