//! What is served at one moment: every structure that is made from the upstreams' lists, together.
//!
//! A call works on one snapshot from its start to its end, and a refresh replaces the whole at once (gateway surface,
//! section 4.6): an id never meets the index of another moment.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;

use super::config::Mode;
use super::execute::Target;
use super::guard::schema::compiled;
use super::http::ParamHeaders;
use super::lists::Lists;
use super::passing::Routes;
use super::upstream::Listing;
use crate::catalog::{self, Catalog, Kind, LeftOut, SelectableItem, load_listings, server_namespace};
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
        // Most modes never search, and a start must not wait for what the first search can do.
        let router = Router::deferred(Arc::new(catalog), config.clone())?;
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
    /// Servers of which only the listed resources are served, since others of theirs are hidden: an address that no
    /// list names could lead to one of those.
    pub(super) listed_only: BTreeSet<String>,
    /// The namespaces of the servers that list something.
    pub(super) namespaces: BTreeMap<String, String>,
    tool_names: Names,
    prompt_names: Names,
    lists: OnceLock<Lists>,
    routes: OnceLock<Routes>,
    /// The headers that repeat arguments, of tools that are listed as their servers define them.
    pub(super) param_headers: OnceLock<ParamHeaders>,
}

/// The names under which the items of a shelf are published where ids are no names.
#[derive(Debug, Default)]
struct Names {
    by_item: Vec<String>,
    items: BTreeMap<String, usize>,
}

impl Names {
    fn of(shelf: Option<&Shelf>) -> Self {
        let mut names = Self::default();
        let items = shelf.map(|shelf| shelf.router.catalog().items()).unwrap_or_default();
        for (at, item) in items.iter().enumerate() {
            let mut digits = HASH_DIGITS;
            let mut name = published_with(&item.id, digits);
            while names.items.contains_key(&name) && digits < MOST_DIGITS {
                digits += 1;
                name = published_with(&item.id, digits);
            }
            names.items.insert(name.clone(), at);
            names.by_item.push(name);
        }
        names
    }
}

impl Snapshot {
    /// The snapshot of these items, which the servers of `listings` list; a catalog from a file has none.
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
        let mut namespaces = BTreeMap::new();
        for item in items {
            if let Some(server) = item.server.as_ref().filter(|server| !namespaces.contains_key(*server)) {
                namespaces.insert(server.clone(), item.namespace.clone());
            }
            match item.kind {
                Kind::Resource => resources.push(item),
                Kind::Prompt => prompts.push(item),
                _ => tools.push(item),
            }
        }
        let (tools, prompts) = (Shelf::new(tools, config)?, Shelf::new(prompts, config)?);
        Ok(Self {
            generation,
            resources: Shelf::new(resources, config)?,
            tool_names: Names::of(tools.as_ref()),
            prompt_names: Names::of(prompts.as_ref()),
            prompts,
            tools,
            left_out,
            quarantined: BTreeMap::new(),
            profiles: BTreeMap::new(),
            listings,
            listed_only: BTreeSet::new(),
            namespaces,
            lists: OnceLock::new(),
            routes: OnceLock::new(),
            param_headers: OnceLock::new(),
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
            listed_only: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            tool_names: Names::default(),
            prompt_names: Names::default(),
            lists: OnceLock::new(),
            routes: OnceLock::new(),
            param_headers: OnceLock::new(),
        }
    }

    /// Takes over what the indexes of the snapshot before know, as far as that spares work.
    pub(super) fn follow(&mut self, before: &Self) {
        for (shelf, before) in [
            (&mut self.tools, &before.tools),
            (&mut self.resources, &before.resources),
            (&mut self.prompts, &before.prompts),
        ] {
            if let (Some(shelf), Some(before)) = (shelf, before) {
                shelf.router.follow(&before.router);
            }
        }
        for (name, profile) in &mut self.profiles {
            if let (Some(profile), Some(before)) = (Arc::get_mut(profile), before.profiles.get(name)) {
                profile.follow(before);
            }
        }
    }

    /// Makes the indexes that searches need, so that none has to wait for them later.
    pub(super) fn prepare_search(&self) {
        for shelf in [&self.tools, &self.resources, &self.prompts].into_iter().flatten() {
            let _ = shelf.router.index();
        }
        self.profiles.values().for_each(|snapshot| snapshot.prepare_search());
    }

    /// The lists that `mode` shows, made when they are first needed; a gateway has one mode.
    pub(super) fn lists(&self, mode: Mode) -> &Lists {
        self.lists.get_or_init(|| Lists::of(mode, self))
    }

    /// Whose the resources are.
    pub(super) fn routes(&self) -> &Routes {
        let listings = || self.listings.iter().map(|(server, listing)| (server.as_str(), &**listing));
        self.routes.get_or_init(|| Routes::new(listings()))
    }

    /// The published names of the tools, in the order of the catalog.
    pub(super) fn tool_names(&self) -> &[String] {
        &self.tool_names.by_item
    }

    /// The published names of the prompts, in the order of the catalog.
    pub(super) fn prompt_names(&self) -> &[String] {
        &self.prompt_names.by_item
    }

