//! Resources and prompts of several upstreams as one server's, for the modes that show everything.
//!
//! A resource belongs to the upstream that lists its URI, or whose template has it; where two list one URI, the first
//! by name has it. A URI that neither says anything about goes to the upstream that alone uses its scheme: tools link
//! to resources that no list names. Prompts go by published names as tools do. What is asked and answered stays as it
//! is beside the name, and passes the guards that calls pass: the caller's profile, policy, quotas, approvals, cleaning.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::config::Mode;
use super::diagnostics::Trace;
use super::error::GatewayError;
use super::execute::{Along, checked};
use super::guard::consent::{Agreed, Passage};
use super::guard::strict;
use super::hub::Gateway;
use super::protocol::pass;
use super::question::is_question;
use super::session::{Caller, Session};
use super::snapshot::Snapshot;
use super::surface::MetaTool;
use super::upstream::{Call, Listing, Upstream};
use super::wire::{INVALID_PARAMS, Members, Outcome, Raw, RpcError};
use crate::catalog::SelectableItem;

/// There is no such resource, in the protocols with a handshake.
const RESOURCE_NOT_FOUND: i64 = -32_002;

/// Where a listed resource is.
#[derive(Debug)]
pub(super) enum Address {
    /// At this URI.
    Resource(String),
    /// At the URIs of this template.
    Template(String),
}

/// Where a resource or template that a server lists is; `None` for what has no address, or two.
pub(super) fn address_of(raw: &RawValue) -> Option<Address> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        uri: Option<String>,
        uri_template: Option<String>,
    }
    match serde_json::from_str(raw.get()).ok()? {
        Entry { uri: Some(uri), uri_template: None } => Some(Address::Resource(uri)),
        Entry { uri: None, uri_template: Some(template) } => Some(Address::Template(template)),
        _ => None,
    }
}

/// Whose the resources are.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// The server of each URI.
    servers: BTreeMap<String, String>,
    /// The templates with their servers.
    patterns: Vec<(Pattern, String)>,
    /// The server of each scheme that only one uses.
    schemes: BTreeMap<String, Option<String>>,
    resources: Vec<Box<RawValue>>,
    templates: Vec<Box<RawValue>>,
}

impl Routes {
    /// The routes to what these servers list.
    pub(super) fn new<'l>(listings: impl Iterator<Item = (&'l str, &'l Listing)>) -> Self {
        let mut routes = Self::default();
        for (server, listing) in listings {
            for raw in listing.resources.iter().chain(&listing.templates) {
                match address_of(raw) {
                    Some(Address::Resource(uri)) => routes.add_resource(server, uri, raw),
                    Some(Address::Template(template)) => routes.add_template(server, &template, raw),
                    None => tracing::debug!(server, "a resource without an address is not listed"),
                }
            }
        }
        routes
    }

    fn add_resource(&mut self, server: &str, uri: String, raw: &RawValue) {
        self.add_scheme(server, &uri);
        if let std::collections::btree_map::Entry::Vacant(free) = self.servers.entry(uri) {
            free.insert(server.to_owned());
            self.resources.push(raw.to_owned());
        }
    }

    fn add_template(&mut self, server: &str, template: &str, raw: &RawValue) {
        self.add_scheme(server, template);
        let pattern = Pattern::new(template);
        if !self.patterns.iter().any(|(other, _)| *other == pattern) {
            self.patterns.push((pattern, server.to_owned()));
            self.templates.push(raw.to_owned());
        }
    }

    fn add_scheme(&mut self, server: &str, uri: &str) {
        if let Some(scheme) = scheme_of(uri) {
            let only = self.schemes.entry(scheme.to_owned()).or_insert_with(|| Some(server.to_owned()));
            if only.as_deref() != Some(server) {
                *only = None;
            }
        }
    }

    /// The server that a URI belongs to.
    pub(super) fn server_of_uri(&self, uri: &str) -> Option<&str> {
        let listed = || self.servers.get(uri);
        let by_template = || {
            let fitting = self.patterns.iter().filter(|(pattern, _)| pattern.matches(uri));
            // Of several the most literal; the first of equals.
            fitting.rev().max_by_key(|(pattern, _)| pattern.literals()).map(|(_, server)| server)
        };
        let by_scheme = || self.schemes.get(scheme_of(uri)?)?.as_ref();
        listed().or_else(by_template).or_else(by_scheme).map(String::as_str)
    }

    /// The server of a template as it is listed.
    fn server_of_template(&self, template: &str) -> Option<&str> {
        let pattern = Pattern::new(template);
        self.patterns.iter().find(|(other, _)| *other == pattern).map(|(_, server)| server.as_str())
    }

    /// The resources as they are listed, each URI once.
    pub(super) fn resources(&self) -> &[Box<RawValue>] {
        &self.resources
    }

    /// The templates as they are listed, each once.
    pub(super) fn templates(&self) -> &[Box<RawValue>] {
        &self.templates
    }
}

