//! The table of piece vectors, and the encoding of texts with it.
//!
//! # Format
//! Little endian, nothing aligned:
//!
//! | part | size |
//! |---|---|
//! | `CWTABLE1` | 8 bytes |
//! | number of pieces `n`, number of dimensions | 2 × u32 |
//! | share of name, description and parameters in a tool's vector | 3 × f32 |
//! | weight of each row in a query | `n` × f32 |
//! | weight of each row in a tool | `n` × f32 |
//! | pieces: length (high bit: inside a word), ASCII text | `n` × (1 + length) bytes |
//! | rows | `n` × dimensions × i8 |

use std::sync::OnceLock;

use pulp::{Arch, NullaryFnOnce};

use super::pieces::{PieceId, Pieces};
use contextweaver_core::catalog::SelectableItem;
use contextweaver_core::text::for_each_word;

/// The number of dimensions of every vector.
pub const DIMS: usize = 128;

/// The value of a stored component that stands for 1. Components of a unit vector are about 1/11, and those above
/// 127/300, fewer than one in a thousand, are cut.
const UNIT: f32 = 300.0;

/// The similarity of two vectors of one direction, a cosine of 1.
const UNITS_OF_ONE: f64 = (UNIT * UNIT) as f64;

/// Each field of a tool, and a query, is read up to this many pieces, so that a text of any length costs bounded time.
const MOST_PIECES: usize = 512;

/// The description of a tool is read up to about this many pieces, to the end of the word: what it does comes first.
/// Advice, limits and addresses that follow are the same in many tools of an API, and would draw their vectors together.
const DESCRIPTION_PIECES: usize = 48;

const MAGIC: &[u8; 8] = b"CWTABLE1";
const FIELDS: usize = 3;
const INSIDE: u8 = 0x80;

static BUILTIN: &[u8] = include_bytes!("table.bin");

