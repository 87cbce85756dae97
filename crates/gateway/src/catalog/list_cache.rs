//! What upstreams listed last time, in files: a gateway serves it at once and need not wait until all of them have started.
//!
//! A file is for one configuration of an upstream: with another command, address or selection of tools it counts as absent.
//! So does one that cannot be read, or that is too large. Values from the environment are neither written nor compared. What
//! is served from it passes the guards as any list does, and is compared with what the upstream lists as soon as it answers;
//! that is not done here.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::common::masks::Masks;
use crate::protocol::listing::{Listing, ServerInfo};
use crate::upstream::client::Upstream;
use crate::upstream::config::UpstreamConfig;
use contextweaver_core::files::{
    ReadError, Unread, make_private_folder, read_kept_file, remove_leftovers, replace_secret_file,
};
use contextweaver_core::text::sha256_hex;

/// Another form of the file gets another number.
const VERSION: u32 = 1;

/// Bytes of a file, at most.
const MOST_BYTES: u64 = 64 << 20;

/// A folder with what upstreams listed.
#[derive(Debug)]
pub(super) struct ListCache {
    folder: PathBuf,
}

/// What an upstream said last time.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Remembered {
    version: u32,
    /// A digest of how the upstream is configured.
    config: String,
    /// What it said about itself.
    pub(super) server: ServerInfo,
    /// What it listed.
    pub(super) listing: Listing,
}

impl ListCache {
    /// The cache in this folder, which is made when something is written.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn path_of(&self, upstream: &Upstream) -> PathBuf {
        // A name may hold what no file name can.
        let digest = sha256_hex(upstream.name().as_bytes());
        let readable: String = upstream.name().chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        self.folder.join(format!("{readable}-{digest:.12}.json"))
    }

    /// What the upstream said last time, where it was configured as it is now.
    pub(super) fn read(&self, upstream: &Upstream) -> Option<Remembered> {
        let path = self.path_of(upstream);
        let text = match read_kept_file(&path, MOST_BYTES) {
            Ok(text) => text,
            Err(ReadError { reason: Unread::System(error), .. }) if error.kind() == ErrorKind::NotFound => return None,
            Err(ReadError { reason: error, .. }) => {
                tracing::warn!(path = %path.display(), %error, "the lists saved last time cannot be read");
                return None;
            }
        };
        match serde_json::from_slice::<Remembered>(&text) {
            Ok(found) if found.version == VERSION && found.config == digest_of(upstream.config()) => Some(found),
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the lists saved last time cannot be read");
                None
            }
        }
    }

    /// Keeps what the upstream lists now, where that is not there already. What goes wrong is logged: the next start waits.
    pub(super) fn write(&self, upstream: &Upstream, listing: &Listing) {
        let Some(server) = upstream.server() else { return };
        let config = digest_of(upstream.config());
        let server = ServerInfo::clone(&server);
        let kept = Remembered { version: VERSION, config, server, listing: listing.clone() };
        let path = self.path_of(upstream);
        let Ok(text) = serde_json::to_string(&kept) else { return };
        if holds_value(&text, &upstream.config().masks) {
            // The server has told a value of the environment that it was started with.
            let _ = fs::remove_file(&path);
            return tracing::debug!(
                upstream = upstream.name(),
                "its lists are not saved: they contain a value from the environment"
            );
        }
        let text = text.into_bytes();
        let is_as_long = fs::metadata(&path).is_ok_and(|found| found.len() == text.len() as u64);
        if is_as_long && fs::read(&path).is_ok_and(|found| found == text) {
            return;
        }
        // A client may end a gateway at any moment, also while it writes here.
        remove_leftovers(&self.folder);
        let made = make_private_folder(&self.folder).map_err(|error| format!("{}: {error}", self.folder.display()));
        let written = made.and_then(|()| replace_secret_file(&path, &text).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::warn!(%error, "the lists of an upstream could not be saved for the next start");
        }
    }
}

/// Whether a value from the environment stands in a text of JSON, as it is or in a string or a name, however that is
/// escaped. A text that cannot be read counts as one that holds a value.
fn holds_value(text: &str, masks: &Masks) -> bool {
    let mut reader = serde_json::Deserializer::from_str(text);
    is_value_in(text, masks) || Values(masks).deserialize(&mut reader).is_err()
}

fn is_value_in(text: &str, masks: &Masks) -> bool {
    matches!(masks.cover_verbatim(text), Cow::Owned(_))
}

/// Reads JSON to its end, or up to the first string or name with a value from the environment in it.
#[derive(Clone, Copy)]
struct Values<'m>(&'m Masks);

