//! What every part of the gateway uses: errors, the budget and the turns of work, text sanitising, name patterns, configuration
//! text, numbers, locks, connections to a store that is shared.

pub(crate) mod budget;
pub(crate) mod error;
pub(crate) mod glob;
pub(crate) mod masks;
pub(crate) mod numbers;
pub(crate) mod program;
pub(crate) mod redis;
pub mod sanitize;
pub(crate) mod secret;
pub(crate) mod settings;
pub(crate) mod sync;
pub(crate) mod work;
pub(crate) mod yaml;
