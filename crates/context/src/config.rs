//! Every parameter of the context engine, in one file format and one place.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::event::{ItemKind, Phase, Sensitivity};
use contextweaver_core::files::ReadError;
use contextweaver_core::text::Estimator;

/// The configuration of the context engine. A file holds any subset of the fields; a field that it leaves out keeps its
/// default, and unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContextConfig {
    /// The estimator that counts all tokens.
    pub estimator: Estimator,
    /// Tokens of a rendered prompt at most, by phase.
    pub budgets: Budgets,
    /// Which items may be shown.
    pub policy: Policy,
    /// Programs and services of others that work in place of ours.
    #[serde(skip_serializing_if = "HooksConfig::is_empty")]
    pub hooks: HooksConfig,
    /// How items are scored.
    pub scoring: ScoringConfig,
    /// When two items count as saying the same.
    pub dedup: DedupConfig,
    /// What happens to large results.
    pub firewall: FirewallConfig,
    /// How facts and episodes are shown.
    pub memory: MemoryConfig,
    /// How the prompt is written.
    pub render: RenderConfig,
}

/// A configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ContextConfigError {
    /// A value is out of its range.
    #[error("`{parameter}` is {value}; it must be {range}")]
    Range {
        /// The name of the parameter, with its section, e.g. `scoring.recency`.
        parameter: &'static str,
        /// The value that was given.
        value: String,
        /// The values allowed.
        range: &'static str,
    },
    /// A hook is wrong.
    #[error("`hooks.{hook}`: {reason}")]
    Hook {
        /// Which hook.
        hook: &'static str,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The text is not a configuration. The message names the line.
    #[error("not a context configuration: {0}")]
    Syntax(#[from] toml::de::Error),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl ContextConfig {
    /// Parses the configuration in `text`, which is TOML.
    ///
    /// # Errors
    /// [`ContextConfigError::Syntax`] when the text is not a configuration, [`ContextConfigError::Range`] when a value
    /// is out of its range.
    pub fn from_toml(text: &str) -> Result<Self, ContextConfigError> {
        let config: Self = toml::from_str(text)?;
        config.validate()?;
        Ok(config)
    }

    /// Reads the configuration from the TOML file at `path`.
    ///
    /// # Errors
    /// As [`Self::from_toml`], and [`ContextConfigError::Read`] when the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, ContextConfigError> {
        Self::from_toml(&std::fs::read_to_string(path).map_err(ReadError::at(path))?)
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// [`ContextConfigError::Range`] for the first value that is not.
    pub fn validate(&self) -> Result<(), ContextConfigError> {
        let Self { estimator: _, budgets, policy, scoring, dedup, firewall, memory, render: _, hooks } = self;
        let ScoringConfig { recency, similarity, kind, cost, priority } = scoring;
        for (parameter, value) in [
            ("scoring.recency", recency),
            ("scoring.similarity", similarity),
            ("scoring.kind", kind),
            ("scoring.cost", cost),
        ] {
            within(parameter, *value, &(0.0..=1000.0), "from 0 to 1000")?;
        }
        for (parameter, value) in [
            ("scoring.priority.policy", priority.policy),
            ("scoring.priority.plan_state", priority.plan_state),
            ("scoring.priority.user_turn", priority.user_turn),
            ("scoring.priority.agent_msg", priority.agent_msg),
            ("scoring.priority.tool_call", priority.tool_call),
            ("scoring.priority.tool_result", priority.tool_result),
            ("scoring.priority.memory_fact", priority.memory_fact),
            ("scoring.priority.retrieved_doc", priority.retrieved_doc),
            ("scoring.priority.doc_snippet", priority.doc_snippet),
        ] {
            within(parameter, value, &(0.0..=1.0), "from 0 to 1")?;
        }
        within("dedup.threshold", dedup.threshold, &(0.01..=2.0), "from 0.01 to 2 (above 1 nothing is dropped)")?;
        for (parameter, value, least, range) in [
            ("budgets.route", budgets.route, 1, "from 1 to 1000000000"),
            ("budgets.call", budgets.call, 1, "from 1 to 1000000000"),
            ("budgets.interpret", budgets.interpret, 1, "from 1 to 1000000000"),
            ("budgets.answer", budgets.answer, 1, "from 1 to 1000000000"),
            ("policy.max_items_per_kind", policy.max_items_per_kind, 1, "from 1 to 1000000000"),
            ("firewall.threshold_chars", firewall.threshold_chars, 0, "at most 1000000000"),
            ("firewall.summary_tokens", firewall.summary_tokens, 16, "from 16 to 1000000000"),
            ("firewall.max_facts", firewall.max_facts, 0, "at most 1000000000"),
            ("firewall.max_fact_chars", firewall.max_fact_chars, 1, "from 1 to 1000000000"),
            ("memory.max_episodes", memory.max_episodes, 0, "at most 1000000000"),
            ("memory.max_fact_lines", memory.max_fact_lines, 0, "at most 1000000000"),
            ("memory.max_fact_chars", memory.max_fact_chars, 0, "at most 1000000000"),
            ("memory.max_episode_chars", memory.max_episode_chars, 1, "from 1 to 1000000000"),
        ] {
            within(parameter, value, &(least..=MAX_COUNT), range)?;
        }
        for (kind, hook) in hooks.all() {
            let Some(hook) = hook else { continue };
            let refuse = |reason: &str| Err(ContextConfigError::Hook { hook: kind.name(), reason: reason.to_owned() });
            match (&hook.url, hook.command.as_slice()) {
                (None, []) => return refuse("neither `command` nor `url`; give one"),
                (Some(_), [_, ..]) => return refuse("both `command` and `url`; give one"),
                (Some(url), []) if !url.starts_with("http://") && !url.starts_with("https://") => {
                    return refuse("`url` must begin with http:// or https://");
                }
                _ => {}
            }
            if hook.required && kind != HookKind::Redactor {
                return refuse("`required` is for the redactor; remove it");
            }
            if !(1..=600_000).contains(&hook.timeout_ms) {
                return refuse("`timeout_ms` must be from 1 to 600000");
            }
            if !(64..=MAX_COUNT).contains(&hook.max_bytes) {
                return refuse("`max_bytes` must be from 64 to 1000000000");
            }
        }
        Ok(())
    }
}

/// The largest value of any count: far above every use, far below where sums overflow.
const MAX_COUNT: usize = 1_000_000_000;

fn within<T: Copy + PartialOrd + ToString>(
    parameter: &'static str,
    value: T,
    allowed: &RangeInclusive<T>,
    range: &'static str,
) -> Result<(), ContextConfigError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(ContextConfigError::Range { parameter, value: value.to_string(), range })
}

