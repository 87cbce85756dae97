//! Cases -> facts.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::case::{Case, Reader, Source};
use super::exchange::{Ledger, failure, handles, texts, tokens};
use super::kinds::Requests;
use super::record::{GatewayFacts, ScenarioFacts};
use super::scenario::{Play, Scenario, Step, Then};
use super::session::Recording;
use super::stage::{Lists, Server, Stage};
use super::surface::{direct_tokens, listed_tokens};
use super::{kinds, session, surface};
use crate::eval::record::Outcome;
use crate::eval::version;
use contextweaver_context::FirewallConfig;
use contextweaver_gateway::upstream::Fault;
use contextweaver_gateway::wire::{INTERNAL_ERROR, Raw, RpcError};
use contextweaver_gateway::{CardForm, CatalogView, GatewayConfig, LocalClient, Mode, Structured};
use contextweaver_routing::RoutingConfig;

/// The configuration as text that a person can read: what of it changes a figure.
#[must_use]
pub fn configuration() -> String {
    #[derive(Serialize)]
    struct Measured {
        top_k: usize,
        cards: CardForm,
        structured: Structured,
        routing: RoutingConfig,
        firewall: FirewallConfig,
    }
    let GatewayConfig { top_k, cards, structured, routing, firewall, .. } = GatewayConfig::default();
    // A configuration is plain data, which TOML can always express.
    toml::to_string(&Measured { top_k, cards, structured, routing, firewall }).unwrap_or_default()
}

/// The version of the gateway: what it shows of a small catalog that is part of the program, and what it makes of a few
/// recorded calls.
#[must_use]
pub fn version() -> String {
    version::of(&configuration(), &on_probe())
}

fn on_probe() -> Result<impl Serialize + use<>, String> {
    const SESSION: &str = include_str!("../probe/session.json");
    #[derive(Deserialize)]
    struct Probe {
        recording: Recording,
        lists: BTreeMap<String, Lists>,
    }
    let Probe { recording, lists } = serde_json::from_str(SESSION).map_err(|error| error.to_string())?;
    let servers: Vec<Server> =
        lists.iter().map(|(name, lists)| Server { name: name.clone(), lists: lists.clone() }).collect();
    Ok((surface::facts(&servers)?, session::facts(&recording, &lists)?))
}

/// SHA-256 (hex) of the inputs of a case, and what comes of it.
///
/// # Errors
/// A file of it cannot be read; what fails behind that is an outcome.
pub fn record(case: &Case) -> Result<(String, Outcome<GatewayFacts>)> {
    let (inputs_sha256, stage) = read(case)?;
    let measured = match stage {
        Set::Surface(servers) => surface::facts(&servers).map(GatewayFacts::Surface),
        Set::Kinds(requests) => kinds::facts(&requests).map(GatewayFacts::Kinds),
        Set::Session(recording, lists) => session::facts(&recording, &lists).map(GatewayFacts::Session),
        Set::Scenario(scenario, servers) => facts(scenario, &servers).map(GatewayFacts::Scenario),
    };
    Ok((inputs_sha256, measured.map_or_else(Outcome::Failed, Outcome::Measured)))
}

/// SHA-256 (hex) of the inputs of a case, as [`record`] gives it.
///
/// # Errors
/// A file of it cannot be read.
pub fn inputs(case: &Case) -> Result<String> {
    Ok(read(case)?.0)
}

/// What a case is made of, read.
enum Set<'c> {
    Surface(Vec<Server>),
    Kinds(Box<Requests>),
    Session(Recording, BTreeMap<String, Lists>),
    Scenario(&'c Scenario, Vec<Server>),
}

