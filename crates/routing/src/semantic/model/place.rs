//! The encoder that is part of the program, and where the vectors of tools are kept on this machine.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::{CacheError, Encoder, Model, VectorCache};
use crate::Router;

/// The environment variable that names the folder of the vectors.
pub const FOLDER_VARIABLE: &str = "CONTEXTWEAVER_VECTORS";

/// Whether this program was built with the encoder.
pub const BUILT_IN: bool = cfg!(feature = "minilm");

/// The file in it.
const VECTORS: &str = "vectors.bin";

/// The encoder cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// This program was built without an encoder.
    #[error(
        "this program was built without the sentence encoder; build it with `cargo build --release --features minilm`"
    )]
    NotBuilt,
    /// What was built in is not the encoder; the text says what is wrong.
    #[error("{0}")]
    Unusable(String),
}

/// The folder that [`FOLDER_VARIABLE`] names, otherwise one in the system's folder for user data; `None` where neither
/// is known.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = |below: &str| env::home_dir().map(|home| home.join(below));
    let data = || {
        if cfg!(windows) {
            variable("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            home("Library/Application Support")
        } else {
            variable("XDG_DATA_HOME").or_else(|| home(".local/share"))
        }
    };
    variable(FOLDER_VARIABLE).or_else(|| Some(data()?.join("contextweaver")))
}

/// The encoder of this program, made ready on the first call.
///
/// # Errors
/// [`OpenError`] where it was built without one.
pub fn encoder() -> Result<Arc<dyn Encoder>, OpenError> {
    static ENCODER: OnceLock<Result<Arc<dyn Encoder>, OpenError>> = OnceLock::new();
    ENCODER.get_or_init(built_in).clone()
}

#[cfg(feature = "minilm")]
fn built_in() -> Result<Arc<dyn Encoder>, OpenError> {
    match contextweaver_encoder::MiniLm::built_in() {
        Ok(encoder) => Ok(Arc::new(encoder)),
        Err(error) => Err(OpenError::Unusable(error.to_string())),
    }
}

#[cfg(not(feature = "minilm"))]
fn built_in() -> Result<Arc<dyn Encoder>, OpenError> {
    Err(OpenError::NotBuilt)
}

/// The vectors of tools that are kept on this machine; none where no folder is known.
#[must_use]
pub fn cache() -> VectorCache {
    folder().map_or_else(VectorCache::default, |folder| VectorCache::open(&folder.join(VECTORS)))
}

/// Adds `encoder` to `router`. The vectors of the tools are kept on this machine; when they could not be saved, the error is
/// returned too, and the ranking is the same.
#[must_use]
pub fn attach(router: Router, encoder: Arc<dyn Encoder>) -> (Router, Option<CacheError>) {
    let mut cache = cache();
    let model = Model::build(encoder, router.catalog(), &mut cache);
    let failed = cache.save().err();
    (router.with_model(model), failed)
}
