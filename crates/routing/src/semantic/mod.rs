//! A tool's or query's meaning as one short vector, from a table inside the binary.
//!
//! The lexical index finds words that the tool has. This module finds tools that say the same in other words: every
//! word piece has a vector of whole numbers in a table of less than 4 MB, a text is the sum of its pieces, and two
//! texts are as similar as the directions of their vectors. There is no model to load and nothing to run: a query costs
//! microseconds. `scripts/train-table` makes the table.
//!
//! Decided: every stored vector is int8 at one common scale, so that a similarity is a whole number, sums do not depend
//! on their order and all ways of searching give the same result. Words in scripts other than Latin have no pieces, and
//! word order is not represented.

mod fuse;
pub mod model;
mod pieces;
mod sketch;
mod table;
mod vectors;

pub use fuse::Fusion;
pub(crate) use table::TextPieces;
pub use table::{DIMS, QueryVector, Table, TableError, ToolVector};
pub use vectors::{DocumentVectors, Near};
