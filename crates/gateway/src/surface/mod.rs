//! What clients are shown: the mode of the gateway and its own tools.

pub(crate) mod meta_tools;
pub(crate) mod mode;
