//! Collections x engines -> records of facts and timings.
//!
//! Cases are data, engines come in by one trait, and what a run leaves behind is a record per case and engine:
//! exact facts that are compared digit by digit, and timings apart. The room knows no Markdown and no pictures.

pub mod abstention;
pub mod audit;
pub mod capability;
pub mod collection;
pub mod confidence;
pub mod context;
pub mod engine;
pub mod export;
pub mod feedback;
pub mod gateway;
pub mod growth;
pub mod latency;
pub mod left_out;
pub mod loss;
pub mod machine;
pub mod matrix;
pub mod measure;
pub mod played;
pub mod record;
pub mod results;
pub mod rng;
pub mod run;
pub mod scaling;
pub mod statistics;
pub mod sweep;
pub mod ties;
pub mod timing;
pub mod trec;
pub mod workspace;

pub use crate::store::files_io as files;