/// The bytes are not a table; the text says why.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a usable table: {0}")]
pub struct TableError(&'static str);

/// The vectors of word pieces.
#[derive(Debug, Default)]
pub struct Table {
    pieces: Pieces,
    fields: [f32; FIELDS],
    query_weights: Vec<f32>,
    tool_weights: Vec<f32>,
    rows: &'static [u8],
}

/// The meaning of a tool: a unit vector at a scale that all vectors share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolVector(pub [i8; DIMS]);

/// The meaning of a query, at the same scale. All zero where the table knows nothing of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryVector(pub [i8; DIMS]);

impl Table {
    /// The table in the binary, parsed on first use.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        // A test reads the committed bytes, so the empty table, which would find nothing, is never used.
        TABLE.get_or_init(|| Self::parse(BUILTIN).unwrap_or_default())
    }

    /// The length of [`Table::builtin`] in the binary, in bytes.
    pub const BUILTIN_BYTES: usize = BUILTIN.len();

    /// SHA-256 (hex) of the bytes of [`Table::builtin`].
    #[must_use]
    pub fn builtin_sha256() -> String {
        contextweaver_core::text::sha256_hex(BUILTIN)
    }

    /// Parses a table.
    ///
    /// # Errors
    /// [`TableError`] for bytes that are not in the format above, or have another number of dimensions.
    pub fn parse(bytes: &'static [u8]) -> Result<Self, TableError> {
        let mut rest = bytes;
        if take(&mut rest, MAGIC.len())? != MAGIC {
            return Err(TableError("the first bytes are of something else"));
        }
        let count = number(&mut rest)? as usize;
        if number(&mut rest)? as usize != DIMS {
            return Err(TableError("another number of dimensions"));
        }
        if count == 0 || count > usize::from(PieceId::MAX) {
            return Err(TableError("the number of pieces is out of range"));
        }
        let mut fields = [0.0; FIELDS];
        fields.copy_from_slice(&floats(&mut rest, FIELDS)?);
        let query_weights = floats(&mut rest, count)?;
        let tool_weights = floats(&mut rest, count)?;
        let mut pieces = Pieces::with_capacity(count);
        for id in 0..count {
            let head = take(&mut rest, 1)?.first().copied().unwrap_or(0);
            let text = take(&mut rest, usize::from(head & !INSIDE))?;
            if text.is_empty() || !text.is_ascii() {
                return Err(TableError("a piece is not ASCII text"));
            }
            if !pieces.insert(text, head & INSIDE != 0, id as PieceId) {
                return Err(TableError("a piece occurs twice"));
            }
        }
        let rows = take(&mut rest, count * DIMS)?;
        if !rest.is_empty() {
            return Err(TableError("bytes are left over"));
        }
        Ok(Self { pieces, fields, query_weights, tool_weights, rows })
    }

    /// The vector of a query.
    #[must_use]
    pub fn encode_query(&self, text: &str) -> QueryVector {
        let mut read = TextPieces::default();
        for_each_word(text, |word| self.read(word, &mut read));
        self.encode_read(&read)
    }

    /// [`Self::encode_query`] for a query whose words were read one by one.
    pub(crate) fn encode_read(&self, query: &TextPieces) -> QueryVector {
        QueryVector(self.encode(&self.query_weights, &[(1.0, query)]))
    }

    /// Adds the pieces of a normalised word to those of its text.
    pub(crate) fn read(&self, word: &str, text: &mut TextPieces) {
        self.read_up_to(MOST_PIECES, word, text);
    }

    /// Adds the pieces of a normalised word to those of its text, unless it has `most` or more already.
    fn read_up_to(&self, most: usize, word: &str, text: &mut TextPieces) {
        if text.0.len() < most {
            self.pieces.for_each(word, |id| text.0.push(id));
        }
    }

    /// Whether a normalised word is one piece.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.pieces.is_word(word)
    }

    /// The vector of a tool: its name, the beginning of its description and its parameters, each the sum of its pieces
    /// divided by the square root of their number, so that no field counts by its length alone.
    #[must_use]
    pub fn encode_tool(&self, item: &SelectableItem) -> ToolVector {
        let mut fields: [TextPieces; FIELDS] = Default::default();
        let [name, description, parameters] = &mut fields;
        for_each_word(&item.name, |word| self.read(word, name));
        for_each_word(&item.description, |word| self.read_up_to(DESCRIPTION_PIECES, word, description));
        item.for_each_parameter(|name, description| {
            for_each_word(name, |word| self.read(word, parameters));
            for_each_word(description, |word| self.read(word, parameters));
        });
        let share = |field: usize| self.fields[field] / (fields[field].0.len().max(1) as f32).sqrt();
        let shares: [(f32, &TextPieces); FIELDS] = std::array::from_fn(|field| (share(field), &fields[field]));
        ToolVector(self.encode(&self.tool_weights, &shares))
    }

    /// The direction of the weighted sum of several texts' pieces.
    fn encode(&self, weights: &[f32], texts: &[(f32, &TextPieces)]) -> [i8; DIMS] {
        Arch::new().dispatch(Encoding { rows: self.rows.as_chunks().0, weights, texts })
    }
}

/// The pieces of a text, in order.
#[derive(Debug, Default)]
pub(crate) struct TextPieces(Vec<PieceId>);

impl TextPieces {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl QueryVector {
    /// The cosine of two queries; about 0 where the table knows nothing of one of them.
    pub(crate) fn cosine(&self, other: &Self) -> f64 {
        let product: i32 = self.0.iter().zip(&other.0).map(|(left, right)| i32::from(*left) * i32::from(*right)).sum();
        f64::from(product) / UNITS_OF_ONE
    }
}

/// [`Table::encode`], to be run in the machine's widest instructions: everything is inlined where it is run.
struct Encoding<'t> {
    rows: &'t [[u8; DIMS]],
    weights: &'t [f32],
    texts: &'t [(f32, &'t TextPieces)],
}

