//! Schemas of an OpenAPI document without their references.
//!
//! A reference is replaced by what it leads to, because models and rankings read names where they stand. Where that would
//! not end, or would say too much twice, it leads to a definition inside of the schema instead, so that nothing is lost.
//! Every node and text that is written counts, for one operation and for the document: no document costs more than its
//! bounds, however its references are woven.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::super::schema::{Role, pointer, role};
use crate::catalog::Fault;
use crate::text::percent_encoded;

/// What the schema of one operation may cost, in about the bytes of its JSON.
const OPERATION: usize = 1 << 20;
/// Of that, what stands in place of references. What is used twice beyond that is said once, as a definition.
const IN_PLACE: usize = 16 << 10;
/// What all operations of a document may cost together.
const DOCUMENT: usize = 128 << 20;
/// References further down lead to definitions.
const DEPTH: usize = 60;
/// References of parameters and request bodies that lead to another reference.
const HOPS: usize = 16;

/// The keyword that says which member of a value tells which of the alternatives it is, its words for them, and the
/// alternative of a value that says none of these words.
const DISCRIMINATOR: &str = "discriminator";
const MAPPING: &str = "mapping";
const DEFAULT_MAPPING: &str = "defaultMapping";
/// The keywords whose alternatives it is about.
const ALTERNATIVES: [&str; 2] = ["oneOf", "anyOf"];
/// Where the schemas are whose names it may have in place of references.
const SCHEMAS: &str = "/components/schemas/";
/// A longer reference to an alternative is not written.
const LONGEST_POINTER: usize = 256;

/// A document, and what its operations may still cost.
pub(super) struct References<'d> {
    document: &'d Value,
    left: usize,
}

impl<'d> References<'d> {
    pub(super) fn new(document: &'d Value) -> Self {
        Self { document, left: DOCUMENT }
    }

    /// Takes a cost off what is left for the document.
    pub(super) fn pay(&mut self, cost: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(cost).ok_or_else(|| {
            Fault::new("the operations of the document grow too large when expanded")
                .with_fix("split it into several documents")
        })?;
        Ok(())
    }

    /// A parameter, request body or path item, which may stand elsewhere in the document.
    pub(super) fn object(&mut self, mut value: &'d Value) -> Result<&'d Map<String, Value>, Fault> {
        for _ in 0..HOPS {
            self.pay(16)?;
            let Some(members) = value.as_object() else {
                let found = crate::catalog::describe(value);
                return Err(Fault::new(format!("expected an object, not {found}")));
            };
            let Some(reference) = members.get("$ref").and_then(Value::as_str) else { return Ok(members) };
            self.pay(reference.len())?;
            value = self.target(reference).ok_or_else(|| {
                let reference = crate::catalog::load::shortened(reference);
                let problem = format!("`{reference}` points to nothing in the document");
                Fault::new(problem).with_fix("bundle the document into one file")
            })?;
        }
        Err(Fault::new("its references keep leading to further references"))
    }

    /// What a reference leads to within the document.
    fn target(&self, reference: &str) -> Option<&'d Value> {
        self.document.pointer(&pointer(reference)?)
    }
}

/// One of the alternatives that a discriminator is about.
struct Alternative {
    keyword: &'static str,
    at: usize,
    /// Whether the document has a word for it.
    is_named: bool,
}

impl Alternative {
    /// What stands for a reference to it until it is known where its schema is: see [`place_alternatives`]. No document can
    /// have it, since references are texts.
    fn mark(&self) -> Value {
        json!([self.keyword, self.at])
    }
}

/// Writes, for each word of a discriminator in a schema, where its alternative stands.
pub(super) fn place_alternatives(schema: &mut Value) {
    place_below(schema, Some("#"));
}

/// `at` is where the schema stands; `None` if that takes too many bytes to say.
fn place_below(schema: &mut Value, at: Option<&str>) {
    let below = |step: &str| at.filter(|at| at.len() + step.len() < LONGEST_POINTER).map(|at| format!("{at}/{step}"));
    match schema {
        Value::Array(schemas) => {
            for (index, schema) in schemas.iter_mut().enumerate() {
                place_below(schema, below(&index.to_string()).as_deref());
            }
        }
        Value::Object(members) => {
            place(members, at);
            for (keyword, value) in members.iter_mut() {
                match role(keyword) {
                    Role::Schema => place_below(value, below(keyword).as_deref()),
                    Role::Map => {
                        for (name, schema) in value.as_object_mut().into_iter().flatten() {
                            let step = (name.len() < LONGEST_POINTER).then(|| format!("{keyword}/{}", escaped(name)));
                            place_below(schema, step.and_then(|step| below(&step)).as_deref());
                        }
                    }
                    Role::Data => {}
                }
            }
        }
        _ => {}
    }
}

