//! From a field of work to a tool definition: actions, sentence patterns, naming styles, argument schemas.
//!
//! The words and the sentences are data ([`super::vocabulary`]). All choices are drawn from a seeded stream; the output
//! is text, so that the same seed gives the same bytes.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::rng::Rng;
use super::vocabulary::{Action, Choices, Field, Noun, Number, Pattern, Piece, Takes, Vocabulary};

/// A generated tool, before it is written as JSON.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) server: Option<String>,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    pub(super) effect: Effect,
}

/// What a generated tool declares about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Effect {
    Reads,
    Writes,
    Destroys,
}

impl Tool {
    /// One line of JSON in the form of the collections.
    pub(super) fn to_json(&self) -> String {
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(self.name));
        map.insert("description".to_owned(), json!(self.description));
        map.insert("inputSchema".to_owned(), self.schema.clone());
        let annotations = match self.effect {
            Effect::Reads => json!({"readOnlyHint": true}),
            Effect::Writes => json!({"readOnlyHint": false, "destructiveHint": false}),
            Effect::Destroys => json!({"readOnlyHint": false, "destructiveHint": true}),
        };
        map.insert("annotations".to_owned(), annotations);
        if let Some(server) = &self.server {
            map.insert("server".to_owned(), json!(server));
        }
        Value::Object(map).to_string()
    }
}

/// How the words of a name are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Snake,
    Kebab,
    Camel,
    Dotted,
}

impl Style {
    /// The style of an existing name.
    pub(super) fn of(name: &str) -> Self {
        let capital_inside = name.chars().skip(1).any(char::is_uppercase);
        match name {
            _ if name.contains('_') => Self::Snake,
            _ if name.contains('.') => Self::Dotted,
            _ if name.contains('-') => Self::Kebab,
            _ if capital_inside => Self::Camel,
            _ => Self::Snake,
        }
    }

    pub(super) fn join<'w>(self, words: impl Iterator<Item = &'w str>) -> String {
        let mut name = String::new();
        for word in words.flat_map(|word| word.split(|c: char| !c.is_alphanumeric())).filter(|word| !word.is_empty()) {
            let joint = match self {
                Self::Snake => "_",
                Self::Kebab => "-",
                Self::Dotted => ".",
                Self::Camel => "",
            };
            if name.is_empty() {
                name.push_str(&word.to_lowercase());
            } else if self == Self::Camel {
                name.push_str(&capitalised(&word.to_lowercase()));
            } else {
                name.push_str(joint);
                name.push_str(&word.to_lowercase());
            }
        }
        name
    }
}

/// The verbs of a field go with its first objects, which it lists for that reason.
const VERB_OBJECTS: usize = 5;

/// A tool that a field can give: what is done, to which object, with regard to which trait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idea<'v> {
    deed: Deed<'v>,
    object: &'v Noun,
    quality: Option<&'v str>,
}

#[derive(Debug, Clone, Copy)]
enum Deed<'v> {
    /// An action that every field of the trade has.
    Common(&'v Action),
    /// A verb of the field.
    OfField(&'v str),
}

/// Everything that a field can give, in a random order in which ideas with and without a trait take turns.
pub(super) fn ideas<'v>(vocabulary: &'v Vocabulary, field: &'v Field, rng: &mut Rng) -> Vec<Idea<'v>> {
    let (mut plain, mut qualified) = (Vec::new(), Vec::new());
    for (object, place) in field.objects.iter().zip(0..) {
        for action in &vocabulary.deeds(field).actions {
            let deed = Deed::Common(action);
            plain.push(Idea { deed, object, quality: None });
            qualified.extend(field.traits.iter().map(|quality| Idea { deed, object, quality: Some(quality) }));
        }
        if place < VERB_OBJECTS {
            plain.extend(field.verbs.iter().map(|verb| Idea { deed: Deed::OfField(verb), object, quality: None }));
        }
    }
    rng.shuffle(&mut plain);
    rng.shuffle(&mut qualified);
    let mut ideas = Vec::with_capacity(plain.len() + qualified.len());
    let (mut plain, mut qualified) = (plain.into_iter(), qualified.into_iter());
    loop {
        let (one, two) = (plain.next(), qualified.next());
        if one.is_none() && two.is_none() {
            return ideas;
        }
        ideas.extend(one.into_iter().chain(two));
    }
}

/// How a tool is named and what it declares.
#[derive(Clone, Copy)]
struct Form<'v> {
    verb: &'v str,
    number: Number,
    takes: Takes,
    effect: Effect,
}