fn scheme_of(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    (!scheme.is_empty() && !scheme.contains('{')).then_some(scheme)
}

/// A URI template (RFC 6570), as far as it tells whose a URI is: the texts between its expressions.
#[derive(Debug, PartialEq, Eq)]
struct Pattern {
    first: String,
    /// The texts behind each expression.
    rest: Vec<String>,
}

impl Pattern {
    fn new(template: &str) -> Self {
        let mut pieces = template.split('{');
        let first = pieces.next().unwrap_or_default().to_owned();
        let rest = pieces.map(|piece| piece.split_once('}').map_or("", |(_, text)| text).to_owned()).collect();
        Self { first, rest }
    }

    fn literals(&self) -> usize {
        self.first.len() + self.rest.iter().map(String::len).sum::<usize>()
    }

    fn matches(&self, uri: &str) -> bool {
        let Some(mut left) = uri.strip_prefix(self.first.as_str()) else { return false };
        let Some((last, between)) = self.rest.split_last() else { return left.is_empty() };
        for text in between {
            let Some((_, behind)) = left.split_once(text.as_str()) else { return false };
            left = behind;
        }
        left.ends_with(last.as_str())
    }
}

#[derive(Deserialize, Default)]
struct ListParams {
    cursor: Option<String>,
}

impl Gateway {
    /// Answers what belongs to lists, resources and prompts of all upstreams together.
    pub(super) async fn merged(&self, caller: &Caller, method: &str, params: Option<&Raw>) -> Outcome {
        let snapshot = self.snapshot_for(caller);
        let shows_all = self.config.mode != Mode::Gateway;
        let lists = snapshot.lists(self.config.mode);
        let pages = match method {
            "tools/list" => &lists.tools,
            "resources/list" if shows_all => &lists.resources,
            "resources/templates/list" if shows_all => &lists.templates,
            "prompts/list" if shows_all => &lists.prompts,
            "resources/read" | "prompts/get" | "completion/complete" if shows_all => {
                return self.routed(caller, &snapshot, method, params).await;
            }
            _ => return Err(RpcError::method_not_found(method)),
        };
        let read = params.map(Raw::read::<ListParams>).transpose().map_err(RpcError::invalid_params)?;
        pages.answer(read.and_then(|params| params.cursor).as_deref())
    }

