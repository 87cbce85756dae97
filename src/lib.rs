//! contextweaver: a context layer for agents that use many tools, and the harness that measures it.
//!
//! The crate is a house of rooms in dependency order. A room names only rooms above it, and a test
//! (`tests/it/layers.rs`) reads the sources to hold that:
//!
//! | room | what it knows |
//! |---|---|
//! | [`text`] | what a word is, what a token costs |
//! | [`catalog`] | which tools exist: items, ids, loading, lint, diff |
//! | [`event`] | what was said and done: items, artifacts, envelopes |
//! | [`adapters`] | outside formats of conversations <-> our types |
//! | [`store`] | event logs, artifacts, facts and episodes, and where they are kept |
//! | [`routing`] | query + catalog -> ranking with an explanation, cards, selection |
//! | [`context`] | events + phase + budget -> prompt, and what was left out of it; the firewall and its views |
//! | [`gateway`] | MCP: upstream servers, guards, and the surface that clients see |
//! | [`eval`] | collections x engines -> records of facts and timings |
//! | [`report`] | records -> Markdown and SVG bytes |
//! | [`cli`] | one file per command: arguments, one call, print |
//!
//! Everything but `gateway` is synchronous and deterministic: the same input gives the same bytes, on
//! every machine and for every order of the catalog.

pub mod adapters;
pub mod catalog;
pub mod cli;
pub mod context;
pub mod eval;
pub mod event;
pub mod gateway;
pub mod report;
pub mod routing;
pub mod store;
pub mod text;
