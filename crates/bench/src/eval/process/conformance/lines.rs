//! The rules of programs that rank tools.

use serde_json::{Value, json};

use super::talk::Talk;
use super::{Conformance, ENDS, ID, LANGUAGES, PING, Row, SILENT, Sheet, long, ping};
use crate::eval::probe;
use crate::eval::process::lines::{Breach, Catalog, ranked};
use crate::eval::process::program::{Launch, bounded};
use crate::eval::process::speaker::Reply;
use crate::eval::process::{ProcessEngine, ProcessError, SEED, TOP, without_ties};
use crate::eval::rng::Rng;

const RULES: [Row; 17] = [
    (
        "hello",
        "hello is answered with ok, name and version",
        "answer {\"op\":\"hello\",…} with {\"ok\":true,\"name\":\"…\",\"version\":\"…\"}; load models later, or print nothing until it is asked",
    ),
    (
        "load",
        "load is answered with ok and the number of tools",
        "read every line of the file that `catalog` names, and answer {\"ok\":true,\"tools\":N} with the number of lines",
    ),
    PING,
    ID,
    (
        "list",
        "a query is answered with a list `tools`",
        "answer {\"op\":\"route\",…} with {\"id\":\"…\",\"tools\":[…]}; the list is empty where nothing fits",
    ),
    ("known", "tools are ids of the catalog", "name each tool by the `id` of its line in the catalog, as text"),
    ("once", "no tool is named twice", "leave out a tool that is in the list already"),
    ("k", "at most k tools", "cut the list after the first k; k differs from query to query"),
    (
        "scores",
        "there are as many scores as tools, and scores do not rise",
        "sort by score, best first, and cut `scores` where `tools` is cut; or leave `scores` out",
    ),
    (
        "us",
        "us is at most the time that the answer took",
        "state the microseconds of the search itself, as a number; or leave `us` out",
    ),
    ("empty", "an empty query is answered", "answer with an empty list where a query has no words"),
    (
        "long",
        "a query of 20 kB is answered",
        "read whole lines, whatever their length, and cut what the engine cannot take",
    ),
    (
        "languages",
        "other languages, emoji and quotes are answered",
        "read and write UTF-8 (in Python: PYTHONUTF8=1 or reconfigure), and parse the line as JSON",
    ),
    (
        "same",
        "the same query gets the same answer",
        "use no randomness, break ties by a property of the tool, and do not iterate over sets",
    ),
    (
        "order",
        "the order of the catalog changes no answer",
        "sort the tools before you index them, for example by name and description; give equal tools equal scores",
    ),
    SILENT,
    ENDS,
];

/// Queries of the probe that are asked.
const ASKED: usize = 12;

pub(super) fn check(engine: &ProcessEngine) -> Result<Conformance, ProcessError> {
    let (collection, rng) = (probe::collection(), Rng::new(SEED));
    let catalogs = ["first", "second"].map(|name| Catalog::of(collection, &rng.fork(name)));
    let [first, second] = &catalogs;
    let launch = Launch { command: &engine.command, hidden: &engine.hidden, variables: &[] };
    let mut router = Router { talk: Talk::new(launch, engine.limits, Sheet::new(&RULES)), catalog: first };
    router.start(first)?;
    ping(&mut router.talk);
    let queries: Vec<&str> = collection.queries.iter().take(ASKED).map(|query| query.text.as_str()).collect();
    let answers = router.all(&queries)?;
    let again = router.all(&queries[..queries.len().min(3)])?;
    for (query, (before, after)) in queries.iter().zip(answers.iter().zip(&again)) {
        match (before, after) {
            (Some(before), Some(after)) if before.said == after.said => router.talk.sheet.ok("same"),
            (Some(before), Some(after)) => {
                let found = format!("{query:?} got {}, then {}", before.shown(), after.shown());
                router.talk.sheet.wrong("same", vec![found], None);
            }
            _ => {}
        }
    }
    router.talk.end();

    // A program that ends at one of these is asked the others all the same.
    let long = long();
    for (rule, texts) in [("empty", &[""][..]), ("long", &[long.as_str()]), ("languages", &LANGUAGES)] {
        let answered = texts.iter().map(|text| router.asked(rule, text, TOP)).collect::<Result<Vec<_>, _>>()?;
        if answered.iter().all(Option::is_some) {
            router.talk.sheet.ok(rule);
        }
    }
    for k in [1, 5] {
        router.asked("k", queries.first().copied().unwrap_or_default(), k)?;
    }

    if router.talk.may_start() {
        router.start(second)?;
        for ((query, before), after) in queries.iter().zip(&answers).zip(router.all(&queries)?) {
            let tools = |one: Option<&Answered>| one.and_then(|one| one.tools.clone());
            match (tools(before.as_ref()), tools(after.as_ref())) {
                (Some(before), Some(after)) if without_ties(&before) == without_ties(&after) => {
                    router.talk.sheet.ok("order");
                }
                (Some(before), Some(after)) => {
                    let found = format!("{query:?} found {}, then {}", names(&before), names(&after));
                    router.talk.sheet.wrong("order", vec![found], None);
                }
                _ => {}
            }
        }
        router.talk.end();
    }
    Ok(router.talk.sheet.done())
}