    /// Passes a request on to the upstream whose resource or prompt it names, through the guards of calls.
    async fn routed(&self, caller: &Caller, snapshot: &Snapshot, method: &str, params: Option<&Raw>) -> Outcome {
        let params = params.ok_or_else(|| RpcError::invalid_params("there are none"))?;
        // What goes on is the text: it must say what is guarded, in whatever parser.
        let text = std::str::from_utf8(params.bytes()).map_err(RpcError::invalid_params)?;
        strict::check(text).map_err(RpcError::invalid_params)?;
        let mut members: Members<'_> = params.read().map_err(RpcError::invalid_params)?;
        let named = match method {
            "resources/read" => self.named_resource(caller, snapshot, &text_of(&members, "uri")?)?,
            "prompts/get" => self.named_prompt(snapshot, &text_of(&members, "name")?, members.get("arguments"))?,
            _ => self.named_reference(caller, snapshot, &mut members)?,
        };
        if method == "prompts/get" {
            members.set("name", &Raw::of(&named.item.name));
        }
        let along = Along {
            progress: None,
            input_responses: members.get("inputResponses").map(Raw::of),
            request_state: members.get("requestState").map(Raw::of),
            trace: Trace::default(),
        };
        let refuse = |error: GatewayError| {
            tracing::info!(method, %error, "refused");
            error.to_rpc()
        };
        let admission = self.guards.gate(caller, named.tool, Some(&named.item)).map_err(refuse)?;
        let passage = if method == "completion/complete" {
            let agreed = self.guards.agree_unasked(caller, named.tool, &named.item, &admission).await;
            agreed.map(|()| Passage::unasked(along)).map_err(refuse)?
        } else {
            let called = (named.tool, &*named.item);
            match self.guards.agree(caller, called, &admission, &named.asked, &along).await.map_err(refuse)? {
                Agreed::Go(passage) => passage,
                Agreed::Ask(question) => return Ok(question),
            }
        };
        members.remove("inputResponses");
        members.remove("requestState");
        let params = passage.along.params(&Raw::of(&members));
        let result = pass(named.upstream, caller, self.questions(), method, Some(&params)).await?;
        if is_question(&result) {
            return self.asked_back(caller, named.upstream.name(), &named.item.id, &passage, &result).map_err(refuse);
        }
        Ok(self.guards.passed(result))
    }

    fn named_resource<'s>(&'s self, caller: &Caller, snapshot: &'s Snapshot, uri: &str) -> Result<Named<'s>, RpcError> {
        let item = snapshot.resource_at(uri).ok_or_else(|| no_resource(uri, caller.is_modern()))?;
        let upstream = self.owner(item.server.as_deref()).ok_or_else(|| no_resource(uri, caller.is_modern()))?;
        Ok(Named { upstream, tool: MetaTool::ResourceRead, item, asked: json!({ "uri": uri }) })
    }

