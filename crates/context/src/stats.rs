//! The record of a build: what is in the prompt, what is not, and why.
//!
//! Every candidate is in exactly one of two lists, so `included + dropped == total` holds by construction. The reason
//! of a drop carries what a person needs to act on it (the item that it repeats, the ancestor that is missing).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::event::{FirewallStats, ItemId, ItemKind, Phase, Sensitivity};
use contextweaver_core::text::{Estimator, on_one_line};

/// A compiled prompt and the record of its build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPack {
    /// The phase that it was compiled for.
    pub phase: Phase,
    /// The text of the prompt.
    pub prompt: String,
    /// The record of the build.
    pub stats: BuildStats,
}

/// The record of a build. All token counts are made with `token_estimator`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildStats {
    /// The estimator that counted the tokens.
    pub token_estimator: Estimator,
    /// The budget in tokens.
    pub budget: usize,
    /// The exact number of tokens of the prompt, never more than `budget`.
    pub prompt_tokens: usize,
    /// Tokens of memory, header and footer with their separators.
    pub header_footer_tokens: usize,
    /// Tokens of the items of each kind, headings and separators included.
    pub tokens_per_section: BTreeMap<ItemKind, usize>,
    /// The number of items after dependency closure.
    pub total_candidates: usize,
    /// The number of items in the prompt.
    pub included_count: usize,
    /// The number of items not in the prompt.
    pub dropped_count: usize,
    /// The number of dropped items by reason.
    pub dropped_reasons: BTreeMap<String, usize>,
    /// The number of items dropped because a kept one says the same.
    pub dedup_removed: usize,
    /// The number of items that came in because another item depends on them.
    pub dependency_closures: usize,
    /// The number of items shown in a shorter form because they did not fit as they are.
    pub condensed: usize,
    /// The number of lines of facts and episodes that did not fit.
    pub memory_lines_omitted: usize,
    /// The items in the prompt, in its order.
    pub included_items: Vec<IncludedItem>,
    /// The items not in the prompt, in the order of the stages and, within a stage, of meeting them.
    pub dropped_items: Vec<DroppedItem>,
    /// What the firewall did with results.
    pub firewall_events: Vec<FirewallEvent>,
    /// What memory sources gave, and what hooks failed to do and who did it instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// An item in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncludedItem {
    /// The id of the item.
    pub item_id: ItemId,
    /// The kind of the item.
    pub kind: ItemKind,
    /// Its tokens, heading and separator included.
    pub tokens: usize,
    /// How it is shown.
    pub form: Form,
}

/// How an item is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// As it left the filter and the firewall.
    Whole,
    /// Shortened, because it did not fit.
    Condensed,
}

/// An item that is not in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedItem {
    /// The id of the item.
    pub item_id: ItemId,
    /// The kind of the item.
    pub kind: ItemKind,
    /// Why the item was dropped.
    #[serde(flatten)]
    pub reason: DropReason,
}

/// Why an item is not in the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum DropReason {
    /// It is at or above the sensitivity floor.
    Sensitivity {
        /// The sensitivity of the item.
        level: Sensitivity,
    },
    /// Something that it depends on cannot be in the prompt.
    Closure {
        /// The id of the missing ancestor.
        ancestor: ItemId,
    },
    /// A kept item says the same.
    Duplicate {
        /// The id of the kept item.
        of: ItemId,
    },
    /// The prompt holds as many items of its kind as the policy allows.
    KindLimit,
    /// It does not fit together with what it depends on.
    Budget,
}

impl DropReason {
    /// The name of the reason in files and counts.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sensitivity { .. } => "sensitivity",
            Self::Closure { .. } => "closure",
            Self::Duplicate { .. } => "duplicate",
            Self::KindLimit => "kind_limit",
            Self::Budget => "budget",
        }
    }

    /// The reason in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Sensitivity { level } => format!("sensitivity: {level}"),
            Self::Closure { ancestor } => format!("closure: depends on {ancestor}, which is not shown"),
            Self::Duplicate { of } => format!("duplicate: {of} says the same"),
            Self::KindLimit => "kind_limit: enough items of this kind".to_owned(),
            Self::Budget => "budget: does not fit".to_owned(),
        }
    }
}

/// What the firewall did with one result during a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirewallEvent {
    /// The id of the result.
    pub item_id: ItemId,
    /// Why the firewall was asked.
    pub cause: FirewallCause,
    /// What the firewall did.
    pub stats: FirewallStats,
}

/// Why the firewall was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FirewallCause {
    /// Every result is screened before it is scored.
    Screened,
    /// The item did not fit as it was.
    Condensed,
}

