//! The rival that everyone would write first: a pass-through with the typed models of the official library.

use std::process::Stdio;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{Peer, RequestContext, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt};

struct Forward {
    upstream: Peer<RoleClient>,
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

impl ServerHandler for Forward {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.upstream.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.upstream.call_tool(request).await.map(Into::into).map_err(failed)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = arguments.split_first().expect("a command to forward to");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut child = tokio::process::Command::new(command);
        child.args(rest).stderr(Stdio::null());
        let transport = TokioChildProcess::new(child).expect("the command starts");
        let client: RunningService<RoleClient, ()> = ().serve(transport).await.expect("the upstream answers");
        let server = Forward { upstream: client.peer().clone() };
        let serving = server.serve(rmcp::transport::stdio()).await.expect("the client speaks");
        let _ = serving.waiting().await;
    });
    runtime.shutdown_background();
}