    fn named_prompt<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        published: &str,
        arguments: Option<&RawValue>,
    ) -> Result<Named<'s>, RpcError> {
        let target = snapshot.prompt(published).ok_or_else(|| no_prompt(published))?;
        let upstream = self.owner(target.item.server.as_deref()).ok_or_else(|| no_prompt(published))?;
        let asked = checked(&target, arguments, false).map_err(|error| error.to_rpc())?.value;
        Ok(Named { upstream, tool: MetaTool::PromptGet, item: Cow::Borrowed(target.item), asked })
    }

    /// What a completion is for; its reference becomes the upstream's own.
    fn named_reference<'s>(
        &'s self,
        caller: &Caller,
        snapshot: &'s Snapshot,
        members: &mut Members<'_>,
    ) -> Result<Named<'s>, RpcError> {
        let reference =
            members.get("ref").ok_or_else(|| RpcError::invalid_params("`ref` is missing"))?.get().to_owned();
        let mut reference: Members<'_> = serde_json::from_str(&reference).map_err(RpcError::invalid_params)?;
        let asked = Value::Null;
        let named = match text_of(&reference, "type")?.as_str() {
            "ref/prompt" => {
                let published = text_of(&reference, "name")?;
                let item = snapshot.prompt(&published).ok_or_else(|| no_prompt(&published))?.item;
                let upstream = self.owner(item.server.as_deref()).ok_or_else(|| no_prompt(&published))?;
                reference.set("name", &Raw::of(&item.name));
                Named { upstream, tool: MetaTool::PromptGet, item: Cow::Borrowed(item), asked }
            }
            "ref/resource" => {
                let uri = text_of(&reference, "uri")?;
                let template = snapshot.routes().server_of_template(&uri).map(|server| snapshot.unlisted(server, &uri));
                match template.and_then(|item| Some((self.owner(item.server.as_deref())?, item))) {
                    Some((upstream, item)) => {
                        Named { upstream, tool: MetaTool::ResourceRead, item: Cow::Owned(item), asked }
                    }
                    None => self.named_resource(caller, snapshot, &uri)?,
                }
            }
            other => return Err(RpcError::invalid_params(format!("`ref.type` is `{other}`"))),
        };
        members.set("ref", &Raw::of(&reference));
        Ok(named)
    }

    /// The upstream of the resource that is to be watched, or not any more; watching is guarded as reading is.
    pub(super) async fn watched(
        &self,
        caller: &Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<&Upstream, RpcError> {
        #[derive(Deserialize)]
        struct Subject {
            uri: String,
        }
        if let Some(upstream) = self.only_upstream() {
            return Ok(upstream);
        }
        if self.config.mode == Mode::Gateway {
            return Err(RpcError::method_not_found(method));
        }
        let params = params.ok_or_else(|| RpcError::invalid_params("there are none"))?;
        let Subject { uri } = params.read().map_err(RpcError::invalid_params)?;
        let snapshot = self.snapshot_for(caller);
        let item = snapshot.resource_at(&uri).ok_or_else(|| no_resource(&uri, caller.is_modern()))?;
        if method == "resources/subscribe" {
            let read = (MetaTool::ResourceRead, &*item);
            let admission = self.guards.gate(caller, read.0, Some(&item)).map_err(|error| error.to_rpc())?;
            let along = Along::default();
            let agreed = self.guards.agree(caller, read, &admission, &json!({ "uri": uri }), &along).await;
            // The method is of the era in which a person is asked at once.
            agreed.map_err(|error| error.to_rpc())?;
        }
        self.owner(item.server.as_deref()).ok_or_else(|| no_resource(&uri, caller.is_modern()))
    }

    /// Whether the caller may hear of changes of the resource without anybody being asked.
    pub(super) fn may_hear_of(&self, caller: &Caller, uri: &str) -> bool {
        if self.only_upstream().is_some() {
            return true;
        }
        let snapshot = self.snapshot_for(caller);
        let admitted =
            snapshot.resource_at(uri).map(|item| self.guards.gate(caller, MetaTool::ResourceRead, Some(&item)));
        admitted.is_some_and(|admitted| admitted.is_ok_and(|admission| admission.is_free()))
    }

    /// Has a resource watched for a client that listens to a stream of changes.
    pub(super) async fn watch(&self, caller: &Caller, uri: &str) -> Result<(), RpcError> {
        const METHOD: &str = "resources/subscribe";
        let params = Raw::of(&json!({ "uri": uri }));
        let upstream = self.watched(caller, METHOD, Some(&params)).await?;
        let pass = || pass(upstream, caller, self.questions(), METHOD, Some(&params));
        self.subscriptions.pass(caller.session(), METHOD, Some(&params), pass).await.map(drop)
    }

    /// Ends that. Upstreams hear of the last end in their own time.
    pub(super) fn unwatch(&self, session: &Arc<Session>, uris: Vec<String>) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        for uri in uris.into_iter().filter(|uri| self.subscriptions.remove(uri, session)) {
            let upstream = match self.only_upstream() {
                Some(_) => self.upstreams().values().next(),
                None => self.upstream_of(self.snapshot().routes().server_of_uri(&uri)),
            };
            let Some(upstream) = upstream.cloned() else { continue };
            runtime.spawn(async move {
                let params = Raw::of(&json!({ "uri": uri }));
                let ended = upstream.request(Call::own("resources/unsubscribe", Some(&params))).await;
                if let Err(fault) = ended {
                    tracing::debug!(upstream = upstream.name(), %fault, "a resource is still watched");
                }
            });
        }
    }

    fn owner(&self, server: Option<&str>) -> Option<&Upstream> {
        self.upstream_of(server).map(|upstream| &**upstream)
    }

    /// What the gateway offers, where it does not speak for a single upstream.
    pub(super) fn merged_capabilities(&self) -> Value {
        let mut offered = json!({"tools": {"listChanged": true}});
        let snapshot = self.snapshot();
        if self.config.mode == Mode::Gateway {
            return offered;
        }
        let any = |can: fn(&Map<String, Value>) -> bool| {
            self.upstreams().values().any(|upstream| upstream.server().is_some_and(|server| can(&server.capabilities)))
        };
        let routes = snapshot.routes();
        if !routes.resources().is_empty() || !routes.templates().is_empty() {
            let subscribes = any(|can| can.get("resources").is_some_and(|resources| resources["subscribe"] == true));
            offered["resources"] = json!({"listChanged": true, "subscribe": subscribes});
        }
        if snapshot.prompts.is_some() {
            offered["prompts"] = json!({"listChanged": true});
        }
        if any(|can| can.contains_key("completions")) {
            offered["completions"] = json!({});
        }
        offered
    }
}

