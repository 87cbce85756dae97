//! What changed between two versions of a catalog.
//!
//! Items are paired first by id, then by name, then by definition: an id changes with the shape of the arguments,
//! and a tool that was renamed or whose server was renamed is the same tool. Only what finds no partner counts as
//! added or removed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::inspect::{definition_tokens, joined, server_versions};
use super::load::{FIELDS, all_metadata, is_version_of, take_version};
use super::near::pair_most_similar;
use super::tool_id::{argument_shape, version_in_id};
use super::{Catalog, Kind, Safety, SelectableItem};
use crate::text::{Analyzer, Estimator, TermSet};

/// The differences between two catalogs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiffReport {
    /// The estimator of all counts here.
    pub estimator: Estimator,
    /// Tokens of all definitions of the old catalog.
    pub old_tokens: usize,
    /// Tokens of all definitions of the new catalog.
    pub new_tokens: usize,
    /// Items that are the same in both.
    pub unchanged: usize,
    /// Every namespace with a difference, in order of the namespace. What has both an old and a new item is under
    /// the namespace of the new one.
    pub namespaces: Vec<NamespaceDiff>,
}

impl DiffReport {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.namespaces.is_empty()
    }
}

/// The differences within one namespace; each list in order of ids.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NamespaceDiff {
    /// The namespace that the differences are in.
    pub namespace: String,
    /// The version of the server, where the catalogs give different ones; several are joined with commas. It is said once
    /// and not for each item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionChange>,
    /// Items without a partner in the old catalog.
    pub added: Vec<Entry>,
    /// Items without a partner in the new catalog.
    pub removed: Vec<Entry>,
    /// Items under another name or in another namespace, with whatever else changed.
    pub renamed: Vec<Changed>,
    /// Items that kept their name and changed otherwise.
    pub changed: Vec<Changed>,
}

/// An item of one of the catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The id of the item.
    pub id: String,
    /// The kind of the item: tool, agent, skill, resource or prompt.
    pub kind: Kind,
    /// Tokens of its definition.
    pub tokens: usize,
}

/// An item of both catalogs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// The item as the old catalog has it.
    pub old: Entry,
    /// The item as the new catalog has it.
    pub new: Entry,
    /// What changed apart from the name; empty for a plain rename.
    pub changes: Vec<Change>,
}

/// Another version of an item or server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VersionChange {
    /// The version that the old catalog gives; `None` when it gives none.
    pub old: Option<String>,
    /// The version that the new catalog gives; `None` when it gives none.
    pub new: Option<String>,
}

/// One change of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// The item has another version.
    Version(VersionChange),
    /// The description has other words.
    Description {
        /// Tokens of the old description.
        old_tokens: usize,
        /// Tokens of the new description.
        new_tokens: usize,
    },
    /// A top-level property of the argument schema.
    Property {
        /// The name of the property.
        name: String,
        /// What happened to it.
        #[serde(flatten)]
        property: PropertyChange,
    },
    /// The argument schema differs outside of its top-level properties and required list.
    ArgumentSchema,
    /// The schema of the structured result differs.
    ResultSchema,
    /// The item declares another safety class.
    Safety {
        /// The class that the old definition declares.
        old: Safety,
        /// The class that the new definition declares.
        new: Safety,
    },
    /// An annotation of the MCP definition.
    Annotation {
        /// The key of the annotation.
        key: String,
        /// The old value; `null` when it was absent.
        old: Value,
        /// The new value; `null` when it is absent.
        new: Value,
    },
    /// Another member of the definition (`title`, `_meta`, `tags`, `cost_hint` …).
    Member {
        /// The key of the member.
        key: String,
        /// For the metadata, the members of it that differ.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        members: Vec<String>,
    },
}

/// What happened to a property.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "property", rename_all = "snake_case")]
pub enum PropertyChange {
    /// It is new.
    Added {
        /// Whether callers must give it.
        required: bool,
    },
    /// It is gone.
    Removed {
        /// Whether callers had to give it.
        required: bool,
    },
    /// It has another type.
    Retyped {
        /// The old type, as short as the schema says it: `string`, `string|null`, `array of string`.
        old: String,
        /// The new type, in the same form.
        new: String,
    },
    /// Callers must give it now.
    BecameRequired,
    /// Callers need not give it any more.
    BecameOptional,
    /// Its schema differs otherwise: description, default, bounds, nested properties.
    Altered,
}

