//! What a gateway shows and what it spares: the tokens of its own tools against those of all definitions.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::config::{GatewayConfig, Mode, StartMode};
use super::guard::{Access, Finding};
use super::hub::{Gateway, UpstreamReport};
use super::session::{Caller, ClientInfo, Session};
use super::snapshot::{Counts, published_name};
use super::wire::{Raw, RpcError};
use crate::catalog::{self, LeftOut, ServerSummary};
use crate::text::Estimator;

/// One tool behind the gateway.
#[derive(Debug, Clone, Serialize)]
pub struct InspectedTool {
    /// Its id.
    pub id: String,
    /// The name under which it is listed, in a mode that lists tools.
    pub published: Option<String>,
    /// `cl100k_base` tokens of its definition as its server lists it.
    pub tokens: usize,
}

/// What a gateway serves.
#[derive(Debug, Clone, Serialize)]
pub struct Inspection {
    /// What clients are shown.
    pub mode: Mode,
    /// How much there is.
    pub counts: Counts,
    /// `cl100k_base` tokens of all definitions, as a client without the gateway has them in its prompt.
    pub direct_tokens: usize,
    /// `cl100k_base` tokens of the definitions that the gateway lists.
    pub surface_tokens: usize,
    /// Tools that the gateway lists.
    pub surface_tools: usize,
    /// How the upstreams are.
    pub upstreams: Vec<UpstreamReport>,
    /// The namespaces of the tools.
    pub namespaces: Vec<ServerSummary>,
    /// The tools, the largest definition first.
    pub tools: Vec<InspectedTool>,
    /// Definitions that are not usable.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with schemas of tools that are served.
    pub flagged: Vec<Finding>,
}

impl GatewayConfig {
    /// The same without a trace: files of pins are read, and nothing is written to them, nor to the state, results or
    /// diagnostics.
    #[must_use]
    pub fn without_a_trace(mut self) -> Self {
        self.guards.access = Access::Look;
        self.artifacts.path = None;
        self.diagnostics = None;
        self
    }

    /// The same for a look: whatever is there is served, and nothing is written.
    #[must_use]
    pub fn for_a_look(self) -> Self {
        let mut config = self.without_a_trace();
        config.startup.mode = StartMode::Degraded;
        config.startup.min_healthy_upstreams = 0;
        config.startup.fail_on_empty_catalog = false;
        for upstream in config.upstreams.values_mut() {
            upstream.required = false;
        }
        config
    }
}

impl Gateway {
    /// What it serves now.
    ///
    /// # Errors
    /// Its own list of tools cannot be had: the upstream of a passthrough refuses it.
    pub async fn inspect(&self) -> Result<Inspection, RpcError> {
        let snapshot = self.snapshot();
        let mode = self.config().mode;
        let surface = self.surface().await?;
        let report =
            snapshot.tools.as_ref().map(|shelf| catalog::inspect(shelf.router.catalog(), Estimator::Cl100kBase));
        let (direct_tokens, namespaces, tools) =
            report.map_or_else(Default::default, |report| (report.tokens, report.servers, report.tools));
        let tools = tools.into_iter().map(|tool| InspectedTool {
            published: (mode != Mode::Gateway).then(|| published_name(&tool.id)),
            id: tool.id,
            tokens: tool.tokens,
        });
        Ok(Inspection {
            mode,
            counts: snapshot.counts(),
            direct_tokens,
            surface_tokens: surface.iter().map(|tool| Estimator::Cl100kBase.count(&format!("{tool}\n"))).sum(),
            surface_tools: surface.len(),
            upstreams: self.reports(),
            namespaces,
            tools: tools.collect(),
            left_out: snapshot.left_out.clone(),
            flagged: snapshot
                .tools
                .as_ref()
                .map_or_else(Vec::new, |shelf| self.config().guards.schemas.findings(shelf.router.catalog().items())),
        })
    }

    /// The tools that a client is shown, page by page.
    async fn surface(&self) -> Result<Vec<Box<RawValue>>, RpcError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            tools: Vec<Box<RawValue>>,
            next_cursor: Option<String>,
        }
        let (out, _unheard) = mpsc::channel(1);
        let caller = Caller::new(Session::new("inspect"), ClientInfo::default(), out);
        let (mut tools, mut params): (Vec<Box<RawValue>>, Option<Value>) = (Vec::new(), None);
        loop {
            let page = self.answer(&caller, "tools/list", params.as_ref().map(Raw::of).as_ref()).await?;
            let page: Page = page.read().map_err(RpcError::invalid_params)?;
            tools.extend(page.tools);
            let next = page.next_cursor.map(|cursor| json!({ "cursor": cursor }));
            if next.is_none() || next == params {
                return Ok(tools);
            }
            params = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_catalog_is_told_by_its_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        let tools = r#"{"server":"mail","tools":[{"name":"send","description":"Send a mail","inputSchema":{"type":"object"}},{"name":7}]}"#;
        std::fs::write(&path, tools).unwrap();
        let mut shown = Vec::new();
        for mode in [Mode::Gateway, Mode::Proxy] {
            let config = GatewayConfig { catalog: Some(path.clone()), mode, ..GatewayConfig::default() };
            let mut inspection = Gateway::start(config.for_a_look()).await.unwrap().inspect().await.unwrap();
            assert!(inspection.surface_tokens > 0);
            inspection.surface_tokens = 0;
            let text = serde_json::to_string_pretty(&inspection).unwrap();
            shown.push(text.replace(&*folder.path().to_string_lossy(), "FOLDER"));
        }
        insta::assert_snapshot!(shown.join("\n"), @r#"
    {
      "mode": "gateway",
      "counts": {
        "tools": 1,
        "resources": 0,
        "prompts": 0,
        "left_out": 1
      },
      "direct_tokens": 18,
      "surface_tokens": 0,
      "surface_tools": 3,
      "upstreams": [],
      "namespaces": [
        {
          "namespace": "mail",
          "server": "mail",
          "tools": 1,
          "resources": 0,
          "prompts": 0,
          "tokens": 18
        }
      ],
      "tools": [
        {
          "id": "mail:send#24918ca4",
          "published": null,
          "tokens": 18
        }
      ],
      "left_out": [
        {
          "place": "FOLDER/tools.json: tools[1]",
          "reason": "`name` must be a string, not a number"
        }
      ],
      "flagged": []
    }
    {
      "mode": "proxy",
      "counts": {
        "tools": 1,
        "resources": 0,
        "prompts": 0,
        "left_out": 1
      },
      "direct_tokens": 18,
      "surface_tokens": 0,
      "surface_tools": 3,
      "upstreams": [],
      "namespaces": [
        {
          "namespace": "mail",
          "server": "mail",
          "tools": 1,
          "resources": 0,
          "prompts": 0,
          "tokens": 18
        }
      ],
      "tools": [
        {
          "id": "mail:send#24918ca4",
          "published": "mail__send__24918ca4",
          "tokens": 18
        }
      ],
      "left_out": [
        {
          "place": "FOLDER/tools.json: tools[1]",
          "reason": "`name` must be a string, not a number"
        }
      ],
      "flagged": []
    }
    "#);
    }
}
