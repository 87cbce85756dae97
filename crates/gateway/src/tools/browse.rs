//! `tool_browse` and its siblings: a query or a path to cards.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalog::shelf::{Shelf, Target};
use crate::catalog::view::CatalogView;
use crate::common::error::{Code, GatewayError, presentable};
use crate::common::sync::lock;
use crate::common::work::draw_steps;
use crate::guard::usage::signature;
use crate::protocol::message::Raw;
use crate::session::client::Caller;
use crate::surface::meta_tools::MOST_QUERIES;
use crate::surface::mode::{CardForm, Structured};
use contextweaver_core::text::Estimator;
use contextweaver_routing::{Choice, ChoiceCard, Path, PathError, Request, Route, RouteError, SCORE_UNITS};

/// Tokens of a compact card, unless its id alone has more.
const CARD_TOKENS: usize = 42;

/// Tokens of a page for each of its cards, at most: a page of ten stays within 450.
const TOKENS_A_CARD: usize = 45;

/// Tokens of a compact card above its arguments.
const CARD_BESIDE_ARGUMENTS: usize = 36;

/// Tokens of a page for each of its cards with its arguments, at most.
const TOKENS_A_CARD_WITH_ARGUMENTS: usize = 80;

/// What stands above cards that do not fit well.
const NOTHING_FITS: &str = "nothing fits well; the nearest are:";

/// How to ask better.
const ASK_BETTER: &str = "ask again in words that a tool's author would use, one step at a time, or list `path`: `/`";

/// Characters of a query that a note repeats, at most.
const QUERY_IN_NOTE: usize = 60;

/// Tokens of a page that are kept for what says how to go on, and for the mark of a stable prefix.
const FRAME: usize = 20;

/// Cards of a page of a path, at most.
const PATH_CARDS: usize = 20;

/// Servers that do not answer and are named, at most.
const MOST_ABSENT: usize = 8;

/// Items that are ranked in no time.
const MOST_SHORT: usize = 2_000;

/// Bytes of a query that is long.
const LONG_QUERY: usize = 2_000;

/// The id of the card that separates the cards shown before from the new ones.
const BREAKPOINT: &str = "__cache_breakpoint__";

/// The arguments of `tool_browse` and its siblings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BrowseArgs {
    query: Option<Queries>,
    queries: Option<Queries>,
    path: Option<String>,
    top_k: Option<Count>,
    cursor: Option<String>,
    #[serde(default)]
    detail: Option<bool>,
}

/// One query or several. Models write either under both names.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a query is a text, and `queries` an array of texts")]
enum Queries {
    One(String),
    Several(Vec<String>),
}

impl Queries {
    fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

impl BrowseArgs {
    fn asked(&self) -> Option<&[String]> {
        self.query.as_ref().or(self.queries.as_ref()).map(Queries::texts)
    }

    fn has_detail(&self) -> bool {
        self.detail == Some(true)
    }

    /// The tool whose whole definition is asked for: `detail` with the id of a tool, or with its path.
    pub(crate) fn whole<'v>(&self, view: &'v CatalogView, shelves: Shelves) -> Option<Target<'v>> {
        let shelf = shelves.of(view).filter(|_| self.has_detail() && matches!(shelves, Shelves::Tools))?;
        match (self.asked(), &self.path) {
            (Some([id]), None) if id.contains(':') => shelf.named(id.trim()).ok(),
            (None, Some(path)) => {
                let cards = shelf.router.browse(&path.parse().ok()?).ok()?;
                let [card] = cards.as_slice() else { return None };
                shelf.named(card.id()).ok()
            }
            _ => None,
        }
    }
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
    /// What is said before the cards.
    head: Option<&'static str>,
    note: Option<String>,
    /// Which servers do not answer, where what is asked for may be theirs.
    absent: Option<String>,
    /// The arguments of each card, where they were asked for; empty otherwise.
    arguments: Vec<String>,
    /// The queries with the ids that each found.
    queries: Vec<(String, BTreeSet<String>)>,
}

impl Found {
    /// Cards that nothing is said about yet.
    fn of(cards: Vec<ChoiceCard>, most: usize) -> Self {
        Self {
            cards,
            most,
            from: 0,
            of: None,
            head: None,
            note: None,
            absent: None,
            arguments: Vec::new(),
            queries: Vec::new(),
        }
    }

    /// The lines of the card at `at`.
    fn lines(&self, at: usize) -> String {
        let Some(card) = self.cards.get(at) else { return String::new() };
        match self.arguments.get(at) {
            Some(arguments) => format!("{}\n  {arguments}", card.compact_line(CARD_BESIDE_ARGUMENTS)),
            None => card.compact_line(CARD_TOKENS),
        }
    }