/// Compares two catalogs; tokens are counted with `estimator`.
#[must_use]
pub fn diff(old: &Catalog, new: &Catalog, estimator: Estimator) -> DiffReport {
    let (old, new) = (old.items(), new.items());
    let partners = pair_up(old, new);
    let mut namespaces: BTreeMap<&str, NamespaceDiff> = BTreeMap::new();
    let mut unchanged = 0;
    let mut has_partner = vec![false; old.len()];
    for (item, partner) in new.iter().zip(&partners) {
        let entry = |item| entry(item, estimator);
        let Some(partner) = *partner else {
            namespaces.entry(&item.namespace).or_default().added.push(entry(item));
            continue;
        };
        has_partner[partner] = true;
        let before = &old[partner];
        let changes = changes(before, item, estimator);
        let renamed = (&before.namespace, &before.name) != (&item.namespace, &item.name);
        if !renamed && changes.is_empty() {
            unchanged += 1;
            continue;
        }
        let changed = Changed { old: entry(before), new: entry(item), changes };
        let diff = namespaces.entry(&item.namespace).or_default();
        if renamed { diff.renamed.push(changed) } else { diff.changed.push(changed) }
    }
    for (item, _) in old.iter().zip(has_partner).filter(|(_, has_partner)| !has_partner) {
        namespaces.entry(&item.namespace).or_default().removed.push(entry(item, estimator));
    }
    let before = server_versions(old);
    for (namespace, after) in server_versions(new) {
        if let Some(before) = before.get(namespace).filter(|before| **before != after) {
            let version = VersionChange { old: joined(before), new: joined(&after) };
            namespaces.entry(namespace).or_default().version = Some(version);
        }
    }
    let tokens = |items: &[SelectableItem]| items.iter().map(|item| definition_tokens(item, estimator)).sum();
    let named = |(namespace, diff): (&str, NamespaceDiff)| NamespaceDiff { namespace: namespace.to_owned(), ..diff };
    DiffReport {
        estimator,
        old_tokens: tokens(old),
        new_tokens: tokens(new),
        unchanged,
        namespaces: namespaces.into_iter().map(named).collect(),
    }
}

fn entry(item: &SelectableItem, estimator: Estimator) -> Entry {
    Entry { id: item.id.clone(), kind: item.kind, tokens: definition_tokens(item, estimator) }
}

/// At least this Jaccard similarity of descriptions makes a removed and an added tool with the same arguments one
/// renamed tool.
const SAME_PURPOSE: f64 = 0.5;

/// For every new item the position of the old item that it is paired with, or `None`. Pairs are sought from the surest
/// sign to the weakest.
fn pair_up(old: &[SelectableItem], new: &[SelectableItem]) -> Vec<Option<usize>> {
    let mut pairing = Pairing { old, new, partners: vec![None; new.len()], taken: vec![false; old.len()] };
    pairing.by_equal(|item| Some(item.id.clone()));
    pairing.by_equal(|item| Some(format!("{}\0{}\0{}", item.kind.name(), item.namespace, item.name)));
    let definition = |item: &SelectableItem| {
        let schema = item.args_schema.as_deref().map(ToString::to_string).unwrap_or_default();
        (!item.description.is_empty()).then(|| format!("{}\0{}\0{schema}", item.kind.name(), item.description))
    };
    pairing.by_equal(|item| Some(format!("{}\0{}", item.namespace, definition(item)?)));
    pairing.by_equal(|item| Some(format!("{}\0{}", item.name, definition(item)?)));
    let nothing = argument_shape(None);
    pairing.by_similar(|item| {
        let shape = argument_shape(item.args_schema.as_deref());
        (shape != nothing).then(|| format!("{}\0{}\0{shape}", item.kind.name(), item.namespace))
    });
    pairing.partners
}

