//! The lists of one server as a file that catalogs are loaded from.
//!
//! Definitions stand in the file byte for byte as the server sent them, one a line, so that two captures can be compared
//! with the tools that compare texts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use crate::protocol::listing::{Listing, ServerInfo};
use crate::upstream::client::Upstream;
use crate::upstream::config::UpstreamConfig;
use crate::upstream::fault::Fault;
use crate::upstream::mailbox::EventSender;

/// What a server says about itself and lists.
#[derive(Debug, Clone)]
pub struct Capture {
    /// What it says about itself.
    pub server: ServerInfo,
    /// The definitions that it lists.
    pub listing: Listing,
    /// From the start of the connection to the end of the last list.
    pub took: Duration,
}

impl Capture {
    /// Connects a server, reads everything that it lists, and ends the connection.
    ///
    /// # Errors
    /// [`Fault`]: it cannot be started or reached, or does not answer within `timeout`.
    pub async fn of(name: &str, config: UpstreamConfig, timeout: Duration) -> Result<Self, Fault> {
        let (events, _unheard) = EventSender::channel();
        let upstream = Arc::new(Upstream::new(name, config, events));
        let started = Instant::now();
        let listed = tokio::time::timeout(timeout, upstream.list(timeout)).await;
        let took = started.elapsed();
        let server = upstream.server().map(|server| ServerInfo::clone(&server)).unwrap_or_default();
        upstream.close().await;
        Ok(Self { server, listing: listed.unwrap_or(Err(Fault::Timeout(timeout)))?, took })
    }

    /// What the server calls itself.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.server.info.as_ref()?.get("name")?.as_str().filter(|name| !name.is_empty())
    }

    /// The file: a JSON object with `server`, `tools`, `resources`, `resourceTemplates` and `prompts`, and `serverInfo` with
    /// what the server says of its name and version.
    #[must_use]
    pub fn to_json(&self, server: &str) -> String {
        let name = serde_json::Value::from(server);
        let lists = [
            ("tools", &self.listing.tools),
            ("resources", &self.listing.resources),
            ("resourceTemplates", &self.listing.templates),
            ("prompts", &self.listing.prompts),
        ];
        let lists = lists.map(|(key, list)| format!("\"{key}\": {}", lines(list)));
        let said = |member: &str| Some((member.to_owned(), self.server.info.as_ref()?.get(member)?.clone()));
        let info: serde_json::Map<_, _> = ["name", "title", "version"].into_iter().filter_map(said).collect();
        let info = match info.is_empty() {
            true => String::new(),
            false => format!("\"serverInfo\": {},\n", serde_json::Value::from(info)),
        };
        format!("{{\n\"server\": {name},\n{info}{}\n}}\n", lists.join(",\n"))
    }
}

fn lines(list: &[Box<RawValue>]) -> String {
    if list.is_empty() {
        return "[]".to_owned();
    }
    let texts: Vec<&str> = list.iter().map(|raw| raw.get()).collect();
    format!("[\n{}\n]", texts.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use contextweaver_core::catalog::{LoadOptions, load};

    #[test]
    fn a_capture_loads_as_a_catalog_with_the_same_bytes() {
        let raw = |text: &str| serde_json::from_str::<Box<RawValue>>(text).unwrap();
        let tool =
            r#"{"name":"read","inputSchema":{"type" : "object"},"execution":{"b":1.0e0,"a":2},"description":"Reads"}"#;
        let listing = Listing {
            tools: vec![raw(tool)],
            resources: vec![raw(r#"{"uri":"x://y","name":"y"}"#)],
            templates: vec![raw(r#"{"uriTemplate":"x://{y}","name":"t"}"#)],
            ..Listing::default()
        };
        let info = Some(serde_json::json!({"name": "theirs", "version": "1.2.0", "token": "t0ken"}));
        let server = ServerInfo { info, ..ServerInfo::default() };
        let capture = Capture { server, listing, took: Duration::ZERO };
        let text = capture.to_json("my \"server\"");
        insta::assert_snapshot!(text, @r#"
    {
    "server": "my \"server\"",
    "serverInfo": {"name":"theirs","version":"1.2.0"},
    "tools": [
    {"name":"read","inputSchema":{"type" : "object"},"execution":{"b":1.0e0,"a":2},"description":"Reads"}
    ],
    "resources": [
    {"uri":"x://y","name":"y"}
    ],
    "resourceTemplates": [
    {"uriTemplate":"x://{y}","name":"t"}
    ],
    "prompts": []
    }
    "#);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        std::fs::write(&path, &text).unwrap();
        let loaded = load(&[&path], LoadOptions::default()).unwrap();
        let items = loaded.catalog.items();
        let raws: Vec<&str> = items.iter().filter_map(|item| item.raw.as_ref()).map(|raw| raw.get()).collect();
        assert!(raws.contains(&tool), "{raws:?}");
        assert_eq!(items[0].server.as_deref(), Some("my \"server\""));
        assert_eq!(items[0].server_version.as_deref(), Some("1.2.0"));
    }
}
