//! The content of a table column: exact statistics of the values as they are written.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::amount;
use crate::literal::{Decimal, Kind, Sum, Value};

/// The number of different values of which each is counted.
const COUNTED: usize = 24;
/// The number of frequent values that are shown.
const SHOWN: usize = 8;
/// The number of characters of a text that is shown as a minimum, maximum or frequent value.
const SHORT: usize = 40;
/// The number of different values that are listed at once where each is short, and the number of bytes of a short one.
const FEW: usize = 4;
const LABEL: usize = 16;
/// The number of bytes of a date, and of an hour with its minute.
const DAY: usize = 10;
const MINUTE: usize = 5;
/// How often a value occurs at most that is unusual where others are frequent, and how many values all the unusual ones
/// are at most: so many, and one in so many.
const RARE: usize = 2;
const MOST_RARE: usize = 4;
const ONE_IN: usize = 10;

/// Statistics of the values seen so far.
#[derive(Debug, Default)]
pub(super) struct Column {
    numbers: Numbers,
    texts: Texts,
    amounts: Amounts,
    booleans: usize,
    nulls: usize,
    arrays: Sizes,
    objects: Sizes,
    distinct: FxHashSet<u64>,
    /// Each different value with its number; empty when there are too many.
    counted: FxHashMap<u64, Counted>,
    /// Whether the values are the fields of rows in text form.
    fields: bool,
}

#[derive(Debug, Default, Clone)]
struct Numbers {
    count: usize,
    /// The smallest and the greatest number, with their notation.
    ends: Option<[(Decimal, String); 2]>,
    sum: Sum,
    /// Whether the sum means nothing or is not certain.
    unsummed: bool,
    /// The number of `nan`, `inf` and numbers with too many digits.
    beyond: usize,
}

#[derive(Debug, Default)]
struct Texts {
    count: usize,
    ends: Option<[String; 2]>,
    longest: usize,
    shortest: usize,
    /// The number of texts that begin like `2024-05-31`, and like `09:30`.
    dates: usize,
    clocks: usize,
    /// The number of texts that begin with a digit.
    digits: usize,
}

/// The texts as numbers with a unit or with separators, as long as all of them can be that.
#[derive(Debug, Default)]
struct Amounts {
    /// Whether a text is no amount, or has another unit than the first.
    failed: bool,
    unit: String,
    /// The number of texts.
    count: usize,
    /// The number of texts that are more than digits, that have a unit, and whose separators can mean two things.
    marked: usize,
    with_unit: usize,
    doubtful: usize,
    /// The texts read with a point before the decimals, and with a comma.
    readings: [Reading; 2],
}

/// The texts read in one way, as long as all of them can be read so.
#[derive(Debug, Default)]
struct Reading {
    impossible: bool,
    numbers: Numbers,
}

#[derive(Debug, Default)]
struct Sizes {
    count: usize,
    least: usize,
    most: usize,
    total: usize,
}

/// What the numbers of a column stand for, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A quantity, which can be added up.
    Quantity,
    /// An identifier, whose sum means nothing.
    Identifier,
}

impl Meaning {
    /// The meaning of a column with this name: `id`, `user_id`, `userId` and `user.id` are identifiers.
    pub(super) fn of(name: &str) -> Self {
        let last = name.rsplit(['.', '_', '-', ' ']).next().unwrap_or(name);
        if last.eq_ignore_ascii_case("id") || last.ends_with("Id") { Self::Identifier } else { Self::Quantity }
    }
}

/// The wordings of a range.
struct Range {
    brief: String,
    full: String,
    rich: String,
}

#[derive(Debug)]
struct Counted {
    shown: String,
    first: usize,
    count: usize,
    /// Where it occurs first, and where next.
    at: [usize; RARE],
}

