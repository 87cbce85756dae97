//! The words and sentences of generated tools: read from `data/growth/`, checked once, shared by all grades.
//!
//! The files say how their words were chosen, since the choice is what makes a generated tool never a right answer.
//! They are built in: what a curve shows depends on the program alone.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Spanned;

use super::super::rng::Rng;
use super::phrase::Effect;
use crate::data::{DataError, DataFile};

const FIELDS: DataFile =
    DataFile { name: "growth/fields.toml", text: include_str!("../../../data/growth/fields.toml") };
const WORKBENCH: DataFile =
    DataFile { name: "growth/workbench.toml", text: include_str!("../../../data/growth/workbench.toml") };
const HOUSEHOLD: DataFile =
    DataFile { name: "growth/household.toml", text: include_str!("../../../data/growth/household.toml") };
const OTHER: DataFile = DataFile { name: "growth/other.toml", text: include_str!("../../../data/growth/other.toml") };
const PATTERNS: DataFile =
    DataFile { name: "growth/patterns.toml", text: include_str!("../../../data/growth/patterns.toml") };
const SCOPES: DataFile =
    DataFile { name: "growth/scopes.toml", text: include_str!("../../../data/growth/scopes.toml") };

/// Everything that generated tools are made of.
#[derive(Debug)]
pub(super) struct Vocabulary {
    /// Fields of work far from those of the collections.
    pub(super) fields: Vec<Field>,
    /// Further objects of the namespaces of the embedded collections.
    siblings: Vec<Field>,
    /// The objects of every other namespace.
    other: Field,
    things: Deeds,
    records: Deeds,
    /// How near-duplicates differ from their models.
    pub(super) scopes: Vec<Scope>,
    /// Offices with an installation of their own.
    pub(super) offices: Vec<String>,
    /// Sites whose servers offer tools of the same field.
    pub(super) sites: Vec<String>,
}

impl Vocabulary {
    /// The words that are built in.
    ///
    /// # Errors
    /// [`DataError`] when a file was changed to say something wrong.
    pub(super) fn builtin() -> Result<&'static Self, DataError> {
        static BUILTIN: LazyLock<Result<Vocabulary, DataError>> = LazyLock::new(Vocabulary::read);
        BUILTIN.as_ref().map_err(Clone::clone)
    }

    fn read() -> Result<Self, DataError> {
        let mut servers = BTreeSet::new();
        let fields = read_fields(FIELDS, &mut servers)?;
        let mut siblings = read_fields(WORKBENCH, &mut servers)?;
        siblings.extend(read_fields(HOUSEHOLD, &mut servers)?);
        let (things, records) = read_patterns(PATTERNS)?;
        let Variation { scopes, offices, sites } = read_scopes(SCOPES)?;
        Ok(Self { fields, siblings, other: read_other(OTHER)?, things, records, scopes, offices, sites })
    }

    /// The words for a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> &Field {
        self.siblings.iter().find(|field| field.server == namespace).unwrap_or(&self.other)
    }

    /// What is done with the objects of `field`.
    pub(super) fn deeds(&self, field: &Field) -> &Deeds {
        match field.trade {
            Trade::Things => &self.things,
            Trade::Records => &self.records,
        }
    }

    /// Every field of every file.
    #[cfg(test)]
    pub(super) fn all_fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().chain(&self.siblings).chain([&self.other])
    }
}

/// What a field deals with, and so what can be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Trade {
    /// Things that lie somewhere.
    Things,
    /// Records and settings of software.
    Records,
}

/// The words of one field of work.
#[derive(Debug)]
pub(super) struct Field {
    trade: Trade,
    /// The server that offers its tools, or the namespace of a collection; empty for every other namespace.
    pub(super) server: String,
    /// Where the work is done, as it ends a sentence: `in the museum's collection`.
    pub(super) place: String,
    /// Who does the work.
    pub(super) role: String,
    /// Verbs of the field that take its first objects.
    pub(super) verbs: Vec<String>,
    /// What the work is done on.
    pub(super) objects: Vec<Noun>,
    /// What there is to know about an object; two at least.
    pub(super) traits: Vec<String>,
}

/// An object in both numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Noun {
    pub(super) one: String,
    pub(super) many: String,
}

impl Noun {
    /// Of `singular/plural`, or of a singular whose plural is regular.
    fn new(text: &str) -> Result<Self, String> {
        let (one, many) = match text.split_once('/') {
            None => (text, plural(text)),
            Some((one, many)) if one.is_empty() || many.is_empty() || many.contains('/') => {
                return Err(format!("`{text}` is not of the form singular/plural"));
            }
            Some((one, many)) => (one, many.to_owned()),
        };
        Ok(Self { one: one.to_owned(), many })
    }
}

