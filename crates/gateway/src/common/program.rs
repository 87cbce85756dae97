//! The program that the gateway is a part of, as it introduces itself.

/// The name of the program.
pub(crate) const NAME: &str = "contextweaver";

/// The version of the program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
