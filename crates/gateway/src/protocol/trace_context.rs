//! The trace that a request belongs to, as W3C Trace Context writes it: in the members `traceparent` and `tracestate` of
//! `_meta`, or in the headers of these names.

use std::borrow::Cow;

use serde::Deserialize;

use super::message::{Members, Raw, is_object};
use contextweaver_core::text::hex;

/// The name of the member and of the header.
pub(crate) const PARENT: &str = "traceparent";

/// The same for what vendors add.
pub(crate) const STATE: &str = "tracestate";

/// Bytes of what vendors add, at most; more is dropped.
const LONGEST_STATE: usize = 512;

/// A place in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    /// The trace.
    pub(crate) trace: [u8; 16],
    /// The span within it.
    pub(crate) span: [u8; 8],
    /// Whether the spans of the trace are recorded.
    pub(crate) sampled: bool,
    /// What vendors add; it is passed on as it is.
    pub(crate) state: Option<String>,
}

impl TraceContext {
    /// Reads the two texts; `None` when the first is not one of a trace.
    pub(crate) fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let version = u8::from_be_bytes(digits(version)?);
        // Later versions may add parts; this one has four.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (digits(trace)?, digits(span)?, digits(flags)?);
        if trace == [0; 16] || span == [0; 8] {
            return None;
        }
        let is_state = |state: &&str| {
            let state = state.trim();
            !state.is_empty() && state.len() <= LONGEST_STATE && state.bytes().all(|b| (0x20..0x7f).contains(&b))
        };
        let state = state.filter(is_state).map(|state| state.trim().to_owned());
        Some(Self { trace, span, sampled: flags & 1 == 1, state })
    }

    /// The place that the `_meta` of a request names.
    pub(crate) fn of_params(params: Option<&Raw>) -> Option<Self> {
        #[derive(Deserialize)]
        struct Params<'p> {
            #[serde(rename = "_meta", borrow)]
            meta: Meta<'p>,
        }
        #[derive(Deserialize)]
        struct Meta<'m> {
            #[serde(borrow)]
            traceparent: Cow<'m, str>,
            #[serde(borrow)]
            tracestate: Option<Cow<'m, str>>,
        }
        let Params { meta } = params?.read().ok()?;
        Self::parse(&meta.traceparent, meta.tracestate.as_deref())
    }

    /// The text of `traceparent`.
    pub(crate) fn parent(&self) -> String {
        format!("00-{}-{}-0{}", hex(&self.trace), hex(&self.span), u8::from(self.sampled))
    }

    /// `params` with this place in its `_meta`; without an object for it, as they are.
    pub(crate) fn set_in(&self, params: Option<&Raw>) -> Raw {
        let params = params.cloned().unwrap_or_else(|| Raw::of(&serde_json::json!({})));
        let Ok(members) = params.read::<Members<'_>>() else { return params };
        if members.get("_meta").is_some_and(|meta| !is_object(meta.get().as_bytes())) {
            return params.clone();
        }
        members.with_meta(|meta| {
            meta.set(PARENT, &Raw::of(&self.parent()));
            match &self.state {
                Some(state) => meta.set(STATE, &Raw::of(state)),
                None => meta.remove(STATE),
            }
        })
    }
}

/// Lower-case hexadecimal digits of exactly so many bytes.
fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn only_what_is_a_place_in_a_trace_is_one() {
        let good = format!("00-{TRACE}-b7ad6b7169203331-01");
        let context = TraceContext::parse(&good, Some("a=b")).unwrap();
        assert!(context.sampled && context.state.as_deref() == Some("a=b"));
        assert_eq!(context.parent(), good);
        assert!(TraceContext::parse(&format!("cc-{TRACE}-b7ad6b7169203331-01-what"), None).is_some());
        for bad in [
            String::new(),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-b7ad6b7169203331-01-what"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}-b7ad6b716920333-01"),
            format!("00-{TRACE}-b7ad6b716920333é-01"),
        ] {
            assert_eq!(TraceContext::parse(&bad, None), None, "{bad}");
        }
        for state in ["\u{1}", "é", " ", &"x".repeat(513)] {
            assert_eq!(TraceContext::parse(&good, Some(state)).unwrap().state, None);
        }
    }

    #[test]
    fn a_place_is_put_beside_what_else_is_in_meta() {
        let context = TraceContext::parse(&format!("00-{TRACE}-b7ad6b7169203331-00"), None).unwrap();
        let old = json!({"name": "x", "_meta": {"progressToken": 3, "traceparent": "y", "tracestate": "z"}});
        let params: Value = context.set_in(Some(&Raw::of(&old))).read().unwrap();
        assert_eq!(params, json!({"name": "x", "_meta": {"progressToken": 3, "traceparent": context.parent()}}));
        assert_eq!(TraceContext::of_params(Some(&Raw::of(&params))), Some(context.clone()));
        assert_eq!(context.set_in(None).read::<Value>().unwrap()["_meta"]["traceparent"], context.parent());
        for odd in [json!({"_meta": 3}), json!([1])].map(|odd| Raw::of(&odd)) {
            assert_eq!(TraceContext::of_params(Some(&odd)), None);
            assert_eq!(context.set_in(Some(&odd)), odd);
        }
    }
}
