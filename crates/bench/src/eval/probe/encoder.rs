//! An encoder for versions: it knows nothing, and its vectors depend on every word of a text.

use contextweaver_routing::semantic::model::{Encoder, MODEL_DIMS, ModelVector};

/// Texts with more words in common have vectors that are nearer. All of it is counted in integers.
#[derive(Debug, Clone, Copy)]
pub struct Words;

/// Places of the vector that a word counts in.
const PLACES: usize = 8;

/// How much it counts there.
const WEIGHT: i8 = 12;

impl Encoder for Words {
    fn name(&self) -> String {
        "words of the probe".to_owned()
    }

    fn bytes(&self) -> usize {
        0
    }

    fn encode_query(&self, text: &str) -> ModelVector {
        let mut vector = ModelVector::default();
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
            // FNV-1a over the lower-case letters, then a step of it for each place.
            let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            let mut hash = word.to_lowercase().bytes().fold(0xcbf2_9ce4_8422_2325, step);
            for number in 0..PLACES {
                hash = step(hash, number as u8);
                if let Some(place) = vector.0.get_mut((hash >> 32) as usize % MODEL_DIMS) {
                    *place = place.saturating_add(WEIGHT);
                }
            }
        }
        vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_nearer() {
        let near = |left: &str, right: &str| Words.encode_query(left).similarity(&Words.encode_query(right));
        assert!(near("open a ticket", "a ticket, Open") > near("open a ticket", "close the ticket"));
        assert!(near("close the ticket", "open a ticket") > near("open a ticket", "jazz"));
    }
}
