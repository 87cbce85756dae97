//! What a server says about itself and lists.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::strict::has_at_most;

/// What a server says about itself when a connection starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ServerInfo {
    /// The protocol version that both sides speak.
    pub version: String,
    /// Its capabilities, by name.
    pub capabilities: Map<String, Value>,
    /// The member `serverInfo`: its name and version.
    pub info: Option<Value>,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The handshake versions that it speaks as well, where both sides speak the stateless protocol.
    pub handshakes: Vec<String>,
}

/// The definitions that a server lists, each as the server sent it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Listing {
    /// The entries of `tools/list`.
    pub tools: Vec<Box<RawValue>>,
    /// The entries of `resources/list`.
    pub resources: Vec<Box<RawValue>>,
    /// The entries of `resources/templates/list`.
    pub templates: Vec<Box<RawValue>>,
    /// The entries of `prompts/list`.
    pub prompts: Vec<Box<RawValue>>,
    /// The number of the connection on which this was read; zero for what was read in another process.
    #[serde(skip)]
    pub(crate) connection: u64,
}

impl Listing {
    /// Whether neither a tool nor a resource nor a prompt is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.resources.is_empty() && self.prompts.is_empty()
    }

    /// Whether the same is listed, byte by byte and in the same order.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { tools, resources, templates, prompts, connection: _ } = self;
        [(tools, &other.tools), (resources, &other.resources), (templates, &other.templates), (prompts, &other.prompts)]
            .into_iter()
            .all(|(ours, theirs)| ours.iter().map(|raw| raw.get()).eq(theirs.iter().map(|raw| raw.get())))
    }
}

/// Bytes of a definition that is read, at most.
const LARGEST_DEFINITION: usize = 1 << 20;

/// Values in a definition that is read, at most: one takes some seventy bytes for as long as it is served.
const MOST_VALUES: usize = 50_000;

/// Why a definition is not read; `None` when it is.
pub(crate) fn too_large(definition: &RawValue) -> Option<String> {
    let text = definition.get();
    if text.len() > LARGEST_DEFINITION {
        return Some(format!("it has {} bytes, over {LARGEST_DEFINITION}", text.len()));
    }
    (!has_at_most(text, MOST_VALUES)).then(|| format!("it has more than {MOST_VALUES} values"))
}

/// The address of a listed resource or template.
#[derive(Debug)]
pub(crate) enum Address {
    /// The URI of a resource.
    Resource(String),
    /// The URI template of a template.
    Template(String),
}

/// The address of an entry of `resources/list` or `resources/templates/list`; `None` when it has neither a URI nor a
/// template, or both.
pub(crate) fn address_of(entry: &RawValue) -> Option<Address> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        uri: Option<String>,
        uri_template: Option<String>,
    }
    match serde_json::from_str(entry.get()).ok()? {
        Entry { uri: Some(uri), uri_template: None } => Some(Address::Resource(uri)),
        Entry { uri: None, uri_template: Some(template) } => Some(Address::Template(template)),
        _ => None,
    }
}