impl NullaryFnOnce for Encoding<'_> {
    type Output = [i8; DIMS];

    #[inline(always)]
    fn call(self) -> [i8; DIMS] {
        let mut sum = [0.0; DIMS];
        for (share, text) in self.texts {
            let of_text = self.sum(text);
            for (sum, value) in sum.iter_mut().zip(of_text) {
                *sum += value * share;
            }
        }
        quantised(&sum)
    }
}

impl Encoding<'_> {
    #[inline(always)]
    fn sum(&self, text: &TextPieces) -> [f32; DIMS] {
        let mut sum = [0.0; DIMS];
        for &id in &text.0 {
            let at = usize::from(id);
            let (Some(weight), Some(row)) = (self.weights.get(at), self.rows.get(at)) else { continue };
            for (sum, value) in sum.iter_mut().zip(row) {
                *sum += f32::from(*value as i8) * weight;
            }
        }
        sum
    }
}

/// A vector of unit length in whole numbers; all zero for the zero vector.
#[inline(always)]
fn quantised(vector: &[f32; DIMS]) -> [i8; DIMS] {
    let square: f32 = vector.iter().map(|value| value * value).sum();
    let factor = if square > 0.0 { UNIT / square.sqrt() } else { 0.0 };
    vector.map(|value| (value * factor).round_ties_even().clamp(-127.0, 127.0) as i8)
}

fn take(rest: &mut &'static [u8], length: usize) -> Result<&'static [u8], TableError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(TableError("it is cut short"))?;
    *rest = left;
    Ok(taken)
}

