//! `tool_browse` and its siblings: a query or a path to cards.

use serde::Deserialize;
use serde_json::json;

use super::config::{CardForm, Structured};
use super::error::{Code, GatewayError};
use super::hub::Gateway;
use super::session::{Caller, lock};
use super::snapshot::{Shelf, Snapshot};
use super::wire::Raw;
use crate::routing::{ChoiceCard, Path, Request, RouteError};

/// Tokens of a compact card: a page of ten stays under 450 with what stands around it.
const CARD_TOKENS: usize = 43;

/// The id of the card that marks the end of what was shown before (gateway surface, section 5).
pub(super) const BREAKPOINT: &str = "__cache_breakpoint__";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BrowseArgs {
    query: Option<String>,
    path: Option<String>,
    top_k: Option<usize>,
}

/// Which items are browsed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shelves {
    Tools,
    Resources,
    Prompts,
}

impl Shelves {
    fn of(self, snapshot: &Snapshot) -> Option<&Shelf> {
        match self {
            Self::Tools => snapshot.tools.as_ref(),
            Self::Resources => snapshot.resources.as_ref(),
            Self::Prompts => snapshot.prompts.as_ref(),
        }
    }
}

impl Gateway {
    pub(super) fn browse(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        shelves: Shelves,
        args: &BrowseArgs,
    ) -> Result<Raw, GatewayError> {
        let top_k = args.top_k.unwrap_or(usize::MAX).clamp(1, self.config.top_k);
        let shelf = shelves.of(snapshot);
        let (mut cards, note) = match (&args.query, &args.path) {
            (Some(query), None) => self.by_query(shelf, query, top_k)?,
            (None, Some(path)) => (by_path(shelf, path)?, None),
            _ => {
                let reason = "give exactly one of `query` (what you want to do) and `path` (`/` lists the namespaces)";
                return Err(GatewayError::new(Code::ArgsInvalid, reason));
            }
        };
        if self.config.cache_stable {
            cards = stable(caller, cards)?;
        }
        Ok(self.page(&cards, note.as_deref()))
    }

    fn by_query(
        &self,
        shelf: Option<&Shelf>,
        query: &str,
        top_k: usize,
    ) -> Result<(Vec<ChoiceCard>, Option<String>), GatewayError> {
        let Some(shelf) = shelf else { return Ok((Vec::new(), None)) };
        let request = Request { query: query.to_owned(), top_k: Some(top_k), ..Request::default() };
        let route = shelf.router.route(&request).map_err(|error| refused(&error))?;
        let note = route.ambiguity.as_ref().map(|ambiguity| ambiguity.question.clone());
        let scored = |choice: crate::routing::Choice| {
            choice.card.with_score(choice.score as f64 / crate::routing::SCORE_UNITS as f64)
        };
        Ok((route.choices.into_iter().map(scored).collect(), note))
    }

    /// The answer that shows these cards.
    fn page(&self, cards: &[ChoiceCard], note: Option<&str>) -> Raw {
        let mut text = match self.config.cards {
            CardForm::Json => serde_json::to_string(cards).unwrap_or_default(),
            CardForm::Lines if cards.is_empty() => {
                "nothing fits; try other words, or `path`: `/` for the namespaces".to_owned()
            }
            CardForm::Lines => {
                let lines: Vec<String> = cards.iter().map(|card| card.compact_line(CARD_TOKENS)).collect();
                lines.join("\n")
            }
        };
        if let (CardForm::Lines, Some(note)) = (self.config.cards, note) {
            text = format!("{text}\n({note})");
        }
        let mut result = json!({"content": [{"type": "text", "text": text}], "isError": false});
        if let (Structured::On, Some(result)) = (self.config.structured, result.as_object_mut()) {
            result.insert("structuredContent".to_owned(), json!({ "cards": cards }));
        }
        Raw::of(&result)
    }
}

fn by_path(shelf: Option<&Shelf>, path: &str) -> Result<Vec<ChoiceCard>, GatewayError> {
    let parsed: Path = path.parse().map_err(|error: crate::routing::PathError| path_error(&error))?;
    match shelf {
        Some(shelf) => shelf.router.browse(&parsed).map_err(|error| refused(&error)),
        None if path == "/" => Ok(Vec::new()),
        None => Err(GatewayError::new(Code::PathNotFound, "nothing is listed here").at(path)),
    }
}

fn path_error(error: &crate::routing::PathError) -> GatewayError {
    let code = if error.code() == "PATH_NOT_FOUND" { Code::PathNotFound } else { Code::PathInvalid };
    GatewayError::new(code, error.to_string()).at(error.path())
}

fn refused(error: &RouteError) -> GatewayError {
    match error {
        RouteError::Path(error) => path_error(error),
        other => GatewayError::new(Code::ArgsInvalid, other.to_string()),
    }
}

/// What was shown before first and unchanged, then a mark, then what is new; each in ascending id order.
fn stable(caller: &Caller, cards: Vec<ChoiceCard>) -> Result<Vec<ChoiceCard>, GatewayError> {
    let mut shown = lock(&caller.session().shown);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for card in cards {
        match shown.get(card.id()) {
            Some(before) => old.push(before.clone()),
            None => new.push(card),
        }
    }
    for card in &new {
        shown.insert(card.id().to_owned(), card.clone());
    }
    old.sort_unstable_by(|left, right| left.id().cmp(right.id()));
    new.sort_unstable_by(|left, right| left.id().cmp(right.id()));
    if !old.is_empty() && !new.is_empty() {
        let mark = ChoiceCard::internal(BREAKPOINT, BREAKPOINT, "", "");
        old.push(mark.map_err(|error| GatewayError::new(Code::ArgsInvalid, error.to_string()))?);
    }
    old.append(&mut new);
    Ok(old)
}
