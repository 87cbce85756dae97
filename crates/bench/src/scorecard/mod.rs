//! All chapters at once: measured, merged with what is recorded, written, rendered and checked.
//!
//! The way is one: [`Measured::of`] measures what can be measured here; [`Measured::recordings`] puts it together with the
//! records that are kept; [`write()`] and [`pages::of`] make files of that. [`check`] compares what was measured with what is
//! committed. A chapter knows nothing of this.

pub mod cells;
pub mod check;
pub mod engines;
mod files;
mod html;
mod measured;
pub mod pages;
mod run;

pub use files::{committed, write};
pub use html::html;
pub use measured::{Course, Measured, Unmeasured, Watch, share};
pub use run::{Ran, Recorder, merge, render, run, terminal};
