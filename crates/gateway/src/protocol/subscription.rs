//! `subscriptions/listen`: a stream of changes in the stateless protocol, for as long as its request is open.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::protocol::message::{self, Members, Raw, RpcError, check_params};
use crate::protocol::stateless;

/// The key in `_meta` under which a message names the subscription that it belongs to.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Resources that one subscription may name.
const MOST_RESOURCES: usize = 1_000;

/// The changes of which a client wants to hear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Filter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

impl Filter {
    /// Reads the parameters of the request.
    ///
    /// # Errors
    /// They name no filter, or too many resources.
    pub(crate) fn read(params: Option<&Raw>) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            notifications: Filter,
        }
        check_params(params)?;
        let params = params.ok_or_else(|| RpcError::invalid_params("`notifications` is missing"))?;
        let filter = params.read::<Params>().map_err(RpcError::invalid_params)?.notifications;
        match filter.resource_subscriptions.len() {
            0..=MOST_RESOURCES => Ok(filter),
            many => Err(RpcError::invalid_params(format!("{many} resources; at most {MOST_RESOURCES} are allowed"))),
        }
    }

    /// The part of it that a server with these capabilities serves.
    pub(crate) fn supported_by(self, capabilities: &Value) -> Self {
        let has = |capability: &str, feature: &str| capabilities[capability][feature] == Value::Bool(true);
        Self {
            tools_list_changed: self.tools_list_changed && has("tools", "listChanged"),
            prompts_list_changed: self.prompts_list_changed && has("prompts", "listChanged"),
            resources_list_changed: self.resources_list_changed && has("resources", "listChanged"),
            resource_subscriptions: match has("resources", "subscribe") {
                true => self.resource_subscriptions,
                false => Vec::new(),
            },
        }
    }

    /// The part of it that names resources which `may_hear` permits.
    pub(crate) fn permitted(mut self, may_hear: impl Fn(&str) -> bool) -> Self {
        self.resource_subscriptions.retain(|uri| may_hear(uri));
        self
    }

    /// The resources of whose changes the client wants to hear.
    pub(crate) fn resources(&self) -> &[String] {
        &self.resource_subscriptions
    }

    fn accepts(&self, method: &str, uri: Option<&str>) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                uri.is_some_and(|uri| self.resource_subscriptions.iter().any(|wanted| wanted == uri))
            }
            _ => false,
        }
    }
}

/// The resource that a change is about, if it is about one.
pub(crate) fn uri_of<'p>(method: &str, params: Option<&'p Raw>) -> Option<Cow<'p, str>> {
    if method != "notifications/resources/updated" {
        return None;
    }
    // A change of an unnamed resource is nobody's.
    Some(stateless::named("resources/read", params).unwrap_or_default())
}

/// A request that listens.
#[derive(Debug)]
pub(crate) struct Subscription {
    id: Raw,
    filter: Filter,
    out: mpsc::Sender<Bytes>,
}

impl Subscription {
    /// The subscription of the request `id`, whose messages go to `out`.
    pub(crate) fn new(id: Raw, filter: Filter, out: mpsc::Sender<Bytes>) -> Self {
        Self { id, filter, out }
    }

    /// The id of the request.
    pub(crate) fn id(&self) -> &Raw {
        &self.id
    }

    /// Whether it is about this resource.
    pub(crate) fn names(&self, uri: &str) -> bool {
        self.filter.resource_subscriptions.iter().any(|wanted| wanted == uri)
    }

    /// Says what is listened to. A client that does not read misses it.
    pub(crate) fn acknowledge(&self) {
        let params = Raw::of(&json!({
            "_meta": {SUBSCRIPTION_KEY: self.id.to_raw_value()},
            "notifications": self.filter,
        }));
        let _ = self.out.try_send(message::notification("notifications/subscriptions/acknowledged", Some(&params)));
    }

    /// Passes a change on, if it is one that the client wants to hear of and `admit` takes its message.
    pub(crate) fn tell(
        &self,
        method: &str,
        params: Option<&Raw>,
        uri: Option<&str>,
        admit: impl FnOnce(Bytes) -> Option<Bytes>,
    ) {
        if !self.filter.accepts(method, uri) {
            return;
        }
        let members: Members<'_> = params.and_then(|params| params.read().ok()).unwrap_or_default();
        let params = members.with_meta(|meta| meta.set(SUBSCRIPTION_KEY, &self.id));
        let message = admit(message::notification(method, Some(&params)));
        message.into_iter().for_each(|message| drop(self.out.try_send(message)));
    }
}

/// What the request is answered when the server ends the stream.
pub(crate) fn ended(id: &Raw) -> Raw {
    Raw::of(&json!({"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: id.to_raw_value()}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_gets_what_it_asked_for_under_its_id() {
        let params = Raw::of(&json!({"notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": ["a://1"],
        }}));
        let offered = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        let filter = Filter::read(Some(&params)).unwrap().supported_by(&offered);
        let (out, mut messages) = mpsc::channel(16);
        let subscription = Subscription::new(Raw::of("s1"), filter, out);
        subscription.acknowledge();
        for uri in ["a://1", "a://2"] {
            let params = Raw::of(&json!({"uri": uri, "_meta": {"x": 1}}));
            let method = "notifications/resources/updated";
            subscription.tell(method, Some(&params), uri_of(method, Some(&params)).as_deref(), Some);
        }
        for what in ["tools", "prompts", "resources"] {
            subscription.tell(&format!("notifications/{what}/list_changed"), None, None, Some);
        }
        let mut told = String::new();
        while let Ok(message) = messages.try_recv() {
            told.push_str(std::str::from_utf8(&message).unwrap().trim_start_matches(r#"{"jsonrpc":"2.0","method":"#));
            told.push('\n');
        }
        insta::assert_snapshot!(told, @r#"
        "notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s1"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a://1"]}}}
        "notifications/resources/updated","params":{"uri":"a://1","_meta":{"x":1,"io.modelcontextprotocol/subscriptionId":"s1"}}}
        "notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s1"}}}
        "#);
        insta::assert_snapshot!(
            format!("{:?}", ended(&Raw::of(&7))),
            @r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#
        );
    }

    #[test]
    fn parameters_without_a_filter_are_refused() {
        let many: Vec<String> = (0..=MOST_RESOURCES).map(|n| n.to_string()).collect();
        for params in [json!({}), json!({"notifications": {"resourceSubscriptions": many}})] {
            assert!(Filter::read(Some(&Raw::of(&params))).is_err());
        }
    }
}
