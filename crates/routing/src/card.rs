//! The compact form of an item that a model chooses from.
//!
//! A [`ChoiceCard`] has a fixed set of private fields, filled here and nowhere else, so no schema, example,
//! annotation or server address can reach it. Its prompt form is one line, bounded in exact `cl100k_base` tokens;
//! only the description is ever shortened to meet the bound.
//!
//! Decided here:
//! - The line is `[i/n] id (kind) — description [tag, tag] | cost 0.5 | side-effects`. The dash is there only before a
//!   description, the cost only when it is known, `side-effects` only when true and not implied by the tag
//!   `destructive`. The score is in the JSON form only. Where copies share a place, ` | also id, id +7` names
//!   alternatives, as far as the cap leaves room.
//! - The target binds the description. Where id and tags alone come near the target, the description still gets
//!   [`DESCRIPTION_RESERVE`] tokens as far as the hard cap allows: a card without any description cannot be chosen
//!   well.
//! - A sentence ends at `.`, `!` or `?` before white space or the end, but not inside `e.g.` or after `2.`.
//! - Characters that a person cannot see (controls, direction overrides, tag characters) are removed: they can hide
//!   instructions from a reader but not from the model.
//! - A tag that holds an address or JSON is left out: it would carry in what cards must not show.
//!
//! Not here: which cards are shown (routing and filters) and how a page of them is framed (the gateway).

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use contextweaver_core::catalog::{Catalog, CatalogError, Kind, Safety, SelectableItem};
use contextweaver_core::text::{Estimator, cl100k_if_over};

/// Tokens (`cl100k_base`) of a card's line above which its description is shortened.
pub const CARD_TARGET: usize = 60;

/// Tokens (`cl100k_base`) of a card's line that no card exceeds, but one whose id alone does: see [`CardDeck::shown`].
pub const CARD_CAP: usize = 80;

/// Tokens that a description may use beyond the target when the rest of the card is long.
pub const DESCRIPTION_RESERVE: usize = 12;

/// The number of tags on a card at most, the safety tags included.
pub const CARD_TAGS: usize = 5;

const NAME_CHARACTERS: usize = 64;
const TAG_CHARACTERS: usize = 24;

/// Tags that stay on the card however many tags sort before them.
const SAFETY_TAGS: [&str; 2] = ["destructive", "read-only"];

/// No token of `cl100k_base` is longer, so a text of more than `CARD_CAP` times as many bytes never fits.
const MAX_TOKEN_BYTES: usize = 128;

const ELLIPSIS: char = '…';

/// The number of alternatives that a card names; the others are counted.
const NAMED_ALTERNATIVES: usize = 3;

/// The number of characters tried first when a description is cut: what one within its bound usually has.
const FIRST_PROBE: usize = 256;

/// What a model sees of an item before it chooses. Serialises to the JSON form, keys in the order of the fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceCard {
    id: String,
    name: String,
    description: String,
    tags: Vec<String>,
    kind: Kind,
    namespace: String,
    has_schema: bool,
    cost_hint: f64,
    side_effects: bool,
    safety: Safety,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    /// Ids of tools that do the same, as many as the line has room for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<String>,
    /// The number of alternatives that are not named.
    #[serde(default, skip_serializing_if = "is_zero")]
    more_alternatives: usize,
}

impl ChoiceCard {
    /// The card of `item`, without a score.
    ///
    /// # Errors
    /// [`CatalogError::CardTooLarge`] when id and tags alone exceed [`CARD_CAP`].
    pub fn of(item: &SelectableItem) -> Result<Self, CatalogError> {
        Self::build(item).within_cap()
    }

    /// The card of `item`, within its bounds or not.
    fn build(item: &SelectableItem) -> Made {
        Self::undescribed(item).describe(&item.description)
    }

    /// The card of `item` without its description.
    fn undescribed(item: &SelectableItem) -> Self {
        Self {
            id: item.id.clone(),
            name: short_name(&item.name),
            description: String::new(),
            tags: card_tags(&item.tags),
            kind: item.kind,
            namespace: item.namespace.clone(),
            has_schema: item.args_schema.is_some(),
            cost_hint: item.cost_hint,
            side_effects: item.side_effects,
            safety: item.safety,
            score: None,
            alternatives: Vec::new(),
            more_alternatives: 0,
        }
    }

    /// The card of a node of the choice graph: its path is the id, its label the name, its hint the description.
    ///
    /// # Errors
    /// [`CatalogError::CardTooLarge`] when the path alone exceeds [`CARD_CAP`].
    pub fn internal(path: &str, label: &str, hint: &str, namespace: &str) -> Result<Self, CatalogError> {
        Self::node(path, label, hint, namespace).within_cap()
    }

