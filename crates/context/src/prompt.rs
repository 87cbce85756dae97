//! Prompts that end with tools: cards to choose from, or the schema of the chosen tool.
//!
//! Cards and schemas come as text, so that this crate need not know where they come from. They are placed after the
//! items: they change with every query, and what comes before them stays the same for a prompt cache.

use super::compile::{CompileError, Memory, Request, SCHEMA, TOOLS, Workspace, compile_in};
use super::config::ContextConfig;
use super::firewall::Firewall;
use super::stats::ContextPack;
use crate::event::{Phase, Transcript};
use contextweaver_core::text::largest;

/// The part of the budget that cards may take, so that the conversation they are chosen for is seen.
const CARDS_SHARE: (usize, usize) = (3, 4);

/// A prompt for choosing tools.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutePrompt {
    /// The prompt and the record of its build.
    pub pack: ContextPack,
    /// The number of cards in it, from the first on.
    pub cards_shown: usize,
}

/// The prompt of the route phase with `cards`, the best first, one line or a few each, after the items. The phase and
/// the footer of `request` are ignored. As many cards are shown as fit into three quarters of the budget; the number is
/// returned.
///
/// # Errors
/// As [`compile_in`].
pub fn build_route_prompt(
    workspace: &mut Workspace,
    (transcript, memory): (&Transcript, &Memory),
    firewall: &Firewall,
    request: &Request,
    cards: &[String],
    config: &ContextConfig,
) -> Result<RoutePrompt, CompileError> {
    let budget = request.budget.unwrap_or_else(|| config.budgets.of(Phase::Route));
    let written = |count: usize| match cards.get(..count) {
        Some(shown) if count > 0 => format!("[{TOOLS}]\n{}", shown.join("\n")),
        _ => String::new(),
    };
    let share = budget / CARDS_SHARE.1 * CARDS_SHARE.0;
    // More cards cost more, so a binary search finds the most that fit.
    let cards_shown = largest(cards.len(), |count| {
        config.estimator.count(&format!("{}\n\n{}", request.header, written(count))) <= share
    });
    let footer = written(cards_shown);
    let request = Request { phase: Phase::Route, footer: &footer, ..*request };
    let pack = compile_in(workspace, transcript, memory, firewall, &request, config)?;
    Ok(RoutePrompt { pack, cards_shown })
}

/// The prompt of the call phase with the name and the full schema of the chosen tool after the items. The phase and the
/// footer of `request` are ignored.
///
/// # Errors
/// As [`compile_in`]; a schema that does not fit is refused with the numbers, since half a schema is useless.
pub fn build_call_prompt(
    workspace: &mut Workspace,
    (transcript, memory): (&Transcript, &Memory),
    firewall: &Firewall,
    request: &Request,
    (tool, schema): (&str, &str),
    config: &ContextConfig,
) -> Result<ContextPack, CompileError> {
    let footer = format!("[{SCHEMA}]\n{tool}\n{schema}");
    let request = Request { phase: Phase::Call, footer: &footer, ..*request };
    compile_in(workspace, transcript, memory, firewall, &request, config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{ContextItem, ItemKind};
    use crate::store::MemoryArtifacts;
    use crate::summary::Summarizer;
    use contextweaver_core::text::Estimator;

    struct Nothing;

    impl Summarizer for Nothing {
        fn summarize(&self, _: &str, _: &str, _: usize, _: Estimator) -> String {
            String::new()
        }
    }

    fn log() -> (Transcript, Memory) {
        let items = vec![
            ContextItem::new("u", ItemKind::UserTurn, "Open a ticket for the outage."),
            ContextItem::new("a", ItemKind::AgentMsg, "Which tool?"),
        ];
        (Transcript::new(items).unwrap(), Memory::default())
    }

    /// Calls `test` with what every build needs.
    fn with_firewall<T>(config: &ContextConfig, test: impl FnOnce(&Firewall) -> T) -> T {
        let artifacts = MemoryArtifacts::default();
        test(&Firewall::new(&config.firewall, config.estimator, &Nothing, &artifacts))
    }

    fn routed(budget: usize, cards: &[String]) -> RoutePrompt {
        let (config, (transcript, memory)) = (ContextConfig::default(), log());
        let request = Request { budget: Some(budget), ..Request::new(Phase::Route, "ticket") };
        with_firewall(&config, |firewall| {
            let workspace = &mut Workspace::default();
            build_route_prompt(workspace, (&transcript, &memory), firewall, &request, cards, &config).unwrap()
        })
    }

    #[test]
    fn cards_stand_behind_the_conversation() {
        let cards = ["[1/2] create_issue (tool) — Opens an issue", "[2/2] page (tool) — Calls someone"];
        let prompt = routed(200, &cards.map(str::to_owned));
        insta::assert_snapshot!(prompt.pack.prompt, @r"
        [USER]
        Open a ticket for the outage.

        [TOOLS]
        [1/2] create_issue (tool) — Opens an issue
        [2/2] page (tool) — Calls someone
        ");
        assert_eq!((prompt.cards_shown, prompt.pack.phase), (2, Phase::Route));
        assert_eq!(routed(200, &[]).pack.prompt, "[USER]\nOpen a ticket for the outage.");
    }

    #[test]
    fn the_best_cards_fit_and_the_conversation_is_seen() {
        let cards: Vec<String> = (1..=40).map(|n| format!("[{n}/40] tool_{n} (tool) — Does the work {n}")).collect();
        let mut shown = Vec::new();
        for budget in [1, 40, 100, 200, 400, 2000] {
            let prompt = routed(budget, &cards);
            assert!(prompt.pack.stats.prompt_tokens <= budget);
            assert!(budget < 100 || prompt.pack.prompt.contains("Open a ticket"));
            shown.push(prompt.cards_shown);
        }
        assert!(shown.is_sorted() && shown.first() == Some(&0) && shown.last() == Some(&40), "{shown:?}");
    }

    #[test]
    fn a_schema_is_whole_or_refused() {
        let (config, (transcript, memory)) = (ContextConfig::default(), log());
        let schema = r#"{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}"#;
        let build = |budget| {
            let request = Request { budget: Some(budget), ..Request::new(Phase::Call, "") };
            with_firewall(&config, |firewall| {
                let (workspace, tool) = (&mut Workspace::default(), ("create_issue", schema));
                build_call_prompt(workspace, (&transcript, &memory), firewall, &request, tool, &config)
            })
        };
        insta::assert_snapshot!(build(200).unwrap().prompt, @r#"
        Open a ticket for the outage.
        Which tool?

        [TOOL SCHEMA]
        create_issue
        {"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}
        "#);
        insta::assert_snapshot!(build(10).unwrap_err(), @"header and footer of the call prompt need 27 tokens, the budget is 10; shorten them or raise the budget");
    }
}
