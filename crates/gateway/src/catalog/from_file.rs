//! The catalog of a gateway without servers: what a file lists, and what answers in place of the servers.

use std::collections::BTreeMap;

use super::answers::{Answered, AnswersError, Served};
use super::build::Contents;
use crate::config::file::CatalogFile;
use crate::upstream::config::UpstreamConfig;
use contextweaver_core::catalog::{CatalogError, LoadOptions, SelectableItem, Strictness, is_template, load};

/// What is in the files of a catalog without servers.
pub(crate) struct FileCatalog {
    /// What is served.
    pub(crate) contents: Contents,
    /// What answers, by the server of the items; empty without a file of answers.
    pub(crate) upstreams: BTreeMap<Option<String>, UpstreamConfig>,
    /// How much is answered; `None` without a file of answers.
    pub(crate) answered: Option<Answered>,
}

/// The files of a catalog cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileCatalogError {
    /// The catalog.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Its answers.
    // No cause: the message says all of it.
    #[error("answers: {0}")]
    Answers(AnswersError),
}

impl CatalogFile {
    /// Reads the files as a gateway does that starts, and keeps nothing.
    ///
    /// # Errors
    /// [`FileCatalogError`].
    pub fn check(&self) -> Result<(), FileCatalogError> {
        FileCatalog::load(self).map(drop)
    }
}

impl FileCatalog {
    /// Reads the files.
    ///
    /// # Errors
    /// [`FileCatalogError`].
    pub(crate) fn load(file: &CatalogFile) -> Result<Self, FileCatalogError> {
        let loaded = load(&[&file.path], LoadOptions { strictness: Strictness::Lenient })?;
        // A template has no address of its own under which a file could answer.
        let items: Vec<SelectableItem> =
            loaded.catalog.items().iter().filter(|item| !is_template(item)).cloned().collect();
        let served = file.answers.as_ref().map(|path| Served::load(path, &items)).transpose();
        let served = served.map_err(FileCatalogError::Answers)?;
        let (upstreams, answered) =
            served.map_or((BTreeMap::new(), None), |Served { upstreams, answered }| (upstreams, Some(answered)));
        let contents = Contents { items, left_out: loaded.left_out, listings: BTreeMap::new() };
        Ok(Self { contents, upstreams, answered })
    }
}
