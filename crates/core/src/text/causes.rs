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
}