struct Pairing<'i> {
    old: &'i [SelectableItem],
    new: &'i [SelectableItem],
    partners: Vec<Option<usize>>,
    taken: Vec<bool>,
}

/// The positions of the old and of the new items that share one key.
type Bucket = (Vec<usize>, Vec<usize>);

impl Pairing<'_> {
    /// Pairs the unpaired items that share a key, in order of ids.
    fn by_equal(&mut self, key: impl Fn(&SelectableItem) -> Option<String>) {
        for (old, new) in self.buckets(key) {
            for (old, new) in old.into_iter().zip(new) {
                self.pair(old, new);
            }
        }
    }

    /// Pairs the unpaired items that share a key and have similar descriptions, the most similar first, then in order
    /// of ids.
    fn by_similar(&mut self, key: impl Fn(&SelectableItem) -> Option<String>) {
        let analyzer = Analyzer::default();
        for (old, new) in self.buckets(key) {
            let terms = |items: &[SelectableItem], positions: &[usize]| -> Vec<TermSet> {
                positions.iter().map(|position| TermSet::of(&analyzer, &items[*position].description)).collect()
            };
            let (before, after) = (terms(self.old, &old), terms(self.new, &new));
            for (one, other) in pair_most_similar(&before, &after, SAME_PURPOSE) {
                self.pair(old[one], new[other]);
            }
        }
    }

    /// The unpaired items by key; only keys that occur in both catalogs.
    fn buckets(&self, key: impl Fn(&SelectableItem) -> Option<String>) -> Vec<Bucket> {
        let mut buckets: BTreeMap<String, Bucket> = BTreeMap::new();
        for (position, item) in self.old.iter().enumerate().filter(|(position, _)| !self.taken[*position]) {
            if let Some(key) = key(item) {
                buckets.entry(key).or_default().0.push(position);
            }
        }
        for (position, item) in self.new.iter().enumerate().filter(|(position, _)| self.partners[*position].is_none()) {
            if let Some((_, new)) = key(item).and_then(|key| buckets.get_mut(&key)) {
                new.push(position);
            }
        }
        buckets.into_values().collect()
    }

    fn pair(&mut self, old: usize, new: usize) {
        self.partners[new] = Some(old);
        self.taken[old] = true;
    }
}

fn changes(old: &SelectableItem, new: &SelectableItem, estimator: Estimator) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.version != new.version {
        changes.push(Change::Version(VersionChange { old: old.version.clone(), new: new.version.clone() }));
    }
    if old.description != new.description {
        let (old_tokens, new_tokens) = (estimator.count(&old.description), estimator.count(&new.description));
        changes.push(Change::Description { old_tokens, new_tokens });
    }
    changes.extend(argument_changes(old.args_schema.as_deref(), new.args_schema.as_deref()));
    if old.output_schema != new.output_schema {
        changes.push(Change::ResultSchema);
    }
    if old.safety != new.safety {
        changes.push(Change::Safety { old: old.safety, new: new.safety });
    }
    let member = |key: &str, members| Change::Member { key: key.to_owned(), members };
    changes.extend(item_changes(old, new).into_iter().map(|key| member(key, Vec::new())));
    let metadata = metadata_changes(old, new);
    if !metadata.is_empty() {
        changes.push(member("metadata", metadata));
    }
    if let (Some(old), Some(new)) = (definition(old), definition(new)) {
        changes.extend(definition_changes(&old, &new));
    }
    changes
}

/// The names of the fields that differ, out of those that every form of definition can fill and that have no [`Change`]
/// of their own.
fn item_changes(old: &SelectableItem, new: &SelectableItem) -> Vec<&'static str> {
    let tags = |item: &SelectableItem| -> Vec<String> {
        item.tags.iter().filter(|tag| Some(tag.as_str()) != item.safety.tag()).cloned().collect()
    };
    // A move to another namespace is a rename, which already says that the server differs.
    let server = old.server == new.server || old.namespace != new.namespace;
    let fields = [
        ("kind", old.kind == new.kind),
        ("server", server),
        ("server_description", old.server_description == new.server_description),
        ("tags", tags(old) == tags(new)),
        ("side_effects", old.side_effects == new.side_effects || old.safety != new.safety),
        ("cost_hint", old.cost_hint.total_cmp(&new.cost_hint).is_eq()),
        ("examples", old.examples == new.examples),
        ("constraints", old.constraints == new.constraints),
        ("depends_on", old.depends_on == new.depends_on),
        ("provides", old.provides == new.provides),
        ("requires", old.requires == new.requires),
    ];
    fields.into_iter().filter(|(_, same)| !same).map(|(field, _)| field).collect()
}

