//! The door of programs that rank tools by protocol 1 of `docs/engines.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::program::{Launch, bounded};
use super::speaker::{Reply, Speaker};
use super::{Answer, Hello, Hiding, Limits, ProcessError, Session, TOP};
use crate::eval::collection::Collection;
use crate::eval::rng::Rng;
use contextweaver_core::text::sha256_hex;

/// A catalog as the program sees it.
pub(super) struct Catalog {
    pub(super) text: String,
    pub(super) sha256: String,
    /// The item behind each id.
    pub(super) items: BTreeMap<String, u32>,
}

impl Catalog {
    pub(super) fn of(collection: &Collection, rng: &Rng) -> Self {
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
        let sha256 = sha256_hex(text.as_bytes());
        Self { text, sha256, items }
    }
}

/// What is wrong with an answer to `route`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Breach {
    #[error("the answer has no list `tools`")]
    NoList,
    #[error("{count} tools were returned, {asked} were asked for")]
    TooMany { count: usize, asked: usize },
    #[error("{scores} scores for {tools} tools")]
    ScoreCount { scores: usize, tools: usize },
    #[error("a later tool has a better score")]
    Rising,
    #[error("{0} is not an id of the catalog")]
    Unknown(Value),
    #[error("{0} appears twice")]
    Twice(Value),
    #[error("it claims {claimed} us, but the answer took {seen} us")]
    Clock { claimed: f64, seen: u64 },
}

/// The items of an answer with scores that fall or stay, or all that is wrong with it.
pub(super) fn ranked(
    reply: &Reply,
    items: &BTreeMap<String, u32>,
    asked: usize,
    seen_us: u64,
) -> Result<Vec<(u32, f64)>, Vec<Breach>> {
    let Some(Value::Array(tools)) = &reply.tools else { return Err(vec![Breach::NoList]) };
    let (mut breaches, count) = (Vec::new(), tools.len());
    if count > asked {
        breaches.push(Breach::TooMany { count, asked });
    }
    let place = |place: usize| -(place as f64);
    let scores = reply.scores.clone().unwrap_or_else(|| (0..count).map(place).collect());
    if scores.len() != count {
        breaches.push(Breach::ScoreCount { scores: scores.len(), tools: count });
    } else if scores.windows(2).any(|pair| pair[0] < pair[1]) {
        breaches.push(Breach::Rising);
    }
    let (mut ranked, mut seen) = (Vec::with_capacity(count), BTreeSet::new());
    for (tool, score) in tools.iter().zip(scores.into_iter().chain(std::iter::repeat(f64::NEG_INFINITY))) {
        match tool.as_str().and_then(|id| items.get(id)) {
            None => breaches.push(Breach::Unknown(tool.clone())),
            Some(&item) if !seen.insert(item) => breaches.push(Breach::Twice(tool.clone())),
            Some(&item) => ranked.push((item, score)),
        }
    }
    match reply.us {
        Some(us) if !(us >= 0.0 && us <= seen_us as f64 + 1.0) => {
            breaches.push(Breach::Clock { claimed: us, seen: seen_us });
        }
        _ => {}
    }
    if breaches.is_empty() { Ok(ranked) } else { Err(breaches) }
}

/// A program that ranks the tools of a catalog.
pub(super) struct Lines {
    speaker: Speaker,
    catalog: Catalog,
}

impl Lines {
    /// Starts a program; it will get the catalog in the order that `rng` gives.
    pub(super) fn start(
        launch: Launch<'_>,
        limits: Limits,
        collection: &Collection,
        rng: &Rng,
    ) -> Result<Self, ProcessError> {
        Ok(Self { speaker: Speaker::start(launch, limits)?, catalog: Catalog::of(collection, rng) })
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
        let failed = |reason: String| Err(self.speaker.program.failed(reason));
        match reply.tools.as_ref().map(|tools| (tools, tools.as_u64())) {
            None => Ok(us),
            Some((_, Some(tools))) if tools == held as u64 => Ok(us),
            Some((_, Some(tools))) => failed(format!("it loaded {tools} tools of a catalog of {held}")),
            Some((other, None)) => {
                failed(format!("load: `tools` is {}, which is no number of tools", bounded(&other.to_string())))
            }
        }
    }

    fn ping(&mut self) -> Result<u64, ProcessError> {
        self.speaker.ping()
    }

    fn route(&mut self, query: &str) -> Result<Answer, ProcessError> {
        let what = format!("the query {:?}", bounded(query));
        let (reply, seen_us) = self.speaker.ask_by_id(&what, json!({"op": "route", "query": query, "k": TOP}))?;
        let own_us = reply.us.map(|us| us.max(0.0).round() as u64);
        match ranked(&reply, &self.catalog.items, TOP, seen_us) {
            Ok(tools) => Ok(Answer { tools, seen_us, own_us }),
            Err(breaches) => {
                let first = breaches.first().map_or_else(String::new, ToString::to_string);
                Err(self.speaker.program.failed(format!("{what}: {first}")))
            }
        }
    }

    fn hiding(&self) -> &Hiding {
        self.speaker.program.hiding()
    }

    fn peak_kib(&self) -> Option<u64> {
        self.speaker.program.peak_kib()
    }

    fn end(self: Box<Self>) -> Result<(), ProcessError> {
        self.speaker.program.end()
    }
}