/// Replaces the marks in the discriminator of a schema that stands at `at`.
fn place(schema: &mut Map<String, Value>, at: Option<&str>) {
    let Some(Value::Object(mut discriminator)) = schema.get(DISCRIMINATOR).cloned() else { return };
    let target = |mark: &Value| {
        let (keyword, index) = (mark.get(0)?.as_str()?, usize::try_from(mark.get(1)?.as_u64()?).ok()?);
        let alternative = schema.get(keyword)?.get(index)?.as_object()?;
        match alternative.get("$ref") {
            Some(reference) if alternative.len() == 1 => Some(reference.clone()),
            _ => Some(format!("{}/{keyword}/{index}", at?).into()),
        }
    };
    if let Some(marks) = discriminator.get(MAPPING).and_then(Value::as_object) {
        let words = marks.iter().filter_map(|(word, mark)| Some((word.clone(), target(mark)?)));
        let words: Map<String, Value> = words.collect();
        put(&mut discriminator, MAPPING, (!words.is_empty()).then_some(Value::Object(words)));
    }
    if let Some(mark) = discriminator.get(DEFAULT_MAPPING) {
        let target = target(mark);
        put(&mut discriminator, DEFAULT_MAPPING, target);
    }
    schema.insert(DISCRIMINATOR.to_owned(), Value::Object(discriminator));
}

/// Replaces the value of a member, or takes the member out.
fn put(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value)),
        None => drop(members.shift_remove(name)),
    }
}

/// A name as a step of a JSON Pointer in a reference.
fn escaped(name: &str) -> String {
    percent_encoded(name.replace('~', "~0").replace('/', "~1").as_bytes(), b"$@")
}

/// The schemas of one operation.
pub(super) struct Expansion<'r, 'd> {
    references: &'r mut References<'d>,
    left: usize,
    in_place: usize,
    /// The references that are being replaced.
    open: Vec<&'d str>,
    /// The names of the definitions that are wanted, and those to be written.
    names: BTreeMap<&'d str, String>,
    /// How many references want each name.
    taken: BTreeMap<String, u32>,
    wanted: VecDeque<&'d str>,
}

impl<'r, 'd> Expansion<'r, 'd> {
    pub(super) fn new(references: &'r mut References<'d>) -> Self {
        let (names, taken, wanted) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Self { references, left: OPERATION, in_place: IN_PLACE, open: Vec::new(), names, taken, wanted }
    }

