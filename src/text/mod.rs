//! What a word is and what a token costs.
//!
//! Every comparison of texts in this crate (retrieval, clustering, lint, audit) goes through the one
//! [`Analyzer`], so that two rooms can never disagree about what a word is. Token counts are exact and
//! carry the name of their [`Estimator`]. The room is pure: no I/O, no state beyond costs that are
//! remembered, which change no result.

mod count;
mod counter;
mod digest;
mod merge;
mod ranks;
mod similarity;
mod stem;
mod stopwords;
mod tokenize;

pub use count::{Estimator, ParseEstimatorError, cl100k_if_over};
pub use digest::{hex, sha256_hex};
pub use similarity::{TermSet, Terms, jaccard};
pub use stopwords::is_stop_word;
pub use tokenize::{Analyzer, for_each_word};
