//! Where an encoder is on this machine, and how a router gets it.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CacheError, Encoder, Model, VectorCache};
use crate::routing::Router;

/// The variable of the environment that names the folder.
pub const FOLDER_VARIABLE: &str = "CONTEXTWEAVER_MODEL";

/// The file beside the model that keeps the vectors of tools.
const VECTORS: &str = "vectors.bin";

/// The encoder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program has none.
    #[error("this program was built without the model; build it with `cargo build --release --features minilm`")]
    NotBuilt,
    /// The folder does not hold it, or holds something else.
    #[error("{0}; get the model with `contextweaver models fetch`")]
    Unusable(String),
}

/// The folder that [`FOLDER_VARIABLE`] names, else one where the system keeps a user's data; `None` where neither is
/// known.
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
/// [`OpenError`].
#[cfg(feature = "minilm")]
pub fn open(folder: &Path) -> Result<Arc<dyn Encoder>, OpenError> {
    match super::minilm::MiniLm::open(folder) {
        Ok(encoder) => Ok(Arc::new(encoder)),
        Err(error) => Err(OpenError::Unusable(error.to_string())),
    }
}

/// Says that this program has no encoder.
///
/// # Errors
/// [`OpenError::NotBuilt`].
#[cfg(not(feature = "minilm"))]
pub fn open(_: &Path) -> Result<Arc<dyn Encoder>, OpenError> {
    Err(OpenError::NotBuilt)
}

/// The cache of the vectors of tools beside the model in `folder`.
#[must_use]
pub fn cache(folder: &Path) -> VectorCache {
    VectorCache::open(&folder.join(VECTORS))
}

/// `router` with `encoder`, which is in `folder`, where the vectors of the tools are kept; and why they could not be
/// kept, if so, which changes no ranking.
#[must_use]
pub fn attach(router: Router, encoder: Arc<dyn Encoder>, folder: &Path) -> (Router, Option<CacheError>) {
    let mut cache = cache(folder);
    let model = Model::build(encoder, router.catalog(), &mut cache);
    let failed = cache.save().err();
    (router.with_model(model), failed)
}