/// The tool that comes of an idea, named in `style` under `server`.
pub(super) fn tool(
    vocabulary: &Vocabulary,
    field: &Field,
    idea: Idea,
    server: &str,
    style: Style,
    rng: &mut Rng,
) -> Tool {
    let deeds = vocabulary.deeds(field);
    let (form, link, sentences): (Form, &str, &Choices<Pattern>) = match idea.deed {
        Deed::Common(Action { verb, number, takes, link, plain, qualified, effect }) => {
            let sentences = if idea.quality.is_some() { qualified } else { plain };
            (Form { verb, number: *number, takes: *takes, effect: *effect }, link, sentences)
        }
        Deed::OfField(verb) => {
            let form = Form { verb, number: Number::One, takes: Takes::Id, effect: Effect::Writes };
            (form, "", &deeds.own_verb)
        }
    };
    let first = idea.quality.unwrap_or_else(|| pick(rng, &field.traits));
    let second = other_trait(field, first, rng);
    let slots = Slots { object: idea.object, first, second, field, verb: form.verb };

    let Noun { one, many } = idea.object;
    let thing = if form.number == Number::Many { many } else { one };
    let words = [form.verb, thing].into_iter().chain(idea.quality.iter().flat_map(|quality| [link, *quality]));
    let name = style.join(words);
    let mut description = slots.fill(sentences.pick(rng));
    for _ in 0..rng.below(3) {
        let sentence = slots.fill(deeds.follow_ups(form.effect).pick(rng));
        if !description.contains(&sentence) {
            description.push(' ');
            description.push_str(&sentence);
        }
    }
    let schema = schema(&slots, form, idea.quality, style, rng);
    Tool { server: Some(server.to_owned()), name, description, schema, effect: form.effect }
}

/// What the slots of a pattern stand for.
struct Slots<'a> {
    object: &'a Noun,
    first: &'a str,
    second: &'a str,
    field: &'a Field,
    verb: &'a str,
}

impl Slots<'_> {
    fn fill(&self, pattern: &Pattern) -> String {
        let Noun { one, many } = self.object;
        let mut text = String::new();
        for piece in &pattern.0 {
            match piece {
                Piece::Text(words) => text.push_str(words),
                Piece::Object => text.push_str(one),
                Piece::WithArticle => {
                    text.push_str(article(one));
                    text.push_str(one);
                }
                Piece::Objects => text.push_str(many),
                Piece::First => text.push_str(self.first),
                Piece::Second => text.push_str(self.second),
                Piece::Role => text.push_str(&self.field.role),
                Piece::Place => text.push_str(&self.field.place),
                Piece::Verb => text.push_str(self.verb),
                Piece::CapitalVerb => text.push_str(&capitalised(self.verb)),
            }
        }
        text
    }
}

