//! The text around the items: memory and the caller's header before them, the caller's footer after them.
//!
//! The frame gets its room before any item is considered. The caller's header and footer are instructions, so they are
//! never cut: when they alone exceed the budget, the build is refused with the numbers. Memory takes at most half of
//! what they leave, and facts taken from results at most half of that: what is shown of the results themselves says
//! more. Lines that do not fit are left out: first facts taken from results, those of the oldest first, then other facts,
//! then the older episodes; a line says how many.

use std::ops::RangeInclusive;

use super::facts::{chosen_first, derived_from};
use super::meter::Meter;
use super::render::{EPISODES, FACTS, SEPARATOR, one_line};
use super::{CompileError, Memory, Request};
use crate::config::ContextConfig;
use crate::event::{ItemKind, Transcript};
use contextweaver_core::text::largest;

/// Facts taken from results get one in so many parts of what the caller leaves of the budget, all of memory one in two.
const TAKEN_PART: usize = 4;

/// The text before and after the items.
pub(super) struct Frame {
    /// Memory and header, each with the separator after it.
    pub(super) head: String,
    /// The caller's footer.
    pub(super) foot: String,
    /// The cost of both, in units of the meter.
    pub(super) cost: usize,
    /// The number of lines of memory left out.
    pub(super) omitted: usize,
}

/// The frame of the request.
pub(super) fn frame(
    transcript: &Transcript,
    memory: &Memory,
    request: &Request,
    config: &ContextConfig,
    meter: Meter,
) -> Result<Frame, CompileError> {
    let caller = Caller::of(request, config, meter);
    let Caller { budget, units, .. } = caller;
    if units > caller.limit {
        return Err(CompileError::FrameTooLarge { phase: request.phase, needed: meter.tokens(units), budget });
    }
    let lines = Lines::of(transcript, memory, request, config);
    let chosen = lines.episodes.len() + lines.chosen;
    let total = lines.episodes.len() + lines.facts.len();
    let fits = |shown: usize| caller.has_room_for(&lines.written(shown));
    let mut shown = most(0..=chosen, fits);
    if shown == chosen {
        let taken = meter.units(&lines.written(chosen)) + caller.left() / TAKEN_PART;
        shown = most(chosen..=total, |shown| fits(shown) && meter.units(&lines.written(shown)) <= taken);
    }
    let head = caller.below(&lines.written(shown));
    let foot = caller.footer.to_owned();
    let cost = meter.units(&format!("{head}{foot}"));
    Ok(Frame { head, foot, cost, omitted: total - shown + lines.beyond })
}

/// The most of `counts` for which `fits` holds. It holds for the first, and more lines cost more; only all of them may cost
/// less than one fewer, since no line then says how many are left out.
fn most(counts: RangeInclusive<usize>, fits: impl Fn(usize) -> bool) -> usize {
    let (low, high) = counts.into_inner();
    if fits(high) { high } else { low + largest(high - low, |more| fits(low + more)) }
}

/// Whether a prompt shows all of the memory but what was taken from results.
pub(crate) fn shows_all(transcript: &Transcript, memory: &Memory, request: &Request, config: &ContextConfig) -> bool {
    let lines = Lines::of(transcript, memory, request, config);
    let chosen = memory.facts.iter().filter(|fact| derived_from(&fact.key).is_none()).count();
    chosen == lines.chosen
        && Caller::of(request, config, Meter::new(config.estimator))
            .has_room_for(&lines.written(lines.episodes.len() + chosen))
}

/// What the caller says around the memory, and what it leaves of the budget.
struct Caller<'r> {
    header: String,
    footer: &'r str,
    meter: Meter,
    /// Tokens of the prompt at most.
    budget: usize,
    /// The same in units of the meter.
    limit: usize,
    /// What header and footer cost.
    units: usize,
}