    /// The card of a node of the choice graph, within its bounds or not.
    pub(crate) fn node(path: &str, label: &str, hint: &str, namespace: &str) -> Made {
        Self {
            id: path.to_owned(),
            name: short_name(label),
            description: String::new(),
            tags: Vec::new(),
            kind: Kind::Internal,
            namespace: namespace.to_owned(),
            has_schema: false,
            cost_hint: 0.0,
            side_effects: false,
            safety: Safety::Undeclared,
            score: None,
            alternatives: Vec::new(),
            more_alternatives: 0,
        }
        .describe(hint)
    }

    /// The same card with the score of the query it is shown for.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }

    /// The same card with other tools that do the same: as many of `ids` as the line has room for within [`CARD_CAP`],
    /// three at most, and the number of the others. When neither fits, the card stays as it is.
    #[must_use]
    pub fn with_alternatives(mut self, ids: &[&str]) -> Self {
        for named in (0..=ids.len().min(NAMED_ALTERNATIVES)).rev() {
            self.alternatives = ids.iter().take(named).map(|id| (*id).to_owned()).collect();
            self.more_alternatives = ids.len() - named;
            if cl100k_if_over(&self.line(1, 1), CARD_CAP).is_none() {
                return self;
            }
        }
        (self.alternatives, self.more_alternatives) = (Vec::new(), 0);
        self
    }

    /// The id, which a model returns to choose the card.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The display name, at most 64 characters.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description: one line, shortened as far as the bound demands, possibly empty.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The kind of item that the card stands for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The prompt form as number `position` of `of` cards, counted from one, without a line end.
    #[must_use]
    pub fn line(&self, position: usize, of: usize) -> String {
        self.line_with(position, of, &self.description)
    }

    /// The shortest form that can be chosen from: id, description and what the tool declares about its danger, on a
    /// line of at most `limit` exact `cl100k_base` tokens. An id that alone exceeds the limit is still written whole.
    #[must_use]
    pub fn compact_line(&self, limit: usize) -> String {
        let safety = self.safety.tag().map(|tag| format!(" [{tag}]")).unwrap_or_default();
        let line = |description: &str| match description {
            "" => format!("{}{safety}", self.id),
            description => format!("{} — {description}{safety}", self.id),
        };
        let fits = |description: &str| cl100k_if_over(&line(description), limit).is_none();
        if fits(&self.description) {
            return line(&self.description);
        }
        // When only the id fits, nothing is left of the description.
        if fits("…") { line(&truncate(&self.description, fits)) } else { line("") }
    }

    /// Exact `cl100k_base` tokens of the line as the only card, at most [`CARD_CAP`] but for [`CardDeck::shown`]. Counts anew at every call;
    /// [`CardDeck::tokens`] keeps the count.
    #[must_use]
    pub fn tokens(&self) -> usize {
        Estimator::Cl100kBase.count(&self.line(1, 1))
    }

    fn line_with(&self, position: usize, of: usize, description: &str) -> String {
        let mut line = format!("[{position}/{of}] {} ({})", self.id, self.kind.name());
        if !description.is_empty() {
            line.push_str(" — ");
            line.push_str(description);
        }
        if !self.tags.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(line, " [{}]", self.tags.join(", "));
        }
        if self.cost_hint > 0.0 {
            let _ = write!(line, " | cost {}", three_digits(self.cost_hint));
        }
        if self.side_effects && !self.tags.iter().any(|tag| tag == "destructive") {
            line.push_str(" | side-effects");
        }
        if !self.alternatives.is_empty() || self.more_alternatives > 0 {
            let _ = write!(line, " | also {}", self.alternatives.join(", "));
            if self.more_alternatives > 0 {
                let space = if self.alternatives.is_empty() { "" } else { " " };
                let _ = write!(line, "{space}+{}", self.more_alternatives);
            }
        }
        line
    }

    /// Takes as much of `text` as the target and the cap allow. Where even without it the line is over the cap, only the id
    /// and what the tool declares about its danger are left.
    fn describe(mut self, text: &str) -> Made {
        let text = single_line(text, MAX_TOKEN_BYTES * CARD_CAP);
        let tokens_over = |limit: usize, description: &str| cl100k_if_over(&self.line_with(1, 1, description), limit);
        if tokens_over(CARD_TARGET, &text).is_none() {
            self.description = text;
            return Made { card: self, over: None };
        }
        let frame = self.line_with(1, 1, "");
        let over = cl100k_if_over(&frame, CARD_CAP);
        if over.is_some() {
            self.tags.retain(|tag| SAFETY_TAGS.contains(&tag.as_str()));
            self.cost_hint = 0.0;
            return Made { card: self, over };
        }
        let widest = (Estimator::Cl100kBase.count(&frame) + DESCRIPTION_RESERVE).min(CARD_CAP);
        let limit = widest.max(CARD_TARGET);
        self.description = truncate(&text, |description| tokens_over(limit, description).is_none());
        Made { card: self, over: None }
    }
}

