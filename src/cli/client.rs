//! Where every HTTP client of the command begins.
//!
//! reqwest is built without a provider of cryptography, and panics where a client is made before one is chosen. A client that
//! begins here cannot.

use reqwest::{Client, ClientBuilder};

/// A client to be set up, with cryptography chosen.
pub(super) fn builder() -> ClientBuilder {
    // Another part of the program may have chosen one already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Another crate turns on HTTP/2, which nobody here has asked for or tried.
    Client::builder().http1_only()
}
