//! What a column of a table holds: exact statistics of the values as they are written.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::context::literal::{Decimal, Kind, Sum, Value};

/// Different values of which each is counted.
const COUNTED: usize = 24;
/// Frequent values that are shown.
const SHOWN: usize = 8;
/// Characters of a text that is shown as a minimum, maximum or frequent value.
const SHORT: usize = 40;
/// Bytes of a text that is cheap to show.
const CHEAP: usize = 26;

/// Statistics of the values seen so far.
#[derive(Debug, Default)]
pub(super) struct Column {
    numbers: Numbers,
    texts: Texts,
    booleans: usize,
    nulls: usize,
    arrays: Sizes,
    objects: Sizes,
    distinct: FxHashSet<u64>,
    /// Each different value with its number; empty when there are too many.
    counted: FxHashMap<u64, Counted>,
}

#[derive(Debug, Default)]
struct Numbers {
    count: usize,
    /// The smallest and the greatest, with their notation.
    ends: Option<[(Decimal, String); 2]>,
    sum: Sum,
    /// `nan`, `inf` and numbers of too many digits.
    beyond: usize,
}

#[derive(Debug, Default)]
struct Texts {
    count: usize,
    ends: Option<[String; 2]>,
    longest: usize,
    shortest: usize,
}

#[derive(Debug, Default)]
struct Sizes {
    count: usize,
    least: usize,
    most: usize,
    total: usize,
}

#[derive(Debug)]
struct Counted {
    shown: String,
    first: usize,
    count: usize,
}

impl Column {
    /// Adds a value of a literal.
    pub(super) fn add(&mut self, value: Value<'_>) {
        match value.kind() {
            Kind::Null => self.nulls += 1,
            Kind::Number => {
                let written = value.number().unwrap_or_default();
                self.number(written, Decimal::parse(written));
            }
            Kind::Bool => {
                self.booleans += 1;
                self.note(value.text(), Kind::Bool);
            }
            Kind::String => {
                let text = value.plain();
                self.text(&text);
            }
            Kind::Call => self.text(value.text()),
            Kind::Array => self.arrays.add(value.len()),
            Kind::Object => self.objects.add(value.len()),
        }
    }

    /// Adds a field of a table that is text: a number if it is written like one, nothing if it is empty.
    pub(super) fn add_field(&mut self, field: &str) {
        let trimmed = field.trim();
        let number = if looks_numeric(trimmed) { Decimal::parse(trimmed) } else { None };
        match trimmed {
            "" => self.nulls += 1,
            _ if number.is_some() => self.number(trimmed, number),
            _ => self.text(trimmed),
        }
    }

    fn number(&mut self, written: &str, number: Option<Decimal>) {
        self.numbers.count += 1;
        let Some(number) = number else {
            self.numbers.beyond += 1;
            return self.note(written, Kind::Number);
        };
        self.numbers.sum.add(number);
        match &mut self.numbers.ends {
            None => self.numbers.ends = Some([(number, written.to_owned()), (number, written.to_owned())]),
            Some([least, most]) => {
                if number < least.0 {
                    replace(least, number, written);
                }
                if number > most.0 {
                    replace(most, number, written);
                }
            }
        }
        self.note_hashed(hash(&number, Kind::Number), written);
    }

    fn text(&mut self, text: &str) {
        let texts = &mut self.texts;
        texts.shortest = if texts.count == 0 { text.len() } else { texts.shortest.min(text.len()) };
        texts.longest = texts.longest.max(text.len());
        texts.count += 1;
        match &mut texts.ends {
            None => texts.ends = Some([text.to_owned(), text.to_owned()]),
            Some([least, most]) if head(least) < head(text) && head(text) < head(most) => {}
            Some([least, most]) => {
                if text < least.as_str() {
                    rewrite(least, text);
                }
                if text > most.as_str() {
                    rewrite(most, text);
                }
            }
        }
        self.note(text, Kind::String);
    }

    fn note(&mut self, text: &str, kind: Kind) {
        self.note_hashed(hash(&text, kind), text);
    }

    fn note_hashed(&mut self, hash: u64, text: &str) {
        if self.distinct.insert(hash) {
            let order = self.distinct.len();
            if order <= COUNTED {
                self.counted.insert(hash, Counted { shown: super::shown::line(text, SHORT), first: order, count: 1 });
            } else if order == COUNTED + 1 {
                self.counted.clear();
            }
        } else if let Some(counted) = self.counted.get_mut(&hash) {
            counted.count += 1;
        }
    }

    /// Values that are not null.
    pub(super) fn filled(&self) -> usize {
        self.scalars() + self.arrays.count + self.objects.count
    }

    fn scalars(&self) -> usize {
        self.numbers.count + self.texts.count + self.booleans
    }

    /// Whether numbers are most of what it holds.
    pub(super) fn is_numeric(&self) -> bool {
        self.numbers.count * 2 > self.scalars()
    }

    /// Whether arrays or objects are all that it holds.
    pub(super) fn is_nested(&self) -> bool {
        self.scalars() == 0 && self.filled() > 0
    }

    /// Whether every value is different, as of an identifier.
    pub(super) fn is_unique(&self) -> bool {
        self.distinct.len() == self.scalars() && self.scalars() > 2
    }

    /// Whether its texts are too long to be names or labels.
    pub(super) fn is_prose(&self) -> bool {
        self.texts.count > 0 && self.texts.longest > 2 * SHORT
    }