/// The members of the metadata that differ.
fn metadata_changes(old: &SelectableItem, new: &SelectableItem) -> Vec<String> {
    if old.raw.is_some() == new.raw.is_some() && old.metadata == new.metadata {
        return Vec::new();
    }
    // Where only one is as received, the metadata of the other holds what stands beside the fields in it.
    let metadata = |item: &SelectableItem| match old.raw.is_some() == new.raw.is_some() {
        true => unversioned(item, item.metadata.clone()),
        false => unversioned(item, all_metadata(item)),
    };
    let (old, new) = (metadata(old), metadata(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    keys.into_iter().filter(|key| old.get(*key) != new.get(*key)).cloned().collect()
}

fn argument_changes(old: Option<&Value>, new: Option<&Value>) -> Vec<Change> {
    if old == new {
        return Vec::new();
    }
    let empty = Map::new();
    let properties = |schema: Option<&'_ Value>| -> Map<String, Value> {
        schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object).unwrap_or(&empty).clone()
    };
    let (before, after) = (properties(old), properties(new));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let mut changes = Vec::new();
    for name in names {
        let required = (is_required(old, name), is_required(new, name));
        let found = property_changes(before.get(name), after.get(name), required);
        changes.extend(found.into_iter().map(|property| Change::Property { name: name.clone(), property }));
    }
    if outside_properties(old) != outside_properties(new) {
        changes.push(Change::ArgumentSchema);
    }
    changes
}

fn property_changes(old: Option<&Value>, new: Option<&Value>, required: (bool, bool)) -> Vec<PropertyChange> {
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec![PropertyChange::Added { required: required.1 }],
        (Some(_), None) => return vec![PropertyChange::Removed { required: required.0 }],
        (Some(old), Some(new)) => (old, new),
    };
    let mut changes = Vec::new();
    match required {
        (false, true) => changes.push(PropertyChange::BecameRequired),
        (true, false) => changes.push(PropertyChange::BecameOptional),
        _ => {}
    }
    if old != new {
        let types = (type_text(old), type_text(new));
        changes.push(if types.0 == types.1 {
            PropertyChange::Altered
        } else {
            PropertyChange::Retyped { old: types.0, new: types.1 }
        });
    }
    changes
}

fn is_required(schema: Option<&Value>, name: &str) -> bool {
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one.as_str() == Some(name)))
}

/// What a property accepts, as short as its schema says it: `string`, `string|null`, `$ref`, `any`.
fn type_text(schema: &Value) -> String {
    let alternatives = |list: &[Value]| list.iter().map(type_text).collect::<Vec<_>>().join("|");
    let member = |key| schema.get(key);
    match (member("type"), member("anyOf").or_else(|| member("oneOf")), member("$ref")) {
        (Some(Value::String(one)), ..) => match (one.as_str(), member("items")) {
            ("array", Some(items)) => format!("array of {}", type_text(items)),
            _ => one.clone(),
        },
        (Some(Value::Array(many)), ..) => many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        (_, Some(Value::Array(many)), _) => alternatives(many),
        (_, _, Some(Value::String(reference))) => reference.clone(),
        _ => "any".to_owned(),
    }
}

fn outside_properties(schema: Option<&Value>) -> Map<String, Value> {
    let mut members = schema.and_then(Value::as_object).cloned().unwrap_or_default();
    for key in ["properties", "required"] {
        members.shift_remove(key);
    }
    members
}

