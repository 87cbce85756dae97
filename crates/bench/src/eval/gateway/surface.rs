//! What a client is shown of a catalog: directly, through gateway mode and through proxy mode.

use std::collections::BTreeSet;

use serde_json::json;

use super::exchange::{texts, tokens};
use super::record::SurfaceFacts;
use super::scenario::Shelf;
use super::stage::{Server, Stage};
use contextweaver_gateway::{LocalClient, Mode};

/// Tokens of the definitions that a gateway in `mode` lists in front of `servers`.
///
/// # Errors
/// The gateway did not start or does not list.
pub fn listed_tokens(client: &LocalClient) -> Result<usize, String> {
    let tools = client.tools().map_err(|error| error.message)?;
    let texts: Vec<&str> = tools.iter().map(|tool| tool.get()).collect();
    Ok(tokens(&format!("[{}]", texts.join(","))))
}

/// Tokens of the definitions as `servers` list them themselves.
#[must_use]
pub fn direct_tokens(servers: &[Server]) -> usize {
    servers.iter().map(|server| tokens(&server.list(Shelf::Tools))).sum()
}

/// The facts of `servers` behind one gateway.
///
/// # Errors
/// The gateway did not start, or does not list or browse.
pub fn facts(servers: &[Server]) -> Result<SurfaceFacts, String> {
    let start = |mode| LocalClient::start(Stage::default().gateway(servers, mode)).map_err(|error| error.to_string());
    let proxy_tokens = listed_tokens(&start(Mode::Proxy)?)?;
    let client = start(Mode::Gateway)?;
    let snapshot = client.gateway().catalog();
    let counts = snapshot.counts();
    let tools = snapshot.tools.as_ref().map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let (mut page_tokens, mut page_query) = (0, None);
    for name in &names {
        let page = client.call("tool_browse", &json!({ "query": name })).map_err(|error| error.message)?;
        let cost = tokens(&texts(&page));
        if cost > page_tokens {
            (page_tokens, page_query) = (cost, Some((*name).to_owned()));
        }
    }
    Ok(SurfaceFacts {
        servers: servers.len(),
        tools: counts.tools,
        unusable: counts.left_out,
        direct_tokens: direct_tokens(servers),
        gateway_tokens: listed_tokens(&client)?,
        proxy_tokens,
        queries: names.len(),
        page_tokens,
        page_query,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_counts_directly_and_three_tools_stand_for_them() {
        let tool =
            |name: &str| json!({"name": name, "description": "reads ".repeat(300), "inputSchema": {"type": "object"}});
        let server = |name: &str, tools: usize| Server {
            name: name.to_owned(),
            lists: super::super::stage::Lists {
                tools: (0..tools).map(|at| tool(&format!("read_{at}"))).collect(),
                ..Default::default()
            },
        };
        let (few, many) = (facts(&[server("a", 2)]).unwrap(), facts(&[server("a", 2), server("b", 30)]).unwrap());
        assert_eq!((few.tools, many.tools, many.servers, many.queries), (2, 32, 2, 30));
        assert_eq!(few.gateway_tokens, many.gateway_tokens);
        assert!(many.direct_tokens > many.proxy_tokens && many.proxy_tokens > few.proxy_tokens);
        assert!(many.page_tokens > few.page_tokens && many.page_tokens <= 450, "{many:?}");
        assert_eq!(facts(&[server("a", 0)]).unwrap().tools, 0);
    }
}
