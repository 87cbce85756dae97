//! From a field of work to a tool definition: actions, sentence patterns, naming styles, argument schemas.
//!
//! Thousands of tools must not read as one template, so every action has several sentences, every server has a way
//! of naming and of describing, and a follow-up sentence comes from a pool. All choices are drawn from a seeded
//! stream; the output is text, so that the same seed gives the same bytes.

use serde_json::{Map, Value, json};

use super::super::rng::Rng;
use super::fields::{Field, Trade};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// What a tool does with an object, in every field.
struct Action {
    /// First word of the name; empty where the field gives the verb.
    verb: &'static str,
    number: Number,
    /// The word between the object and the attribute in a qualified name; empty for `get_vase_provenance`.
    link: &'static str,
    plain: &'static [&'static str],
    qualified: &'static [&'static str],
    effect: Effect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    One,
    Many,
}

/// What is done with things that lie somewhere. Slots: `{o}` object, `{an}` with its article, `{os}` plural, `{a}` and `{b}` attributes, `{r}` role, `{p}` place,
/// `{V}` and `{v}` the verb of the field.
const ON_THINGS: &[Action] = &[
    Action {
        verb: "list",
        number: Number::Many,
        link: "by",
        plain: &[
            "List the {os} {p}, newest entry first.",
            "Return all {os} {p} with their {a} and {b}.",
            "Browse the {os} {p} page by page.",
        ],
        qualified: &["List the {os} {p} grouped by {a}.", "Return the {os} whose {a} lies in a given range."],
        effect: Effect::Reads,
    },
    Action {
        verb: "get",
        number: Number::One,
        link: "",
        plain: &[
            "Get one {o} with its {a}, {b} and remarks.",
            "Fetch the full record of {an} {p}.",
            "Look up {an} by number and return its {a} and {b}.",
        ],
        qualified: &["Get the {a} of {an}, as last noted by the {r}.", "Return the current {a} of one {o} {p}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "register",
        number: Number::One,
        link: "with",
        plain: &["Enter a new {o} {p}.", "Register {an}: {a} and {b} are needed, everything else may follow later."],
        qualified: &["Register {an} together with its {a}, for cases where the {a} is known beforehand."],
        effect: Effect::Writes,
    },
    Action {
        verb: "update",
        number: Number::One,
        link: "",
        plain: &["Change the particulars of {an} {p}.", "Correct the {a} or the {b} of {an}."],
        qualified: &["Set a new {a} for {an}.", "Correct the {a} of {an} after a fresh measurement."],
        effect: Effect::Writes,
    },
    Action {
        verb: "inspect",
        number: Number::One,
        link: "",
        plain: &["Start an inspection of {an} and note what was found.", "Record the result of inspecting {an} {p}."],
        qualified: &["Check the {a} of {an} against the limits and note deviations."],
        effect: Effect::Writes,
    },
    Action {
        verb: "compare",
        number: Number::Many,
        link: "by",
        plain: &["Put several {os} side by side, with {a} and {b} in columns."],
        qualified: &["Rank {os} {p} by {a}.", "Compare two or more {os} by their {a} only."],
        effect: Effect::Reads,
    },
    Action {
        verb: "estimate",
        number: Number::One,
        link: "",
        plain: &[
            "Estimate the effort that {an} will take, from its {a}.",
            "Work out what {an} will cost in the coming season.",
        ],
        qualified: &["Estimate the {a} of {an} from its {b}.", "Predict how the {a} of {an} will develop."],
        effect: Effect::Reads,
    },
    Action {
        verb: "count",
        number: Number::Many,
        link: "by",
        plain: &["Count the {os} {p}.", "Say how many {os} there are {p} and how many are in use."],
        qualified: &["Count the {os} {p} per {a}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "plan",
        number: Number::One,
        link: "by",
        plain: &["Put {an} on the work plan of the {r}.", "Plan the next work on {an} {p}."],
        qualified: &["Plan the work on {an} in the order that its {a} suggests."],
        effect: Effect::Writes,
    },
    Action {
        verb: "assign",
        number: Number::One,
        link: "by",
        plain: &["Give the care of {an} to a {r}.", "Assign {an} to a team {p}."],
        qualified: &["Assign {an} to whoever is trained for its {a}."],
        effect: Effect::Writes,
    },
    Action {
        verb: "transfer",
        number: Number::One,
        link: "with",
        plain: &["Hand {an} over to another site and sign it out {p}.", "Transfer {an} between two sections."],
        qualified: &["Transfer {an} and carry its {a} over to the receiving side."],
        effect: Effect::Writes,
    },
    Action {
        verb: "retire",
        number: Number::One,
        link: "by",
        plain: &["Take {an} out of service for good.", "Strike {an} from the books {p}."],
        qualified: &["Take every {o} out of service whose {a} is past its limit."],
        effect: Effect::Destroys,
    },
    Action {
        verb: "certify",
        number: Number::One,
        link: "",
        plain: &["Issue a certificate for {an} that names its {a}.", "Certify that {an} {p} meets the rules."],
        qualified: &["Certify the {a} of {an} under the {r}'s signature."],
        effect: Effect::Writes,
    },
    Action {
        verb: "track",
        number: Number::One,
        link: "",
        plain: &["Follow {an} over time: who handled it, when, and with what result."],
        qualified: &["Plot the {a} of {an} over the months.", "Keep a time series of the {a} of one {o}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "log",
        number: Number::One,
        link: "",
        plain: &["Write a line in the day book about {an}.", "Log an observation on {an} {p}, with date and observer."],
        qualified: &["Log a reading of the {a} of {an}."],
        effect: Effect::Writes,
    },
];

/// What is done with records, settings and other objects of software.
const ON_RECORDS: &[Action] = &[
    Action {
        verb: "list",
        number: Number::Many,
        link: "by",
        plain: &[
            "List the {os} {p}.",
            "Returns every {o} {p} with its {a} and {b}.",
            "Page through all {os} {p}, most recently changed first.",
        ],
        qualified: &["List the {os} {p} with a given {a}.", "Returns the {os} {p}, sorted by {a}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "get",
        number: Number::One,
        link: "",
        plain: &[
            "Get one {o} by id.",
            "Returns {an} with its {a}, {b} and time of last change.",
            "Show the details of {an} {p}.",
        ],
        qualified: &["Get the {a} of {an}.", "Returns the {a} that {an} {p} has at present."],
        effect: Effect::Reads,
    },
    Action {
        verb: "create",
        number: Number::One,
        link: "with",
        plain: &["Create a new {o} {p}.", "Add {an} {p}; {a} and {b} can be set later."],
        qualified: &["Create {an} with a fixed {a} that cannot be changed afterwards."],
        effect: Effect::Writes,
    },
    Action {
        verb: "update",
        number: Number::One,
        link: "",
        plain: &["Change the settings of {an}.", "Update {an} {p}. Fields that are left out keep their value."],
        qualified: &["Set the {a} of {an}.", "Change the {a} of {an} {p} and nothing else."],
        effect: Effect::Writes,
    },
    Action {
        verb: "delete",
        number: Number::One,
        link: "by",
        plain: &["Delete {an} for good.", "Remove {an} {p}. Cannot be undone."],
        qualified: &["Delete every {o} whose {a} matches."],
        effect: Effect::Destroys,
    },
    Action {
        verb: "search",
        number: Number::Many,
        link: "by",
        plain: &["Find {os} {p} by name.", "Search the {os} {p} by name, {a} or {b}."],
        qualified: &["Find the {os} {p} whose {a} contains a text."],
        effect: Effect::Reads,
    },
    Action {
        verb: "count",
        number: Number::Many,
        link: "by",
        plain: &["Number of {os} {p}.", "Count the {os} {p} and how many of them are in use."],
        qualified: &["Count the {os} {p} for each {a}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "compare",
        number: Number::Many,
        link: "by",
        plain: &["Show the differences between several {os}."],
        qualified: &["Compare {os} {p} by {a}."],
        effect: Effect::Reads,
    },
    Action {
        verb: "clone",
        number: Number::One,
        link: "with",
        plain: &["Make a second {o} with the settings of an existing one."],
        qualified: &["Clone {an} but give the clone another {a}."],
        effect: Effect::Writes,
    },
    Action {
        verb: "test",
        number: Number::One,
        link: "",
        plain: &["Try {an} out and report whether it works.", "Check that {an} {p} is set up correctly."],
        qualified: &["Check whether the {a} of {an} is acceptable."],
        effect: Effect::Reads,
    },
    Action {
        verb: "watch",
        number: Number::One,
        link: "",
        plain: &["Be told when {an} changes.", "Subscribe to changes of {an} {p}."],
        qualified: &["Be told when the {a} of {an} changes."],
        effect: Effect::Writes,
    },
    Action {
        verb: "import",
        number: Number::Many,
        link: "with",
        plain: &["Take over {os} from another installation.", "Load {os} from a definition in JSON."],
        qualified: &["Take over {os} from another installation, mapping the {a}."],
        effect: Effect::Writes,
    },
    Action {
        verb: "sync",
        number: Number::One,
        link: "",
        plain: &["Bring {an} in line with its source.", "Refresh {an} {p} from where it is maintained."],
        qualified: &["Refresh the {a} of {an} from where it is maintained."],
        effect: Effect::Writes,
    },
];

/// What the verbs of a field do.
const OF_FIELD: Action = Action {
    verb: "",
    number: Number::One,
    link: "",
    plain: &[
        "{V} {an} {p}.",
        "{V} {an} and note its {a} before and after.",
        "Tell the {r} to {v} {an}; returns the number of the work order.",
        "Ask the {r} to {v} {an} on a given day.",
        "Record who had to {v} {an}, when, and at which {a}.",
    ],
    qualified: &[],
    effect: Effect::Writes,
};

/// What the verbs of a field do with records.
const OF_RECORD_FIELD: Action =
    Action { plain: &["{V} {an} {p}.", "{V} {an} by id.", "{V} {an}; its {a} stays as it is."], ..OF_FIELD };

/// Sentences that may follow, by what a field deals with and whether the tool changes something.
fn follow_ups(trade: Trade, effect: Effect) -> &'static [&'static str] {
    match (trade, effect) {
        (Trade::Things, Effect::Reads) => &[
            "Entries of closed seasons are left out.",
            "Results come in pages of fifty.",
            "Only the {b} of the last five years is kept.",
            "Missing values come back as null.",
            "Numbers are in metric units.",
            "See the handbook {p} for the meaning of the codes.",
            "Fails when the {o} is unknown {p}.",
        ],
        (Trade::Things, Effect::Writes | Effect::Destroys) => &[
            "Values outside the usual {a} are refused.",
            "The {b} stays as it is.",
            "Runs overnight; the result is ready the next morning.",
            "Several {os} can be passed at once.",
            "Without a date, today is taken.",
            "The {r} is told about it.",
            "Photographs can be attached.",
            "Every change carries the name of the {r}.",
            "Takes the number on the label, not the popular name.",
            "Needs the rights of the {r}.",
        ],
        (Trade::Records, Effect::Reads) => &[
            "Results come in pages of fifty.",
            "Values may be up to a minute old.",
            "Needs read access.",
            "The {b} is included on request.",
            "Returns null when there is none.",
            "Fails when the {o} does not exist.",
        ],
        (Trade::Records, Effect::Writes | Effect::Destroys) => &[
            "Needs the rights of the {r}.",
            "Takes effect at once.",
            "Returns the id of the {o}.",
            "Safe to repeat.",
            "The {r} is notified.",
            "Fails when the {o} is in use.",
            "Set dry_run to see what would change.",
        ],
    }
}

/// The verbs of a field go with its first objects, which it lists for that reason.
const VERB_OBJECTS: usize = 5;

/// A tool that a field can give: what is done, to which object, with regard to which attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idea {
    deed: Deed,
    object: usize,
    quality: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    /// An action that every field has.
    Common(usize),
    /// A verb of the field.
    OfField(usize),
}

/// The actions that every field of the same trade has.
fn common_actions(field: &Field) -> &'static [Action] {
    match field.trade {
        Trade::Things => ON_THINGS,
        Trade::Records => ON_RECORDS,
    }
}

fn of_field(field: &Field) -> &'static Action {
    match field.trade {
        Trade::Things => &OF_FIELD,
        Trade::Records => &OF_RECORD_FIELD,
    }
}

/// Everything that a field can give, in a random order in which ideas with and without an attribute take turns.
pub(super) fn ideas(field: &Field, rng: &mut Rng) -> Vec<Idea> {
    let (mut plain, mut qualified) = (Vec::new(), Vec::new());
    for object in 0..field.objects.len() {
        for common in 0..common_actions(field).len() {
            plain.push(Idea { deed: Deed::Common(common), object, quality: None });
            let ideas = (0..field.traits.len()).map(Some);
            qualified.extend(ideas.map(|quality| Idea { deed: Deed::Common(common), object, quality }));
        }
        if object < VERB_OBJECTS {
            let verbs = 0..field.verbs.len();
            plain.extend(verbs.map(|verb| Idea { deed: Deed::OfField(verb), object, quality: None }));
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

/// The tool that comes of an idea, named in `style` under `server`.
pub(super) fn tool(field: &Field, idea: Idea, server: &str, style: Style, rng: &mut Rng) -> Tool {
    let (action, verb) = match idea.deed {
        Deed::Common(index) => (&common_actions(field)[index], common_actions(field)[index].verb),
        Deed::OfField(index) => (of_field(field), field.verbs[index]),
    };
    let (one, many) = plural(field.objects[idea.object]);
    let quality = idea.quality.map(|index| field.traits[index]);
    let first = quality.unwrap_or_else(|| pick(rng, field.traits));
    let second = other_trait(field, first, rng);
    let slots = Slots { one, many: &many, first, second, role: field.role, place: field.place, verb };

    let thing = if action.number == Number::Many { many.as_str() } else { one };
    let words = [verb, thing].into_iter().chain(quality.iter().flat_map(|quality| [action.link, *quality]));
    let name = style.join(words);
    let mut description = slots.fill(pick(rng, if quality.is_some() { action.qualified } else { action.plain }));
    for _ in 0..rng.below(3) {
        let sentence = slots.fill(pick(rng, follow_ups(field.trade, action.effect)));
        if !description.contains(&sentence) {
            description.push(' ');
            description.push_str(&sentence);
        }
    }
    let schema = schema(&slots, action, quality, style, rng);
    Tool { server: Some(server.to_owned()), name, description, schema, effect: action.effect }
}

struct Slots<'a> {
    one: &'a str,
    many: &'a str,
    first: &'a str,
    second: &'a str,
    role: &'a str,
    place: &'a str,
    verb: &'a str,
}

impl Slots<'_> {
    fn fill(&self, pattern: &str) -> String {
        let mut text = String::with_capacity(pattern.len() + 48);
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('{') {
            text.push_str(before);
            let Some((slot, tail)) = after.split_once('}') else { break };
            match slot {
                "o" => text.push_str(self.one),
                "an" => {
                    text.push_str(article(self.one));
                    text.push_str(self.one);
                }
                "os" => text.push_str(self.many),
                "a" => text.push_str(self.first),
                "b" => text.push_str(self.second),
                "r" => text.push_str(self.role),
                "p" => text.push_str(self.place),
                "v" => text.push_str(self.verb),
                "V" => text.push_str(&capitalised(self.verb)),
                _ => {}
            }
            rest = tail;
        }
        text.push_str(rest);
        text
    }
}

fn schema(slots: &Slots, action: &Action, quality: Option<&str>, style: Style, rng: &mut Rng) -> Value {
    let key = |words: &[&str]| match style {
        Style::Camel => Style::Camel.join(words.iter().copied()),
        _ => Style::Snake.join(words.iter().copied()),
    };
    let text = |description: String| json!({"type": "string", "description": description});
    let mut properties = Map::new();
    let mut required = Vec::new();
    if action.number == Number::One && !["register", "create"].contains(&action.verb) {
        required.push(key(&[slots.one, "id"]));
        properties.insert(key(&[slots.one, "id"]), text(format!("Number of the {}", slots.one)));
    } else if action.verb == "compare" {
        let ids = json!({"type": "array", "items": {"type": "string"}, "description": format!("The {} to compare", slots.many)});
        required.push(key(&[slots.one, "ids"]));
        properties.insert(key(&[slots.one, "ids"]), ids);
    }
    let date = (key(&["date"]), json!({"type": "string", "format": "date", "description": "Day that it applies to"}));
    let mut optional = match (action.effect, action.number) {
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
            (key(&["note"]), text(format!("Remark for the {}", slots.role))),
            (key(&[slots.second]), text(format!("The {}, if known", slots.second))),
            (
                key(&["dry run"]),
                json!({"type": "boolean", "description": "Check the values without saving", "default": false}),
            ),
        ],
    };
    optional.push(date);
    let purpose = if action.effect == Effect::Reads { "Only entries with this" } else { "The" };
    if action.effect != Effect::Reads || action.number == Number::Many {
        properties.insert(key(&[slots.first]), text(format!("{purpose} {}", slots.first)));
        if quality.is_some() && action.effect == Effect::Writes {
            required.push(key(&[slots.first]));
        }
    }
    let skip = rng.below(optional.len());
    for (name, property) in optional.into_iter().cycle().skip(skip).take(rng.below(3)) {
        properties.entry(name).or_insert(property);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

pub(super) fn pick<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices.get(rng.below(choices.len())).copied().unwrap_or_default()
}

fn other_trait(field: &Field, first: &str, rng: &mut Rng) -> &'static str {
    let others: Vec<&'static str> = field.traits.iter().copied().filter(|one| *one != first).collect();
    pick(rng, &others)
}

/// The singular and the plural of an object as it is written in a field.
fn plural(object: &'static str) -> (&'static str, String) {
    if let Some((one, many)) = object.split_once('/') {
        return (one, many.to_owned());
    }
    let vowel_before_y = ["ay", "ey", "oy", "uy"].iter().any(|end| object.ends_with(end));
    let many = if object.ends_with('y') && !vowel_before_y {
        format!("{}ies", &object[..object.len() - 1])
    } else if ["s", "x", "z", "ch", "sh"].iter().any(|end| object.ends_with(end)) {
        format!("{object}es")
    } else {
        format!("{object}s")
    };
    (object, many)
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

    use super::super::fields::FIELDS;
    use super::super::siblings::{ANY, SIBLINGS};
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
        let slots = Slots {
            one: "anvil",
            many: "anvils",
            first: "steel type",
            second: "hammer weight",
            role: "blacksmith",
            place: "in the smithy",
            verb: "temper",
        };
        assert_eq!(
            slots.fill("{V} {an} {p}, {os}: {a}, {b}. {r} {v} {o}"),
            "Temper an anvil in the smithy, anvils: steel type, hammer weight. blacksmith temper anvil"
        );
        let plurals = ["hatch", "quarry", "quay", "chassis", "calf/calves"].map(|noun| plural(noun).1);
        assert_eq!(plurals, ["hatches", "quarries", "quays", "chassises", "calves"]);
        assert_eq!(["usage quota", "unit", "hour book", "ice core"].map(article), ["a ", "a ", "a ", "an "]);
    }

    #[test]
    fn every_idea_of_a_field_is_another_name() {
        for field in FIELDS.iter().chain(SIBLINGS).chain([&ANY]) {
            let mut rng = Rng::new(1);
            let mut seen = BTreeSet::new();
            for idea in ideas(field, &mut rng) {
                let name = tool(field, idea, field.server, Style::Snake, &mut rng).name;
                assert!(seen.insert(name.clone()), "{} {name}", field.server);
            }
        }
    }

    #[test]
    fn servers_are_distinct() {
        let servers: BTreeSet<&str> = FIELDS.iter().chain(SIBLINGS).map(|field| field.server).collect();
        assert_eq!(servers.len(), FIELDS.len() + SIBLINGS.len());
        assert!(FIELDS.len() >= 40);
    }
}