/// Tokens of a rendered prompt at most, headings, separators, header and footer included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budgets {
    /// The budget of prompts for choosing tools.
    pub route: usize,
    /// The budget of prompts for writing the arguments of a call.
    pub call: usize,
    /// The budget of prompts for understanding a result.
    pub interpret: usize,
    /// The budget of prompts for answering the user.
    pub answer: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { route: 2000, call: 3000, interpret: 4000, answer: 6000 }
    }
}

impl Budgets {
    /// The budget of `phase`.
    #[must_use]
    pub fn of(&self, phase: Phase) -> usize {
        match phase {
            Phase::Route => self.route,
            Phase::Call => self.call,
            Phase::Interpret => self.interpret,
            Phase::Answer => self.answer,
        }
    }
}

/// Which items may be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The kinds of events that a phase reads; a phase that is not named keeps its default.
    pub kinds: BTreeMap<Phase, Vec<ItemKind>>,
    /// The number of items of one kind in a prompt at most.
    pub max_items_per_kind: usize,
    /// Items at or above this level are dropped or redacted.
    pub sensitivity_floor: Sensitivity,
    /// What happens to items at or above the floor.
    pub sensitivity_action: SensitivityAction,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            max_items_per_kind: 50,
            sensitivity_floor: Sensitivity::Confidential,
            sensitivity_action: SensitivityAction::Drop,
        }
    }
}

impl Policy {
    /// The kinds of events that `phase` reads.
    #[must_use]
    pub fn kinds_of(&self, phase: Phase) -> &[ItemKind] {
        use ItemKind::{AgentMsg, PlanState, Policy, ToolCall, UserTurn};
        match (self.kinds.get(&phase), phase) {
            (Some(kinds), _) => kinds,
            (None, Phase::Route) => &[UserTurn, PlanState, Policy],
            (None, Phase::Call) => &[UserTurn, PlanState, Policy, AgentMsg, ToolCall],
            (None, Phase::Interpret | Phase::Answer) => &ItemKind::ALL,
        }
    }
}

/// What happens to an item that is too sensitive for the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SensitivityAction {
    /// It is left out, and so is everything that depends on it.
    #[default]
    Drop,
    /// Its text becomes `[REDACTED: <level>]`, and the reference to its artifact is removed.
    Redact,
}

