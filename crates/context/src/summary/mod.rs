//! Summarises large results in a few hundred tokens.

mod amount;
mod column;
mod content;
mod data;
mod ends;
mod failure;
mod grid;
mod inner;
mod leaves;
mod lines;
mod lossless;
mod profile;
mod rank;
mod rows;
mod shown;
mod table;
mod unusual;

pub use content::StructureSummarizer;
pub(super) use content::{document_and_rest, document_in, rows_in};
pub(super) use grid::{Delimited, Format, RowSpans, spans_of};
pub(super) use inner::{count_of_rows, has_lines, has_rows, inner_text, main_text};
pub(super) use lines::{Fenced, Fences, fence, heading};
pub(super) use lossless::forms as lossless_forms;
pub(super) use rows::{header_of, row_count, rows_below, rows_of};
pub(super) use shown::selector_path;

use crate::brief::Piece;
use crate::literal::Document;
use contextweaver_core::text::Estimator;

/// Makes the summary that replaces a large result in the prompt.
pub trait Summarizer: Send + Sync {
    /// A summary of `content` in at most `cap` tokens of `estimator`. `media_type` is what the source claimed and may
    /// be wrong.
    fn summarize(&self, content: &str, media_type: &str, cap: usize, estimator: Estimator) -> String;

    /// The same for the source of `document`, which the caller has parsed already.
    fn summarize_literal(&self, document: &Document<'_>, media_type: &str, cap: usize, estimator: Estimator) -> String {
        self.summarize(document.source(), media_type, cap, estimator)
    }
}

/// The pieces from which a summary is packed.
pub type Pieces = Vec<Piece>;

#[cfg(test)]
mod tests;
