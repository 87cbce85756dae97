//! Other programs summarise, count or mask: what `[hooks]` of a configuration names. What answers here is a stand-in within
//! this process, behind the same seam as a command or an address, so that every machine answers alike.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ready, Start, told};
use contextweaver_context::hooks::{Exchange, HookConfig, Hooks, HooksConfig};
use contextweaver_context::store::Stores;
use contextweaver_context::summary::StructureSummarizer;
use contextweaver_context::{ContextConfig, ContextManager, ingest_with};
use contextweaver_core::text::Estimator;

/// What masked digits become.
const MASK: &str = "[number]";

/// The table `hooks`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIns {
    /// Summarises large results.
    pub summarizer: Option<Lines>,
    /// Counts the tokens of prompts.
    pub token_counter: Option<Counting>,
    /// Masks what nobody may see.
    pub redactor: Option<Masking>,
}

/// A summariser that knows one kind of report: its first line, and the lines that have a mark.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The mark.
    pub lines_with: String,
}

/// A counter of a model with another vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counting {
    /// The characters of a token.
    pub chars_per_token: usize,
}

/// What masks numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Masking {
    /// The digits from which a number is masked.
    pub digits: usize,
}

impl StandIns {
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { summarizer, token_counter, redactor } = self;
        match () {
            () if summarizer.is_none() && token_counter.is_none() && redactor.is_none() => {
                Err("`hooks` names none".to_owned())
            }
            () if summarizer.as_ref().is_some_and(|one| one.lines_with.is_empty()) => {
                Err("`hooks.summarizer.lines_with` is empty".to_owned())
            }
            () if token_counter.as_ref().is_some_and(|one| one.chars_per_token == 0) => {
                Err("`hooks.token_counter.chars_per_token` must be at least 1".to_owned())
            }
            () if redactor.as_ref().is_some_and(|one| one.digits == 0) => {
                Err("`hooks.redactor.digits` must be at least 1".to_owned())
            }
            () => Ok(()),
        }
    }

    pub(super) fn ready(&self, start: &Start<'_>) -> Result<Ready, String> {
        let config = ContextConfig { hooks: self.config(), ..start.config.clone() };
        let open = || Hooks::open(&config.hooks, &|_| Ok(Box::new(self.clone()) as Box<dyn Exchange>));
        let hooks = open().map_err(told)?;
        let name = &start.scenario.name;
        let taken = ingest_with(Some(&hooks), start.log(), name, name, &config).map_err(told)?;
        let manager = ContextManager::new(Stores::default(), Box::new(StructureSummarizer), config);
        taken.session.copy_to(manager.stores()).map_err(told)?;
        Ok(Ready { manager: manager.with_hooks(hooks), carried: None })
    }

    /// A configuration that has the hooks for which there are stand-ins.
    fn config(&self) -> HooksConfig {
        let at = |is_there: bool| {
            let url = Some("http://stand-in.invalid/".to_owned());
            is_there.then_some(HookConfig {
                command: Vec::new(),
                url,
                timeout_ms: 1_000,
                max_bytes: 16 << 20,
                required: false,
            })
        };
        HooksConfig {
            summarizer: at(self.summarizer.is_some()),
            token_counter: at(self.token_counter.is_some()),
            redactor: at(self.redactor.is_some()),
        }
    }
}

impl Exchange for StandIns {
    fn ask(&self, line: &str, _: std::time::Duration) -> Result<String, String> {
        let question: Value = serde_json::from_str(line).map_err(told)?;
        let text = |name: &str| question[name].as_str().unwrap_or_default();
        let answer = match (text("do"), self) {
            ("summarize", Self { summarizer: Some(lines), .. }) => {
                let cap = question["tokens"].as_u64().and_then(|cap| usize::try_from(cap).ok()).unwrap_or_default();
                json!({"text": lines.of(text("content"), cap)})
            }
            ("count", Self { token_counter: Some(counting), .. }) => {
                json!({"tokens": text("text").chars().count().div_ceil(counting.chars_per_token)})
            }
            ("redact", Self { redactor: Some(masking), .. }) => json!({"text": masking.masked(text("text"))}),
            (other, _) => return Err(format!("no stand-in for `{other}`")),
        };
        Ok(answer.to_string())
    }
}

impl Lines {
    /// The first line and those with the mark, as many as fit.
    fn of(&self, content: &str, cap: usize) -> String {
        let mut text = String::new();
        for (number, line) in content.lines().enumerate() {
            if number > 0 && !line.contains(&self.lines_with) {
                continue;
            }
            let longer = if text.is_empty() { line.to_owned() } else { format!("{text}\n{line}") };
            if Estimator::Cl100kBase.count(&longer) > cap {
                break;
            }
            text = longer;
        }
        text
    }
}

impl Masking {
    fn masked(&self, text: &str) -> String {
        let (mut out, mut digits) = (String::with_capacity(text.len()), String::new());
        let end = |digits: &mut String, out: &mut String| {
            out.push_str(if digits.len() >= self.digits { MASK } else { digits });
            digits.clear();
        };
        for c in text.chars() {
            if c.is_ascii_digit() {
                digits.push(c);
            } else {
                end(&mut digits, &mut out);
                out.push(c);
            }
        }
        end(&mut digits, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_answer_as_programs_do() {
        let stand_ins = StandIns {
            summarizer: Some(Lines { lines_with: "!".to_owned() }),
            token_counter: Some(Counting { chars_per_token: 3 }),
            redactor: None,
        };
        let asked = |question: Value| stand_ins.ask(&question.to_string(), std::time::Duration::MAX);
        let content = "report\nall well\nmast broken!\n".to_owned() + &"torn!\n".repeat(99);
        assert_eq!(
            asked(json!({"do": "summarize", "content": content, "tokens": 6})).unwrap(),
            json!({"text": "report\nmast broken!"}).to_string()
        );
        assert_eq!(asked(json!({"do": "count", "text": "seven c"})).unwrap(), json!({"tokens": 3}).to_string());
        assert_eq!(asked(json!({"do": "redact", "text": "x"})).unwrap_err(), "no stand-in for `redact`");
        let masking = Masking { digits: 6 };
        assert_eq!(masking.masked("No. 123456, 12345 of 2026 (9876543)"), "No. [number], 12345 of 2026 ([number])");
    }
}
