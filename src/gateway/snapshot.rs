//! What is served at one moment: every structure that is made from the upstreams' lists, together.
//!
//! A call works on one snapshot from its start to its end, and a refresh replaces the whole at once (gateway surface,
//! section 4.6): an id never meets the index of another moment.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;

use super::guard::schema::compiled;
use super::upstream::Listing;
use super::wire::Raw;
use crate::catalog::{self, Catalog, Kind, LeftOut, SelectableItem, load_listings};
use crate::routing::{RouteError, Router, RoutingConfig};

/// The items of one kind, ranked by one index and named by one tree.
#[derive(Debug)]
pub struct Shelf {
    /// The router over them.
    pub router: Router,
    /// The schemas of their arguments, compiled when first needed.
    validators: Vec<OnceLock<Compiled>>,
    /// Those of their structured results.
    output_validators: Vec<OnceLock<Compiled>>,
}

/// The validator of a schema, `None` without one, or why it is not usable.
type Compiled = Result<Option<Validator>, String>;

impl Shelf {
    fn new(items: Vec<SelectableItem>, config: &RoutingConfig) -> Result<Option<Self>, RouteError> {
        let Ok(catalog) = Catalog::new(items) else { return Ok(None) };
        let slots = || std::iter::repeat_with(OnceLock::new).take(catalog.len()).collect();
        let (validators, output_validators) = (slots(), slots());
        let router = Router::build(Arc::new(catalog), config.clone())?;
        Ok(Some(Self { router, validators, output_validators }))
    }

    /// The item called `id`.
    #[must_use]
    pub fn item(&self, id: &str) -> Option<(usize, &SelectableItem)> {
        let catalog = self.router.catalog();
        catalog.position(id).and_then(|at| Some((at, catalog.items().get(at)?)))
    }

    /// The validator of the arguments of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema is none.
    pub fn validator(&self, at: usize) -> Result<Option<&Validator>, &str> {
        let item = self.router.catalog().items().get(at);
        once(self.validators.get(at), item.and_then(|item| item.args_schema.as_deref()))
    }

    /// The validator of the structured results of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema is none.
    pub fn output_validator(&self, at: usize) -> Result<Option<&Validator>, &str> {
        let item = self.router.catalog().items().get(at);
        once(self.output_validators.get(at), item.and_then(|item| item.output_schema.as_deref()))
    }
}

/// The validator in `slot`, made when it is first asked for.
fn once<'s>(slot: Option<&'s OnceLock<Compiled>>, schema: Option<&Value>) -> Result<Option<&'s Validator>, &'s str> {
    let Some(slot) = slot else { return Ok(None) };
    slot.get_or_init(|| schema.map(compiled).transpose()).as_ref().map(Option::as_ref).map_err(String::as_str)
}

/// What is served at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts the refreshes.
    pub generation: u64,
    /// The tools.
    pub tools: Option<Shelf>,
    /// The resources.
    pub resources: Option<Shelf>,
    /// The prompts.
    pub prompts: Option<Shelf>,
    /// What was listed and is not usable.
    pub left_out: Vec<LeftOut>,
    /// Tools whose definitions wait for approval, by id, with the reason.
    pub quarantined: BTreeMap<String, String>,
    /// What callers are shown that have a visibility profile, by its name.
    pub(super) profiles: BTreeMap<String, Arc<Snapshot>>,
    /// What each upstream listed.
    pub listings: BTreeMap<String, Arc<Listing>>,
    /// The tools by the names under which they are published where ids are no names.
    published: BTreeMap<String, usize>,
    /// The answer to `tools/list` of the modes that list them all.
    pub(super) tool_list: OnceLock<Raw>,
}

impl Snapshot {
    /// The snapshot of these lists; the keys are the servers' names.
    ///
    /// # Errors
    /// The router cannot be built.
    pub fn new(
        generation: u64,
        listings: BTreeMap<String, Arc<Listing>>,
        config: &RoutingConfig,
    ) -> Result<Self, RouteError> {
        let (items, left_out) = items_of(&listings);
        Self::of_items(generation, items, left_out, listings, config)
    }

