//! The spellings of a resource's address.
//!
//! Most servers read an address as browsers do: `file:///etc/./hosts`, `file:///etc/%68osts` and
//! `file://localhost/etc/hosts` are one file. A rule is written for one of them, so what is decided about an address is
//! the strictest of what the rules say of it as given, in its normal form, and in every form that comes of decoding it
//! again until nothing changes: some servers decode twice, or leave out what follows a `;` in a segment. An address that
//! is still encoded after a few rounds, or that hides characters in overlong UTF-8, is refused. What a server takes for
//! the same for reasons of its own is not known here.

use std::borrow::Cow;

use reqwest::Url;
use serde_json::Value;

use super::call::{Guard, GuardedCall};
use crate::common::error::{Code, GatewayError};
use contextweaver_core::catalog::{Kind, SelectableItem};

/// Rounds in which what was decoded is brought into the normal form again.
const ROUNDS: usize = 4;

/// Times that an address may be encoded over and over.
const MOST_ENCODED: usize = 4;

/// Finds the other spellings of the address of a resource, and refuses addresses that rules cannot cover.
pub(super) struct Address {
    /// The namespaces that patterns about items name, with their wildcards; `None` for patterns about any namespace.
    pub(super) namespaces: Vec<Option<String>>,
}

impl Guard for Address {
    /// # Errors
    /// The address has control characters, which servers leave out; or no list names it, it is not in its normal form,
    /// and a pattern may be about resources of its namespace.
    fn check(&self, call: &mut GuardedCall<'_>) -> Result<(), GatewayError> {
        if let Some(item) = call.item {
            call.spellings = self.spellings(item)?;
        }
        Ok(())
    }
}

impl Address {
    /// The same resource under the other spellings of its address; nothing for other items.
    fn spellings(&self, item: &SelectableItem) -> Result<Vec<SelectableItem>, GatewayError> {
        let address = item.metadata.get("uri").and_then(Value::as_str).filter(|_| item.kind == Kind::Resource);
        let Some(address) = address else { return Ok(Vec::new()) };
        let refuse = |reason: &str| Err(GatewayError::new(Code::PolicyDenied, reason).at(&item.id));
        if address.chars().any(char::is_control) {
            return refuse("its address has control characters");
        }
        let normal = normal_form(address);
        // Only what is listed has a definition.
        if normal != address && item.raw.is_none() && self.may_name_resources_of(&item.namespace) {
            return refuse("its address is another spelling of one that rules may be about; use the normal form");
        }
        let mut others = match decoded_forms(&normal) {
            Ok(forms) => forms,
            Err(reason) => return refuse(reason),
        };
        others.insert(0, normal);
        Ok(others.iter().filter(|other| *other != address).map(|other| respelled(item, other)).collect())
    }

    fn may_name_resources_of(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|named| {
            named.as_ref().is_none_or(|named| named.contains('*') || crate::common::glob::matches(named, namespace))
        })
    }
}

/// What stands for the item at another address.
fn respelled(item: &SelectableItem, address: &str) -> SelectableItem {
    let mut other = item.clone();
    if item.raw.is_none() {
        other.id = format!("resource::{}:{address}", item.namespace);
        other.name = address.to_owned();
    }
    other.metadata.insert("uri".to_owned(), address.into());
    other
}

/// The address as the URL standard writes it, with nothing percent-encoded that need not be, no `.` and `..` segments
/// and no fragment; of a file, what is before the query, each slash once.
fn normal_form(address: &str) -> String {
    let mut normal = address.trim().to_owned();
    for _ in 0..ROUNDS {
        let next = decode(&standard(&normal), |byte| {
            byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/\\[]{}".contains(&byte)
        })
        .into_owned();
        if next == normal {
            break;
        }
        normal = next;
    }
    normal
}

/// What the address says to servers that decode it once, twice and so on, until there is nothing left to decode; and to
/// those that leave out what follows a `;` in a segment, or take a backslash for a slash.
///
/// # Errors
/// Why nobody can say what it says.
fn decoded_forms(normal: &str) -> Result<Vec<String>, &'static str> {
    let mut forms: Vec<String> = Vec::new();
    let mut form = normal.to_owned();
    for _ in 0..=MOST_ENCODED {
        let bytes = decoded_bytes(&form, |_| true);
        if is_overlong(&bytes) {
            return Err("its address hides characters in overlong UTF-8");
        }
        if bytes.contains(&0) {
            return Err("its address has control characters");
        }
        let decoded = String::from_utf8_lossy(&bytes).into_owned();
        let plain = without_dots(&decoded.replace('\\', "/"));
        let next = [decoded, plain.clone()];
        if plain == form {
            return Ok(forms);
        }
        forms.extend(next.into_iter().filter(|next| *next != form));
        forms.dedup();
        form = plain;
    }
    Err("its address is encoded too often")
}

/// Whether a character that has a shorter form stands in a longer one, which some decoders take for it.
fn is_overlong(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| matches!(pair, [0xC0 | 0xC1, 0x80..=0xBF] | [0xE0, 0x80..=0x9F] | [0xF0, 0x80..=0x8F]))
}

fn standard(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else { return without_dots(address) };
    url.set_fragment(None);
    if url.scheme() != "file" {
        return if url.cannot_be_a_base() { without_dots(url.as_str()) } else { url.into() };
    }
    url.set_query(None);
    let path: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let end = if url.path().ends_with('/') && !path.is_empty() { "/" } else { "" };
    format!("file://{}/{}{end}", url.host_str().unwrap_or_default(), path.join("/"))
}