/// The regular plural of an English noun.
fn plural(noun: &str) -> String {
    let vowel_before_y = ["ay", "ey", "oy", "uy"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !vowel_before_y => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// What can be done with the objects of a trade.
#[derive(Debug)]
pub(super) struct Deeds {
    /// What every field of the trade does.
    pub(super) actions: Vec<Action>,
    /// Sentences for the verbs that a field brings itself.
    pub(super) own_verb: Choices<Pattern>,
    after_reading: Choices<Pattern>,
    after_change: Choices<Pattern>,
}

impl Deeds {
    /// Sentences that may follow in the description of a tool with this effect.
    pub(super) fn follow_ups(&self, effect: Effect) -> &Choices<Pattern> {
        match effect {
            Effect::Reads => &self.after_reading,
            Effect::Writes | Effect::Destroys => &self.after_change,
        }
    }
}

/// What a tool does with an object, in every field of a trade.
#[derive(Debug)]
pub(super) struct Action {
    /// First word of the name.
    pub(super) verb: String,
    pub(super) number: Number,
    /// What the tool must be given.
    pub(super) takes: Takes,
    /// The word between the object and the trait in a qualified name; empty for `get_vase_provenance`.
    pub(super) link: String,
    /// Sentences about the object.
    pub(super) plain: Choices<Pattern>,
    /// Sentences about one trait of the object.
    pub(super) qualified: Choices<Pattern>,
    pub(super) effect: Effect,
}

/// Whether a tool handles one object or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Number {
    One,
    Many,
}

/// Which objects a tool must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Takes {
    /// None: it makes one, or handles all.
    None,
    /// The id of one.
    Id,
    /// The ids of several.
    Ids,
}

/// Choices of which there is at least one.
#[derive(Debug)]
pub(super) struct Choices<T>(Vec<T>);

impl<T> Choices<T> {
    /// One of them, by a draw.
    pub(super) fn pick(&self, rng: &mut Rng) -> &T {
        &self.0[rng.below(self.0.len())]
    }
}

/// A sentence with places for the words of a field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern(pub(super) Vec<Piece>);

/// A part of a [`Pattern`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// `{o}`: the object.
    Object,
    /// `{an}`: the object with its article.
    WithArticle,
    /// `{os}`: the plural of the object.
    Objects,
    /// `{a}`: the trait that the sentence is about.
    First,
    /// `{b}`: another trait.
    Second,
    /// `{r}`: who does the work.
    Role,
    /// `{p}`: where the work is done.
    Place,
    /// `{v}`: the verb.
    Verb,
    /// `{V}`: the verb with a capital.
    CapitalVerb,
}

impl Pattern {
    /// Of a sentence with slots.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((slot, tail)) = after.split_once('}') else {
                return Err("a `{` is not closed".to_owned());
            };
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(match slot {
                "o" => Piece::Object,
                "an" => Piece::WithArticle,
                "os" => Piece::Objects,
                "a" => Piece::First,
                "b" => Piece::Second,
                "r" => Piece::Role,
                "p" => Piece::Place,
                "v" => Piece::Verb,
                "V" => Piece::CapitalVerb,
                _ => return Err(format!("there is no slot `{{{slot}}}`; there are o, an, os, a, b, r, p, v and V")),
            });
            rest = tail;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }
}

/// How a near-duplicate differs from its model.
#[derive(Debug)]
pub(super) struct Scope {
    /// Words that the name gains.
    pub(super) words: String,
    /// What the description may begin with.
    pub(super) lead: String,
    /// What the description says about the difference.
    pub(super) note: String,
    pub(super) reach: Reach,
}

/// What a near-duplicate reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reach {
    /// The same operation on other records.
    Elsewhere,
    /// Something about the operation, which is not carried out.
    About,
}

