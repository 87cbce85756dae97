//! The foundation of every other contextweaver crate: what a word and a token are, which tools exist, how a file is
//! replaced whole, and other things that all of them need.
//!
//! Ranking, compiling prompts and serving tools are in the crates above it.

pub mod catalog;
pub mod files;
pub mod json;
pub mod names;
pub mod sync;
pub mod text;
