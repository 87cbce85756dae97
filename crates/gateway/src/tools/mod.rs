//! The gateway's own tools: finding tools, calling them, and looking into results.

pub(crate) mod browse;
pub(crate) mod calls;
pub(crate) mod execute;
pub(crate) mod own_tools;
pub(crate) mod questions;
pub(crate) mod read;
pub(crate) mod view;
