//! The door of programs that speak protocol 1 of `docs/engines.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::program::{Program, bounded, micros};
use super::{Answer, Hello, Limits, PROTOCOL, ProcessError, Session, TOP, folder};
use crate::eval::collection::Collection;
use crate::eval::rng::Rng;
use contextweaver_core::text::hex;

/// A catalog as the program sees it.
struct Catalog {
    text: String,
    sha256: String,
    /// The item behind each id.
    items: BTreeMap<String, u32>,
}

impl Catalog {
    fn of(collection: &Collection, rng: &Rng) -> Self {
        let mut order: Vec<u32> = (0..collection.catalog.len() as u32).collect();
        rng.fork("tools").shuffle(&mut order);
        // The ids of two catalogs differ, so that nothing can be told from one about the other.
        let offset = rng.fork("ids").below(1_000_000);
        let (mut text, mut items) = (String::new(), BTreeMap::new());
        for (place, number) in order.into_iter().enumerate() {
            let item = &collection.catalog.items()[number as usize];
            let id = format!("t{}", offset + place);
            let mut line = json!({"id": id, "name": item.name, "description": item.description});
            if let Some(server) = &item.server {
                line["server"] = json!(server);
            }
            if let Some(description) = &item.server_description {
                line["serverDescription"] = json!(description);
            }
            if !item.tags.is_empty() {
                line["tags"] = json!(item.tags);
            }
            if let Some(schema) = &item.args_schema {
                line["inputSchema"] = json!(schema);
            }
            text.push_str(&line.to_string());
            text.push('\n');
            items.insert(id, number);
        }
        let sha256 = hex(&Sha256::digest(text.as_bytes()));
        Self { text, sha256, items }
    }
}

/// What a program may answer. Fields that we do not know are its own business.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Reply {
    id: Option<String>,
    ok: Option<bool>,
    name: Option<String>,
    version: Option<String>,
    tools: Option<Value>,
    scores: Option<Vec<f64>>,
    us: Option<f64>,
    unsupported: Option<String>,
    error: Option<String>,
}

/// A program that speaks the protocol.
pub(super) struct Lines {
    program: Program,
    catalog: Catalog,
    limits: Limits,
    asked: usize,
}

impl Lines {
    /// Starts `command`; it will get the catalog in the order that `rng` gives.
    pub(super) fn start(
        command: &[OsString],
        limits: Limits,
        collection: &Collection,
        rng: &Rng,
    ) -> Result<Self, ProcessError> {
        let program = Program::start(command, folder()?)?;
        Ok(Self { program, catalog: Catalog::of(collection, rng), limits, asked: 0 })
    }

    /// An id that says nothing: a number of no collection.
    fn id(&mut self) -> String {
        self.asked += 1;
        format!("a{}", self.asked)
    }

    /// Sends one line and waits for one.
    fn ask(&mut self, what: &str, request: &Value, limit: Duration) -> Result<(Reply, u64), ProcessError> {
        if let Some(line) = self.program.waiting() {
            return Err(self.program.failed(format!("it answered before {what} was asked: {:?}", bounded(&line))));
        }
        let start = Instant::now();
        self.program.send(what, &request.to_string())?;
        let text = self.program.receive(what, start, limit)?;
        let us = micros(start.elapsed());
        let reply: Reply = serde_json::from_str(&text).map_err(|error| {
            let shown = bounded(&text);
            self.program.failed(format!("{what}: the answer {shown:?} is no JSON object of the protocol: {error}"))
        })?;
        if let Some(why) = reply.unsupported {
            return Err(ProcessError::Unsupported(format!("{what}: {}", bounded(&why))));
        }
        if let Some(why) = &reply.error {
            return Err(self.program.failed(format!("{what}: it says {:?}", bounded(why))));
        }
        Ok((reply, us))
    }