fn read(case: &Case) -> Result<(String, Set<'_>)> {
    let mut reader = Reader::default();
    let set = match &case.source {
        Source::Catalogs(paths) => {
            Set::Surface(paths.iter().map(|path| reader.server(path)).collect::<Result<Vec<_>>>()?)
        }
        Source::Gold(folder) => Set::Surface(reader.collection(folder)?),
        Source::Kinds(folder) => Set::Kinds(Box::new(Requests::read(&mut reader, folder)?)),
        Source::Session(path, catalogs) => {
            let (recording, lists) = reader.recording(path, catalogs)?;
            Set::Session(recording, lists)
        }
        Source::Scenario(scenario, gold) => {
            reader.take(scenario.source.as_bytes());
            // One that is not there makes a step fail, which is an outcome.
            scenario.logs().iter().filter_map(|log| fs::read(log).ok()).for_each(|bytes| reader.take(&bytes));
            let mut servers: Vec<Server> = scenario
                .servers
                .iter()
                .map(|(name, lists)| Server { name: name.clone(), lists: lists.clone() })
                .collect();
            if let Some(catalog) = &scenario.catalog {
                servers.extend(reader.collection(&gold.join(catalog))?);
            }
            Set::Scenario(scenario, servers)
        }
    };
    Ok((reader.sha256(), set))
}

/// Plays a scenario.
///
/// # Errors
/// The gateway did not start or answered with an error of the protocol, or the scenario names what is not there.
pub fn facts(scenario: &Scenario, servers: &[Server]) -> Result<ScenarioFacts, String> {
    let stage = Stage::default();
    let client = LocalClient::start(stage.gateway(servers, Mode::Gateway)).map_err(|error| error.to_string())?;
    let snapshot = client.gateway().catalog();
    let mut play = Performance {
        scenario,
        client: &client,
        snapshot: &snapshot,
        stage: &stage,
        ledger: Ledger::default(),
        codes: BTreeMap::new(),
        browse_tokens: 0,
        view_tokens: 0,
        handles: Vec::new(),
    };
    let mut failures = Vec::new();
    for (number, step) in (1..).zip(&scenario.steps) {
        if let Err(reason) = play.step(step)? {
            failures.push(format!("step {number}: {reason}"));
        }
    }
    Ok(ScenarioFacts {
        steps: scenario.steps.len(),
        failures,
        codes: play.codes,
        direct_tokens: direct_tokens(servers),
        gateway_tokens: listed_tokens(&client)?,
        browse_tokens: play.browse_tokens,
        view_tokens: play.view_tokens,
        injected: play.ledger.close(&client)?,
    })
}

/// A scenario while it is played.
struct Performance<'p> {
    scenario: &'p Scenario,
    client: &'p LocalClient,
    snapshot: &'p CatalogView,
    stage: &'p Stage,
    ledger: Ledger,
    codes: BTreeMap<String, usize>,
    browse_tokens: usize,
    view_tokens: usize,
    /// The handles that the last answer named which named any.
    handles: Vec<String>,
}

/// What went otherwise than the scenario says.
type Wrong = Result<(), String>;

