//! contextweaver decides what a tool-using agent gets to read: which few of many tools to offer for a request, and
//! which part of a conversation and its results to put into a prompt. It is deterministic: the same input gives the
//! same bytes on every machine, without a model to load and without a network.
//!
//! # Quickstart
//!
//! Tools are MCP definitions. A [`Router`] ranks them for a query and gives compact cards, which never hold schemas:
//!
//! ```
//! use contextweaver::{Request, Router};
//!
//! let router = Router::from_json(r#"{"tools": [
//!     {"name": "create_issue", "description": "Open a new issue in a repository."},
//!     {"name": "send_mail", "description": "Send a message by electronic mail."}
//! ]}"#)?;
//! let route = router.route(&Request::new("report a bug in the repository"))?;
//! assert_eq!(route.choices[0].card.name(), "create_issue");
//! # Ok::<_, contextweaver::routing::RouteError>(())
//! ```
//!
//! A [`ContextManager`] keeps a conversation. Large results go to a store and stay reachable by handle; the prompt for
//! each phase of the agent's loop stays within its budget, counted with the exact tokenizer:
#![cfg_attr(feature = "context", doc = "```")]
#![cfg_attr(not(feature = "context"), doc = "```ignore")]
//! use contextweaver::event::{ContextItem, ItemKind, ToolOutput};
//! use contextweaver::{ContextManager, Phase};
//!
//! let log: String = (0..5000).map(|line| format!("INFO request {line} done\n")).collect();
//! let conversation = ContextManager::default();
//! conversation.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Why did the build fail?"))?;
//! conversation.ingest(ContextItem::new("c1", ItemKind::ToolCall, "read_log(build)").under("u1"))?;
//! let result = conversation.ingest_tool_result("c1", &ToolOutput::text(log))?;
//! let pack = conversation.build(Phase::Answer, "why did the build fail")?;
//! assert!(pack.stats.prompt_tokens < 6000);
//! assert!(pack.prompt.contains(result.artifacts[0].handle.as_str()));
//! # Ok::<_, contextweaver::context::ManagerError>(())
//! ```
//!
//! Whole programs are in the folder `examples/`:
//!
//! | example | shows |
//! |---|---|
//! | `route` | the tools for a query, and why |
//! | `agent_loop` | the phases of an agent: route, call, interpret, answer |
//! | `firewall` | a large result: what the prompt gets, and looking into the rest |
//! | `sqlite_stores` | a conversation that outlives the process |
//! | `custom_engine` | an engine of one's own, measured beside ours |
//! | `embed_gateway` | the MCP gateway inside a program |
//!
//! # Features
//!
//! Without any feature this crate is the router alone. Each feature adds a module, and the crates that it needs.
//!
//! | feature | adds |
//! |---|---|
//! | – | [`catalog`], [`text`], [`routing`] |
//! | `context` | `context`: event logs, the firewall, prompts within a budget |
//! | `sqlite` | stores in one SQLite file |
//! | `gateway` | `gateway`: many MCP servers behind one |
//! | `bench` | `eval` and `report`: the harness that measures it all |
//! | `yaml` | catalogs in YAML |
//! | `lint` | findings about catalogs, and the check of their schemas |
//! | `minilm` | a sentence encoder beside the built-in table |
//! | `cli` (default) | everything that the command `contextweaver` needs |
//!
//! Everything but `gateway` is synchronous. Scores are integers, ties are broken by id, and no result depends on the
//! order of the catalog, the clock or the number of cores.

#[cfg(feature = "bench")]
#[doc(inline)]
pub use contextweaver_bench::{eval, report};
#[cfg(feature = "context")]
#[doc(inline)]
pub use contextweaver_context as context;
#[cfg(feature = "context")]
#[doc(inline)]
pub use contextweaver_context::{adapters, event, store, view};
#[doc(inline)]
pub use contextweaver_core::{catalog, text};
#[cfg(feature = "gateway")]
#[doc(inline)]
pub use contextweaver_gateway as gateway;
#[doc(inline)]
pub use contextweaver_routing as routing;

#[doc(inline)]
pub use contextweaver_core::catalog::Catalog;
#[doc(inline)]
pub use contextweaver_routing::{Request, Route, Router, RoutingConfig};

#[cfg(feature = "context")]
#[doc(inline)]
pub use contextweaver_context::{
    Budgets, ContextConfig, ContextManager, ContextPack, Firewall,
    event::Phase,
    store::{Session, Stores},
};
#[cfg(feature = "gateway")]
#[doc(inline)]
pub use contextweaver_gateway::{Gateway, GatewayConfig};

/// The Rust examples of the README compile and run.
#[cfg(all(doctest, feature = "context"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// So do those of the page for programs.
#[cfg(all(doctest, feature = "context"))]
#[doc = include_str!("../docs/embed.md")]
struct Embed;
