//! Makes the views of the catalog: one of everything, and one for each visibility profile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

use super::view::{CatalogView, ChangedDefinition, items_of};
use crate::guard::pipeline::{GuardError, Guards};
use crate::guard::profiles::Visibility;
use crate::protocol::listing::{Address, Listing, address_of};
use contextweaver_context::store::StoreError;
use contextweaver_core::catalog::{Kind, LeftOut, SelectableItem};
use contextweaver_routing::{RouteError, RoutingConfig};

/// What a view is made of.
pub(crate) struct Contents {
    /// The items that are listed.
    pub(super) items: Vec<SelectableItem>,
    /// The definitions that cannot be used.
    pub(super) left_out: Vec<LeftOut>,
    /// The lists of each upstream, by the server name of its items; empty for a catalog from a file.
    pub(super) listings: BTreeMap<String, Arc<Listing>>,
}

impl Contents {
    /// The contents of these lists.
    pub(super) fn of(listings: BTreeMap<String, Arc<Listing>>) -> Self {
        let (items, left_out) = items_of(&listings);
        Self { items, left_out, listings }
    }
}

/// The view of what the guards let through, made off the threads of the runtime, as `contents` is: both take a while, and
/// may wait for a disk.
///
/// # Errors
/// [`GuardError`]; what was served before stays.
pub(super) async fn vetted(
    guards: &Arc<Guards>,
    generation: u64,
    contents: impl FnOnce() -> Contents + Send + 'static,
    before: Option<Arc<CatalogView>>,
    routing: &RoutingConfig,
) -> Result<CatalogView, GuardError> {
    let (guards, routing) = (Arc::clone(guards), routing.clone());
    let work = move || {
        let mut view = views(&guards, generation, contents(), before.as_deref(), &routing)?;
        before.iter().for_each(|before| view.follow(before));
        Ok(view)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(GuardError::State(StoreError::Backend { place: "catalog".to_owned(), reason: error.to_string() }))
    })
}

fn views(
    guards: &Guards,
    generation: u64,
    contents: Contents,
    before: Option<&CatalogView>,
    routing: &RoutingConfig,
) -> Result<CatalogView, GuardError> {
    let Contents { mut items, left_out, listings } = contents;
    let quarantine = guards.vet(&mut items)?;
    let view = |profile: Option<&Visibility>, left_out, listings| {
        let shows = |item: &&SelectableItem| profile.is_none_or(|profile| guards.shows(profile, item));
        let visible: Vec<SelectableItem> = items.iter().filter(shows).cloned().collect();
        let mut view = CatalogView::of_items(generation, visible, left_out, listings, routing)?;
        let waiting = quarantine.iter().filter(|(item, _)| shows(&item));
        view.quarantined = waiting.map(|(item, reason)| (item.id.clone(), reason.clone())).collect();
        Ok::<_, RouteError>(view)
    };
    let mut all = view(None, left_out, listings)?;
    all.changed = quarantine.iter().map(|(item, _)| (item.id.clone(), changed(item, before))).collect();
    for (name, profile) in guards.profiles().iter() {
        let shows = |item: &SelectableItem| guards.shows(profile, item);
        let (listings, partly) = shown_of(&all, &items, &shows);
        let mut own = view(Some(profile), Vec::new(), listings)?;
        own.listed_only = partly;
        own.namespaces = all.namespaces.clone();
        all.profiles.insert(name.clone(), Arc::new(own));
    }
    Ok(all)
}

/// Notes the servers that do not answer, also in the views of profiles that would show a tool of theirs.
pub(super) fn note_absent(view: &mut CatalogView, guards: &Guards, absent: BTreeSet<String>) {
    for (name, profile) in guards.profiles().iter() {
        let shows = |namespace: &&String| {
            guards.shows(profile, &SelectableItem::tool(&format!("{namespace}:any"), namespace, "any", ""))
        };
        if let Some(own) = view.profiles.get_mut(name).and_then(Arc::get_mut) {
            own.absent = absent.iter().filter(shows).cloned().collect();
        }
    }
    view.absent = absent;
}

/// What changed of a definition that is not served, as far as the view before shows it.
fn changed(item: &SelectableItem, before: Option<&CatalogView>) -> ChangedDefinition {
    let text = |item: &SelectableItem| -> Arc<str> { Arc::from(item.definition()) };
    let server = item.server.clone().unwrap_or_default();
    let is_it = |other: &&SelectableItem| other.name == item.name && other.server.as_deref() == Some(&*server);
    let old = before.and_then(|before| {
        let served = before.tools.as_ref().and_then(|shelf| shelf.router.catalog().items().iter().find(is_it));
        let waited = || before.changed.values().find(|other| other.name == item.name && other.server == server);
        served.map(text).or_else(|| waited().and_then(|other| other.old.clone()))
    });
    ChangedDefinition { name: item.name.clone(), server, old, new: text(item) }
}

/// The resources and templates that are shown, and the servers of which some are not.
fn shown_of(
    all: &CatalogView,
    items: &[SelectableItem],
    shows: &dyn Fn(&SelectableItem) -> bool,
) -> (BTreeMap<String, Arc<Listing>>, BTreeSet<String>) {
    let mut resources: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for item in items.iter().filter(|item| item.kind == Kind::Resource) {
        if let (Some(server), Some(uri)) = (item.server.as_deref(), item.metadata.get("uri").and_then(Value::as_str)) {
            resources.insert((server, uri), shows(item));
        }
    }
    let (mut shown, mut partly) = (BTreeMap::new(), BTreeSet::new());
    for (server, listing) in &all.listings {
        let is_shown = |raw: &RawValue| match address_of(raw) {
            Some(Address::Resource(uri)) => resources.get(&(server.as_str(), uri.as_str())).copied().unwrap_or(false),
            Some(Address::Template(template)) => shows(&all.unlisted(server, &template)),
            None => false,
        };
        let filtered = |raws: &[Box<RawValue>]| raws.iter().filter(|raw| is_shown(raw)).cloned().collect::<Vec<_>>();
        let (some, templates) = (filtered(&listing.resources), filtered(&listing.templates));
        if some.len() < listing.resources.len() || templates.len() < listing.templates.len() {
            partly.insert(server.clone());
        }
        if !some.is_empty() || !templates.is_empty() {
            let listing = Listing { resources: some, templates, ..Listing::default() };
            shown.insert(server.clone(), Arc::new(listing));
        }
    }
    (shown, partly)
}