impl BuildStats {
    /// The drop ledger for people: what the prompt holds, what it does not, and why.
    #[must_use]
    pub fn ledger(&self) -> String {
        let mut text = format!(
            "{} of {} tokens ({}); {} items, {} shown, {} left out\n",
            self.prompt_tokens,
            self.budget,
            self.token_estimator,
            self.total_candidates,
            self.included_count,
            self.dropped_count
        );
        let shown = self.included_items.iter().map(|item| {
            let tokens = match item.form {
                Form::Whole => format!("{} tokens", item.tokens),
                Form::Condensed => format!("{} tokens, condensed", item.tokens),
            };
            [flat(item.item_id.as_str()), item.kind.name().to_owned(), tokens]
        });
        table(&mut text, "shown", &shown.collect::<Vec<_>>());
        let dropped = self
            .dropped_items
            .iter()
            .map(|item| [flat(item.item_id.as_str()), item.kind.name().to_owned(), flat(&item.reason.words())]);
        table(&mut text, "left out", &dropped.collect::<Vec<_>>());
        if !self.notes.is_empty() {
            text.push('\n');
            self.notes.iter().for_each(|note| text.push_str(&format!("{}\n", flat(note))));
        }
        text
    }

    /// The tokens of each part of the prompt that has any: the events of each kind, and what stands around them. The
    /// largest part comes first. Parts are counted separately, the prompt as a whole.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, usize)> {
        let around = ("memory, header and footer", self.header_footer_tokens);
        let kinds = self.tokens_per_section.iter().map(|(kind, tokens)| (kind.name(), *tokens));
        let mut parts: Vec<_> = std::iter::once(around).chain(kinds).filter(|(_, tokens)| *tokens > 0).collect();
        parts.sort_by_key(|(name, tokens)| (Reverse(*tokens), *name));
        parts
    }
}

/// Writes aligned rows under a title; nothing when there are no rows.
fn table(text: &mut String, title: &str, rows: &[[String; 3]]) {
    if rows.is_empty() {
        return;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (first, second) = (width(0), width(1));
    let _ = writeln!(text, "\n{title}");
    for [id, kind, note] in rows {
        let _ = writeln!(text, "  {id:first$}  {kind:second$}  {note}");
    }
}

/// An id as it is shown: it comes from outside.
fn flat(text: &str) -> String {
    on_one_line(text, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_names_every_item_and_reason() {
        let included = |id: &str, form| IncludedItem { item_id: id.into(), kind: ItemKind::UserTurn, tokens: 12, form };
        let dropped = |id: &str, reason| DroppedItem { item_id: id.into(), kind: ItemKind::ToolResult, reason };
        let stats = BuildStats {
            token_estimator: Estimator::Cl100kBase,
            budget: 100,
            prompt_tokens: 27,
            header_footer_tokens: 3,
            tokens_per_section: BTreeMap::from([(ItemKind::UserTurn, 24), (ItemKind::Policy, 0)]),
            total_candidates: 7,
            included_count: 2,
            dropped_count: 5,
            dropped_reasons: BTreeMap::new(),
            dedup_removed: 1,
            dependency_closures: 0,
            condensed: 1,
            memory_lines_omitted: 0,
            included_items: vec![included("u1", Form::Whole), included("u2", Form::Condensed)],
            dropped_items: vec![
                dropped("r1", DropReason::Sensitivity { level: Sensitivity::Restricted }),
                dropped("r2\nfaked", DropReason::Closure { ancestor: "c2".into() }),
                dropped("r3", DropReason::Duplicate { of: "r9".into() }),
                dropped("r4", DropReason::KindLimit),
                dropped("r5", DropReason::Budget),
            ],
            notes: Vec::new(),
            firewall_events: Vec::new(),
        };
        insta::assert_snapshot!(stats.ledger(), @r"
        27 of 100 tokens (cl100k_base); 7 items, 2 shown, 5 left out

        shown
          u1  user_turn  12 tokens
          u2  user_turn  12 tokens, condensed

        left out
          r1        tool_result  sensitivity: restricted
          r2 faked  tool_result  closure: depends on c2, which is not shown
          r3        tool_result  duplicate: r9 says the same
          r4        tool_result  kind_limit: enough items of this kind
          r5        tool_result  budget: does not fit
        ");
        insta::assert_snapshot!(serde_json::to_string(&stats.dropped_items[2]).unwrap(), @r#"{"item_id":"r3","kind":"tool_result","reason":"duplicate","of":"r9"}"#);
        assert_eq!(stats.parts(), [("user_turn", 24), ("memory, header and footer", 3)]);
        let file = serde_json::to_string(&stats).unwrap();
        assert_eq!(serde_json::from_str::<BuildStats>(&file).unwrap(), stats);
    }
}
