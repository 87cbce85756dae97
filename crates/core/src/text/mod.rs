//! What a word is and what a token costs.
//!
//! Every comparison of texts in this project (retrieval, clustering, lint, audit) goes through the one [`Analyzer`], so
//! that no two places can disagree about what a word is. Token counts are exact and carry the name of their
//! [`Estimator`]. Everything here is pure: no I/O, and no state beyond remembered costs, which change no result.

mod causes;
mod count;
mod counter;
mod date_time;
mod digest;
mod largest;
mod merge;
mod numbers;
mod one_line;
mod percent;
mod price;
mod ranks;
mod similarity;
mod stem;
mod stopwords;
mod tokenize;

pub use causes::{causes, unknown_host};
pub use count::{Estimator, ParseEstimatorError, cl100k_if_over};
pub use date_time::is_date_time;
pub use digest::{hex, sha256_hex};
pub use largest::largest;
pub use numbers::{counted, grouped};
pub use one_line::on_one_line;
pub use percent::{percent_decoded, percent_encoded};
pub use price::Price;
pub use similarity::{TermSet, Terms, jaccard};
pub use stopwords::is_stop_word;
pub use tokenize::{Analyzer, for_each_compound, for_each_word};
