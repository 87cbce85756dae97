//! What is served at one moment: everything that is made from the upstreams' lists, together.
//!
//! A view never changes. A call works on one view from its start to its end, and a refresh replaces the whole view at
//! once, so an id is never looked up in an index of another moment.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::names::{Names, published_name};
use super::pages::{Entries, Lists};
use super::routes::Routes;
use super::shelf::{Shelf, Target};
use crate::common::error::{Code, GatewayError};
use crate::protocol::headers::{ParamHeaders, param_headers};
use crate::protocol::listing::{Listing, too_large};
use crate::surface::meta_tools::MetaTool;
use crate::surface::mode::Mode;
use contextweaver_core::catalog::{self, Kind, LeftOut, SelectableItem, inspect, load_listings, server_namespace};
use contextweaver_core::text::{Estimator, sha256_hex};
use contextweaver_routing::{RouteError, RoutingConfig};

/// A definition that waits for approval, and the one before it where this process has seen that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedDefinition {
    /// The name of the server.
    pub(crate) server: String,
    /// The name of the tool on its server.
    pub(crate) name: String,
    /// The definition that was served before.
    pub(crate) old: Option<Arc<str>>,
    /// The definition that waits.
    pub(crate) new: Arc<str>,
}

/// What is served at one moment: the items with their indexes, names, lists and routes.
#[derive(Debug)]
pub struct CatalogView {
    /// The number of the view: each refresh makes the next.
    pub generation: u64,
    /// The tools that are served; `None` when there are none.
    pub tools: Option<Shelf>,
    /// The resources that are served; `None` when there are none.
    pub resources: Option<Shelf>,
    /// The prompts that are served; `None` when there are none.
    pub prompts: Option<Shelf>,
    /// The listed definitions that cannot be used, with the reasons.
    pub left_out: Vec<LeftOut>,
    /// Tools whose definitions wait for approval, by id, with the reason.
    pub quarantined: BTreeMap<String, String>,
    /// What changed of them, by id.
    pub(crate) changed: BTreeMap<String, ChangedDefinition>,
    /// The views of callers with a visibility profile, by the name of the profile.
    pub(crate) profiles: BTreeMap<String, Arc<CatalogView>>,
    /// The lists of each upstream, by the server name of its items.
    pub listings: BTreeMap<String, Arc<Listing>>,
    /// Servers of which only the listed resources are served, since others of theirs are hidden: an address that no
    /// list names could lead to one of those.
    pub(crate) listed_only: BTreeSet<String>,
    /// The namespaces of the servers that list something.
    pub(crate) namespaces: BTreeMap<String, String>,
    /// The namespaces of the configured servers that have not listed anything yet, since they do not answer.
    pub(crate) absent: BTreeSet<String>,
    tool_names: Names,
    prompt_names: Names,
    lists: OnceLock<Lists>,
    routes: OnceLock<Routes>,
    /// The headers that repeat arguments, made when first needed.
    param_headers: OnceLock<ParamHeaders>,
    /// Tokens of all definitions, and of those of mode `gateway`, counted when first needed.
    definition_tokens: OnceLock<(u64, u64)>,
    /// What stands for all definitions, made when first needed.
    mark: OnceLock<String>,
}