/// The definition as received, without the members that are compared otherwise.
fn definition(item: &SelectableItem) -> Option<Map<String, Value>> {
    let mut definition: Map<String, Value> = serde_json::from_str(item.raw.as_ref()?.get()).ok()?;
    definition.retain(|key, value| !FIELDS.contains(&key.as_str()) && !is_version_of(item, key, value));
    if without_version(item, definition.get_mut(META)) {
        definition.shift_remove(META);
    }
    Some(definition)
}

/// The metadata of an item, without the version that is compared as one.
fn unversioned(item: &SelectableItem, mut metadata: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    if without_version(item, metadata.get_mut(META)) {
        metadata.remove(META);
    }
    metadata
}

/// The member of a definition in which MCP has a version.
const META: &str = "_meta";

/// Takes the version of an item out of the `_meta` of its definition, and says whether nothing else was there.
fn without_version(item: &SelectableItem, meta: Option<&mut Value>) -> bool {
    let Some(meta) = meta.and_then(Value::as_object_mut) else { return false };
    let mut rest = meta.clone();
    let (own, said) = (item.version.as_deref(), take_version(&mut rest));
    if own.is_none() || said.as_deref() != own && said != own.map(version_in_id) {
        return false;
    }
    *meta = rest;
    meta.is_empty()
}