impl Performance<'_> {
    fn step(&mut self, step: &Step) -> Result<Wrong, String> {
        let (answer, reached) = match step {
            Step::Browse { shelf, query, path, .. } => {
                let answer = self.call(shelf.tool(), json!({"query": query, "path": path}))?;
                self.browse_tokens += tokens(&texts(&answer));
                (answer, Ok(()))
            }
            Step::Execute { tool, args, dry_run, answer, .. } => {
                let dry_run = dry_run.then_some(true);
                let arguments = json!({"tool_id": self.id(tool), "args": value(args.as_deref()), "dry_run": dry_run});
                self.served("tool_execute", arguments, answer.as_ref())?
            }
            Step::Read { resource, answer, .. } => {
                self.served("resource_read", json!({"resource_id": self.id(resource)}), answer.as_ref())?
            }
            Step::Get { prompt, args, answer, .. } => {
                let arguments = json!({"prompt_id": self.id(prompt), "args": value(args.as_deref())});
                self.served("prompt_get", arguments, answer.as_ref())?
            }
            Step::View { handle, selector, .. } => {
                let handle = handle.as_ref().or(self.handles.first());
                let answer = self.call("tool_view", json!({"handle": handle, "selector": selector}))?;
                self.view_tokens += tokens(&texts(&answer));
                (answer, Ok(()))
            }
        };
        let named = handles(&answer);
        if !named.is_empty() {
            self.handles.clone_from(&named);
        }
        let failed = failure(&answer);
        if let Some((code, _)) = &failed {
            *self.codes.entry(code.clone()).or_default() += 1;
        }
        Ok(reached.and_then(|()| self.compared(step.then(), &texts(&answer), failed, named.len())))
    }

    /// A call that a server answers with what is played; without that none must be asked.
    fn served(&mut self, tool: &str, arguments: Value, play: Option<&Play>) -> Result<(Raw, Wrong), String> {
        let result = play.map(|play| play.answer(&self.scenario.folder)).transpose()?;
        let nothing = || Err(Fault::Rpc(RpcError::new(INTERNAL_ERROR, "nothing is played")));
        self.stage.lay(result.clone().unwrap_or_else(nothing));
        let answer = self.call(tool, arguments)?;
        let reached = match (self.stage.asked(), result) {
            (Some(asked), None) => Err(format!("a server was asked: {}", asked.method)),
            (None, Some(_)) => Err("no server was asked".to_owned()),
            (Some(_), Some(Ok(result))) => {
                self.ledger.add(&result, &answer);
                Ok(())
            }
            _ => Ok(()),
        };
        Ok((answer, reached))
    }

    /// A call with the members that are set.
    fn call(&self, tool: &str, arguments: Value) -> Result<Raw, String> {
        let members: Map<String, Value> = match arguments {
            Value::Object(members) => members.into_iter().filter(|(_, value)| !value.is_null()).collect(),
            _ => Map::new(),
        };
        self.client.call(tool, &members).map_err(|error| format!("{tool}: {}", error.message))
    }

    /// The id for which `server:name` stands; the text itself where it is not such a name.
    fn id(&self, name: &str) -> String {
        let CatalogView { tools, resources, prompts, .. } = self.snapshot;
        let shelves = [tools.as_ref(), resources.as_ref(), prompts.as_ref()];
        let found = name
            .split_once(':')
            .and_then(|(server, name)| shelves.into_iter().find_map(|shelf| session::item_id(shelf, server, name)));
        found.unwrap_or_else(|| name.to_owned())
    }

    fn compared(&self, then: &Then, text: &str, failed: Option<(String, String)>, handles: usize) -> Wrong {
        let expected = then.code.map(|code| json!(code).as_str().unwrap_or_default().to_owned());
        match (&expected, failed) {
            (Some(expected), Some((code, _))) if *expected == code => {}
            (None, None) => {}
            (Some(expected), Some((code, message))) => return Err(format!("{code} instead of {expected}: {message}")),
            (Some(expected), None) => return Err(format!("no failure instead of {expected}")),
            (None, Some((code, message))) => return Err(format!("{code}: {message}")),
        }
        if let Some(missing) = then.expect.iter().find(|expected| !text.contains(&self.id(expected))) {
            return Err(format!("the answer lacks `{missing}`"));
        }
        if let Some(found) = then.forbidden.iter().find(|forbidden| text.contains(&self.id(forbidden))) {
            return Err(format!("the answer holds `{found}`"));
        }
        match (then.artifacts, then.at_most.map(|most| (most, tokens(text)))) {
            (Some(expected), _) if expected != handles => Err(format!("{handles} handles instead of {expected}")),
            (_, Some((most, cost))) if cost > most => Err(format!("{cost} tokens, over {most}")),
            _ => Ok(()),
        }
    }
}

/// Arguments that were checked to be JSON.
fn value(args: Option<&str>) -> Option<Value> {
    args.and_then(|args| serde_json::from_str(args).ok())
}
