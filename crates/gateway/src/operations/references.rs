//! References in texts of clients, `${…}`: to a variable of the client's environment, or to what a person is asked.

/// The text with something else in place of each `${…}`, of which `with` is given what stands between the braces.
pub(super) fn replaced(text: &str, with: &mut dyn FnMut(&str) -> String) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        done.push_str(before);
        let Some((inner, after)) = after.split_once('}') else {
            done.push_str("${");
            rest = after;
            continue;
        };
        done.push_str(&with(inner));
        rest = after;
    }
    done.push_str(rest);
    done
}

/// What a client's text for a variable says, however the client writes a variable of its environment.
pub(super) fn meaning(text: &str) -> String {
    text.replace("${env:", "${")
}

/// Whether a client's text for a variable has a reference in it, so that it is no value yet.
pub(super) fn refers(text: &str) -> bool {
    text.split_once("${").is_some_and(|(_, after)| after.contains('}'))
}

/// The value that a client's text for a variable has, where its references are to variables of `environment` or have a default;
/// `None` where one is not set, or only the client knows it.
#[must_use]
pub fn resolved(text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut is_known = true;
    let value = replaced(text, &mut |inner| {
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = environment(name).or_else(|| default.map(str::to_owned));
        is_known &= value.is_some();
        value.unwrap_or_default()
    });
    is_known.then_some(value)
}
