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
use contextweaver_core::catalog::{Catalog, LoadOptions, SelectableItem, Strictness, load};
use contextweaver_core::files::ReadError;
use contextweaver_routing::{CARD_CAP, CardDeck, RoutingConfig, nearest};

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

/// The id of a tool that an option names: by its id, or by its name, with its namespace or server before a colon or without, if
/// only one tool has it.
///
/// # Errors
/// No tool is called so, or several are; names the option, and the ids that come next.
pub(super) fn id_of(catalog: &Catalog, option: &str, name: &str) -> Result<String> {
    if catalog.get(name).is_some() {
        return Ok(name.to_owned());
    }
    let is_called = |item: &SelectableItem| {
        let is_of = |of: &str| item.namespace == of || item.server.as_deref() == Some(of);
        item.name == name || name.split_once(':').is_some_and(|(of, tool)| tool == item.name && is_of(of))
    };
    let found: Vec<&str> = catalog.items().iter().filter(|item| is_called(item)).map(|item| item.id.as_str()).collect();
    match found.as_slice() {
        [id] => Ok((*id).to_owned()),
        [] => {
            let known = catalog.items().iter().flat_map(|item| [item.id.as_str(), item.name.as_str()]).collect();
            let meant = nearest(name, &known).map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
            bail!("{option}: no tool is called `{name}`{meant}");
        }
        several => bail!("{option}: {} tools are called `{name}`; write {}", several.len(), several.join(" or ")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_by_its_id_or_by_a_name_that_only_one_has() {
        let text = r#"{"tools": [{"name": "send", "server": "mail"}, {"name": "send", "server": "chat"}, {"name": "read", "server": "mail"}]}"#;
        let catalog = Catalog::from_json(text).unwrap();
        let id = |name: &str| catalog.items().iter().find(|item| item.id.starts_with(name)).unwrap().id.clone();
        for (name, expected) in [
            (id("mail:read"), Ok("mail:read")),
            ("read".to_owned(), Ok("mail:read")),
            ("chat:send".to_owned(), Ok("chat:send")),
            ("send".to_owned(), Err("--pin: 2 tools are called `send`; write chat:send#")),
            ("raed".to_owned(), Err("--pin: no tool is called `raed`; did you mean `read`?")),
            ("zzz".to_owned(), Err("--pin: no tool is called `zzz`")),
        ] {
            match (id_of(&catalog, "--pin", &name), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, id(expected)),
                (Err(said), Err(expected)) => assert!(said.to_string().starts_with(expected), "{said}"),
                (found, expected) => panic!("{name}: {found:?}, not {expected:?}"),
            }
        }
    }
}
