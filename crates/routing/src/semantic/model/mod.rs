//! An optional sentence encoder, which finds more on most collections.
//!
//! The semantic table knows words one by one. An encoder reads the whole sentence, at a thousand times the cost: a
//! query takes milliseconds and so does a tool, so tools are encoded once and kept on disk ([`VectorCache`]). One trait
//! says what an encoder is; the one implementation, in the crate `contextweaver-encoder`, comes with the cargo
//! feature `minilm`, so that a build without it gains no dependency.
//!
//! Vectors are rounded to bytes, as those of the table are, so that a similarity is a whole number.

mod cache;
pub mod place;
mod rank;

use std::fmt::Debug;
use std::sync::Arc;

pub use cache::{CacheError, VectorCache};
pub use rank::Fusions;
pub(crate) use rank::rank;

use contextweaver_core::catalog::{Catalog, SelectableItem};
use contextweaver_core::text::for_each_word;

/// The number of dimensions of an encoder's vectors.
pub const MODEL_DIMS: usize = 384;

/// The value of a stored component that stands for 1. Components of a unit vector are about 1/20, and those above
/// 127/600 are cut.
const UNIT: f32 = 600.0;

/// The similarity of two vectors of one direction, a cosine of 1.
pub(crate) const UNITS_OF_ONE: f64 = (UNIT * UNIT) as f64;

/// The meaning of a text by an encoder: a unit vector at a scale that all vectors share; zero where the encoder says
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelVector(pub [i8; MODEL_DIMS]);

impl Default for ModelVector {
    fn default() -> Self {
        Self([0; MODEL_DIMS])
    }
}

impl ModelVector {
    /// The direction of `values`; values beyond [`MODEL_DIMS`] are ignored, missing ones are 0.
    #[must_use]
    pub fn of(values: &[f32]) -> Self {
        let square: f32 = values.iter().map(|value| value * value).sum();
        let factor = if square > 0.0 { UNIT / square.sqrt() } else { 0.0 };
        let mut vector = Self::default();
        for (place, value) in vector.0.iter_mut().zip(values) {
            *place = (value * factor).round_ties_even().clamp(-127.0, 127.0) as i8;
        }
        vector
    }

    /// The cosine of two vectors in units of 1/360 000.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> i32 {
        self.0.iter().zip(&other.0).map(|(left, right)| i32::from(*left) * i32::from(*right)).sum()
    }
}

/// Turns a text into a vector. Equal texts give equal vectors, on every machine.
pub trait Encoder: Debug + Send + Sync {
    /// A name that differs from that of every encoder that gives other vectors.
    fn name(&self) -> String;

    /// The bytes of its weights and vocabulary.
    fn bytes(&self) -> usize;

    /// The vector of a query.
    fn encode_query(&self, text: &str) -> ModelVector;

    /// The vectors of the texts of tools, in their order. As those of queries where an encoder reads both alike.
    fn encode_tools(&self, texts: &[String]) -> Vec<ModelVector> {
        texts.iter().map(|text| self.encode_query(text)).collect()
    }
}

#[cfg(feature = "minilm")]
impl Encoder for contextweaver_encoder::MiniLm {
    fn name(&self) -> String {
        contextweaver_encoder::version()
    }

    fn bytes(&self) -> usize {
        contextweaver_encoder::BYTES
    }

    fn encode_query(&self, text: &str) -> ModelVector {
        ModelVector::of(&self.encode_query(text))
    }

    fn encode_tools(&self, texts: &[String]) -> Vec<ModelVector> {
        self.encode_tools(texts).iter().map(|vector| ModelVector::of(vector)).collect()
    }
}

/// An encoder and the vectors of a catalog's items, by item number.
#[derive(Debug, Clone)]
pub struct Model {
    encoder: Arc<dyn Encoder>,
    vectors: Arc<[ModelVector]>,
}

impl Model {
    /// Encodes every item of `catalog` that `cache` does not have, and adds it to the cache.
    #[must_use]
    pub fn build(encoder: Arc<dyn Encoder>, catalog: &Catalog, cache: &mut VectorCache) -> Self {
        let texts: Vec<String> = catalog.items().iter().map(tool_text).collect();
        let vectors = cache.vectors(&*encoder, &texts).into();
        Self { encoder, vectors }
    }

    /// The vector of a query.
    #[must_use]
    pub fn encode_query(&self, text: &str) -> ModelVector {
        self.encoder.encode_query(text)
    }

    /// The similarity of an item and a query, at least 0; 0 for an item that does not exist.
    #[must_use]
    pub fn similarity(&self, item: u32, query: &ModelVector) -> i32 {
        self.vectors.get(item as usize).map_or(0, |vector| vector.similarity(query).max(0))
    }

    /// The similarity of each item and a query, in item order, at least 0.
    pub fn similarities(&self, query: &ModelVector) -> impl Iterator<Item = i32> {
        self.vectors.iter().map(|vector| vector.similarity(query).max(0))
    }
}

