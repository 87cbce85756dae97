//! Which tools exist.
//!
//! A [`Catalog`] is valid once built: ids are unique, namespaces are within the grammar, items are in id order. No
//! later step checks again. Loading takes every form in which catalogs are found in practice and keeps each definition
//! byte for byte, because typed models lose unknown fields.

mod diff;
mod error;
mod formats;
mod inspect;
mod item;
#[cfg(feature = "lint")]
mod lint;
mod load;
mod namespace;
mod near;
#[cfg(feature = "lint")]
mod schema;
mod tool_id;

pub use diff::{Change, Changed, DiffReport, Entry, NamespaceDiff, PropertyChange, VersionChange, diff};
pub use error::{CatalogError, Fault};
pub use formats::{
    CallNames, Refused, ToolFormat, UnknownForm, Written, fitting_ids, fitting_names, is_template, mcp_listing,
    routing_decision,
};
pub use inspect::{InspectReport, ItemTokens, SafetyCounts, SchemaCounts, ServerSummary, definition_tokens, inspect};
pub use item::{Kind, Safety, SelectableItem};
#[cfg(feature = "lint")]
pub use lint::{Finding, LONG_DESCRIPTION_TOKENS, LintReport, NEAR_DUPLICATE, Problem, SchemaPart, Severity, lint};
pub use load::{
    FrontMatter, LeftOut, Listing, LoadOptions, Loaded, MAX_DESCRIPTION_BYTES, MAX_FILE_BYTES, MAX_SKILL_BYTES, Source,
    Strictness, describe, folder_files, front_matter, load, load_listings, nesting_depth,
};
pub use namespace::{FALLBACK_NAMESPACE, Inferred, assign_namespaces, infer_namespace, server_namespace};
pub use near::{NearPair, near_duplicates};
#[cfg(feature = "lint")]
pub use schema::{MOST_WAYS, SchemaLimits, SchemaProblem, SchemaWeight, check_schema, weigh_schema};
pub use tool_id::{
    MAX_TOOL_ID, PrimitiveId, PrimitiveKind, ToolIdParts, argument_shape, escape_name, format_primitive_id,
    format_tool_id, parse_primitive_id, parse_tool_id, prompt_hash8, resource_hash8, tool_hash8,
};

use std::collections::BTreeSet;

/// A checked set of items with unique ids, in ascending id order.
///
/// The order in which items were given changes nothing.
#[derive(Debug, Clone)]
pub struct Catalog {
    items: Vec<SelectableItem>,
}

impl Catalog {
    /// A catalog of `items`.
    ///
    /// # Errors
    /// [`CatalogError::Collision`] when two items have one id, [`CatalogError::Definition`] for an item whose
    /// namespace is outside of the grammar of ids, [`CatalogError::Empty`] when there is no item.
    pub fn new(mut items: Vec<SelectableItem>) -> Result<Self, CatalogError> {
        items.sort_by(|left, right| left.id.cmp(&right.id));
        if items.is_empty() {
            return Err(CatalogError::Empty("no item was given".to_owned()));
        }
        if let Some(pair) = items.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(CatalogError::Collision {
                id: pair[0].id.clone(),
                first: format!("`{}`", pair[0].name),
                second: format!("`{}`", pair[1].name),
                can_be_left_out: false,
            });
        }
        if let Some(item) = items.iter().find(|item| !tool_id::is_namespace(&item.namespace)) {
            let usable = server_namespace(&item.namespace);
            return Err(CatalogError::Definition {
                place: format!("item `{}`", item.id.escape_debug()),
                fault: Fault::new(format!("`{}` is not a namespace", item.namespace.escape_debug()))
                    .with_fix(format!("use `{usable}`")),
            });
        }
        Ok(Self { items })
    }

    /// The items in ascending id order. The position in this slice is the item's number everywhere else.
    #[must_use]
    pub fn items(&self) -> &[SelectableItem] {
        &self.items
    }

    /// How many items there are; never zero.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a catalog is never empty")]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The namespaces of the items, ascending.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<&str> {
        self.items.iter().map(|item| item.namespace.as_str()).collect()
    }

    /// The position of the item with this id.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        self.items.binary_search_by(|item| item.id.as_str().cmp(id)).ok()
    }

    /// The item with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&SelectableItem> {
        self.position(id).map(|position| &self.items[position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_valid_makes_no_catalog() {
        let made = |items: &[(&str, &str)]| {
            let items = items.iter().map(|(id, namespace)| SelectableItem::tool(id, namespace, "x", "")).collect();
            Catalog::new(items).map(|catalog| catalog.len()).map_err(|error| error.to_string())
        };
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(made(&[("a:x@1", "a"), ("b-2:x@1", "b-2")]), Ok(2));
        assert_eq!(made(&[]), error("the catalog is empty: no item was given"));
        assert_eq!(
            made(&[("a:x@1", "a"), ("a:x@1", "a")]),
            error("duplicate id `a:x@1`: `x` and `x`; remove one, or give its server another name")
        );
        assert_eq!(made(&[("A B:x@1", "A B")]), error("item `A B:x@1`: `A B` is not a namespace; use `a-b`"));
        assert_eq!(made(&[("x", "")]), error("item `x`: `` is not a namespace; use `mcp`"));
    }
}