/// A conversation about one catalog.
struct Router<'a> {
    talk: Talk<'a>,
    catalog: &'a Catalog,
}

impl<'a> Router<'a> {
    fn start(&mut self, catalog: &'a Catalog) -> Result<(), ProcessError> {
        self.catalog = catalog;
        self.talk.start(Some((&catalog.text, &catalog.sha256, catalog.items.len())))
    }

    /// The answers to queries, by a program that is started again if need be.
    fn all(&mut self, queries: &[&str]) -> Result<Vec<Option<Answered>>, ProcessError> {
        queries.iter().map(|query| self.asked("list", query, TOP)).collect()
    }

    /// The answer to a query, by a program that is started again if need be.
    fn asked(&mut self, rule: &str, query: &str, k: usize) -> Result<Option<Answered>, ProcessError> {
        if !self.talk.is_running() && self.talk.may_start() {
            self.start(self.catalog)?;
        }
        Ok(if self.talk.is_running() { self.route(rule, query, k) } else { None })
    }

    /// The answer to a query, if it is a list of tools, and what it says where it keeps all rules.
    fn route(&mut self, rule: &str, query: &str, k: usize) -> Option<Answered> {
        let request = json!({"op": "route", "query": query, "k": k});
        let (exchange, answer) = self.talk.ask_by_id(rule, request)?;
        let (has_scores, has_us) = (answer.get("scores").is_some(), answer.get("us").is_some());
        let reply: Reply = match serde_json::from_value(Value::clone(&answer)) {
            Ok(reply) => reply,
            Err(error) => {
                self.talk.wrong("list", &format!("a member has the wrong form: {error}"), &exchange);
                return None;
            }
        };
        let result = ranked(&reply, &self.catalog.items, k, exchange.us);
        let breaches = result.as_ref().err().cloned().unwrap_or_default();
        for breach in &breaches {
            self.talk.wrong(rule_of(breach), &breach.to_string(), &exchange);
        }
        let is_list = !breaches.contains(&Breach::NoList);
        let (is_some, is_cut) = (reply.tools != Some(json!([])), k < TOP);
        for (rule, is_tried) in [
            ("list", true),
            ("known", is_some),
            ("once", is_some),
            ("k", is_cut),
            ("scores", has_scores),
            ("us", has_us),
        ] {
            if is_list && is_tried && !breaches.iter().any(|breach| rule_of(breach) == rule) {
                self.talk.sheet.ok(rule);
            }
        }
        for (rule, is_there) in [("scores", has_scores), ("us", has_us)] {
            if !is_there {
                self.talk.sheet.note_untried(rule, "it gives none, which is allowed");
            }
        }
        let said = json!([answer.get("tools"), answer.get("scores")]);
        is_list.then(|| Answered { said, tools: result.ok() })
    }
}

/// An answer with a list of tools.
struct Answered {
    /// The tools and the scores as they came.
    said: Value,
    /// The items, where the answer keeps all rules.
    tools: Option<Vec<(u32, f64)>>,
}

impl Answered {
    fn shown(&self) -> String {
        self.tools.as_deref().map_or_else(|| bounded(&self.said.to_string()), names)
    }
}

/// The rule that is broken.
fn rule_of(breach: &Breach) -> &'static str {
    match breach {
        Breach::NoList => "list",
        Breach::TooMany { .. } => "k",
        Breach::ScoreCount { .. } | Breach::Rising => "scores",
        Breach::Unknown(_) => "known",
        Breach::Twice(_) => "once",
        Breach::Clock { .. } => "us",
    }
}

/// The first tools of an answer by name: their ids are made up.
fn names(tools: &[(u32, f64)]) -> String {
    const SHOWN: usize = 3;
    let items = probe::collection().catalog.items();
    let name = |(item, _): &(u32, f64)| items.get(*item as usize).map_or("", |item| &*item.name).to_owned();
    let shown: Vec<String> = tools.iter().take(SHOWN).map(name).collect();
    match (tools.len(), shown.join(", ")) {
        (0, _) => "nothing".to_owned(),
        (count, shown) if count > SHOWN => format!("{shown} and {} more", count - SHOWN),
        (_, shown) => shown,
    }
}
