//! The items of one kind, with their index, and the schemas of their arguments and results.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::guard::call::Schemas;
use crate::guard::schema::{Checker, SchemaError, compiled};
use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_routing::semantic::model::place;
use contextweaver_routing::{RouteError, Router, RoutingConfig};

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
        Ok(Some(Self { router, encoded: OnceLock::new(), validators, output_validators }))
    }

    /// The router that searches by query: with the encoder where that is ready.
    #[must_use]
    pub fn search(&self) -> &Router {
        self.encoded.get().unwrap_or(&self.router)
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
            tracing::warn!(%error, "the vectors of the tools are made again at the next start");
        }
        let _ = self.encoded.set(router);
    }

    /// The item called `id`.
    #[must_use]
    pub fn item(&self, id: &str) -> Option<(usize, &SelectableItem)> {
        let catalog = self.router.catalog();
        catalog.position(id).and_then(|at| Some((at, catalog.items().get(at)?)))
    }

    /// The checker of the arguments of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    pub fn validator(&self, at: usize) -> Result<Option<&Checker>, &SchemaError> {
        let item = self.router.catalog().items().get(at);
        once(self.validators.get(at), item.and_then(|item| item.args_schema.as_deref()))
    }

    /// The checker of the structured results of the item at `at`; `None` when it has no schema.
    ///
    /// # Errors
    /// Why its schema cannot be used.
    pub fn output_validator(&self, at: usize) -> Result<Option<&Checker>, &SchemaError> {
        let item = self.router.catalog().items().get(at);
        once(self.output_validators.get(at), item.and_then(|item| item.output_schema.as_deref()))
    }
}

/// The checker in `slot`, made when it is first asked for.
fn once<'s>(
    slot: Option<&'s OnceLock<Compiled>>,
    schema: Option<&Value>,
) -> Result<Option<&'s Checker>, &'s SchemaError> {
    let Some(slot) = slot else { return Ok(None) };
    slot.get_or_init(|| schema.map(compiled).transpose()).as_ref().map(Option::as_ref)
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