    /// The snapshot of a catalog that has no live servers.
    ///
    /// # Errors
    /// The router cannot be built.
    pub fn of_items(
        generation: u64,
        items: Vec<SelectableItem>,
        left_out: Vec<LeftOut>,
        listings: BTreeMap<String, Arc<Listing>>,
        config: &RoutingConfig,
    ) -> Result<Self, RouteError> {
        let (mut tools, mut resources, mut prompts) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match item.kind {
                Kind::Resource => resources.push(item),
                Kind::Prompt => prompts.push(item),
                _ => tools.push(item),
            }
        }
        let tools = Shelf::new(tools, config)?;
        let items = tools.as_ref().map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
        let published = items.iter().enumerate().map(|(at, item)| (published_name(&item.id), at)).collect();
        Ok(Self {
            generation,
            resources: Shelf::new(resources, config)?,
            prompts: Shelf::new(prompts, config)?,
            tools,
            left_out,
            quarantined: BTreeMap::new(),
            profiles: BTreeMap::new(),
            listings,
            published,
            tool_list: OnceLock::new(),
        })
    }

    /// A snapshot that serves nothing.
    #[must_use]
    pub(super) fn nothing(generation: u64) -> Self {
        Self {
            generation,
            tools: None,
            resources: None,
            prompts: None,
            left_out: Vec::new(),
            quarantined: BTreeMap::new(),
            profiles: BTreeMap::new(),
            listings: BTreeMap::new(),
            published: BTreeMap::new(),
            tool_list: OnceLock::new(),
        }
    }

    /// The tool that is published as `name`: its safe name or its id.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<(usize, &SelectableItem)> {
        let shelf = self.tools.as_ref()?;
        shelf.item(name).or_else(|| {
            let at = *self.published.get(name)?;
            Some((at, shelf.router.catalog().items().get(at)?))
        })
    }
}

/// The items that these lists define, and what in them is not usable; the keys are the servers' names.
pub(super) fn items_of(listings: &BTreeMap<String, Arc<Listing>>) -> (Vec<SelectableItem>, Vec<LeftOut>) {
    let lists: Vec<catalog::Listing<'_>> = listings
        .iter()
        .map(|(server, listing)| catalog::Listing {
            server,
            tools: &listing.tools,
            resources: &listing.resources,
            prompts: &listing.prompts,
        })
        .collect();
    load_listings(&lists)
}

/// Characters of a tool's name that every client accepts, at most.
const LONGEST_NAME: usize = 64;

/// The canonical id in the letters that every client accepts in the name of a tool: at most 64 of `A-Z a-z 0-9 _ -`.
/// Where that needs a cut or a replacement, eight digits of the id's hash keep names apart.
#[must_use]
pub fn published_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len() + 4);
    let mut faithful = true;
    for c in id.chars() {
        match c {
            ':' | '#' | '@' => name.push_str("__"),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => name.push(c),
            _ => {
                faithful = false;
                name.push('_');
            }
        }
    }
    if faithful && name.len() <= LONGEST_NAME {
        return name;
    }
    let hash = crate::event::ContentHash::of(id.as_bytes());
    let digits: String = hash.as_str().chars().rev().take(8).collect();
    // Every character is one byte.
    name.truncate(LONGEST_NAME - digits.len() - 1);
    format!("{name}-{digits}")
}

/// The counts of a snapshot, for people and logs.
#[derive(Debug, Clone, Serialize)]
pub struct Counts {
    /// Tools served.
    pub tools: usize,
    /// Resources served.
    pub resources: usize,
    /// Prompts served.
    pub prompts: usize,
    /// Definitions that are not usable.
    pub left_out: usize,
}

impl Snapshot {
    /// How much is served.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let count = |shelf: &Option<Shelf>| shelf.as_ref().map_or(0, |shelf| shelf.router.catalog().len());
        Counts {
            tools: count(&self.tools),
            resources: count(&self.resources),
            prompts: count(&self.prompts),
            left_out: self.left_out.len(),
        }
    }
}