fn schema(slots: &Slots, form: Form, quality: Option<&str>, style: Style, rng: &mut Rng) -> Value {
    let Noun { one, many } = slots.object;
    let key = |words: &[&str]| match style {
        Style::Camel => Style::Camel.join(words.iter().copied()),
        _ => Style::Snake.join(words.iter().copied()),
    };
    let text = |description: String| json!({"type": "string", "description": description});
    let mut properties = Map::new();
    let mut required = Vec::new();
    match form.takes {
        Takes::None => {}
        Takes::Id => {
            required.push(key(&[one, "id"]));
            properties.insert(key(&[one, "id"]), text(format!("Number of the {one}")));
        }
        Takes::Ids => {
            let description = format!("The {many} to compare");
            required.push(key(&[one, "ids"]));
            let ids = json!({"type": "array", "items": {"type": "string"}, "description": description});
            properties.insert(key(&[one, "ids"]), ids);
        }
    }
    let date = (key(&["date"]), json!({"type": "string", "format": "date", "description": "Day that it applies to"}));
    let mut optional = match (form.effect, form.number) {
        (Effect::Reads, Number::Many) => vec![
            (key(&["limit"]), json!({"type": "integer", "description": "Most entries to return", "default": 50})),
            (key(&[slots.second]), text(format!("Only entries with this {}", slots.second))),
            (key(&["newest first"]), json!({"type": "boolean", "description": "Reverse the order", "default": false})),
        ],
        (Effect::Reads, Number::One) => vec![
            (
                key(&["with history"]),
                json!({"type": "boolean", "description": "Also return earlier values", "default": false}),
            ),
            (key(&["unit"]), text("Unit of the result, metric if left out".to_owned())),
        ],
        (Effect::Writes | Effect::Destroys, _) => vec![
            (key(&["note"]), text(format!("Remark for the {}", slots.field.role))),
            (key(&[slots.second]), text(format!("The {}, if known", slots.second))),
            (
                key(&["dry run"]),
                json!({"type": "boolean", "description": "Check the values without saving", "default": false}),
            ),
        ],
    };
    optional.push(date);
    let purpose = if form.effect == Effect::Reads { "Only entries with this" } else { "The" };
    if form.effect != Effect::Reads || form.number == Number::Many {
        properties.insert(key(&[slots.first]), text(format!("{purpose} {}", slots.first)));
        if quality.is_some() && form.effect == Effect::Writes {
            required.push(key(&[slots.first]));
        }
    }
    let skip = rng.below(optional.len());
    for (name, property) in optional.into_iter().cycle().skip(skip).take(rng.below(3)) {
        properties.entry(name).or_insert(property);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn pick<'a>(rng: &mut Rng, choices: &'a [String]) -> &'a str {
    choices.get(rng.below(choices.len())).map_or("", String::as_str)
}

fn other_trait<'f>(field: &'f Field, first: &str, rng: &mut Rng) -> &'f str {
    let others: Vec<&str> = field.traits.iter().map(String::as_str).filter(|one| *one != first).collect();
    others.get(rng.below(others.len())).copied().unwrap_or_default()
}

fn article(noun: &str) -> &'static str {
    let first = noun.chars().next().unwrap_or('x').to_ascii_lowercase();
    let sounds_like_you = noun.starts_with("us") || noun.starts_with("uni");
    if "aeiou".contains(first) && !sounds_like_you { "an " } else { "a " }
}

pub(super) fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_follow_their_style() {
        let words = ["list", "ripening shelves", "by", "thousand-seed weight"];
        let names =
            [Style::Snake, Style::Kebab, Style::Camel, Style::Dotted].map(|style| style.join(words.into_iter()));
        assert_eq!(
            names,
            [
                "list_ripening_shelves_by_thousand_seed_weight",
                "list-ripening-shelves-by-thousand-seed-weight",
                "listRipeningShelvesByThousandSeedWeight",
                "list.ripening.shelves.by.thousand.seed.weight",
            ]
        );
        let styles = ["get_page", "get-run", "getTicket", "admin.audit.export", "search"].map(Style::of);
        assert_eq!(styles, [Style::Snake, Style::Kebab, Style::Camel, Style::Dotted, Style::Snake]);
    }

    #[test]
    fn sentences_are_grammatical() {
        let vocabulary = Vocabulary::builtin().unwrap();
        let field = vocabulary.of_namespace("forge");
        let object = Noun { one: "anvil".to_owned(), many: "anvils".to_owned() };
        let slots = Slots { object: &object, first: "steel type", second: "hammer weight", field, verb: "temper" };
        assert_eq!(
            slots.fill(&Pattern::new("{V} {an} {p}, {os}: {a}, {b}. {r} {v} {o}").unwrap()),
            "Temper an anvil in the code forge, anvils: steel type, hammer weight. maintainer temper anvil"
        );
        assert_eq!(["usage quota", "unit", "hour book", "ice core"].map(article), ["a ", "a ", "a ", "an "]);
    }

    #[test]
    fn every_idea_of_a_field_is_another_name() {
        let vocabulary = Vocabulary::builtin().unwrap();
        for field in vocabulary.all_fields() {
            let mut rng = Rng::new(1);
            let mut seen = BTreeSet::new();
            for idea in ideas(vocabulary, field, &mut rng) {
                let name = tool(vocabulary, field, idea, &field.server, Style::Snake, &mut rng).name;
                assert!(seen.insert(name.clone()), "{} {name}", field.server);
            }
        }
    }
}
