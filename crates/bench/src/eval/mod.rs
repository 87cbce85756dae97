//! Collections x engines -> facts and timings.
//!
//! Cases are data, engines come in by one trait, and what a run leaves behind is a record per case and engine:
//! exact facts that are compared digit by digit, and timings apart. The room knows no Markdown and no pictures.

pub mod abstention;
pub mod audit;
pub mod choosing;
pub mod collection;
pub mod context;
pub mod day;
pub mod decision;
pub(crate) mod distinct;
pub mod draft;
pub mod engine;
pub mod error;
pub mod everyday;
pub mod export;
pub mod gateway;
pub mod growth;
pub mod identity;
pub mod imported;
pub mod latency;
pub mod loss;
pub mod machine;
pub mod matrix;
pub mod measure;
pub mod probe;
pub mod process;
pub mod ranks;
pub mod record;
pub mod recording;
pub mod rival;
pub mod rng;
pub mod run;
pub mod scaling;
pub mod statistics;
pub mod sweep;
pub mod tables;
pub mod ties;
pub mod timing;
pub mod trec;
pub mod vary;
pub mod version;
pub mod workspace;

pub use contextweaver_core::files;