/// A text and its place in the file.
type Word = Spanned<String>;
/// Texts and their places.
type Words = Spanned<Vec<Word>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldsFile {
    trade: Trade,
    /// For fields that do not name their own.
    role: Option<Word>,
    /// For fields that do not name their own.
    verbs: Option<Words>,
    field: Vec<Spanned<FieldEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldEntry {
    server: Option<Word>,
    place: Word,
    role: Option<Word>,
    verbs: Option<Words>,
    objects: Words,
    traits: Words,
}

/// The fields of a file, whose servers are in no file before it.
fn read_fields(file: DataFile, servers: &mut BTreeSet<String>) -> Result<Vec<Field>, DataError> {
    let wire: FieldsFile = file.read()?;
    let mut fields = Vec::with_capacity(wire.field.len());
    for entry in wire.field {
        let place = entry.span();
        let mut entry = entry.into_inner();
        let Some(server) = entry.server.take() else {
            return Err(file.refuse(place, "the field has no `server`"));
        };
        let server_place = server.span();
        let server = file.text_of(server)?;
        if !servers.insert(server.clone()) {
            return Err(file.refuse(server_place, format!("there is a field for `{server}` already")));
        }
        let field = read_field(file, server, wire.trade, wire.role.as_ref(), wire.verbs.as_ref(), entry, place)?;
        fields.push(field);
    }
    if fields.is_empty() {
        return Err(file.refuse(0..0, "there is no field"));
    }
    Ok(fields)
}

/// The one field of a file, which has no server.
fn read_other(file: DataFile) -> Result<Field, DataError> {
    let mut wire: FieldsFile = file.read()?;
    match (wire.field.pop(), wire.field.is_empty()) {
        (Some(entry), true) if entry.get_ref().server.is_none() => {
            let place = entry.span();
            let entry = entry.into_inner();
            read_field(file, String::new(), wire.trade, wire.role.as_ref(), wire.verbs.as_ref(), entry, place)
        }
        _ => Err(file.refuse(0..0, "the file needs one field, without a `server`")),
    }
}

fn read_field(
    file: DataFile,
    server: String,
    trade: Trade,
    role: Option<&Word>,
    verbs: Option<&Words>,
    entry: FieldEntry,
    place: std::ops::Range<usize>,
) -> Result<Field, DataError> {
    let lacks = |key: &str| file.refuse(place.clone(), format!("neither the field nor the file has `{key}`"));
    let own = |text: &str| Ok(text.to_owned());
    let role = entry.role.or_else(|| role.cloned()).ok_or_else(|| lacks("role"))?;
    let verbs = entry.verbs.or_else(|| verbs.cloned()).ok_or_else(|| lacks("verbs"))?;
    Ok(Field {
        trade,
        server,
        place: file.text_of(entry.place)?,
        role: file.text_of(role)?,
        verbs: file.list_of(verbs, 1, own)?,
        objects: file.list_of(entry.objects, 1, Noun::new)?,
        traits: file.list_of(entry.traits, 2, own)?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternsFile {
    things: DeedsEntry,
    records: DeedsEntry,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeedsEntry {
    own_verb: Words,
    after_reading: Words,
    after_change: Words,
    action: Vec<ActionEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionEntry {
    verb: Word,
    number: Number,
    takes: Option<Takes>,
    link: Option<Word>,
    effect: Effect,
    plain: Words,
    qualified: Words,
}

fn read_patterns(file: DataFile) -> Result<(Deeds, Deeds), DataError> {
    let wire: PatternsFile = file.read()?;
    Ok((read_deeds(file, wire.things)?, read_deeds(file, wire.records)?))
}

fn read_deeds(file: DataFile, entry: DeedsEntry) -> Result<Deeds, DataError> {
    let patterns = |texts: Words| file.list_of(texts, 1, Pattern::new).map(Choices);
    let mut verbs = BTreeSet::new();
    let mut actions = Vec::with_capacity(entry.action.len());
    for action in entry.action {
        let place = action.verb.span();
        let verb = file.text_of(action.verb)?;
        if !verbs.insert(verb.clone()) {
            return Err(file.refuse(place, format!("there is an action `{verb}` already")));
        }
        let usual = match action.number {
            Number::One => Takes::Id,
            Number::Many => Takes::None,
        };
        actions.push(Action {
            verb,
            number: action.number,
            takes: action.takes.unwrap_or(usual),
            link: action.link.map_or(Ok(String::new()), |link| file.text_of(link))?,
            plain: patterns(action.plain)?,
            qualified: patterns(action.qualified)?,
            effect: action.effect,
        });
    }
    Ok(Deeds {
        actions,
        own_verb: patterns(entry.own_verb)?,
        after_reading: patterns(entry.after_reading)?,
        after_change: patterns(entry.after_change)?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopesFile {
    offices: Words,
    sites: Words,
    scope: Vec<ScopeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeEntry {
    words: Word,
    lead: Word,
    note: Word,
    reach: Reach,
}

/// What the file of scopes holds.
struct Variation {
    scopes: Vec<Scope>,
    offices: Vec<String>,
    sites: Vec<String>,
}

fn read_scopes(file: DataFile) -> Result<Variation, DataError> {
    let wire: ScopesFile = file.read()?;
    let own = |text: &str| Ok(text.to_owned());
    let mut names = BTreeSet::new();
    let mut scopes = Vec::with_capacity(wire.scope.len());
    for scope in wire.scope {
        let place = scope.words.span();
        let words = file.text_of(scope.words)?;
        if !names.insert(words.clone()) {
            return Err(file.refuse(place, format!("there is a scope `{words}` already")));
        }
        let (lead, note) = (file.text_of(scope.lead)?, file.text_of(scope.note)?);
        scopes.push(Scope { words, lead, note, reach: scope.reach });
    }
    if scopes.is_empty() {
        return Err(file.refuse(0..0, "there is no scope"));
    }
    let (offices, sites) = (file.list_of(wire.offices, 0, own)?, file.list_of(wire.sites, 0, own)?);
    Ok(Variation { scopes, offices, sites })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of fields with `line` in place of the one that sets the same key.
    fn with(line: &str) -> String {
        let key = line.split_once(' ').map_or(line, |(key, _)| key);
        let good = [
            "trade = \"things\"",
            "[[field]]",
            "server = \"mine\"",
            "place = \"in the mine\"",
            "role = \"miner\"",
            "verbs = [\"dig\"]",
            "objects = [\"shaft\"]",
            "traits = [\"depth\", \"ore\"]",
        ];
        good.map(|one| if one.split_once(' ').is_some_and(|(one, _)| one == key) { line } else { one }).join("\n")
    }

    #[test]
    fn a_field_that_cannot_be_used_is_refused_with_its_line() {
        let table = [
            ("server = \"mine\"", "Ok"),
            ("trade = \"ores\"", "fields.toml:1: unknown variant `ores`, expected `things` or `records`"),
            ("server = \"\"", "fields.toml:3: the text is empty"),
            ("server = \"zoo\"", "fields.toml:3: there is a field for `zoo` already"),
            ("role #", "fields.toml:2: neither the field nor the file has `role`"),
            ("verbs #", "fields.toml:2: neither the field nor the file has `verbs`"),
            ("server #", "fields.toml:2: the field has no `server`"),
            ("objects = []", "fields.toml:7: the list has 0 entries; 1 are needed"),
            ("objects = [\"calf/\"]", "fields.toml:7: `calf/` is not of the form singular/plural"),
            ("traits = [\"depth\"]", "fields.toml:8: the list has 1 entries; 2 are needed"),
            ("traits = [\"ore\", \"ore\"]", "fields.toml:8: `ore` is in the list twice"),
        ];
        for (line, expected) in table {
            let text = match line.strip_suffix(" #") {
                Some(key) => {
                    let all = with("");
                    let kept = all.lines().map(|one| if one.starts_with(key) { "" } else { one });
                    kept.collect::<Vec<_>>().join("\n")
                }
                None => with(line),
            };
            let mut servers = BTreeSet::from(["zoo".to_owned()]);
            let read = read_fields(DataFile { name: "fields.toml", text: &text }, &mut servers);
            assert_eq!(read.map_or_else(|error| error.to_string(), |_| "Ok".to_owned()), expected, "{text}");
        }
        let other = DataFile { name: "other.toml", text: &with("") };
        assert_eq!(
            read_other(other).unwrap_err().to_string(),
            "other.toml:1: the file needs one field, without a `server`"
        );
    }

    #[test]
    fn patterns_know_their_slots() {
        let table = [
            ("", Ok(vec![])),
            (
                "{V} {an}.",
                Ok(vec![
                    Piece::CapitalVerb,
                    Piece::Text(" ".to_owned()),
                    Piece::WithArticle,
                    Piece::Text(".".to_owned()),
                ]),
            ),
            ("{x}", Err("there is no slot `{x}`; there are o, an, os, a, b, r, p, v and V".to_owned())),
            ("{o", Err("a `{` is not closed".to_owned())),
        ];
        for (text, expected) in table {
            assert_eq!(Pattern::new(text).map(|pattern| pattern.0), expected, "{text}");
        }
    }

    #[test]
    fn plurals_are_regular_or_given() {
        let plurals = ["hatch", "quarry", "quay", "chassis", "calf/calves"].map(|noun| Noun::new(noun).unwrap().many);
        assert_eq!(plurals, ["hatches", "quarries", "quays", "chassises", "calves"]);
    }

    #[test]
    fn the_built_in_words_are_many() {
        let vocabulary = Vocabulary::builtin().unwrap();
        assert!(vocabulary.fields.len() >= 40);
        assert_eq!(vocabulary.of_namespace("forge").server, "forge");
        assert_eq!(vocabulary.of_namespace("garage").server, "");
    }
}
