//! All upstreams of a gateway.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::client::Upstream;
use super::config::UpstreamConfig;
use super::fault::Fault;
use super::mailbox::EventSender;
use crate::common::error::{Code, GatewayError};
use crate::protocol::listing::Listing;

/// The name of what answers for items that name no server.
const UNNAMED: &str = "catalog";

/// The upstreams of a gateway, by name.
#[derive(Debug)]
pub struct Upstreams {
    by_name: BTreeMap<String, Arc<Upstream>>,
    /// What answers for the items of a catalog from a file, by their server; `None` for those that name none.
    answering: BTreeMap<Option<String>, Arc<Upstream>>,
    /// Whether everything passes to a single upstream unchanged.
    passes_through: bool,
}

impl Upstreams {
    /// The upstreams that `configs` describes, not connected yet. Their notifications go to `events`. With
    /// `passes_through` a single upstream gets every request unchanged. Those of `before` that are configured alike go on.
    /// `answering` are not servers, and list nothing: they answer for the items of a catalog from a file, by their server.
    pub(crate) fn new(
        configs: &BTreeMap<String, UpstreamConfig>,
        answering: BTreeMap<Option<String>, UpstreamConfig>,
        passes_through: bool,
        events: &EventSender,
        before: Option<&Self>,
    ) -> Self {
        let upstream = |(name, config): (&String, &UpstreamConfig)| {
            let same = before.and_then(|before| before.get(name)).filter(|same| same.config() == config);
            let made = || Arc::new(Upstream::new(name, config.clone(), events.clone()));
            (name.clone(), same.map_or_else(made, Arc::clone))
        };
        let by_name: BTreeMap<_, _> = configs.iter().map(upstream).collect();
        let answering = answering.into_iter().map(|(server, config)| {
            let name = server.clone().unwrap_or_else(|| UNNAMED.to_owned());
            (server, Arc::new(Upstream::new(&name, config, events.clone())))
        });
        Self { passes_through: passes_through && by_name.len() == 1, by_name, answering: answering.collect() }
    }

    /// The upstreams in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.by_name.values()
    }

    /// The upstream called `name` in the configuration.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.by_name.get(name)
    }

    /// Whether this very upstream is one of them, and not just one of its name.
    pub(crate) fn has(&self, upstream: &Arc<Upstream>) -> bool {
        self.get(upstream.name()).is_some_and(|own| Arc::ptr_eq(own, upstream))
    }

    /// The upstream that gets every request unchanged, if there is one.
    pub(crate) fn only(&self) -> Option<&Arc<Upstream>> {
        self.by_name.values().next().filter(|_| self.passes_through)
    }

    /// The upstream whose items carry `server`, or what answers for it.
    pub(crate) fn of_server(&self, server: Option<&str>) -> Option<&Arc<Upstream>> {
        let of_name = |server| self.by_name.values().find(|upstream| upstream.server_name() == server);
        // Most gateways have none, and need no copy of the name.
        let answering =
            || if self.answering.is_empty() { None } else { self.answering.get(&server.map(str::to_owned)) };
        server.and_then(of_name).or_else(answering)
    }

    /// The upstream of the item called `id`, whose server is `server`.
    ///
    /// # Errors
    /// There is none: the catalog comes from a file.
    pub(crate) fn of_item(&self, server: Option<&str>, id: &str) -> Result<&Upstream, GatewayError> {
        let upstream = self.of_server(server).map(|upstream| &**upstream);
        upstream.ok_or_else(|| {
            let reason = "no upstream is configured for it: the catalog is served for browsing only; to answer for it, name a \
                          file of `answers`";
            GatewayError::new(Code::UpstreamUnavailable, reason).at(id).for_good()
        })
    }

    /// Ends the connections of all upstreams.
    pub(crate) async fn close(&self) {
        let mut closing = tokio::task::JoinSet::new();
        for upstream in self.by_name.values().chain(self.answering.values()) {
            let upstream = Arc::clone(upstream);
            closing.spawn(async move { upstream.close().await });
        }
        closing.join_all().await;
    }
}

/// What upstreams list, or why it could not be read, by the server name of their items.
pub(crate) type Listed = BTreeMap<String, Result<Listing, Fault>>;

/// Reads the lists of these upstreams, side by side; each has `timeout` for all of its lists.
pub(crate) async fn list_all(upstreams: impl Iterator<Item = &Arc<Upstream>>, timeout: Duration) -> Listed {
    let mut listing = tokio::task::JoinSet::new();
    for upstream in upstreams {
        let upstream = Arc::clone(upstream);
        listing.spawn(async move {
            let listed = tokio::time::timeout(timeout, upstream.list(timeout)).await;
            (upstream.server_name().to_owned(), listed.unwrap_or(Err(Fault::Timeout(timeout))))
        });
    }
    listing.join_all().await.into_iter().collect()
}
