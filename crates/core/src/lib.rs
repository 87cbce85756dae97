//! The foundation of every other contextweaver crate: what a word and a token are, which tools exist, and how a file is
//! replaced whole.
//!
//! Ranking, compiling prompts and serving tools are in the crates above it.

pub mod catalog;
pub mod files;
pub mod text;