    pub(super) fn references(&mut self) -> &mut References<'d> {
        self.references
    }

    /// A copy of a schema whose references lead to nothing outside of it.
    pub(super) fn schema(&mut self, schema: &'d Value) -> Result<Value, Fault> {
        self.copy(schema, Role::Schema, 0)
    }

    /// The definitions that the schemas copied so far lead to.
    pub(super) fn definitions(&mut self) -> Result<Map<String, Value>, Fault> {
        self.in_place = 0;
        let mut definitions = Map::new();
        while let Some(reference) = self.wanted.pop_front() {
            let Some(target) = self.references.target(reference) else { continue };
            let definition = self.copy(target, Role::Schema, 0)?;
            definitions.insert(self.names[reference].clone(), definition);
        }
        Ok(definitions)
    }

    fn pay(&mut self, cost: usize) -> Result<(), Fault> {
        self.references.pay(cost)?;
        self.left = self
            .left
            .checked_sub(cost)
            .ok_or_else(|| Fault::new("its schema grows too large when expanded").with_fix("make it smaller"))?;
        if !self.open.is_empty() {
            self.in_place = self.in_place.saturating_sub(cost);
        }
        Ok(())
    }

    fn copy(&mut self, value: &'d Value, role_of: Role, depth: usize) -> Result<Value, Fault> {
        self.pay(8)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
            Value::String(text) => {
                self.pay(text.len())?;
                Ok(value.clone())
            }
            Value::Array(values) => {
                let copies = values.iter().map(|value| self.copy(value, role_of, depth + 1));
                Ok(Value::Array(copies.collect::<Result<_, _>>()?))
            }
            Value::Object(members) => match members.get("$ref").and_then(Value::as_str) {
                Some(reference) if role_of == Role::Schema => self.follow(reference, members, depth),
                _ => Ok(Value::Object(self.members(members, role_of, depth)?)),
            },
        }
    }

    fn members(
        &mut self,
        members: &'d Map<String, Value>,
        role_of: Role,
        depth: usize,
    ) -> Result<Map<String, Value>, Fault> {
        let mut copies = Map::new();
        for (key, value) in members {
            self.pay(key.len())?;
            let copy = match role_of {
                Role::Schema => self.keyword(key, value, members, depth)?,
                Role::Map => Some(self.copy(value, Role::Schema, depth + 1)?),
                Role::Data => Some(self.copy(value, Role::Data, depth + 1)?),
            };
            copies.extend(copy.map(|copy| (key.clone(), copy)));
        }
        Ok(copies)
    }

    /// What stands under a keyword of a schema; `None` for a discriminator that is none.
    fn keyword(
        &mut self,
        key: &str,
        value: &'d Value,
        schema: &'d Map<String, Value>,
        depth: usize,
    ) -> Result<Option<Value>, Fault> {
        if key == DISCRIMINATOR {
            self.discriminator(value, schema)
        } else {
            self.copy(value, role(key), depth + 1).map(Some)
        }
    }

    /// Which member of a value says which of the alternatives of `schema` it is, and by which words. An alternative that no
    /// word is given for goes by the name of its schema, which its copy does not have. Words for schemas that are no
    /// alternative here are left out: a document may have hundreds that extend one schema, each with all that they lead to.
    fn discriminator(&mut self, value: &'d Value, schema: &'d Map<String, Value>) -> Result<Option<Value>, Fault> {
        let Some(name) = value.get("propertyName").and_then(Value::as_str) else { return Ok(None) };
        self.pay(name.len())?;
        let mut alternatives: BTreeMap<Cow<'d, str>, Alternative> = BTreeMap::new();
        for keyword in ALTERNATIVES {
            let list = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            for (at, alternative) in list.enumerate() {
                self.pay(8)?;
                let reference = alternative.get("$ref").and_then(Value::as_str);
                if let Some(target) = reference.and_then(pointer) {
                    alternatives.entry(target).or_insert(Alternative { keyword, at, is_named: false });
                }
            }
        }
        let target = |of: &'d str| pointer(of).unwrap_or_else(|| format!("{SCHEMAS}{of}").into());
        let mut mapping = Map::new();
        for (word, of) in value.get(MAPPING).and_then(Value::as_object).into_iter().flatten() {
            self.pay(16)?;
            let Some(of) = of.as_str() else { continue };
            if let Some(alternative) = alternatives.get_mut(&*target(of)) {
                self.pay(word.len() + 64)?;
                alternative.is_named = true;
                mapping.insert(word.clone(), alternative.mark());
            }
        }
        for (target, alternative) in alternatives.iter().filter(|(_, alternative)| !alternative.is_named) {
            if let Some(name) = target.strip_prefix(SCHEMAS).filter(|name| !name.contains('/')) {
                self.pay(name.len() + 64)?;
                mapping.entry(name).or_insert_with(|| alternative.mark());
            }
        }
        let mut discriminator = Map::from_iter([("propertyName".to_owned(), name.into())]);
        if !mapping.is_empty() {
            discriminator.insert(MAPPING.to_owned(), Value::Object(mapping));
        }
        let default = value.get(DEFAULT_MAPPING).and_then(Value::as_str);
        if let Some(alternative) = default.and_then(|of| alternatives.get(&*target(of))) {
            self.pay(64)?;
            discriminator.insert(DEFAULT_MAPPING.to_owned(), alternative.mark());
        }
        Ok(Some(Value::Object(discriminator)))
    }

    /// What a schema with a reference says: what it leads to, with its own members on top.
    fn follow(&mut self, reference: &'d str, members: &'d Map<String, Value>, depth: usize) -> Result<Value, Fault> {
        // Looking it up takes longer than writing it.
        self.pay(reference.len() + 32)?;
        let target = self.references.target(reference);
        let end = self.in_place == 0 || depth >= DEPTH || self.open.len() >= DEPTH || self.open.contains(&reference);
        let mut copy = match target {
            // The lint says that it leads nowhere, or outside.
            None => json!({"$ref": reference}),
            Some(target) if !end => {
                self.open.push(reference);
                let copy = self.copy(target, Role::Schema, depth);
                self.open.pop();
                copy?
            }
            Some(_) => json!({"$ref": format!("#/$defs/{}", self.definition(reference)?)}),
        };
        let beside = members.iter().filter(|(key, _)| *key != "$ref");
        for (key, value) in beside {
            let value = self.keyword(key, value, members, depth)?;
            if let Some(copy) = copy.as_object_mut() {
                copy.extend(value.map(|value| (key.clone(), value)));
            }
        }
        Ok(copy)
    }

    /// The name of the definition that stands for a reference.
    fn definition(&mut self, reference: &'d str) -> Result<&str, Fault> {
        if !self.names.contains_key(reference) {
            let last = reference.rsplit(['/', '#']).next().unwrap_or("");
            let name: String = last
                .chars()
                .take(64)
                .map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' })
                .collect();
            let name = self.free(if name.is_empty() { "schema" } else { &name });
            self.names.insert(reference, name);
            self.wanted.push_back(reference);
        }
        let length = self.names[reference].len();
        self.pay(length)?;
        Ok(&self.names[reference])
    }

    /// The name, or the first `name_2`, `name_3`, … that no other reference has.
    fn free(&mut self, name: &str) -> String {
        loop {
            let number = self.taken.entry(name.to_owned()).or_default();
            *number += 1;
            match *number {
                1 => return name.to_owned(),
                number => {
                    let numbered = format!("{name}_{number}");
                    if !self.taken.contains_key(&numbered) {
                        self.taken.insert(numbered.clone(), 1);
                        return numbered;
                    }
                }
            }
        }
    }
}