impl Column {
    /// Adds a value of a literal.
    pub(super) fn add(&mut self, value: Value<'_>) {
        let at = value.span().start;
        match value.kind() {
            Kind::Null => self.nulls += 1,
            Kind::Number => {
                let written = value.number().unwrap_or_default();
                self.number(written, Decimal::parse(written), at);
            }
            Kind::Bool => {
                self.booleans += 1;
                self.note(value.text(), Kind::Bool, at);
            }
            Kind::String => {
                let text = value.plain();
                self.text(&text, at);
            }
            Kind::Call => self.text(value.text(), at),
            Kind::Array => self.arrays.add(value.len()),
            Kind::Object => self.objects.add(value.len()),
        }
    }

    /// Adds a field of a table in text form: a number if it is written like one, nothing if it is empty.
    pub(super) fn add_field(&mut self, field: &str) {
        self.fields = true;
        let at = self.filled() + self.nulls;
        let trimmed = field.trim();
        let number = if looks_numeric(trimmed) { Decimal::parse(trimmed) } else { None };
        match trimmed {
            "" => self.nulls += 1,
            _ if number.is_some() => self.number(trimmed, number, at),
            _ => self.text(trimmed, at),
        }
    }

    fn number(&mut self, written: &str, number: Option<Decimal>, at: usize) {
        let Some(number) = number else {
            self.numbers.count += 1;
            self.numbers.beyond += 1;
            return self.note(written, Kind::Number, at);
        };
        self.numbers.add(number, written);
        let comma = &mut self.amounts.readings[1];
        comma.impossible = comma.impossible || written.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        self.note_hashed(hash(&number, Kind::Number), written, at);
    }

    fn text(&mut self, text: &str, at: usize) {
        let texts = &mut self.texts;
        texts.shortest = if texts.count == 0 { text.len() } else { texts.shortest.min(text.len()) };
        texts.longest = texts.longest.max(text.len());
        texts.count += 1;
        texts.dates += usize::from(is_date(text));
        texts.clocks += usize::from(is_clock(text));
        texts.digits += usize::from(text.starts_with(|first: char| first.is_ascii_digit()));
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
        if !self.amounts.failed {
            self.amounts.add(text);
        }
        self.note(text, Kind::String, at);
    }

    fn note(&mut self, text: &str, kind: Kind, at: usize) {
        self.note_hashed(hash(&text, kind), text, at);
    }

    fn note_hashed(&mut self, hash: u64, text: &str, at: usize) {
        if self.distinct.insert(hash) {
            let first = self.distinct.len();
            if first <= COUNTED {
                let shown = super::shown::line(text, SHORT);
                self.counted.insert(hash, Counted { shown, first, count: 1, at: [at; RARE] });
            } else if first == COUNTED + 1 {
                self.counted.clear();
            }
        } else if let Some(counted) = self.counted.get_mut(&hash) {
            if let Some(next) = counted.at.get_mut(counted.count) {
                *next = at;
            }
            counted.count += 1;
        }
    }

    /// The number of values that are not null.
    pub(super) fn filled(&self) -> usize {
        self.scalars() + self.arrays.count + self.objects.count
    }

    fn scalars(&self) -> usize {
        self.numbers.count + self.texts.count + self.booleans
    }

