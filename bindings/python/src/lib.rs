//! The module `contextweaver_rs._native`: the crates of this project for Python.
//!
//! Every class is a thin shell around one type of a crate, and every method makes one call with the interpreter lock
//! released. What Python holds as data goes in and comes out as JSON, by Python's own module `json`: the crates then read
//! the very text that a file would hold, and the command prints. Nothing is decided here.
//!
//! The types for checkers are in `packaging/python/contextweaver_rs/_native.pyi`.

#![allow(clippy::needless_pass_by_value, reason = "arguments are taken out of the objects of Python")]

mod catalog;
mod context;
mod errors;
#[cfg(feature = "evaluate")]
mod evaluation;
mod firewall;
mod json;
mod memory;
mod outside;
mod routing;
mod session;
mod threads;

use pyo3::prelude::*;

/// The classes and functions of contextweaver_rs.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::catalog::{Catalog, Tool};
    #[pymodule_export]
    use crate::context::{ContextManager, Handoff, Pack};
    #[pymodule_export]
    use crate::errors::{
        CatalogError, ConfigError, ContextError, ContextweaverError, EvaluationError, InputError, RouteError,
        SessionError, ViewError,
    };
    #[cfg(feature = "evaluate")]
    #[pymodule_export]
    use crate::evaluation::{Evaluation, evaluate};
    #[pymodule_export]
    use crate::firewall::{Artifact, Envelope, Firewall, View, compact, count_tokens};
    #[pymodule_export]
    use crate::memory::{Memory, consolidate};
    #[pymodule_export]
    use crate::routing::{Choice, Route, Router};
    #[pymodule_export]
    use crate::session::Session;

    // What pickles name.
    #[pymodule_export]
    use crate::catalog::_catalog;
    #[pymodule_export]
    use crate::context::{_handoff, _pack};
    #[cfg(feature = "evaluate")]
    #[pymodule_export]
    use crate::evaluation::_evaluation;
    #[pymodule_export]
    use crate::firewall::{_artifact, _envelope, _view};
    #[pymodule_export]
    use crate::memory::_memory;
    #[pymodule_export]
    use crate::routing::{_engine_seconds, _route, _router};
    #[pymodule_export]
    use crate::session::_session;

    // What the end of a process calls.
    #[pymodule_export]
    use crate::outside::_end_programs;

    /// Has the programs of hooks ended with the process, which ends no other by itself.
    #[pymodule_init]
    fn init(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        crate::outside::end_with_process(module)
    }

    /// The version of this module, and of the command in the same wheel.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name in Python")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