impl<'r> Caller<'r> {
    fn of(request: &Request<'r>, config: &ContextConfig, meter: Meter) -> Self {
        let budget = request.budget.unwrap_or_else(|| config.budgets.of(request.phase));
        let header = if request.header.is_empty() { String::new() } else { format!("{}{SEPARATOR}", request.header) };
        let (footer, limit) = (request.footer, meter.limit(budget));
        let units = meter.units(&format!("{header}{footer}"));
        Self { header, footer, meter, budget, limit, units }
    }

    /// The lines of memory with the header below them.
    fn below(&self, lines: &str) -> String {
        format!("{lines}{}", self.header)
    }

    /// Whether lines of memory fit: they may take half of what the caller leaves.
    fn has_room_for(&self, lines: &str) -> bool {
        let whole = format!("{}{}", self.below(lines), self.footer);
        self.meter.units(&whole) <= self.units + self.left() / 2
    }

    /// The units that the caller leaves.
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.units)
    }
}

/// The lines of memory, in the order in which they may be shown.
struct Lines {
    /// The lines of the episodes, the latest first.
    episodes: Vec<String>,
    /// The lines of the facts that somebody chose to remember, then of those taken from results.
    facts: Vec<String>,
    /// The number of the former.
    chosen: usize,
    /// The number of facts beyond the limits of the configuration.
    beyond: usize,
}

impl Lines {
    fn of(transcript: &Transcript, memory: &Memory, request: &Request, config: &ContextConfig) -> Self {
        if !config.policy.kinds_of(request.phase).contains(&ItemKind::MemoryFact) {
            return Self { episodes: Vec::new(), facts: Vec::new(), chosen: 0, beyond: 0 };
        }
        let bounds = &config.memory;
        let latest = memory.episodes.iter().rev().take(bounds.max_episodes);
        let episodes = latest.map(|episode| format!("- {}", bounded(&episode.summary, bounds.max_episode_chars)));
        // A fact taken from a result is as sensitive as the result.
        let is_shown = |key: &str| {
            let source = derived_from(key).and_then(|id| transcript.get(id));
            source.is_none_or(|item| item.sensitivity < config.policy.sensitivity_floor)
        };
        let (chosen, facts) = chosen_first(transcript, memory.facts.iter().filter(|fact| is_shown(&fact.key)));
        let all = facts.len();
        let mut lines = Vec::new();
        let mut chars = 0;
        for fact in facts.into_iter().take(bounds.max_fact_lines) {
            let line = bounded(&format!("{}: {}", fact.key, fact.value), bounds.max_fact_chars);
            chars += line.chars().count();
            if chars > bounds.max_fact_chars {
                break;
            }
            lines.push(format!("- {line}"));
        }
        Self { episodes: episodes.collect(), chosen: chosen.min(lines.len()), beyond: all - lines.len(), facts: lines }
    }

    /// The blocks with the first `shown` lines: the latest episodes, in time order, then facts.
    fn written(&self, shown: usize) -> String {
        let episodes = shown.min(self.episodes.len());
        let facts = shown - episodes;
        let mut text = String::new();
        let mut block = |label: &str, lines: Vec<&str>| {
            if !lines.is_empty() {
                text.push_str(&format!("[{label}]\n{}{SEPARATOR}", lines.join("\n")));
            }
        };
        block(EPISODES, self.episodes.iter().take(episodes).rev().map(String::as_str).collect());
        let missing = self.facts.len() - facts + self.beyond;
        let omission = format!("- … {missing} more");
        let mut lines: Vec<&str> = self.facts.iter().take(facts).map(String::as_str).collect();
        if !lines.is_empty() && missing > 0 {
            lines.push(&omission);
        }
        block(FACTS, lines);
        text
    }
}

/// The text on one line of at most `most` characters.
fn bounded(text: &str, most: usize) -> String {
    let line = one_line(text);
    if line.chars().count() <= most {
        return line;
    }
    let kept: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