    /// The numbers, or the amounts where all values are amounts in the same notation.
    fn numbers(&self) -> Cow<'_, Numbers> {
        self.amounts().map_or(Cow::Borrowed(&self.numbers), Cow::Owned)
    }

    /// The texts as amounts, if all values are amounts or plain numbers, in one notation and one unit.
    fn reading(&self) -> Option<&Reading> {
        let Amounts { failed, marked, with_unit, readings, .. } = &self.amounts;
        let one_unit = *with_unit == 0 || *with_unit == self.scalars();
        if *failed || !one_unit || *marked == 0 || self.booleans > 0 {
            return None;
        }
        readings.iter().find(|reading| !reading.impossible)
    }

    /// The amounts and the plain numbers among them, if all values are that.
    fn amounts(&self) -> Option<Numbers> {
        let Amounts { doubtful, readings, .. } = &self.amounts;
        let mut numbers = self.numbers.and(&self.reading()?.numbers);
        // `1,234` can be either, if no number without a comma shows that those are groups. Shares add up to nothing.
        let either = *doubtful == self.scalars() && readings.iter().all(|reading| !reading.impossible);
        if either || self.amounts.unit == "%" {
            numbers.unsummed = true;
        }
        Some(numbers)
    }

    /// Whether it holds amounts with a comma before the decimals.
    fn has_decimal_comma(&self) -> bool {
        self.amounts.readings[0].impossible && self.reading().is_some()
    }

    /// The number of values that are texts and no amounts.
    fn texts(&self) -> usize {
        if self.texts.count > 0 && self.reading().is_some() { 0 } else { self.texts.count }
    }

    /// Whether most values are numbers.
    fn is_numeric(&self) -> bool {
        (self.scalars() - self.texts() - self.booleans) * 2 > self.scalars()
    }

    /// Whether it may hold another value of the kind of this one, as far as its arrays and objects show it.
    pub(super) fn may_hold(&self, value: Value<'_>) -> bool {
        match value.kind() {
            Kind::Null => true,
            Kind::Array => self.arrays.count > 0,
            Kind::Object => self.objects.count > 0,
            _ => false,
        }
    }

    /// The value, if all of several are the same.
    pub(super) fn constant(&self) -> Option<&str> {
        let mut values = self.counted.values().filter(|one| one.count == self.filled() && one.count > RARE);
        values.next().map(|one| one.shown.as_str())
    }

    /// Whether it holds few texts or truth values that repeat.
    pub(super) fn is_counted(&self) -> bool {
        !self.is_numeric() && self.frequent().is_some()
    }

    /// Whether its values say little of the whole: few rows have one, or every row another text.
    pub(super) fn is_aside(&self, rows: usize) -> bool {
        self.filled() * 5 < rows || self.is_unique_text()
    }

    /// Whether it holds texts that are different in every row, and no dates.
    pub(super) fn is_unique_text(&self) -> bool {
        self.is_unique() && self.texts() == self.scalars() && !self.is_dated()
    }

    /// Where its texts are, if it has fewer than `many` values and they are texts.
    pub(super) fn few_texts(&self, many: usize) -> impl Iterator<Item = usize> {
        let few = self.filled() < many && self.texts.count == self.filled();
        let values = self.counted.values().filter(move |_| few);
        values.flat_map(|one| one.at.iter().take(one.count).copied())
    }

    /// For each value that occurs once or twice where others are frequent, or that only one or two of `rows` have, where
    /// it is: its first byte, or the number of its row in text form, from 0.
    pub(super) fn rare(&self, rows: usize) -> Vec<&[usize]> {
        let is_rare = |one: &&Counted| one.count <= RARE;
        let few: usize = self.counted.values().filter(is_rare).map(|one| one.count).sum();
        let whole = if few == self.scalars() { rows } else { self.scalars() };
        if few > MOST_RARE || few * ONE_IN > whole {
            return Vec::new();
        }
        let mut rare: Vec<&Counted> = self.counted.values().filter(is_rare).collect();
        rare.sort_by_key(|one| one.first);
        rare.into_iter().filter_map(|one| one.at.get(..one.count)).collect()
    }

    /// Whether all values are arrays or objects.
    pub(super) fn is_nested(&self) -> bool {
        self.scalars() == 0 && self.filled() > 0
    }

    /// Whether all values are objects.
    pub(super) fn is_objects(&self) -> bool {
        self.objects.count > 0 && self.objects.count == self.filled()
    }

    /// Whether every value is different, as those of an identifier are.
    fn is_unique(&self) -> bool {
        self.distinct.len() == self.scalars() && self.scalars() > 2
    }

    /// Whether it holds short texts that are all different.
    pub(super) fn names_rows(&self) -> bool {
        self.is_naming() && self.texts.longest <= SHORT
    }

    /// Whether it holds texts that are all different, neither prose nor dates.
    pub(super) fn is_naming(&self) -> bool {
        self.is_unique_text() && !self.is_prose()
    }

    /// Whether it holds different whole numbers and nothing else, whose sum means nothing.
    fn is_serial(&self) -> bool {
        let whole = |ends: &[(Decimal, String); 2]| ends.iter().all(|(_, written)| !written.contains('.'));
        self.is_unique() && self.numbers.count == self.scalars() && self.numbers.ends.as_ref().is_some_and(whole)
    }

    /// The priority of its statistics in a table of `rows`: labels come first, about which a little says much;
    /// identifiers, prose and columns with few values come last.
    pub(super) fn worth(&self, rows: usize, meaning: Meaning) -> u8 {
        match () {
            () if self.filled() * 5 < rows => 5,
            () if self.is_prose() => 4,
            () if self.is_serial() || (self.is_numeric() && meaning == Meaning::Identifier) => 3,
            () if self.is_numeric() => 1,
            () if self.is_dated() => 2,
            () if !self.counted.is_empty() && self.texts() > 0 => 0,
            () => 3,
        }
    }

    /// Whether it holds labels: few different texts that repeat.
    pub(super) fn is_labels(&self) -> bool {
        self.texts() > 0 && self.frequent().is_some()
    }

    /// Whether its texts are too long to be names or labels.
    fn is_prose(&self) -> bool {
        self.texts.count > 0 && self.texts.longest > 2 * SHORT
    }

    /// The statements about it: what is asked first, e.g. `1..9`; everything that is asked often; everything. `rows` is
    /// the number of values that there could be.
    pub(super) fn statements(&self, rows: usize, meaning: Meaning) -> [String; 3] {
        let distinct = format!("distinct {}", self.distinct.len());
        let mixed = self.mixture();
        // Numbers beside texts that begin like some are a part of a whole.
        let is_partial = mixed.is_some() && self.texts.digits > 0;
        let range = self.range().filter(|_| !is_partial);
        let [mut brief, mut tail, mut rich]: [Vec<String>; 3] = Default::default();
        brief.extend(range.as_ref().map(|range| range.brief.clone()));
        let numbers = self.numbers();
        if numbers.ends.is_some()
            && !is_partial
            && meaning == Meaning::Quantity
            && !numbers.unsummed
            && let Some(sum) = numbers.sum.total()
        {
            let sum = if self.has_decimal_comma() { sum.to_string().replace('.', ",") } else { sum.to_string() };
            let sum = format!("sum {sum}");
            brief.extend((!self.is_serial()).then(|| sum.clone()));
            tail.push(sum);
        }
        if numbers.beyond > 0 {
            tail.push(format!("not finite or too long {}", numbers.beyond));
        }
        let mut front: Option<String> = None;
        if self.is_dated() {
            // Dates are long: after them a number would be far from the name of the column.
            front = Some(distinct);
        } else if self.scalars() > 0 && range.is_none() {
            brief.push(distinct.clone());
            tail.push(distinct);
        } else if self.scalars() > 0 {
            rich.push(distinct);
        }
        let few = self.distinct.len() <= FEW && self.texts.longest <= LABEL && !self.is_numeric();
        let frequent = self.frequent();
        let listed = frequent.is_some();
        if few { &mut tail } else { &mut rich }.extend(frequent);
        if !listed
            && self.texts() > 0
            && let Some([least, most]) = &self.texts.ends
            && self.texts.longest <= SHORT
            && self.distinct.len() > 1
            && !self.is_dated()
        {
            let [least, most] = [least, most].map(|end| super::shown::line(end, SHORT));
            match () {
                () if self.texts.clocks == self.scalars() => rich.push(format!("min {least} max {most}")),
                () if are_words(&least, &most) => rich.push(format!("alphabetically {least} to {most}")),
                () => {}
            }
        } else if self.texts.longest > SHORT {
            tail.push(format!("{}–{} bytes long", self.texts.shortest, self.texts.longest));
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
                tail.push(format!("{text}{total}"));
            }
        }
        if self.nulls > 0 {
            if brief.is_empty() {
                brief.push(format!("nulls {}", self.nulls));
            }
            tail.push(format!("nulls {}", self.nulls));
        }
        let missing = rows.saturating_sub(self.filled() + self.nulls);
        if missing > 0 {
            tail.push(format!("missing {missing}"));
        }
        let [short, long] = range.map_or([None, None], |range| [Some(range.full), Some(range.rich)]);
        let joined = |parts: [&[String]; 5]| parts.concat().join(" ");
        let full = joined([mixed.as_slice(), front.as_slice(), short.as_slice(), &tail, &[]]);
        [brief.join(" "), full, joined([mixed.as_slice(), front.as_slice(), long.as_slice(), &tail, &rich])]
    }

    /// The number of values of each kind, if there are several kinds.
    fn mixture(&self) -> Option<String> {
        let kinds = [("number", self.numbers.count), ("text", self.texts.count), ("boolean", self.booleans)];
        if self.numbers.count == 0 || self.numbers.count == self.scalars() || self.reading().is_some() {
            return None;
        }
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| super::shown::count(*count, name))
            .collect();
        Some(format!("mixed: {};", kinds.join(", ")))
    }

    /// The least and the greatest number or date, in the wordings of [`Column::statements`].
    fn range(&self) -> Option<Range> {
        if let Some([(_, least), (_, most)]) = &self.numbers().ends {
            // Two dots would hide a minus sign.
            let dots = if most.starts_with(['-', '−']) { " .. " } else { ".." };
            let brief = format!("{least}{dots}{most}");
            return Some(Range { full: brief.clone(), brief, rich: format!("min {least} max {most}") });
        }
        let [least, most] = self.texts.ends.as_ref().filter(|_| self.is_dated())?;
        let day = |text: &str| text.get(..DAY).unwrap_or_default().to_owned();
        let timed = if self.texts.longest > DAY { "days " } else { "" };
        Some(Range {
            brief: format!("{timed}{}..{}", day(least), day(most)),
            full: format!("{least}..{most}"),
            rich: format!("min {least} max {most}"),
        })
    }

    /// Whether all values are dates, with or without a time.
    fn is_dated(&self) -> bool {
        self.texts.count > 0 && self.texts.dates == self.scalars() && self.texts.longest <= SHORT
    }

    /// The values with their counts, if there are few and they repeat.
    fn frequent(&self) -> Option<String> {
        if self.counted.is_empty() || self.distinct.len() * 2 > self.scalars() || self.texts.longest > SHORT {
            return None;
        }
        if self.is_numeric() && self.distinct.len() > SHOWN {
            return None;
        }
        let rare = if self.fields { self.rare(self.scalars()) } else { Vec::new() };
        let values = self.counted.values().map(|one| {
            let is_rare = one.count == 1 && rare.iter().any(|at| at.first() == one.at.first());
            let row = if is_rare { format!(" in row {}", one.at[0]) } else { String::new() };
            (one.shown.as_str(), one.count, one.first, row)
        });
        Some(listed(values.collect()))
    }

    /// How often each text or truth value of several columns occurs in all of them, where there are few.
    pub(super) fn frequent_in<'c>(columns: impl Iterator<Item = &'c Self>) -> Option<String> {
        let mut values: FxHashMap<u64, (&str, usize, usize, String)> = FxHashMap::default();
        let mut total = 0;
        for column in columns {
            let uncounted = column.counted.is_empty() && column.scalars() > 0;
            if uncounted || column.texts.longest > SHORT || column.numbers.count > 0 {
                return None;
            }
            total += column.scalars();
            let mut ordered: Vec<(&u64, &Counted)> = column.counted.iter().collect();
            ordered.sort_by_key(|(_, one)| one.first);
            for (hash, one) in ordered {
                let order = values.len();
                values.entry(*hash).or_insert((&one.shown, 0, order, String::new())).1 += one.count;
            }
            if values.len() > SHOWN {
                return None;
            }
        }
        (values.len() * 2 <= total).then(|| listed(values.into_values().collect()))
    }

    /// The frequent values of both columns together.
    pub(super) fn frequent_with(&self, other: &Self) -> Option<String> {
        other.frequent()?;
        let mut values: Vec<(&str, usize, usize, String)> = Vec::new();
        for (hash, one) in &other.counted {
            let here = self.counted.get(hash).map_or(0, |one| one.count);
            values.push((&one.shown, one.count + here, one.first, String::new()));
        }
        let only_here = self.counted.iter().filter(|(hash, _)| !other.counted.contains_key(hash));
        values.extend(only_here.map(|(_, one)| (one.shown.as_str(), one.count, one.first + COUNTED, String::new())));
        (self.distinct.len() <= COUNTED).then(|| listed(values))
    }
}

