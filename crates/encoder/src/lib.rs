//! A sentence encoder of six layers and 384 dimensions: all-MiniLM-L6-v2, trained further on what people and models ask of tools.
//!
//! The weights, in bytes, and the vocabulary are part of this crate; `scripts/train-encoder` makes them, and `docs/model.md`
//! says from what. A program that does without them does without this crate.
//!
//! No framework: candle and tract bring some hundred and fifty and some hundred packages for a network whose forward
//! pass is a page, and their sums depend on the machine. Those in `kernel.rs` do not.
//!
//! What a router makes of the vectors is its business: here are numbers. The crate is apart so that its sums can be
//! compiled with all optimisation while tests of everything else are built quickly.

mod bert;
mod kernel;
mod tensors;
mod wordpiece;

use bert::{Bert, Shape};
use tensors::Tensors;
use wordpiece::WordPieces;

/// The name of the encoder.
pub const NAME: &str = "contextweaver-minilm";

/// How the sums of its vectors are taken: a change of it changes vectors by a little.
const ARITHMETIC: &str = "i8*i16";

/// A name that differs for every encoder that gives other vectors.
#[must_use]
pub fn version() -> String {
    format!("{NAME} {MOST_PIECES} {TOOL_PIECES} {ARITHMETIC} {WEIGHTS_SHA256}")
}

/// The SHA-256 of the weights, as hexadecimal digits.
pub const WEIGHTS_SHA256: &str = "9411cb805cfe3a939931a5470b73cf97a90a4459ba59a54b58e37beffb26987b";

/// The weights, safetensors.
const WEIGHTS: &[u8] = include_bytes!("../model/weights.bin");

/// The vocabulary, a piece a line.
const VOCABULARY: &str = include_str!("../model/vocab.txt");

/// The bytes that a program with this encoder is longer by: the weights and the vocabulary.
pub const BYTES: usize = WEIGHTS.len() + VOCABULARY.len();

/// The number of components of a vector.
pub const DIMS: usize = 384;

const SHAPE: Shape = Shape { pieces: 30_522, places: 512, width: DIMS, heads: 12, net: 1536, layers: 6 };

/// A query is read up to this many pieces.
const MOST_PIECES: usize = 128;

/// A tool is read up to this many pieces, as in the training: what it does comes first, and what follows is often the same in many.
const TOOL_PIECES: usize = 64;

/// The number of pieces encoded together, as long as they are of different texts: more would exceed the second-level
/// cache.
const BATCH: usize = 128;

/// The model cannot be used: its weights or its vocabulary are not what they should be.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The content is not that of the model; the text says why.
    #[error("not a usable model: {0}")]
    Unusable(&'static str),
}

/// The model, ready to encode. Takes about 12 MB of memory beside the weights in the program.
#[derive(Debug)]
pub struct MiniLm {
    pieces: WordPieces,
    bert: Bert<'static>,
}

impl MiniLm {
    /// The model that is part of this crate.
    ///
    /// # Errors
    /// [`ModelError`] when the crate was built with other files.
    pub fn built_in() -> Result<Self, ModelError> {
        let pieces = WordPieces::parse(VOCABULARY)?;
        let bert = Bert::new(&Tensors::parse(WEIGHTS)?, Shape { pieces: pieces.len(), ..SHAPE })?;
        Ok(Self { pieces, bert })
    }

    /// The meaning of a query: [`DIMS`] numbers, whose direction counts. A text beyond 128 pieces is cut.
    ///
    /// A query begins with a mark that tools do not have, so that the model can read the same words as a wish or as a
    /// description.
    #[must_use]
    pub fn encode_query(&self, text: &str) -> Vec<f32> {
        let vectors = self.bert.encode(&[self.pieces.encode_query(text, MOST_PIECES)]);
        vectors.into_iter().next().unwrap_or_default()
    }

    /// The meanings of the texts of tools, in their order, each as the vector of a query and to be compared with it. A text beyond
    /// 64 pieces is cut.
    #[must_use]
    pub fn encode_tools(&self, texts: &[String]) -> Vec<Vec<f32>> {
        let mut vectors = Vec::with_capacity(texts.len());
        let (mut batch, mut pieces) = (Vec::new(), 0);
        for text in texts {
            let text = self.pieces.encode_tool(text, TOOL_PIECES);
            pieces += text.len();
            batch.push(text);
            if pieces >= BATCH {
                vectors.extend(self.bert.encode(&batch));
                batch.clear();
                pieces = 0;
            }
        }
        vectors.extend(self.bert.encode(&batch));
        vectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The direction of a vector in the steps of the reference, which is rounded to bytes.
    fn rounded(vector: &[f32]) -> Vec<i8> {
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let byte = |value: &f32| (value * 600.0 / length).round_ties_even().clamp(-127.0, 127.0) as i8;
        vector.iter().map(byte).collect()
    }

    #[test]
    fn the_weights_are_those_of_the_name() {
        assert_eq!(contextweaver_core::text::sha256_hex(WEIGHTS), WEIGHTS_SHA256);
    }

    /// A text, its pieces up to those that are read of a query, and its vectors as a tool and as a query.
    type Row = (String, Vec<u32>, Vec<i8>, Vec<i8>);

    /// Vectors that the reference implementation of the tokenizer and a forward pass in numpy give.
    #[test]
    fn the_models_vectors_are_those_of_the_reference() {
        let model = MiniLm::built_in().unwrap();
        let reference: Vec<Row> = serde_json::from_str(include_str!("reference.json")).unwrap();
        let texts: Vec<String> = reference.iter().map(|(text, ..)| text.clone()).collect();
        let together = model.encode_tools(&texts);
        for ((text, pieces, as_tool, as_query), together) in reference.iter().zip(together) {
            assert_eq!(&model.pieces.encode_tool(text, MOST_PIECES), pieces, "{text}");
            let [alone] = model.encode_tools(std::slice::from_ref(text)).try_into().unwrap();
            assert_eq!(alone, together, "{text}");
            for (found, expected) in [(alone, as_tool), (model.encode_query(text), as_query)] {
                let near = rounded(&found).iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= 1);
                assert!(near, "{text}");
            }
        }
    }
}