/// A card as it was made.
#[derive(Debug)]
pub(crate) struct Made {
    /// The card, without what could be cut where it was over the cap.
    pub(crate) card: ChoiceCard,
    /// Tokens of its line without a description, where those exceed [`CARD_CAP`].
    over: Option<usize>,
}

impl Made {
    /// The card, if nothing but its description had to be cut.
    fn within_cap(self) -> Result<ChoiceCard, CatalogError> {
        match self.over {
            None => Ok(self.card),
            Some(tokens) => Err(too_large(&self.card.id, tokens)),
        }
    }
}

/// The prompt form of a page of cards: one numbered line each, in the given order, without a final line end.
///
/// A line end takes at most one token beyond those of its line, and numbers up to 999 take no more than the `[1/1]`
/// that cards are measured with: a page of up to 33 cards is within `80 × n + 32` tokens even when every card has
/// reached the cap.
#[must_use]
pub fn render_cards<C: Borrow<ChoiceCard>>(cards: &[C]) -> String {
    let lines = cards.iter().enumerate().map(|(at, card)| card.borrow().line(at + 1, cards.len()));
    lines.collect::<Vec<_>>().join("\n")
}

/// The cards of a whole catalog, each made once.
///
/// A card is made when it is first asked for, since a route shows ten of thousands and a cold process must not wait for
/// the others; [`prepare`](Self::prepare) makes them all, for a process that serves many queries.
#[derive(Debug)]
pub struct CardDeck {
    catalog: Arc<Catalog>,
    slots: Vec<Slot>,
}

/// A card once it was asked for, and its tokens.
#[derive(Debug, Default)]
struct Slot {
    made: OnceLock<Made>,
    tokens: OnceLock<usize>,
}

