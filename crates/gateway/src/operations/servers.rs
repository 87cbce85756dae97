//! One server more or less in a configuration, as a person names it on a command line.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::client_edit::Edit;
use super::client_files::ClientFile;
use super::clients::Place;
use super::import::{Addition, Conversion, MOVED_BY_APPLY, Present, convert_beside};
use crate::config::error::ConfigError;

impl Present {
    /// Whether it has an upstream of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.upstreams.contains_key(name)
    }

    /// The names of its upstreams, in the order of the file.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.upstreams.keys().map(String::as_str).collect()
    }

    /// Its text without an upstream; everything else of it stays.
    ///
    /// # Errors
    /// The result would not be a valid configuration.
    pub fn without(&self, name: &str, path: &Path) -> Result<Addition, ConfigError> {
        let edit = Edit { place: vec!["upstreams".to_owned()], remove: vec![name.to_owned()], insert: Vec::new() };
        self.changed(edit, path)
    }
}

/// A server as an upstream of a configuration that has `present` already. Its `entry` has the form of a client's:
/// `command`, `args` and `env`, or `url` and `headers`. What may be a secret becomes a reference to a variable.
///
/// # Errors
/// The entry cannot be an upstream, or the configuration has it under another name.
pub fn new_server(
    name: &str,
    entry: &Map<String, Value>,
    home: Option<&Path>,
    present: &Present,
) -> Result<Conversion, String> {
    let text = json!({"mcpServers": {name: entry}}).to_string();
    let file = ClientFile::of(Place::of(Path::new("servers.json"), None), text).map_err(|error| error.reason)?;
    let mut conversion = convert_beside(&[file], home, present);
    if let Some(skipped) = conversion.skipped.first() {
        return Err(skipped.reason.clone());
    }
    for note in conversion.servers.iter_mut().flat_map(|server| &mut server.notes) {
        *note = note.replace(MOVED_BY_APPLY, ", and is not written into the file:");
    }
    Ok(conversion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_server_comes_and_goes_and_comments_stay() {
        let path = Path::new("gateway.yaml");
        let present = |text: &str| Present::of(text, path, BTreeMap::new()).unwrap();
        let entry = |value: Value| value.as_object().unwrap().clone();
        let before = "# mine\nupstreams: # all\n  old: {command: old} # old\n  # about next\ntop_k: 5 # five\n";
        let new = new_server(
            "git",
            &entry(json!({"command": "uvx", "args": ["git", "--token", "hunter2"]})),
            None,
            &present(before),
        )
        .unwrap();
        let after = new.added_to(&present(before), path).unwrap();
        insta::assert_snapshot!(after.text, @"
        # mine
        upstreams: # all
          old: {command: old} # old
          git:
            command: uvx
            args:
            - git
            - --token
            - ${env:GIT_TOKEN}
          # about next
        top_k: 5 # five
        ");
        insta::assert_snapshot!(new.servers[0].notes.join("\n"), @"what follows `--token` may be a secret, and is not written into the file: set GIT_TOKEN to it in the gateway's environment");
        let header = json!({"url": "https://git.example/mcp", "headers": {"Authorization": "Bearer hunter2"}});
        let remote = new_server("hub", &entry(header), None, &present(before)).unwrap();
        assert_eq!(remote.servers[0].entry["headers"]["Authorization"], "Bearer ${env:HUB_AUTHORIZATION}");
        insta::assert_snapshot!(remote.servers[0].notes.join("\n"), @"what follows `Bearer ` in `Authorization` may be a secret, and is not written into the file: set HUB_AUTHORIZATION to it in the gateway's environment");
        let without = present(&after.text).without("git", path).unwrap();
        assert_eq!((without.text.as_str(), without.is_rewritten), (before, false));
        let cases = [
            ("# mine\nupstreams:\n  a: {command: a}\n", "# mine\nupstreams: {}\n", false),
            (
                "upstreams: # all\n  a:\n    command: a\ntop_k: 5 # five\n",
                "upstreams: {} # all\ntop_k: 5 # five\n",
                false,
            ),
            ("upstreams: {a: {command: a}} # all\n", "upstreams: {}\n", true),
        ];
        for (before, after, is_rewritten) in cases {
            let without = present(before).without("a", path).unwrap();
            assert_eq!(without, Addition { text: after.to_owned(), is_rewritten }, "{before}");
        }
        let refused = |value: Value| new_server("x", &entry(value), None, &present(before)).unwrap_err();
        assert_eq!(refused(json!({"command": "old"})), "the configuration already has it, as `old`");
        assert_eq!(refused(json!({"command": "contextweaver", "args": ["mcp", "serve"]})), "it is this gateway");
    }
}
