//! `tool_browse` and its siblings: a query or a path to cards.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::shelf::{Shelf, Target};
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError};
use crate::common::sync::lock;
use crate::protocol::message::Raw;
use crate::session::client::Caller;
use crate::surface::mode::{CardForm, Structured};
use contextweaver_core::text::Estimator;
use contextweaver_routing::{Choice, ChoiceCard, Path, PathError, Request, RouteError, SCORE_UNITS};

/// Tokens of a compact card, unless its id alone has more.
const CARD_TOKENS: usize = 42;

/// Tokens of a page for each of its cards, at most: a page of ten stays within 450.
const TOKENS_A_CARD: usize = 45;

/// Tokens of a page that are kept for what says how to go on, and for the mark of a stable prefix.
const FRAME: usize = 20;

/// Cards of a page of a path, at most.
const PATH_CARDS: usize = 20;

/// Items that are ranked in no time.
const MOST_SHORT: usize = 2_000;

/// Bytes of a query that is long.
const LONG_QUERY: usize = 2_000;

/// The id of the card that separates the cards shown before from the new ones.
const BREAKPOINT: &str = "__cache_breakpoint__";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowseArgs {
    query: Option<String>,
    path: Option<String>,
    top_k: Option<Count>,
    cursor: Option<String>,
}

/// A number of cards.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "Value")]
struct Count(usize);

impl TryFrom<Value> for Count {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
        count.map(Self).ok_or("`top_k` must be a whole number that is not negative")
    }
}

/// Which items are browsed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shelves {
    Tools,
    Resources,
    Prompts,
}

impl Shelves {
    fn of(self, view: &CatalogView) -> Option<&Shelf> {
        match self {
            Self::Tools => view.tools.as_ref(),
            Self::Resources => view.resources.as_ref(),
            Self::Prompts => view.prompts.as_ref(),
        }
    }
}

/// What is found, before it is cut to a page.
struct Found {
    cards: Vec<ChoiceCard>,
    /// Cards of a page, at most.
    most: usize,
    /// The number of the first card.
    from: usize,
    /// How many there are, where a page can be followed by another.
    of: Option<usize>,
    note: Option<String>,
}

/// How cards are found and shown.
#[derive(Debug, Clone)]
pub(crate) struct Cards {
    /// Cards of an answer to a query, at most.
    pub(crate) top_k: usize,
    /// The form of an answer.
    pub(crate) form: CardForm,
    /// Whether answers also carry `structuredContent`.
    pub(crate) structured: Structured,
    /// Whether cards that were shown before come first and unchanged, so that prompts have a stable prefix.
    pub(crate) stable: bool,
}

impl Cards {
    /// Whether an answer may take long: many items are ranked, or the query is long.
    pub(crate) fn takes_long(&self, view: &CatalogView, shelves: Shelves, args: &BrowseArgs) -> bool {
        let items = shelves.of(view).map_or(0, |shelf| shelf.router.catalog().items().len());
        items > MOST_SHORT || args.query.as_ref().is_some_and(|query| query.len() > LONG_QUERY)
    }

    /// Answers a query or a path.
    ///
    /// # Errors
    /// The arguments do not go together, or the path is not one of the catalog.
    pub(crate) fn browse(
        &self,
        caller: &Caller,
        view: &CatalogView,
        shelves: Shelves,
        args: &BrowseArgs,
    ) -> Result<Raw, GatewayError> {
        let shelf = shelves.of(view);
        let top_k = args.top_k.map(|Count(count)| count);
        let mut found = match (&args.query, &args.path, &args.cursor) {
            (Some(query), None, None) => {
                let most = top_k.unwrap_or(usize::MAX).clamp(1, self.top_k);
                by_query(shelf, query, most)?
            }
            (None, Some(path), cursor) => {
                let most = top_k.unwrap_or(PATH_CARDS).clamp(1, PATH_CARDS);
                by_path(shelf, path, cursor.as_deref(), most)?
            }
            _ => {
                let reason = "give exactly one of `query` (what you want to do) and `path` (`/` lists the namespaces); \
                    a `cursor` goes with its path";
                return Err(GatewayError::new(Code::ArgsInvalid, reason));
            }
        };
        found.cards.truncate(found.most);
        if self.form == CardForm::Lines {
            found.cards.truncate(fitting(&found.cards, found.most * TOKENS_A_CARD));
        }
        if let Some(of) = found.of {
            let next = found.from + found.cards.len();
            found.note = (next < of).then(|| format!("{} of {of}; cursor {next} goes on", found.cards.len()));
        }
        if self.stable {
            found.cards = stable(lock(&caller.session().shown).of(view.generation), found.cards)?;
        }
        Ok(self.page(&found))
    }