impl CardDeck {
    /// The deck of `catalog`; no card is made yet.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(catalog.len()).collect();
        Self { catalog, slots }
    }

    /// The card of the item with this number, without a score.
    ///
    /// # Errors
    /// [`CatalogError::CardTooLarge`] when id and tags alone exceed [`CARD_CAP`].
    ///
    /// # Panics
    /// When `item` is not an item number of the catalog.
    pub fn card(&self, item: u32) -> Result<&ChoiceCard, CatalogError> {
        let made = self.made(item);
        made.over.map_or(Ok(&made.card), |tokens| Err(too_large(&made.card.id, tokens)))
    }

    /// The card of the item with this number as a page shows it. Where id and tags alone exceed [`CARD_CAP`], it has no
    /// description, no cost, and of the tags those about danger; its line exceeds the cap only where an id is so long that
    /// it does so even then. One item with a long name must not cost the others of a page their cards.
    ///
    /// # Panics
    /// When `item` is not an item number of the catalog.
    #[must_use]
    pub fn shown(&self, item: u32) -> &ChoiceCard {
        &self.made(item).card
    }

    fn made(&self, item: u32) -> &Made {
        let item = item as usize;
        self.slots[item].made.get_or_init(|| ChoiceCard::build(&self.catalog.items()[item]))
    }

    /// Exact `cl100k_base` tokens of the line of the item with this number, counted once.
    ///
    /// # Errors
    /// As [`card`](Self::card).
    ///
    /// # Panics
    /// When `item` is not an item number of the catalog.
    pub fn tokens(&self, item: u32) -> Result<usize, CatalogError> {
        let card = self.card(item)?;
        Ok(*self.slots[item as usize].tokens.get_or_init(|| card.tokens()))
    }

    /// The numbers, ascending, of the items whose id and tags alone exceed [`CARD_CAP`], so that they have no card within
    /// it. A caller can refuse the catalog or leave these items out before a query finds one of them. Cheap: makes no card,
    /// and does not count lines of at most [`CARD_CAP`] bytes.
    #[must_use]
    pub fn oversized(&self) -> Vec<u32> {
        let is_over = |(number, item): (usize, &SelectableItem)| {
            let frame = ChoiceCard::undescribed(item).line_with(1, 1, "");
            cl100k_if_over(&frame, CARD_CAP).map(|_| number as u32)
        };
        self.catalog.items().par_iter().enumerate().filter_map(is_over).collect()
    }

    /// Makes and counts every card now, in parallel.
    ///
    /// # Errors
    /// [`CatalogError::CardTooLarge`] for the first item, in id order, whose card exceeds [`CARD_CAP`].
    pub fn prepare(&self) -> Result<(), CatalogError> {
        let numbers = 0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let failed = numbers.into_par_iter().map(|item| self.tokens(item).map(drop)).find_first(Result::is_err);
        failed.unwrap_or(Ok(()))
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn too_large(id: &str, tokens: usize) -> CatalogError {
    CatalogError::CardTooLarge { id: id.to_owned(), tokens, cap: CARD_CAP }
}

fn short_name(name: &str) -> String {
    first_characters(&single_line(name, NAME_CHARACTERS * 4), NAME_CHARACTERS)
}

fn card_tags(tags: &[String]) -> Vec<String> {
    let mut clean: Vec<String> = tags
        .iter()
        .map(|tag| first_characters(&single_line(tag, TAG_CHARACTERS * 4), TAG_CHARACTERS))
        .zip(tags)
        .filter(|(short, whole)| !short.is_empty() && !whole.contains("://") && !whole.contains(['{', '}']))
        .map(|(short, _)| short)
        .collect();
    clean.sort_unstable();
    clean.dedup();
    let is_safety = |tag: &String| SAFETY_TAGS.contains(&tag.as_str());
    let mut others = CARD_TAGS - clean.iter().filter(|tag| is_safety(tag)).count();
    clean.retain(|tag| {
        let keep = is_safety(tag) || others > 0;
        if keep && !is_safety(tag) {
            others -= 1;
        }
        keep
    });
    clean
}

fn first_characters(text: &str, count: usize) -> String {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end().to_owned()
}

/// `text` with every run of white space as one space, trimmed, without invisible characters; stops after `max_bytes`
/// and at most one character more.
fn single_line(text: &str, max_bytes: usize) -> String {
    let mut line = String::with_capacity(text.len().min(max_bytes));
    let mut space = false;
    for character in text.chars() {
        if line.len() >= max_bytes {
            break;
        }
        if character.is_whitespace() {
            space = !line.is_empty();
        } else if !is_invisible(character) {
            if std::mem::take(&mut space) {
                line.push(' ');
            }
            line.push(character);
        }
    }
    line
}

/// Controls, direction overrides, byte order marks and tag characters. Joiners are not among them: emoji and
/// several scripts need them.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

/// `number` to three significant digits, short for any magnitude.
fn three_digits(number: f64) -> String {
    let rounded = format!("{number:.2e}").parse().unwrap_or(number);
    format!("{rounded:?}")
}

/// `text` if it fits; else its longest prefix of whole sentences that fits; else the longest prefix that fits
/// together with an ellipsis; else nothing. A note that it begins with is left out where nothing else would be left.
fn truncate(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    if let Some(sentences) = whole_sentences(text, &fits) {
        return sentences.to_owned();
    }
    let cut = hard_cut(text, &fits);
    let note = leading_note(text);
    if note == 0 || cut.trim_end_matches(ELLIPSIS).len() > note {
        return cut;
    }
    let rest = text[note..].trim_start();
    if fits(rest) {
        return rest.to_owned();
    }
    whole_sentences(rest, &fits).map_or_else(|| hard_cut(rest, &fits), str::to_owned)
}

/// The longest prefix of whole sentences that fits. A sentence ends before a space, where no token reaches across, so each
/// further sentence costs tokens: the first that does not fit ends the search.
fn whole_sentences(text: &str, fits: impl Fn(&str) -> bool) -> Option<&str> {
    sentence_ends(text).map(|end| &text[..end]).take_while(|sentences| fits(sentences)).last()
}

/// The byte offsets behind the sentences of a single-line text, ascending: none inside parentheses, nor in a leading note.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let (inside, note) = (parentheses(text), leading_note(text));
    let is_inside = move |end: usize| {
        let next = inside.partition_point(|(_, close)| *close < end);
        inside.get(next).is_some_and(|(open, _)| *open < end)
    };
    text.match_indices(['.', '!', '?']).map(|(at, _)| at + 1).filter(move |end| {
        let (before, after) = text.split_at(*end);
        (after.is_empty() || after.starts_with(' '))
            && *end > note
            && !is_inside(*end)
            && !is_abbreviation(before.rsplit(' ').next().unwrap_or(before))
    })
}

/// Where the outermost parentheses that are closed open and close, ascending. One that is never closed is a mere character.
fn parentheses(text: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (at, parenthesis) in text.match_indices(['(', ')']) {
        if parenthesis == "(" {
            open.push(at);
        } else if let Some(start) = open.pop() {
            while pairs.last().is_some_and(|(inner, _)| *inner > start) {
                pairs.pop();
            }
            pairs.push((start, at));
        }
    }
    pairs
}

