//! Shortens a call with long arguments to a few tokens.
//!
//! What a model writes into a call can be as large as any result: the rows of a table, the text of a file. The names of
//! the arguments and the short values tell one call from another, so they stay; each long value is replaced by a mark,
//! and its size and a summary of it follow below the call. The original call is an artifact.

use std::borrow::Cow;

use super::{Content, Firewall};
use crate::literal::{Dialect, Document, Kind};

/// The number of bytes up to which a value is shown as it is.
const SHORT_VALUE: usize = 120;

/// The number of bytes shown before and after the arguments at most.
const SHORT_LEAD: usize = 120;

/// The mark that replaces a long value.
const MARK: &str = "…";

/// A call divided into its parts.
struct Call<'t> {
    /// The text before the arguments: the name and a bracket, or a bracket alone.
    lead: &'t str,
    arguments: Vec<Argument<'t>>,
    /// The text after the arguments.
    tail: &'t str,
}

struct Argument<'t> {
    name: Cow<'t, str>,
    /// The name and the sign after it, as written.
    label: &'t str,
    /// The value, as written.
    value: &'t str,
}

impl Firewall<'_> {
    /// The call in at most `cap` tokens.
    pub(super) fn call(&self, text: &str, cap: usize) -> String {
        let Some(call) = of_keywords(text).or_else(|| of_object(text)) else {
            return self.summary(&Content::of(text), false, cap);
        };
        let (short, long): (Vec<&Argument>, Vec<&Argument>) =
            call.arguments.iter().partition(|argument| argument.value.len() <= SHORT_VALUE);
        let shown = |argument: &Argument| {
            let value = if argument.value.len() <= SHORT_VALUE { argument.value } else { MARK };
            format!("{}{value}", argument.label)
        };
        let members: Vec<String> = call.arguments.iter().map(shown).collect();
        let head = format!("{}{}{}", call.lead, members.join(", "), call.tail);
        // With many short arguments and nothing else, the beginning is all that can be shown.
        let head = self.clipped(&head, if long.is_empty() || short.is_empty() { cap } else { cap.div_ceil(2) });
        let mut lines = vec![head];
        let mut left = cap.saturating_sub(self.estimator.count(&lines.concat()));
        for (number, argument) in long.iter().enumerate() {
            let share = left / (long.len() - number);
            let line = format!("\n{}", self.clipped(&self.argument(argument, share.saturating_sub(1)), share));
            left = left.saturating_sub(self.estimator.count(&line));
            lines.extend(Some(line).filter(|line| line.len() > 1));
        }
        self.clipped(&lines.concat(), cap)
    }

    /// A long argument: its name, its size, and a summary where there is room for one.
    fn argument(&self, argument: &Argument, cap: usize) -> String {
        let document = Document::parse_any(argument.value).ok();
        let root = document.as_ref().map(Document::root);
        let text = root.and_then(|root| root.string()).unwrap_or(Cow::Borrowed(argument.value));
        let size = match root.map(|root| (root.kind(), root.len())) {
            Some((Kind::Array, items)) => format!("{items} items, {} characters", text.chars().count()),
            _ => format!("{} characters", text.chars().count()),
        };
        let line = format!("{}: {size}", argument.name);
        let room = cap.saturating_sub(self.estimator.count(&format!("{line}\n")));
        let summary = if room == 0 { String::new() } else { self.summary(&Content::of(&text), false, room) };
        format!("{line}\n{summary}").trim_end().to_owned()
    }
}