impl CatalogView {
    /// The view of these items, which the servers of `listings` list; a catalog from a file has no listings.
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
            resources: Shelf::new(resources, config)?,
            tool_names: Names::of(tools.as_ref()),
            prompt_names: Names::of(prompts.as_ref()),
            prompts,
            tools,
            left_out,
            listings,
            namespaces,
            ..Self::nothing(generation)
        })
    }

    /// A view that serves nothing.
    #[must_use]
    pub(crate) fn nothing(generation: u64) -> Self {
        Self {
            generation,
            tools: None,
            resources: None,
            prompts: None,
            left_out: Vec::new(),
            quarantined: BTreeMap::new(),
            changed: BTreeMap::new(),
            profiles: BTreeMap::new(),
            listings: BTreeMap::new(),
            listed_only: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            absent: BTreeSet::new(),
            tool_names: Names::default(),
            prompt_names: Names::default(),
            lists: OnceLock::new(),
            routes: OnceLock::new(),
            param_headers: OnceLock::new(),
            definition_tokens: OnceLock::new(),
            mark: OnceLock::new(),
        }
    }

    /// Whether an upstream lists resources or templates, or a catalog from a file has resources.
    pub(crate) fn has_resources(&self) -> bool {
        let lists = |listing: &Arc<Listing>| !listing.resources.is_empty() || !listing.templates.is_empty();
        self.resources.is_some() || self.listings.values().any(lists)
    }

    /// Whether an upstream lists prompts, or a catalog from a file has some.
    pub(crate) fn has_prompts(&self) -> bool {
        self.prompts.is_some() || self.listings.values().any(|listing| !listing.prompts.is_empty())
    }

    /// A view that serves nothing yet of what these servers list.
    pub(super) fn opening(listings: BTreeMap<String, Arc<Listing>>) -> Self {
        Self { listings, ..Self::nothing(0) }
    }

    /// Takes over parts of the indexes of the view before, where that saves work.
    pub(crate) fn follow(&mut self, before: &Self) {
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

    /// Builds the indexes that searches need, so that no search has to wait for them; with `encoder`, one more for tools.
    /// `teach` is called when more of them are there.
    pub(crate) fn prepare_search(&self, encoder: bool, teach: &dyn Fn(&Self)) {
        for shelf in [&self.tools, &self.resources, &self.prompts].into_iter().flatten() {
            let _ = shelf.router.index();
        }
        self.profiles.values().for_each(|view| view.prepare_search(false, &|_| {}));
        teach(self);
        if encoder {
            let profiles = self.profiles.values().filter_map(|view| view.tools.as_ref());
            self.tools.iter().chain(profiles).for_each(Shelf::read_by_encoder);
            teach(self);
        }
    }

    /// What stands for all definitions: the same for all gateways that serve the same, another where one is another.
    pub(crate) fn mark(&self) -> &str {
        self.mark.get_or_init(|| {
            let shelves = [&self.tools, &self.resources, &self.prompts].into_iter().flatten();
            let items = shelves.flat_map(|shelf| shelf.router.catalog().items());
            let texts = items.map(|item| format!("{} {}", item.id, item.raw.as_ref().map_or("", |raw| raw.get())));
            let digests: Vec<String> = texts.map(|text| sha256_hex(text.as_bytes())).collect();
            sha256_hex(digests.concat().as_bytes()).chars().take(32).collect()
        })
    }

    /// The lists that `mode` shows, made when they are first needed; a gateway has one mode.
    pub(crate) fn lists(&self, mode: Mode) -> &Lists {
        self.lists.get_or_init(|| {
            Lists::of(
                mode,
                &Entries {
                    generation: self.generation,
                    tools: self.tools.as_ref(),
                    tool_names: &self.tool_names.by_item,
                    prompts: self.prompts.as_ref(),
                    prompt_names: &self.prompt_names.by_item,
                    has_resources: self.resources.is_some(),
                    routes: self.routes(),
                },
            )
        })
    }

    /// The headers that repeat arguments of tools that are listed as their servers define them, by the name under which
    /// a tool is called.
    pub(crate) fn param_headers(&self) -> &ParamHeaders {
        self.param_headers.get_or_init(|| {
            let items = self.tools.iter().flat_map(|shelf| shelf.router.catalog().items());
            let with_headers = items.filter_map(|item| Some((item, param_headers(item.raw.as_ref()?.get()))));
            let named = with_headers.filter(|(_, headers)| !headers.is_empty()).flat_map(|(item, headers)| {
                // The tools of a single server keep their names.
                [(item.name.clone(), headers.clone()), (published_name(&item.id), headers)]
            });
            named.collect()
        })
    }

    /// Tokens of the definitions of all tools as their servers list them, and of those that mode `gateway` lists in their
    /// place. Milliseconds for a hundred tools, when it is first asked for.
    pub(crate) fn definition_tokens(&self) -> (u64, u64) {
        *self.definition_tokens.get_or_init(|| {
            let tools = self.tools.as_ref();
            let direct = tools.map_or(0, |shelf| inspect(shelf.router.catalog(), Estimator::Cl100kBase).tokens as u64);
            let offered = MetaTool::offered(Mode::Gateway, self.resources.is_some(), self.prompts.is_some());
            let count =
                |tool: MetaTool| Estimator::Cl100kBase.count(&format!("{}\n", tool.definition(Mode::Gateway))) as u64;
            (direct, offered.map(count).sum())
        })
    }

    /// The server that each resource address belongs to.
    pub(crate) fn routes(&self) -> &Routes {
        self.routes.get_or_init(|| match self.listings.is_empty() {
            true => Routes::of_items(self.resources.iter().flat_map(|shelf| shelf.router.catalog().items())),
            false => Routes::new(self.listings.iter().map(|(server, listing)| (server.as_str(), &**listing))),
        })
    }

    /// The failure of a call of `name`, if that is the id or the published name of something of a server that does not answer.
    ///
    /// # Errors
    /// [`Code::UpstreamUnavailable`].
    pub(crate) fn refuse_absent(&self, name: &str) -> Result<(), GatewayError> {
        let id = ["resource::", "prompt::"].iter().find_map(|kind| name.strip_prefix(kind)).unwrap_or(name);
        let namespace = id.split_once(':').or_else(|| id.split_once("__")).map(|(namespace, _)| namespace);
        self.refuse_absent_namespace(namespace, name)
    }

    /// As [`Self::refuse_absent`], for a path of the catalog.
    ///
    /// # Errors
    /// [`Code::UpstreamUnavailable`].
    pub(crate) fn refuse_absent_path(&self, path: &str) -> Result<(), GatewayError> {
        self.refuse_absent_namespace(path.trim_start_matches('/').split('/').next(), path)
    }

    fn refuse_absent_namespace(&self, namespace: Option<&str>, at: &str) -> Result<(), GatewayError> {
        match namespace.filter(|namespace| self.absent.contains(*namespace)) {
            Some(namespace) => {
                let reason = format!("the server `{namespace}` does not answer now; try again later, or tell the user");
                Err(GatewayError::new(Code::UpstreamUnavailable, reason).at(at))
            }
            None => Ok(()),
        }
    }

    /// The prompt that is published as `name`.
    pub(crate) fn prompt(&self, name: &str) -> Option<Target<'_>> {
        let (at, shelf) = (*self.prompt_names.items.get(name)?, self.prompts.as_ref()?);
        Some(Target { shelf, at, item: shelf.router.catalog().items().get(at)? })
    }

    /// The resource of this id or address.
    pub(crate) fn resource(&self, id: &str) -> Option<Cow<'_, SelectableItem>> {
        let listed = self.resources.as_ref().and_then(|shelf| shelf.item(id)).map(|(_, item)| Cow::Borrowed(item));
        listed.or_else(|| self.resource_at(id))
    }

    /// The resource at an address: the listed one, or an item for an address of its server that no list names.
    pub(crate) fn resource_at(&self, uri: &str) -> Option<Cow<'_, SelectableItem>> {
        let server = self.routes().server_of_uri(uri)?;
        let mut items = self.resources.iter().flat_map(|shelf| shelf.router.catalog().items());
        let has_it = |item: &&SelectableItem| {
            item.server.as_deref().unwrap_or_default() == server
                && item.metadata.get("uri").and_then(Value::as_str) == Some(uri)
        };
        match items.find(has_it) {
            Some(item) => Some(Cow::Borrowed(item)),
            None if self.listed_only.contains(server) => None,
            None => Some(Cow::Owned(self.unlisted(server, uri))),
        }
    }

    /// The item for an address of `server` that no list names; it is guarded like a listed resource of that server.
    pub(crate) fn unlisted(&self, server: &str, address: &str) -> SelectableItem {
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

/// How many items a view serves, for people and logs.
#[derive(Debug, Clone, Serialize)]
pub struct Counts {
    /// Tools that are served.
    pub tools: usize,
    /// Resources that are served.
    pub resources: usize,
    /// Prompts that are served.
    pub prompts: usize,
    /// Listed definitions that cannot be used.
    pub left_out: usize,
}

impl CatalogView {
    /// How many items are served.
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

/// The items that these lists define, and the definitions that cannot be used; the keys are the names of the servers.
pub(crate) fn items_of(listings: &BTreeMap<String, Arc<Listing>>) -> (Vec<SelectableItem>, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    let mut read = Vec::with_capacity(listings.len());
    for (server, listing) in listings {
        let lists = [("tools", &listing.tools), ("resources", &listing.resources), ("prompts", &listing.prompts)];
        read.push((server, lists.map(|(form, list)| bounded(&format!("{server}: {form}"), list, &mut left_out))));
    }
    let lists =
        read.iter().map(|(server, [tools, resources, prompts])| catalog::Listing { server, tools, resources, prompts });
    let (items, unusable) = load_listings(&lists.collect::<Vec<_>>());
    left_out.extend(unusable);
    (items, left_out)
}

/// The definitions of a list at `place` that are read: what is too large for that is left out.
fn bounded<'l>(place: &str, list: &'l [Box<RawValue>], left_out: &mut Vec<LeftOut>) -> Cow<'l, [Box<RawValue>]> {
    let found = list.iter().enumerate().filter_map(|(index, raw)| Some((index, too_large(raw)?)));
    let found: Vec<_> = found.map(|(index, reason)| LeftOut { place: format!("{place}[{index}]"), reason }).collect();
    if found.is_empty() {
        return Cow::Borrowed(list);
    }
    left_out.extend(found);
    Cow::Owned(list.iter().filter(|raw| too_large(raw).is_none()).cloned().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_definition_that_is_too_large_is_left_out_and_the_others_are_served() {
        let tool = |name: &str, more: String| -> Box<RawValue> {
            RawValue::from_string(format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"x":{more}}}"#))
                .unwrap()
        };
        let tools = vec![
            tool("a", "1".to_owned()),
            tool("b", format!("[{}0]", "0,".repeat(60_000))),
            tool("c", format!("\"{}\"", "x".repeat(1 << 20))),
            tool("d", "2".to_owned()),
        ];
        let listing = Listing { tools, ..Listing::default() };
        let (items, left_out) = items_of(&BTreeMap::from([("s".to_owned(), Arc::new(listing))]));
        assert_eq!(items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["a", "d"]);
        let shown: Vec<String> = left_out.iter().map(|left| format!("{}: {}", left.place, left.reason)).collect();
        assert!(shown[0].starts_with("s: tools[1]: it has more than 50000 values"), "{shown:?}");
        assert!(shown[1].starts_with("s: tools[2]: it has 10"), "{shown:?}");
    }

    proptest! {
        #[test]
        fn items_with_one_name_get_longer_ones(count in 1..20_usize) {
            let items = (0..count).map(|number| SelectableItem::tool(&format!("a:t{number}@1"), "a", "t", "")).collect();
            let view = CatalogView::of_items(1, items, Vec::new(), BTreeMap::new(), &RoutingConfig::default()).unwrap();
            for (at, name) in view.tool_names.by_item.iter().enumerate() {
                prop_assert_eq!(view.tool(name).unwrap().0, at);
            }
        }
    }
}