fn definition_changes(old: &Map<String, Value>, new: &Map<String, Value>) -> Vec<Change> {
    let differing = |old: &Map<String, Value>, new: &Map<String, Value>| -> Vec<(String, Value, Value)> {
        let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let value = |map: &Map<String, Value>, key: &String| map.get(key).cloned().unwrap_or_default();
        let all = keys.into_iter().map(|key| (key.clone(), value(old, key), value(new, key)));
        all.filter(|(_, old, new)| old != new).collect()
    };
    let mut changes = Vec::new();
    for (key, old, new) in differing(old, new) {
        if key != "annotations" {
            changes.push(Change::Member { key, members: Vec::new() });
            continue;
        }
        let members = |value: Value| if let Value::Object(members) = value { members } else { Map::new() };
        let annotations = differing(&members(old), &members(new)).into_iter();
        changes.extend(annotations.map(|(key, old, new)| Change::Annotation { key, old, new }));
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn compared(old: &[Value], new: &[Value]) -> DiffReport {
        let catalog = |tools: &[Value]| Catalog::from_values(tools, Some("s")).unwrap();
        diff(&catalog(old), &catalog(new), Estimator::Cl100kBase)
    }

    /// One line per difference, with its changes below it.
    fn listing(report: &DiffReport) -> String {
        let mut lines = format!("{} -> {} tokens, {} same\n", report.old_tokens, report.new_tokens, report.unchanged);
        for diff in &report.namespaces {
            lines += &format!("{}:\n", diff.namespace);
            diff.version.iter().for_each(|change| lines += &format!("  {}\n", serde_json::to_string(change).unwrap()));
            diff.added.iter().for_each(|entry| lines += &format!("  + {} ({})\n", entry.id, entry.tokens));
            diff.removed.iter().for_each(|entry| lines += &format!("  - {} ({})\n", entry.id, entry.tokens));
            for (mark, list) in [('>', &diff.renamed), ('~', &diff.changed)] {
                for changed in list {
                    lines += &format!("  {mark} {} -> {}\n", changed.old.id, changed.new.id);
                    for change in &changed.changes {
                        lines += &format!("      {}\n", serde_json::to_string(change).unwrap());
                    }
                }
            }
        }
        lines
    }

    #[test]
    fn every_change_is_found() {
        let old = [
            json!({"name": "same", "description": "Same", "x": {"a": 1, "b": 2}}),
            json!({"name": "gone", "description": "Gone"}),
            json!({"name": "edit", "title": "T", "description": "Edits", "annotations": {"readOnlyHint": true, "x": 1}, "tags": ["t"],
                "inputSchema": {"type": "object", "required": ["kept", "freed", "left"], "properties": {
                    "kept": {"type": "string"}, "freed": {"type": "string"}, "left": {}, "typed": {"type": "string"},
                    "list": {"type": "array", "items": {"type": "string"}}, "worded": {"type": "string"}}}}),
        ];
        let new = [
            json!({"name": "same", "description": "Same", "x": {"b": 2, "a": 1}}),
            json!({"name": "come", "description": "Come"}),
            json!({"name": "edit", "title": "U", "description": "Edits much", "annotations": {"destructiveHint": true, "x": 1}, "outputSchema": {},
                "inputSchema": {"type": "object", "required": ["kept", "typed"], "additionalProperties": false, "properties": {
                    "kept": {"type": "string"}, "freed": {"type": "string"}, "typed": {"type": ["integer", "null"]},
                    "list": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/x"}]}},
                    "worded": {"type": "string", "description": "Now with words"}, "new": {}}}}),
        ];
        insta::assert_snapshot!(listing(&compared(&old, &new)), @r#"
        105 -> 127 tokens, 1 same
        s:
          + s:come#b5e873ff (16)
          - s:gone#c06d6bda (17)
          ~ s:edit#eec13866 -> s:edit#be28a7fb
              {"change":"description","old_tokens":2,"new_tokens":3}
              {"change":"property","name":"freed","property":"became_optional"}
              {"change":"property","name":"left","property":"removed","required":true}
              {"change":"property","name":"list","property":"retyped","old":"array of string","new":"array of string|#/x"}
              {"change":"property","name":"new","property":"added","required":false}
              {"change":"property","name":"typed","property":"became_required"}
              {"change":"property","name":"typed","property":"retyped","old":"string","new":"integer|null"}
              {"change":"property","name":"worded","property":"altered"}
              {"change":"argument_schema"}
              {"change":"result_schema"}
              {"change":"safety","old":"read_only","new":"destructive"}
              {"change":"member","key":"tags"}
              {"change":"annotation","key":"destructiveHint","old":null,"new":true}
              {"change":"annotation","key":"readOnlyHint","old":true,"new":null}
              {"change":"member","key":"title"}
        "#);
    }

    #[test]
    fn renamed_tools_are_paired_from_the_surest_sign_to_the_weakest() {
        let shape = |names: &[&str]| json!({"type": "object", "properties": names.iter().map(|name| (name.to_string(), json!({}))).collect::<Map<_, _>>()});
        let old = [
            json!({"name": "make_issue", "description": "Opens an issue", "inputSchema": shape(&["title"])}),
            json!({"name": "moved", "description": "Moves house", "server": "old"}),
            json!({"name": "find", "description": "Finds pull requests by words", "inputSchema": shape(&["words", "page"])}),
            json!({"name": "get", "description": "Gets a user", "inputSchema": shape(&["id"])}),
            json!({"name": "ping", "description": ""}),
        ];
        let new = [
            json!({"name": "create_issue", "description": "Opens an issue", "inputSchema": shape(&["title"])}),
            json!({"name": "moved", "description": "Moves house", "server": "new"}),
            json!({"name": "search", "description": "Finds pull requests by their words", "inputSchema": shape(&["page", "words"])}),
            json!({"name": "delete", "description": "Destroys every order", "inputSchema": shape(&["id"])}),
            json!({"name": "pong", "description": ""}),
        ];
        insta::assert_snapshot!(listing(&compared(&old, &new)), @r#"
        114 -> 116 tokens, 0 same
        new:
          > old:moved#ba1df2dd -> new:moved#ba1df2dd
        s:
          + s:delete#a49c8e06 (26)
          + s:pong#475b8d9b (14)
          - s:get#cb8d2b67 (25)
          - s:ping#5edda54e (14)
          > s:make_issue#14f0826d -> s:create_issue#8b02167b
          > s:find#a0cbf1e5 -> s:search#adbc4965
              {"change":"description","old_tokens":6,"new_tokens":7}
        "#);
    }

    #[test]
    fn another_kind_and_another_server_are_changes() {
        let catalog = |kind: Kind, server: Option<&str>| {
            let mut item = SelectableItem::tool("s:a@1", "s", "a", "A");
            (item.kind, item.server) = (kind, server.map(str::to_owned));
            Catalog::new(vec![item]).unwrap()
        };
        let old = catalog(Kind::Tool, Some("S"));
        let report = diff(&old, &catalog(Kind::Agent, Some("s")), Estimator::CharsDiv4);
        insta::assert_snapshot!(listing(&report), @r#"
        15 -> 15 tokens, 0 same
        s:
          ~ s:a@1 -> s:a@1
              {"change":"member","key":"kind"}
              {"change":"member","key":"server"}
        "#);
        assert!(!diff(&old, &catalog(Kind::Tool, None), Estimator::CharsDiv4).is_same());
    }

    #[test]
    fn a_version_is_a_change_of_its_own_and_that_of_a_server_is_said_once() {
        let tool = |name: &str, members: Value, server: &str| {
            let mut tool = json!({"name": name, "description": "Does", "serverVersion": server});
            tool.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            tool
        };
        let tools = |own: &str, server: &str| {
            [
                tool("kept", json!({"version": "7", "_meta": {"version": "7"}}), server),
                tool("in_meta", json!({"_meta": {"version": own, "x": 1}}), server),
                tool("of_fastmcp", json!({"_meta": {"fastmcp": {"version": own}}}), server),
                tool("beside", json!({"version": own, "title": "T"}), server),
                tool("other", json!({"server": "t", "_meta": {"x": own}}), server),
            ]
        };
        let (old, mut new) = (tools("1.0", "0.9"), tools("1.1", "1.0"));
        new[1]["_meta"]["x"] = json!(2);
        new[2].as_object_mut().unwrap().shift_remove("_meta");
        let report = compared(&old, &new);
        insta::assert_snapshot!(listing(&report), @r#"
        85 -> 85 tokens, 1 same
        s:
          {"old":"0.9","new":"1.0"}
          ~ s:beside#f2dc4225 -> s:beside#f2dc4225
              {"change":"version","old":"1.0","new":"1.1"}
          ~ s:in_meta@1.0 -> s:in_meta@1.1
              {"change":"version","old":"1.0","new":"1.1"}
              {"change":"member","key":"_meta"}
          ~ s:of_fastmcp#e41d96bb -> s:of_fastmcp#e41d96bb
              {"change":"version","old":"1.0","new":null}
        t:
          {"old":"0.9","new":"1.0"}
          ~ t:other#c0b7454d -> t:other#c0b7454d
              {"change":"member","key":"_meta"}
        "#);
        // What says a version for the first time says something new.
        let silent: Vec<Value> = tools("1.0", "0.9")
            .into_iter()
            .map(|mut tool| {
                for key in ["version", "serverVersion", "_meta", "title"] {
                    tool.as_object_mut().unwrap().shift_remove(key);
                }
                tool
            })
            .collect();
        let report = compared(&silent[..1], &old[..1]);
        assert_eq!(report.namespaces[0].version, Some(VersionChange { old: None, new: Some("0.9".to_owned()) }));
        assert_eq!(
            report.namespaces[0].changed[0].changes,
            [Change::Version(VersionChange { old: None, new: Some("7".to_owned()) })]
        );
        // The native form says the same, and so do two of them whose versions differ and nothing else, also where ids
        // cannot hold the whole version.
        let in_id = |own: &str| tool("in_id", json!({"version": own, "_meta": {"version": version_in_id(own)}}), "1");
        let native = |tool: Value| {
            let catalog = Catalog::from_values(&[tool], Some("s")).unwrap();
            (Catalog::from_json(&catalog.to_native_json()).unwrap(), catalog)
        };
        let in_meta = |own: &str| tools(own, "1")[1].clone();
        for (older, newer, [before, after]) in
            [("1", "2", ["1", "2"].map(in_meta)), ("1+a/1", "1+a/2", ["1+a/1", "1+a/2"].map(in_id))]
        {
            let (before, after) = (native(before), native(after));
            assert!(diff(&before.0, &before.1, Estimator::CharsDiv4).is_same());
            for (old, new) in [(&before.0, &after.0), (&before.0, &after.1), (&before.1, &after.1)] {
                let report = diff(old, new, Estimator::CharsDiv4);
                let change =
                    Change::Version(VersionChange { old: Some(older.to_owned()), new: Some(newer.to_owned()) });
                assert_eq!(report.namespaces[0].changed[0].changes, [change]);
            }
        }
        // Versions take no part in what a model or a ranking sees.
        let tokens = |tools: &[Value]| {
            definition_tokens(&Catalog::from_values(tools, Some("s")).unwrap().items()[0], Estimator::Cl100kBase)
        };
        assert_eq!(tokens(&silent[..1]), tokens(&old[..1]));
    }

    #[test]
    fn a_renamed_tool_is_paired_with_the_most_similar_one() {
        let tool = |name: &str, description: &str| json!({"name": name, "description": description, "inputSchema": {"properties": {"id": {}}}});
        let old =
            [tool("a", "Closes one open ticket of a customer"), tool("b", "Closes one open invoice of a customer")];
        let new = [tool("c", "Closes one open invoice of any customer today")];
        insta::assert_snapshot!(listing(&compared(&old, &new)), @r#"
        52 -> 27 tokens, 0 same
        s:
          - s:a#aa6cdd36 (26)
          > s:b#bc509399 -> s:c#4f33f1bb
              {"change":"description","old_tokens":8,"new_tokens":9}
        "#);
    }

    #[test]
    fn many_renamed_tools_of_one_shape_are_paired_in_time() {
        let tools = |name: &str, word: &str| -> Vec<Value> {
            let tool = |number: usize| {
                let name = format!("{name}_{number}");
                let description = format!("Closes the {word} of every customer number{number} in the shop");
                json!({"name": name, "description": description, "inputSchema": {"properties": {"id": {}}}})
            };
            (0..2000).map(tool).collect()
        };
        let start = std::time::Instant::now();
        let report = compared(&tools("old", "ticket"), &tools("new", "invoice"));
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
        let renamed = &report.namespaces[0].renamed;
        assert_eq!(renamed.len(), 2000);
        let number = |id: &str| id.split(['_', '#']).nth(1).unwrap().to_owned();
        assert!(renamed.iter().all(|pair| number(&pair.old.id) == number(&pair.new.id)));
    }

    #[test]
    fn the_native_form_of_a_catalog_is_the_same() {
        let tools = [
            json!({"name": "a", "title": "A", "annotations": {"destructiveHint": true}, "tags": ["x"], "description": "A"}),
        ];
        let catalog = Catalog::from_values(&tools, None).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("native.json");
        std::fs::write(&path, catalog.to_native_json()).unwrap();
        let native = super::super::load(&[path], Default::default()).unwrap().catalog;
        assert!(diff(&catalog, &native, Estimator::CharsDiv4).is_same());
    }

    fn tools() -> impl Strategy<Value = Vec<Value>> {
        let tool = ("[ab]", "[xy]{0,2}", "[p-r]{0,2}", proptest::bool::ANY).prop_map(|(server, words, names, hint)| {
            let properties: Map<String, Value> = names.chars().map(|name| (name.to_string(), json!({}))).collect();
            json!({"server": server, "description": words, "inputSchema": {"properties": properties}, "annotations": {"readOnlyHint": hint}})
        });
        proptest::collection::btree_map("[a-f]", tool, 1..6).prop_map(|tools| {
            let named = tools.into_iter().map(|(name, mut tool)| {
                tool["name"] = json!(name);
                tool
            });
            named.collect()
        })
    }

    proptest! {
        #[test]
        fn every_item_is_in_one_place_and_the_reverse_mirrors(old in tools(), new in tools()) {
            let (forward, backward) = (compared(&old, &new), compared(&new, &old));
            let count = |report: &DiffReport, of: fn(&NamespaceDiff) -> usize| report.namespaces.iter().map(of).sum::<usize>();
            let paired = |diff: &NamespaceDiff| diff.renamed.len() + diff.changed.len();
            prop_assert_eq!(count(&forward, paired) + count(&forward, |diff| diff.added.len()) + forward.unchanged, new.len());
            prop_assert_eq!(count(&forward, paired) + count(&forward, |diff| diff.removed.len()) + forward.unchanged, old.len());
            prop_assert_eq!(forward.unchanged, backward.unchanged);
            prop_assert!(compared(&old, &old).is_same());
        }
    }
}
