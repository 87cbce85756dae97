//! Where an encoder is stored on this machine, and how a router gets it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CacheError, Encoder, Model, VectorCache};
use crate::Router;

/// The environment variable that names the model's folder.
pub const FOLDER_VARIABLE: &str = "CONTEXTWEAVER_MODEL";

/// The file beside the model with the vectors of tools.
const VECTORS: &str = "vectors.bin";

/// The encoder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// This program was built without an encoder.
    #[error("this program was built without the model; build it with `cargo build --release --features minilm`")]
    NotBuilt,
    /// The folder does not hold the model, or holds something else; the text says what is wrong.
    #[error("{0}; get the model with `contextweaver models fetch`")]
    Unusable(String),
}

/// The folder that [`FOLDER_VARIABLE`] names, otherwise one in the system's folder for user data; `None` where neither
/// is known.
#[must_use]
pub fn usual_folder() -> Option<PathBuf> {
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
    variable(FOLDER_VARIABLE).or_else(|| Some(data()?.join("contextweaver/all-MiniLM-L6-v2")))
}

/// Opens the encoder in `folder`.
///
/// # Errors
/// [`OpenError::Unusable`] when the folder does not hold the model.
#[cfg(feature = "minilm")]
pub fn open(folder: &Path) -> Result<Arc<dyn Encoder>, OpenError> {
    match contextweaver_encoder::MiniLm::open(folder) {
        Ok(encoder) => Ok(Arc::new(encoder)),
        Err(error) => Err(OpenError::Unusable(error.to_string())),
    }
}

/// Reports that this program was built without an encoder.
///
/// # Errors
/// [`OpenError::NotBuilt`], always.
#[cfg(not(feature = "minilm"))]
pub fn open(_: &Path) -> Result<Arc<dyn Encoder>, OpenError> {
    Err(OpenError::NotBuilt)
}

/// The cache of tool vectors beside the model in `folder`.
#[must_use]
pub fn cache(folder: &Path) -> VectorCache {
    VectorCache::open(&folder.join(VECTORS))
}

/// Adds `encoder`, which was opened from `folder`, to `router`. The vectors of the tools are kept in that folder; when
/// they could not be saved, the error is returned too, and the ranking is the same.
#[must_use]
pub fn attach(router: Router, encoder: Arc<dyn Encoder>, folder: &Path) -> (Router, Option<CacheError>) {
    let mut cache = cache(folder);
    let model = Model::build(encoder, router.catalog(), &mut cache);
    let failed = cache.save().err();
    (router.with_model(model), failed)
}
