//! The means to render: documents, tables, pictures, and how a number is written.
//!
//! The room is pure: it turns what it is given into text. It runs nothing, reads no clock and knows no file system, so the
//! same records give the same bytes on every run and machine. Which record goes where is the business of each chapter.

pub mod document;
pub mod html;
pub mod markup;
pub mod number;
pub mod plot;
pub mod readme;
pub mod recording;
pub mod table;
pub mod trials;

pub use number::count;
