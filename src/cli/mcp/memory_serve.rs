//! `mcp memory-serve`: facts and episodes as an MCP server on standard streams.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::block_on;
use crate::cli::Outcome;
use crate::cli::outside;
use contextweaver_context::memory::RecallBounds;
use contextweaver_context::store::database::Database;
use contextweaver_gateway::upstream::InProcess;
use contextweaver_gateway::{
    Gateway, GatewayConfig, MemoryBounds, MemoryServer, Mode, Target, UpstreamConfig, serve_stdio,
};

/// Serve facts and episodes as the tools of an MCP server
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("memory").args(["store", "source"]).required(true).multiple(true)), after_help = "\
Tools: search; with --store also list, remember, record and forget. What is kept is bounded, on one line, and without
secrets. Standard output carries only the protocol. A gateway serves it among its servers:
  upstreams:
    memory: {command: contextweaver, args: [mcp, memory-serve, --store, memory.db]}

Examples:
  contextweaver mcp memory-serve --store memory.db
  contextweaver mcp memory-serve --store memory.db --source team.json
  contextweaver mcp memory-serve --source chat.session")]
pub(in crate::cli) struct Args {
    /// The SQLite store to search and change; created if it does not exist
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// A memory to search but not change: memory file, session, facts, episodes, Markdown document or folder of them,
    /// cards (JSON), or SQLite store; may be repeated
    #[arg(long, value_name = "FILE")]
    source: Vec<PathBuf>,
    /// Maximum tokens in the answer to a search
    #[arg(long, value_name = "N", default_value_t = MemoryBounds::default().recall.tokens)]
    tokens: usize,
    /// Maximum number of memories in the answer to a search
    #[arg(long, value_name = "N", default_value_t = MemoryBounds::default().recall.memories)]
    memories: usize,
    /// Maximum number of facts, and of episodes, in the store
    #[arg(long, value_name = "N", default_value_t = MemoryBounds::default().kept, requires = "store")]
    most: usize,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let sources = args.source.iter().map(|path| outside::local_memory(path)).collect::<Result<_>>()?;
    let recall = RecallBounds { tokens: args.tokens, memories: args.memories };
    let bounds = MemoryBounds { recall, kept: args.most };
    let mut server = MemoryServer::new(sources, bounds);
    if let Some(path) = &args.store {
        if path.metadata().is_ok_and(|file| file.len() > 0) && !Database::is_at(path) {
            bail!(
                "--store {}: this is not an SQLite store; a file of memories is searched with --source",
                path.display()
            );
        }
        server = server.with_store(path).context("--store")?;
    }
    let mut config =
        GatewayConfig { mode: Mode::Passthrough, name: "contextweaver-memory".to_owned(), ..GatewayConfig::default() };
    let target = Target::InProcess(InProcess::new(server.into_tools()));
    config.upstreams.insert("memory".to_owned(), UpstreamConfig::new(target));
    block_on(async {
        let gateway = Gateway::start(config).await.context("the memory did not start")?;
        serve_stdio(gateway.clone(), std::future::pending()).await?;
        gateway.close().await;
        Ok(())
    })?;
    Ok(Outcome::Ok)
}