/// The length of the parenthesised notes that a text begins with, and of the marks behind them; 0 if no words follow.
fn leading_note(text: &str) -> usize {
    let mut end = 0;
    for (open, close) in parentheses(text) {
        if text[end..open].contains(char::is_alphanumeric) {
            break;
        }
        end = close + 1;
    }
    if end == 0 {
        return 0;
    }
    text[end..].find(char::is_alphanumeric).map_or(0, |_| {
        let marks = text[end..].find(|mark| !matches!(mark, '.' | '!' | '?' | ':' | ',' | ';')).unwrap_or(0);
        end + marks
    })
}

/// Whether a word that ends in a full stop is a number (`2.`) or has dots inside (`e.g.`) instead of ending a sentence.
fn is_abbreviation(word: &str) -> bool {
    word.strip_suffix('.')
        .is_some_and(|stem| stem.bytes().all(|byte| byte.is_ascii_digit()) || stem.trim_end_matches('.').contains('.'))
}

/// The longest prefix that fits with an ellipsis, as far as a binary search finds it. Part of a word can cost more
/// tokens than the whole word, so whole words are tried from where the search ends.
fn hard_cut(text: &str, fits: impl Fn(&str) -> bool) -> String {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let cut = |characters: usize| format!("{}{ELLIPSIS}", text[..ends[characters]].trim_end());
    let fits_at = |characters: usize| fits(&cut(characters));
    // Invariant: `low` characters fit or `low` is 0; `high` characters do not fit or `high` is all of them.
    let (mut low, mut high) = (0, FIRST_PROBE.min(ends.len()));
    while high < ends.len() && fits_at(high) {
        low = high;
        high = (high * 2).min(ends.len());
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits_at(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    let word_end = |from: usize| (from + 1..ends.len()).find(|at| text[ends[*at]..].starts_with(' '));
    while let Some(next) = word_end(low).filter(|next| fits_at(*next)) {
        low = next;
    }
    if low == 0 { String::new() } else { cut(low) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn item(description: &str) -> SelectableItem {
        SelectableItem::tool("github:create_issue#1a2b3c4d", "github", "create_issue", description)
    }

    fn card(description: &str) -> ChoiceCard {
        ChoiceCard::of(&item(description)).unwrap()
    }

    /// An item with something in every field; what must not reach a card holds the word SECRET.
    fn full_item() -> SelectableItem {
        let secret = json!({"type": "object", "properties": {"SECRET": {"type": "string"}}, "required": ["SECRET"]});
        SelectableItem {
            server: Some("https://SECRET.example/mcp".to_owned()),
            server_description: Some("SECRET".to_owned()),
            tags: ["destructive", "issues", "https://SECRET.example", "{\"SECRET\": 1}"].map(str::to_owned).to_vec(),
            args_schema: Some(Arc::new(secret.clone())),
            output_schema: Some(Arc::new(secret.clone())),
            safety: Safety::Destructive,
            cost_hint: 0.25,
            examples: vec!["SECRET".to_owned()],
            constraints: [("SECRET".to_owned(), secret.clone())].into(),
            depends_on: vec!["SECRET".to_owned()],
            provides: vec!["SECRET".to_owned()],
            requires: vec!["SECRET".to_owned()],
            metadata: [("annotations".to_owned(), secret.clone()), ("url".to_owned(), json!("https://SECRET"))].into(),
            raw: serde_json::value::to_raw_value(&secret).ok().map(Arc::from),
            ..item("Opens an issue.")
        }
    }

    #[test]
    fn a_card_has_exactly_the_permitted_fields_in_order() {
        let card = ChoiceCard::of(&full_item()).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&card.clone().with_score(0.5)).unwrap(), @r#"
        {
          "id": "github:create_issue#1a2b3c4d",
          "name": "create_issue",
          "description": "Opens an issue.",
          "tags": [
            "destructive",
            "issues"
          ],
          "kind": "tool",
          "namespace": "github",
          "has_schema": true,
          "cost_hint": 0.25,
          "side_effects": true,
          "safety": "destructive",
          "score": 0.5
        }
        "#);
        insta::assert_snapshot!(card.line(3, 10), @"[3/10] github:create_issue#1a2b3c4d (tool) — Opens an issue. [destructive, issues] | cost 0.25");
        let keys = |card: &ChoiceCard| match serde_json::to_value(card).unwrap() {
            Value::Object(map) => map.keys().map(String::as_str).collect::<Vec<_>>().join(" "),
            other => panic!("{other}"),
        };
        let permitted = "id name description tags kind namespace has_schema cost_hint side_effects safety";
        assert_eq!(keys(&card), permitted);
        assert_eq!(keys(&card.with_score(1.0)), format!("{permitted} score"));
        assert_eq!(keys(&ChoiceCard::internal("/a", "a", "", "a").unwrap()), permitted);
    }

    #[test]
    fn lines_show_what_is_known() {
        let tagged = |tags: &[&str]| SelectableItem {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            side_effects: false,
            ..item("Opens an issue")
        };
        let lines: Vec<String> = [
            item("Opens an issue"),
            item(""),
            item(" \n two\r\n\tlines\u{2028}and\u{0} no\u{202E} tricks\u{E0041} "),
            tagged(&[]),
            tagged(&["f", "e", "d", "c", "b", "a", "a"]),
            tagged(&["a", "b", "c", "d", "destructive", "e", "read-only"]),
            tagged(&["", " \t", "two\nlines", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwx"]),
            SelectableItem { kind: Kind::Agent, cost_hint: 1.0 / 3.0, ..tagged(&[]) },
            SelectableItem { cost_hint: 1e300, ..tagged(&["read-only"]) },
        ]
        .iter()
        .map(|item| ChoiceCard::of(item).unwrap().line(1, 9))
        .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue | side-effects
        [1/9] github:create_issue#1a2b3c4d (tool) | side-effects
        [1/9] github:create_issue#1a2b3c4d (tool) — two lines and no tricks | side-effects
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue [a, b, c, d, e]
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue [a, b, c, destructive, read-only]
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue [abcdefghijklmnopqrstuvwx, two lines]
        [1/9] github:create_issue#1a2b3c4d (agent) — Opens an issue | cost 0.333
        [1/9] github:create_issue#1a2b3c4d (tool) — Opens an issue [read-only] | cost 1e300
        ");
        let node = ChoiceCard::internal("/github/issues", "issues", "Tools for issues", "github").unwrap();
        assert_eq!(node.line(2, 2), "[2/2] /github/issues (internal) — Tools for issues");
        assert_eq!(node.name(), "issues");
    }

    #[test]
    fn a_name_is_cut_at_64_characters() {
        let long = SelectableItem { name: "ж".repeat(100), ..item("") };
        assert_eq!(ChoiceCard::of(&long).unwrap().name(), "ж".repeat(64));
    }

    #[test]
    fn descriptions_end_with_a_sentence_or_an_ellipsis() {
        let filler = "and then it goes on about many other things that nobody needs to know ".repeat(10);
        let table = [
            format!("Opens an issue. Returns its number! {filler}"),
            format!("Opens an issue, e.g. for v1.2 of a project. {filler}"),
            format!("Opens 2. {filler}"),
            format!("Is it open? Yes.No {filler}"),
            format!("{filler}. End."),
            format!("Lists what is open (issues. Drafts too.) and done. {filler}"),
            format!("Lists what is :( open (or. {filler}"),
            format!("(Alpha. {filler}) Asks the assistant. {filler}"),
            format!("(Alpha). (Beta, too.) Asks the assistant. {filler}"),
            format!("(Alpha. {filler}) {filler}"),
            format!("(Alpha. {filler})"),
            filler.replace(' ', ""),
            "查询天气预报。".repeat(40),
            "👩‍👩‍👧‍👦".repeat(40),
        ];
        let cards = table.map(|description| card(&description));
        let seen: Vec<String> = cards.iter().map(|card| format!("{} {}", card.tokens(), card.description())).collect();
        insta::assert_snapshot!(seen.join("\n"), @r"
        32 Opens an issue. Returns its number!
        40 Opens an issue, e.g. for v1.2 of a project.
        60 Opens 2. and then it goes on about many other things that nobody needs to know and then it goes on about many other things that nobody needs to know and then it…
        28 Is it open?
        60 and then it goes on about many other things that nobody needs to know and then it goes on about many other things that nobody needs to know and then it goes on about many…
        38 Lists what is open (issues. Drafts too.) and done.
        32 Lists what is :( open (or.
        29 Asks the assistant.
        37 (Alpha). (Beta, too.) Asks the assistant.
        60 and then it goes on about many other things that nobody needs to know and then it goes on about many other things that nobody needs to know and then it goes on about many…
        60 (Alpha. and then it goes on about many other things that nobody needs to know and then it goes on about many other things that nobody needs to know and then it goes…
        60 andthenitgoesonaboutmanyotherthingsthatnobodyneedstoknowandthenitgoesonaboutmanyotherthingsthatnobodyneedstoknowand…
        60 查询天气预报。查询天气预报。查询天气预报。查询天气预报。查询天气预报。…
        60 👩‍👩‍👧‍👦👩‍👩‍👧‍👦…
        ");
    }

    #[test]
    fn a_long_id_leaves_room_for_a_description_up_to_the_cap() {
        let described = |name: usize| {
            let id = format!("server:{}#0a1b2c3d", "create_item_".repeat(name));
            let item = SelectableItem::tool(&id, "server", "x", &"word ".repeat(100));
            match ChoiceCard::of(&item) {
                Ok(card) => format!("{} tokens, {} of them described", card.tokens(), card.description().len() / 5),
                Err(error) => error.to_string().replace(&id, "ID"),
            }
        };
        insta::assert_snapshot!([1, 8, 15, 17, 20, 60].map(described).join("\n"), @r"
        60 tokens, 34 of them described
        60 tokens, 20 of them described
        64 tokens, 10 of them described
        68 tokens, 10 of them described
        74 tokens, 10 of them described
        the card of `ID` has 142 cl100k_base tokens, over the cap of 80; shorten its name or tags
        ");
    }

    #[test]
    fn a_huge_description_is_cut_at_once() {
        for piece in ["a", "word ", " ", "\u{0}", "=", "字", "x. "] {
            assert!(card(&piece.repeat(3_000_000)).tokens() <= CARD_CAP, "{piece:?}");
        }
    }

    #[test]
    fn no_token_is_longer_than_assumed() {
        let vocabulary = tiktoken_rs::cl100k_base_singleton();
        let longest = (0..100_256).filter_map(|token| vocabulary.decode_bytes(&[token]).ok()).map(|b| b.len()).max();
        assert_eq!(longest, Some(MAX_TOKEN_BYTES));
    }

    #[test]
    fn a_deck_gives_the_cards_of_its_catalog() {
        let long_id = format!("a:{}", "Q9_x".repeat(59));
        let good = Arc::new(Catalog::new(vec![item("Opens an issue")]).unwrap());
        let deck = CardDeck::new(good);
        deck.prepare().unwrap();
        assert_eq!(deck.card(0).unwrap(), &card("Opens an issue"));
        assert_eq!(deck.tokens(0).unwrap(), card("Opens an issue").tokens());
        let bad =
            vec![item("x"), SelectableItem::tool(&long_id, "a", "x", ""), SelectableItem::tool("b:x", "b", "x", "")];
        let deck = CardDeck::new(Arc::new(Catalog::new(bad).unwrap()));
        assert!(deck.card(1).is_ok());
        let error = deck.prepare().unwrap_err().to_string();
        assert_eq!(error, deck.card(0).unwrap_err().to_string());
        assert!(error.contains(&long_id), "{error}");
    }

    #[test]
    fn what_has_no_card_within_the_cap_is_shown_by_its_id() {
        let long_id = format!("a:{}", "Q9_x".repeat(32));
        let tags: Vec<String> = (0..5).map(|n| format!("{n} Q9_xQ9_xQ9_xQ9_xQ9_x")).collect();
        let tagged = SelectableItem { tags, cost_hint: 0.5, ..SelectableItem::tool("b:x", "b", "x", "Opens") };
        let long = SelectableItem {
            tags: vec!["destructive".to_owned(), "z".to_owned()],
            ..SelectableItem::tool(&long_id, "a", "x", "Opens an issue")
        };
        let deck = CardDeck::new(Arc::new(Catalog::new(vec![long, tagged, item("Opens an issue")]).unwrap()));
        assert_eq!(deck.oversized(), [0, 1]);
        assert_eq!(deck.shown(0).line(1, 1), format!("[1/1] {long_id} (tool) [destructive]"));
        assert_eq!(deck.shown(1).line(1, 1), "[1/1] b:x (tool) | side-effects");
        assert_eq!(deck.shown(2), &card("Opens an issue"));
        assert!(deck.shown(0).tokens() > CARD_CAP && deck.card(0).is_err());
        let node = ChoiceCard::node(&long_id, "a", "Tools", "a");
        assert_eq!((node.card.description(), node.over.is_some()), ("", true));
    }

    #[test]
    fn what_can_have_no_card_is_known_before_a_query() {
        let named = |id: &str| SelectableItem::tool(id, "a", "x", &"word ".repeat(200));
        let long = format!("a:{}", "Q9_xZ7-b".repeat(14) + "k");
        let words = format!("a:{}", "create_issue_".repeat(8));
        let catalog = Arc::new(Catalog::new(vec![named("a:b"), named(&long), named(&words)]).unwrap());
        assert_eq!(long.len(), "a:".len() + 113);
        let deck = CardDeck::new(Arc::clone(&catalog));
        let without: Vec<u32> = (0..3).filter(|item| deck.card(*item).is_err()).collect();
        assert_eq!(deck.oversized(), without);
        let ids: Vec<&str> = without.iter().map(|item| catalog.items()[*item as usize].id.as_str()).collect();
        assert_eq!(ids, [long]);
    }

    /// Every sentence end tried from the last to the first.
    fn plain_sentences(text: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
        let ends: Vec<usize> = sentence_ends(text).collect();
        ends.into_iter().rev().map(|end| text[..end].to_owned()).find(|prefix| fits(prefix))
    }

    fn any_item() -> impl Strategy<Value = SelectableItem> {
        let description = prop_oneof![any::<String>(), "([a-zA-Z]{1,9}[.!?,]? ?){0,120}", "(\\PC|[.!?] ){0,300}"];
        let tags = proptest::collection::vec(prop_oneof![any::<String>(), "destructive|read-only|[a-c]"], 0..9);
        let id = "[a-z][a-z0-9_-]{0,63}:[A-Za-z_][A-Za-z0-9_.-]{0,127}(@[A-Za-z0-9._-]{1,32})?(#[0-9a-f]{8})?";
        (id, any::<String>(), description, tags, 0.0..1e6_f64, any::<bool>()).prop_map(
            |(id, name, description, tags, cost_hint, side_effects)| SelectableItem {
                tags,
                cost_hint,
                side_effects,
                ..SelectableItem::tool(&id, "n", &name, &description)
            },
        )
    }

    proptest! {
        #[test]
        fn every_card_is_within_its_bounds(item in any_item()) {
            match ChoiceCard::of(&item) {
                Err(CatalogError::CardTooLarge { tokens, .. }) => {
                    let bare = SelectableItem { description: String::new(), ..item };
                    prop_assert!(tokens > CARD_CAP && ChoiceCard::of(&bare).is_err());
                }
                Err(other) => prop_assert!(false, "{}", other),
                Ok(card) => {
                    prop_assert!(card.tokens() <= CARD_CAP);
                    let breaks_line = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
                    prop_assert!(!card.description().contains(breaks_line));
                    prop_assert!(!card.line(1, 1).contains('\n'));
                    prop_assert!(card.name().chars().count() <= NAME_CHARACTERS);
                    prop_assert!(card.tags.len() <= CARD_TAGS && card.tags.is_sorted());
                    prop_assert!(card.tags.iter().all(|tag| tag.chars().count() <= TAG_CHARACTERS));
                    for safety in SAFETY_TAGS {
                        let had = item.tags.iter().any(|tag| tag == safety);
                        prop_assert!(!had || card.tags.iter().any(|tag| tag == safety));
                    }
                    // Shortening a card again changes nothing.
                    let again = SelectableItem {
                        name: card.name.clone(),
                        description: card.description.clone(),
                        tags: card.tags.clone(),
                        ..item
                    };
                    prop_assert_eq!(ChoiceCard::of(&again).unwrap(), card);
                }
            }
        }

        #[test]
        fn sentences_are_cut_as_the_plain_search_cuts_them(text in "([a-zA-Z'(]{1,9}[.!?,)]{0,2} ){0,80}", limit in 1usize..60) {
            let text = single_line(&text, usize::MAX);
            let fits = |prefix: &str| cl100k_if_over(prefix, limit).is_none();
            if let (false, Some(expected)) = (fits(&text), plain_sentences(&text, fits)) {
                prop_assert_eq!(truncate(&text, fits), expected);
            }
        }

        #[test]
        fn a_hard_cut_uses_its_budget(text in "[a-z]{1,12}( [a-z]{1,12}){60,90}", limit in 2usize..60) {
            let cut = hard_cut(&text, |prefix| cl100k_if_over(prefix, limit).is_none());
            let tokens = Estimator::Cl100kBase.count(&cut);
            prop_assert!((limit - 1..=limit).contains(&tokens), "{} of {}: {}", tokens, limit, cut);
            prop_assert!(text.starts_with(cut.trim_end_matches(ELLIPSIS)));
        }

        #[test]
        fn a_page_of_33_cards_is_within_its_bound(items in proptest::collection::vec(any_item(), 1..=33)) {
            let cards: Vec<ChoiceCard> = items.iter().filter_map(|item| ChoiceCard::of(item).ok()).collect();
            let lines: usize = cards.iter().map(ChoiceCard::tokens).sum();
            let page = Estimator::Cl100kBase.count(&render_cards(&cards));
            prop_assert!(page < lines + cards.len().max(1), "{} tokens, {} by line", page, lines);
        }
    }
}