    /// Tokens of the page, at most.
    fn budget(&self) -> usize {
        let each = if self.arguments.is_empty() { TOKENS_A_CARD } else { TOKENS_A_CARD_WITH_ARGUMENTS };
        self.most * each
    }
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
    /// Whether what was found is remembered, so that searches learn from calls.
    pub(crate) learns: bool,
}

impl Cards {
    /// Whether an answer may take long: many items are ranked, or the query is long.
    pub(crate) fn takes_long(&self, view: &CatalogView, shelves: Shelves, args: &BrowseArgs) -> bool {
        let items = shelves.of(view).map_or(0, |shelf| shelf.router.catalog().items().len());
        let queries = args.asked().unwrap_or_default();
        items * queries.len().max(1) > MOST_SHORT || queries.iter().map(String::len).sum::<usize>() > LONG_QUERY
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
        let is_double = args.query.is_some() && args.queries.is_some();
        let asked = args.asked().filter(|_| !is_double);
        let mut found = match (asked, &args.path, &args.cursor) {
            (Some(queries), None, None) => {
                let most = top_k.unwrap_or(usize::MAX).clamp(1, self.top_k);
                by_queries(shelf, queries, most)?
            }
            (None, Some(path), cursor) if args.asked().is_none() => {
                let most = top_k.unwrap_or(PATH_CARDS).clamp(1, PATH_CARDS);
                let found = by_path(shelf, path, cursor.as_deref(), most);
                found.or_else(|error| view.refuse_absent_path(path).and(Err(error)))?
            }
            _ => {
                let reason = "give exactly one of `queries` or `query` (in words that a tool has) and `path` (`/` lists the \
                    namespaces); a `cursor` goes with its path";
                return Err(GatewayError::new(Code::ArgsInvalid, reason));
            }
        };
        if found.cards.is_empty() || found.head.is_some() || args.path.as_deref() == Some("/") {
            found.absent = absent(view);
        }
        if self.learns && !found.queries.is_empty() {
            lock(&caller.session().searches).add(std::mem::take(&mut found.queries));
        }
        found.cards.truncate(found.most);
        let describe = |card: &ChoiceCard| {
            let item = shelf.and_then(|shelf| shelf.item(card.id()));
            item.map(|(_, item)| signature(item.args_schema.as_deref())).unwrap_or_default()
        };
        if args.has_detail() {
            found.arguments = found.cards.iter().map(describe).collect();
        }
        if self.form == CardForm::Lines {
            found.cards.truncate(fitting(&found));
        }
        if let Some(of) = found.of {
            let next = found.from + found.cards.len();
            found.note = (next < of).then(|| format!("{} of {of}; cursor {next} goes on", found.cards.len()));
        }
        if self.stable {
            found.cards = stable(lock(&caller.session().shown).of(view.generation), found.cards)?;
        }
        if args.has_detail() {
            found.arguments = found.cards.iter().map(describe).collect();
        }
        Ok(self.page(&found))
    }

    /// Notes that a client has seen a tool: hydrating or calling it counts like browsing it.
    pub(crate) fn note_shown(&self, caller: &Caller, view: &CatalogView, target: &Target<'_>) {
        let card = u32::try_from(target.at).ok().map(|at| target.shelf.router.deck().shown(at));
        if let (true, Some(card)) = (self.stable, card) {
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
                if !found.arguments.is_empty() {
                    parts.push(json!({ "arguments": arguments_of(found) }).to_string());
                }
                parts.extend(found.head.map(str::to_owned));
                parts.extend(found.note.clone());
                parts.extend(found.absent.clone());
            }
            CardForm::Lines => {
                let text = if cards.is_empty() { format!("nothing fits; {ASK_BETTER}") } else { page_text(found) };
                let absent = found.absent.as_ref().map(|absent| format!("\n{absent}")).unwrap_or_default();
                parts.push(text + &absent);
            }
        }
        let parts: Vec<Value> = parts.into_iter().map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({"content": parts, "isError": false});
        if let (Structured::On, Some(result)) = (self.structured, result.as_object_mut()) {
            let mut structured = json!({ "cards": cards });
            if !found.arguments.is_empty() {
                structured["arguments"] = arguments_of(found);
            }
            if found.head.is_some() {
                structured["no_tool_fits"] = true.into();
            }
            result.insert("structuredContent".to_owned(), structured);
        }
        Raw::of(&result)
    }
}

/// Which servers do not answer; `None` if all do.
fn absent(view: &CatalogView) -> Option<String> {
    let names: Vec<&str> = view.absent.iter().take(MOST_ABSENT).map(String::as_str).collect();
    let more = match view.absent.len().saturating_sub(MOST_ABSENT) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("not available now, since their servers do not answer: {names}{more}"))
}