    /// The prompt that is published as `name`.
    pub(super) fn prompt(&self, name: &str) -> Option<Target<'_>> {
        let (at, shelf) = (*self.prompt_names.items.get(name)?, self.prompts.as_ref()?);
        Some(Target { shelf, at, item: shelf.router.catalog().items().get(at)? })
    }

    /// The resource at an address: the listed one, or what stands for an address of its server that no list names.
    pub(super) fn resource_at(&self, uri: &str) -> Option<Cow<'_, SelectableItem>> {
        let server = self.routes().server_of_uri(uri)?;
        let mut items = self.resources.iter().flat_map(|shelf| shelf.router.catalog().items());
        let has_it = |item: &&SelectableItem| {
            item.server.as_deref() == Some(server) && item.metadata.get("uri").and_then(Value::as_str) == Some(uri)
        };
        match items.find(has_it) {
            Some(item) => Some(Cow::Borrowed(item)),
            None if self.listed_only.contains(server) => None,
            None => Some(Cow::Owned(self.unlisted(server, uri))),
        }
    }

    /// What stands for an address of `server` that no list names: it is guarded as a resource that the server would
    /// list.
    pub(super) fn unlisted(&self, server: &str, address: &str) -> SelectableItem {
        let namespace = self.namespaces.get(server).cloned().unwrap_or_else(|| server_namespace(server));
        let mut item = SelectableItem::tool(&format!("resource::{namespace}:{address}"), &namespace, address, "");
        item.kind = Kind::Resource;
        item.server = Some(server.to_owned());
        item.metadata.insert("uri".to_owned(), address.into());
        item
    }

    /// The tool that is published as `name`: its safe name or its id.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<(usize, &SelectableItem)> {
        let shelf = self.tools.as_ref()?;
        shelf.item(name).or_else(|| {
            let at = *self.tool_names.items.get(name)?;
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

/// Digits of an id's hash in a name that cannot be read back.
const HASH_DIGITS: usize = 8;

/// All digits that fit beside a letter.
const MOST_DIGITS: usize = 60;

/// The canonical id in the letters that every client accepts in the name of a tool: at most 64 of `A-Z a-z 0-9 _ -`.
///
/// `namespace:name#hash8` becomes `namespace__name__hash8` where that can be read back. Any other id is cut and ends in
/// a dash and digits of its own hash, so that no two ids have one name.
#[must_use]
pub fn published_name(id: &str) -> String {
    published_with(id, HASH_DIGITS)
}

fn published_with(id: &str, digits: usize) -> String {
    if let Some(name) = faithful_name(id) {
        return name;
    }
    let letters = id.strip_prefix(PROMPT).unwrap_or(id).chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    });
    let name: String = letters.take(LONGEST_NAME - digits - 1).collect();
    let hash = crate::text::sha256_hex(id.as_bytes());
    format!("{name}-{}", hash.get(..digits).unwrap_or(&hash))
}

/// What the ids of prompts begin with. Their names are not those of tools, so it is not needed to tell them apart.
const PROMPT: &str = "prompt::";

fn faithful_name(id: &str) -> Option<String> {
    let (namespace, rest) = id.strip_prefix(PROMPT).unwrap_or(id).split_once(':')?;
    let (name, hash) = rest.rsplit_once('#')?;
    // Parts that hold or touch the separator cannot be told from it.
    let is_plain = |part: &str| {
        let letters = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        letters && !part.is_empty() && !part.contains("__") && !part.starts_with('_') && !part.ends_with('_')
    };
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let faithful = format!("{namespace}__{name}__{hash}");
    (is_plain(namespace) && is_plain(name) && is_hash && faithful.len() <= LONGEST_NAME).then_some(faithful)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_can_be_read_from_its_name_or_ends_in_its_hash() {
        let long = format!("ns:{}#00000000", "n".repeat(100));
        let cases = [
            ("fs:read_file#0badcafe", "fs__read_file__0badcafe".to_owned()),
            ("prompt::fs:greet#0badcafe", "fs__greet__0badcafe".to_owned()),
            ("fs:_read#0badcafe", format!("fs__read_0badcafe-{}", &crate::text::sha256_hex(b"fs:_read#0badcafe")[..8])),
            ("fs:a.b@1.0", format!("fs_a_b_1_0-{}", &crate::text::sha256_hex(b"fs:a.b@1.0")[..8])),
            (&long, format!("ns_{}-{}", "n".repeat(52), &crate::text::sha256_hex(long.as_bytes())[..8])),
        ];
        for (id, expected) in cases {
            assert_eq!(published_name(id), expected);
        }
    }

    proptest! {
        #[test]
        fn names_are_safe_and_no_two_ids_share_one(
            ids in prop::collection::btree_set(
                prop_oneof!["[a-c_]{1,4}:[a-c_]{1,4}(@[1_]{1,3})?(#0{8})?", "\\PC{0,300}", "a:[a_.]{60,70}#0{8}"], 1..60,
            ),
        ) {
            let names: BTreeSet<String> = ids.iter().map(|id| published_name(id)).collect();
            prop_assert_eq!(names.len(), ids.len());
            for name in names {
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'));
            }
        }

        #[test]
        fn items_with_one_name_get_longer_ones(count in 1..20_usize) {
            let items = (0..count).map(|number| SelectableItem::tool(&format!("a:t{number}@1"), "a", "t", "")).collect();
            let snapshot = Snapshot::of_items(1, items, Vec::new(), BTreeMap::new(), &RoutingConfig::default()).unwrap();
            for (at, name) in snapshot.tool_names().iter().enumerate() {
                prop_assert_eq!(snapshot.tool(name).unwrap().0, at);
            }
        }
    }
}
