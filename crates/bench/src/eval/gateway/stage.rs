//! Servers of this process: they list what a file says, and answer calls with what was laid out for them.

use std::sync::{Arc, Mutex, MutexGuard};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::scenario::Shelf;
use contextweaver_core::sync::lock;
use contextweaver_gateway::upstream::{Answer, Fault, InProcess};
use contextweaver_gateway::wire::{Raw, RpcError};
use contextweaver_gateway::{Era, GatewayConfig, Mode, Target, UpstreamConfig};

/// What a server lists; the text of each definition is compact JSON.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lists {
    /// Definitions of tools.
    pub tools: Vec<Value>,
    /// Definitions of resources.
    pub resources: Vec<Value>,
    /// The templates of its resources.
    pub resource_templates: Vec<Value>,
    /// Definitions of prompts.
    pub prompts: Vec<Value>,
}

/// A server and its name in the configuration.
#[derive(Debug, Clone)]
pub struct Server {
    /// The name under which the gateway knows it.
    pub name: String,
    /// What it lists.
    pub lists: Lists,
}

impl Server {
    /// The text of its list of one kind; templates of resources are not part of one.
    #[must_use]
    pub fn list(&self, shelf: Shelf) -> String {
        let Lists { tools, resources, prompts, .. } = &self.lists;
        let list = match shelf {
            Shelf::Tools => tools,
            Shelf::Resources => resources,
            Shelf::Prompts => prompts,
        };
        Value::from(list.clone()).to_string()
    }
}

/// What a server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method of the request, e.g. `tools/call`.
    pub method: String,
    /// The parameters of the request, as they came.
    pub params: Raw,
}

#[derive(Debug, Default)]
struct Scene {
    next: Option<Result<Raw, Fault>>,
    asked: Option<Asked>,
}

/// Where the next answer of all servers lies, and the last question.
#[derive(Debug, Clone, Default)]
pub struct Stage(Arc<Mutex<Scene>>);

impl Stage {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        lock(&self.0)
    }

    /// Lays out the answer to the next call, in the place of one that was not asked for.
    pub fn lay(&self, answer: Result<Raw, Fault>) {
        *self.scene() = Scene { next: Some(answer), asked: None };
    }

    /// What was asked since then; `None` when no server was.
    #[must_use]
    pub fn asked(&self) -> Option<Asked> {
        self.scene().asked.take()
    }

    /// A gateway before `servers`, all on this stage, and for the rest as it comes.
    #[must_use]
    pub fn gateway(&self, servers: &[Server], mode: Mode) -> GatewayConfig {
        let upstream = |server: &Server| {
            let actor = Actor { lists: server.lists.clone(), stage: self.clone() };
            let target = Target::InProcess(InProcess::new(actor));
            (server.name.clone(), UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(target) })
        };
        let mut config =
            GatewayConfig { mode, upstreams: servers.iter().map(upstream).collect(), ..GatewayConfig::default() };
        // A server without tools is a case like any other.
        config.startup.fail_on_empty_catalog = false;
        config
    }
}

struct Actor {
    lists: Lists,
    stage: Stage,
}

impl Answer for Actor {
    fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Raw, Fault> {
        let Lists { tools, resources, resource_templates, prompts } = &self.lists;
        let listed = match method {
            "initialize" => {
                let mut capabilities = Map::new();
                let has = [
                    ("tools", !tools.is_empty()),
                    ("resources", !resources.is_empty() || !resource_templates.is_empty()),
                    ("prompts", !prompts.is_empty()),
                ];
                capabilities
                    .extend(has.into_iter().filter(|(_, has)| *has).map(|(name, _)| (name.to_owned(), json!({}))));
                json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "stage", "version": "1"}})
            }
            "ping" => json!({}),
            "tools/list" => json!({ "tools": tools }),
            "resources/list" => json!({ "resources": resources }),
            "resources/templates/list" => json!({ "resourceTemplates": resource_templates }),
            "prompts/list" => json!({ "prompts": prompts }),
            _ => {
                let mut scene = self.stage.scene();
                scene.asked = Some(Asked {
                    method: method.to_owned(),
                    params: params.cloned().unwrap_or_else(|| Raw::of(&json!({}))),
                });
                return scene.next.take().unwrap_or_else(|| Err(Fault::Rpc(RpcError::method_not_found(method))));
            }
        };
        Ok(Raw::of(&listed))
    }
}

/// The members of a call of a tool.
#[derive(Debug, Deserialize)]
pub struct Called<'c> {
    /// The name of the tool that is called.
    pub name: String,
    /// Its arguments as they were written.
    #[serde(borrow)]
    pub arguments: &'c RawValue,
}