/// The arguments of the cards by their ids: beside the cards, which have no place for them.
fn arguments_of(found: &Found) -> Value {
    let each = found.cards.iter().zip(&found.arguments).filter(|(_, arguments)| !arguments.is_empty());
    each.map(|(card, arguments)| (card.id().to_owned(), Value::from(arguments.as_str()))).collect::<Map<_, _>>().into()
}

/// The lines of a page, and its note where that fits too. What tells how to go on, or that nothing fits, always stands.
fn page_text(found: &Found) -> String {
    let head = found.head.map(|head| format!("{head}\n")).unwrap_or_default();
    let lines: Vec<String> = (0..found.cards.len()).map(|at| found.lines(at)).collect();
    let lines = head + &lines.join("\n");
    let Some(note) = &found.note else { return lines };
    let noted = format!("{lines}\n({note})");
    let stands = found.of.is_some() || found.head.is_some();
    if stands || Estimator::Cl100kBase.count(&noted) <= found.budget() { noted } else { lines }
}

/// How many of the cards fit into the page, one at least. Each line is made without regard to the others, so that a card
/// shown again has the same bytes; an id is never cut, and a long one may cost the last cards their place.
fn fitting(found: &Found) -> usize {
    let count = |text: &str| Estimator::Cl100kBase.count(text) + 1;
    // A search without an answer says so in full.
    let frame = found.head.map_or(FRAME, |head| count(head) + found.note.as_deref().map_or(0, count) + 2);
    let frame = frame + found.absent.as_deref().map_or(0, count);
    let mut left = found.budget().saturating_sub(frame);
    let fits = |at: &usize| -> bool {
        let cost = count(&found.lines(*at));
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    };
    (0..found.cards.len()).take_while(fits).count().max(1)
}

/// The best tools for the queries: the first of each, then the second of each, and so on, every tool once.
fn by_queries(shelf: Option<&Shelf>, queries: &[String], most: usize) -> Result<Found, GatewayError> {
    if !(1..=MOST_QUERIES).contains(&queries.len()) {
        let reason = format!("there are {} queries; a search takes 1 to {MOST_QUERIES}", queries.len());
        return Err(GatewayError::new(Code::ArgsInvalid, reason));
    }
    let mut found = Found::of(Vec::new(), most);
    let Some(shelf) = shelf else { return Ok(found) };
    let quoted = |query: &str| format!("`{}`", presentable(query).chars().take(QUERY_IN_NOTE).collect::<String>());
    let items = shelf.router.catalog().items().len();
    let mut routes = Vec::new();
    for query in queries {
        // Each tool is ranked, by words of the query.
        draw_steps((items + query.len()) as u64).map_err(|exhausted| {
            GatewayError::exhausted(Code::ArgsInvalid, &format!("the query {}", quoted(query)), exhausted)
        })?;
        let request = Request { query: query.clone(), top_k: Some(most), ..Request::default() };
        routes.push(shelf.search().route(&request).map_err(|error| refused(&error))?);
    }
    let missed: Vec<&str> =
        routes.iter().filter(|route| route.no_tool_fits).map(|route| route.query.as_str()).collect();
    if missed.len() == routes.len() {
        (found.head, found.note) = (Some(NOTHING_FITS), Some(ASK_BETTER.to_owned()));
    } else if !missed.is_empty() {
        let missed: Vec<String> = missed.into_iter().map(quoted).collect();
        found.note = Some(format!("nothing fits {} well", missed.join(", ")));
    } else if let [route] = routes.as_mut_slice() {
        found.note = route.ambiguity.take().map(|ambiguity| ambiguity.question);
    }
    let ids = |route: &Route| route.choices.iter().map(|choice| choice.card.id().to_owned()).collect();
    found.queries = routes.iter().map(|route| (route.query.clone(), ids(route))).collect();
    let mut rankings: Vec<_> = routes.into_iter().map(|route| route.choices.into_iter()).collect();
    let mut shown = BTreeSet::new();
    for _ in 0..most {
        for ranking in &mut rankings {
            // A tool that another query brought costs this one nothing: its next one takes the place.
            let next = ranking.find(|choice| !shown.contains(choice.card.id()));
            if let Some(Choice { card, score, .. }) = next {
                shown.insert(card.id().to_owned());
                found.cards.push(card.with_score(score as f64 / SCORE_UNITS as f64));
            }
        }
    }
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
    Ok(Found { from, of: Some(of), ..Found::of(cards.into_iter().skip(from).collect(), most) })
}

fn path_error(error: &PathError) -> GatewayError {
    let code = match error {
        PathError::NotFound { .. } => Code::PathNotFound,
        PathError::Invalid { .. } => Code::PathInvalid,
    };
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