impl<'de> DeserializeSeed<'de> for Values<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON without values from the environment")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match is_value_in(text, self.0) {
            true => Err(E::custom("it holds a value from the environment")),
            false => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(self)?.is_some() {
            members.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// What tells one configuration of an upstream from another. Values from the environment are left out: they may be secrets, and
/// rotate.
fn digest_of(config: &UpstreamConfig) -> String {
    let UpstreamConfig { target, namespace, required, include_tools, exclude_tools, timeout, era, credentials, masks } =
        config;
    // Not as it is shown, without what looks like a secret: the patterns of secrets take longer to make than the rest of a start.
    let target = target.in_full(|text| masks.cover_verbatim(text).into_owned());
    let rest = (namespace, required, include_tools, exclude_tools, timeout, era, credentials, masks);
    sha256_hex(format!("{target} {rest:?}").as_bytes())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::build::Contents;
    use crate::catalog::view::CatalogView;
    use crate::common::masks::Noted;
    use crate::surface::mode::Mode;
    use crate::upstream::config::{Confinement, Target};
    use crate::upstream::mailbox::EventSender;
    use contextweaver_routing::RoutingConfig;

    /// A file of lists as a gateway keeps it; and what serves one as a gateway does that starts.
    pub(crate) fn kept_lists() -> (String, impl Fn(&[u8])) {
        let target = Target::Stdio {
            command: "shop".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            confinement: Confinement::default(),
        };
        let config = UpstreamConfig::new(target);
        let raws = |entries: &[Value]| entries.iter().map(|entry| to_raw_value(entry).unwrap()).collect();
        let listing = Listing {
            tools: raws(&[
                json!({"name": "price", "description": "Say the price", "inputSchema": {"type": "object",
                    "properties": {"id": {"type": "integer"}, "of": {"type": "string", "x-mcp-header": "Of"}}}}),
                json!({"name": "sell", "outputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}}),
            ]),
            resources: raws(&[json!({"uri": "shop:terms", "name": "terms", "mimeType": "text/plain"})]),
            templates: raws(&[json!({"uriTemplate": "shop:page/{n}", "name": "page"})]),
            prompts: raws(&[json!({"name": "greet", "arguments": [{"name": "who", "required": true}]})]),
            connection: 0,
        };
        let server = ServerInfo {
            version: "2025-11-25".to_owned(),
            info: Some(json!({"name": "shop", "version": "1"})),
            instructions: Some("Ask for the price first.".to_owned()),
            ..ServerInfo::default()
        };
        let kept = Remembered { version: VERSION, config: digest_of(&config), server, listing };
        let kept = serde_json::to_string(&kept).unwrap();
        let (folder, upstream) =
            (tempfile::tempdir().unwrap(), Upstream::new("shop", config, EventSender::channel().0));
        let recalled = move |input: &[u8]| {
            let cache = ListCache::new(folder.path().to_owned());
            fs::write(cache.path_of(&upstream), input).unwrap();
            let Remembered { server, listing, .. } = cache.read(&upstream)?;
            upstream.remember(server, &listing);
            let listings = BTreeMap::from([("shop".to_owned(), Arc::new(listing))]);
            let Contents { items, left_out, listings } = Contents::of(listings);
            let view = CatalogView::of_items(1, items, left_out, listings, &RoutingConfig::default()).unwrap();
            let _ = (view.lists(Mode::Passthrough), view.param_headers(), view.mark());
            Some(view.counts())
        };
        assert!(recalled(kept.as_bytes()).is_some_and(|counts| counts.tools == 2 && counts.prompts == 1));
        let read = move |input: &[u8]| {
            let _ = recalled(input);
        };
        (kept, read)
    }

    #[test]
    fn a_value_from_the_environment_is_found_however_it_is_escaped() {
        let environment = |_: &str| Some("pa\"ss\\wörd".to_owned());
        let noted = Noted::new(&environment, Path::new("/"));
        noted.expand("${env:V}").unwrap();
        let masks = noted.masks();
        let cases = [
            (r#"{"a": [{"b": "as pa\"ss\\wörd is"}]}"#, true),
            (r#"{"a": ["p\u0061\"ss\\w\u00f6rd"]}"#, true),
            (r#"{"pa\"ss\\w\u00f6rd": 1}"#, true),
            (r#"{"a": "pa\"ss\\w\u00f6rd", "a": "the last of this name"}"#, true),
            ("{", true),
            (r#"{"a": [null, true, 1, -1, 1.5, "pa\"ss"], "b": {}}"#, false),
        ];
        for (text, expected) in cases {
            assert_eq!(holds_value(text, &masks), expected, "{text}");
        }
    }
}
