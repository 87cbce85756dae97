//! The arguments that several commands share: a catalog, and a configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::files::Files;
use super::note;
use contextweaver_bench::eval::collection::{Collection, YOURS};
use contextweaver_bench::eval::record::Origin;
use contextweaver_core::catalog::{Catalog, LoadOptions, Strictness, load};
use contextweaver_core::files::ReadError;
use contextweaver_routing::{CARD_CAP, CardDeck, RoutingConfig};

/// Which tools
#[derive(Debug, Args)]
pub(super) struct CatalogSource {
    /// Catalog file, or a folder with one file per server; may be repeated
    #[arg(long, value_name = "PATH", required = true)]
    pub(super) catalog: Vec<PathBuf>,
    /// Leave out what is malformed, report it, and continue with the rest
    #[arg(long)]
    pub(super) lenient: bool,
}

impl CatalogSource {
    /// Loads the catalog; what was left out is named on standard error.
    pub(super) fn load(&self) -> Result<Arc<Catalog>> {
        let strictness = if self.lenient { Strictness::Lenient } else { Strictness::Strict };
        let loaded = load(&self.catalog, LoadOptions { strictness })?;
        for left_out in &loaded.left_out {
            note(&format!("left out: {}: {}", left_out.place, left_out.reason));
        }
        self.with_cards(Arc::new(loaded.catalog))
    }

    /// Refuses, or leaves out, the items that can have no card: one of them would fail every query that finds it.
    fn with_cards(&self, catalog: Arc<Catalog>) -> Result<Arc<Catalog>> {
        let oversized = CardDeck::new(Arc::clone(&catalog)).oversized();
        let Some(&first) = oversized.first() else { return Ok(catalog) };
        if !self.lenient {
            let name = &catalog.items()[first as usize].name;
            bail!(
                "`{name}`: its id and tags alone exceed the {CARD_CAP} tokens of a card; shorten its name, or leave it out \
                 with --lenient"
            );
        }
        let mut items = Vec::new();
        for (number, item) in (0..).zip(catalog.items()) {
            if oversized.binary_search(&number).is_ok() {
                note(&format!("left out: {}: its id and tags alone exceed the {CARD_CAP} tokens of a card", item.id));
            } else {
                items.push(item.clone());
            }
        }
        Ok(Arc::new(Catalog::new(items)?))
    }
}

impl CatalogSource {
    /// The files of a command that reads this catalog.
    pub(super) fn files(&self) -> Files {
        Files::default().read("--catalog", &self.catalog)
    }

    /// The catalog with the queries of a file, for measuring.
    pub(super) fn collection(&self, queries: &Path) -> Result<Collection> {
        Ok(Collection::of_catalog(YOURS, Origin::Public, self.load()?, queries)?)
    }
}

/// Reads a configuration file (TOML); `None` gives the default.
pub(super) fn read_config(path: Option<&Path>) -> Result<RoutingConfig> {
    let Some(path) = path else { return Ok(RoutingConfig::default()) };
    let text = fs::read_to_string(path).map_err(ReadError::at(path))?;
    let config: RoutingConfig = toml::from_str(&text).with_context(|| path.display().to_string())?;
    config.validate().with_context(|| path.display().to_string())?;
    Ok(config)
}
