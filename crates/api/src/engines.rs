//! What requests are answered with: the catalog that was given at the start, and the index of the catalogs that came last.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use contextweaver_context::ContextConfig;
use contextweaver_context::hooks::Hooks;
use contextweaver_context::memory::MemorySource;
use contextweaver_core::catalog::Catalog;
use contextweaver_core::sync::lock;
use contextweaver_core::text::sha256_hex;
use contextweaver_routing::semantic::model::{Encoder, Model, VectorCache};
use contextweaver_routing::{Router, RoutingConfig};
use serde_json::Value;
use serde_json::value::RawValue;

use super::operations::{OPERATIONS, Operation};
use super::problem::{Kind, Problem};

/// Catalogs of requests whose index is kept.
const KEPT: usize = 4;

/// Tools of a catalog of a request that the encoder ranks, at most: it takes milliseconds for each.
const MOST_ENCODED: usize = 1_000;

/// How long one request waits for hooks altogether: less than the 30 s that a request may take, so that the answer can
/// still say which hook failed.
const HOOKS_PATIENCE: Duration = Duration::from_secs(20);

/// The engines. Shared by all requests; immutable but for the index of catalogs that came with requests.
pub struct Engines {
    default: Option<Arc<Router>>,
    routing: RoutingConfig,
    pub(crate) context: ContextConfig,
    encoder: Option<Arc<dyn Encoder>>,
    pub(crate) memory: Option<Arc<dyn MemorySource>>,
    hooks: Hooks,
    /// By the digest of their text, the one that was used last at the end.
    kept: Mutex<Vec<(String, Arc<Router>)>>,
}

impl Engines {
    /// Engines with these configurations. `default` answers requests that bring no catalog.
    #[must_use]
    pub fn new(default: Option<Router>, routing: RoutingConfig, context: ContextConfig) -> Self {
        let (encoder, memory, hooks, kept) = (None, None, Hooks::default(), Mutex::default());
        Self { default: default.map(Arc::new), routing, context, encoder, memory, hooks, kept }
    }

    /// Adds a memory, which requests that ask for it search.
    #[must_use]
    pub fn with_memory(self, memory: Arc<dyn MemorySource>) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// Adds the hooks of the context configuration.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Adds the sentence encoder to the routers of the catalogs that requests bring, of up to 1,000 tools. Their vectors are not
    /// kept on disk.
    #[must_use]
    pub fn with_encoder(self, encoder: Arc<dyn Encoder>) -> Self {
        Self { encoder: Some(encoder), ..self }
    }

    /// The operation at a path.
    #[must_use]
    pub fn at(path: &str) -> Option<&'static Operation> {
        OPERATIONS.iter().find(|operation| operation.path == path)
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Problem`], which says whose fault it is.
    pub fn answer(&self, operation: &Operation, body: &[u8]) -> Result<Value, Problem> {
        (operation.answer)(self, body)
    }

    /// The hooks for one request.
    pub(crate) fn hooks(&self) -> Hooks {
        self.hooks.for_request(HOOKS_PATIENCE)
    }

    /// The router of the catalog that a request brought, or the one of the start.
    pub(crate) fn router(&self, catalog: Option<&RawValue>) -> Result<Arc<Router>, Problem> {
        let Some(catalog) = catalog else {
            let missing =
                "`catalog` is missing, and the server was started without one (`contextweaver serve --catalog`)";
            return self.default.clone().ok_or_else(|| Problem::bad(missing));
        };
        let digest = sha256_hex(catalog.get().as_bytes());
        let mut kept = lock(&self.kept);
        if let Some(at) = kept.iter().position(|(known, _)| *known == digest) {
            let found = kept.remove(at);
            let router = Arc::clone(&found.1);
            kept.push(found);
            return Ok(router);
        }
        drop(kept);
        // Others are not kept waiting while it is built; two requests with one catalog at the same time both build it.
        let refused = |error: &dyn std::error::Error| Problem::of_member("catalog", error);
        let catalog = Catalog::from_json(catalog.get()).map_err(|error| refused(&error))?;
        let router = Router::build(Arc::new(catalog), self.routing.clone()).map_err(|error| refused(&error))?;
        let router = match &self.encoder {
            None => router,
            Some(encoder) if router.catalog().items().len() <= MOST_ENCODED => {
                let model = Model::build(Arc::clone(encoder), router.catalog(), &mut VectorCache::default());
                router.with_model(model)
            }
            Some(_) => {
                let message = format!(
                    "`catalog`: the encoder ranks up to {MOST_ENCODED} tools; start the server with larger catalogs"
                );
                return Err(Problem { kind: Kind::Unprocessable, message });
            }
        };
        let router = Arc::new(router);
        let mut kept = lock(&self.kept);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((digest, Arc::clone(&router)));
        Ok(router)
    }
}

impl std::fmt::Debug for Engines {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engines").field("default", &self.default.is_some()).finish_non_exhaustive()
    }
}
