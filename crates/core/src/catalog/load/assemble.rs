//! Gives items their namespaces and ids.
//!
//! Namespaces are assigned once all server names are known, and ids once all namespaces are, so the order of files and
//! definitions decides one thing only: which of two resources or prompts with one canonical id keeps it.

use std::collections::BTreeSet;
use std::iter::once;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::super::namespace::{assign_namespaces, infer_namespace, server_namespace};
use super::super::tool_id::{
    PrimitiveId, PrimitiveKind, ToolIdParts, escape_name, format_primitive_id, is_version, parse_primitive_id,
    prompt_hash8, resource_hash8, tool_hash8,
};
use super::super::{CatalogError, Fault, Kind, SelectableItem};
use super::mcp::URI;
use super::{Place, Sieve};

/// An item that has no namespace and no id yet.
#[derive(Debug)]
pub(in crate::catalog) struct Draft {
    pub(in crate::catalog) item: SelectableItem,
    /// The server as the source names it; it decides the namespace.
    pub(super) server: Option<String>,
    /// The declared version, within the grammar of versions.
    pub(super) version: Option<String>,
    /// The id that the source gives: native files, and choice cards that were written here.
    pub(super) id: Option<GivenId>,
}

impl Draft {
    /// A draft without a version and an id of its own.
    pub(in crate::catalog) fn of(item: SelectableItem) -> Self {
        Self { server: item.server.clone(), item, version: None, id: None }
    }

    /// With a declared version in the id, if ids can hold it. It is the version of the item too, unless that has one.
    pub(in crate::catalog) fn with_version(mut self, version: Option<String>) -> Self {
        self.version = version.filter(|version| is_version(version));
        self.item.version = self.item.version.take().or_else(|| self.version.clone());
        self
    }

    /// With the id that the source gives.
    pub(in crate::catalog) fn with_id(mut self, id: &str) -> Result<Self, Fault> {
        self.id = Some(GivenId::check(id, self.item.kind, None)?);
        Ok(self)
    }

    /// Gives what names no server of its own this one, with its version.
    pub(super) fn set_server_if_none(&mut self, server: Option<&str>, version: Option<&str>) {
        if self.server.is_none() && self.id.is_none() {
            self.server = server.map(str::to_owned);
            self.item.server.clone_from(&self.server);
            self.item.server_version = self.item.server_version.take().or_else(|| version.map(str::to_owned));
        }
    }

    pub(super) fn set_server(&mut self, server: &str) {
        self.server = Some(server.to_owned());
        self.item.server = Some(server.to_owned());
    }

    /// The name of the server, inferred from the name of the item when nothing else says it.
    fn server_name(&self) -> &str {
        match (&self.id, &self.server, self.item.kind) {
            (Some(id), _, _) => &id.namespace,
            (None, Some(server), _) => server,
            // The dots and slashes of a file name or URI are no sign of its server.
            (None, None, Kind::Resource) => super::super::FALLBACK_NAMESPACE,
            (None, None, _) => infer_namespace(&self.item.name).prefix,
        }
    }
}

/// An id of the native form: canonical, or the `~N` key of a resource or prompt.
#[derive(Debug)]
pub(super) struct GivenId {
    key: String,
    namespace: String,
}

impl GivenId {
    pub(super) fn check(key: &str, kind: Kind, namespace: Option<&str>) -> Result<Self, Fault> {
        let canonical = match key.rsplit_once('~') {
            Some((canonical, number)) if is_occurrence(number) => canonical,
            _ => key,
        };
        let id = parse_primitive_id(canonical).map_err(|error| Fault::new(error.to_string()))?;
        if id.kind != PrimitiveKind::of(kind) || (id.kind == PrimitiveKind::Tool && canonical != key) {
            return Err(Fault::new(format!("`{key}` is not the id of a {}", kind.name())));
        }
        if let Some(namespace) = namespace.filter(|namespace| *namespace != id.parts.namespace()) {
            let expected = id.parts.namespace();
            return Err(Fault::new(format!("`namespace` is `{namespace}`, but its id has `{expected}`")));
        }
        Ok(Self { key: key.to_owned(), namespace: id.parts.namespace().to_owned() })
    }
}

/// Whether `text` is the number of a second or later occurrence.
fn is_occurrence(text: &str) -> bool {
    !text.starts_with('0') && text.parse::<u32>().is_ok_and(|number| number >= 2)
}

