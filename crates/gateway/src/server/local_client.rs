//! A client in the same process, without bytes on a wire.
//!
//! [`LocalSession`] takes part as any other client does, one session from the handshake on, and answers no question that
//! an upstream asks through the gateway. What measures or tests a gateway asks one thing after the other and knows nothing
//! of tasks: for it, [`LocalClient`] brings its own runtime, on the thread that calls it. Handles of its results are made of
//! the results alone, without a key: what is measured is the same in every process.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::gateway::Gateway;
use crate::catalog::serving::StartError;
use crate::common::error::{Code, GatewayError};
use crate::config::file::GatewayConfig;
use crate::protocol::message::{Outcome, Raw, RpcError};
use crate::protocol::versions::LEGACY_VERSIONS;
use crate::results::artifacts::Artifacts;
use crate::results::holdings::Holdings;
use crate::session::client::{Caller, Session};
use crate::tools::execute::find;
use contextweaver_context::event::{ArtifactRef, Handle};
use contextweaver_context::store::{ArtifactStore, StoreError};

/// A gateway in this process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The system gives no runtime.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// The gateway did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It refused the handshake.
    #[error("the handshake failed: {}", .0.message)]
    Handshake(RpcError),
}

/// A client of a gateway in this process, from the handshake on. It offers nothing: what it would be asked fails at once.
#[derive(Debug)]
pub struct LocalSession {
    gateway: Arc<Gateway>,
    session: Arc<Session>,
}

impl LocalSession {
    /// Introduces a client by its name.
    ///
    /// # Errors
    /// The gateway refuses the handshake.
    pub async fn open(gateway: Arc<Gateway>, client: &str) -> Result<Self, RpcError> {
        let session = Session::new("local");
        gateway.enter(&session);
        let opened = Self { gateway, session };
        let hello = json!({
            "protocolVersion": LEGACY_VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": client, "version": env!("CARGO_PKG_VERSION")},
        });
        opened.request("initialize", &hello).await?;
        Ok(opened)
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// The error with which the gateway answers, for what is not a request of the protocol.
    pub async fn request(&self, method: &str, params: &impl Serialize) -> Outcome {
        let params = Raw::of(params);
        self.gateway.answer(&self.caller(), method, Some(&params)).await
    }

    /// Calls a tool of the gateway.
    ///
    /// # Errors
    /// As [`Self::request`]; a failure of the tool is a result.
    pub async fn call(&self, tool: &str, arguments: &impl Serialize) -> Outcome {
        #[derive(Serialize)]
        struct Call<'c, A> {
            name: &'c str,
            arguments: &'c A,
        }
        self.request("tools/call", &Call { name: tool, arguments }).await
    }

    /// Whether a call of `tool_execute` with this name leads to a tool that is served, or to one that is kept back for a while.
    ///
    /// # Errors
    /// It leads nowhere, or to several; the message names the nearest.
    pub fn find(&self, tool: &str) -> Result<(), GatewayError> {
        match find(&self.gateway.catalog(), self.gateway.config().mode, tool) {
            Err(error) if error.code == Code::HydrateFailed => Err(error),
            // A call may be made later, and says by itself why not now.
            _ => Ok(()),
        }
    }

    /// The definitions of `tools/list`, all pages together, each as it is sent.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub async fn tools(&self) -> Result<Vec<Box<RawValue>>, RpcError> {
        listed(&self.gateway, &self.caller()).await
    }

    /// Who asks. Nobody reads what belongs to a request: its messages are dropped.
    fn caller(&self) -> Caller {
        Caller::new(Arc::clone(&self.session), self.session.client(), mpsc::channel(1).0)
    }
}

/// A gateway and its only client, on the thread that asks.
#[derive(Debug)]
pub struct LocalClient {
    runtime: Runtime,
    client: LocalSession,
}

