//! What stands between a call and an upstream, and between a result and a model.
//!
//! The file `pipeline.rs` has the order of the guards and who uses which. What cannot be decided is refused. Without
//! configuration only the checks of arguments and results and sanitising act.

mod address;
pub(crate) mod approval;
mod argument_schema;
mod arguments;
pub mod cache;
pub(crate) mod call;
pub(crate) mod canonical;
pub mod config;
pub(crate) mod desk;
pub(crate) mod glob;
pub mod limits;
mod namespaces;
mod pin;
pub mod pins;
pub(crate) mod pipeline;
pub mod policy;
pub mod profiles;
mod provenance;
pub mod quota;
pub mod redis_state;
mod repairs;
mod result_schema;
mod sanitize;
pub mod schema;
mod shared;
mod shown;
pub mod sign;
pub mod sqlite_state;
pub mod state;
mod tolerant;
pub(crate) mod usage;
mod visibility;

pub use self::glob::Glob;
pub use self::pipeline::GuardError;