    /// Notes that a client has seen a tool: hydrating or calling it counts like browsing it.
    pub(crate) fn note_shown(&self, caller: &Caller, view: &CatalogView, target: &Target<'_>) {
        let card = u32::try_from(target.at).ok().map(|at| target.shelf.router.deck().card(at));
        if let (true, Some(Ok(card))) = (self.stable, card) {
            let mut shown = lock(&caller.session().shown);
            shown.of(view.generation).entry(card.id().to_owned()).or_insert_with(|| card.clone());
        }
    }

    /// The answer that shows these cards.
    fn page(&self, found: &Found) -> Raw {
        let cards = &found.cards;
        let mut parts = Vec::new();
        match self.form {
            CardForm::Json => {
                parts.push(serde_json::to_string(cards).unwrap_or_default());
                parts.extend(found.note.clone());
            }
            CardForm::Lines if cards.is_empty() => {
                parts.push("nothing fits; try other words, or `path`: `/` for the namespaces".to_owned());
            }
            CardForm::Lines => parts.push(page_text(found)),
        }
        let parts: Vec<Value> = parts.into_iter().map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({"content": parts, "isError": false});
        if let (Structured::On, Some(result)) = (self.structured, result.as_object_mut()) {
            result.insert("structuredContent".to_owned(), json!({ "cards": cards }));
        }
        Raw::of(&result)
    }
}

fn card_line(card: &ChoiceCard) -> String {
    card.compact_line(CARD_TOKENS)
}

/// The lines of a page, and its note where that fits too. What tells how to go on always stands.
fn page_text(found: &Found) -> String {
    let lines: Vec<String> = found.cards.iter().map(card_line).collect();
    let lines = lines.join("\n");
    let Some(note) = &found.note else { return lines };
    let noted = format!("{lines}\n({note})");
    let budget = found.most * TOKENS_A_CARD;
    if found.of.is_some() || Estimator::Cl100kBase.count(&noted) <= budget { noted } else { lines }
}

/// How many of the cards fit into `budget` tokens, one at least. Each line is made without regard to the others, so
/// that a card shown again has the same bytes; an id is never cut, and a long one may cost the last cards their place.
fn fitting(cards: &[ChoiceCard], budget: usize) -> usize {
    let mut left = budget.saturating_sub(FRAME);
    let fits = |card: &&ChoiceCard| -> bool {
        let cost = Estimator::Cl100kBase.count(&card_line(card)) + 1;
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    };
    cards.iter().take_while(fits).count().max(1)
}

fn by_query(shelf: Option<&Shelf>, query: &str, most: usize) -> Result<Found, GatewayError> {
    let mut found = Found { cards: Vec::new(), most, from: 0, of: None, note: None };
    let Some(shelf) = shelf else { return Ok(found) };
    let request = Request { query: query.to_owned(), top_k: Some(most), ..Request::default() };
    let route = shelf.search().route(&request).map_err(|error| refused(&error))?;
    found.note = route.ambiguity.map(|ambiguity| ambiguity.question);
    let scored = |choice: Choice| choice.card.with_score(choice.score as f64 / SCORE_UNITS as f64);
    found.cards = route.choices.into_iter().map(scored).collect();
    Ok(found)
}

fn by_path(shelf: Option<&Shelf>, path: &str, cursor: Option<&str>, most: usize) -> Result<Found, GatewayError> {
    let parsed: Path = path.parse().map_err(|error: PathError| path_error(&error))?;
    let cards = match shelf {
        Some(shelf) => shelf.router.browse(&parsed).map_err(|error| refused(&error))?,
        None if path == "/" => Vec::new(),
        None => return Err(GatewayError::new(Code::PathNotFound, "nothing is listed here").at(path)),
    };
    let of = cards.len();
    let from = match cursor {
        None => 0,
        Some(cursor) => cursor.parse().ok().filter(|from| *from < of).ok_or_else(|| {
            let reason = format!("the cursor `{cursor}` is not one of this path, which has {of} entries");
            GatewayError::new(Code::ArgsInvalid, reason).at(path)
        })?,
    };
    Ok(Found { cards: cards.into_iter().skip(from).collect(), most, from, of: Some(of), note: None })
}

fn path_error(error: &PathError) -> GatewayError {
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
fn stable(shown: &mut BTreeMap<String, ChoiceCard>, cards: Vec<ChoiceCard>) -> Result<Vec<ChoiceCard>, GatewayError> {
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
