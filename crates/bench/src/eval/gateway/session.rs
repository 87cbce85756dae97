//! Recorded sessions, played again through the gateway: the calls of the recording are made through `tool_execute`, and
//! the servers answer what they answered then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::exchange::{Ledger, failure};
use super::record::{Refusal, SessionFacts};
use super::stage::{Called, Lists, Server, Stage};
use super::surface::{direct_tokens, listed_tokens};
use contextweaver_gateway::wire::Raw;
use contextweaver_gateway::{LocalClient, Mode, Shelf};

/// A recording; what it says of times and notifications is not needed here.
#[derive(Debug, Deserialize)]
pub struct Recording {
    /// The servers by the names that the calls use.
    pub servers: BTreeMap<String, RecordedServer>,
    /// In their order.
    pub calls: Vec<RecordedCall>,
}

/// A server of a recording.
#[derive(Debug, Deserialize)]
pub struct RecordedServer {
    /// Its package, which names the file of its lists.
    pub package: String,
}

impl RecordedServer {
    /// The file of its lists in the folder of catalogs.
    #[must_use]
    pub fn catalog(&self, catalogs: &Path) -> PathBuf {
        catalogs.join(format!("{}.json", self.package.trim_start_matches('@').replace('/', "__")))
    }
}

/// A call of a recording.
#[derive(Debug, Deserialize)]
pub struct RecordedCall {
    seq: usize,
    server: String,
    tool: String,
    arguments: Value,
    result: Value,
}

impl Recording {
    /// The tools that are called on a server, in the order of their first calls.
    fn called(&self, server: &str) -> Lists {
        let mut tools: Vec<Value> = Vec::new();
        for call in self.calls.iter().filter(|call| call.server == server) {
            let tool = json!({"name": call.tool, "inputSchema": {"type": "object"}});
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        Lists { tools, ..Lists::default() }
    }
}

/// The id of what `server` calls `name`, among the items of one kind.
#[must_use]
pub fn item_id(shelf: Option<&Shelf>, server: &str, name: &str) -> Option<String> {
    let items = shelf?.router.catalog().items();
    let found = items.iter().find(|item| item.server.as_deref() == Some(server) && item.name == name)?;
    Some(found.id.clone())
}

/// Plays a recording whose servers list `lists`.
///
/// # Errors
/// The gateway did not start, or answered with an error of the protocol.
pub fn facts(recording: &Recording, lists: &BTreeMap<String, Lists>) -> Result<SessionFacts, String> {
    let server = |name: &String| {
        let lists = lists.get(name).cloned().unwrap_or_else(|| recording.called(name));
        Server { name: name.clone(), lists }
    };
    let servers: Vec<Server> = recording.servers.keys().map(server).collect();
    let stage = Stage::default();
    let client = LocalClient::start(stage.gateway(&servers, Mode::Gateway)).map_err(|error| error.to_string())?;
    let snapshot = client.gateway().catalog();
    let (mut ledger, mut altered, mut refused) = (Ledger::default(), 0, Vec::new());
    for call in &recording.calls {
        let name = format!("{}:{}", call.server, call.tool);
        let id = item_id(snapshot.tools.as_ref(), &call.server, &call.tool).unwrap_or_else(|| name.clone());
        let result = Raw::of(&call.result);
        stage.lay(Ok(result.clone()));
        let arguments = json!({"tool_id": id, "args": call.arguments});
        let answer = client.call("tool_execute", &arguments).map_err(|error| error.message)?;
        match stage.asked() {
            Some(asked) => {
                let arguments = call.arguments.to_string();
                let same = asked
                    .params
                    .read::<Called<'_>>()
                    .is_ok_and(|called| called.name == call.tool && called.arguments.get() == arguments);
                altered += usize::from(!same);
                ledger.add(&result, &answer);
            }
            None => {
                let (code, message) = failure(&answer).unwrap_or_default();
                refused.push(Refusal { call: call.seq, tool: name, code, message });
            }
        }
    }
    Ok(SessionFacts {
        calls: recording.calls.len(),
        altered,
        refused,
        unlisted: recording.servers.keys().filter(|name| !lists.contains_key(*name)).cloned().collect(),
        direct_tokens: direct_tokens(&servers),
        gateway_tokens: listed_tokens(&client)?,
        injected: ledger.close(&client)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_answered_from_the_recording_and_wrong_ones_are_told_apart() {
        let large = "row 7 of a table\n".repeat(2_000);
        let recording: Recording = serde_json::from_value(json!({
            "servers": {"up": {"package": "@org/up"}},
            "calls": [
                {"seq": 1, "server": "up", "tool": "read", "arguments": {"path": "a", "n": 1.0}, "result": {"content": [{"type": "text", "text": "small"}]}},
                {"seq": 2, "server": "up", "tool": "read", "arguments": {"path": "b"}, "result": {"content": [{"type": "text", "text": large}]}},
                {"seq": 3, "server": "up", "tool": "read", "arguments": {}, "result": {"content": [], "isError": true}},
                {"seq": 4, "server": "up", "tool": "gone", "arguments": {}, "result": {"content": [], "isError": true}},
            ],
        }))
        .unwrap();
        assert_eq!(recording.servers["up"].catalog(Path::new("c")), Path::new("c/org__up.json"));
        let tool = json!({"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}});
        let lists = [("up".to_owned(), Lists { tools: vec![tool], ..Lists::default() })].into();
        let facts = facts(&recording, &lists).unwrap();
        assert_eq!(facts.unlisted, Vec::<String>::new());
        let codes: Vec<(usize, &str)> = facts.refused.iter().map(|one| (one.call, one.code.as_str())).collect();
        assert_eq!(codes, [(3, "ARGS_INVALID"), (4, "HYDRATE_FAILED")]);
        assert_eq!((facts.calls, facts.altered), (4, 0));
        let injected = &facts.injected;
        assert!(injected.answer_tokens < injected.raw_tokens / 4, "{injected:?}");
        assert_eq!((injected.artifacts, injected.recovered, injected.viewed), (1, 1, 1));
        let unlisted = super::facts(&recording, &BTreeMap::new()).unwrap();
        assert_eq!((unlisted.unlisted.as_slice(), unlisted.refused.len()), (["up".to_owned()].as_slice(), 0));
    }
}