/// Parses keyword arguments: `name(a=1, b='x')`.
fn of_keywords(text: &str) -> Option<Call<'_>> {
    let open = text.find('(')?;
    let mut at = open + 1;
    let lead = text.get(..at).filter(|lead| lead.len() <= SHORT_LEAD && !lead.contains(char::is_whitespace))?;
    let mut arguments = Vec::new();
    loop {
        let rest = text.get(at..)?;
        let start = at + rest.len() - rest.trim_start().len();
        let label = text.get(start..=start + text.get(start..)?.find('=')?)?;
        let name = label.trim_end_matches('=').trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return None;
        }
        let behind = text.get(start + label.len()..)?;
        let (_, end) = Document::prefix(behind, Dialect::Python).ok()?;
        arguments.push(Argument { name: Cow::Borrowed(name), label, value: behind.get(..end)?.trim() });
        at = start + label.len() + end;
        let rest = text.get(at..)?.trim_start();
        if let Some(next) = rest.strip_prefix(',') {
            at = text.len() - next.len();
            continue;
        }
        let is_end = rest.starts_with(')') && rest.len() <= SHORT_LEAD;
        return is_end.then_some(Call { lead, arguments, tail: rest });
    }
}

/// Parses a JSON object, with or without a name and brackets around it.
fn of_object(text: &str) -> Option<Call<'_>> {
    let (start, end) = (text.find('{')?, text.rfind('}')?);
    let (lead, tail) = (text.get(..=start)?, text.get(end..)?);
    if lead.len() > SHORT_LEAD || tail.len() > SHORT_LEAD {
        return None;
    }
    let document = Document::parse_any(text.get(start..=end)?).ok()?;
    let mut arguments = Vec::new();
    for (key, value) in document.root().members() {
        let (from, to) = (start + key.span().start, start + value.span().start);
        let value = text.get(to..start + value.span().end)?;
        arguments.push(Argument { name: Cow::Owned(key.plain().into_owned()), label: text.get(from..to)?, value });
    }
    (!arguments.is_empty()).then_some(Call { lead, arguments, tail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FirewallConfig;
    use crate::store::MemoryArtifacts;
    use crate::summary::StructureSummarizer;
    use contextweaver_core::text::Estimator;

    fn shown(text: &str, cap: usize) -> String {
        let (config, artifacts) = (FirewallConfig::default(), MemoryArtifacts::default());
        let firewall = Firewall::new(&config, Estimator::Cl100kBase, &StructureSummarizer, &artifacts);
        let shown = firewall.call(text, cap);
        assert!(Estimator::Cl100kBase.count(&shown) <= cap, "{shown}");
        shown
    }

    #[test]
    fn names_and_short_values_stay_and_long_values_are_told() {
        let rows: Vec<String> = (0..300).map(|id| format!(r#"[{id}, "north", {}]"#, id * 7)).collect();
        let rows = rows.join(", ");
        insta::assert_snapshot!(shown(&format!(r#"{{"path": "/srv/data", "rows": [{rows}], "at": "A1"}}"#), 75), @r#"
        {"path": "/srv/data", "rows": …, "at": "A1"}
        rows: 300 items, 6330 characters
        300 rows, 3 columns: column 1, column 2, column 3
        first row: 0 | north | 0
        last row: 299 | north | 2093
        "#);
        insta::assert_snapshot!(shown(&format!("sheet.write(path='a.xlsx', rows=[{rows}])"), 40), @r"
        sheet.write(path='a.xlsx', rows=…)
        rows: 300 items, 6330 characters
        300 rows, 3 columns: column 1, … +2
        ");
        insta::assert_snapshot!(shown(&format!(r#"run({{"code": "{}"}})"#, r"print('ok')\n".repeat(90)), 40), @r#"
        run({"code": …})
        code: 1080 characters
        90 lines, 1080 characters
        print('ok') (×90)
        "#);
    }

    #[test]
    fn every_cap_holds_whatever_the_call_is() {
        let text = "x ".repeat(400);
        let calls = [
            text.clone(),
            format!("say(text='{text}')"),
            format!("say('{text}')"),
            format!(r#"{{"a": "{text}", "b": "{text}", "c": ["{text}", 1]}}"#),
            format!("{{{}}}", (0..200).map(|n| format!("\"k{n}\": {n}")).collect::<Vec<_>>().join(",")),
            format!("f({text}=1"),
        ];
        for call in calls {
            for cap in [1, 5, 12, 40, 150] {
                shown(&call, cap);
            }
        }
    }
}