/// The most frequent of some values, given with how often each occurs, where first, and what is added.
fn listed(mut values: Vec<(&str, usize, usize, String)>) -> String {
    values.sort_by_key(|(_, count, first, _)| (std::cmp::Reverse(*count), *first));
    let mut shown: Vec<String> =
        values.iter().take(SHOWN).map(|(value, count, _, more)| format!("{value} ×{count}{more}")).collect();
    if values.len() > shown.len() {
        shown.push("…".to_owned());
    }
    format!("({})", shown.join(", "))
}

impl Numbers {
    /// Adds a number with its notation.
    fn add(&mut self, number: Decimal, written: &str) {
        self.count += 1;
        self.sum.add(number);
        match &mut self.ends {
            None => self.ends = Some([(number, written.to_owned()), (number, written.to_owned())]),
            Some([least, most]) => {
                if number < least.0 {
                    replace(least, number, written);
                }
                if number > most.0 {
                    replace(most, number, written);
                }
            }
        }
    }

    /// These and `others` together.
    fn and(&self, others: &Self) -> Self {
        let mut all = self.clone();
        all.beyond += others.beyond;
        for (number, written) in others.ends.iter().flatten() {
            all.add(*number, written);
        }
        all.count = self.count + others.count;
        all.sum = self.sum;
        match others.sum.total() {
            Some(sum) => all.sum.add(sum),
            None => all.unsummed = true,
        }
        all
    }
}