/// The text without the segments `.` and `..` before its query, where it has any.
fn without_dots(text: &str) -> String {
    let (path, query) = text.split_at(text.find(['?', '#']).unwrap_or(text.len()));
    without_dot_segments(path) + query
}

fn without_dot_segments(text: &str) -> String {
    // Some servers leave out what follows a `;`.
    let bare = |segment: &'_ str| segment.find(';').map_or(segment.len(), |end| end);
    if !text.split('/').any(|segment| matches!(&segment[..bare(segment)], "." | "..")) {
        return text.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match &segment[..bare(segment)] {
            "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    kept.join("/")
}

/// The text with those bytes decoded that `plain` says need no percent-encoding, and the digits of the rest in capitals.
fn decode(text: &str, plain: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(String::from_utf8_lossy(&decoded_bytes(text, plain)).into_owned())
}

fn decoded_bytes(text: &str, plain: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let byte = behind.first_chunk::<2>().filter(|_| *first == b'%').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
            u8::from_str_radix(digits, 16).ok()
        });
        match byte {
            Some(byte) if plain(byte) => bytes.push(byte),
            Some(byte) => bytes.extend(format!("%{byte:02X}").bytes()),
            None => bytes.push(*first),
        }
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_address_have_one_normal_form() {
        for (normal, spellings) in [
            (
                "file:///etc/hosts",
                &[
                    "file:///etc/./hosts",
                    "file:///etc/x/../hosts",
                    "file:///etc/x/%2e%2E/hosts",
                    "file:///etc/x%2f..%2Fhosts",
                    "file:///etc/%68osts",
                    "file:///etc//hosts",
                    "file:///etc/hosts?x",
                    "file:///etc/hosts#x",
                    "file:///etc\\hosts",
                    "file://localhost/etc/hosts",
                    "FILE:/etc/hosts",
                    " file:///etc/hosts ",
                ][..],
            ),
            ("file:///a%20b/%C3%A9", &["file:///a b/é", "file:///a%20b/%c3%a9"]),
            ("https://h.example/a", &["HTTPS://H.example:443/b/../a", "https://h.example/%61"]),
            ("shop:page/1", &["shop:page/./1", "shop:page/x/../1", "shop:page/x/%2e./1"]),
            ("note://n/1", &["note://n/./1", "note://n/x/../1"]),
            ("file:///{path}", &["file:///%7Bpath%7D"]),
            ("page", &["x/../page", "%70age"]),
            ("page?a", &["x/../page?a"]),
            ("?", &["..?", "x/..?"]),
        ] {
            assert_eq!(normal_form(normal), normal);
            for spelling in spellings {
                assert_eq!(normal_form(spelling), normal, "{spelling}");
            }
        }
        assert_eq!(decode("a%20%C3%A9%25%2", |_| true), "a é%%2");
    }

    #[test]
    fn every_encoding_of_a_way_out_is_seen_or_refused() {
        for (address, form) in [
            ("shop:page/public/%252e%252e/secret", "shop:page/secret"),
            ("shop:page/public/%25252e%25252e/secret", "shop:page/secret"),
            ("shop:page/public/..;/secret", "shop:page/secret"),
            ("shop:page/public/..;a=b/secret", "shop:page/secret"),
            ("shop:page/public/%2e%2e%3b/secret", "shop:page/secret"),
            ("shop:page/public%252f..%252fsecret", "shop:page/secret"),
            ("shop:page/public/..%5csecret", "shop:page/secret"),
            ("shop:page/public/%255c..%255c..%255csecret", "shop:page/secret"),
            ("https://h.example/public/..;/secret", "https://h.example/secret"),
            ("file:///public/%252e%252e/secret", "file:///secret"),
        ] {
            let mut forms = decoded_forms(&normal_form(address)).unwrap();
            forms.push(normal_form(address));
            assert!(forms.iter().any(|seen| seen == form), "{address}: {forms:?}");
        }
        for hidden in ["%c0%ae%c0%ae/secret", "%25c0%25ae/secret", "%e0%80%ae/x", "%f0%80%80%ae/x", "a%00b", "a%2500b"]
        {
            assert!(decoded_forms(&normal_form(&format!("shop:page/public/{hidden}"))).is_err(), "{hidden}");
        }
        let often = format!("shop:page/{}2e", "%25".replace('%', &format!("%{}", "25".repeat(8))));
        assert!(decoded_forms(&often).is_err(), "{often}");
        for harmless in ["file:///a%20b/%C3%A9", "https://h.example/100%25?q=a%2Fb;c", "shop:page/1;v=2", "shop:%E9"] {
            assert!(decoded_forms(&normal_form(harmless)).is_ok(), "{harmless}");
        }
    }

    proptest! {
        #[test]
        fn no_way_out_is_left_in_what_is_decoded(text in "(file:///|x:|x://h/)?[a./%2eE5c0Ff;\\\\]{0,20}") {
            if let Ok(forms) = decoded_forms(&normal_form(&text)) {
                let last = forms.last().cloned().unwrap_or_else(|| normal_form(&text));
                let path = last.split(['?', '#']).next().unwrap_or_default();
                prop_assert!(!path.split(['/', '\\']).any(|segment| segment.split(';').next() == Some("..")), "{}", last);
            }
        }

        #[test]
        fn any_text_has_a_normal_form(text in "(file:///|x:|x://h/)?[a./%2eE5\\\\ é?#]{0,16}") {
            let normal = normal_form(&text);
            let path = normal.split('?').next().unwrap_or_default();
            prop_assert!(!path.split('/').any(|segment| segment == "..") || path.contains('%'), "{}", normal);
        }
    }
}
