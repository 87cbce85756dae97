//! The items of one kind, with their index, and the schemas of their arguments and results.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::written::{Written, WrittenNames};
use crate::common::error::{Code, GatewayError};
use crate::guard::call::Schemas;
use crate::guard::schema::{Checker, SchemaError, compiled};
use crate::surface::mode::Mode;
use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_routing::semantic::model::place;
use contextweaver_routing::{Observation, RouteError, Router, RoutingConfig};

/// The items of one kind, ranked by one index and named by one tree.
#[derive(Debug)]
pub struct Shelf {
    /// The router over them.
    pub router: Router,
    /// The same with the sentence encoder, once it has read every item.
    encoded: OnceLock<Router>,
    /// The schemas of their arguments, compiled when first needed.
    validators: Vec<OnceLock<Compiled>>,
    /// Those of their structured results.
    output_validators: Vec<OnceLock<Compiled>>,
    /// The names under which they may be looked for, made when first needed.
    written: OnceLock<WrittenNames>,
}

/// The checker of a schema, `None` without one, or why it is not usable.
type Compiled = Result<Option<Checker>, SchemaError>;

impl Shelf {
    pub(super) fn new(items: Vec<SelectableItem>, config: &RoutingConfig) -> Result<Option<Self>, RouteError> {
        let Ok(catalog) = Catalog::new(items) else { return Ok(None) };
        let slots = || std::iter::repeat_with(OnceLock::new).take(catalog.len()).collect();
        let (validators, output_validators) = (slots(), slots());
        // Most modes never search, and a start must not wait for what the first search can do.
        let router = Router::deferred(Arc::new(catalog), config.clone())?;
        let (encoded, written) = (OnceLock::new(), OnceLock::new());
        Ok(Some(Self { router, encoded, validators, output_validators, written }))
    }

    /// The router that searches by query: with the encoder where that is ready.
    #[must_use]
    pub fn search(&self) -> &Router {
        self.encoded.get().unwrap_or(&self.router)
    }

    /// Ranks by these observations from now on.
    pub(super) fn learn(&self, observations: &[Observation]) {
        self.router.learn(observations);
        if let Some(encoded) = self.encoded.get() {
            encoded.learn(observations);
        }
    }

    /// Lets the sentence encoder read every item that it has not read before: milliseconds for each. A program without it, and
    /// vectors that cannot be kept, are told in the log and cost nothing but quality.
    pub(super) fn read_by_encoder(&self) {
        let again = Router::build(Arc::clone(self.router.catalog()), self.router.config().clone());
        let (Ok(router), Ok(encoder)) = (again, place::encoder()) else {
            tracing::warn!("the sentence encoder cannot be used; tools are ranked without it");
            return;
        };
        let (router, failed) = place::attach(router, encoder);
        if let Some(error) = failed {
            tracing::warn!(%error, "the vectors of the tools will be computed again at the next start");
        }
        let _ = self.encoded.set(router);
    }

    /// The item called `id`.
    #[must_use]
    pub fn item(&self, id: &str) -> Option<(usize, &SelectableItem)> {
        let catalog = self.router.catalog();
        catalog.position(id).and_then(|at| Some((at, catalog.items().get(at)?)))
    }

    /// Where a name leads that is not an id of an item here.
    pub(crate) fn written(&self, name: &str) -> Written {
        self.written.get_or_init(|| WrittenNames::of(self.router.catalog().items())).find(name)
    }

    /// The ids of the items at these places.
    pub(crate) fn ids(&self, places: &[usize]) -> Vec<&str> {
        let items = self.router.catalog().items();
        places.iter().filter_map(|at| items.get(*at)).map(|item| item.id.as_str()).collect()
    }

    /// The item that is called `name`, by its id or as people and models write it.
    ///
    /// # Errors
    /// The ids among which `name` does not decide or that look like it, and whether it leads to all of them.
    pub(crate) fn named(&self, name: &str) -> Result<Target<'_>, Unnamed<'_>> {
        let target = |at: usize| self.router.catalog().items().get(at).map(|item| Target { shelf: self, at, item });
        if let Some((at, item)) = self.item(name) {
            return Ok(Target { shelf: self, at, item });
        }
        match self.written(name) {
            Written::One(at) => target(at).ok_or(Unnamed::NOTHING),
            Written::Several(places) => Err(Unnamed { ids: self.ids(&places), fits_all: true }),
            Written::None(places) => Err(Unnamed { ids: self.ids(&places), fits_all: false }),
        }
    }

    /// The checker of the arguments of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    pub fn validator(&self, at: usize) -> Result<Option<&Checker>, &SchemaError> {
        self.checker(&self.validators, |item| item.args_schema.as_deref(), at)
    }

    /// The checker of the structured results of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    pub fn output_validator(&self, at: usize) -> Result<Option<&Checker>, &SchemaError> {
        self.checker(&self.output_validators, |item| item.output_schema.as_deref(), at)
    }

    /// The checker in the slot of the item at `at`, made when it is first asked for.
    fn checker<'s>(
        &'s self,
        slots: &'s [OnceLock<Compiled>],
        schema_of: impl Fn(&SelectableItem) -> Option<&Value>,
        at: usize,
    ) -> Result<Option<&'s Checker>, &'s SchemaError> {
        let (Some(slot), Some(item)) = (slots.get(at), self.router.catalog().items().get(at)) else { return Ok(None) };
        slot.get_or_init(|| schema_of(item).map(compiled).transpose()).as_ref().map(Option::as_ref)
    }
}

/// A name that does not lead to one item.
pub(crate) struct Unnamed<'s> {
    /// The ids that it may have meant.
    pub(crate) ids: Vec<&'s str>,
    /// Whether it leads to all of them, and does not only look like them.
    pub(crate) fits_all: bool,
}

impl Unnamed<'_> {
    /// A name that leads nowhere.
    pub(crate) const NOTHING: Self = Self { ids: Vec::new(), fits_all: false };

    /// The failure of a call that named what is not a `kind` (`tool`, `resource`, `prompt`).
    pub(crate) fn error(&self, code: Code, kind: &str, name: &str, mode: Mode) -> GatewayError {
        let find = match mode {
            Mode::Gateway => format!("find one with {kind}_browse"),
            Mode::Proxy | Mode::Passthrough => format!("{kind}s/list has those that there are"),
        };
        let reason = match self.ids.as_slice() {
            [] => format!("no such {kind} is in the catalog now; {find}"),
            ids if self.fits_all => format!("several {kind}s are called so; name one of {}", ids.join(", ")),
            [nearest, ..] => format!("no such {kind} is in the catalog now; the nearest is {nearest}; or {find}"),
        };
        let error = GatewayError::new(code, reason).at(name);
        if self.ids.is_empty() { error } else { error.with("nearest", self.ids.clone()) }
    }
}

/// An item and where it is.
pub(crate) struct Target<'s> {
    /// The shelf that it is on.
    pub(crate) shelf: &'s Shelf,
    /// The position of the item on the shelf.
    pub(crate) at: usize,
    /// The item, as the catalog has it.
    pub(crate) item: &'s SelectableItem,
}

impl Schemas for Target<'_> {
    fn arguments(&self) -> Result<Option<&Checker>, &SchemaError> {
        self.shelf.validator(self.at)
    }

    fn result(&self) -> Result<Option<&Checker>, &SchemaError> {
        self.shelf.output_validator(self.at)
    }
}