    fn confirmed(&self, what: &str, reply: &Reply) -> Result<(), ProcessError> {
        if reply.ok == Some(true) {
            Ok(())
        } else {
            Err(self.program.failed(format!("{what}: the answer has no `\"ok\": true`")))
        }
    }
}

impl Session for Lines {
    fn hello(&mut self) -> Result<Hello, ProcessError> {
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

    fn load(&mut self) -> Result<u64, ProcessError> {
        let path = self.program.path("catalog.jsonl");
        std::fs::write(&path, &self.catalog.text)
            .map_err(|error| self.program.failed(format!("catalog.jsonl: {error}")))?;
        let request = json!({"op": "load", "catalog": path, "sha256": self.catalog.sha256});
        let limit = self.limits.load;
        let (reply, us) = self.ask("load", &request, limit)?;
        self.confirmed("load", &reply)?;
        let held = self.catalog.items.len();
        match reply.tools.as_ref().and_then(Value::as_u64) {
            Some(tools) if tools != held as u64 => {
                Err(self.program.failed(format!("it loaded {tools} tools of a catalog of {held}")))
            }
            _ => Ok(us),
        }
    }

    fn ping(&mut self) -> Result<u64, ProcessError> {
        let id = self.id();
        let limit = self.limits.route;
        let (reply, us) = self.ask("ping", &json!({"op": "ping", "id": id}), limit)?;
        if reply.id.as_deref() == Some(id.as_str()) {
            Ok(us)
        } else {
            Err(self.program.failed("a ping came back with another id"))
        }
    }

    fn route(&mut self, query: &str) -> Result<Answer, ProcessError> {
        let id = self.id();
        let what = format!("the query {:?}", bounded(query));
        let limit = self.limits.route;
        let request = json!({"op": "route", "id": id, "query": query, "k": TOP});
        let (reply, seen_us) = self.ask(&what, &request, limit)?;
        if reply.id.as_deref() != Some(id.as_str()) {
            return Err(self.program.failed(format!("{what}: the answer has the id {:?} and not {id:?}", reply.id)));
        }
        let Some(Value::Array(tools)) = &reply.tools else {
            return Err(self.program.failed(format!("{what}: the answer has no list `tools`")));
        };
        if tools.len() > TOP {
            return Err(self
                .program
                .failed(format!("{what}: {} tools were returned, {TOP} were asked for", tools.len())));
        }
        let scores = match &reply.scores {
            Some(scores) if scores.len() != tools.len() => {
                return Err(self.program.failed(format!("{what}: {} scores for {} tools", scores.len(), tools.len())));
            }
            Some(scores) if scores.windows(2).any(|pair| pair[0] < pair[1]) => {
                return Err(self.program.failed(format!("{what}: a later tool has a better score")));
            }
            Some(scores) => scores.clone(),
            None => (0..tools.len()).map(|place| -(place as f64)).collect(),
        };
        let (mut ranked, mut seen) = (Vec::with_capacity(tools.len()), BTreeSet::new());
        for (tool, score) in tools.iter().zip(scores) {
            let Some(&item) = tool.as_str().and_then(|id| self.catalog.items.get(id)) else {
                return Err(self.program.failed(format!("{what}: {tool} is no id of the catalog")));
            };
            if !seen.insert(item) {
                return Err(self.program.failed(format!("{what}: {tool} is there twice")));
            }
            ranked.push((item, score));
        }
        let own_us = match reply.us {
            Some(us) if us >= 0.0 && us <= seen_us as f64 + 1.0 => Some(us.round() as u64),
            Some(us) => {
                return Err(self
                    .program
                    .failed(format!("{what}: it claims {us} us, and the answer took {seen_us} us")));
            }
            None => None,
        };
        Ok(Answer { tools: ranked, seen_us, own_us })
    }

    fn peak_kib(&self) -> Option<u64> {
        self.program.peak_kib()
    }

    fn end(self: Box<Self>) -> Result<(), ProcessError> {
        self.program.end()
    }
}