impl LocalClient {
    /// Starts a gateway and introduces a client that offers nothing.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn start(config: GatewayConfig) -> Result<Self, LocalError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Figures that are taken of a gateway must not depend on a key.
        let artifacts = Artifacts::open(&config.artifacts).map_err(StartError::from)?.without_key();
        let gateway = runtime.block_on(async { Gateway::begin_on(config, artifacts).await?.open().await })?;
        let client = runtime.block_on(LocalSession::open(gateway, "local")).map_err(LocalError::Handshake)?;
        Ok(Self { runtime, client })
    }

    /// As [`LocalSession::request`].
    ///
    /// # Errors
    /// As there.
    pub fn request(&self, method: &str, params: &impl Serialize) -> Outcome {
        self.runtime.block_on(self.client.request(method, params))
    }

    /// As [`LocalSession::call`].
    ///
    /// # Errors
    /// As there.
    pub fn call(&self, tool: &str, arguments: &impl Serialize) -> Outcome {
        self.runtime.block_on(self.client.call(tool, arguments))
    }

    /// As [`LocalSession::tools`].
    ///
    /// # Errors
    /// As there.
    pub fn tools(&self) -> Result<Vec<Box<RawValue>>, RpcError> {
        self.runtime.block_on(self.client.tools())
    }

    /// The gateway that answers this client.
    #[must_use]
    pub fn gateway(&self) -> &Gateway {
        &self.client.gateway
    }

    /// What the gateway has stored.
    ///
    /// # Errors
    /// What the store says.
    pub fn artifacts(&self) -> Result<Vec<ArtifactRef>, StoreError> {
        self.store().list()
    }

    /// The content stored under a handle.
    ///
    /// # Errors
    /// What the store says, e.g. that there is no such handle.
    pub fn artifact(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
        self.store().get(handle)
    }

    fn store(&self) -> Holdings {
        self.gateway().artifacts().of(&self.client.session)
    }
}

/// The definitions of `tools/list` for this caller, all pages together, each as it is sent.
///
/// # Errors
/// The error with which the gateway answers.
pub(crate) async fn listed(gateway: &Gateway, caller: &Caller) -> Result<Vec<Box<RawValue>>, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page {
        tools: Vec<Box<RawValue>>,
        next_cursor: Option<String>,
    }
    let (mut tools, mut params) = (Vec::new(), None);
    loop {
        let page = gateway.answer(caller, "tools/list", params.as_ref()).await?;
        let page: Page = page.read().map_err(RpcError::invalid_params)?;
        tools.extend(page.tools);
        let next = page.next_cursor.map(|cursor| Raw::of(&json!({ "cursor": cursor })));
        // A server that gives a cursor again would give the page again.
        if next.is_none() || next == params {
            return Ok(tools);
        }
        params = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::config::{Era, Target, UpstreamConfig};
    use crate::upstream::fault::Fault;
    use crate::upstream::in_process::InProcess;
    use serde_json::Value;

    fn answer(method: &str, _: Option<&Raw>) -> Result<Raw, Fault> {
        Ok(Raw::of(&match method {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}),
            "tools/list" => json!({"tools": [{"name": "say", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "hello ".repeat(3_000)}]}),
            other => return Err(Fault::Rpc(RpcError::method_not_found(other))),
        }))
    }

    #[test]
    fn it_finds_calls_and_looks_into_the_store() {
        let upstream =
            UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(answer))) };
        let config = GatewayConfig { upstreams: [("up".to_owned(), upstream)].into(), ..GatewayConfig::default() };
        let client = LocalClient::start(config).unwrap();
        assert_eq!(client.tools().unwrap().len(), 3);
        let cards: Value = client.call("tool_browse", &json!({"query": "say"})).unwrap().read().unwrap();
        let id = cards["content"][0]["text"].as_str().unwrap().split_whitespace().next().unwrap().to_owned();
        let result: Value = client.call("tool_execute", &json!({"tool_id": id})).unwrap().read().unwrap();
        assert_eq!(result["isError"], false, "{result}");
        let stored = client.artifacts().unwrap();
        assert_eq!(*client.artifact(&stored[0].handle).unwrap(), *"hello ".repeat(3_000).as_bytes());
        assert!(client.request("no/such", &json!({})).is_err());
    }

    #[test]
    fn what_must_be_an_object_is_not_read_from_an_array() {
        let upstream =
            UpstreamConfig { era: Era::Legacy, ..UpstreamConfig::new(Target::InProcess(InProcess::new(answer))) };
        let config = GatewayConfig { upstreams: [("up".to_owned(), upstream)].into(), ..GatewayConfig::default() };
        let client = LocalClient::start(config).unwrap();
        let error = client.request("tools/call", &json!(["tool_browse", {"query": "say"}, null, null, null]));
        assert_eq!(error.unwrap_err().code, crate::protocol::message::INVALID_PARAMS);
        for (arguments, reason) in [
            (json!(["say", null, null, null]), "must be an object"),
            (json!("say"), "must be an object"),
            (json!({"query": "say", "top_k": -1}), "must be a whole number"),
            (json!({"query": "say", "top_k": "3"}), "must be a whole number"),
        ] {
            let result: Value = client.call("tool_browse", &arguments).unwrap().read().unwrap();
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("ARGS_INVALID") && text.contains(reason), "{text}");
            assert!(!text.contains("struct") && !text.contains("usize"), "{text}");
        }
    }
}