impl Amounts {
    /// Adds a text; one that is no amount of the same unit ends it all.
    fn add(&mut self, text: &str) {
        let first = self.count == 0;
        let Some(amount) = amount::parse(text).filter(|amount| first || amount.unit == self.unit) else {
            *self = Self { failed: true, ..Self::default() };
            return;
        };
        if first {
            amount.unit.clone_into(&mut self.unit);
        }
        let [point, comma] = amount.readings;
        self.count += 1;
        self.marked += usize::from(!text.bytes().all(|byte| byte.is_ascii_digit()));
        self.with_unit += usize::from(!amount.unit.is_empty());
        self.doubtful += usize::from(point.is_some() && comma.is_some() && point != comma);
        for (reading, number) in self.readings.iter_mut().zip([point, comma]) {
            match number {
                Some(number) if !reading.impossible => reading.numbers.add(number, text),
                _ => reading.impossible = true,
            }
        }
        self.failed = self.readings.iter().all(|reading| reading.impossible);
    }
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

/// Writes `text` to `end` without a new allocation: sorted columns replace their maximum in every row.
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

/// Whether a text begins with a day as in ISO 8601.
pub(super) fn is_date(text: &str) -> bool {
    text.len() >= DAY
        && text.bytes().take(DAY).enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Whether the order of texts between these says something: they are neither numbers of some kind nor numbered.
fn are_words(least: &str, most: &str) -> bool {
    let without_digits = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let is_number = |text: &str| text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+'));
    ![least, most].into_iter().any(is_number) && without_digits(least) != without_digits(most)
}

/// Whether a text begins with an hour and a minute as in ISO 8601.
fn is_clock(text: &str) -> bool {
    text.len() >= MINUTE
        && text.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            8 => byte == b'.',
            _ => byte.is_ascii_digit(),
        })
}

/// Whether a field is a number rather than an identifier: no leading zeros, no leading plus.
fn looks_numeric(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field);
    let zero = digits.starts_with('0') && digits.len() > 1 && !digits.starts_with("0.") && !digits.starts_with("0e");
    // An exponent without a sign and without a point before it is rather a part of a hash.
    let exponent = digits.find(['e', 'E']).and_then(|at| Some((digits.get(..at)?, digits.get(at + 1..)?)));
    let hash = exponent.is_some_and(|(before, behind)| !before.contains('.') && !behind.starts_with(['-', '+']));
    digits.starts_with(|first: char| first.is_ascii_digit()) && !zero && !hash
}
