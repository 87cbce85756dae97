//! What a gateway shows and what it spares: the tokens of its own tools against those of all definitions.

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::catalog::names::published_name;
use crate::catalog::serving::UpstreamReport;
use crate::catalog::view::Counts;
use crate::guard::schema::Finding;
use crate::protocol::client_info::ClientInfo;
use crate::protocol::message::RpcError;
use crate::server::gateway::Gateway;
use crate::server::local_client::listed;
use crate::session::client::{Caller, Session};
use crate::surface::mode::Mode;
use contextweaver_core::catalog::{self, LeftOut, ServerSummary};
use contextweaver_core::text::Estimator;

/// One tool behind the gateway.
#[derive(Debug, Clone, Serialize)]
pub struct PreviewedTool {
    /// The id of the tool.
    pub id: String,
    /// The name under which it is listed, in a mode that lists tools.
    pub published: Option<String>,
    /// `cl100k_base` tokens of its definition as its server lists it.
    pub tokens: usize,
}

/// What a gateway serves.
#[derive(Debug, Clone, Serialize)]
pub struct Preview {
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
    pub tools: Vec<PreviewedTool>,
    /// Definitions that are not usable.
    pub left_out: Vec<LeftOut>,
    /// What is wrong with schemas of tools that are served.
    pub flagged: Vec<Finding>,
}

impl Preview {
    /// What `gateway` serves now.
    ///
    /// # Errors
    /// The list of its own tools cannot be read: the upstream of a passthrough refuses it.
    pub async fn of(gateway: &Gateway) -> Result<Self, RpcError> {
        let view = gateway.catalog();
        let mode = gateway.config().mode;
        let surface = surface(gateway).await?;
        let report = view.tools.as_ref().map(|shelf| catalog::inspect(shelf.router.catalog(), Estimator::Cl100kBase));
        let (direct_tokens, namespaces, tools) =
            report.map_or_else(Default::default, |report| (report.tokens, report.servers, report.tools));
        let tools = tools.into_iter().map(|tool| PreviewedTool {
            published: (mode != Mode::Gateway).then(|| published_name(&tool.id)),
            id: tool.id,
            tokens: tool.tokens,
        });
        Ok(Self {
            mode,
            counts: view.counts(),
            direct_tokens,
            surface_tokens: surface.iter().map(|tool| Estimator::Cl100kBase.count(&format!("{tool}\n"))).sum(),
            surface_tools: surface.len(),
            upstreams: gateway.reports(),
            namespaces,
            tools: tools.collect(),
            left_out: view.left_out.clone(),
            flagged: view.tools.as_ref().map_or_else(Vec::new, |shelf| {
                gateway.config().guards.schemas.findings(shelf.router.catalog().items())
            }),
        })
    }
}

/// The tools that a client is shown, page by page.
async fn surface(gateway: &Gateway) -> Result<Vec<Box<RawValue>>, RpcError> {
    let (out, _unheard) = mpsc::channel(1);
    let caller = Caller::new(Session::new("preview"), ClientInfo::default(), out);
    listed(gateway, &caller).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::GatewayConfig;

    #[tokio::test]
    async fn a_catalog_is_told_by_its_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tools.json");
        let tools = r#"{"server":"mail","tools":[{"name":"send","description":"Send a mail","inputSchema":{"type":"object"}},{"name":7}]}"#;
        std::fs::write(&path, tools).unwrap();
        let mut shown = Vec::new();
        for mode in [Mode::Gateway, Mode::Proxy] {
            let config = GatewayConfig { catalog: Some(path.clone().into()), mode, ..GatewayConfig::default() };
            let gateway = Gateway::start(config.for_a_look()).await.unwrap();
            let mut preview = Preview::of(&gateway).await.unwrap();
            assert!(preview.surface_tokens > 0);
            preview.surface_tokens = 0;
            let text = serde_json::to_string_pretty(&preview).unwrap();
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