/// The weights of an item's score, which is a weighted sum of four values in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScoringConfig {
    /// The weight of recency, 16 / (16 + number of newer candidates).
    pub recency: f64,
    /// The weight of the Jaccard similarity to the query or its tags.
    pub similarity: f64,
    /// The weight of the kind's priority.
    pub kind: f64,
    /// The weight of low cost, 1 / (1 + tokens / 500).
    pub cost: f64,
    /// The priority of each kind.
    pub priority: KindPriority,
}

impl Default for ScoringConfig {
    fn default() -> Self {
        Self { recency: 0.30, similarity: 0.25, kind: 0.35, cost: 0.10, priority: KindPriority::default() }
    }
}

/// The priority of each kind of item, in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are the kinds of events")]
pub struct KindPriority {
    pub policy: f64,
    pub plan_state: f64,
    pub user_turn: f64,
    pub agent_msg: f64,
    pub tool_call: f64,
    pub tool_result: f64,
    pub memory_fact: f64,
    pub retrieved_doc: f64,
    pub doc_snippet: f64,
}

impl Default for KindPriority {
    fn default() -> Self {
        Self {
            policy: 1.0,
            plan_state: 0.9,
            user_turn: 0.85,
            agent_msg: 0.7,
            tool_call: 0.6,
            tool_result: 0.55,
            memory_fact: 0.5,
            retrieved_doc: 0.45,
            doc_snippet: 0.4,
        }
    }
}

/// When two items count as saying the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DedupConfig {
    /// The Jaccard similarity of their terms from which the item with the lower score is dropped, in (0, 1]; above 1
    /// nothing is dropped.
    pub threshold: f64,
}

impl Default for DedupConfig {
    fn default() -> Self {
        Self { threshold: 0.85 }
    }
}

/// What happens to large results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FirewallConfig {
    /// A result with more characters than this is moved to the artifact store.
    pub threshold_chars: usize,
    /// The number of tokens of the summary that replaces it at most.
    pub summary_tokens: usize,
    /// The number of facts taken from one result at most.
    pub max_facts: usize,
    /// The number of characters of a fact at most.
    pub max_fact_chars: usize,
    /// Whether raw results are counted in tokens.
    pub raw_count: RawCount,
    /// What happens to secrets in results.
    pub secrets: Secrets,
}

/// What happens to secrets (keys, tokens, passwords in connection strings) in results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secrets {
    /// They are stored and shown as received: a result can be recovered byte for byte.
    #[default]
    Keep,
    /// A mark replaces them before anything is stored or shown; pictures and other bytes stay as they are.
    Redact,
}

/// Whether raw results are counted in tokens, for statistics only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawCount {
    /// They are not counted, since counting megabytes takes longer than everything else.
    #[default]
    Skip,
    /// They are counted exactly.
    Exact,
}

impl Default for FirewallConfig {
    fn default() -> Self {
        Self {
            threshold_chars: 2000,
            summary_tokens: 300,
            max_facts: 32,
            max_fact_chars: 200,
            raw_count: RawCount::default(),
            secrets: Secrets::default(),
        }
    }
}

/// How facts and episodes are shown, in phases that read memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryConfig {
    /// The number of episodes shown at most, the latest ones.
    pub max_episodes: usize,
    /// The number of lines of facts at most.
    pub max_fact_lines: usize,
    /// The number of characters of all facts together at most.
    pub max_fact_chars: usize,
    /// The number of characters of one episode at most.
    pub max_episode_chars: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { max_episodes: 3, max_fact_lines: 64, max_fact_chars: 2000, max_episode_chars: 1000 }
    }
}

/// How the prompt is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenderConfig {
    /// The order of the items.
    pub order: Order,
    /// Whether headings may be left out.
    pub headings: Headings,
}

/// Whether the items of a prompt stand under headings that say what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Headings {
    /// Yes, unless that makes the prompt longer than the conversation itself: then the texts stand one below the other,
    /// as they do in the conversation, as far as nothing is lost by that but the headings.
    #[default]
    Auto,
    /// Yes: it is always said who speaks, whatever it costs.
    Always,
}

/// The order of the items in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// In the order in which they happened.
    #[default]
    Time,
    /// By score, the best first, for comparison.
    Score,
}