fn number(rest: &mut &'static [u8]) -> Result<u32, TableError> {
    let bytes = take(rest, 4)?;
    Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn floats(rest: &mut &'static [u8], count: usize) -> Result<Vec<f32>, TableError> {
    let bytes = take(rest, count * 4)?;
    let (words, _) = bytes.as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    if values.iter().all(|value| value.is_finite()) { Ok(values) } else { Err(TableError("a weight is not a number")) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The plain way: every piece named, sums in 64 bits.
    fn plain(table: &Table, text: &str) -> (Vec<PieceId>, [i8; DIMS]) {
        let mut ids = Vec::new();
        for_each_word(text, |word| {
            table.pieces.for_each(word, |id| ids.push(id));
        });
        let mut sum = [0.0f64; DIMS];
        for &id in &ids {
            let at = usize::from(id);
            for (sum, value) in sum.iter_mut().zip(&table.rows[at * DIMS..]) {
                *sum += f64::from(*value as i8) * f64::from(table.query_weights[at]);
            }
        }
        let length = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
        let unit = |value: f64| if length > 0.0 { (value / length * f64::from(UNIT)).round() } else { 0.0 };
        (ids, sum.map(|value| unit(value).clamp(-127.0, 127.0) as i8))
    }

    fn near(left: &[i8], right: &[i8]) -> bool {
        left.iter().zip(right).all(|(left, right)| left.abs_diff(*right) <= 1)
    }

    fn cosine(left: &[i8; DIMS], right: &[i8; DIMS]) -> f32 {
        let dot: i32 = left.iter().zip(right).map(|(l, r)| i32::from(*l) * i32::from(*r)).sum();
        dot as f32 / (UNIT * UNIT)
    }

    #[test]
    fn the_beginning_of_a_description_decides() {
        let table = Table::builtin();
        let notice = "This endpoint triggers notifications and is limited by rate. ".repeat(8);
        let of =
            |description: &str| table.encode_tool(&SelectableItem::tool("t:00000001", "t", "create", description)).0;
        assert_ne!(of("Create an issue."), of("Merge a branch."));
        assert_ne!(of("Create an issue."), of(&format!("Create an issue. {notice}")));
        assert_eq!(
            of(&format!("Create an issue. {notice}")),
            of(&format!("Create an issue. {notice} Merge a branch."))
        );
    }

    #[test]
    fn the_committed_table_is_what_its_manifest_says() {
        let manifest: Value = serde_json::from_str(include_str!("table.json")).unwrap();
        assert_eq!(manifest["table"]["sha256"], json!(Table::builtin_sha256()));
        assert!(BUILTIN.len() <= 4_000_000);
        let table = Table::parse(BUILTIN).unwrap();
        assert_eq!(manifest["table"]["pieces"], json!(table.query_weights.len()));
        for check in manifest["checks"].as_array().unwrap() {
            let text = check["query"].as_str().unwrap();
            let mut pieces = Vec::new();
            for_each_word(text, |word| {
                table.pieces.for_each(word, |id| pieces.push(id));
            });
            assert_eq!(check["pieces"].as_array().unwrap().len(), pieces.len(), "{text}");
            let vector: Vec<i8> = serde_json::from_value(check["vector"].clone()).unwrap();
            assert!(near(&vector, &table.encode_query(text).0), "{text}");
        }
    }

    #[test]
    fn what_means_the_same_is_near() {
        let table = Table::builtin();
        let tool = |name: &str, description: &str| {
            table.encode_tool(&SelectableItem::tool("a:b#00000000", "a", name, description)).0
        };
        let weather = tool("get_forecast", "Returns the weather forecast for a city");
        let mail = tool("send_message", "Sends a letter to a recipient");
        for (query, right, wrong) in
            [("will it rain in Paris tomorrow", weather, mail), ("email my boss that I am late", mail, weather)]
        {
            let query = table.encode_query(query);
            assert!(cosine(&query.0, &right) > cosine(&query.0, &wrong) + 0.05);
        }
    }

    #[test]
    fn no_text_is_no_direction() {
        let table = Table::builtin();
        for text in ["", " -- ", "天气"] {
            assert_eq!(table.encode_query(text).0, [0; DIMS], "{text}");
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let cut: &'static [u8] = &BUILTIN[..BUILTIN.len() - 1];
        assert_eq!(Table::parse(cut).unwrap_err(), TableError("it is cut short"));
        let leak = |bytes: Vec<u8>| -> &'static [u8] { Box::leak(bytes.into_boxed_slice()) };
        let mut small = MAGIC.to_vec();
        small.extend(2u32.to_le_bytes());
        small.extend((DIMS as u32).to_le_bytes());
        small.extend([1.0f32; FIELDS + 4].iter().flat_map(|value| value.to_le_bytes()));
        small.extend([1, b'a', 1 | INSIDE, b'a']);
        small.extend([1; 2 * DIMS]);
        assert!(Table::parse(leak(small.clone())).is_ok());
        let forge = |at: usize, value: u8| {
            let mut bytes = small.clone();
            bytes[at] = value;
            Table::parse(leak(bytes)).map(drop).map_err(|error| error.0)
        };
        let pieces = 16 + 4 * (FIELDS + 4);
        let seen = [
            forge(0, b'X'),
            forge(8, 0),
            forge(8, 1),
            forge(13, 2),
            forge(19, 0xFF),
            forge(pieces, 0),
            forge(pieces + 2, 1),
        ];
        insta::assert_debug_snapshot!(seen.map(Result::unwrap_err), @r#"
        [
            "the first bytes are of something else",
            "the number of pieces is out of range",
            "a piece is not ASCII text",
            "another number of dimensions",
            "a weight is not a number",
            "a piece is not ASCII text",
            "a piece occurs twice",
        ]
        "#);
    }

    proptest! {
        #[test]
        fn a_query_equals_the_plain_sum(text in "([a-zA-Z]{1,12}|[ -~]{0,6}|[\\PC]{0,3}| ){0,12}") {
            let table = Table::builtin();
            let (ids, vector) = plain(table, &text);
            prop_assume!(ids.len() < MOST_PIECES);
            prop_assert!(near(&vector, &table.encode_query(&text).0));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut table = MAGIC.to_vec();
            table.extend(&bytes);
            prop_assert!(Table::parse(Box::leak(table.into_boxed_slice())).is_err());
            prop_assert!(Table::parse(Box::leak(bytes.into_boxed_slice())).is_err());
        }
    }
}
