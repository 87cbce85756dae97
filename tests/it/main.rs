//! One binary for all integration tests: commands as a person runs them, the order of the rooms, real catalogs.

mod bench;
mod choosing;
mod cli;
mod compare;
mod conformance;
mod context;
mod crash;
mod encoder;
mod eval;
mod examples;
mod gateway;
mod gateway_scenarios;
#[cfg(unix)]
mod instructions;
mod layers;
#[cfg(unix)]
mod list_cache;
mod mcp;
mod memory;
mod ops;
mod own;
mod pages;
mod real_catalogs;
mod rivals;
mod schemas;
mod session;
mod support;
