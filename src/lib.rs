//! contextweaver: a context layer for agents that use many tools, and the harness that measures it.
//!
//! The crate is a house of rooms in dependency order. A room names only rooms above it, and a test
//! (`tests/it/layers.rs`) reads the sources to hold that:
//!
//! | room | what it knows |
//! |---|---|
//! | [`text`] | what a word is, what a token costs |
//! | [`catalog`] | which tools exist: items, ids, loading, lint, diff |
//! | [`routing`] | query + catalog -> ranking with an explanation, cards, selection |
//! | [`eval`] | collections x engines -> records of facts and timings |
//! | [`report`] | records -> Markdown and SVG bytes |
//! | [`cli`] | one file per command: arguments, one call, print |
//!
//! Everything up to `report` is synchronous and deterministic: the same input gives the same bytes, on
//! every machine and for every order of the catalog.

pub mod catalog;
pub mod cli;
pub mod eval;
pub mod report;
pub mod routing;
pub mod text;