/// Gives every draft its namespace and id. Of two tools with one id the second is refused; a resource or prompt
/// that repeats an earlier one to the letter is dropped, and one that merely shares its id gets a key with `~N`.
pub(super) fn assemble(drafts: Vec<(Draft, Place)>, sieve: &mut Sieve) -> Result<Vec<SelectableItem>, CatalogError> {
    let servers: BTreeSet<String> = drafts.iter().map(|(draft, _)| draft.server_name().to_owned()).collect();
    let namespaces = assign_namespaces(&servers);
    let mut known = Known::default();
    let mut items: Vec<SelectableItem> = Vec::with_capacity(drafts.len());
    let mut places: Vec<Place> = Vec::with_capacity(drafts.len());
    for (mut draft, place) in drafts {
        let Some(namespace) = namespaces.get(draft.server_name()) else { continue };
        draft.item.namespace.clone_from(namespace);
        let id = match &draft.id {
            Some(id) => id.key.clone(),
            None => canonical_id(&draft)?,
        };
        let id = match known.position(&id) {
            None => id,
            Some(first) if draft.id.is_some() || PrimitiveKind::of(draft.item.kind) == PrimitiveKind::Tool => {
                let first = places[first].to_string();
                let can_be_left_out = place.file.is_some();
                sieve.refuse(CatalogError::Collision { id, first, second: place.to_string(), can_be_left_out })?;
                continue;
            }
            Some(first) => {
                let further = known.further.entry(id.clone()).or_default();
                if once(&first).chain(&*further).any(|holder| is_same(&items[*holder], &draft.item)) {
                    continue;
                }
                further.push(items.len());
                known.next_key(&id)
            }
        };
        known.positions.insert(id.clone(), items.len());
        draft.item.id = id;
        items.push(draft.item);
        places.push(place);
    }
    Ok(items)
}

/// The ids given so far.
#[derive(Default)]
struct Known {
    positions: FxHashMap<String, usize>,
    /// Per canonical id the items after the first that have it.
    further: FxHashMap<String, Vec<usize>>,
    /// The last `N` given for a canonical id.
    occurrences: FxHashMap<String, u32>,
}

impl Known {
    fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    fn next_key(&mut self, id: &str) -> String {
        let last = self.occurrences.entry(id.to_owned()).or_insert(1);
        loop {
            *last += 1;
            let key = format!("{id}~{last}");
            if !self.positions.contains_key(&key) {
                return key;
            }
        }
    }
}

fn is_same(first: &SelectableItem, second: &SelectableItem) -> bool {
    match (&first.raw, &second.raw) {
        (Some(first), Some(second)) => first.get() == second.get(),
        _ => false,
    }
}

/// The canonical id of a draft whose namespace is known.
fn canonical_id(draft: &Draft) -> Result<String, CatalogError> {
    let item = &draft.item;
    let kind = PrimitiveKind::of(item.kind);
    let derived = derived_name(draft);
    let name = escape_name(derived);
    let escaped = name != derived;
    let hash8 = (escaped || draft.version.is_none()).then(|| hash8(kind, item));
    let parts = ToolIdParts::new(&item.namespace, &name, draft.version.as_deref(), hash8.as_deref())?;
    Ok(format_primitive_id(&PrimitiveId { kind, parts }))
}

/// The name without a `.` or `/` prefix that repeats the namespace, whether the namespace was configured or inferred:
/// the id of a tool does not depend on which of the two it was.
fn derived_name(draft: &Draft) -> &str {
    let name = draft.item.name.as_str();
    if draft.item.kind == Kind::Resource {
        return name;
    }
    let inferred = infer_namespace(name);
    if server_namespace(inferred.prefix) == server_namespace(draft.server_name()) { inferred.rest } else { name }
}

fn hash8(kind: PrimitiveKind, item: &SelectableItem) -> String {
    let schema = item.args_schema.as_deref();
    match kind {
        PrimitiveKind::Tool => tool_hash8(&item.name, schema),
        PrimitiveKind::Resource => resource_hash8(item.metadata.get(URI).and_then(Value::as_str).unwrap_or(&item.name)),
        PrimitiveKind::Prompt => {
            let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
            let names: Vec<&str> = properties.into_iter().flat_map(|map| map.keys()).map(String::as_str).collect();
            prompt_hash8(&item.name, &names)
        }
    }
}