/// The text that an encoder reads of a tool: the words of its name, and its description, as a sentence each.
#[must_use]
fn tool_text(item: &SelectableItem) -> String {
    let mut text = String::new();
    for_each_word(&item.name, |word| {
        text.push_str(word);
        text.push(' ');
    });
    text.truncate(text.trim_end().len());
    if !text.is_empty() {
        text.push_str(". ");
    }
    text.push_str(&item.description);
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{PartSource, Request, Router, RoutingConfig};
    use contextweaver_core::catalog::Kind;

    /// Knows two subjects, one word each way.
    #[derive(Debug)]
    pub(crate) struct Toy;

    impl Encoder for Toy {
        fn name(&self) -> String {
            "toy".to_owned()
        }

        fn bytes(&self) -> usize {
            0
        }

        fn encode_query(&self, text: &str) -> ModelVector {
            let about = |words: &[&str]| words.iter().filter(|word| text.to_lowercase().contains(*word)).count() as f32;
            ModelVector::of(&[about(&["rain", "weather", "forecast"]), about(&["mail", "letter"])])
        }
    }

    fn catalog() -> Arc<Catalog> {
        let tool = |id: &str, name: &str, description: &str| SelectableItem::tool(id, "a", name, description);
        Arc::new(
            Catalog::new(vec![
                tool("a:get_forecast#00000001", "get_forecast", "What the sky will do"),
                tool("a:sendMail#00000002", "sendMail", "Write to someone tomorrow"),
                tool("a:sum#00000003", "sum", "Add numbers"),
            ])
            .unwrap(),
        )
    }

    #[test]
    fn a_vector_is_a_direction_in_bytes() {
        let table: [(&[f32], [i8; 3]); 5] = [
            (&[0.06, 0.08, 1.0], [36, 48, 127]),
            (&[0.0, 0.0], [0, 0, 0]),
            (&[], [0, 0, 0]),
            (&[-9.0], [-127, 0, 0]),
            (&[f32::NAN], [0, 0, 0]),
        ];
        for (values, expected) in table {
            assert_eq!(ModelVector::of(values).0[..3], expected, "{values:?}");
        }
        let beyond = vec![1.0; MODEL_DIMS + 1];
        assert!(ModelVector::of(&beyond).0.iter().all(|value| *value == 31));
        let (one, other) = (ModelVector::of(&[1.0, 2.0, 3.0]), ModelVector::of(&[-3.0, 0.5, 1.0]));
        assert_eq!(one.similarity(&other), other.similarity(&one));
    }

    #[test]
    fn a_tool_is_read_as_two_sentences() {
        let texts: Vec<String> = catalog().items().iter().map(tool_text).collect();
        assert_eq!(
            texts,
            ["get forecast. What the sky will do", "send mail. Write to someone tomorrow", "sum. Add numbers"]
        );
        assert!(catalog().items().iter().all(|item| item.kind == Kind::Tool));
    }

    #[test]
    fn the_models_part_is_one_of_the_parts_that_add_up() {
        let build = |config: RoutingConfig| {
            let router = Router::build(catalog(), config).unwrap();
            let model = Model::build(Arc::new(Toy), router.catalog(), &mut VectorCache::default());
            router.with_model(model)
        };
        // A tenth of a rare word, so that a word in the description stands above what the model likes.
        let half = crate::config::ModelConfig { weight: 0.1 };
        let router = build(RoutingConfig { semantic: 0.0, model: half, ..RoutingConfig::default() });
        let request = |query: &str| Request { query: query.to_owned(), ..Request::default() };
        let route = router.route(&request("rain tomorrow")).unwrap();
        assert_eq!(route.ids(), ["a:sendMail#00000002", "a:get_forecast#00000001"]);
        for choice in &route.choices {
            assert_eq!(choice.parts.iter().map(|part| part.value).sum::<i64>(), choice.score as i64);
        }
        let sources = |at: usize| route.choices[at].parts.iter().map(|part| part.source.clone()).collect::<Vec<_>>();
        assert_eq!(sources(0), [PartSource::Word("tomorrow".to_owned())]);
        assert_eq!(sources(1), [PartSource::Model]);
        // An exact name stands above what the model likes, and its parts add up too.
        let named = router.route(&request("sum weather")).unwrap();
        assert_eq!(named.ids()[0], "a:sum#00000003");
        for choice in &named.choices {
            assert_eq!(choice.parts.iter().map(|part| part.value).sum::<i64>(), choice.score as i64);
        }
        // The scores of all items are those of the search.
        let index = router.index();
        for text in ["rain tomorrow", "sum weather", "letter", "nothing"] {
            let scores = index.score_all(&index.analyze(text));
            let hits = router.search(text, 3, &mut crate::Scratch::default());
            assert!(hits.iter().all(|hit| scores[hit.item as usize] == hit.score), "{text}");
        }
        let weightless = crate::config::ModelConfig { weight: 0.0 };
        let without = build(RoutingConfig { model: weightless, semantic: 0.0, ..RoutingConfig::default() });
        assert_eq!(without.route(&request("rain tomorrow")).unwrap().ids(), ["a:sendMail#00000002"]);
    }
}