    /// What is asked first about it, e.g. `min 1 max 9`; all that is asked often; everything. `rows` is the number of
    /// values that there could be.
    pub(super) fn statements(&self, rows: usize) -> [String; 3] {
        let distinct = format!("distinct {}", self.distinct.len());
        let [mut brief, mut full]: [Vec<String>; 2] = Default::default();
        let mut rich: Vec<String> = Vec::new();
        if self.scalars() > 0 && self.numbers.count > 0 && self.texts.count + self.booleans > 0 {
            let kinds = [("number", self.numbers.count), ("text", self.texts.count), ("boolean", self.booleans)];
            let kinds: Vec<String> = kinds
                .iter()
                .filter(|(_, count)| *count > 0)
                .map(|(name, count)| super::shown::count(*count, name))
                .collect();
            full.push(format!("mixed: {};", kinds.join(", ")));
        }
        if let Some([(_, least), (_, most)]) = &self.numbers.ends {
            brief.push(format!("min {least} max {most}"));
            full.push(format!("min {least} max {most}"));
            if let Some(sum) = self.numbers.sum.total() {
                full.push(format!("sum {sum}"));
            }
        }
        if self.numbers.beyond > 0 {
            full.push(format!("not finite or too long {}", self.numbers.beyond));
        }
        if self.numbers.count == 0 && self.scalars() > 0 {
            brief.push(distinct.clone());
        }
        if self.scalars() > 0 {
            full.push(distinct);
        }
        rich.extend(self.frequent());
        if let Some([least, most]) = &self.texts.ends
            && self.texts.longest <= SHORT
            && self.distinct.len() > 1
        {
            let ends = format!("min {} max {}", super::shown::line(least, SHORT), super::shown::line(most, SHORT));
            // Digests and other random texts have ends that nobody asks for and that cost much.
            if least.len().max(most.len()) <= CHEAP { full.push(ends) } else { rich.push(ends) }
        } else if self.texts.longest > SHORT {
            full.push(format!("{}–{} bytes long", self.texts.shortest, self.texts.longest));
        }
        for (sizes, name, inside) in [(&self.arrays, "array", "items"), (&self.objects, "object", "keys")] {
            if sizes.count > 0 {
                let range = if sizes.least == sizes.most {
                    format!("{}", sizes.least)
                } else {
                    format!("{}–{}", sizes.least, sizes.most)
                };
                let inside = if range == "1" { inside.trim_end_matches('s') } else { inside };
                let text = format!("{} of {range} {inside}", super::shown::count(sizes.count, name));
                let total = if name == "array" { format!(", {} in all", sizes.total) } else { String::new() };
                brief.push(text.clone());
                full.push(format!("{text}{total}"));
            }
        }
        if self.nulls > 0 {
            brief.push(format!("nulls {}", self.nulls));
            full.push(format!("nulls {}", self.nulls));
        }
        let missing = rows.saturating_sub(self.filled() + self.nulls);
        if missing > 0 {
            full.push(format!("missing {missing}"));
        }
        let rich = full.iter().chain(&rich).map(String::as_str).collect::<Vec<_>>().join(" ");
        [brief.join(" "), full.join(" "), rich]
    }

    /// The values with their numbers, if there are few and they repeat.
    fn frequent(&self) -> Option<String> {
        if self.counted.is_empty() || self.distinct.len() * 2 > self.scalars() || self.texts.longest > SHORT {
            return None;
        }
        if self.is_numeric() && self.distinct.len() > SHOWN {
            return None;
        }
        Some(listed(self.counted.values().map(|one| (one.shown.as_str(), one.count, one.first)).collect()))
    }

    /// As the frequent values of both columns together.
    pub(super) fn frequent_with(&self, other: &Self) -> Option<String> {
        other.frequent()?;
        let mut values: Vec<(&str, usize, usize)> = Vec::new();
        for (hash, one) in &other.counted {
            let here = self.counted.get(hash).map_or(0, |one| one.count);
            values.push((&one.shown, one.count + here, one.first));
        }
        let only_here = self.counted.iter().filter(|(hash, _)| !other.counted.contains_key(hash));
        values.extend(only_here.map(|(_, one)| (one.shown.as_str(), one.count, one.first + COUNTED)));
        (self.distinct.len() <= COUNTED).then(|| listed(values))
    }
}

/// Values with how often each occurs and where first: the most frequent ones.
fn listed(mut values: Vec<(&str, usize, usize)>) -> String {
    values.sort_by_key(|(_, count, first)| (std::cmp::Reverse(*count), *first));
    let mut shown: Vec<String> =
        values.iter().take(SHOWN).map(|(value, count, _)| format!("{value} ×{count}")).collect();
    if values.len() > shown.len() {
        shown.push("…".to_owned());
    }
    format!("({})", shown.join(", "))
}

impl Sizes {
    fn add(&mut self, size: usize) {
        self.least = if self.count == 0 { size } else { self.least.min(size) };
        self.most = self.most.max(size);
        self.total += size;
        self.count += 1;
    }
}

/// The first eight bytes as a number: where those of two texts differ, they are in the order of the texts.
fn head(text: &str) -> u64 {
    let bytes = text.as_bytes();
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().fold(0, |head, byte| head << 8 | u64::from(*byte)) << (8 * (8 - bytes.len()) % 64),
    }
}

fn replace(end: &mut (Decimal, String), number: Decimal, written: &str) {
    end.0 = number;
    rewrite(&mut end.1, written);
}

/// Without a new allocation: sorted columns replace their maximum in every row.
fn rewrite(end: &mut String, text: &str) {
    end.clear();
    end.push_str(text);
}

fn hash(value: &impl Hash, kind: Kind) -> u64 {
    let mut hasher = FxHasher::default();
    (kind as u8).hash(&mut hasher);
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether a field is a number rather than an identifier: no leading zeros, no leading plus.
fn looks_numeric(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field);
    let zero = digits.starts_with('0') && digits.len() > 1 && !digits.starts_with("0.") && !digits.starts_with("0e");
    digits.starts_with(|first: char| first.is_ascii_digit()) && !zero
}