/// What a hook does in place of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// It summarises large results.
    Summarizer,
    /// It counts the tokens of finished prompts.
    TokenCounter,
    /// It masks what nobody may see.
    Redactor,
}

impl HookKind {
    /// Its name in configurations and notes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Summarizer => "summarizer",
            Self::TokenCounter => "token_counter",
            Self::Redactor => "redactor",
        }
    }
}

/// The hooks of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HooksConfig {
    /// What summarises large results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarizer: Option<HookConfig>,
    /// What counts the tokens of finished prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_counter: Option<HookConfig>,
    /// What masks what nobody may see, before a result or a conversation is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redactor: Option<HookConfig>,
}

impl HooksConfig {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The hooks with what each does.
    pub(crate) fn all(&self) -> [(HookKind, Option<&HookConfig>); 3] {
        [
            (HookKind::Summarizer, self.summarizer.as_ref()),
            (HookKind::TokenCounter, self.token_counter.as_ref()),
            (HookKind::Redactor, self.redactor.as_ref()),
        ]
    }
}

/// One hook: a command that reads and writes lines, or an address to which each line is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The program and its arguments. It is started once, without a shell, and asked many times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address, with `http://` or `https://`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Milliseconds that an answer may take.
    #[serde(default = "hook_timeout_ms")]
    pub timeout_ms: u64,
    /// Bytes of a question and of an answer at most.
    #[serde(default = "hook_max_bytes")]
    pub max_bytes: usize,
    /// For the redactor: whether a text for which it has no answer is withheld. Otherwise the built-in redactor alone works
    /// on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

fn hook_timeout_ms() -> u64 {
    2_000
}

fn hook_max_bytes() -> usize {
    1 << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_what_differs_and_comes_back_whole() {
        let text = "estimator = \"o200k_base\"\n[budgets]\nanswer = 500\n[policy.kinds]\nroute = [\"user_turn\"]\n";
        let config = ContextConfig::from_toml(text).unwrap();
        assert_eq!((config.estimator, config.budgets.answer, config.budgets.route), (Estimator::O200kBase, 500, 2000));
        assert_eq!(config.policy.kinds_of(Phase::Route), [ItemKind::UserTurn]);
        assert_eq!(ContextConfig::from_toml("").unwrap(), ContextConfig::default());
        let written = toml::to_string(&config).unwrap();
        assert_eq!(ContextConfig::from_toml(&written).unwrap(), config);
    }

    #[test]
    fn wrong_files_are_refused_by_name() {
        let refused = |text: &str| ContextConfig::from_toml(text).unwrap_err().to_string();
        insta::assert_snapshot!(refused("[scoring]\nrecency = -1"), @"`scoring.recency` is -1; it must be from 0 to 1000");
        insta::assert_snapshot!(refused("[scoring]\ncost = nan"), @"`scoring.cost` is NaN; it must be from 0 to 1000");
        insta::assert_snapshot!(refused("[dedup]\nthreshold = 0"), @"`dedup.threshold` is 0; it must be from 0.01 to 2 (above 1 nothing is dropped)");
        insta::assert_snapshot!(refused("[budgets]\nanswer = 0"), @"`budgets.answer` is 0; it must be from 1 to 1000000000");
        insta::assert_snapshot!(refused("[budget]\nanswer = 1"), @r"
        not a context configuration: TOML parse error at line 1, column 2
          |
        1 | [budget]
          |  ^^^^^^
        unknown field `budget`, expected one of `estimator`, `budgets`, `policy`, `hooks`, `scoring`, `dedup`, `firewall`, `memory`, `render`
        ");
        insta::assert_snapshot!(refused("[hooks.redactor]\ntimeout_ms = 5"), @"`hooks.redactor`: neither `command` nor `url`; give one");
        insta::assert_snapshot!(refused("[hooks.summarizer]\nurl = \"ftp://a\""), @"`hooks.summarizer`: `url` must begin with http:// or https://");
        insta::assert_snapshot!(refused("[hooks.token_counter]\ncommand = [\"a\"]\ntimeout_ms = 0"), @"`hooks.token_counter`: `timeout_ms` must be from 1 to 600000");
        insta::assert_snapshot!(refused("[hooks.summarizer]\ncommand = [\"a\"]\nrequired = true"), @"`hooks.summarizer`: `required` is for the redactor; remove it");
        let missing = ContextConfig::load(Path::new("/nonexistent/context.toml")).unwrap_err().to_string();
        assert!(missing.starts_with("/nonexistent/context.toml: "), "{missing}");
    }
}
