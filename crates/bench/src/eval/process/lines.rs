//! The door of programs that rank tools by protocol 1 of `docs/engines.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::program::bounded;
use super::speaker::Speaker;
use super::{Answer, Hello, Limits, ProcessError, Session, TOP};
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

/// A program that ranks the tools of a catalog.
pub(super) struct Lines {
    speaker: Speaker,
    catalog: Catalog,
}

impl Lines {
    /// Starts `command`; it will get the catalog in the order that `rng` gives.
    pub(super) fn start(
        command: &[OsString],
        limits: Limits,
        collection: &Collection,
        rng: &Rng,
    ) -> Result<Self, ProcessError> {
        Ok(Self { speaker: Speaker::start(command, limits)?, catalog: Catalog::of(collection, rng) })
    }
}

impl Session for Lines {
    fn hello(&mut self) -> Result<Hello, ProcessError> {
        self.speaker.hello()
    }

    fn load(&mut self) -> Result<u64, ProcessError> {
        let program = &self.speaker.program;
        let path = program.path("catalog.jsonl");
        std::fs::write(&path, &self.catalog.text).map_err(|error| program.failed(format!("catalog.jsonl: {error}")))?;
        let request = json!({"op": "load", "catalog": path, "sha256": self.catalog.sha256});
        let limit = self.speaker.limits.load;
        let (reply, us) = self.speaker.ask("load", &request, limit)?;
        self.speaker.confirmed("load", &reply)?;
        let held = self.catalog.items.len();
        match reply.tools.as_ref().and_then(Value::as_u64) {
            Some(tools) if tools != held as u64 => {
                Err(self.speaker.program.failed(format!("it loaded {tools} tools of a catalog of {held}")))
            }
            _ => Ok(us),
        }
    }

    fn ping(&mut self) -> Result<u64, ProcessError> {
        self.speaker.ping()
    }

    fn route(&mut self, query: &str) -> Result<Answer, ProcessError> {
        let what = format!("the query {:?}", bounded(query));
        let (reply, seen_us) = self.speaker.ask_by_id(&what, json!({"op": "route", "query": query, "k": TOP}))?;
        let program = &self.speaker.program;
        let Some(Value::Array(tools)) = &reply.tools else {
            return Err(program.failed(format!("{what}: the answer has no list `tools`")));
        };
        if tools.len() > TOP {
            return Err(program.failed(format!("{what}: {} tools were returned, {TOP} were asked for", tools.len())));
        }
        let scores = match &reply.scores {
            Some(scores) if scores.len() != tools.len() => {
                return Err(program.failed(format!("{what}: {} scores for {} tools", scores.len(), tools.len())));
            }
            Some(scores) if scores.windows(2).any(|pair| pair[0] < pair[1]) => {
                return Err(program.failed(format!("{what}: a later tool has a better score")));
            }
            Some(scores) => scores.clone(),
            None => (0..tools.len()).map(|place| -(place as f64)).collect(),
        };
        let (mut ranked, mut seen) = (Vec::with_capacity(tools.len()), BTreeSet::new());
        for (tool, score) in tools.iter().zip(scores) {
            let Some(&item) = tool.as_str().and_then(|id| self.catalog.items.get(id)) else {
                return Err(program.failed(format!("{what}: {tool} is no id of the catalog")));
            };
            if !seen.insert(item) {
                return Err(program.failed(format!("{what}: {tool} is there twice")));
            }
            ranked.push((item, score));
        }
        let own_us = match reply.us {
            Some(us) if us >= 0.0 && us <= seen_us as f64 + 1.0 => Some(us.round() as u64),
            Some(us) => {
                return Err(program.failed(format!("{what}: it claims {us} us, and the answer took {seen_us} us")));
            }
            None => None,
        };
        Ok(Answer { tools: ranked, seen_us, own_us })
    }

    fn peak_kib(&self) -> Option<u64> {
        self.speaker.program.peak_kib()
    }

    fn end(self: Box<Self>) -> Result<(), ProcessError> {
        self.speaker.program.end()
    }
}
