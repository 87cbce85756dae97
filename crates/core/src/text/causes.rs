//! Errors as people read them.

use std::error::Error;

/// An error and its causes, the outermost first, without those that repeat what was said before them.
#[must_use]
pub fn causes(error: &dyn Error) -> Vec<String> {
    let mut said = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        next = cause.source();
    }
    said
}

/// In plain words that the name of a host is not known, with what the system says of it, where that is what `error` came of.
#[must_use]
pub fn unknown_host(error: &dyn Error) -> Option<String> {
    let causes = causes(error);
    // The client has no kind of its own for it.
    let at = causes.iter().position(|cause| cause.starts_with("dns error"))?;
    Some(match causes.get(at + 1..).and_then(<[String]>::last) {
        Some(detail) => format!("the host name is unknown: {detail}"),
        None => "the host name is unknown".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Self>>);

    #[test]
    fn what_a_cause_repeats_is_said_once() {
        let cause = |text, source: Option<Told>| Told(text, source.map(Box::new));
        let error = cause("x.json: no such file", Some(cause("no such file", Some(cause("os error 2", None)))));
        assert_eq!(causes(&error), ["x.json: no such file", "os error 2"]);
    }

    #[test]
    fn a_host_name_that_is_unknown_is_said_to_be_so() {
        for (said, expected) in [
            (
                &[
                    "error sending request",
                    "client error (Connect)",
                    "dns error",
                    "error resolving DNS",
                    "no such name",
                ][..],
                Some("the host name is unknown: no such name"),
            ),
            (&["client error (Connect)", "dns error"], Some("the host name is unknown")),
            (&["client error (Connect)", "connection refused"], None),
        ] {
            let error = said.iter().rev().fold(None, |source, text| Some(Box::new(Told(text, source))));
            assert_eq!(unknown_host(&error.unwrap()).as_deref(), expected, "{said:?}");
        }
    }
}