/// What a request names, and by which rules it is guarded.
struct Named<'s> {
    upstream: &'s Upstream,
    tool: MetaTool,
    item: Cow<'s, SelectableItem>,
    /// What a person who approves it is shown.
    asked: Value,
}

fn text_of(members: &Members<'_>, key: &str) -> Result<String, RpcError> {
    let value = members.get(key).map(|value| serde_json::from_str::<String>(value.get()));
    let value = value.transpose().map_err(RpcError::invalid_params)?;
    value.ok_or_else(|| RpcError::invalid_params(format!("`{key}` is missing")))
}

fn no_prompt(published: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("unknown prompt: {published}"))
}

fn no_resource(uri: &str, modern: bool) -> RpcError {
    let code = if modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
    let mut error = RpcError::new(code, format!("no upstream has the resource `{uri}`"));
    error.data = serde_json::value::to_raw_value(&json!({ "uri": uri })).ok();
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(resources: &[&str], templates: &[&str]) -> Listing {
        let raw = |key: &str, texts: &[&str]| -> Vec<Box<RawValue>> {
            texts.iter().map(|text| serde_json::value::to_raw_value(&json!({ key: text })).unwrap()).collect()
        };
        Listing { resources: raw("uri", resources), templates: raw("uriTemplate", templates), ..Listing::default() }
    }

    #[test]
    fn a_uri_belongs_to_who_lists_it_then_to_the_closest_template_then_to_the_only_user_of_its_scheme() {
        let (a, b) = (
            listing(&["file:///a", "x:1", "only-a:1"], &["file:///logs/{day}", "x:{+any}"]),
            listing(&["file:///b", "x:1"], &["file:///logs/{day}/errors{?n}", "x:{+any}", "y://{host}/{id}/v"]),
        );
        let routes = Routes::new([("a", &a), ("b", &b)].into_iter());
        assert_eq!((routes.resources().len(), routes.templates().len()), (4, 4));
        let cases = [
            ("file:///a", Some("a")),
            ("file:///b", Some("b")),
            ("x:1", Some("a")),
            ("x:2", Some("a")),
            ("file:///logs/monday", Some("a")),
            ("file:///logs/monday/errors", Some("b")),
            ("y://h/7/v", Some("b")),
            ("y://h/7/w", Some("b")),
            ("only-a:2", Some("a")),
            ("file:///c", None),
            ("z:1", None),
            ("", None),
        ];
        for (uri, expected) in cases {
            assert_eq!(routes.server_of_uri(uri), expected, "{uri}");
        }
        assert_eq!(routes.server_of_template("file:///logs/{day}/errors{?n}"), Some("b"));
    }
}
