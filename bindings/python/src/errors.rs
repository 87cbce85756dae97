//! The exceptions, and how an error of a crate becomes one: with the text that the command prints.

use std::error::Error;

use contextweaver_core::text::causes;
use pyo3::exceptions::PyException;
use pyo3::{PyErr, create_exception};

create_exception!(contextweaver_rs, ContextweaverError, PyException, "Base class of all errors of contextweaver.");
create_exception!(
    contextweaver_rs,
    CatalogError,
    ContextweaverError,
    "A catalog, or a definition in it, cannot be used."
);
create_exception!(contextweaver_rs, ConfigError, ContextweaverError, "A configuration cannot be used.");
create_exception!(
    contextweaver_rs,
    RouteError,
    ContextweaverError,
    "A router cannot be built, or cannot serve a request."
);
create_exception!(contextweaver_rs, ContextError, ContextweaverError, "A prompt, an event or a store failed.");
create_exception!(
    contextweaver_rs,
    SessionError,
    ContextweaverError,
    "A session or conversation cannot be read or written."
);
create_exception!(contextweaver_rs, ViewError, ContextweaverError, "A part of an artifact cannot be shown.");
create_exception!(
    contextweaver_rs,
    EvaluationError,
    ContextweaverError,
    "Queries cannot be read, or an engine failed."
);
create_exception!(contextweaver_rs, InputError, ContextweaverError, "A value is not what the call takes.");

/// An error and its causes on one line each, as the command prints them.
pub(crate) fn chain(error: &dyn Error) -> String {
    causes(error).join("\n  caused by: ")
}

/// Makes exceptions of one class.
macro_rules! raise {
    ($name:ident, $class:ident) => {
        #[doc = concat!("The exception `", stringify!($class), "` with the text of an error.")]
        pub(crate) fn $name(error: impl Error) -> PyErr {
            $class::new_err(chain(&error))
        }
    };
}

raise!(catalog, CatalogError);
raise!(config, ConfigError);
raise!(context, ContextError);
raise!(session, SessionError);
raise!(view, ViewError);
#[cfg(feature = "evaluate")]
raise!(evaluation, EvaluationError);
raise!(input, InputError);

/// What a memory made of sessions refuses: a rule that is out of its range, or a file.
pub(crate) fn memory(error: contextweaver_context::memory::MemoryFileError) -> PyErr {
    use contextweaver_context::memory::MemoryFileError as Cause;
    match error {
        Cause::Rule { .. } => input(error),
        _ => context(error),
    }
}

/// What a router refuses, by what it is about: a catalog, a configuration, or the request.
pub(crate) fn route(error: contextweaver_routing::RouteError) -> PyErr {
    use contextweaver_routing::RouteError as Cause;
    match error {
        Cause::Catalog(error) => catalog(error),
        Cause::Config(_) => config(error),
        _ => RouteError::new_err(chain(&error)),
    }
}

/// The exception of `make` for an error that concerns the file at `place`.
pub(crate) fn at(place: &str, error: &dyn Error, make: impl FnOnce(String) -> PyErr) -> PyErr {
    let text = chain(error);
    make(if text.contains(place) { text } else { format!("{place}\n  caused by: {text}") })
}
